/* merge.c - sums profiles by stack and labels.
 *
 * Everything that comes in is looked up by content and gets the index that equal content had
 * before; ids are 1..n in order of first use. So the result depends on the order of the profiles
 * only, and memory on what is distinct in them.
 */
#include "profile/profile.h"

#include <stdlib.h>
#include <string.h>

#include "base/int.h"
#include "base/map.h"
#include "base/vec.h"
#include "profile/build.h"

enum {
	PAGE = 0x1000,
	BLOCK = 32,		  /* lookups whose cache misses overlap */
	SCRATCH_BYTES = 32 << 20, /* enough for profiles of usual size */
};

struct merger {
	struct builder b;
	struct map mappings, functions, locations, samples, comments;
	uint64_t seed;
	bool has_first;
	/* of the profile that is being added: its index -> index here + 1 */
	const struct profile *from;
	uint32_t *mapping_of, *function_of, *location_of, *labels_of;
	struct arena scratch;
};

struct merger *merger_new(struct strings *strings)
{
	struct merger *m = xmalloc(sizeof(*m));

	*m = (struct merger){ .seed = map_seed() };
	builder_init(&m->b, strings);
	arena_reserve(&m->scratch, SCRATCH_BYTES);
	return m;
}

void merger_free(struct merger *m)
{
	if (!m)
		return;
	builder_release(&m->b);
	map_release(&m->mappings);
	map_release(&m->functions);
	map_release(&m->locations);
	map_release(&m->samples);
	map_release(&m->comments);
	arena_release(&m->scratch);
	free(m);
}

/* ---- header */

static void type_text(struct buf *out, const struct profile *p, struct value_type t)
{
	buf_printf(out, "&{%.*s %.*s 0 0}", STR_ARG(profile_str(p, t.type)),
		   STR_ARG(profile_str(p, t.unit)));
}

static bool same_type(struct value_type a, struct value_type b)
{
	return a.type == b.type && a.unit == b.unit;
}

static bool fail_types(const struct merger *m, const struct profile *p, const char *what,
		       struct err *e)
{
	struct buf text = { 0 };

	if (*what == 'p') {
		type_text(&text, &m->b.head, m->b.head.period_type);
		buf_puts(&text, " and ");
		type_text(&text, p, p->period_type);
	} else {
		for (size_t i = 0; i < m->b.types.n; i++)
			type_text(&text, &m->b.head, m->b.types.at[i]);
		buf_puts(&text, " and ");
		for (uint32_t i = 0; i < p->ntypes; i++)
			type_text(&text, p, p->types[i]);
	}
	err_set(e, ERR_FORMAT, "incompatible %s types %.*s", what, STR_ARG(buf_view(&text)));
	buf_release(&text);
	return false;
}

static bool check_types(const struct merger *m, const struct profile *p, struct err *e)
{
	if (!same_type(m->b.head.period_type, p->period_type))
		return fail_types(m, p, "period", e);
	if (p->ntypes != m->b.types.n)
		return fail_types(m, p, "sample", e);
	for (uint32_t i = 0; i < p->ntypes; i++)
		if (!same_type(p->types[i], m->b.types.at[i]))
			return fail_types(m, p, "sample", e);
	return true;
}

static bool same_comment(const void *ctx, uint32_t index)
{
	const struct merger *m = ((const void *const *)ctx)[0];
	const uint32_t *comment = ((const void *const *)ctx)[1];

	return m->b.comments.at[index] == *comment;
}

static void add_comments(struct merger *m, const struct profile *p)
{
	for (uint32_t i = 0; i < p->ncomments; i++) {
		const void *key[2] = { m, &p->comments[i] };
		uint64_t hash = hash_mix(m->seed, p->comments[i]);

		if (map_put(&m->comments, hash, m->b.comments.n, same_comment, key) ==
		    m->b.comments.n)
			vec_push(&m->b.comments, p->comments[i]);
	}
}

static void start_header(struct merger *m, const struct profile *p)
{
	struct profile *h = &m->b.head;

	m->has_first = true;
	h->period_type = p->period_type;
	h->drop_frames = p->drop_frames;
	h->keep_frames = p->keep_frames;
	for (uint32_t i = 0; i < p->ntypes; i++)
		vec_push(&m->b.types, p->types[i]);
}

static void add_header(struct merger *m, const struct profile *p)
{
	struct profile *h = &m->b.head;

	if (h->time_nanos == 0 || p->time_nanos < h->time_nanos)
		h->time_nanos = p->time_nanos;
	h->duration_nanos = int_add(h->duration_nanos, p->duration_nanos);
	if (h->period == 0 || h->period < p->period)
		h->period = p->period;
	if (!h->default_type)
		h->default_type = p->default_type;
	if (!h->doc_url)
		h->doc_url = p->doc_url;
	add_comments(m, p);
}

