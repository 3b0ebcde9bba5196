#include "base/regex_tree.h"

#include <stdlib.h>

#include "base/regex.h"
#include "base/utf8.h"
#include "base/vec.h"

enum inst_op { INST_CHAR, INST_ASSERT, INST_SPLIT, INST_SAVE, INST_MATCH };

struct inst {
	enum inst_op op;
	uint32_t out;	 /* what comes next */
	uint32_t second; /* split: tried after `out`; save: which offset */
	const struct regex_node *node;
};

/* Which characters a class, or a letter in any case, matches. */
struct predicate {
	uint64_t ascii[2];
	pcre2_code *code; /* for the others */
};

struct regex_nfa {
	vec(struct inst) insts;
	struct predicate *predicates;
	size_t npredicates;
	uint32_t start;
};

static uint32_t add_inst(struct regex_nfa *nfa, struct inst inst)
{
	vec_push(&nfa->insts, inst);
	return (uint32_t)(nfa->insts.n - 1);
}

static bool matches_alone(const pcre2_code *code, pcre2_match_data *data, struct str character)
{
	uint32_t options = PCRE2_NO_UTF_CHECK | PCRE2_ANCHORED | PCRE2_ENDANCHORED;

	return pcre2_match(code, (PCRE2_SPTR)character.p, character.n, 0, options, data, NULL) >= 0;
}

static void make_predicate(struct predicate *out, const struct regex_node *node)
{
	struct buf pattern = { 0 };
	pcre2_match_data *data = pcre2_match_data_create(1, NULL);

	regex_emit(&pattern, node);
	out->code = regex_pcre_compile(buf_view(&pattern));
	buf_release(&pattern);
	for (unsigned char c = 0; c < 0x80 && out->code && data; c++) {
		if (matches_alone(out->code, data, (struct str){ (char *)&c, 1 }))
			out->ascii[c / 64] |= 1ull << c % 64;
	}
	pcre2_match_data_free(data);
}

static bool has_predicate(const struct regex_node *node)
{
	return node->op == REGEX_CLASS || (node->op == REGEX_LITERAL && node->fold);
}

static uint32_t compile(struct regex_nfa *nfa, const struct regex_node *node, uint32_t next);

static uint32_t compile_concat(struct regex_nfa *nfa, const struct regex_node *first, uint32_t next)
{
	vec(const struct regex_node *) children = { 0 };

	for (const struct regex_node *n = first; n; n = n->next)
		vec_push(&children, n);
	for (size_t i = children.n; i > 0; i--)
		next = compile(nfa, children.at[i - 1], next);
	vec_release(&children);
	return next;
}

static uint32_t add_split(struct regex_nfa *nfa, uint32_t first, uint32_t second, bool swap)
{
	return add_inst(nfa, (struct inst){ .op = INST_SPLIT,
					    .out = swap ? second : first,
					    .second = swap ? first : second });
}

static uint32_t compile_alternate(struct regex_nfa *nfa, const struct regex_node *first,
				  uint32_t next)
{
	vec(uint32_t) entries = { 0 };
	uint32_t entry;

	for (const struct regex_node *n = first; n; n = n->next)
		vec_push(&entries, compile(nfa, n, next));
	entry = entries.at[entries.n - 1];
	for (size_t i = entries.n - 1; i > 0; i--)
		entry = add_split(nfa, entries.at[i - 1], entry, false);
	vec_release(&entries);
	return entry;
}

static uint32_t compile_repeat(struct regex_nfa *nfa, const struct regex_node *node, uint32_t next)
{
	uint32_t entry = next, copies = node->min;

	if (node->max == REGEX_NO_MAX) {
		uint32_t loop = add_split(nfa, 0, 0, false), body = compile(nfa, node->child, loop);
		struct inst *split = &nfa->insts.at[loop];

		split->out = node->lazy ? next : body;
		split->second = node->lazy ? body : next;
		if (copies > 0) {
			entry = body;
			copies--;
		} else if (node->child->can_be_empty) {
			/* The first round may match nothing and still set groups. */
			entry = add_split(nfa, body, next, node->lazy);
		} else {
			entry = loop;
		}
	} else {
		for (uint32_t i = node->min; i < node->max; i++)
			entry = add_split(nfa, compile(nfa, node->child, entry), next, node->lazy);
	}
	while (copies-- > 0)
		entry = compile(nfa, node->child, entry);
	return entry;
}

