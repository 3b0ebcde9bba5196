#include "base/regex.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/regex_tree.h"
#include "base/utf8.h"

/* PCRE2 counts attempts, and one attempt may scan the whole subject: so the limit is for the
 * product of both. It stands for some ten milliseconds, and real names do not come near it. */
enum { SCAN_LIMIT = 20000000, MAX_ATTEMPTS = 200000, MIN_ATTEMPTS = 100 };
enum { JIT_STACK_START = 32 << 10, JIT_STACK_MAX = 1 << 20 };

/* What one match in progress needs. */
struct scratch {
	pcre2_match_data *data;
	pcre2_match_context *context;
	pcre2_jit_stack *stack;
};

/* Made by the matches themselves, and shared by the threads that match. */
struct shared {
	_Atomic(struct scratch *) spare; /* left by the last match for the next one */
	_Atomic(struct regex_nfa *) nfa; /* made when first needed */
};

struct regex {
	struct arena arena;
	struct regex_tree tree;
	struct str literal; /* if the whole pattern is one, for which there is no code */
	pcre2_code *code;
	struct shared *shared;
};

static void scratch_free(struct scratch *s)
{
	if (!s)
		return;
	pcre2_match_data_free(s->data);
	pcre2_match_context_free(s->context);
	pcre2_jit_stack_free(s->stack);
	free(s);
}

static struct scratch *scratch_new(const struct regex *re)
{
	struct scratch *s = xmalloc(sizeof(*s));

	s->data = pcre2_match_data_create(re->tree.ngroups + 1, NULL);
	s->context = pcre2_match_context_create(NULL);
	s->stack = pcre2_jit_stack_create(JIT_STACK_START, JIT_STACK_MAX, NULL);
	if (!s->data || !s->context || !s->stack)
		abort();
	pcre2_jit_stack_assign(s->context, NULL, s->stack);
	return s;
}

static struct scratch *scratch_take(const struct regex *re)
{
	struct scratch *s = atomic_exchange(&re->shared->spare, NULL);

	return s ? s : scratch_new(re);
}

static void scratch_give_back(const struct regex *re, struct scratch *s)
{
	scratch_free(atomic_exchange(&re->shared->spare, s));
}

/* The text if the tree is nothing but characters whose case matters. */
static bool find_literal(const struct regex_node *root, struct buf *out)
{
	const struct regex_node *first = root->op == REGEX_CONCAT ? root->child : root;

	for (const struct regex_node *n = first; n; n = n->next) {
		bool surrogate = n->rune >= 0xd800 && n->rune <= 0xdfff;

		if (n->op == REGEX_EMPTY)
			continue;
		if (n->op != REGEX_LITERAL || n->fold || surrogate)
			return false;
		out->n += utf8_encode(buf_room(out, UTF8_BYTES), n->rune);
	}
	return true;
}

static bool compile(struct regex *re, struct str pattern, struct err *e)
{
	struct buf text = { 0 };

	if (!regex_parse(&re->arena, pattern, &re->tree, e))
		return false;
	if (find_literal(re->tree.root, &text)) {
		re->literal.n = text.n;
		re->literal.p = str_dup(&re->arena, buf_view(&text));
	} else {
		text.n = 0;
		regex_emit(&text, re->tree.root);
		re->code = regex_pcre_compile(buf_view(&text));
	}
	buf_release(&text);
	if (!re->code && !re->literal.p)
		return regex_error(e, "expression too large", pattern);
	/* Without the JIT compiler it is slower and gives the same. */
	if (re->code)
		pcre2_jit_compile(re->code, PCRE2_JIT_COMPLETE);
	return true;
}

struct regex *regex_compile(struct str pattern, struct err *e)
{
	struct regex *re = xmalloc(sizeof(*re));

	*re = (struct regex){ 0 };
	re->shared = arena_new(&re->arena, struct shared);
	atomic_init(&re->shared->spare, NULL);
	atomic_init(&re->shared->nfa, NULL);
	if (!compile(re, pattern, e)) {
		regex_free(re);
		return NULL;
	}
	return re;
}

void regex_free(struct regex *re)
{
	if (!re)
		return;
	scratch_free(atomic_load(&re->shared->spare));
	regex_nfa_free(atomic_load(&re->shared->nfa));
	pcre2_code_free(re->code);
	arena_release(&re->arena);
	free(re);
}

