/* book.c - what a book costs: time to pack, unpack and sum, and bytes for a sample.
 *
 * Usage: book PROFILES SAMPLES FILE...: the files, profiles of one service with the same sample
 * types, are taken apart; profiles of that many samples, drawn at random, make up the service.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/vec.h"
#include "profile/build.h"
#include "profile/profile.h"
#include "store/book.h"

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static _Noreturn void fail(const char *what, const char *why)
{
	fprintf(stderr, "book: %s: %s\n", what, why);
	exit(1);
}

static struct profile read_profile(const char *path, struct arena *a, struct strings *strings)
{
	FILE *f = fopen(path, "rb");
	struct buf bytes = { 0 };
	struct profile p;
	struct err e;
	size_t n;

	if (!f)
		fail(path, "cannot be opened");
	while ((n = fread(buf_room(&bytes, 1 << 16), 1, 1 << 16, f)) > 0)
		bytes.n += n;
	fclose(f);
	if (!profile_read(&p, a, strings, buf_view(&bytes), (size_t)1 << 30, &e))
		fail(path, e.text);
	buf_release(&bytes);
	return p;
}

/* All files as one. */
static struct profile read_pool(char **paths, int n, struct arena *a, struct strings *strings)
{
	struct merger *m = merger_new(strings);
	struct profile pool;
	struct err e;

	for (int i = 0; i < n; i++) {
		struct profile p = read_profile(paths[i], a, strings);

		if (!merger_add(m, &p, &e))
			fail(paths[i], e.text);
	}
	merger_finish(m, a, &pool);
	return pool;
}

static uint64_t random_number(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	return *state ^= *state << 17;
}

/* A few of the pool's samples, as often as they weigh there. Merging brings the tables in order. */
static struct buf draw(const struct profile *pool, uint32_t nsamples, uint64_t *state)
{
	struct arena a = { 0 };
	struct profile p = *pool;
	struct merger *m = merger_new(pool->strings);
	struct buf out = { 0 };
	struct err e;

	p.samples = arena_many(&a, nsamples, struct sample);
	p.values = arena_many(&a, (size_t)nsamples * p.ntypes, int64_t);
	p.nsamples = nsamples;
	for (uint32_t i = 0; i < nsamples; i++) {
		uint32_t from = (uint32_t)(random_number(state) % pool->nsamples);
		const int64_t *values = sample_values(pool, &pool->samples[from]);

		p.samples[i] = pool->samples[from];
		p.samples[i].row = i;
		memcpy(p.values + (size_t)i * p.ntypes, values, p.ntypes * sizeof(*values));
	}
	p.time_nanos = 1700000000000000000 + (int64_t)(random_number(state) % 1000000000000);
	p.duration_nanos = 10000000000 + (int64_t)(random_number(state) % 1000000000);
	merger_add(m, &p, &e);
	merger_finish(m, &a, &p);
	profile_encode(&out, &p);
	arena_release(&a);
	return out;
}

struct bench {
	struct book *b;
	vec(struct buf) packed;
	size_t nsamples, packed_bytes, plain_bytes;
	double pack_s, parse_s; /* of the fastest: the machine may have other work */
};

static void keep_least(double *to, double value)
{
	if (*to == 0 || value < *to)
		*to = value;
}

static void add_profile(struct bench *x, struct str plain)
{
	struct arena a = { 0 };
	struct strings strings;
	struct profile p;
	struct buf packed = { 0 };
	struct parse_params params = { .threads = 1 };
	struct err e;
	double t = now();

	strings_init(&strings);
	if (!profile_parse(&p, &a, &strings, plain, &params, &e))
		fail("profile", e.text);
	keep_least(&x->parse_s, now() - t);
	t = now();
	book_pack(x->b, &p, &packed);
	keep_least(&x->pack_s, now() - t);
	x->nsamples += p.nsamples;
	x->packed_bytes += packed.n;
	x->plain_bytes += plain.n;
	vec_push(&x->packed, packed);
	strings_release(&strings);
	arena_release(&a);
}

static void add_all(struct bench *x, const struct profile *pool, size_t n, uint32_t nsamples)
{
	uint64_t state = 88172645463325252;
	struct buf plain[64];
	size_t ndrawn = n < 64 ? n : 64;

	for (size_t i = 0; i < ndrawn; i++)
		plain[i] = draw(pool, nsamples, &state);
	for (size_t i = 0; i < ndrawn; i++)
		add_profile(x, buf_view(&plain[i]));
	x->nsamples = x->packed_bytes = x->plain_bytes = 0;
	x->parse_s = x->pack_s = 0;
	for (size_t i = 0; i < n; i++) {
		if (i >= 64 && i < 1000) {
			buf_release(&plain[i % 64]);
			plain[i % 64] = draw(pool, nsamples, &state);
		}
		add_profile(x, buf_view(&plain[i % 64]));
	}
}

static void unpack_all(struct bench *x)
{
	struct err e;
	double t = now();

	for (size_t i = 0; i < x->packed.n; i++) {
		struct arena a = { 0 };
		struct strings strings;
		struct profile p;

		strings_init(&strings);
		if (!book_unpack(x->b, buf_view(&x->packed.at[i]), &a, &strings, &p, &e))
			fail("unpack", e.text);
		strings_release(&strings);
		arena_release(&a);
	}
	printf("unpack %.1f us\n", (now() - t) / (double)x->packed.n * 1e6);
}

static void sum_all(struct bench *x)
{
	double factors[64], t = now();
	struct book_sum *s = book_sum_new(x->b);
	struct buf out = { 0 };
	struct err e;

	for (int i = 0; i < 64; i++)
		factors[i] = 1;
	for (size_t i = 0; i < x->packed.n; i++)
		if (!book_sum_add(s, buf_view(&x->packed.at[i]), factors, &e))
			fail("sum", e.text);
	printf("sum of %zu: %.4f s, %.1f us each, %zu KB; total %.0f\n", x->packed.n, now() - t,
	       (now() - t) / (double)x->packed.n * 1e6, book_sum_bytes(s) >> 10,
	       book_sum_total(s, 0));
	t = now();
	book_sum_pack(s, &out);
	printf("packed in %.1f us: %zu bytes\n", (now() - t) * 1e6, out.n);
	buf_release(&out);
	book_sum_free(s);
}

int main(int argc, char **argv)
{
	struct arena a = { 0 };
	struct strings strings;
	struct profile pool;
	struct bench x = { .b = book_new() };
	struct book_mark start = book_mark(x.b);
	struct buf chunk = { 0 };
	size_t n;

	if (argc < 4)
		fail("usage", "book PROFILES SAMPLES FILE...");
	strings_init(&strings);
	pool = read_pool(argv + 3, argc - 3, &a, &strings);
	printf("pool: %u samples, %u locations, %u functions\n", pool.nsamples, pool.nlocations,
	       pool.nfunctions);
	n = strtoul(argv[1], NULL, 10);
	add_all(&x, &pool, n, (uint32_t)strtoul(argv[2], NULL, 10));
	printf("%zu samples, %.0f bytes plain; parse %.1f us, pack %.1f us; %.2f bytes a sample\n",
	       x.nsamples / n, (double)x.plain_bytes / (double)n, x.parse_s * 1e6, x.pack_s * 1e6,
	       (double)x.packed_bytes / (double)x.nsamples);
	unpack_all(&x);
	sum_all(&x);
	book_write_chunk(x.b, &start, &chunk);
	printf("book: %zu KB of memory, %zu bytes on disk\n", book_bytes(x.b) >> 10, chunk.n);
	return 0;
}
