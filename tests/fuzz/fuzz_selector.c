/* fuzz_selector.c - selectors and times: nothing may crash, and what is printed must
 * read as the same. */
#include <stdlib.h>

#include "base/when.h"
#include "server/selector.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_time(struct str text)
{
	struct buf out = { 0 };
	struct err e;
	int64_t ns, again;

	if (!time_parse(text, 1, &ns, &e))
		return;
	time_print(&out, ns);
	if (!time_parse(buf_view(&out), 0, &again, &e) || again != ns)
		abort();
	buf_release(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct arena a = { 0 };
	struct str text = { (const char *)data, n };
	struct selector first = { 0 }, second = { 0 };
	struct buf once = { 0 }, twice = { 0 };
	struct err e;

	check_time(text);
	if (selector_parse(&first, &a, text, &e)) {
		selector_print(&once, &first);
		/* Escapes may make it too long; then there is nothing to compare. */
		if (once.n <= SELECTOR_MAX_BYTES) {
			if (!selector_parse(&second, &a, buf_view(&once), &e))
				abort();
			selector_print(&twice, &second);
			if (!str_eq(buf_view(&once), buf_view(&twice)))
				abort();
		}
	}
	selector_release(&first);
	selector_release(&second);
	buf_release(&once);
	buf_release(&twice);
	arena_release(&a);
	return 0;
}
