/* names_table.c - what is known: names by binary and place, each text and function once. */
#include <stdlib.h>
#include <string.h>

#include "server/names_inside.h"

enum {
	MAX_BINARIES = 50000,
	MANY_BINARIES = MAX_BINARIES / 10 * 9, /* from here on some go, */
	KEPT_BINARIES = MAX_BINARIES / 10 * 8, /* until so many are left */
	PAGE = 4096,			       /* whatever a binary's texts need, they have one */
};

/* ---- binaries; under the lock */

static bool same_id(const void *ctx, uint32_t index)
{
	const struct names *n = ((const void *const *)ctx)[0];
	const struct str *id = ((const void *const *)ctx)[1];

	return str_eq(str_of(n->binaries.at[index]->build_id), *id);
}

static uint64_t id_hash(struct str build_id)
{
	return hash_bytes(map_seed(), build_id.p, build_id.n);
}

struct store_binary *names_find_binary(const struct names *n, struct str build_id)
{
	const void *key[2] = { n, &build_id };
	uint32_t at = map_get(&n->map, id_hash(build_id), same_id, key);

	return at == MAP_NONE ? NULL : n->binaries.at[at];
}

bool names_are_many(const struct names *n)
{
	return n->binaries.n >= MANY_BINARIES;
}

struct store_binary *names_add_binary(struct names *n, struct str build_id)
{
	struct store_binary *b;

	if (n->binaries.n >= MAX_BINARIES)
		return NULL;
	b = xcalloc(1, sizeof(*b));
	b->build_id = strndup(build_id.p, build_id.n);
	map_add(&n->map, id_hash(build_id), n->binaries.n);
	vec_push(&n->binaries, b);
	return b;
}

/* The last one first. */
static int by_use(const void *a, const void *b)
{
	const struct store_binary *x = *(struct store_binary *const *)a;
	const struct store_binary *y = *(struct store_binary *const *)b;

	return (x->last_use < y->last_use) - (x->last_use > y->last_use);
}

static bool is_idle(const struct names *n, const struct store_binary *b)
{
	return !b->is_queued && !b->is_fetching && n->busy_with != b;
}

/* Answers about those that were not let in are other ones now. */
void names_drop_binaries(struct names *n)
{
	size_t left = 0;

	qsort(n->binaries.at, n->binaries.n, sizeof(*n->binaries.at), by_use);
	map_release(&n->map);
	for (size_t i = 0; i < n->binaries.n; i++) {
		struct store_binary *b = n->binaries.at[i];

		if (i >= KEPT_BINARIES && is_idle(n, b)) {
			names_free_binary(n, b);
			continue;
		}
		map_add(&n->map, id_hash(str_of(b->build_id)), left);
		n->binaries.at[left++] = b;
	}
	n->binaries.n = left;
	n->generation++;
}

void names_forget(struct names *n, struct store_binary *b)
{
	vec_release(&b->entries);
	vec_release(&b->frames);
	vec_release(&b->functions);
	vec_release(&b->nameless);
	map_release(&b->map);
	map_release(&b->function_map);
	strings_release(&b->strings);
	n->bytes -= b->bytes;
	b->bytes = b->nnamed = 0;
	b->is_loaded = b->is_changed = false;
}

void names_free_binary(struct names *n, struct store_binary *b)
{
	names_forget(n, b);
	vec_release(&b->wanted);
	for (size_t i = 0; i < b->npaths; i++)
		free(b->paths[i]);
	free(b->build_id);
	free(b->local_said);
	free(b->fetch_said);
	free(b->read_said);
	free(b);
}

/* ---- places */

static bool same_entry(const void *ctx, uint32_t index)
{
	const struct store_binary *b = ((const void *const *)ctx)[0];
	const uint64_t *key = ((const void *const *)ctx)[1];

	return b->entries.at[index].key == *key;
}

uint32_t names_find_entry(const struct store_binary *b, uint64_t key)
{
	const void *both[2] = { b, &key };

	return map_get(&b->map, hash_mix(map_seed(), key), same_entry, both);
}

uint32_t names_frames(const struct store_binary *b, uint32_t entry, struct profile_frame *frames)
{
	const struct names_entry *e = &b->entries.at[entry];

	for (uint32_t i = 0; i < e->n; i++) {
		const struct names_frame *f = &b->frames.at[e->first + i];
		const struct names_function *function;

		frames[i] = (struct profile_frame){ .line = f->line, .column = f->column };
		if (f->function == NONE)
			continue;
		function = &b->functions.at[f->function];
		frames[i].name = b->strings.at[function->name];
		frames[i].system_name = b->strings.at[function->system_name];
		frames[i].file = b->strings.at[function->file];
		frames[i].start_line = function->start_line;
	}
	return e->n;
}

/* ---- names come in */

static bool same_function(const void *ctx, uint32_t index)
{
	const struct store_binary *b = ((const void *const *)ctx)[0];

	return memcmp(&b->functions.at[index], ((const void *const *)ctx)[1],
		      sizeof(struct names_function)) == 0;
}

/* Lines are small numbers; what is none is not told. */
static uint32_t line_number(int64_t line)
{
	return line > 0 && line < UINT32_MAX ? (uint32_t)line : 0;
}

