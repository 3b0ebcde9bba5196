/* api0_meta.c - profefe's API: what the server is, and what it has. */
#include "base/version.h"
#include "server/routes.h"

void api0_version(struct call *c)
{
	struct buf out = { 0 };

	buf_puts(&out, "{\"code\":200,\"body\":{\"version\":");
	json_put(&out, STR(KILN_VERSION));
	buf_puts(&out, ",\"commit\":\"\",\"build_time\":\"\",\"go_version\":\"\"}}\n");
	reply_json(c, 200, &out);
}
