/* fuzz_agent_request.c - requests to the agent: heads one after the other, with their bodies, which
 * come in pieces of the size that the first byte says. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "agent/request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_value(const struct request *r, const char *name)
{
	char value[8];

	if (!request_value(r, name, value, sizeof(value)) && *value)
		abort();
	if (strlen(value) >= sizeof(value))
		abort();
}

/* How much of p the body took. */
static size_t take_all(const struct request *r, const char *p, size_t n, size_t piece)
{
	struct body b;
	size_t at = 0, ndata;
	const char *content;

	body_begin(&b, r);
	while (!b.is_over && !b.is_wrong && at < n) {
		size_t used, now = n - at < piece ? n - at : piece;

		used = body_take(&b, p + at, now, &content, &ndata);
		if (used > now || (!used && !b.is_over && !b.is_wrong))
			abort();
		if (ndata && (content < p + at || content + ndata > p + at + used))
			abort();
		at += used;
	}
	return at;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	size_t piece = n ? data[0] + 1u : 1, at = n ? 1 : 0, head;

	while (at < n && (head = request_head_size((const char *)data + at, n - at)) > 0) {
		char *copy = malloc(head);
		struct request r;
		bool ok;

		memcpy(copy, data + at, head);
		ok = request_parse(&r, copy, head);
		if (ok == (r.error != NULL) || (ok && *r.path && *r.path != '/'))
			abort();
		at += head;
		if (ok) {
			check_value(&r, "seconds");
			check_value(&r, "debug");
			at += take_all(&r, (const char *)data + at, n - at, piece);
		}
		free(copy);
		if (!ok)
			break;
	}
	return 0;
}