static const struct regex_nfa *get_nfa(const struct regex *re)
{
	struct regex_nfa *nfa = atomic_load(&re->shared->nfa), *none = NULL;

	if (nfa)
		return nfa;
	nfa = regex_nfa_new(&re->tree);
	if (atomic_compare_exchange_strong(&re->shared->nfa, &none, nfa))
		return nfa;
	/* Another thread was faster. */
	regex_nfa_free(nfa);
	return none;
}

static bool find_literal_in(struct str literal, struct str subject, struct regex_span *groups,
			    size_t ngroups)
{
	size_t at = str_find(subject, literal);

	if (at != STR_NONE && ngroups > 0)
		groups[0] = (struct regex_span){ at, at + literal.n };
	return at != STR_NONE;
}

static uint32_t attempts_for(struct str subject)
{
	size_t attempts = SCAN_LIMIT / (subject.n + 1);

	if (attempts > MAX_ATTEMPTS)
		return MAX_ATTEMPTS;
	return attempts < MIN_ATTEMPTS ? MIN_ATTEMPTS : (uint32_t)attempts;
}

/* In valid UTF-8. There are not more than tree.ngroups + 1 groups. */
static bool find_valid(const struct regex *re, struct str subject, struct regex_span *groups,
		       size_t ngroups)
{
	struct scratch *s = scratch_take(re);
	PCRE2_SPTR text = (PCRE2_SPTR)(subject.p ? subject.p : "");
	const PCRE2_SIZE *offsets = pcre2_get_ovector_pointer(s->data);
	int result;

	pcre2_set_match_limit(s->context, attempts_for(subject));
	result = pcre2_match(re->code, text, subject.n, 0, PCRE2_NO_UTF_CHECK, s->data, s->context);
	for (size_t i = 0; result >= 0 && i < ngroups; i++) {
		bool set = i < (size_t)result && offsets[2 * i] != PCRE2_UNSET;

		groups[i].start = set ? offsets[2 * i] : STR_NONE;
		groups[i].end = set ? offsets[2 * i + 1] : STR_NONE;
	}
	scratch_give_back(re, s);
	if (result >= 0 || result == PCRE2_ERROR_NOMATCH)
		return result >= 0;
	return regex_nfa_find(get_nfa(re), subject, groups, ngroups);
}

/* Where in `s` the byte comes from that is at `offset` in the repaired text. */
static size_t unrepaired_offset(struct str s, size_t offset)
{
	size_t from = 0, to = 0;

	while (from < s.n && to < offset) {
		char bytes[UTF8_BYTES];
		uint32_t rune;

		from += utf8_decode(str_from(s, from), &rune);
		to += utf8_encode(bytes, rune);
	}
	return from;
}

static bool find_invalid(const struct regex *re, struct str subject, struct regex_span *groups,
			 size_t ngroups)
{
	struct buf repaired = { 0 };
	bool found;

	utf8_repair(&repaired, subject);
	found = find_valid(re, buf_view(&repaired), groups, ngroups);
	buf_release(&repaired);
	for (size_t i = 0; found && i < ngroups; i++) {
		if (groups[i].start == STR_NONE)
			continue;
		groups[i].start = unrepaired_offset(subject, groups[i].start);
		groups[i].end = unrepaired_offset(subject, groups[i].end);
	}
	return found;
}

static bool find(const struct regex *re, struct str subject, struct regex_span *groups,
		 size_t ngroups)
{
	if (!re->code)
		return find_literal_in(re->literal, subject, groups, ngroups);
	if (!utf8_is_valid(subject))
		return find_invalid(re, subject, groups, ngroups);
	return find_valid(re, subject, groups, ngroups);
}

bool regex_match(const struct regex *re, struct str subject)
{
	return find(re, subject, NULL, 0);
}

bool regex_find(const struct regex *re, struct str subject, struct regex_span *groups,
		size_t ngroups)
{
	size_t has = (size_t)re->tree.ngroups + 1;

	if (!find(re, subject, groups, ngroups < has ? ngroups : has))
		return false;
	for (size_t i = has; i < ngroups; i++)
		groups[i] = (struct regex_span){ STR_NONE, STR_NONE };
	return true;
}