/* Writes the code for a node, to be followed by `next`, and returns where it starts. */
static uint32_t compile(struct regex_nfa *nfa, const struct regex_node *node, uint32_t next)
{
	struct inst inst = { .op = INST_ASSERT, .out = next, .node = node };

	switch (node->op) {
	case REGEX_EMPTY:
		return next;
	case REGEX_CONCAT:
		return compile_concat(nfa, node->child, next);
	case REGEX_ALTERNATE:
		return compile_alternate(nfa, node->child, next);
	case REGEX_REPEAT:
		return compile_repeat(nfa, node, next);
	case REGEX_CAPTURE:
		inst.op = INST_SAVE;
		inst.second = 2 * node->group + 1;
		inst.out = compile(nfa, node->child, add_inst(nfa, inst));
		inst.second--;
		break;
	case REGEX_CLASS:
	case REGEX_LITERAL:
		inst.op = INST_CHAR;
		if (has_predicate(node) && !nfa->predicates[node->predicate].code)
			make_predicate(&nfa->predicates[node->predicate], node);
		break;
	case REGEX_ANY:
	case REGEX_ANY_NOT_NEWLINE:
		inst.op = INST_CHAR;
		break;
	default:
		break;
	}
	return add_inst(nfa, inst);
}

struct regex_nfa *regex_nfa_new(const struct regex_tree *tree)
{
	struct regex_nfa *nfa = xmalloc(sizeof(*nfa));
	size_t bytes = tree->npredicates * sizeof(*nfa->predicates);

	*nfa = (struct regex_nfa){ .npredicates = tree->npredicates };
	nfa->predicates = bytes ? xmalloc(bytes) : NULL;
	if (bytes)
		memset(nfa->predicates, 0, bytes);
	nfa->start = compile(nfa, tree->root, add_inst(nfa, (struct inst){ .op = INST_MATCH }));
	return nfa;
}

void regex_nfa_free(struct regex_nfa *nfa)
{
	if (!nfa)
		return;
	for (size_t i = 0; i < nfa->npredicates; i++)
		pcre2_code_free(nfa->predicates[i].code);
	free(nfa->predicates);
	vec_release(&nfa->insts);
	free(nfa);
}

/* The instructions reached at one place of the subject, best first, and the offsets saved on the
 * way to each. An instruction is in the set if at[place[i]] == i, so clearing is n = 0. */
struct threads {
	uint32_t *at, *place;
	size_t n;
	size_t *saved;
};

/* Work that is left while following instructions that take no character. */
struct todo {
	uint32_t inst;
	bool restore; /* instead: put back saved offset `inst` */
	size_t offset;
};

struct run {
	const struct regex_nfa *nfa;
	struct str subject;
	size_t nsaved;
	size_t *saved; /* of the thread that is being followed */
	vec(struct todo) todo;
	struct threads now, after;
	pcre2_match_data *data;
};

static bool is_word(struct str s, size_t at)
{
	unsigned char c = at < s.n ? (unsigned char)s.p[at] : 0;
	unsigned char lower = c | 0x20;

	return (c >= '0' && c <= '9') || (lower >= 'a' && lower <= 'z') || c == '_';
}

static bool assertion_holds(enum regex_op op, struct str s, size_t at)
{
	bool boundary = (at > 0 && is_word(s, at - 1)) != is_word(s, at);

	switch (op) {
	case REGEX_BEGIN_TEXT:
		return at == 0;
	case REGEX_END_TEXT:
		return at == s.n;
	case REGEX_BEGIN_LINE:
		return at == 0 || s.p[at - 1] == '\n';
	case REGEX_END_LINE:
		return at == s.n || s.p[at] == '\n';
	case REGEX_WORD_BOUNDARY:
		return boundary;
	default:
		return !boundary;
	}
}

static bool char_matches(const struct run *r, const struct regex_node *node, uint32_t rune,
			 struct str bytes)
{
	const struct predicate *p;

	if (node->op == REGEX_ANY || node->op == REGEX_ANY_NOT_NEWLINE)
		return node->op == REGEX_ANY || rune != '\n';
	if (!has_predicate(node))
		return rune == node->rune;
	p = &r->nfa->predicates[node->predicate];
	if (rune < 0x80)
		return p->ascii[rune / 64] >> rune % 64 & 1;
	return p->code && matches_alone(p->code, r->data, bytes);
}

static bool add_to_set(struct threads *t, uint32_t inst)
{
	if (t->place[inst] < t->n && t->at[t->place[inst]] == inst)
		return false;
	t->place[inst] = (uint32_t)t->n;
	t->at[t->n++] = inst;
	return true;
}