static uint32_t add_function(struct store_binary *b, const struct profile *p, uint32_t function)
{
	const struct function *from;
	struct names_function f;
	const void *key[2] = { b, &f };
	uint32_t i;

	if (function == NONE)
		return NONE;
	from = &p->functions[function];
	f.name = strings_add(&b->strings, profile_str(p, from->name));
	f.system_name = strings_add(&b->strings, profile_str(p, from->system_name));
	f.file = strings_add(&b->strings, profile_str(p, from->filename));
	f.start_line = line_number(from->start_line);
	i = map_put(&b->function_map, hash_bytes(map_seed(), &f, sizeof(f)), b->functions.n,
		    same_function, key);
	if (i == b->functions.n)
		vec_push(&b->functions, f);
	return i;
}

static uint32_t count_frames(const struct location *l)
{
	return l->nlines < STORE_MAX_FRAMES ? l->nlines : STORE_MAX_FRAMES;
}

/* Of too many, those in the middle are left out. */
static void add_frames(struct store_binary *b, const struct profile *p, const struct location *l)
{
	uint32_t n = count_frames(l);

	for (uint32_t i = 0; i < n; i++) {
		const struct line *line =
			&p->lines[l->first_line + (i + 1 < n ? i : l->nlines - 1)];

		vec_push(&b->frames,
			 ((struct names_frame){ .function = add_function(b, p, line->function),
						.line = line_number(line->line),
						.column = line_number(line->column) }));
	}
}

static uint64_t map_bytes(const struct map *m)
{
	return m->slots ? ((uint64_t)m->mask + 1) * sizeof(*m->slots) : 0;
}

static void count_bytes(struct names *n, struct store_binary *b)
{
	n->bytes -= b->bytes;
	b->bytes = b->entries.cap * sizeof(*b->entries.at) + map_bytes(&b->map) +
		   b->frames.cap * sizeof(*b->frames.at) +
		   b->functions.cap * sizeof(*b->functions.at) + map_bytes(&b->function_map) +
		   b->strings.cap * sizeof(*b->strings.at) + map_bytes(&b->strings.map) +
		   arena_used(&b->strings.bytes) + PAGE + b->nameless.cap * sizeof(*b->nameless.at);
	n->bytes += b->bytes;
}

/* About what taking it will need. */
static uint64_t cost_of(const struct profile *p)
{
	enum { ENTRY = sizeof(struct names_entry) + 3 * sizeof(struct map_slot) };
	uint64_t bytes = (uint64_t)p->nlocations * ENTRY;

	for (uint32_t i = 0; i < p->nlocations; i++)
		bytes += count_frames(&p->locations[i]) * sizeof(struct names_frame);
	for (uint32_t i = 0; i < p->nfunctions; i++) {
		const struct function *f = &p->functions[i];

		bytes += sizeof(*f) + profile_str(p, f->name).n + profile_str(p, f->system_name).n +
			 profile_str(p, f->filename).n;
	}
	return bytes;
}

/* Names that nobody asked for lately make room, some more than is needed, so that it is not done
 * for each. The disk has them. */
static void make_room(struct names *n, const struct store_binary *but)
{
	vec(struct store_binary *) all = { 0 };

	if (n->bytes <= n->params.max_bytes)
		return;
	pthread_mutex_lock(&n->lock);
	for (size_t i = 0; i < n->binaries.n; i++)
		if (n->binaries.at[i] != but && n->binaries.at[i]->bytes)
			vec_push(&all, n->binaries.at[i]);
	if (all.n)
		qsort(all.at, all.n, sizeof(*all.at), by_use);
	while (all.n && n->bytes > n->params.max_bytes / 8 * 7)
		names_forget(n, all.at[--all.n]);
	pthread_mutex_unlock(&n->lock);
	vec_release(&all);
}

static struct names_entry *entry_for(struct store_binary *b, uint64_t key)
{
	uint32_t i = names_find_entry(b, key);

	if (i == MAP_NONE) {
		i = map_add(&b->map, hash_mix(map_seed(), key), b->entries.n);
		vec_push(&b->entries, ((struct names_entry){ .key = key }));
	}
	return &b->entries.at[i];
}

bool names_take(struct names *n, struct store_binary *b, const struct names_place *places,
		const struct profile *p, size_t *nnamed, struct err *e)
{
	uint64_t cost = cost_of(p), most = n->params.max_bytes / NAMES_BINARY_SHARE;

	*nnamed = 0;
	if (cost > most)
		return err_set(e, ERR_LIMIT, "its names would take %llu bytes of memory, of %llu",
			       (unsigned long long)cost, (unsigned long long)most);
	if (b->bytes + cost > most) {
		names_forget(n, b);
		b->is_loaded = true; /* what is on the disk was too much, too */
	}
	if (!b->strings.n)
		strings_init(&b->strings);
	for (uint32_t i = 0; i < p->nlocations; i++) {
		const struct location *l = &p->locations[i];
		struct names_entry *entry;

		if (!location_has_name(p, l))
			continue;
		entry = entry_for(b, places[i].key);
		if (entry->n)
			continue;
		entry->first = (uint32_t)b->frames.n;
		entry->n = count_frames(l);
		add_frames(b, p, l);
		b->nnamed++;
		++*nnamed;
	}
	b->is_changed |= *nnamed > 0;
	count_bytes(n, b);
	make_room(n, b);
	return true;
}

void names_take_nameless(struct names *n, struct store_binary *b, const struct names_place *places,
			 size_t nplaces)
{
	for (size_t i = 0; i < nplaces; i++) {
		if (names_find_entry(b, places[i].key) != MAP_NONE)
			continue;
		entry_for(b, places[i].key)->first = (uint32_t)b->nameless.n;
		vec_push(&b->nameless, places[i]);
		b->is_changed = true;
	}
	count_bytes(n, b);
	make_room(n, b);
}
