/* fuzz_book.c - any bytes: as a profile that must come back from a book unchanged; as a chunk and
 * as a packed profile, with a checksum that is right.
 */
#include <libdeflate.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "profile/profile.h"
#include "store/book.h"

#define UNPACKED_MAX ((size_t)1 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* What all inputs are packed, or read, beside. */
static struct book *start_book(void)
{
	static const char text[] = "main;a;b 5\nmain;a 7\nmain;c;d;e 100\nmain 1\nmain;c;a 2\n";
	struct arena arena = { 0 };
	struct strings strings;
	struct profile profile;
	struct book *b = book_new();
	struct buf packed = { 0 };
	struct err e;

	strings_init(&strings);
	if (!profile_read(&profile, &arena, &strings, str_of(text), UNPACKED_MAX, &e))
		abort();
	book_pack(b, &profile, &packed);
	buf_release(&packed);
	strings_release(&strings);
	arena_release(&arena);
	return b;
}

static void check_same(const struct profile *p, const struct profile *back)
{
	struct buf x = { 0 }, y = { 0 };

	profile_encode(&x, p);
	profile_encode(&y, back);
	if (!str_eq(buf_view(&x), buf_view(&y)))
		abort();
	buf_release(&x);
	buf_release(&y);
}

static void each_function(void *ctx, const struct book_function_sum *f)
{
	*(double *)ctx += f->flat + f->cum + (double)(f->name.n + f->file.n + f->module.n);
}

/* Adds what was packed to itself, and unpacks the sum. */
static void sum_twice(const struct book *b, struct str packed, uint32_t ntypes)
{
	struct book_sum *s = book_sum_new(b);
	struct arena arena = { 0 };
	struct strings strings;
	struct profile p;
	struct buf out = { 0 };
	double *factors = xcalloc((size_t)ntypes + 1, sizeof(*factors)), weight = 0;
	struct err e;

	for (uint32_t i = 0; i < ntypes; i++)
		factors[i] = 1;
	strings_init(&strings);
	if (book_sum_add(s, packed, factors, &e) && book_sum_add(s, packed, factors, &e)) {
		if (ntypes)
			book_sum_scale(s, 0, 0.5);
		book_sum_pack(s, &out);
		if (!book_unpack(b, buf_view(&out), &arena, &strings, &p, &e))
			abort();
		if (ntypes)
			book_sum_functions(s, 0, NULL, each_function, &weight);
	}
	free(factors);
	book_sum_free(s);
	buf_release(&out);
	strings_release(&strings);
	arena_release(&arena);
}

static void try_profile(struct str bytes)
{
	struct arena arena = { 0 };
	struct strings strings, others;
	struct profile profile, back;
	struct book *b = start_book();
	struct buf packed = { 0 };
	struct err e;

	strings_init(&strings);
	strings_init(&others);
	if (profile_read(&profile, &arena, &strings, bytes, UNPACKED_MAX, &e)) {
		book_pack(b, &profile, &packed);
		if (!book_unpack(b, buf_view(&packed), &arena, &others, &back, &e))
			abort();
		check_same(&profile, &back);
		sum_twice(b, buf_view(&packed), profile.ntypes);
	}
	buf_release(&packed);
	book_free(b);
	strings_release(&strings);
	strings_release(&others);
	arena_release(&arena);
}

static void try_packed(const struct book *b, struct str packed)
{
	struct arena arena = { 0 };
	struct strings strings;
	struct profile profile;
	struct book_head head;
	struct buf out = { 0 };
	struct err e;

	strings_init(&strings);
	if (book_unpack(b, packed, &arena, &strings, &profile, &e))
		profile_encode(&out, &profile);
	if (book_read_head(b, packed, &head, &e))
		sum_twice(b, packed, head.ntypes);
	buf_release(&out);
	strings_release(&strings);
	arena_release(&arena);
}

static void try_blocks(struct str bytes)
{
	uint32_t sum = libdeflate_crc32(0, bytes.p, bytes.n);
	char le[4] = { (char)sum, (char)(sum >> 8), (char)(sum >> 16), (char)(sum >> 24) };
	struct book *b = start_book();
	struct book_mark mark = book_mark(b);
	struct buf block = { 0 };
	struct err e;

	buf_add(&block, le, sizeof(le));
	buf_str(&block, bytes);
	try_packed(b, buf_view(&block));
	if (!book_read_chunk(b, buf_view(&block), &e) && !book_is_at(b, &mark))
		abort();
	try_packed(b, buf_view(&block));
	buf_release(&block);
	book_free(b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct str bytes = { (const char *)data, n };

	try_profile(bytes);
	try_blocks(bytes);
	return 0;
}
