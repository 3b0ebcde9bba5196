/* Pattern and subject, divided by the first newline: nothing may crash, and what the fast matcher
 * finds the slow one must find as well. */
#include <stdlib.h>

#include "base/regex.h"
#include "base/regex_tree.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { NGROUPS = 5 };

static void check_nfa(struct str pattern, struct str subject, bool found,
		      const struct regex_span *want)
{
	struct arena a = { 0 };
	struct regex_tree tree;
	struct regex_span got[NGROUPS];
	struct err e;
	struct regex_nfa *nfa;
	size_t n;

	if (!regex_parse(&a, pattern, &tree, &e))
		abort();
	n = tree.ngroups + 1 < NGROUPS ? tree.ngroups + 1 : NGROUPS;
	nfa = regex_nfa_new(&tree);
	if (regex_nfa_find(nfa, subject, got, n) != found)
		abort();
	if (found && memcmp(got, want, n * sizeof(*got)) != 0)
		abort();
	regex_nfa_free(nfa);
	arena_release(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str subject = { (const char *)data, size };
	struct str pattern = str_cut(&subject, '\n');
	struct regex_span groups[NGROUPS];
	struct err e;
	struct regex *re = regex_compile(pattern, &e);
	bool ascii = true;
	bool found;

	if (!re)
		return 0;
	found = regex_find(re, subject, groups, NGROUPS);
	if (regex_match(re, subject) != found)
		abort();
	for (size_t i = 0; i < subject.n; i++)
		ascii = ascii && (unsigned char)subject.p[i] < 0x80;
	if (ascii && pattern.n < 100 && subject.n < 100)
		check_nfa(pattern, subject, found, groups);
	regex_free(re);
	return 0;
}
