#include "profile/gzip_size.h"

#include <libdeflate.h>
#include <zlib.h>

#include "test.h"

enum { PLAIN_BYTES = 300000, MEGABYTE = 1 << 20 };

/* The kinds of bytes that there are blocks for: some repeat, some do not. */
static void fill(char *plain, size_t n, unsigned kind)
{
	uint32_t x = 1;

	for (size_t i = 0; i < n; i++) {
		x = x * 1664525 + 1013904223;
		plain[i] = kind == 0   ? 0
			   : kind == 1 ? (char)(x >> 24)
			   : kind == 2 ? (char)("profile"[i % 7] + (int)(x >> 31))
				       : (char)((x >> 24) * (x >> 24) * (x >> 24) >> 18);
	}
}

static size_t pack(char *to, size_t room, const char *plain, size_t n, int level, int strategy)
{
	z_stream z = { .next_in = (Bytef *)(uintptr_t)plain,
		       .avail_in = (uInt)n,
		       .next_out = (Bytef *)to,
		       .avail_out = (uInt)room };

	assert_int_equal(deflateInit2(&z, level, Z_DEFLATED, 15 + 16, 8, strategy), Z_OK);
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	deflateEnd(&z);
	return z.total_out;
}

TEST(sizes_are_those_that_it_unpacks_to)
{
	static char plain[PLAIN_BYTES], packed[2 * PLAIN_BYTES];
	static const int strategies[] = { Z_DEFAULT_STRATEGY, Z_FIXED, Z_HUFFMAN_ONLY, Z_RLE };

	for (unsigned kind = 0; kind < 4; kind++) {
		fill(plain, sizeof(plain), kind);
		for (int level = 0; level <= 9; level += 3) {
			for (size_t s = 0; s < sizeof(strategies) / sizeof(*strategies); s++) {
				size_t n = pack(packed, sizeof(packed), plain, sizeof(plain) - kind,
						level, strategies[s]);

				assert_int_equal(
					gzip_least_size((struct str){ packed, n }, UINT64_MAX),
					sizeof(plain) - kind);
			}
		}
	}
}

TEST(libdeflate_packs_the_same)
{
	static char plain[PLAIN_BYTES], packed[2 * PLAIN_BYTES];

	for (int level = 0; level <= 12; level += 4) {
		struct libdeflate_compressor *c = libdeflate_alloc_compressor(level);

		fill(plain, sizeof(plain), 2);
		assert_int_equal(
			gzip_least_size((struct str){ packed, libdeflate_gzip_compress(
								      c, plain, sizeof(plain),
								      packed, sizeof(packed)) },
					UINT64_MAX),
			sizeof(plain));
		libdeflate_free_compressor(c);
	}
}

TEST(all_members_count)
{
	static char plain[PLAIN_BYTES], packed[PLAIN_BYTES];
	size_t n;

	fill(plain, sizeof(plain), 2);
	n = pack(packed, sizeof(packed), plain, 1000, 9, Z_DEFAULT_STRATEGY);
	n += pack(packed + n, sizeof(packed) - n, plain, 0, 9, Z_DEFAULT_STRATEGY);
	n += pack(packed + n, sizeof(packed) - n, plain, 500, 9, Z_DEFAULT_STRATEGY);
	assert_int_equal(gzip_least_size((struct str){ packed, n }, UINT64_MAX), 1500);
	assert_int_equal(gzip_least_size((struct str){ packed, n }, 1200), 1200);
}

TEST(the_beginning_of_a_bomb_is_enough)
{
	static char plain[64 * MEGABYTE], packed[MEGABYTE];
	size_t n = pack(packed, sizeof(packed), plain, sizeof(plain), 9, Z_DEFAULT_STRATEGY);

	assert_int_equal(gzip_least_size((struct str){ packed, n }, UINT64_MAX), sizeof(plain));
	assert_int_equal(gzip_least_size((struct str){ packed, 16 << 10 }, 12 * MEGABYTE),
			 12 * MEGABYTE);
}

TEST(what_is_cut_off_never_counts_more)
{
	static char plain[2000], packed[4000];
	uint64_t before = 0;
	size_t n;

	for (unsigned kind = 0; kind < 4; kind++) {
		fill(plain, sizeof(plain), kind);
		n = pack(packed, sizeof(packed), plain, sizeof(plain), 6, Z_DEFAULT_STRATEGY);
		before = 0;
		for (size_t i = 0; i <= n; i++) {
			uint64_t size = gzip_least_size((struct str){ packed, i }, UINT64_MAX);

			assert_in_range(size, before, sizeof(plain));
			before = size;
		}
		assert_int_equal(before, sizeof(plain));
	}
}

TEST(other_bytes_count_nothing)
{
	assert_int_equal(gzip_least_size(STR(""), UINT64_MAX), 0);
	assert_int_equal(gzip_least_size(STR("\x1f\x8b"), UINT64_MAX), 0);
	assert_int_equal(gzip_least_size(STR("heap profile: 1: 1"), UINT64_MAX), 0);
	/* a block of a kind that there is not */
	assert_int_equal(gzip_least_size(STR("\x1f\x8b\x08\0\0\0\0\0\0\xff\x07zzzz"), UINT64_MAX),
			 0);
}
