/* gen.c - large profiles for the benchmarks: the same arguments give the same bytes.
 *
 *	gen OUT samples=1000000 labels=2 ...		one profile
 *	gen DIR count=900 samples=2000 pool=30000	many of one service, DIR/00000.pb.gz and on
 *
 * A service is a fixed call graph; a stack is a random walk through it, so stacks share their upper
 * part as real ones do. With a pool, samples are drawn from that many stacks, few of them often.
 */
#include <fcntl.h>
#include <libdeflate.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/strings.h"
#include "base/vec.h"
#include "profile/wire.h"

struct params {
	uint64_t samples, functions, locations, depth, labels, mappings, pool, heap, seed, number,
		count, timeless;
};

static const struct param {
	const char *name;
	size_t offset;
} param_table[] = {
	{ "samples", offsetof(struct params, samples) },
	{ "functions", offsetof(struct params, functions) },
	{ "locations", offsetof(struct params, locations) },
	{ "depth", offsetof(struct params, depth) },
	{ "labels", offsetof(struct params, labels) },
	{ "mappings", offsetof(struct params, mappings) },
	{ "pool", offsetof(struct params, pool) },
	{ "heap", offsetof(struct params, heap) },
	{ "seed", offsetof(struct params, seed) },
	{ "number", offsetof(struct params, number) },
	{ "count", offsetof(struct params, count) },
	{ "timeless", offsetof(struct params, timeless) },
};

struct site {
	uint32_t function, line, callee;
	uint64_t address;
	uint32_t inlined[2], ninlined;
};

struct service {
	struct params params;
	char **names, **files;
	uint32_t *start_lines;
	struct site *sites;
	uint32_t *sites_of, *nsites_of; /* sites of a function: a range of site_order */
	uint32_t *site_order;
	uint32_t roots[12];
	uint32_t *pool; /* params.pool stacks of up to stack_max sites, length first */
	size_t stack_max;
	struct arena arena;
};

static _Noreturn void fail(const char *what, const char *which)
{
	fprintf(stderr, "gen: %s: %s\n", what, which);
	exit(1);
}

/* ---- chance */

