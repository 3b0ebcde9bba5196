/* fuzz_otlp.c - OpenTelemetry's profiles: protobuf, or JSON if it begins with a '{'. What is made
 * of them must read back as it is. */
#include <stdio.h>
#include <stdlib.h>

#include "server/otlp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_profile(const struct profile *p)
{
	struct buf once = { 0 }, twice = { 0 };
	struct arena a = { 0 };
	struct strings strings;
	struct profile again;
	struct err e;

	strings_init(&strings);
	profile_encode(&once, p);
	if (!profile_read(&again, &a, &strings, buf_view(&once), SIZE_MAX, &e)) {
		fprintf(stderr, "%s\n", e.text);
		abort();
	}
	profile_encode(&twice, &again);
	if (!str_eq(buf_view(&once), buf_view(&twice)))
		abort();
	buf_release(&once);
	buf_release(&twice);
	strings_release(&strings);
	arena_release(&a);
}

static void make(struct otlp *o, struct wire w)
{
	struct desk desk = { 0 };
	struct otlp_profile p;
	struct profile out;
	struct str type;
	struct err e;
	uint32_t *of;

	strings_init(&desk.strings);
	if (otlp_profile(w, &p, &e) && p.samples.n < 1000) {
		of = xcalloc(p.samples.n + 1, sizeof(*of));
		for (uint32_t i = 0; i < p.samples.n; i++)
			of[i] = i;
		if (otlp_make(o, &p, of, p.samples.n, &desk, &out, &type, &e))
			check_profile(&out);
		free(of);
	}
	otlp_profile_release(&p);
	strings_release(&desk.strings);
	arena_release(&desk.arena);
}

/* What a resource says of itself. */
static void check_resource(struct otlp *o, struct wire w)
{
	struct otlp_attribute a;
	struct field f = { 0 };
	struct err e;

	while (w.p < w.end && wire_next(&w, &f))
		if (f.type == WIRE_BYTES && otlp_key_value(o, f.bytes, &a, &e) && a.value.text.n &&
		    !a.value.text.p)
			abort();
}

/* Messages in field 2, `depth` levels of them: scopes, profiles. */
static void walk(struct otlp *o, struct wire w, int depth)
{
	struct field f = { 0 };

	while (w.p < w.end && wire_next(&w, &f)) {
		if (f.number == 1 && f.type == WIRE_BYTES && depth)
			check_resource(o, f.bytes);
		if (f.number != 2 || f.type != WIRE_BYTES)
			continue;
		if (depth)
			walk(o, f.bytes, depth - 1);
		else
			make(o, f.bytes);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct str message = { (const char *)data, n };
	bool is_json = n && data[0] == '{';
	struct buf wire = { 0 };
	struct otlp o = { 0 };
	struct err e;

	if (is_json) {
		if (!wire_from_json(&wire, &otlp_request_message, message, &e))
			wire.n = 0;
		message = buf_view(&wire);
	}
	if (otlp_open(&o, message, is_json, &e))
		for (size_t i = 0; i < o.resources.n && i < 100; i++)
			walk(&o, o.resources.at[i], 1);
	otlp_release(&o);
	buf_release(&wire);
	return 0;
}
