#include "server/connect.h"

#include <stdarg.h>
#include <stdio.h>
#include <strings.h>

#include "base/number.h"
#include "http/media.h"
#include "server/gate.h"

enum { MAX_TIMEOUT_DIGITS = 10 }; /* of Connect-Timeout-Ms */

static const struct code {
	const char *name;
	int status;
} codes[] = {
#define CONNECT_ROW(code, name, status) { name, status },
	CONNECT_CODES(CONNECT_ROW)
#undef CONNECT_ROW
};

/* ---- errors */

static void say_code(struct call *c, int status, enum connect_code code, struct str text)
{
	struct buf json = { 0 };

	buf_printf(&json, "{\"code\":\"%s\",\"message\":", codes[code].name);
	json_put(&json, text);
	buf_puts(&json, "}\n");
	reply_json(c, status, &json);
}

void connect_error(struct call *c, enum connect_code code, const char *fmt, ...)
{
	char text[1200];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	say_code(c, codes[code].status, code, str_of(text));
}

/* Limits answer with statuses that say more than those of codes. */
enum connect_code connect_code_of(int status)
{
	static const struct {
		int status;
		enum connect_code code;
	} others[] = {
		{ 400, CONNECT_INVALID_ARGUMENT },   { 405, CONNECT_UNIMPLEMENTED },
		{ 408, CONNECT_DEADLINE_EXCEEDED },  { 413, CONNECT_INVALID_ARGUMENT },
		{ 415, CONNECT_INVALID_ARGUMENT },   { 422, CONNECT_INVALID_ARGUMENT },
		{ 507, CONNECT_RESOURCE_EXHAUSTED }, { 500, CONNECT_INTERNAL },
	};

	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		if (others[i].status == status)
			return others[i].code;
	for (size_t i = 0; i < sizeof(codes) / sizeof(*codes); i++)
		if (codes[i].status == status)
			return (enum connect_code)i;
	return CONNECT_UNKNOWN;
}

void connect_say(struct call *c, int status, struct str text)
{
	say_code(c, status, connect_code_of(status), text);
}

/* ---- messages */

static bool read_type(struct call *c, struct connect_body *b)
{
	struct str type = http_call_header(c->http, "Content-Type"), charset;

	if (http_media_is(type, "application/proto"))
		return true;
	b->is_json = http_media_is(type, "application/json");
	charset = http_media_param(c->arena, type, "charset");
	if (b->is_json &&
	    (!charset.p || (charset.n == 5 && strncasecmp(charset.p, "utf-8", 5) == 0)))
		return true;
	reply_error(c, 415,
		    "Content-Type \"%.*s\": send application/proto or application/json (in UTF-8); "
		    "gRPC and gRPC-Web are not spoken here",
		    STR_ARG(type));
	return false;
}

static bool check_version(struct call *c)
{
	struct str version = http_call_header(c->http, "Connect-Protocol-Version");

	if (!version.p || str_eq(version, STR("1")))
		return true;
	connect_error(c, CONNECT_INVALID_ARGUMENT,
		      "Connect-Protocol-Version must be \"1\", not \"%.*s\"", STR_ARG(version));
	return false;
}

/* Who waits no longer closes the connection, which the handler notices; so this is only checked. */
static bool check_timeout(struct call *c)
{
	struct str text = http_call_header(c->http, "Connect-Timeout-Ms");
	uint64_t ms;

	if (!text.p ||
	    (text.n <= MAX_TIMEOUT_DIGITS && number_parse_uint(text, 10, &ms) == NUMBER_OK))
		return true;
	connect_error(c, CONNECT_INVALID_ARGUMENT,
		      "Connect-Timeout-Ms \"%.*s\" is no number of %d digits at most",
		      STR_ARG(text), MAX_TIMEOUT_DIGITS);
	return false;
}

bool connect_read(struct call *c, struct connect_body *b)
{
	*b = (struct connect_body){ 0 };
	return read_type(c, b) && check_version(c) && check_timeout(c) &&
	       gate_unpack_body(c, &b->bytes);
}

void connect_reply(struct call *c, const struct connect_body *b, struct buf *bytes)
{
	reply_as(c, 200, bytes, b->is_json ? "application/json" : "application/proto");
}