static void follow_one(struct run *r, struct threads *t, uint32_t index, size_t at)
{
	const struct inst *inst = &r->nfa->insts.at[index];

	if (!add_to_set(t, index))
		return;
	switch (inst->op) {
	case INST_CHAR:
	case INST_MATCH:
		if (r->nsaved)
			memcpy(t->saved + (t->n - 1) * r->nsaved, r->saved,
			       r->nsaved * sizeof(*r->saved));
		return;
	case INST_SPLIT:
		vec_push(&r->todo, (struct todo){ .inst = inst->second });
		break;
	case INST_SAVE:
		if (inst->second < r->nsaved) {
			vec_push(&r->todo, (struct todo){ .inst = inst->second,
							  .restore = true,
							  .offset = r->saved[inst->second] });
			r->saved[inst->second] = at;
		}
		break;
	case INST_ASSERT:
		if (!assertion_holds(inst->node->op, r->subject, at))
			return;
		break;
	}
	vec_push(&r->todo, (struct todo){ .inst = inst->out });
}

/* Puts in `start` and all that can be reached from it without taking a character. */
static void follow(struct run *r, struct threads *t, uint32_t start, size_t at)
{
	vec_push(&r->todo, (struct todo){ .inst = start });
	while (r->todo.n > 0) {
		struct todo next = r->todo.at[--r->todo.n];

		if (next.restore)
			r->saved[next.inst] = next.offset;
		else
			follow_one(r, t, next.inst, at);
	}
}

/* Moves the threads over one character, which ends at `end`. Threads after one that has matched are
 * worse than it and die. Returns whether one has matched; then r->saved are its offsets. */
static bool step(struct run *r, uint32_t rune, struct str bytes, size_t end, size_t *matched)
{
	for (size_t i = 0; i < r->now.n; i++) {
		const struct inst *inst = &r->nfa->insts.at[r->now.at[i]];
		const size_t *saved = r->now.saved + i * r->nsaved;

		if (inst->op == INST_MATCH) {
			if (r->nsaved)
				memcpy(matched, saved, r->nsaved * sizeof(*saved));
			return true;
		}
		if (inst->op != INST_CHAR || bytes.n == 0 ||
		    !char_matches(r, inst->node, rune, bytes))
			continue;
		if (r->nsaved)
			memcpy(r->saved, saved, r->nsaved * sizeof(*saved));
		follow(r, &r->after, inst->out, end);
	}
	return false;
}

static bool run(struct run *r, size_t *matched)
{
	bool found = false;

	for (size_t at = 0; at <= r->subject.n;) {
		struct str bytes = str_from(r->subject, at);
		uint32_t rune = 0;
		struct threads swap;

		if (bytes.n > 0)
			bytes.n = utf8_decode(bytes, &rune);
		if (!found) {
			for (size_t i = 0; i < r->nsaved; i++)
				r->saved[i] = STR_NONE;
			if (r->nsaved)
				r->saved[0] = at;
			follow(r, &r->now, r->nfa->start, at);
		}
		if (step(r, rune, bytes, at + bytes.n, matched)) {
			found = true;
			if (r->nsaved)
				matched[1] = at;
			else
				return true;
		}
		swap = r->now;
		r->now = r->after;
		r->after = swap;
		r->after.n = 0;
		if ((found && r->now.n == 0) || bytes.n == 0)
			break;
		at += bytes.n;
	}
	return found;
}

static struct threads new_threads(struct arena *a, const struct regex_nfa *nfa, size_t nsaved)
{
	size_t n = nfa->insts.n;

	return (struct threads){ .at = arena_many(a, n, uint32_t),
				 .place = arena_many(a, n, uint32_t),
				 .saved = arena_many(a, n * nsaved + 1, size_t) };
}

bool regex_nfa_find(const struct regex_nfa *nfa, struct str valid_utf8, struct regex_span *groups,
		    size_t ngroups)
{
	struct arena a = { 0 };
	struct run r = { .nfa = nfa, .nsaved = 2 * ngroups };
	size_t *matched = arena_many(&a, r.nsaved + 1, size_t);
	bool found;

	r.subject = valid_utf8.n ? valid_utf8 : STR("");
	r.saved = arena_many(&a, r.nsaved + 1, size_t);
	r.now = new_threads(&a, nfa, r.nsaved);
	r.after = new_threads(&a, nfa, r.nsaved);
	r.data = pcre2_match_data_create(1, NULL);
	found = run(&r, matched);
	for (size_t i = 0; found && i < ngroups; i++)
		groups[i] = (struct regex_span){ matched[2 * i], matched[2 * i + 1] };
	pcre2_match_data_free(r.data);
	vec_release(&r.todo);
	arena_release(&a);
	return found;
}
