/* fuzz_url.c - sources that are URLs: nothing may crash, and what is written must read as the same.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "fetch/collect.h"
#include "fetch/url.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct arena a = { 0 };
	struct str source = { (const char *)data, n };
	struct url_source first, second;
	struct collect_target target;
	struct err e;

	if (url_resolve(&a, source, 0, 0, &first) &&
	    (!url_resolve(&a, str_of(first.url), 0, 0, &second) ||
	     strcmp(first.url, second.url) != 0))
		abort();
	collect_target_parse(&a, str_dup(&a, source), &target, &e);
	arena_release(&a);
	return 0;
}
