#include "server/names_inside.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/wait.h"
#include "server/log.h"

enum {
	WAIT_MS = 2000,	     /* that a question waits for names */
	MAX_WANTED = 200000, /* addresses of a binary that wait to be named */
	READABLE_SHARE = 4,  /* of the memory */
};
/* No file has more; what says so lies. */
#define MAX_OFFSET (UINT64_C(1) << 43)

/* ---- what the store asks */

static void begin(void *ctx)
{
	struct names *n = ctx;

	pthread_rwlock_rdlock(&n->tables);
}

static void end(void *ctx)
{
	struct names *n = ctx;

	pthread_rwlock_unlock(&n->tables);
}

/* The file may be there under one of several names. Under the lock. */
static void note_path(const struct names *n, struct store_binary *b, struct str path)
{
	if (!path.n || path.n >= PATH_MAX || b->npaths == NAMES_PATHS)
		return;
	for (size_t i = 0; i < b->npaths; i++)
		if (str_eq(str_of(b->paths[i]), path))
			return;
	b->paths[b->npaths++] = strndup(path.p, path.n);
	if (n->params.is_local && b->retry_ms)
		b->retry_ms = clock_now_ms();
}

static struct store_binary *binary(void *ctx, struct str build_id, struct str file)
{
	struct names *n = ctx;
	struct store_binary *b;

	if (!debuginfo_is_id(build_id))
		return NULL;
	pthread_mutex_lock(&n->lock);
	b = names_find_binary(n, build_id);
	if (!b) {
		b = names_add_binary(n, build_id);
		if (names_are_many(n))
			pthread_cond_signal(&n->wake);
	}
	if (b) {
		note_path(n, b, file);
		b->last_use = ++n->clock;
		if (b->state != ASKABLE && !b->entries.n)
			b = NULL;
	}
	pthread_mutex_unlock(&n->lock);
	return b;
}

/* Where addresses are the binary's own, mappings say nothing. */
static bool place_key(const struct store_place *at, uint64_t *key)
{
	if (at->offset == 0 && (at->size == 0 || at->size == UINT64_MAX)) {
		*key = at->address | NAMES_IS_OWN;
		return at->address < NAMES_IS_OWN;
	}
	*key = at->offset + at->address;
	return at->address < at->size && at->size < MAX_OFFSET && at->offset < MAX_OFFSET;
}

static bool want(struct names *n, struct store_binary *b, const struct names_place *at)
{
	bool is_askable;

	pthread_mutex_lock(&n->lock);
	is_askable = b->state == ASKABLE;
	if (is_askable && b->wanted.n < MAX_WANTED) {
		vec_push(&b->wanted, *at);
		if (!b->is_queued) {
			b->is_queued = true;
			names_push(&n->queue, b);
			pthread_cond_signal(&n->wake);
		}
	}
	pthread_mutex_unlock(&n->lock);
	return is_askable;
}

static uint32_t find(void *ctx, struct store_binary *b, const struct store_place *place,
		     struct profile_frame *frames, uint64_t *nmissing)
{
	struct names_place at = { .size = place->size, .offset = place->offset };
	uint32_t i;

	if (!place_key(place, &at.key))
		return 0;
	i = names_find_entry(b, at.key);
	if (i == MAP_NONE) {
		*nmissing += want(ctx, b, &at);
		return 0;
	}
	return names_frames(b, i, frames);
}

static void wait_for_names(void *ctx)
{
	struct names *n = ctx;
	int64_t until = clock_now_ms() + WAIT_MS, left;

	pthread_mutex_lock(&n->lock);
	while ((n->queue.items.n || n->busy_with) && !n->is_stopping &&
	       (left = until - clock_now_ms()) > 0)
		wait_for_ms(&n->idle, &n->lock, (int)left);
	pthread_mutex_unlock(&n->lock);
}

static uint64_t nfound(void *ctx)
{
	struct names *n = ctx;

	return n->nfound;
}

static struct str readable(void *ctx, struct str name)
{
	struct names *n = ctx;
	bool is_full;
	struct str out = names_readable_find(&n->readable, name, &is_full);

	if (is_full && !atomic_exchange(&n->is_trim_due, true)) {
		pthread_mutex_lock(&n->lock);
		pthread_cond_signal(&n->wake);
		pthread_mutex_unlock(&n->lock);
	}
	return out;
}

static uint64_t generation(void *ctx)
{
	struct names *n = ctx;

	return n->generation;
}

/* ---- */

void names_changed(struct names *n, struct str build_id)
{
	struct store_binary *b;

	pthread_rwlock_wrlock(&n->tables);
	pthread_mutex_lock(&n->lock);
	b = names_find_binary(n, build_id);
	if (b) {
		names_forget(n, b);
		b->state = ASKABLE;
		b->version++;
		free(b->read_said);
		b->read_said = NULL;
	}
	pthread_mutex_unlock(&n->lock);
	n->generation++;
	pthread_rwlock_unlock(&n->tables);
	names_unlink(n, build_id);
	if (n->params.changed)
		n->params.changed(n->params.ctx);
}

static void add_look(struct names_why *why, const char *where, const char *result)
{
	why->looks[why->nlooks++] = (struct names_look){ where, result };
}

static const char *told(struct arena *a, const char *said)
{
	return said ? str_dup(a, str_of(said)) : NULL;
}

