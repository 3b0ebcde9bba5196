/* expression.c - DWARF expressions as they occur in call frame information: registers, the stack
 * and arithmetic. */
#include "symbol/cfi.h"

#include <dwarf.h>

enum {
	DEPTH_MAX = 32,
	STEPS_MAX = 100, /* there are jumps; real ones need a dozen */
};

struct machine {
	struct cfi_reader in;
	const char *start;
	const struct cfi_context *c;
	uint64_t stack[DEPTH_MAX];
	size_t n;
	bool is_broken;
};

bool unwind_read(const struct unwind_stack *stack, uint64_t address, size_t bytes, uint64_t *out)
{
	uint64_t offset = address - stack->start;
	struct cfi_reader r;

	if (offset >= stack->bytes.n || stack->bytes.n - offset < bytes)
		return false;
	r = (struct cfi_reader){ .p = stack->bytes.p + offset,
				 .end = stack->bytes.p + stack->bytes.n };
	*out = cfi_uint(&r, bytes);
	return true;
}

static void push(struct machine *m, uint64_t v)
{
	if (m->n == DEPTH_MAX)
		m->is_broken = true;
	else
		m->stack[m->n++] = v;
}

static uint64_t pop(struct machine *m)
{
	if (m->n)
		return m->stack[--m->n];
	m->is_broken = true;
	return 0;
}

static void pick(struct machine *m, size_t index)
{
	if (index < m->n)
		push(m, m->stack[m->n - 1 - index]);
	else
		m->is_broken = true;
}

static void rotate(struct machine *m, size_t n)
{
	uint64_t top = pop(m);

	if (m->n < n - 1) {
		m->is_broken = true;
		return;
	}
	memmove(&m->stack[m->n - n + 2], &m->stack[m->n - n + 1], (n - 1) * sizeof(top));
	m->stack[m->n - n + 1] = top;
	m->n++;
}

static void push_register(struct machine *m, uint64_t reg, int64_t offset)
{
	if (reg < UNWIND_REGISTERS)
		push(m, m->c->frame->registers[reg] + (uint64_t)offset);
	else
		m->is_broken = true;
}

static void dereference(struct machine *m, size_t bytes)
{
	uint64_t v = 0;

	if (!bytes || bytes > 8 || !unwind_read(m->c->stack, pop(m), bytes, &v))
		m->is_broken = true;
	push(m, v);
}

static void jump(struct machine *m, int64_t offset)
{
	if (offset < m->start - m->in.p || offset > m->in.end - m->in.p)
		m->is_broken = true;
	else
		m->in.p += offset;
}

static uint64_t shift_right(uint64_t a, uint64_t n, bool is_signed)
{
	if (n > 63)
		return is_signed && (int64_t)a < 0 ? UINT64_MAX : 0;
	return is_signed ? (uint64_t)((int64_t)a >> n) : a >> n;
}

/* Of two operands; `a` was pushed first. */
static bool compute(uint8_t op, uint64_t a, uint64_t b, uint64_t *out)
{
	int64_t x = (int64_t)a, y = (int64_t)b;

	switch (op) {
	case DW_OP_and:
		*out = a & b;
		return true;
	case DW_OP_or:
		*out = a | b;
		return true;
	case DW_OP_xor:
		*out = a ^ b;
		return true;
	case DW_OP_plus:
		*out = a + b;
		return true;
	case DW_OP_minus:
		*out = a - b;
		return true;
	case DW_OP_mul:
		*out = a * b;
		return true;
	case DW_OP_shl:
		*out = b > 63 ? 0 : a << b;
		return true;
	case DW_OP_shr:
		*out = shift_right(a, b, false);
		return true;
	case DW_OP_shra:
		*out = shift_right(a, b, true);
		return true;
	case DW_OP_eq:
		*out = x == y;
		return true;
	case DW_OP_ne:
		*out = x != y;
		return true;
	case DW_OP_lt:
		*out = x < y;
		return true;
	case DW_OP_le:
		*out = x <= y;
		return true;
	case DW_OP_gt:
		*out = x > y;
		return true;
	case DW_OP_ge:
		*out = x >= y;
		return true;
	default:
		return false;
	}
}