static uint64_t draw(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

static uint32_t draw_below(uint64_t *state, uint64_t n)
{
	return (uint32_t)(draw(state) % n);
}

static double draw_fraction(uint64_t *state)
{
	return (double)(draw(state) >> 11) / (double)(1ull << 53);
}

/* Below n, small numbers far more often. */
static uint32_t draw_skewed(uint64_t *state, uint64_t n)
{
	double f = draw_fraction(state);

	return (uint32_t)(f * f * f * (double)n);
}

/* ---- the service */

static const char *const packages[] = { "kiln/wheel",
					"kiln/glaze",
					"kiln/oven",
					"net/socket",
					"text/regexp",
					"text/json",
					"storage/btree",
					"storage/pager",
					"crypto/stream",
					"example.com/pottery/internal/orders",
					"example.com/pottery/internal/stock",
					"example.com/pottery/cmd/shopd" };
static const char *const verbs[] = { "load", "store", "scan",	"encode", "Decode", "Handle",
				     "find", "Merge", "resize", "flush",  "Sort",   "hash" };
static const char *const nouns[] = { "Page",  "Key",   "Clay", "Order",	 "Batch",  "Shelf",
				     "Token", "Index", "Row",  "Stream", "Cursor", "Glaze" };
#define PICK(array, i) (array)[(i) % (sizeof(array) / sizeof((array)[0]))]

static void name_functions(struct service *s, uint64_t *state)
{
	size_t n = s->params.functions;

	s->names = arena_many(&s->arena, n, char *);
	s->files = arena_many(&s->arena, n, char *);
	s->start_lines = arena_many(&s->arena, n, uint32_t);
	for (size_t i = 0; i < n; i++) {
		const char *package = PICK(packages, draw_skewed(state, 1000));
		const char *verb = PICK(verbs, draw(state)), *noun = PICK(nouns, draw(state));
		char text[200];

		snprintf(text, sizeof(text), i % 3 ? "%s.%s%s%zu" : "%s.(*%s).%s%zu", package,
			 i % 3 ? verb : noun, i % 3 ? noun : verb, i);
		s->names[i] = arena_copy(&s->arena, text, strlen(text) + 1);
		snprintf(text, sizeof(text), "%s/%s_%zu.go", package, PICK(nouns, i), i % 40);
		s->files[i] = arena_copy(&s->arena, text, strlen(text) + 1);
		s->start_lines[i] = 10 + draw_below(state, 2000);
	}
}

static void place_sites(struct service *s, uint64_t *state)
{
	size_t n = s->params.locations, nfunctions = s->params.functions;

	s->sites = arena_many(&s->arena, n, struct site);
	for (size_t i = 0; i < n; i++) {
		struct site *x = &s->sites[i];

		x->function = i < nfunctions ? (uint32_t)i : draw_below(state, nfunctions);
		x->address = 0x400000 + x->function * 4096ull + draw_below(state, 4096);
		x->line = s->start_lines[x->function] + 1 + draw_below(state, 120);
		if (draw_below(state, 100) < 20)
			x->ninlined = 1 + draw_below(state, 2);
		for (uint32_t k = 0; k < x->ninlined; k++)
			x->inlined[k] = draw_below(state, nfunctions);
		/* Most calls stay in the neighbourhood, some go to what everybody uses. */
		x->callee = draw_below(state, 8)
				    ? (uint32_t)((x->function + 1 + draw_below(state, 400)) %
						 nfunctions)
				    : draw_skewed(state, nfunctions);
	}
}

/* Sorts the sites by function, by counting. */
static void index_sites(struct service *s)
{
	size_t n = s->params.locations, nfunctions = s->params.functions;
	uint32_t first = 0;

	s->sites_of = arena_many(&s->arena, nfunctions, uint32_t);
	s->nsites_of = arena_many(&s->arena, nfunctions, uint32_t);
	s->site_order = arena_many(&s->arena, n, uint32_t);
	for (size_t i = 0; i < n; i++)
		s->nsites_of[s->sites[i].function]++;
	for (size_t f = 0; f < nfunctions; f++) {
		s->sites_of[f] = first;
		first += s->nsites_of[f];
		s->nsites_of[f] = 0;
	}
	for (uint32_t i = 0; i < n; i++) {
		uint32_t f = s->sites[i].function;

		s->site_order[s->sites_of[f] + s->nsites_of[f]++] = i;
	}
}

/* Fills stack[0] with the length and what follows with sites, leaf first. */
static void walk(const struct service *s, uint64_t *state, uint32_t *stack)
{
	double spread = draw_fraction(state) + draw_fraction(state) + draw_fraction(state) - 1.5;
	double length = (double)s->params.depth * (1 + spread * 0.8);
	uint32_t function = s->roots[draw_skewed(state, 12)];

	stack[0] = length < 1 ? 1 : (uint32_t)length;
	for (uint32_t i = stack[0]; i > 0; i--) {
		stack[i] = s->site_order[s->sites_of[function] +
					 draw_skewed(state, s->nsites_of[function])];
		function = s->sites[stack[i]].callee;
	}
}

static void build_service(struct service *s)
{
	uint64_t state = s->params.seed * 7919;

	name_functions(s, &state);
	place_sites(s, &state);
	index_sites(s);
	for (size_t i = 0; i < 12; i++)
		s->roots[i] = draw_below(&state, s->params.functions);
	s->stack_max = s->params.depth * 3 + 2;
	s->pool = arena_many(&s->arena, s->params.pool * s->stack_max, uint32_t);
	for (size_t i = 0; i < s->params.pool; i++)
		walk(s, &state, s->pool + i * s->stack_max);
}

/* ---- profile.proto */

struct writer {
	const struct service *service;
	struct buf out, message, part;
	struct strings strings;
	uint64_t state;
	bool *used_sites, *used_functions;
	uint32_t *stack;
};

static uint64_t string(struct writer *w, const char *s)
{
	return strings_add(&w->strings, str_of(s));
}

static void put_type(struct writer *w, unsigned field, const char *type, const char *unit)
{
	put_nonzero(&w->message, 1, string(w, type));
	put_nonzero(&w->message, 2, string(w, unit));
	put_message(&w->out, field, &w->message);
}

static void put_header(struct writer *w)
{
	if (w->service->params.heap) {
		put_type(w, 1, "alloc_objects", "count");
		put_type(w, 1, "alloc_space", "bytes");
		put_type(w, 1, "inuse_objects", "count");
		put_type(w, 1, "inuse_space", "bytes");
		put_type(w, 11, "space", "bytes");
		put_nonzero(&w->out, 12, 524288);
	} else {
		put_type(w, 1, "samples", "count");
		put_type(w, 1, "cpu", "nanoseconds");
		put_type(w, 11, "cpu", "nanoseconds");
		put_nonzero(&w->out, 12, 10000000);
	}
	put_nonzero(&w->out, 10, 60000000000);
}

static void put_label(struct writer *w, const char *key, const char *prefix, uint32_t value)
{
	char text[64];

	snprintf(text, sizeof(text), "%s%u", prefix, value);
	put_nonzero(&w->part, 1, string(w, key));
	put_nonzero(&w->part, 2, string(w, text));
	put_message(&w->message, 3, &w->part);
}

static void put_labels(struct writer *w, uint32_t endpoint)
{
	const struct params *p = &w->service->params;

	if (p->labels > 0)
		put_label(w, "endpoint", "/api/v1/shelf", endpoint % 50);
	if (p->labels > 1)
		put_label(w, "tenant", "potter-", draw_skewed(&w->state, p->pool ? 4 : 20));
	if (p->labels > 2)
		put_label(w, "thread", "thread-", draw_below(&w->state, 16));
	if (p->labels > 3 || p->heap) {
		put_nonzero(&w->part, 1, string(w, "bytes"));
		put_nonzero(&w->part, 3, 16ull << draw_below(&w->state, 16));
		put_nonzero(&w->part, 4, string(w, "bytes"));
		put_message(&w->message, 3, &w->part);
	}
}

static void put_values(struct writer *w)
{
	uint64_t n = 1 + (uint64_t)(-log(1 - draw_fraction(&w->state)) * 2);

	put_varint(&w->part, n);
	if (w->service->params.heap) {
		uint64_t bytes = 16ull << draw_below(&w->state, 16);

		put_varint(&w->part, n * bytes);
		put_varint(&w->part, n / 2);
		put_varint(&w->part, n / 2 * bytes);
	} else {
		put_varint(&w->part, n * 10000000);
	}
	put_message(&w->message, 2, &w->part);
}

static void put_sample(struct writer *w)
{
	const struct service *s = w->service;
	const uint32_t *stack = w->stack;
	uint32_t endpoint;

	if (s->params.pool) {
		endpoint = draw_skewed(&w->state, s->params.pool);
		stack = s->pool + endpoint * s->stack_max;
	} else {
		walk(s, &w->state, w->stack);
		endpoint = stack[stack[0]];
	}
	for (uint32_t i = 1; i <= stack[0]; i++) {
		w->used_sites[stack[i]] = true;
		put_varint(&w->part, stack[i] + 1);
	}
	put_message(&w->message, 1, &w->part);
	put_values(w);
	put_labels(w, endpoint);
	put_message(&w->out, 2, &w->message);
}

static void put_mappings(struct writer *w, uint64_t functions_each)
{
	for (uint64_t i = 0; i < w->service->params.mappings; i++) {
		char text[64];

		put_nonzero(&w->message, 1, i + 1);
		put_nonzero(&w->message, 2, 0x400000 + i * functions_each * 4096);
		put_nonzero(&w->message, 3, 0x400000 + (i + 1) * functions_each * 4096);
		snprintf(text, sizeof(text),
			 i ? "/usr/lib/libpottery%u.so.1" : "/srv/pottery/bin/shopd", (unsigned)i);
		put_nonzero(&w->message, 5, string(w, text));
		snprintf(text, sizeof(text), "%040llx", 0xabcdefull * (i + 1));
		put_nonzero(&w->message, 6, string(w, text));
		for (unsigned field = 7; field <= 10; field++)
			put_nonzero(&w->message, field, 1);
		put_message(&w->out, 3, &w->message);
	}
}

static void put_line(struct writer *w, uint32_t function, uint32_t line)
{
	w->used_functions[function] = true;
	put_nonzero(&w->part, 1, function + 1);
	put_nonzero(&w->part, 2, w->service->start_lines[function] + 1 + (line + function) % 100);
	put_message(&w->message, 4, &w->part);
}

static void put_tables(struct writer *w)
{
	const struct service *s = w->service;
	uint64_t functions_each =
		(s->params.functions + s->params.mappings - 1) / s->params.mappings;

	put_mappings(w, functions_each);
	for (size_t i = 0; i < s->params.locations; i++) {
		const struct site *x = &s->sites[i];

		if (!w->used_sites[i])
			continue;
		put_nonzero(&w->message, 1, i + 1);
		put_nonzero(&w->message, 2, x->function / functions_each + 1);
		put_nonzero(&w->message, 3, x->address);
		for (uint32_t k = 0; k < x->ninlined; k++)
			put_line(w, x->inlined[k], x->line);
		put_line(w, x->function, x->line);
		put_message(&w->out, 4, &w->message);
	}
	for (size_t i = 0; i < s->params.functions; i++) {
		if (!w->used_functions[i])
			continue;
		put_nonzero(&w->message, 1, i + 1);
		put_nonzero(&w->message, 2, string(w, s->names[i]));
		put_nonzero(&w->message, 3, string(w, s->names[i]));
		put_nonzero(&w->message, 4, string(w, s->files[i]));
		put_nonzero(&w->message, 5, s->start_lines[i]);
		put_message(&w->out, 5, &w->message);
	}
	for (size_t i = 0; i < w->strings.n; i++)
		put_bytes(&w->out, 6, w->strings.at[i]);
}

static void save(const char *path, const struct buf *raw)
{
	struct libdeflate_compressor *c = libdeflate_alloc_compressor(1);
	size_t cap = libdeflate_gzip_compress_bound(c, raw->n);
	struct buf packed = { 0 };
	struct err e;
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);

	packed.n = libdeflate_gzip_compress(c, raw->p, raw->n, buf_room(&packed, cap), cap);
	libdeflate_free_compressor(c);
	buf_to_fd(&packed, fd);
	if (fd < 0 || !buf_flush(&packed, &e) || close(fd) != 0)
		fail("cannot write", path);
	buf_release(&packed);
}