static void explain_binary(struct names *n, const struct store_binary *b, struct arena *a,
			   bool is_uploaded, struct names_why *why)
{
	const char *read_said = told(a, b->read_said), *local_said = told(a, b->local_said),
		   *fetch_said = told(a, b->fetch_said);

	why->naddresses = b->entries.n;
	why->nnamed = b->nnamed;
	why->is_pending = b->is_fetching || b->is_queued || n->busy_with == b;
	if (is_uploaded && read_said)
		why->looks[0].result = read_said;
	if (n->params.is_local && local_said)
		why->looks[1].result = local_said;
	if (*n->params.urls && (b->is_fetching || fetch_said))
		why->looks[2].result = b->is_fetching ? "it is being asked" : fetch_said;
}

void names_explain(struct names *n, struct str build_id, struct str file, struct arena *a,
		   struct names_why *why)
{
	const char *urls = n->params.urls;
	struct debuginfo_file uploaded;
	bool is_uploaded = debuginfo_find(n->params.files, build_id, a, &uploaded);
	const struct store_binary *b;

	*why = (struct names_why){ .has_lines = is_uploaded && uploaded.has.has_lines &&
						!uploaded.is_unreadable };
	add_look(why, "debug info of this server",
		 is_uploaded ? "it is there, and has not been asked yet"
			     : "there is none of this build id");
	add_look(why, file.n ? str_dup(a, file) : "the file itself",
		 n->params.is_local ? "it has not been asked"
				    : "not looked at: the server runs without --symbolize-local");
	add_look(why, *urls ? str_dup(a, str_of(urls)) : "debuginfod",
		 *urls ? "it has not been asked" : "not asked: DEBUGINFOD_URLS is not set");
	pthread_rwlock_rdlock(&n->tables);
	pthread_mutex_lock(&n->lock);
	b = names_find_binary(n, build_id);
	if (b)
		explain_binary(n, b, a, is_uploaded, why);
	pthread_mutex_unlock(&n->lock);
	pthread_rwlock_unlock(&n->tables);
}

void names_stats(struct names *n, struct names_stats *out)
{
	pthread_rwlock_rdlock(&n->tables);
	pthread_mutex_lock(&n->lock);
	*out = (struct names_stats){ .nbinaries = n->binaries.n,
				     .bytes = n->bytes,
				     .nruns = n->nruns,
				     .nfailed = n->nfailed,
				     .nfetched = n->nfetched,
				     .nloaded = n->nloaded };
	for (size_t i = 0; i < n->binaries.n; i++) {
		out->naddresses += n->binaries.at[i]->entries.n;
		out->nnamed += n->binaries.at[i]->nnamed;
	}
	pthread_mutex_unlock(&n->lock);
	pthread_rwlock_unlock(&n->tables);
}

uint64_t names_disk_bytes(const struct names *n)
{
	return n->disk_bytes;
}

struct names *names_new(const struct names_params *params)
{
	struct names *n = xcalloc(1, sizeof(*n));

	n->params = *params;
	if (n->params.tidy_ms <= 0)
		n->params.tidy_ms = 3600 * 1000;
	if (params->dir && mkdir(params->dir, 0777) != 0 && errno != EEXIST) {
		log_error("names are not kept: mkdir %s: %s", params->dir, strerror(errno));
		n->params.dir = NULL;
	}
	n->namer = (struct store_namer){ .ctx = n,
					 .begin = begin,
					 .end = end,
					 .binary = binary,
					 .find = find,
					 .wait = wait_for_names,
					 .nfound = nfound,
					 .readable = readable,
					 .generation = generation };
	pthread_rwlock_init(&n->tables, NULL);
	pthread_mutex_init(&n->lock, NULL);
	names_readable_init(&n->readable, params->max_bytes / READABLE_SHARE);
	pthread_cond_init(&n->wake, NULL);
	pthread_cond_init(&n->wake_fetcher, NULL);
	pthread_cond_init(&n->idle, NULL);
	names_tidy_disk(n);
	n->has_thread = pthread_create(&n->thread, NULL, names_work, n) == 0;
	if (*params->urls)
		n->has_fetcher = pthread_create(&n->fetcher, NULL, names_fetch, n) == 0;
	return n;
}

void names_free(struct names *n)
{
	if (!n)
		return;
	pthread_mutex_lock(&n->lock);
	n->is_stopping = true;
	pthread_cond_broadcast(&n->wake);
	pthread_cond_broadcast(&n->wake_fetcher);
	pthread_cond_broadcast(&n->idle);
	pthread_mutex_unlock(&n->lock);
	if (n->has_thread)
		pthread_join(n->thread, NULL);
	if (n->has_fetcher)
		pthread_join(n->fetcher, NULL);
	for (size_t i = 0; i < n->binaries.n; i++)
		names_free_binary(n, n->binaries.at[i]);
	vec_release(&n->binaries);
	vec_release(&n->queue.items);
	vec_release(&n->fetches.items);
	map_release(&n->map);
	pthread_rwlock_destroy(&n->tables);
	pthread_mutex_destroy(&n->lock);
	names_readable_release(&n->readable);
	pthread_cond_destroy(&n->wake);
	pthread_cond_destroy(&n->wake_fetcher);
	pthread_cond_destroy(&n->idle);
	free(n);
}

const struct store_namer *names_namer(struct names *n)
{
	return &n->namer;
}
