/* names_work.c - finds out names: a child reads debug information, first of what was uploaded, then
 * of files of this machine. */
#include <stdlib.h>
#include <string.h>

#include "base/wait.h"
#include "server/log.h"
#include "server/names_inside.h"

enum {
	LOOK_MS = 1000,	    /* between two looks whether something is to be looked for again */
	SAVE_MS = 60000,    /* between two times that names which are new are written */
	MIN_PLACES = 1000,  /* that a child is asked for at once, at least, */
	MAX_PLACES = 65536, /* and at most */
	PLACE_BYTES = 512,  /* that names of one may take, in the mean */
};

/* Places of a binary, of which those that have got no name yet are left. */
struct asking {
	struct names *n;
	struct store_binary *b;
	struct names_place *places;
	size_t nplaces;
	uint64_t version;
	bool is_read;  /* there is something that could be read */
	bool is_retry; /* of what nobody knew */
};

uint64_t names_version(struct names *n, const struct store_binary *b)
{
	uint64_t version;

	pthread_mutex_lock(&n->lock);
	version = b->version;
	pthread_mutex_unlock(&n->lock);
	return version;
}

void names_say(char **what, const char *text)
{
	free(*what);
	*what = strdup(text);
}

void names_push(struct names_queue *q, struct store_binary *b)
{
	vec_push(&q->items, b);
}

struct store_binary *names_pop(struct names_queue *q)
{
	struct store_binary *b;

	if (!q->items.n)
		return NULL;
	b = q->items.at[q->first++];
	if (q->first > q->items.n / 2) { /* so that it is moved once in its life, in the mean */
		q->items.n -= q->first;
		memmove(q->items.at, q->items.at + q->first, q->items.n * sizeof(*q->items.at));
		q->first = 0;
	}
	return b;
}

void names_retry_later(const struct names *n, struct store_binary *b)
{
	int64_t now = clock_now_ms();

	if (b->retry_ms > now || (!n->params.is_local && !*n->params.urls))
		return;
	b->retry_ms = now + ((int64_t)NAMES_RETRY_MS << b->ntries);
	b->ntries += b->ntries < NAMES_RETRIES;
}

/* ---- places */

static int by_mapping(const void *a, const void *b)
{
	const struct names_place *x = a, *y = b;

	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	if (x->size != y->size)
		return x->size < y->size ? -1 : 1;
	return (x->key > y->key) - (x->key < y->key);
}

static size_t unique_places(struct names_place *at, size_t n)
{
	size_t left = 0;

	if (n)
		qsort(at, n, sizeof(*at), by_mapping);
	for (size_t i = 0; i < n; i++)
		if (!left || by_mapping(&at[left - 1], &at[i]) != 0)
			at[left++] = at[i];
	return left;
}

/* Some may have been named since they were asked for, or were on the disk. */
static size_t unknown_places(struct names *n, const struct store_binary *b, struct names_place *at,
			     size_t nplaces)
{
	size_t left = 0;

	pthread_rwlock_rdlock(&n->tables);
	for (size_t i = 0; i < nplaces; i++)
		if (names_find_entry(b, at[i].key) == MAP_NONE)
			at[left++] = at[i];
	pthread_rwlock_unlock(&n->tables);
	return left;
}

/* ---- a child is asked */

/* What was found in a file that has been replaced meanwhile is of no use. */
static bool take_answer(struct asking *q, const struct profile *p, struct err *e)
{
	struct names *n = q->n;
	size_t nnamed = 0, left = 0;
	bool ok = true;

	pthread_rwlock_wrlock(&n->tables);
	if (names_version(n, q->b) == q->version)
		ok = names_take(n, q->b, q->places, p, &nnamed, e);
	n->nfound += nnamed;
	n->generation += q->is_retry && nnamed;
	pthread_rwlock_unlock(&n->tables);
	for (uint32_t i = 0; ok && i < p->nlocations; i++)
		if (!location_has_name(p, &p->locations[i]))
			q->places[left++] = q->places[i];
	if (ok)
		q->nplaces = left;
	return ok;
}

static bool ask_child(struct asking *q, const char *path, struct err *e)
{
	struct arena a = { 0 };
	struct strings strings;
	struct profile p;
	struct names_job job = { .program = q->n->params.program,
				 .path = path,
				 .build_id = str_of(q->b->build_id),
				 .places = q->places,
				 .n = q->nplaces,
				 .stop = &q->n->is_stopping };
	bool ok;

	strings_init(&strings);
	ok = names_child_ask(&job, &a, &strings, &p, e) && take_answer(q, &p, e);
	strings_release(&strings);
	arena_release(&a);
	q->is_read |= ok;
	return ok;
}

