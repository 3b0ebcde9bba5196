/* unwind.c - reads .eh_frame, as described in the Linux Standard Base and in DWARF 5, 6.4. Files
 * may be broken: nothing outside their segment is read, and what makes no sense is left out. */
#include "agent/unwind.h"

#include <string.h>

#include "agent/memory.h"

/* ---- bytes */

struct input {
	const uint8_t *p, *end;
	bool is_bad; /* more was wanted than there is; all further reads are 0 */
};

static uint64_t take(struct input *in, size_t n)
{
	uint64_t v = 0;

	if (in->is_bad || (size_t)(in->end - in->p) < n) {
		in->is_bad = true;
		return 0;
	}
	memcpy(&v, in->p, n);
	in->p += n;
	return v;
}

static uint64_t take_uleb(struct input *in)
{
	uint64_t v = 0;
	unsigned shift = 0, byte;

	do {
		byte = (unsigned)take(in, 1);
		if (shift < 64)
			v |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	return v;
}

static int64_t take_sleb(struct input *in)
{
	uint64_t v = 0;
	unsigned shift = 0, byte;

	do {
		byte = (unsigned)take(in, 1);
		if (shift < 64)
			v |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	if (byte & 0x40 && shift < 64)
		v |= ~(uint64_t)0 << shift;
	return (int64_t)v;
}

static void skip(struct input *in, uint64_t n)
{
	if (n > (size_t)(in->end - in->p))
		in->is_bad = true;
	else
		in->p += n;
}

/* DW_EH_PE_... */
enum {
	FORM_ABSOLUTE = 0,
	FORM_ULEB = 1,
	FORM_U2 = 2,
	FORM_U4 = 3,
	FORM_U8 = 4,
	FORM_SLEB = 9,
	FORM_S2 = 10,
	FORM_S4 = 11,
	FORM_S8 = 12,
	FROM_HERE = 0x10,
	FROM_DATA = 0x30,
	FROM_MASK = 0x70,
	INDIRECT = 0x80,
	OMITTED = 0xff,
};

static uint64_t take_form(struct input *in, unsigned form)
{
	switch (form) {
	case FORM_ULEB:
		return take_uleb(in);
	case FORM_SLEB:
		return (uint64_t)take_sleb(in);
	case FORM_U2:
		return take(in, 2);
	case FORM_S2:
		return (uint64_t)(int16_t)take(in, 2);
	case FORM_U4:
		return take(in, 4);
	case FORM_S4:
		return (uint64_t)(int32_t)take(in, 4);
	case FORM_ABSOLUTE:
	case FORM_U8:
	case FORM_S8:
		return take(in, 8);
	default:
		in->is_bad = true;
		return 0;
	}
}

/* A pointer in the given encoding; `data` is what FROM_DATA counts from. */
static uint64_t take_pointer(struct input *in, unsigned encoding, uintptr_t data)
{
	uintptr_t here = (uintptr_t)in->p;
	uint64_t v = take_form(in, encoding & 15);

	switch (encoding & FROM_MASK) {
	case 0:
		return v;
	case FROM_HERE:
		return v + here;
	case FROM_DATA:
		return v + data;
	default:
		in->is_bad = true;
		return 0;
	}
}

/* ---- the table as it is made */

/* Most modules have less than a thousand rules, whose hashes then stay in the cache. */
enum { RULES_MAX = 1 << 16, FIRST_SLOTS = 1 << 12, LAST_SLOTS = 1 << 17 };

/* Rows of a large module are not copied: their pages become part of the table. */
enum { COPIED_ROWS = 1 << 12 };

struct builder {
	struct unwind_source source;
	struct unwind_scratch *scratch;
	size_t nrows, nblocks;
	uint32_t nrules;
	uint32_t first;
	uint64_t end;  /* of the code that has rows */
	uint32_t rule; /* of the last row */
	bool has_failed;
};

static bool make_room(uint32_t **at, size_t *cap, size_t n)
{
	size_t wanted = *cap ? *cap * 2 : 1 << 16;
	void *p;

	if (n * sizeof(**at) < *cap)
		return true;
	p = pages_grow(*at, *cap, wanted);
	if (!p)
		return false;
	*at = p;
	*cap = wanted;
	return true;
}

_Static_assert(sizeof(struct unwind_rule) == 16, "two words");

static uint32_t hash_rule(const struct unwind_rule *r)
{
	uint64_t words[2];

	memcpy(words, r, sizeof(words));
	words[0] = (words[0] ^ words[1] * 0x9e3779b97f4a7c15u) * 0xff51afd7ed558ccdu;
	return (uint32_t)(words[0] >> 40);
}

/* Without a call for so little. */
static bool same_rule(const struct unwind_rule *a, const struct unwind_rule *b)
{
	uint64_t x[2], y[2];

	memcpy(x, a, sizeof(x));
	memcpy(y, b, sizeof(y));
	return x[0] == y[0] && x[1] == y[1];
}

/* The slot that has the rule, or the free one where it would be. */
static uint32_t *find_slot(const struct unwind_scratch *s, const struct unwind_rule *r)
{
	uint32_t slot = hash_rule(r) & (s->nslots - 1);

	while (s->slots[slot] && !same_rule(&s->rules[s->slots[slot]], r))
		slot = (slot + 1) & (s->nslots - 1);
	return &s->slots[slot];
}

/* `n` of them, with the rules that there are. */
static bool make_slots(struct unwind_scratch *s, uint32_t n, uint32_t nrules)
{
	pages_unmap(s->slots, s->nslots * sizeof(*s->slots));
	s->slots = pages_map(n * sizeof(*s->slots));
	s->nslots = s->slots ? n : 0;
	for (uint32_t i = 1; s->slots && i < nrules; i++)
		*find_slot(s, &s->rules[i]) = i;
	return s->slots;
}

/* The number of a rule; 0, none, if there are too many. */
static uint32_t number_rule(struct builder *b, const struct unwind_rule *r)
{
	struct unwind_scratch *s = b->scratch;
	uint32_t *slot;

	if (r->cfa == CFA_NONE || b->has_failed)
		return 0;
	if (same_rule(&s->rules[b->rule], r))
		return b->rule;
	slot = find_slot(s, r);
	if (*slot)
		return *slot;
	if (b->nrules == RULES_MAX)
		return 0;
	if (b->nrules > s->nslots / 2 && s->nslots < LAST_SLOTS) {
		if (!make_slots(s, s->nslots * 2, b->nrules)) {
			b->has_failed = true;
			return 0;
		}
		slot = find_slot(s, r);
	}
	s->rules[b->nrules] = *r;
	*slot = b->nrules;
	return b->nrules++;
}

static void push_row(struct builder *b, uint32_t place, uint32_t rule)
{
	struct unwind_scratch *s = b->scratch;
	uint32_t first = b->nblocks ? s->blocks[b->nblocks - 1] : 0;

	if (b->nrows > first && s->rows[b->nrows - 1] >> 16 == place)
		b->nrows--; /* the last one says more */
	if (!make_room(&s->rows, &s->rows_bytes, b->nrows + 1)) {
		b->has_failed = true;
		return;
	}
	s->rows[b->nrows++] = place << 16 | rule;
	b->rule = rule;
}

static void push_block(struct builder *b)
{
	struct unwind_scratch *s = b->scratch;

	if (!make_room(&s->blocks, &s->blocks_bytes, b->nblocks + 2)) {
		b->has_failed = true;
		return;
	}
	s->blocks[b->nblocks++] = (uint32_t)b->nrows;
	push_row(b, 0, b->rule);
}

/* From `offset` on it is `rule`. Offsets grow. */
static void add_row(struct builder *b, uint64_t offset, uint32_t rule)
{
	uint32_t block = (uint32_t)(offset >> BLOCK_BITS);

	if (!b->nblocks)
		b->first = block;
	while (!b->has_failed && b->nblocks <= block - b->first)
		push_block(b);
	if (!b->has_failed && rule != b->rule)
		push_row(b, (uint32_t)offset & ((1 << BLOCK_BITS) - 1), rule);
}

/* ---- what .eh_frame says of one function */

enum return_rule { RETURN_AT_CFA, RETURN_NOWHERE, RETURN_ODD };

struct state {
	struct unwind_rule rule;
	enum return_rule return_rule;
};

/* Common to many functions: a CIE. */
struct common {
	uintptr_t at; /* 0: it is of no use */
	uint64_t code_align;
	int64_t data_align;
	unsigned encoding;
	bool is_signal, has_augmentation;
	struct state first; /* how each function begins */
};

enum { STATES_MAX = 16 };

struct machine {
	struct builder *b;
	const struct common *common;
	uint64_t at, end; /* offsets of code */
	struct state now;
	unsigned nkept;
	struct state kept[STATES_MAX]; /* so many, and the others are not set */
};

static bool fits(int64_t v)
{
	return v == (int32_t)v;
}

/* The rule as a table has it. */
static struct unwind_rule final_rule(const struct machine *m)
{
	struct unwind_rule r = m->now.rule;

	if (m->common->is_signal)
		return (struct unwind_rule){ .cfa = CFA_SIGNAL };
	if (m->now.return_rule == RETURN_NOWHERE)
		return (struct unwind_rule){ .cfa = CFA_ROOT };
	if (m->now.return_rule == RETURN_ODD || r.cfa == CFA_ODD)
		return (struct unwind_rule){ .cfa = CFA_ODD };
	r.is_usual = r.cfa == CFA_REGISTER && (r.reg == REGISTER_SP || r.reg == REGISTER_BP) &&
		     (r.bp == BP_SAME || r.bp == BP_AT_CFA);
	return r;
}

/* Rules hold from `at` on, up to `to`. */
static void advance(struct machine *m, uint64_t to)
{
	struct unwind_rule r = final_rule(m);
	uint64_t from = m->at > m->b->end ? m->at : m->b->end;

	if (to > m->end)
		to = m->end;
	if (to > from) {
		add_row(m->b, from, number_rule(m->b, &r));
		m->b->end = from;
	}
	m->at = to > m->at ? to : m->at;
}

static void set_cfa(struct machine *m, uint64_t reg, int64_t offset)
{
	m->now.rule.cfa = reg < REGISTER_PC && fits(offset) ? CFA_REGISTER : CFA_ODD;
	m->now.rule.reg = (uint8_t)reg;
	m->now.rule.offset = (int32_t)offset;
	m->now.rule.extra = 0;
}

/* Expressions: DW_OP_... */
enum {
	OP_DEREF = 0x06,
	OP_PLUS = 0x22,
	OP_PLUS_CONST = 0x23,
	OP_LIT0 = 0x30,
	OP_LIT31 = 0x4f,
	OP_BREG0 = 0x70,
	OP_BREG15 = 0x7f,
};

/* What linkers say of .plt: rsp + 8 + ((rip & 15) >= N) * 8. */
static bool is_plt(const uint8_t *p, size_t n, int32_t *pushed_at)
{
	static const uint8_t head[] = { 0x77, 8, 0x80, 0, 0x3f, 0x1a },
			     tail[] = { 0x2a, 0x33, 0x24, 0x22 };

	if (n != sizeof(head) + 1 + sizeof(tail) || memcmp(p, head, sizeof(head)) != 0 ||
	    memcmp(p + n - sizeof(tail), tail, sizeof(tail)) != 0)
		return false;
	*pushed_at = p[sizeof(head)] - OP_LIT0;
	return *pushed_at >= 0 && *pushed_at <= 15;
}

/* [what is stored at] register + offset [+ constant] */
static bool read_expression(struct input in, struct unwind_rule *r)
{
	unsigned op = (unsigned)take(&in, 1);
	int64_t offset, extra = 0;
	bool is_memory = false;

	if (op < OP_BREG0 || op > OP_BREG15)
		return false;
	offset = take_sleb(&in);
	while (!in.is_bad && in.p < in.end) {
		unsigned next = (unsigned)take(&in, 1);

		if (next == OP_DEREF && !is_memory) {
			is_memory = true;
		} else if (next == OP_PLUS_CONST) {
			*(is_memory ? &extra : &offset) += (int64_t)take_uleb(&in);
		} else if (next >= OP_LIT0 && next <= OP_LIT31 && take(&in, 1) == OP_PLUS) {
			*(is_memory ? &extra : &offset) += next - OP_LIT0;
		} else {
			return false;
		}
	}
	if (in.is_bad || !fits(offset) || !fits(extra))
		return false;
	r->cfa = is_memory ? CFA_MEMORY : CFA_REGISTER;
	r->reg = (uint8_t)(op - OP_BREG0);
	r->offset = (int32_t)offset;
	r->extra = (int32_t)extra;
	return true;
}

static struct input take_block(struct input *in)
{
	uint64_t n = take_uleb(in);
	struct input block = { in->p, in->p, in->is_bad };

	skip(in, n);
	block.end = in->is_bad ? block.p : in->p;
	return block;
}

static void set_cfa_expression(struct machine *m, struct input e)
{
	struct unwind_rule *r = &m->now.rule;
	int32_t pushed_at;

	if (is_plt(e.p, (size_t)(e.end - e.p), &pushed_at)) {
		r->cfa = CFA_PLT;
		r->extra = pushed_at;
	} else if (!read_expression(e, r)) {
		r->cfa = CFA_ODD;
	}
}

static void set_saved(struct machine *m, uint64_t reg, int64_t offset)
{
	struct unwind_rule *r = &m->now.rule;

	if (reg == REGISTER_BP) {
		r->bp = fits(offset) ? BP_AT_CFA : BP_LOST;
		r->bp_offset = fits(offset) ? (int32_t)offset : 0;
	} else if (reg == REGISTER_PC) {
		m->now.return_rule = offset == -8 ? RETURN_AT_CFA : RETURN_ODD;
	}
}

static void set_saved_expression(struct machine *m, uint64_t reg, struct input e)
{
	struct unwind_rule found = { 0 }, *r = &m->now.rule;

	if (reg == REGISTER_PC)
		m->now.return_rule = RETURN_ODD;
	if (reg != REGISTER_BP)
		return;
	r->bp = BP_LOST;
	r->bp_offset = 0;
	if (read_expression(e, &found) && found.cfa == CFA_REGISTER && found.reg == REGISTER_BP) {
		r->bp = BP_AT_BP;
		r->bp_offset = found.offset;
	}
}

static void set_other(struct machine *m, uint64_t reg, uint8_t bp, enum return_rule return_rule)
{
	if (reg == REGISTER_BP) {
		m->now.rule.bp = bp;
		m->now.rule.bp_offset = 0;
	} else if (reg == REGISTER_PC) {
		m->now.return_rule = return_rule;
	}
}

static void restore(struct machine *m, uint64_t reg)
{
	if (reg == REGISTER_BP) {
		m->now.rule.bp = m->common->first.rule.bp;
		m->now.rule.bp_offset = m->common->first.rule.bp_offset;
	} else if (reg == REGISTER_PC) {
		m->now.return_rule = m->common->first.return_rule;
	}
}

static void keep_state(struct machine *m)
{
	if (m->nkept < STATES_MAX)
		m->kept[m->nkept] = m->now;
	m->nkept++;
}

static void restore_state(struct machine *m)
{
	if (m->nkept && --m->nkept < STATES_MAX)
		m->now = m->kept[m->nkept];
}

/* DW_CFA_... */
enum {
	SET_LOC = 0x01,
	ADVANCE_1 = 0x02,
	ADVANCE_2 = 0x03,
	ADVANCE_4 = 0x04,
	OFFSET_EXTENDED = 0x05,
	RESTORE_EXTENDED = 0x06,
	UNDEFINED = 0x07,
	SAME_VALUE = 0x08,
	REGISTER = 0x09,
	REMEMBER_STATE = 0x0a,
	RESTORE_STATE = 0x0b,
	DEF_CFA = 0x0c,
	DEF_CFA_REGISTER = 0x0d,
	DEF_CFA_OFFSET = 0x0e,
	DEF_CFA_EXPRESSION = 0x0f,
	EXPRESSION = 0x10,
	OFFSET_EXTENDED_SF = 0x11,
	DEF_CFA_SF = 0x12,
	DEF_CFA_OFFSET_SF = 0x13,
	VAL_OFFSET = 0x14,
	VAL_OFFSET_SF = 0x15,
	VAL_EXPRESSION = 0x16,
	GNU_ARGS_SIZE = 0x2e,
	GNU_NEGATIVE_OFFSET = 0x2f,
	ADVANCE = 0x40,
	OFFSET = 0x80,
	RESTORE = 0xc0,
};

/* An offset in units of the CIE's. Too large ones may become anything. */
static int64_t aligned(const struct machine *m, uint64_t n)
{
	return (int64_t)(n * (uint64_t)m->common->data_align);
}

/* Those that set where the CFA is; false: it is none of them. */
static bool run_cfa(struct machine *m, unsigned op, struct input *in)
{
	uint64_t reg;

	switch (op) {
	case DEF_CFA:
		reg = take_uleb(in);
		set_cfa(m, reg, (int64_t)take_uleb(in));
		return true;
	case DEF_CFA_SF:
		reg = take_uleb(in);
		set_cfa(m, reg, aligned(m, (uint64_t)take_sleb(in)));
		return true;
	case DEF_CFA_REGISTER:
		set_cfa(m, take_uleb(in), m->now.rule.offset);
		return true;
	case DEF_CFA_OFFSET:
		set_cfa(m, m->now.rule.reg, (int64_t)take_uleb(in));
		return true;
	case DEF_CFA_OFFSET_SF:
		set_cfa(m, m->now.rule.reg, aligned(m, (uint64_t)take_sleb(in)));
		return true;
	case DEF_CFA_EXPRESSION:
		set_cfa_expression(m, take_block(in));
		return true;
	default:
		return false;
	}
}

/* Those that set where a register is. */
static bool run_register(struct machine *m, unsigned op, struct input *in)
{
	uint64_t reg = take_uleb(in);

	switch (op) {
	case OFFSET_EXTENDED:
		set_saved(m, reg, aligned(m, take_uleb(in)));
		return true;
	case OFFSET_EXTENDED_SF:
		set_saved(m, reg, aligned(m, (uint64_t)take_sleb(in)));
		return true;
	case GNU_NEGATIVE_OFFSET:
		set_saved(m, reg, aligned(m, -take_uleb(in)));
		return true;
	case RESTORE_EXTENDED:
		restore(m, reg);
		return true;
	case UNDEFINED:
		set_other(m, reg, BP_LOST, RETURN_NOWHERE);
		return true;
	case SAME_VALUE:
		set_other(m, reg, BP_SAME, RETURN_ODD);
		return true;
	case EXPRESSION:
		set_saved_expression(m, reg, take_block(in));
		return true;
	case VAL_EXPRESSION:
		take_block(in);
		set_other(m, reg, BP_LOST, RETURN_ODD);
		return true;
	case REGISTER:
	case VAL_OFFSET:
	case VAL_OFFSET_SF:
		take_uleb(in);
		set_other(m, reg, BP_LOST, RETURN_ODD);
		return true;
	default:
		return false;
	}
}

/* False: not known, so nothing after it can be trusted. */
static bool run_one(struct machine *m, unsigned op, struct input *in)
{
	uint64_t step = m->common->code_align;

	switch (op) {
	case 0:
		return true;
	case SET_LOC:
		advance(m, take_pointer(in, m->common->encoding, 0) - m->b->source.base);
		return true;
	case ADVANCE_1:
		advance(m, m->at + take(in, 1) * step);
		return true;
	case ADVANCE_2:
		advance(m, m->at + take(in, 2) * step);
		return true;
	case ADVANCE_4:
		advance(m, m->at + take(in, 4) * step);
		return true;
	case REMEMBER_STATE:
		keep_state(m);
		return true;
	case RESTORE_STATE:
		restore_state(m);
		return true;
	case GNU_ARGS_SIZE:
		take_uleb(in);
		return true;
	default:
		return run_cfa(m, op, in) || run_register(m, op, in);
	}
}

static void run(struct machine *m, struct input in)
{
	while (in.p < in.end && !in.is_bad) {
		unsigned op = (unsigned)take(&in, 1);
		bool is_known = true;

		switch (op & 0xc0) {
		case ADVANCE:
			advance(m, m->at + (op & 0x3f) * m->common->code_align);
			break;
		case OFFSET:
			set_saved(m, op & 0x3f, aligned(m, take_uleb(&in)));
			break;
		case RESTORE:
			restore(m, op & 0x3f);
			break;
		default:
			is_known = run_one(m, op, &in);
		}
		if (!is_known || in.is_bad) {
			m->now.rule = (struct unwind_rule){ .cfa = CFA_ODD };
			return;
		}
	}
}

/* ---- entries */

/* The entry at `address`, without its length; bad if there is none. */
static struct input open_entry(const struct builder *b, uintptr_t address)
{
	struct input in = { NULL, NULL, true };
	uint64_t n;

	if (address < b->source.start || address >= b->source.end)
		return in;
	in = (struct input){ (const uint8_t *)address, (const uint8_t *)b->source.end, false };
	n = take(&in, 4);
	if (n == 0xffffffff)
		n = take(&in, 8);
	if (in.is_bad || !n || n > (size_t)(in.end - in.p))
		in.is_bad = true;
	else
		in.end = in.p + n;
	return in;
}

static bool read_augmentation(struct common *c, const char *letters, struct input *in)
{
	struct input data = take_block(in);

	for (; *letters; letters++) {
		unsigned encoding;

		switch (*letters) {
		case 'R':
			c->encoding = (unsigned)take(&data, 1);
			break;
		case 'L':
			take(&data, 1);
			break;
		case 'P':
			encoding = (unsigned)take(&data, 1);
			take_form(&data, encoding & 15);
			break;
		case 'S':
			c->is_signal = true;
			break;
		default:
			return false;
		}
	}
	return !data.is_bad;
}

static void start_machine(struct machine *m, struct builder *b, const struct common *c)
{
	m->b = b;
	m->common = c;
	m->at = m->end = 0;
	m->now = c->first;
	m->nkept = 0;
}

static struct state first_state(struct builder *b, const struct common *c, struct input program)
{
	struct machine m;

	start_machine(&m, b, c);
	run(&m, program);
	return m.now;
}

static bool read_common(struct builder *b, uintptr_t at, struct common *c)
{
	struct input in;
	unsigned version;
	const char *letters;

	if (c->at == at)
		return true;
	in = open_entry(b, at);
	*c = (struct common){ .first.rule.cfa = CFA_ODD };
	if (take(&in, 4) != 0)
		return false;
	version = (unsigned)take(&in, 1);
	letters = (const char *)in.p;
	while (take(&in, 1))
		;
	c->code_align = take_uleb(&in);
	c->data_align = take_sleb(&in);
	if ((version == 1 ? take(&in, 1) : take_uleb(&in)) != REGISTER_PC || in.is_bad)
		return false;
	if (*letters) {
		if (*letters != 'z' || !read_augmentation(c, letters + 1, &in))
			return false;
		c->has_augmentation = true;
	}
	if (in.is_bad || c->code_align >= 256 || c->data_align <= -256 || c->data_align >= 256)
		return false;
	c->first = first_state(b, c, in);
	c->at = at;
	return true;
}

static void end_code(struct builder *b, uint64_t offset)
{
	add_row(b, offset, 0);
	b->end = offset;
}

/* One function: an FDE. */
static void read_function(struct builder *b, uintptr_t at, struct common *c)
{
	struct input in = open_entry(b, at);
	uintptr_t here = (uintptr_t)in.p;
	uint64_t back = take(&in, 4), start, size;
	struct machine m;

	if (in.is_bad || !back || back > here || !read_common(b, here - back, c))
		return;
	start = take_pointer(&in, c->encoding, 0) - b->source.base;
	size = take_form(&in, c->encoding & 15);
	if (c->has_augmentation)
		take_block(&in);
	if (in.is_bad || !size || start > b->source.code_end - b->source.base ||
	    size > b->source.code_end - b->source.base - start)
		return;
	if (b->nblocks && start > b->end)
		end_code(b, b->end);
	start_machine(&m, b, c);
	m.at = start;
	m.end = start + size;
	run(&m, in);
	advance(&m, m.end);
	if (m.end > b->end)
		b->end = m.end;
}

/* .eh_frame_hdr has them in order of their code. False: it is not usable. */
static bool read_functions(struct builder *b)
{
	struct input in = { (const uint8_t *)b->source.header, (const uint8_t *)b->source.end,
			    false };
	unsigned encodings[3];
	struct common common = { 0 };
	uint64_t n;

	if (take(&in, 1) != 1)
		return false;
	for (int i = 0; i < 3; i++)
		encodings[i] = (unsigned)take(&in, 1);
	if (encodings[0] == OMITTED || encodings[1] == OMITTED || encodings[2] == OMITTED)
		return false;
	take_pointer(&in, encodings[0], b->source.header);
	n = take_pointer(&in, encodings[1], b->source.header);
	for (uint64_t i = 0; i < n && !in.is_bad && !b->has_failed; i++) {
		uint64_t at;

		take_pointer(&in, encodings[2], b->source.header);
		at = take_pointer(&in, encodings[2], b->source.header);
		if (!in.is_bad)
			read_function(b, at, &common);
	}
	if (b->nblocks)
		end_code(b, b->end);
	return true;
}

/* ---- the result */

static size_t align(size_t n)
{
	return (n + 15) & ~(size_t)15;
}

/* Rows that become part of the table. */
static const uint32_t *keep_rows(struct unwind_scratch *s, size_t n)
{
	uint32_t *rows = s->rows;

	pages_trim(rows, s->rows_bytes, n * sizeof(*rows));
	s->rows = NULL;
	s->rows_bytes = 0;
	return rows;
}

/* As small as it can be. */
static struct unwind_table *pack(struct builder *b)
{
	struct unwind_scratch *s = b->scratch;
	bool copies = b->nrows <= COPIED_ROWS;
	size_t rules = align(sizeof(struct unwind_table)),
	       blocks = rules + align(b->nrules * sizeof(*s->rules)),
	       rows = blocks + align((b->nblocks + 1) * sizeof(*s->blocks)),
	       bytes = rows + (copies ? b->nrows * sizeof(*s->rows) : 0);
	char *p = pages_map(bytes);
	struct unwind_table *t = (struct unwind_table *)p;

	if (!p)
		return NULL;
	memcpy(p + rules, s->rules, b->nrules * sizeof(*s->rules));
	if (b->nblocks) {
		s->blocks[b->nblocks] = (uint32_t)b->nrows;
		memcpy(p + blocks, s->blocks, (b->nblocks + 1) * sizeof(*s->blocks));
	}
	if (copies && b->nrows)
		memcpy(p + rows, s->rows, b->nrows * sizeof(*s->rows));
	*t = (struct unwind_table){ b->first,
				    (uint32_t)b->nblocks,
				    (uint32_t *)(p + blocks),
				    copies ? (uint32_t *)(p + rows) : keep_rows(s, b->nrows),
				    (struct unwind_rule *)(p + rules),
				    b->nrules };
	return t;
}

static bool prepare(struct unwind_scratch *s)
{
	if (!s->rules)
		s->rules = pages_map(RULES_MAX * sizeof(*s->rules));
	if (!s->rules || s->nslots != FIRST_SLOTS)
		return s->rules && make_slots(s, FIRST_SLOTS, 0);
	memset(s->slots, 0, FIRST_SLOTS * sizeof(*s->slots));
	return true;
}

const struct unwind_table *unwind_build(const struct unwind_source *source,
					struct unwind_scratch *scratch)
{
	struct builder b = { .source = *source, .scratch = scratch, .nrules = 1 };

	if (!prepare(scratch))
		return NULL;
	if (source->header >= source->start && source->header < source->end)
		read_functions(&b);
	if (b.has_failed)
		b.nblocks = b.nrows = 0;
	return pack(&b);
}

void unwind_scratch_release(struct unwind_scratch *s)
{
	pages_unmap(s->rules, RULES_MAX * sizeof(*s->rules));
	pages_unmap(s->slots, s->nslots * sizeof(*s->slots));
	pages_unmap(s->rows, s->rows_bytes);
	pages_unmap(s->blocks, s->blocks_bytes);
	*s = (struct unwind_scratch){ 0 };
}
