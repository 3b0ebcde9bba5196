/* fuzz_ingest.c - what Pyroscope's SDKs send: a name with labels, a time, a form. The first byte
 * says which. */
#include <stdlib.h>

#include "http/multipart.h"
#include "server/ingest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_name(struct str text)
{
	struct intake_series s = { 0 };
	struct str type;
	struct err e;

	if (ingest_parse_name(text, &s, &e)) {
		if (!s.service.n)
			abort();
		for (size_t i = 0; i < s.labels.n; i++)
			if (!s.labels.at[i].key.n)
				abort();
		if (ingest_cut_type(&s, &type) && (!s.service.n || !type.n))
			abort();
	}
	intake_series_release(&s);
}

/* Parts lie one after the other, within the body. */
static void check_form(struct arena *a, struct str body)
{
	struct str head = str_cut(&body, '\n');
	struct http_part parts[8];
	const char *end = body.p;
	struct err e;
	size_t n;

	if (!http_multipart_parse(a, head, body, parts, 8, &n, &e))
		return;
	for (size_t i = 0; i < n; i++) {
		if (!parts[i].body.n)
			continue;
		if (parts[i].body.p < end || parts[i].body.p + parts[i].body.n > body.p + body.n)
			abort();
		end = parts[i].body.p + parts[i].body.n;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct str text = { (const char *)data + 1, n - 1 };
	struct arena a = { 0 };
	struct err e;
	int64_t ns;

	if (!n)
		return 0;
	if (data[0] == 'n')
		check_name(text);
	else if (data[0] == 't')
		ingest_parse_time(text, 1700000000000000000, &ns, &e);
	else
		check_form(&a, text);
	arena_release(&a);
	return 0;
}