static void note_said(struct asking *q, char **what, const char *text)
{
	pthread_mutex_lock(&q->n->lock);
	names_say(what, text);
	pthread_mutex_unlock(&q->n->lock);
}

static void ask_upload(struct asking *q)
{
	struct debuginfo *files = q->n->params.files;
	struct str id = str_of(q->b->build_id);
	struct debuginfo_file file;
	struct arena a = { 0 };
	struct err e;
	bool ok;

	if (debuginfo_find(files, id, &a, &file)) {
		debuginfo_use(files, id);
		ok = ask_child(q, file.path, &e);
		note_said(q, &q->b->read_said, ok ? "it has been read" : e.text);
		if (!ok && !q->n->is_stopping && names_version(q->n, q->b) == q->version) {
			debuginfo_unreadable(files, id);
			log_error("debug info %.*s (%s) cannot be read: %s", STR_ARG(file.name),
				  q->b->build_id, e.text);
		}
	}
	arena_release(&a);
}

static size_t copy_paths(struct asking *q, struct arena *a, const char **paths)
{
	size_t n;

	pthread_mutex_lock(&q->n->lock);
	n = q->b->npaths;
	for (size_t i = 0; i < n; i++)
		paths[i] = str_dup(a, str_of(q->b->paths[i]));
	pthread_mutex_unlock(&q->n->lock);
	return n;
}

/* `is_enough`: one that can be read will do. */
static void ask_local(struct asking *q, bool is_enough)
{
	const char *paths[NAMES_PATHS];
	struct arena a = { 0 };
	size_t n = q->n->params.is_local ? copy_paths(q, &a, paths) : 0;
	struct err e;

	for (size_t i = 0; i < n && (q->nplaces || (is_enough && !q->is_read)); i++) {
		bool ok;

		if (paths[i][0] != '/')
			continue;
		ok = ask_child(q, paths[i], &e);
		if (ok || !q->is_read)
			note_said(q, &q->b->local_said, ok ? "it has been read" : e.text);
	}
	arena_release(&a);
}

/* Those that are left nobody on this machine knows. */
static void finish(struct asking *q)
{
	struct names *n = q->n;
	struct store_binary *b = q->b;

	pthread_rwlock_wrlock(&n->tables);
	if (q->is_read && names_version(n, b) == q->version)
		names_take_nameless(n, b, q->places, q->nplaces);
	pthread_mutex_lock(&n->lock);
	if (b->version == q->version) { /* else it came while nobody had it */
		if (!q->is_read) {
			b->state = NOTHING;
			b->wanted.n = 0;
		}
		if (q->nplaces && !names_queue_fetch(n, b))
			names_retry_later(n, b);
	}
	n->nruns++;
	n->nfailed += !q->is_read;
	pthread_mutex_unlock(&n->lock);
	pthread_rwlock_unlock(&n->tables);
}

static void name_some(struct names *n, struct store_binary *b, struct names_place *places,
		      size_t nplaces)
{
	struct asking q = { .n = n, .b = b, .places = places, .version = names_version(n, b) };

	q.nplaces = unknown_places(n, b, places, nplaces);
	if (!q.nplaces)
		return;
	ask_upload(&q);
	ask_local(&q, false);
	if (!n->is_stopping)
		finish(&q);
}

/* As many at once as there is room for the names of. */
static void name_wanted(struct names *n, struct store_binary *b, struct names_place *places,
			size_t nplaces)
{
	size_t room = n->params.max_bytes / NAMES_BINARY_SHARE / PLACE_BYTES;

	room = room < MIN_PLACES ? MIN_PLACES : room > MAX_PLACES ? MAX_PLACES : room;
	names_load(n, b);
	nplaces = unique_places(places, nplaces);
	for (size_t i = 0; i < nplaces && !n->is_stopping; i += room)
		name_some(n, b, places + i, nplaces - i < room ? nplaces - i : room);
	names_save(n, b);
}

/* ---- what was not there may be there now */

static size_t copy_nameless(struct names *n, const struct store_binary *b,
			    struct names_place **places)
{
	size_t left = 0;