/* ---- mappings */

struct mapping_key {
	uint64_t size, offset;
	uint64_t name; /* build id, or else file: the string */
};

static struct mapping_key mapping_key(const struct mapping *m)
{
	uint64_t size = m->limit - m->start + PAGE - 1;

	return (struct mapping_key){ size - size % PAGE, m->offset,
				     m->build_id ? m->build_id : m->file };
}

static bool same_mapping(const void *ctx, uint32_t index)
{
	const struct merger *m = ((const void *const *)ctx)[0];
	struct mapping_key key = mapping_key(&m->b.mappings.at[index]);

	return memcmp(&key, ((const void *const *)ctx)[1], sizeof(key)) == 0;
}

static uint32_t add_mapping(struct merger *m, uint32_t index)
{
	const struct mapping *src = &m->from->mappings[index];
	struct mapping_key k = mapping_key(src);
	const void *key[2] = { m, &k };
	uint32_t to;

	if (m->mapping_of[index])
		return m->mapping_of[index] - 1;
	to = map_put(&m->mappings, hash_bytes(m->seed, &k, sizeof(k)), m->b.mappings.n,
		     same_mapping, key);
	if (to == m->b.mappings.n) {
		vec_push(&m->b.mappings, *src);
		m->b.mappings.at[to].id = to + 1;
	}
	m->mapping_of[index] = to + 1;
	return to;
}

static void find_mappings(struct merger *m)
{
	for (uint32_t i = 0; i < m->from->nmappings; i++) {
		struct mapping_key k = mapping_key(&m->from->mappings[i]);
		const void *key[2] = { m, &k };

		m->mapping_of[i] = 1 + map_get(&m->mappings, hash_bytes(m->seed, &k, sizeof(k)),
					       same_mapping, key);
	}
}

/* ---- functions */

static bool same_function(const void *ctx, uint32_t index)
{
	const struct merger *m = ((const void *const *)ctx)[0];
	const struct function *a = ((const void *const *)ctx)[1], *b = &m->b.functions.at[index];

	return a->name == b->name && a->system_name == b->system_name &&
	       a->filename == b->filename && a->start_line == b->start_line;
}

static uint64_t hash_function(const struct merger *m, const struct function *f)
{
	uint64_t h = hash_mix(m->seed ^ (uint64_t)f->start_line,
			      (uint64_t)f->name << 32 | f->system_name);

	return hash_mix(h, f->filename);
}

static uint32_t add_function(struct merger *m, uint32_t index)
{
	const struct function *src = &m->from->functions[index];
	const void *key[2] = { m, src };
	uint32_t to;

	if (m->function_of[index])
		return m->function_of[index] - 1;
	to = map_put(&m->functions, hash_function(m, src), m->b.functions.n, same_function, key);
	if (to == m->b.functions.n) {
		vec_push(&m->b.functions, *src);
		m->b.functions.at[to].id = to + 1;
	}
	m->function_of[index] = to + 1;
	return to;
}

/* Finds the functions that are here already; new ones are added when a sample uses them, since that
 * decides on their ids. */
static void find_functions(struct merger *m)
{
	const struct function *f = m->from->functions;
	uint32_t n = m->from->nfunctions;
	uint64_t hashes[BLOCK];

	for (uint32_t i = 0; i < n; i += BLOCK) {
		uint32_t count = n - i < BLOCK ? n - i : BLOCK;

		for (uint32_t k = 0; k < count; k++) {
			hashes[k] = hash_function(m, &f[i + k]);
			map_prefetch(&m->functions, hashes[k]);
		}
		for (uint32_t k = 0; k < count; k++) {
			uint32_t guess = map_guess(&m->functions, hashes[k]);

			if (guess != MAP_NONE)
				__builtin_prefetch(&m->b.functions.at[guess]);
		}
		for (uint32_t k = 0; k < count; k++) {
			const void *key[2] = { m, &f[i + k] };

			m->function_of[i + k] =
				1 + map_get(&m->functions, hashes[k], same_function, key);
		}
	}
}

/* ---- locations */

/* A location of the profile that is added, with its mapping and functions as they are here. */
struct location_key {
	const struct merger *m;
	const struct location *src;
	uint64_t relative; /* address in the mapping */
	uint32_t mapping;
};

static uint64_t relative_address(const struct merger *m, const struct location *l)
{
	return l->mapping == NONE ? l->address : l->address - m->b.mappings.at[l->mapping].start;
}

/* Where something is here; what is not here yet equals nothing, NONE included. */
static uint32_t index_here(uint32_t plus_1)
{
	return plus_1 ? plus_1 - 1 : NONE - 1;
}

