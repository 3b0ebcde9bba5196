#include "store/naming.h"

#include <stdlib.h>

#include "base/strings.h"
#include "store/inside.h"
#include "store/tables.h"

#define KERNEL_HALF (UINT64_C(1) << 63)

uint64_t naming_generation(const struct store_namer *by)
{
	return by ? by->generation(by->ctx) : 0;
}

/* Names may come while the question is still being asked. */
static void note_begin(struct naming *n)
{
	if (!n->since)
		n->since = n->by->nfound(n->by->ctx) + 1;
}

bool naming_wait(struct naming *n)
{
	bool is_worth_it = n->nmissing;

	if (is_worth_it) {
		n->by->wait(n->by->ctx);
		is_worth_it = n->by->nfound(n->by->ctx) + 1 != n->since;
	}
	n->nmissing = n->since = 0;
	return is_worth_it;
}

/* Whoever pushed both a name and one for the linker has made the former of the latter. _Z is C++'s
 * and old Rust's, _R new Rust's; some have more underscores. */
static bool is_mangled(uint32_t name, uint32_t system_name, struct str text)
{
	return (name == system_name || !system_name) && text.n > 3 && text.p[0] == '_' &&
	       (text.p[1] == 'Z' || text.p[1] == 'R' || text.p[1] == '_');
}

/* ---- profiles */

/* Whoever pushed it has named it, or nobody can. */
static bool is_settled(const struct profile *p, const struct mapping *m)
{
	return m->has_functions || m->has_filenames || m->has_line_numbers || !m->build_id ||
	       m->start >= KERNEL_HALF || mapping_is_system(p, m);
}

static struct store_binary **find_binaries(const struct store_namer *by, const struct profile *p,
					   uint32_t *nfound)
{
	struct store_binary **binaries = xcalloc((size_t)p->nmappings + 1, sizeof(*binaries));

	*nfound = 0;
	for (uint32_t i = 0; i < p->nmappings; i++) {
		const struct mapping *m = &p->mappings[i];

		if (!is_settled(p, m))
			binaries[i] = by->binary(by->ctx, profile_str(p, m->build_id),
						 profile_str(p, m->file));
		*nfound += binaries[i] != NULL;
	}
	return binaries;
}

static uint32_t find_location(struct naming *n, const struct profile *p,
			      struct store_binary *const *binaries, uint32_t location,
			      struct profile_frame *frames)
{
	const struct location *l = &p->locations[location];
	const struct mapping *m;

	if (l->mapping == NONE || !binaries[l->mapping])
		return 0;
	m = &p->mappings[l->mapping];
	return n->by->find(n->by->ctx, binaries[l->mapping],
			   &(struct store_place){ .address = l->address - m->start,
						  .size = m->limit - m->start,
						  .offset = m->offset },
			   frames, &n->nmissing);
}

/* Only asks: how many have names? */
static uint32_t ask(struct naming *n, const struct profile *p)
{
	struct profile_frame frames[STORE_MAX_FRAMES];
	struct store_binary **binaries;
	uint32_t nbinaries, nfound = 0;

	note_begin(n);
	n->by->begin(n->by->ctx);
	binaries = find_binaries(n->by, p, &nbinaries);
	for (uint32_t i = 0; nbinaries && i < p->nlocations; i++)
		nfound += find_location(n, p, binaries, i, frames) > 0;
	n->by->end(n->by->ctx);
	free(binaries);
	return nfound;
}

static void put(struct naming *n, struct arena *a, struct profile *p)
{
	struct profile_frame frames[STORE_MAX_FRAMES];
	struct profile_names *names;
	struct store_binary **binaries;
	uint32_t nbinaries;

	n->by->begin(n->by->ctx);
	binaries = find_binaries(n->by, p, &nbinaries);
	names = profile_names_begin(a, p);
	for (uint32_t i = 0; i < p->nlocations; i++) {
		uint32_t nframes = find_location(n, p, binaries, i, frames);

		if (!nframes || !profile_names_location(names, i, nframes))
			continue;
		for (uint32_t k = 0; k < nframes; k++)
			profile_names_frame(names, &frames[k]);
	}
	profile_names_end(names);
	n->by->end(n->by->ctx);
	free(binaries);
}

static void make_readable(const struct store_namer *by, struct arena *a, struct profile *p)
{
	const struct function *old = p->functions;

	by->begin(by->ctx);
	for (uint32_t i = 0; i < p->nfunctions; i++) {
		struct str text = profile_str(p, old[i].name);
		uint32_t system_name = old[i].system_name ? old[i].system_name : old[i].name;

		if (!is_mangled(old[i].name, old[i].system_name, text))
			continue;
		text = by->readable(by->ctx, text);
		if (!text.p)
			continue;
		if (p->functions == old)
			p->functions = arena_copy(a, old, p->nfunctions * sizeof(*old));
		p->functions[i].name = strings_add(p->strings, text);
		p->functions[i].system_name = system_name;
	}
	by->end(by->ctx);
}

void naming_profile(const struct store_namer *by, struct arena *a, struct profile *p)
{
	struct naming n = { .by = by };
	uint32_t nfound;

	if (!by)
		return;
	nfound = ask(&n, p);
	if (naming_wait(&n))
		nfound = p->nlocations;
	if (nfound)
		put(&n, a, p);
	make_readable(by, a, p);
}

