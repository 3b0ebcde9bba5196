#include "symbol/symbol.h"

#include <dwarf.h>

#include "symbol/cfi.h"
#include "test.h"

#define PROGRAM "tests/perf/hot_nofp"

/* Where things are in it: see test_perf.c. */
enum {
	BASE = 0x400000,
	START = 0x40017c,
	HOT = 0x400187,
	MIDDLE_AFTER_HOT = 0x400214,
	UNKNOWN = 0x400800,
	RIP = 16,
	RSP = 7,
	RBP = 6,
};

static struct unwind_table *open_program(void)
{
	struct unwind_table *t = unwind_open(PROGRAM, STR(""), UNWIND_X86_64);

	assert_non_null(t);
	return t;
}

TEST(a_leaf_returns_to_what_the_stack_says)
{
	struct unwind_table *t = open_program();
	const uint64_t words[] = { MIDDLE_AFTER_HOT, 1, 2, 3, 4, 5, 6, 7 };
	struct unwind_stack stack = { 0x7000, { (const char *)words, sizeof(words) } };
	struct unwind_frame f = { .pc = HOT, .registers = { [RSP] = 0x7000, [RBP] = 99 } };

	assert_true(unwind_step(t, f.pc - BASE, &f, &stack));
	assert_int_equal(f.pc, MIDDLE_AFTER_HOT);
	assert_int_equal(f.registers[RSP], 0x7008);
	assert_int_equal(f.registers[RBP], 99);
	assert_true(f.is_return);
	unwind_close(t);
}

TEST(the_outermost_frame_and_unknown_code_end_it)
{
	struct unwind_table *t = open_program();
	const uint64_t words[8] = { 0 };
	struct unwind_stack stack = { 0x7000, { (const char *)words, sizeof(words) } };
	struct unwind_frame f = { .pc = START, .registers = { [RSP] = 0x7000 } };

	assert_false(unwind_step(t, START - BASE, &f, &stack));
	assert_false(unwind_step(t, UNKNOWN - BASE, &f, &stack));
	assert_false(unwind_step(t, UINT64_MAX, &f, &stack));
	unwind_close(t);
}

TEST(a_stack_that_is_cut_ends_it)
{
	struct unwind_table *t = open_program();
	const uint64_t words[] = { MIDDLE_AFTER_HOT };
	struct unwind_frame f = { .pc = HOT, .registers = { [RSP] = 0x7000 } };

	for (size_t n = 0; n < sizeof(words); n++) {
		struct unwind_stack stack = { 0x7000, { (const char *)words, n } };

		assert_false(unwind_step(t, f.pc - BASE, &f, &stack));
	}
	unwind_close(t);
}

TEST(frame_pointers_are_followed_upwards_only)
{
	const uint64_t words[] = { 0, 0x7030, 0x1234, 0, 0, 0, 0x7000, 0x5678 };
	struct unwind_stack stack = { 0x7000, { (const char *)words, sizeof(words) } };
	struct unwind_frame f = { .registers = { [RSP] = 0x7000, [RBP] = 0x7008 } };

	assert_true(unwind_step_frame_pointer(UNWIND_X86_64, &f, &stack));
	assert_int_equal(f.pc, 0x1234);
	assert_true(unwind_step_frame_pointer(UNWIND_X86_64, &f, &stack));
	assert_int_equal(f.pc, 0x5678);
	assert_int_equal(f.registers[RSP], 0x7040);
	assert_false(unwind_step_frame_pointer(UNWIND_X86_64, &f, &stack)); /* back to 0x7000 */
}

TEST(files_of_another_build_or_machine_are_not_used)
{
	assert_null(unwind_open(PROGRAM, STR("00"), UNWIND_X86_64));
	assert_null(unwind_open(PROGRAM, STR(""), UNWIND_AARCH64));
	assert_null(unwind_open("tests/perf/hot.c", STR(""), UNWIND_X86_64));
	assert_null(unwind_open("/nosuch", STR(""), UNWIND_X86_64));
}

/* ---- expressions */

static const uint64_t memory[] = { 0x1111, 0x2222 };

#define EXPRESSION(...)                                                \
	((struct str){ (const char *)(const uint8_t[]){ __VA_ARGS__ }, \
		       sizeof((const uint8_t[]){ __VA_ARGS__ }) })

static bool evaluate(struct str expression, uint64_t *out)
{
	struct unwind_frame f = { .registers = { [RSP] = 0x7000, [RIP] = 0x40001b } };
	struct unwind_stack stack = { 0x7000, { (const char *)memory, sizeof(memory) } };
	struct cfi_context c = { &f, &stack };

	return cfi_evaluate(expression, &c, NULL, out);
}

static void assert_value(struct str expression, uint64_t want)
{
	uint64_t got;

	assert_true(evaluate(expression, &got));
	assert_int_equal(got, want);
}

/* As linkers write it for the procedure linkage table: rsp + 8 + ((rip & 15) >= 11) * 8. */
TEST(expressions_are_computed)
{
	assert_value(EXPRESSION(DW_OP_breg7, 8, DW_OP_breg16, 0, DW_OP_lit15, DW_OP_and,
				DW_OP_lit11, DW_OP_ge, DW_OP_lit3, DW_OP_shl, DW_OP_plus),
		     0x7010);
	assert_value(EXPRESSION(DW_OP_breg7, 8, DW_OP_deref), 0x2222);
	assert_value(EXPRESSION(DW_OP_lit1, DW_OP_lit2, DW_OP_lit3, DW_OP_rot, DW_OP_minus),
		     UINT64_MAX);
	assert_value(EXPRESSION(DW_OP_lit1, DW_OP_lit2, DW_OP_swap, DW_OP_minus), 1);
	assert_value(EXPRESSION(DW_OP_lit7, DW_OP_const1s, 0xff, DW_OP_bra, 1, 0, DW_OP_lit9), 7);
	assert_value(EXPRESSION(DW_OP_const2s, 0xfe, 0xff, DW_OP_lit1, DW_OP_shra), UINT64_MAX);
}

TEST(expressions_that_make_no_sense_fail)
{
	uint64_t out;

	assert_false(evaluate(EXPRESSION(DW_OP_plus), &out));
	assert_false(evaluate(EXPRESSION(DW_OP_const8u, 1), &out));
	assert_false(evaluate(EXPRESSION(DW_OP_lit0, DW_OP_deref), &out));
	assert_false(evaluate(EXPRESSION(DW_OP_lit1, DW_OP_rot), &out));
	assert_false(evaluate(EXPRESSION(DW_OP_skip, 0xfd, 0xff), &out)); /* for ever */
	assert_false(evaluate(EXPRESSION(DW_OP_skip, 0xf0, 0xff), &out));
	assert_false(evaluate(EXPRESSION(DW_OP_bregx, 0x7f, 0), &out));
	assert_false(evaluate(EXPRESSION(DW_OP_lit0, DW_OP_dup, DW_OP_skip, 0xfc, 0xff), &out));
	assert_false(evaluate(STR(""), &out));
}
