#include "test.h"

#include "base/arena.h"
#include "profile/recycle.h"

enum { PAGE = 4096, BYTES = 64 * PAGE, STEP = 5 * PAGE + 123 };

/* Copies `in`, `grow` times over, as a decoder would; in the end all of it must be there. */
static void copy(unsigned char *in, unsigned char *out, size_t grow)
{
	size_t used = 0;
	struct recycler r;

	for (size_t i = 0; i < BYTES; i++)
		in[i] = (unsigned char)(i / 7);
	recycler_init(&r, in, out, out + BYTES * grow);
	for (size_t i = 0; i < BYTES; i++) {
		for (size_t k = 0; k < grow; k++)
			out[used++] = in[i];
		if (i % STEP == STEP - 1)
			recycle(&r, in + i + 1, out + used);
	}
	recycler_finish(&r, out + used);
	for (size_t i = 0; i < BYTES * grow; i++)
		assert_int_equal(out[i], (unsigned char)(i / grow / 7));
}

TEST(what_was_written_stays)
{
	for (size_t grow = 1; grow <= 4; grow++) {
		struct arena a = { 0 };

		/* At odd addresses, too: only whole pages of either may move. */
		copy(arena_raw(&a, BYTES), arena_raw(&a, BYTES * grow), grow);
		copy((unsigned char *)arena_raw(&a, BYTES + 999) + 999,
		     (unsigned char *)arena_raw(&a, BYTES * grow + 55) + 55, grow);
		arena_release(&a);
	}
}

TEST(neighbours_of_the_output_are_left_alone)
{
	struct arena a = { 0 };
	unsigned char *in = arena_raw(&a, BYTES), *out = arena_raw(&a, 12 * PAGE);
	struct recycler r;

	memset(in, 1, BYTES);
	memset(out, 2, 12 * PAGE);
	recycler_init(&r, in, out, out + 2 * PAGE);
	recycle(&r, in + 8 * PAGE, out + 10);
	recycle(&r, in + BYTES, out + 20);
	recycler_finish(&r, out + 20);
	for (size_t i = 2 * PAGE; i < 12 * PAGE; i++)
		assert_int_equal(out[i], 2);
	arena_release(&a);
}

TEST(input_that_is_read_gives_its_memory_back)
{
	struct arena a = { 0 };
	unsigned char *in = arena_raw(&a, BYTES), *out = arena_raw(&a, BYTES);
	struct recycler r;

	memset(in, 1, BYTES);
	recycler_init(&r, in, out, out + BYTES);
	recycle(&r, in + BYTES, out);
	for (size_t i = PAGE; i < BYTES - PAGE; i++)
		assert_int_equal(in[i], 0);
	recycler_finish(&r, out);
	for (size_t i = PAGE; i < BYTES - PAGE; i++)
		assert_int_equal(out[i], 0);
	arena_release(&a);
}
