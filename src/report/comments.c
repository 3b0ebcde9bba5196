#include "report/report.h"

static bool run(struct buf *out, struct report_run *r, struct err *e)
{
	(void)e;
	for (uint32_t i = 0; i < r->p->ncomments; i++) {
		buf_str(out, profile_str(r->p, r->p->comments[i]));
		buf_char(out, '\n');
	}
	return true;
}

const struct report report_comments = {
	.name = "comments",
	.flags = REPORT_NO_STACKS,
	.run = run,
};
