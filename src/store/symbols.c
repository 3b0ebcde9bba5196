/* symbols.c - names of addresses, for pprof, which does not say of which profile they are.
 *
 * All that it asks for at once belongs to one binary, which was loaded at one place. Books know
 * where binaries were, and at which of their addresses there is what. So the binary and place under
 * which most addresses are known is taken for the one that is meant: first in each book, then among
 * all. What is known there without a name may have one in another profile of the same binary, or
 * one that was found later.
 */
#include <stdlib.h>

#include "base/map.h"
#include "base/stop.h"
#include "store/inside.h"
#include "store/naming.h"
#include "store/tables.h"

enum {
	MAX_BOOKS = 100,		/* the newest */
	MAX_LOOKUPS = 10 * 1000 * 1000, /* in a book */
};

struct asked {
	uint64_t address;
	size_t index;	   /* in the caller's order */
	struct str binary; /* build id, or file; of the place that is meant */
	uint64_t offset;   /* within it */
	bool is_known;
	struct str name; /* p is NULL: it has none */
};

/* An address of a binary; `binary` is a string of the book. */
struct spot {
	uint64_t offset;
	uint32_t binary, name; /* name 0: none */
	uint32_t location;     /* the first that is there */
};

struct place {
	uint64_t start, size;
	uint32_t binary;
	uint32_t nknown;
};

/* What a book knows. */
struct atlas {
	const struct book *b;
	vec(struct spot) spots;
	vec(struct place) places;
	struct map map;
	struct book_naming naming;
};

struct lookup {
	struct store *s;
	const atomic_bool *stop;
	struct arena *a;
	struct asked *asked; /* in order of address */
	size_t n, nknown;
	struct naming naming;
};

/* ---- books */

static uint32_t binary_of(const struct book *b, uint32_t mapping)
{
	const struct book_mapping *m = mapping == NONE ? NULL : &b->mappings.at[mapping];

	return !m ? 0 : m->build_id ? m->build_id : m->file;
}

static bool same_spot(const void *ctx, uint32_t index)
{
	const struct atlas *t = ((const void *const *)ctx)[0];
	const struct spot *k = ((const void *const *)ctx)[1];

	return t->spots.at[index].offset == k->offset && t->spots.at[index].binary == k->binary;
}

static uint64_t spot_hash(const struct atlas *t, const struct spot *k)
{
	return hash_mix(hash_mix(t->b->seed, k->offset), k->binary);
}

/* As runtime.FuncForPC has it: of functions that are inlined there, the innermost. */
static uint32_t name_of(const struct book *b, const struct book_location *l)
{
	uint32_t function = l->nlines ? b->lines.at[l->first_line].function : NONE;

	return function == NONE ? 0 : b->functions.at[function].name;
}

static void add_spot(struct atlas *t, uint32_t location)
{
	const struct book_location *l = &t->b->locations.at[location];
	struct spot spot = { l->address, binary_of(t->b, l->mapping), name_of(t->b, l), location };
	const void *key[2] = { t, &spot };
	uint32_t i = map_put(&t->map, spot_hash(t, &spot), t->spots.n, same_spot, key);

	if (i == t->spots.n)
		vec_push(&t->spots, spot);
	else if (!t->spots.at[i].name)
		t->spots.at[i].name = spot.name;
}

static const struct spot *find_spot(const struct atlas *t, uint32_t binary, uint64_t offset)
{
	struct spot spot = { .offset = offset, .binary = binary };
	const void *key[2] = { t, &spot };
	uint32_t i = map_get(&t->map, spot_hash(t, &spot), same_spot, key);

	return i == MAP_NONE ? NULL : &t->spots.at[i];
}

static int by_start(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->binary != y->binary)
		return x->binary < y->binary ? -1 : 1;
	return (x->size < y->size) - (x->size > y->size);
}

static int best_first(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	return x->nknown != y->nknown ? (x->nknown < y->nknown ? 1 : -1) : by_start(a, b);
}

static void add_place(struct atlas *t, uint32_t mapping, uint64_t start)
{
	vec_push(&t->places, (struct place){ .start = start,
					     .size = t->b->mappings.at[mapping].size,
					     .binary = binary_of(t->b, mapping) });
}

static void atlas_init(struct atlas *t, const struct book *b, struct naming *naming)
{
	size_t n = 0;

	*t = (struct atlas){ .b = b };
	book_naming_begin(&t->naming, naming, b);
	for (uint32_t i = 0; i < b->locations.n; i++)
		add_spot(t, i);
	for (size_t i = 0; i < b->placed.n; i++)
		add_place(t, b->placed.at[i].mapping, b->placed.at[i].start);
	/* Sums have them where they were first. */
	for (uint32_t i = 0; i < b->mappings.n; i++)
		add_place(t, i, b->mappings.at[i].start);
	vec_push(&t->places, (struct place){ .size = UINT64_MAX }); /* no mapping */
	qsort(t->places.at, t->places.n, sizeof(*t->places.at), by_start);
	for (size_t i = 0; i < t->places.n; i++)
		if (!n || by_start(&t->places.at[i], &t->places.at[n - 1]) != 0)
			t->places.at[n++] = t->places.at[i];
	t->places.n = n;
}

static void atlas_release(struct atlas *t)
{
	book_naming_end(&t->naming);
	vec_release(&t->spots);
	vec_release(&t->places);
	map_release(&t->map);
}

/* ---- which place is meant */

