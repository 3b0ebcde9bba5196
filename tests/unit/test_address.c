/* From addresses of a mapping to those of the file that it maps. */
#include "test.h"

#include "symbol/elf.h"
#include "symbol/symbol.h"

#define KERNEL UINT64_C(0xffffffff80000000)

static const struct segment headers = { PT_LOAD, PF_R, 0, 0, 0x800, 0x800, 0x1000 };
static const struct segment text = { PT_LOAD, PF_R | PF_X, 0x1000, 0x1000, 0x2000, 0x2000, 0x1000 };
static const struct segment fixed = {
	PT_LOAD, PF_R | PF_X, 0x1000, 0x401000, 0x2000, 0x2000, 4096
};
static const struct segment data = { PT_LOAD, PF_R | PF_W, 0x3000, 0x5000, 0x100, 0x200, 0x1000 };
static const struct segment kernel = { PT_LOAD,	 PF_R | PF_X, 0x200000, KERNEL + 0x1000000,
				       0x800000, 0x800000,    0x200000 };

/* The address in the file, or the start of the error. */
static const char *check(uint16_t type, const struct segment *segments, size_t n,
			 struct object_place place, uint64_t address, uint64_t want)
{
	struct section sections[] = { { .name = STR("") }, { .name = STR(".text") } };
	struct segment copy[4];
	struct elf_kernel_symbol none = { 0 };
	struct elf f = { .is_64 = true, .type = type, .nsections = 2 };
	struct object o = { .kind = OBJECT_ELF, .elf = &f, .path = "prog" };
	static struct err e;
	uint64_t got = 0;

	memcpy(copy, segments, n * sizeof(*segments));
	sections[1].addr = segments[n > 1].vaddr;
	f.sections = sections;
	f.segments = copy;
	f.nsegments = n;
	f.kernel_symbol = &none;
	e.text[0] = '\0';
	if (object_address(&o, &place, address, &got, &e))
		assert_int_equal(got, want);
	return e.text;
}

#define PLACE(a, b, c) ((struct object_place){ .start = (a), .limit = (b), .offset = (c) })
#define SEGMENTS(...)                      \
	(struct segment[]){ __VA_ARGS__ }, \
		sizeof((struct segment[]){ __VA_ARGS__ }) / sizeof(struct segment)

TEST(fixed_programs_stay)
{
	assert_string_equal(check(ET_EXEC, SEGMENTS(headers, fixed),
				  PLACE(0x401000, 0x403000, 0x1000), 0x401234, 0x401234),
			    "");
}

TEST(movable_programs_are_moved_back)
{
	assert_string_equal(check(ET_DYN, SEGMENTS(headers, text, data),
				  PLACE(0x55550001000, 0x55550003000, 0x1000), 0x55550001234,
				  0x1234),
			    "");
}

/* Two segments that share a page of the file: each address goes by the one it is in. */
TEST(segments_of_one_mapping)
{
	struct segment first = { PT_LOAD, PF_R | PF_X, 0x1000, 0x1000, 0xe00, 0xe00, 0x1000 };
	struct segment second = { PT_LOAD, PF_R | PF_W, 0x1f00, 0x5f00, 0x80, 0x80, 0x1000 };
	struct object_place page = PLACE(0x70000, 0x71000, 0x1000);

	assert_string_equal(check(ET_DYN, SEGMENTS(first, second), page, 0x70010, 0x1010), "");
	assert_string_equal(check(ET_DYN, SEGMENTS(first, second), page, 0x70f10, 0x5f10), "");
	assert_string_equal(check(ET_DYN, SEGMENTS(first, second), page, 0x70e80, 0),
			    "prog: no program header matches file offset 1e80");
}

TEST(addresses_outside)
{
	struct object_place place = PLACE(0x401000, 0x403000, 0x1000);

	assert_string_equal(check(ET_EXEC, SEGMENTS(headers, fixed), place, 0x403000, 0),
			    "specified address 403000 is outside the mapping range [401000, "
			    "403000] for file prog");
	assert_string_equal(
		check(ET_EXEC, SEGMENTS(headers, fixed), PLACE(0x1000, 0x2000, 0x9000), 0x1000, 0),
		"prog: no program header matches mapping info");
}

TEST(mappings_that_say_nothing)
{
	assert_string_equal(check(ET_DYN, SEGMENTS(headers, text), PLACE(0, 0, 0), 0x1234, 0x1234),
			    "");
	assert_string_equal(
		check(ET_DYN, SEGMENTS(headers, text), PLACE(0, UINT64_MAX, 0), 0x1234, 0x1234),
		"");
}

TEST(kernels)
{
	assert_string_equal(check(ET_EXEC, SEGMENTS(kernel),
				  PLACE(KERNEL + 0x5000000, UINT64_MAX, KERNEL + 0x5000000),
				  KERNEL + 0x5000123, KERNEL + 0x1000123),
			    "");
}
