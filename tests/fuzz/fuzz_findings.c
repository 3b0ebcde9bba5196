/* fuzz_findings.c - regressions.json: what is read of it is written again, and read the same. */
#include <stdlib.h>

#include "server/findings.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static bool parse(struct arena *a, struct str text, struct finding *x)
{
	struct json doc;
	struct err e;

	return json_parse(a, text, &doc, &e) && finding_read(&doc, x, &e);
}

/* Once it has been written it does not change any more. */
static void check_finding(struct arena *a, const struct finding *x)
{
	struct buf once = { 0 }, twice = { 0 };
	struct finding again;

	finding_json(&once, x);
	if (!parse(a, buf_view(&once), &again))
		abort();
	finding_json(&twice, &again);
	if (!str_eq(buf_view(&once), buf_view(&twice)))
		abort();
	buf_release(&once);
	buf_release(&twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct str text = { (const char *)data, n };
	const struct json *list;
	struct arena a = { 0 };
	struct finding x;
	struct json doc;
	struct err e;

	if (parse(&a, text, &x))
		check_finding(&a, &x);
	list = json_parse(&a, text, &doc, &e) ? json_member(&doc, "regressions") : NULL;
	for (size_t i = 0; list && list->type == JSON_ARRAY && i < list->n; i++)
		if (finding_read(&list->at[i], &x, &e))
			check_finding(&a, &x);
	arena_release(&a);
	return 0;
}
