#include "test.h"

#include "profile/varints.h"

typedef uint32_t read_run(struct wire *w, const uint8_t *readable, uint32_t *to);

static uint64_t random_number(void)
{
	static uint64_t state = 1;

	state = state * 6364136223846793005u + 1442695040888963407u;
	return state >> 33 >> (state >> 40) % 31;
}

/* All numbers of *w as the decoder gets them: in runs, and one by one where those stop. */
static size_t read_all(read_run *run, struct wire w, const uint8_t *readable, uint32_t *to)
{
	size_t n = 0;

	while (w.p < w.end) {
		uint64_t v;

		n += run(&w, readable, to + n);
		if (w.p == w.end)
			break;
		if (!wire_varint(&w, &v))
			return n;
		to[n++] = (uint32_t)v;
	}
	return n;
}

static void check(read_run *run)
{
	for (int round = 0; round < 2000; round++) {
		struct buf b = { 0 };
		uint32_t want[40], got[300];
		size_t n = (size_t)round % 40, bytes;

		for (size_t i = 0; i < n; i++) {
			want[i] = (uint32_t)random_number() & (round % 3 ? UINT32_MAX : 0x3fff);
			put_varint(&b, want[i]);
		}
		bytes = b.n;
		buf_fill(&b, (char)random_number(), (size_t)round % 11);
		{
			const uint8_t *p = (const uint8_t *)b.p;
			struct wire w = { p, p + bytes };

			memset(got, 0xee, sizeof(got));
			assert_int_equal(read_all(run, w, p + b.n, got), n);
			assert_memory_equal(got, want, n * sizeof(*got));
			/* What is promised of the room, and no more. */
			assert_int_equal(got[bytes + 3], 0xeeeeeeee);
		}
		buf_release(&b);
	}
}

TEST(runs_are_what_single_numbers_are)
{
	check(read_varints);
}

TEST(and_without_bit_extraction)
{
	check(read_varints_plain);
}

static void check_stops(read_run *run)
{
	const uint8_t bytes[] = {
		1,    0x80, 0x80, 0x80, 0x80, 1, 2, 3, /* five bytes */
		0x80, 0x80, 1,	  1,	1,    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1
	};
	struct wire w = { bytes, bytes + 8 }, cut = { bytes + 8, bytes + 10 };
	uint32_t to[40];

	/* Words are looked at as a whole, so it may stop before the 1, but never after it. */
	assert_true(run(&w, bytes + sizeof(bytes), to) <= 1);
	assert_true(w.p <= bytes + 1);
	/* The number goes on in bytes that are not its own. */
	assert_int_equal(run(&cut, bytes + sizeof(bytes), to), 0);
	assert_ptr_equal(cut.p, bytes + 8);
}

TEST(a_run_stops_at_what_is_long_or_cut_off)
{
	check_stops(read_varints);
	check_stops(read_varints_plain);
}