static void push_constant(struct machine *m, uint8_t op)
{
	switch (op) {
	case DW_OP_addr:
	case DW_OP_const8u:
	case DW_OP_const8s:
		push(m, cfi_uint(&m->in, 8));
		break;
	case DW_OP_const1u:
		push(m, cfi_uint(&m->in, 1));
		break;
	case DW_OP_const1s:
		push(m, (uint64_t)cfi_int(&m->in, 1));
		break;
	case DW_OP_const2u:
		push(m, cfi_uint(&m->in, 2));
		break;
	case DW_OP_const2s:
		push(m, (uint64_t)cfi_int(&m->in, 2));
		break;
	case DW_OP_const4u:
		push(m, cfi_uint(&m->in, 4));
		break;
	case DW_OP_const4s:
		push(m, (uint64_t)cfi_int(&m->in, 4));
		break;
	case DW_OP_constu:
		push(m, cfi_uleb(&m->in));
		break;
	default:
		push(m, (uint64_t)cfi_sleb(&m->in));
		break; /* DW_OP_consts */
	}
}

static void run_other(struct machine *m, uint8_t op)
{
	uint64_t a, b;

	switch (op) {
	case DW_OP_nop:
		return;
	case DW_OP_deref:
		dereference(m, 8);
		return;
	case DW_OP_deref_size:
		dereference(m, cfi_uint(&m->in, 1));
		return;
	case DW_OP_dup:
		pick(m, 0);
		return;
	case DW_OP_over:
		pick(m, 1);
		return;
	case DW_OP_pick:
		pick(m, cfi_uint(&m->in, 1));
		return;
	case DW_OP_drop:
		pop(m);
		return;
	case DW_OP_swap:
		rotate(m, 2);
		return;
	case DW_OP_rot:
		rotate(m, 3);
		return;
	case DW_OP_neg:
		push(m, -pop(m));
		return;
	case DW_OP_not:
		push(m, ~pop(m));
		return;
	case DW_OP_plus_uconst:
		push(m, pop(m) + cfi_uleb(&m->in));
		return;
	case DW_OP_skip:
		jump(m, cfi_int(&m->in, 2));
		return;
	case DW_OP_bra:
		a = (uint64_t)cfi_int(&m->in, 2);
		if (pop(m))
			jump(m, (int64_t)a);
		return;
	case DW_OP_bregx:
		a = cfi_uleb(&m->in);
		push_register(m, a, cfi_sleb(&m->in));
		return;
	default:
		b = pop(m);
		a = pop(m);
		if (!compute(op, a, b, &a))
			m->is_broken = true;
		push(m, a);
	}
}

static void run_one(struct machine *m)
{
	uint8_t op = (uint8_t)cfi_uint(&m->in, 1);

	if (op >= DW_OP_lit0 && op <= DW_OP_lit31)
		push(m, op - DW_OP_lit0);
	else if (op >= DW_OP_breg0 && op <= DW_OP_breg31)
		push_register(m, op - DW_OP_breg0, cfi_sleb(&m->in));
	else if (op == DW_OP_addr || (op >= DW_OP_const1u && op <= DW_OP_consts))
		push_constant(m, op);
	else
		run_other(m, op);
}

bool cfi_evaluate(struct str expression, const struct cfi_context *c, const uint64_t *initial,
		  uint64_t *out)
{
	struct machine m = { .in = { .p = expression.p, .end = expression.p + expression.n },
			     .start = expression.p,
			     .c = c };
	int steps = 0;

	if (!expression.n)
		return false;
	if (initial)
		push(&m, *initial);
	while (m.in.p < m.in.end && !m.is_broken && !m.in.is_broken) {
		if (++steps > STEPS_MAX)
			return false;
		run_one(&m);
	}
	*out = pop(&m);
	return !m.is_broken && !m.in.is_broken;
}
