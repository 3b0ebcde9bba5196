/* encode.c - a record as profile.proto. Mappings say that they have no function names although
 * locations do: who has the program's files then looks for lines and inlined calls, and who has not
 * keeps our names. */
#include "agent/record.h"

#include <libdeflate.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "agent/index.h"
#include "agent/label.h"
#include "agent/stack.h"
#include "agent/symbols.h"
#include "base/version.h"

enum { PAGE = 4096, NAME_SIZE = 4096, LEVEL = 1 };

struct text {
	const char *p;
	uint32_t n, function; /* the function of that name; 0: there is none */
};

struct encoder {
	struct region memory;
	struct out to, part, inner; /* all of it; a message; one within */
	struct out line;	    /* of a location */
	struct out texts;	    /* of struct text, by number */
	struct out frames;	    /* of frame_t, by location */
	struct index text_index, frame_index;
	uint32_t nfunctions, nmappings;
	uint32_t *mappings; /* of modules; 0: not used yet */
	char name[NAME_SIZE];
};

/* ---- strings */

static struct text *text_at(const struct encoder *e, uint32_t number)
{
	return (struct text *)e->texts.p + number;
}

static uint32_t add_text(struct encoder *e, const char *s, size_t n, uint32_t hash)
{
	struct text t = { region_text(&e->memory, s, n), (uint32_t)n, 0 };
	uint32_t number = (uint32_t)(e->texts.n / sizeof(t));

	if (t.p)
		out_add(&e->texts, &t, sizeof(t));
	if (!t.p || e->texts.has_failed || !index_add(&e->text_index, hash, number + 1)) {
		e->to.has_failed = true;
		return 0;
	}
	return number;
}

static uint32_t number_of_bytes(struct encoder *e, const char *s, size_t n)
{
	uint32_t hash = hash_bytes(s, n);

	for (struct slot *x = index_first(&e->text_index, hash); x;
	     x = index_next(&e->text_index, x)) {
		const struct text *t = text_at(e, x->value - 1);

		if (t->n == n && memcmp(t->p, s, n) == 0)
			return x->value - 1;
	}
	return add_text(e, s, n, hash);
}

static uint32_t number_of(struct encoder *e, const char *s)
{
	return s ? number_of_bytes(e, s, strlen(s)) : 0;
}

static void write_texts(struct encoder *e)
{
	for (size_t i = 0; i < e->texts.n / sizeof(struct text); i++)
		out_bytes(&e->to, 6, text_at(e, (uint32_t)i)->p, text_at(e, (uint32_t)i)->n);
}

/* ---- mappings */

static uint32_t build_id_of(struct encoder *e, const struct module *m)
{
	char hex[2 * sizeof(m->build_id) + 1] = "";

	for (unsigned i = 0; i < m->build_id_size && i < sizeof(m->build_id); i++)
		snprintf(hex + 2 * i, 3, "%02x", m->build_id[i]);
	return number_of(e, hex);
}

static uint32_t path_of(struct encoder *e, const struct module *m)
{
	static const char deleted[] = " (deleted)";
	size_t n = strlen(m->path), tail = sizeof(deleted) - 1;

	if (n > tail && strcmp(m->path + n - tail, deleted) == 0)
		n -= tail;
	return number_of_bytes(e, m->path, n);
}

static void add_mapping(struct encoder *e, unsigned module)
{
	const struct module *m = module_get(module);
	uintptr_t below = m->text % PAGE;

	e->mappings[module] = ++e->nmappings;
	out_number(&e->part, 1, e->nmappings);
	out_number(&e->part, 2, m->text - below);
	out_number(&e->part, 3, (m->text_end + PAGE - 1) / PAGE * PAGE);
	out_number(&e->part, 4, m->text_offset - below);
	out_number(&e->part, 5, path_of(e, m));
	out_number(&e->part, 6, build_id_of(e, m));
	out_message(&e->to, 3, &e->part);
}

static uint32_t mapping_of(struct encoder *e, frame_t f)
{
	unsigned module = frame_module(f);

	if (!module || module > MODULES_MAX || !module_get(module))
		return 0;
	if (!e->mappings[module])
		add_mapping(e, module);
	return e->mappings[module];
}