static uint32_t line_function(const struct merger *m, const struct line *l)
{
	return l->function == NONE ? NONE : index_here(m->function_of[l->function]);
}

/* The column counts only in the last line: as in the reference, where the others' are overwritten.
 */
static bool same_location(const void *ctx, uint32_t index)
{
	const struct location_key *k = ctx;
	const struct merger *m = k->m;
	const struct location *b = &m->b.locations.at[index];
	const struct line *x = m->from->lines + k->src->first_line;
	const struct line *y = m->b.lines.at + b->first_line;
	uint32_t n = k->src->nlines;

	if (k->mapping != b->mapping || n != b->nlines || k->src->is_folded != b->is_folded ||
	    k->relative != relative_address(m, b))
		return false;
	for (uint32_t i = 0; i < n; i++)
		if (line_function(m, &x[i]) != y[i].function || x[i].line != y[i].line)
			return false;
	return n == 0 || x[n - 1].column == y[n - 1].column;
}

static uint64_t hash_location(const struct location_key *k)
{
	const struct line *lines = k->m->from->lines + k->src->first_line;
	uint64_t h =
		hash_mix(k->m->seed ^ k->relative, (uint64_t)k->mapping << 32 | k->src->nlines);

	for (uint32_t i = 0; i < k->src->nlines; i++)
		h = hash_mix(h ^ (uint64_t)lines[i].line, line_function(k->m, &lines[i]));
	return h;
}

static struct location_key location_key(const struct merger *m, const struct location *src)
{
	struct location_key k = { m, src, src->address, NONE };

	if (src->mapping != NONE) {
		k.relative -= m->from->mappings[src->mapping].start;
		k.mapping = index_here(m->mapping_of[src->mapping]);
	}
	return k;
}

static uint32_t add_location(struct merger *m, uint32_t index)
{
	const struct location *src = &m->from->locations[index];
	const struct line *lines = m->from->lines + src->first_line;
	struct location_key key;
	uint32_t to;

	if (src->mapping != NONE)
		add_mapping(m, src->mapping);
	for (uint32_t i = 0; i < src->nlines; i++)
		if (lines[i].function != NONE)
			add_function(m, lines[i].function);
	key = location_key(m, src);
	to = map_put(&m->locations, hash_location(&key), m->b.locations.n, same_location, &key);
	if (to == m->b.locations.n) {
		struct location l = *src;

		l.id = to + 1;
		l.mapping = key.mapping;
		l.address = key.relative;
		if (l.mapping != NONE)
			l.address += m->b.mappings.at[l.mapping].start;
		l.first_line = (uint32_t)m->b.lines.n;
		vec_push(&m->b.locations, l);
		vec_reserve(&m->b.lines, l.nlines);
		for (uint32_t i = 0; i < l.nlines; i++) {
			struct line line = lines[i];

			line.function = line_function(m, &line);
			m->b.lines.at[m->b.lines.n++] = line;
		}
	}
	m->location_of[index] = to + 1;
	return to;
}

/* As find_functions. */
static void find_locations(struct merger *m)
{
	uint32_t n = m->from->nlocations;
	struct location_key keys[BLOCK];
	uint64_t hashes[BLOCK];

	for (uint32_t i = 0; i < n; i += BLOCK) {
		uint32_t count = n - i < BLOCK ? n - i : BLOCK;

		for (uint32_t k = 0; k < count; k++) {
			keys[k] = location_key(m, &m->from->locations[i + k]);
			hashes[k] = hash_location(&keys[k]);
			map_prefetch(&m->locations, hashes[k]);
		}
		for (uint32_t k = 0; k < count; k++) {
			uint32_t guess = map_guess(&m->locations, hashes[k]);

			if (guess != MAP_NONE)
				__builtin_prefetch(&m->b.locations.at[guess]);
		}
		for (uint32_t k = 0; k < count; k++)
			m->location_of[i + k] =
				1 + map_get(&m->locations, hashes[k], same_location, &keys[k]);
	}
}

/* ---- samples */

static uint32_t add_labels(struct merger *m, uint32_t set)
{
	const struct label_set *s = &m->from->label_sets[set];

	if (!m->labels_of[set])
		m->labels_of[set] = 1 + label_table_add_set(&m->b.labels, set_labels(m->from, set),
							    s->nstrings, s->nnumbers);
	return m->labels_of[set] - 1;
}

static bool is_zero(const int64_t *values, size_t n)
{
	while (n && values[n - 1] == 0)
		n--;
	return n == 0;
}

/* A sample of the profile that is added, as locations and labels are numbered here. */
struct sample_key {
	const struct merger *m;
	const struct sample *src;
	uint32_t *stack, nstack, labels;
	uint64_t hash;
};