static size_t first_from(const struct lookup *l, uint64_t address)
{
	size_t low = 0, high = l->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (l->asked[middle].address < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void count_known(const struct lookup *l, struct atlas *t)
{
	size_t nlookups = 0;

	for (size_t i = 0; i < t->places.n && nlookups < MAX_LOOKUPS; i++) {
		struct place *p = &t->places.at[i];

		for (size_t k = first_from(l, p->start);
		     k < l->n && l->asked[k].address - p->start < p->size; k++, nlookups++)
			p->nknown +=
				find_spot(t, p->binary, l->asked[k].address - p->start) != NULL;
	}
	qsort(t->places.at, t->places.n, sizeof(*t->places.at), best_first);
}

static struct str copy(struct arena *a, struct str s)
{
	return (struct str){ arena_copy(a, s.p, s.n), s.n };
}

/* As the book has it, or as it was found later. p == NULL: it has none. */
static struct str spot_name(struct arena *a, struct atlas *t, const struct spot *s)
{
	const struct profile_frame *frames;

	if (s->name)
		return copy(a, t->b->strings.at[s->name]);
	if (book_naming_find(&t->naming, s->location, &frames))
		return copy(a, frames[0].name);
	return (struct str){ 0 };
}

/* The best place of a book takes all that it has; the next what is left. */
static size_t take_places(const struct lookup *l, struct atlas *t, struct asked *to)
{
	size_t nknown = 0;

	for (size_t i = 0; i < t->places.n && t->places.at[i].nknown && nknown < l->n; i++) {
		const struct place *p = &t->places.at[i];
		struct str binary = copy(l->a, t->b->strings.at[p->binary]);

		for (size_t k = first_from(l, p->start);
		     k < l->n && to[k].address - p->start < p->size; k++) {
			const struct spot *s;

			if (to[k].binary.p)
				continue;
			to[k].binary = binary;
			to[k].offset = to[k].address - p->start;
			s = find_spot(t, p->binary, to[k].offset);
			to[k].is_known = s;
			nknown += s != NULL;
			if (s)
				to[k].name = spot_name(l->a, t, s);
		}
	}
	return nknown;
}

static void try_book(struct lookup *l, const struct book *b)
{
	struct atlas t;
	struct asked *to = xmalloc(l->n * sizeof(*to));
	size_t nknown;

	for (size_t i = 0; i < l->n; i++)
		to[i] = (struct asked){ .address = l->asked[i].address,
					.index = l->asked[i].index };
	atlas_init(&t, b, &l->naming);
	count_known(l, &t);
	nknown = take_places(l, &t, to);
	if (nknown > l->nknown) {
		memcpy(l->asked, to, l->n * sizeof(*to));
		l->nknown = nknown;
	}
	atlas_release(&t);
	free(to);
}

/* Names of what is known by its place in a binary that this book has, too. */
static void fill_in(struct lookup *l, const struct book *b)
{
	struct str binary = { 0 };
	uint32_t string = NONE;
	struct atlas t;

	atlas_init(&t, b, &l->naming);
	for (size_t i = 0; i < l->n; i++) {
		struct asked *x = &l->asked[i];
		const struct spot *s;

		if (x->name.p || !x->binary.n)
			continue;
		if (x->binary.p != binary.p) {
			binary = x->binary;
			for (string = 0; string < b->strings.n; string++)
				if (str_eq(b->strings.at[string], binary))
					break;
		}
		s = string < b->strings.n ? find_spot(&t, string, x->offset) : NULL;
		if (s)
			x->name = spot_name(l->a, &t, s);
	}
	atlas_release(&t);
}

/* ---- all */

static bool is_done(const struct lookup *l)
{
	for (size_t i = 0; i < l->n; i++)
		if (!l->asked[i].name.p)
			return false;
	return true;
}

/* The newest first. */
static size_t list_books(struct store *s, int64_t *ids)
{
	size_t n = 0;

	pthread_mutex_lock(&s->shelf.lock);
	for (size_t i = s->shelf.books.n; i > 0 && n < MAX_BOOKS; i--)
		ids[n++] = s->shelf.books.at[i - 1]->id;
	pthread_mutex_unlock(&s->shelf.lock);
	return n;
}

static bool each_book(struct lookup *l, void (*use)(struct lookup *l, const struct book *b),
		      struct err *e)
{
	int64_t ids[MAX_BOOKS];
	size_t n = list_books(l->s, ids);

	for (size_t i = 0; i < n && !is_done(l); i++) {
		struct shelf_book *b;

		if (stop_asked(l->stop))
			return err_set(e, ERR_IO, "nobody waits for it any more");
		b = shelf_take(l->s, ids[i], e);
		if (!b && e->kind != ERR_NOTFOUND)
			return false;
		if (!b)
			continue;
		pthread_rwlock_rdlock(&b->lock);
		use(l, b->book);
		pthread_rwlock_unlock(&b->lock);
		shelf_put_back(l->s, b);
	}
	return true;
}

static int by_address(const void *a, const void *b)
{
	const struct asked *x = a, *y = b;

	return (x->address > y->address) - (x->address < y->address);
}

bool store_symbols(struct store *s, const uint64_t *addresses, size_t n, const atomic_bool *stop,
		   struct arena *a, struct str *names, struct err *e)
{
	struct lookup l = { .s = s, .stop = stop, .a = a, .n = n, .naming.by = s->namer };
	bool ok;

	if (!n)
		return true;
	l.asked = arena_many(a, n, struct asked);
	for (size_t i = 0; i < n; i++)
		l.asked[i] = (struct asked){ .address = addresses[i], .index = i };
	qsort(l.asked, n, sizeof(*l.asked), by_address);
	ok = each_book(&l, try_book, e) && each_book(&l, fill_in, e);
	if (ok && naming_wait(&l.naming))
		ok = each_book(&l, fill_in, e);
	for (size_t i = 0; ok && i < n; i++)
		names[l.asked[i].index] = l.asked[i].name;
	return ok;
}