/* `number` tells the collections of one service apart. */
static void write_profile(const struct service *s, const char *path, uint64_t number)
{
	struct arena arena = { 0 };
	struct writer w = { .service = s, .state = number * 2654435761u + 17 };

	w.used_sites = arena_many(&arena, s->params.locations, bool);
	w.used_functions = arena_many(&arena, s->params.functions, bool);
	w.stack = arena_many(&arena, s->stack_max, uint32_t);
	strings_init(&w.strings);
	put_header(&w);
	if (!s->params.timeless)
		put_nonzero(&w.out, 9, 1700000000000000000 + number * 60000000000);
	for (uint64_t i = 0; i < s->params.samples; i++)
		put_sample(&w);
	put_tables(&w);
	save(path, &w.out);
	buf_release(&w.out);
	buf_release(&w.message);
	buf_release(&w.part);
	strings_release(&w.strings);
	arena_release(&arena);
}

static void set_param(struct params *p, const char *word)
{
	size_t n = strcspn(word, "=");

	for (size_t i = 0; i < sizeof(param_table) / sizeof(param_table[0]); i++) {
		const struct param *row = &param_table[i];

		if (strlen(row->name) == n && memcmp(row->name, word, n) == 0 && word[n]) {
			uint64_t v = strtoull(word + n + 1, NULL, 10);

			memcpy((char *)p + row->offset, &v, sizeof(v));
			return;
		}
	}
	fail("no such parameter", word);
}

int main(int argc, char **argv)
{
	struct service s = { .params = { .samples = 10000,
					 .functions = 20000,
					 .locations = 60000,
					 .depth = 30,
					 .mappings = 8,
					 .seed = 1 } };

	if (argc < 2)
		fail("usage", "gen OUT [parameter=value ...]");
	for (int i = 2; i < argc; i++)
		set_param(&s.params, argv[i]);
	build_service(&s);
	if (!s.params.count) {
		write_profile(&s, argv[1], s.params.number);
	} else {
		mkdir(argv[1], 0777);
		for (uint64_t i = 0; i < s.params.count; i++) {
			char path[4096];

			snprintf(path, sizeof(path), "%s/%05u.pb.gz", argv[1], (unsigned)i);
			write_profile(&s, path, i);
		}
	}
	arena_release(&s.arena);
	return 0;
}