static bool same_sample(const void *ctx, uint32_t index)
{
	const struct sample_key *k = ctx;
	const struct sample *s = &k->m->b.samples.at[index];

	return s->labels == k->labels && s->nstack == k->nstack &&
	       memcmp(k->m->b.stacks.at + s->stack, k->stack, s->nstack * sizeof(uint32_t)) == 0;
}

static struct sample_key sample_key(struct merger *m, const struct sample *src, uint32_t *room)
{
	const uint32_t *stack = m->from->stacks + src->stack;
	struct sample_key k = { m, src, room, src->nstack, 0, 0 };

	for (uint32_t i = 0; i < src->nstack; i++) {
		uint32_t known = m->location_of[stack[i]];

		room[i] = known ? known - 1 : add_location(m, stack[i]);
	}
	k.labels = add_labels(m, src->labels);
	k.hash = hash_bytes(m->seed ^ k.labels, room, k.nstack * sizeof(uint32_t));
	map_prefetch(&m->samples, k.hash);
	return k;
}

static void add_sample(struct merger *m, const struct sample_key *k)
{
	const int64_t *values = sample_values(m->from, k->src);
	size_t ntypes = m->b.types.n;
	uint32_t to = map_put(&m->samples, k->hash, m->b.samples.n, same_sample, k);
	int64_t *sum;

	if (to == m->b.samples.n) {
		builder_sample(&m->b, k->stack, k->nstack, k->labels, values);
		return;
	}
	sum = m->b.values.at + (size_t)to * ntypes;
	for (size_t i = 0; i < ntypes; i++)
		sum[i] = int_add(sum[i], values[i]);
}

static void add_block(struct merger *m, const struct sample_key *keys, uint32_t n)
{
	uint32_t guesses[BLOCK];

	for (uint32_t i = 0; i < n; i++) {
		guesses[i] = map_guess(&m->samples, keys[i].hash);
		if (guesses[i] != MAP_NONE)
			__builtin_prefetch(&m->b.samples.at[guesses[i]]);
	}
	for (uint32_t i = 0; i < n; i++) {
		if (guesses[i] == MAP_NONE)
			continue;
		__builtin_prefetch(m->b.stacks.at + m->b.samples.at[guesses[i]].stack);
		__builtin_prefetch(m->b.values.at + (size_t)guesses[i] * m->b.types.n);
	}
	for (uint32_t i = 0; i < n; i++)
		add_sample(m, &keys[i]);
}

static void add_samples(struct merger *m)
{
	const struct profile *p = m->from;
	struct sample_key keys[BLOCK];
	uint32_t nkeys = 0;
	size_t nframes = 0;
	vec(uint32_t) frames = { 0 };

	for (uint32_t i = 0; i < p->nsamples; i++) {
		const struct sample *s = &p->samples[i];

		if (is_zero(sample_values(p, s), p->ntypes))
			continue;
		/* Stacks of a block lie side by side; growing would move those that are there. */
		if (nkeys == BLOCK || (nkeys && frames.cap - nframes <= s->nstack)) {
			add_block(m, keys, nkeys);
			nkeys = 0;
			nframes = 0;
		}
		vec_reserve(&frames, nframes + s->nstack + 1);
		keys[nkeys++] = sample_key(m, s, frames.at + nframes);
		nframes += s->nstack;
	}
	add_block(m, keys, nkeys);
	vec_release(&frames);
}

bool merger_add(struct merger *m, const struct profile *p, struct err *e)
{
	if (!m->has_first)
		start_header(m, p);
	else if (!check_types(m, p, e))
		return false;
	add_header(m, p);
	m->from = p;
	m->mapping_of = arena_many(&m->scratch, p->nmappings, uint32_t);
	m->function_of = arena_many(&m->scratch, p->nfunctions, uint32_t);
	m->location_of = arena_many(&m->scratch, p->nlocations, uint32_t);
	m->labels_of = arena_many(&m->scratch, p->nlabel_sets, uint32_t);
	/* The main binary stays first, even when no sample is in it. */
	if (m->b.mappings.n == 0 && p->nmappings)
		add_mapping(m, 0);
	find_mappings(m);
	find_functions(m);
	find_locations(m);
	add_samples(m);
	arena_rewind(&m->scratch);
	return true;
}

void merger_finish(struct merger *m, struct arena *a, struct profile *out)
{
	struct err none;
	bool has_zero = false;

	builder_finish(&m->b, a, out);
	merger_free(m);
	for (uint32_t i = 0; i < out->nsamples && !has_zero; i++)
		has_zero = is_zero(sample_values(out, &out->samples[i]), out->ntypes);
	if (has_zero) { /* merging it alone drops what cancelled out, and what only that used */
		m = merger_new(out->strings);
		merger_add(m, out, &none);
		merger_finish(m, a, out);
	}
}
