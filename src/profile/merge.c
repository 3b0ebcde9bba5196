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

enum { PAGE = 0x1000 };

struct merger {
	struct builder b;
	struct map mappings, functions, locations, samples, comments;
	uint64_t seed;
	bool has_first;
	/* of the profile that is being added: its index -> index here + 1 */
	const struct profile *from;
	uint32_t *mapping_of, *function_of, *location_of, *labels_of;
	vec(uint32_t) stack;
	vec(struct line) lines;
};

struct merger *merger_new(struct strings *strings)
{
	struct merger *m = xmalloc(sizeof(*m));

	*m = (struct merger){ .seed = map_seed() };
	builder_init(&m->b, strings);
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
	vec_release(&m->stack);
	vec_release(&m->lines);
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

/* ---- functions */

static bool same_function(const void *ctx, uint32_t index)
{
	const struct merger *m = ((const void *const *)ctx)[0];
	const struct function *a = ((const void *const *)ctx)[1], *b = &m->b.functions.at[index];

	return a->name == b->name && a->system_name == b->system_name &&
	       a->filename == b->filename && a->start_line == b->start_line;
}

static uint32_t add_function(struct merger *m, uint32_t index)
{
	const struct function *src = &m->from->functions[index];
	const void *key[2] = { m, src };
	uint64_t hash;
	uint32_t to;

	if (m->function_of[index])
		return m->function_of[index] - 1;
	hash = hash_mix(m->seed ^ (uint64_t)src->start_line,
			(uint64_t)src->name << 32 | src->system_name);
	hash = hash_mix(hash, src->filename);
	to = map_put(&m->functions, hash, m->b.functions.n, same_function, key);
	if (to == m->b.functions.n) {
		vec_push(&m->b.functions, *src);
		m->b.functions.at[to].id = to + 1;
	}
	m->function_of[index] = to + 1;
	return to;
}

/* ---- locations */

static uint64_t relative_address(const struct merger *m, const struct location *l)
{
	return l->mapping == NONE ? l->address : l->address - m->b.mappings.at[l->mapping].start;
}

/* The column counts only in the last line: as in the reference, where the others' are overwritten.
 */
static bool same_lines(const struct line *a, const struct line *b, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		if (a[i].function != b[i].function || a[i].line != b[i].line)
			return false;
	return n == 0 || a[n - 1].column == b[n - 1].column;
}

static bool same_location(const void *ctx, uint32_t index)
{
	const struct merger *m = ((const void *const *)ctx)[0];
	const struct location *a = ((const void *const *)ctx)[1], *b = &m->b.locations.at[index];

	return a->mapping == b->mapping && a->nlines == b->nlines && a->is_folded == b->is_folded &&
	       relative_address(m, a) == relative_address(m, b) &&
	       same_lines(m->lines.at, m->b.lines.at + b->first_line, a->nlines);
}

static uint64_t hash_location(const struct merger *m, const struct location *l)
{
	const struct line *lines = m->lines.at;
	uint64_t h =
		hash_mix(m->seed ^ relative_address(m, l), (uint64_t)l->mapping << 32 | l->nlines);

	for (uint32_t i = 0; i < l->nlines; i++)
		h = hash_mix(h ^ (uint64_t)lines[i].line, lines[i].function);
	return h;
}

static uint32_t add_location(struct merger *m, uint32_t index)
{
	const struct location *src = &m->from->locations[index];
	struct location l = *src;
	const void *key[2] = { m, &l };
	uint32_t to;

	if (src->mapping != NONE) {
		l.mapping = add_mapping(m, src->mapping);
		l.address +=
			m->b.mappings.at[l.mapping].start - m->from->mappings[src->mapping].start;
	}
	m->lines.n = 0;
	vec_reserve(&m->lines, l.nlines);
	for (uint32_t i = 0; i < l.nlines; i++) {
		struct line line = m->from->lines[src->first_line + i];

		if (line.function != NONE)
			line.function = add_function(m, line.function);
		m->lines.at[m->lines.n++] = line;
	}
	to = map_put(&m->locations, hash_location(m, &l), m->b.locations.n, same_location, key);
	if (to == m->b.locations.n) {
		l.id = to + 1;
		l.first_line = (uint32_t)m->b.lines.n;
		vec_push(&m->b.locations, l);
		vec_reserve(&m->b.lines, l.nlines);
		if (l.nlines)
			memcpy(m->b.lines.at + m->b.lines.n, m->lines.at,
			       l.nlines * sizeof(struct line));
		m->b.lines.n += l.nlines;
	}
	m->location_of[index] = to + 1;
	return to;
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

struct sample_key {
	const struct merger *m;
	uint32_t labels;
};

static bool same_sample(const void *ctx, uint32_t index)
{
	const struct sample_key *k = ctx;
	const struct sample *s = &k->m->b.samples.at[index];

	return s->labels == k->labels && s->nstack == k->m->stack.n &&
	       memcmp(k->m->b.stacks.at + s->stack, k->m->stack.at, s->nstack * sizeof(uint32_t)) ==
		       0;
}

static void add_sample(struct merger *m, const struct sample *src)
{
	const int64_t *values = sample_values(m->from, src);
	const uint32_t *stack = m->from->stacks + src->stack;
	size_t ntypes = m->b.types.n;
	struct sample_key key = { m, 0 };
	uint64_t hash;
	uint32_t to;

	if (is_zero(values, ntypes))
		return;
	m->stack.n = 0;
	vec_reserve(&m->stack, src->nstack + 1);
	for (uint32_t i = 0; i < src->nstack; i++) {
		uint32_t known = m->location_of[stack[i]];

		m->stack.at[m->stack.n++] = known ? known - 1 : add_location(m, stack[i]);
	}
	key.labels = add_labels(m, src->labels);
	hash = hash_bytes(m->seed ^ key.labels, m->stack.at, m->stack.n * sizeof(uint32_t));
	to = map_put(&m->samples, hash, m->b.samples.n, same_sample, &key);
	if (to == m->b.samples.n) {
		builder_sample(&m->b, m->stack.at, m->stack.n, key.labels, values);
	} else {
		int64_t *sum = m->b.values.at + (size_t)to * ntypes;

		for (size_t i = 0; i < ntypes; i++)
			sum[i] = int_add(sum[i], values[i]);
	}
}

bool merger_add(struct merger *m, const struct profile *p, struct err *e)
{
	struct arena scratch = { 0 };

	if (!m->has_first)
		start_header(m, p);
	else if (!check_types(m, p, e))
		return false;
	add_header(m, p);
	m->from = p;
	m->mapping_of = arena_many(&scratch, p->nmappings, uint32_t);
	m->function_of = arena_many(&scratch, p->nfunctions, uint32_t);
	m->location_of = arena_many(&scratch, p->nlocations, uint32_t);
	m->labels_of = arena_many(&scratch, p->nlabel_sets, uint32_t);
	/* The main binary stays first, even when no sample is in it. */
	if (m->b.mappings.n == 0 && p->nmappings)
		add_mapping(m, 0);
	for (uint32_t i = 0; i < p->nsamples; i++)
		add_sample(m, &p->samples[i]);
	arena_release(&scratch);
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