/* ---- books */

void book_naming_begin(struct book_naming *x, struct naming *n, const struct book *b)
{
	x->n = n && n->by ? n : NULL;
	x->b = b;
	if (!x->n)
		return;
	x->binaries = xcalloc(b->mappings.n + 1, sizeof(*x->binaries));
	x->states = xcalloc(b->mappings.n + 1, sizeof(*x->states));
	note_begin(n);
	n->by->begin(n->by->ctx);
}

void book_naming_end(struct book_naming *x)
{
	if (!x->n)
		return;
	x->n->by->end(x->n->by->ctx);
	free(x->binaries);
	free(x->states);
}

/* Of a mapping. */
enum { NOT_SEEN, SETTLED, ASKED };

static bool is_settled_in(const struct book *b, const struct book_mapping *m)
{
	enum { HAS_NAMES = 1 | 2 | 4 };

	return m->flags & HAS_NAMES || !m->build_id || m->start >= KERNEL_HALF ||
	       file_is_system(b->strings.at[m->file]);
}

/* Whether names are the namer's to tell. */
static bool ask_mapping(struct book_naming *x, uint32_t mapping)
{
	const struct book_mapping *m = &x->b->mappings.at[mapping];
	const struct store_namer *by = x->n->by;

	if (x->states[mapping] == NOT_SEEN) {
		x->states[mapping] = is_settled_in(x->b, m) ? SETTLED : ASKED;
		if (x->states[mapping] == ASKED)
			x->binaries[mapping] = by->binary(by->ctx, x->b->strings.at[m->build_id],
							  x->b->strings.at[m->file]);
	}
	return x->states[mapping] == ASKED;
}

uint32_t book_naming_find(struct book_naming *x, uint32_t location,
			  const struct profile_frame **frames)
{
	const struct book_location *l = &x->b->locations.at[location];
	const struct book_mapping *m;
	struct store_binary *binary;

	if (!x->n || l->mapping == NONE || !ask_mapping(x, l->mapping))
		return 0;
	x->n->nasked++;
	*frames = x->frames;
	binary = x->binaries[l->mapping];
	if (!binary)
		return 0;
	m = &x->b->mappings.at[l->mapping];
	return x->n->by->find(x->n->by->ctx, binary,
			      &(struct store_place){
				      .address = l->address, .size = m->size, .offset = m->offset },
			      x->frames, &x->n->nmissing);
}

struct str book_naming_readable(struct book_naming *x, uint32_t function)
{
	const struct book_function *f = &x->b->functions.at[function];
	struct str text = x->b->strings.at[f->name];

	if (!x->n || !is_mangled(f->name, f->system_name, text))
		return (struct str){ 0 };
	return x->n->by->readable(x->n->by->ctx, text);
}

/* ---- the store */

void store_name_profile(struct store *s, struct arena *a, struct profile *p)
{
	naming_profile(s->namer, a, p);
}

void store_set_namer(struct store *s, const struct store_namer *namer)
{
	s->namer = namer;
}

static void add_build_ids(struct strings *to, const struct book *b)
{
	for (size_t i = 0; i < b->mappings.n; i++)
		strings_add(to, b->strings.at[b->mappings.at[i].build_id]);
}

static int by_text(const void *a, const void *b)
{
	return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

static bool collect_build_ids(struct store *s, const int64_t *books, size_t n,
			      const atomic_bool *stop, struct strings *to, struct err *e)
{
	for (size_t i = 0; i < n; i++) {
		struct shelf_book *b;

		if (stop_asked(stop))
			return err_set(e, ERR_IO, "nobody waits for it any more");
		b = shelf_take(s, books[i], e);
		if (!b && e->kind != ERR_NOTFOUND)
			return false;
		if (!b)
			continue;
		pthread_rwlock_rdlock(&b->lock);
		add_build_ids(to, b->book);
		pthread_rwlock_unlock(&b->lock);
		shelf_put_back(s, b);
	}
	return true;
}

static int64_t *list_books(struct store *s, struct arena *a, size_t *n)
{
	int64_t *books;

	pthread_mutex_lock(&s->shelf.lock);
	*n = s->shelf.books.n;
	books = arena_many(a, *n + 1, int64_t);
	for (size_t i = 0; i < *n; i++)
		books[i] = s->shelf.books.at[i]->id;
	pthread_mutex_unlock(&s->shelf.lock);
	return books;
}

bool store_build_ids(struct store *s, const atomic_bool *stop, struct arena *a, struct str **ids,
		     size_t *n, struct err *e)
{
	struct strings found;
	size_t nbooks;
	int64_t *books = list_books(s, a, &nbooks);
	bool ok;

	strings_init(&found);
	ok = collect_build_ids(s, books, nbooks, stop, &found, e);
	*n = ok ? found.n - 1 : 0; /* the first is "" */
	*ids = arena_many(a, *n + 1, struct str);
	for (size_t i = 0; i < *n; i++)
		(*ids)[i] = (struct str){ arena_copy(a, found.at[i + 1].p, found.at[i + 1].n),
					  found.at[i + 1].n };
	if (*n)
		qsort(*ids, *n, sizeof(**ids), by_text);
	strings_release(&found);
	return ok;
}