/* Readers take the first mapping for the program. */
static void add_program(struct encoder *e)
{
	uintptr_t inside = getauxval(AT_PHDR);
	unsigned n = modules_count();

	for (unsigned i = 1; inside && i <= n; i++) {
		const struct module *m = module_get(i);

		if (m && m->start <= inside && inside < m->end) {
			add_mapping(e, i);
			return;
		}
	}
}

/* ---- locations */

static const char *const special_names[FRAME_LAST + 1] = {
	[FRAME_TRUNCATED] = "[truncated]",
	[FRAME_LOST] = "lostProfileEvent",
	[FRAME_NO_UNWIND] = "[no unwind info]",
	[FRAME_SILENT] = "[not responding]",
};

const char *frame_special_name(frame_t f)
{
	return f <= FRAME_LAST ? special_names[f] : NULL;
}

static uint32_t function_of(struct encoder *e, const char *name)
{
	uint32_t number = number_of(e, name);
	struct text *t = text_at(e, number);

	if (e->to.has_failed || t->function)
		return t->function;
	t->function = ++e->nfunctions;
	out_number(&e->part, 1, t->function);
	out_number(&e->part, 2, number);
	out_number(&e->part, 3, number); /* the same: readers demangle it */
	out_message(&e->to, 5, &e->part);
	return t->function;
}

static uint32_t add_location(struct encoder *e, frame_t f, uint32_t hash)
{
	const char *special = frame_special_name(f);
	uint32_t id, mapping = special ? 0 : mapping_of(e, f), function = 0;
	uint64_t offset;

	out_add(&e->frames, &f, sizeof(f));
	id = (uint32_t)(e->frames.n / sizeof(f));
	if (e->frames.has_failed || !index_add(&e->frame_index, hash, id)) {
		e->to.has_failed = true;
		return 0;
	}
	if (special)
		function = function_of(e, special);
	else if (symbol_name(f, e->name, sizeof(e->name), &offset))
		function = function_of(e, e->name);
	out_number(&e->part, 1, id);
	out_number(&e->part, 2, mapping);
	out_number(&e->part, 3, special ? 0 : frame_address(f));
	if (function) {
		out_number(&e->line, 1, function);
		out_message(&e->part, 4, &e->line);
	}
	out_message(&e->to, 4, &e->part);
	return id;
}

static uint32_t location_of(struct encoder *e, frame_t f)
{
	const frame_t *frames = (const frame_t *)e->frames.p;
	uint32_t hash = hash_number(f);

	for (struct slot *s = index_first(&e->frame_index, hash); s;
	     s = index_next(&e->frame_index, s))
		if (frames[s->value - 1] == f)
			return s->value;
	return add_location(e, f, hash);
}

/* ---- samples */

static void add_label(struct encoder *e, const char *key, const char *text, int64_t number,
		      const char *unit)
{
	out_number(&e->inner, 1, number_of(e, key));
	out_number(&e->inner, 2, number_of(e, text));
	out_number(&e->inner, 3, (uint64_t)number);
	out_number(&e->inner, 4, number_of(e, unit));
	out_message(&e->part, 3, &e->inner);
}

static void add_labels(struct encoder *e, const struct record_row *row)
{
	uint32_t n = labels_count(row->labels);

	for (uint32_t i = 0; i < n; i++) {
		struct label l = labels_at(row->labels, i);

		add_label(e, l.key, l.value, 0, NULL);
	}
	for (uint32_t i = 0; i < row->ntags; i++) {
		const struct tag *t = &row->tags[i];

		add_label(e, t->key, t->text, t->text ? 0 : t->number, t->unit);
	}
}

/* Locations, functions and mappings that are new get into the file before the sample does. */
static void add_sample(struct encoder *e, const struct record_row *row, const int64_t *values,
		       unsigned nvalues)
{
	for (uint32_t i = 0; i < row->nframes; i++)
		out_varint(&e->inner, location_of(e, frame_again(row->frames[i])));
	out_message(&e->part, 1, &e->inner);
	for (unsigned v = 0; v < nvalues; v++)
		out_varint(&e->inner, (uint64_t)values[v]);
	out_message(&e->part, 2, &e->inner);
	add_labels(e, row);
	out_message(&e->to, 2, &e->part);
}

static bool is_zero(const int64_t *values, unsigned n)
{
	for (unsigned v = 0; v < n; v++)
		if (values[v])
			return false;
	return true;
}