	pthread_rwlock_rdlock(&n->tables);
	*places = xcalloc(b->nameless.n + 1, sizeof(**places));
	for (size_t i = 0; i < b->nameless.n && left < MAX_PLACES; i++) {
		uint32_t entry = names_find_entry(b, b->nameless.at[i].key);

		if (entry != MAP_NONE && !b->entries.at[entry].n)
			(*places)[left++] = b->nameless.at[i];
	}
	pthread_rwlock_unlock(&n->tables);
	return left;
}

static void retry(struct names *n, struct store_binary *b)
{
	struct asking q = { .n = n, .b = b, .version = names_version(n, b), .is_retry = true };
	size_t nnameless = copy_nameless(n, b, &q.places);
	bool was_nothing;

	pthread_mutex_lock(&n->lock);
	was_nothing = b->state == NOTHING;
	pthread_mutex_unlock(&n->lock);
	q.nplaces = unique_places(q.places, nnameless);
	if (was_nothing || nnameless)
		ask_local(&q, was_nothing);
	if (was_nothing && q.is_read)
		names_changed(n, str_of(b->build_id));
	pthread_mutex_lock(&n->lock);
	b->retry_ms = 0;
	if (!n->is_stopping && (b->state == NOTHING || q.nplaces) && !names_queue_fetch(n, b))
		names_retry_later(n, b);
	pthread_mutex_unlock(&n->lock);
	free(q.places);
}

/* ---- the thread; under the lock, which they let go of */

static void name_next(struct names *n, struct store_binary *b)
{
	struct names_place *places = b->wanted.at;
	size_t nplaces = b->wanted.n;

	b->is_queued = false;
	memset(&b->wanted, 0, sizeof(b->wanted));
	n->busy_with = b;
	pthread_mutex_unlock(&n->lock);
	if (nplaces)
		name_wanted(n, b, places, nplaces);
	free(places);
	pthread_mutex_lock(&n->lock);
	n->busy_with = NULL;
	pthread_cond_broadcast(&n->idle);
}

static bool retry_next(struct names *n)
{
	int64_t now = clock_now_ms();
	struct store_binary *b = NULL;

	for (size_t i = 0; i < n->binaries.n && !b; i++)
		if (n->binaries.at[i]->retry_ms && n->binaries.at[i]->retry_ms <= now &&
		    !n->binaries.at[i]->is_fetching)
			b = n->binaries.at[i];
	if (!b)
		return false;
	n->busy_with = b;
	pthread_mutex_unlock(&n->lock);
	retry(n, b);
	pthread_mutex_lock(&n->lock);
	n->busy_with = NULL;
	pthread_cond_broadcast(&n->idle);
	return true;
}

static void make_room(struct names *n)
{
	if (!names_are_many(n) && !n->is_trim_due)
		return;
	pthread_mutex_unlock(&n->lock);
	pthread_rwlock_wrlock(&n->tables);
	names_readable_trim(&n->readable);
	n->is_trim_due = false;
	pthread_mutex_lock(&n->lock);
	if (names_are_many(n))
		names_drop_binaries(n);
	pthread_mutex_unlock(&n->lock);
	pthread_rwlock_unlock(&n->tables);
	pthread_mutex_lock(&n->lock);
}

struct due {
	int64_t save_ms, tidy_ms;
};

static void tidy(struct names *n, struct due *due)
{
	int64_t now = clock_now_ms();
	bool is_tidy_due = now >= due->tidy_ms;

	if (!is_tidy_due && now < due->save_ms)
		return;
	pthread_mutex_unlock(&n->lock);
	names_save_all(n);
	due->save_ms = clock_now_ms() + SAVE_MS;
	if (is_tidy_due) {
		names_tidy_disk(n);
		if (n->params.tidy)
			n->params.tidy(n->params.ctx, n->disk_bytes);
		due->tidy_ms = clock_now_ms() + n->params.tidy_ms;
	}
	pthread_mutex_lock(&n->lock);
}

void *names_work(void *ctx)
{
	struct names *n = ctx;
	struct due due = { .save_ms = clock_now_ms() + SAVE_MS,
			   .tidy_ms = clock_now_ms() + n->params.tidy_ms };
	int wait_ms = n->params.tidy_ms < LOOK_MS ? (int)n->params.tidy_ms : LOOK_MS;

	pthread_mutex_lock(&n->lock);
	while (!n->is_stopping) {
		struct store_binary *b;

		tidy(n, &due);
		make_room(n);
		b = names_pop(&n->queue);
		if (b)
			name_next(n, b);
		else if (!retry_next(n))
			wait_for_ms(&n->wake, &n->lock, wait_ms);
	}
	pthread_mutex_unlock(&n->lock);
	names_save_all(n);
	return NULL;
}
