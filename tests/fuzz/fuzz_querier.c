/* fuzz_querier.c - requests of Pyroscope's queries: the first byte says which, and whether it is
 * JSON. Nothing may crash, and JSON that is taken must be read as protobuf, too. */
#include <stdlib.h>

#include "profile/wire.h"
#include "server/querier.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const struct wire_message *const requests[] = {
	&ask_profile_types, &ask_label_names,
	&ask_label_values,  &ask_label_sets,
	&ask_series,	    &ask_merge_stacktraces,
	&ask_merge_profile, &ask_merge_span_profile,
	&ask_diff,	    &ask_stats,
};

static void select_by(struct arena *a, struct str type, struct str selector)
{
	struct selection s = { 0 };
	struct querier q = { .a = a };
	struct store_query query;
	struct err e;

	if (selection_add(&s, a, selector, &e) && selection_set_type(&s, a, type, &e))
		selection_query(&s, &q, (int64_t)type.n, INT64_MAX, true, &query, &e);
	selection_release(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct arena a = { 0 };
	struct buf proto = { 0 }, json = { 0 };
	const struct wire_message *m;
	struct str bytes;
	char *request;
	bool is_json, ok = true;
	struct err e;

	if (!n)
		return 0;
	m = requests[(data[0] >> 1) % (sizeof(requests) / sizeof(*requests))];
	is_json = data[0] & 1;
	bytes = (struct str){ (const char *)data + 1, n - 1 };
	if (is_json) {
		ok = wire_from_json(&proto, m, bytes, &e);
		bytes = buf_view(&proto);
	}
	request = arena_alloc(&a, m->bytes);
	if (ok && !wire_read(&a, m, bytes, request, &e) && is_json &&
	    !strstr(e.text, "there is a NUL in it"))
		abort();
	if (m == &ask_merge_stacktraces) {
		const struct ask_merge *ask = (const void *)request;

		select_by(&a, ask->profile_typeID, ask->label_selector);
	}
	/* Answers are our own, but a reader that runs past the end would be one of the requests',
	 * too.
	 */
	wire_to_json(&json, &answer_merge, bytes);
	wire_to_json(&json, &answer_series, bytes);
	buf_release(&proto);
	buf_release(&json);
	arena_release(&a);
	return 0;
}
