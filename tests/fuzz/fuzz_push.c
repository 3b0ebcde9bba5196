/* fuzz_push.c - what Grafana Alloy pushes: a PushRequest in protobuf, or JSON if it begins with a
 * '{'. Whatever is taken says what it is a profile of. */
#include <stdlib.h>

#include "server/push.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_series(struct wire w, struct intake_series *s)
{
	bool is_delta;
	struct err e = { 0 };

	if (!push_read_labels(w, s, &is_delta, &e)) {
		if (!e.text[0])
			abort();
		return;
	}
	if (!s->service.n || !s->type.n)
		abort();
	for (size_t i = 0; i < s->labels.n; i++)
		if (!s->labels.at[i].key.n)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct str message = { (const char *)data, n };
	struct intake_series s = { 0 };
	struct buf proto = { 0 };
	struct field f = { 0 };
	struct wire w;
	struct err e;

	if (n && data[0] == '{') {
		if (!wire_from_json(&proto, &push_request_message, message, &e))
			proto.n = 0;
		message = buf_view(&proto);
	}
	for (w = wire_of(message); w.p < w.end && wire_next(&w, &f);)
		if (f.number == PUSH_SERIES && f.type == WIRE_BYTES)
			check_series(f.bytes, &s);
	intake_series_release(&s);
	buf_release(&proto);
	return 0;
}