static void add_samples(struct encoder *e, const struct agent_profile *p, const struct record *r)
{
	struct joined j;

	if (!record_join(&e->memory, r, &j)) {
		e->to.has_failed = true;
		return;
	}
	for (size_t i = 0; i < j.n && !e->to.has_failed; i++)
		if (!is_zero(j.values[i], p->ntypes))
			add_sample(e, &r->rows[j.rows[i]], j.values[i], p->ntypes);
}

/* ---- what the profile as a whole says */

static void add_value_type(struct encoder *e, unsigned field, const struct value_name *v)
{
	if (!v->type)
		return;
	out_number(&e->part, 1, number_of(e, v->type));
	out_number(&e->part, 2, number_of(e, v->unit));
	out_message(&e->to, field, &e->part);
}

static void add_comment(struct encoder *e, const char *text, size_t n)
{
	if (n)
		out_number(&e->to, 13, number_of_bytes(e, text, n));
}

static void add_comments(struct encoder *e, const struct record *r)
{
	char line[PATH_MAX + 200], host[65] = "";
	const char *at = r->comments.p, *end = at + r->comments.n, *next;
	ssize_t n;

	for (; at < end; at = next + 1) {
		next = memchr(at, '\n', (size_t)(end - at));
		add_comment(e, at, (size_t)(next - at));
	}
	gethostname(host, sizeof(host) - 1);
	snprintf(line, sizeof(line), "kiln agent %s, pid %d, host %s", KILN_VERSION, (int)getpid(),
		 host);
	add_comment(e, line, strlen(line));
	n = readlink("/proc/self/exe", line, sizeof(line));
	add_comment(e, line, n > 0 ? (size_t)n : 0);
	snprintf(line, sizeof(line), "%llu stacks lost: no room",
		 (unsigned long long)stacks_lost());
	add_comment(e, line, stacks_lost() ? strlen(line) : 0);
}

static void encode(struct encoder *e, const struct agent_profile *p, const struct record *r)
{
	number_of(e, ""); /* the first string is empty */
	for (unsigned i = 0; i < p->ntypes; i++)
		add_value_type(e, 1, &p->types[i]);
	add_program(e);
	add_samples(e, p, r);
	out_number(&e->to, 9, (uint64_t)r->time);
	out_number(&e->to, 10, (uint64_t)r->duration);
	add_value_type(e, 11, &p->period_type);
	out_number(&e->to, 12, (uint64_t)r->period);
	add_comments(e, r);
	out_number(&e->to, 14, number_of(e, p->default_type));
	write_texts(e);
}

/* ---- compression, without the program's allocator */

static void *take_pages(size_t bytes)
{
	size_t *p = pages_map(bytes + PAGE);

	if (!p)
		return NULL;
	*p = bytes + PAGE;
	return (char *)p + 64; /* as aligned as a cache line */
}

static void give_pages(void *p)
{
	size_t *start;

	if (!p)
		return;
	start = (size_t *)((char *)p - 64);
	pages_unmap(start, *start);
}

static bool compress(struct out *to, const struct out *from)
{
	struct libdeflate_compressor *c;
	size_t room, n = 0;
	void *p;

	libdeflate_set_memory_allocator(take_pages, give_pages);
	c = libdeflate_alloc_compressor(LEVEL);
	if (!c)
		return false;
	room = libdeflate_gzip_compress_bound(c, from->n);
	p = pages_map(room);
	if (p)
		n = libdeflate_gzip_compress(c, from->p, from->n, p, room);
	out_add(to, p, n);
	pages_unmap(p, room);
	libdeflate_free_compressor(c);
	return n > 0;
}

void record_write(struct out *o, const struct agent_profile *p, const struct record *r)
{
	struct region memory = { 0 };
	struct encoder *e = region_alloc(&memory, sizeof(*e));

	if (e) {
		e->text_index.memory = e->frame_index.memory = &e->memory;
		e->mappings = region_alloc(&e->memory, (MODULES_MAX + 1) * sizeof(*e->mappings));
		e->to.has_failed = !e->mappings || r->has_failed;
	}
	if (!e || e->to.has_failed) {
		o->has_failed = true;
	} else {
		encode(e, p, r);
		o->has_failed |= e->to.has_failed || !compress(o, &e->to);
	}
	if (e) {
		region_release(&e->memory);
		out_release(&e->to);
		out_release(&e->part);
		out_release(&e->inner);
		out_release(&e->line);
		out_release(&e->texts);
		out_release(&e->frames);
	}
	region_release(&memory);
}
