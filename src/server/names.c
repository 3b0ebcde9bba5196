#include "server/names_inside.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/wait.h"

enum {
	WAIT_MS = 2000, /* that a question waits for names */
	MAX_BINARIES = 50000,
	MAX_WANTED = 200000, /* addresses of a binary that wait to be named */
};
/* No file has more; what says so lies. */
#define MAX_OFFSET (UINT64_C(1) << 43)

/* ---- binaries */

static bool same_id(const void *ctx, uint32_t index)
{
	const struct names *n = ((const void *const *)ctx)[0];
	const struct str *id = ((const void *const *)ctx)[1];

	return str_eq(str_of(n->binaries.at[index]->build_id), *id);
}

/* Under the lock. */
static struct store_binary *find_binary(const struct names *n, struct str build_id)
{
	const void *key[2] = { n, &build_id };
	uint32_t at =
		map_get(&n->map, hash_bytes(map_seed(), build_id.p, build_id.n), same_id, key);

	return at == MAP_NONE ? NULL : n->binaries.at[at];
}

static struct store_binary *add_binary(struct names *n, struct str build_id, struct str file)
{
	struct store_binary *b;

	if (n->binaries.n >= MAX_BINARIES)
		return NULL;
	b = xcalloc(1, sizeof(*b));
	b->build_id = strndup(build_id.p, build_id.n);
	b->file = strndup(file.p, file.n < PATH_MAX ? file.n : PATH_MAX - 1);
	strings_init(&b->strings);
	map_add(&n->map, hash_bytes(map_seed(), build_id.p, build_id.n), n->binaries.n);
	vec_push(&n->binaries, b);
	return b;
}

void names_forget(struct names *n, struct store_binary *b)
{
	vec_release(&b->entries);
	vec_release(&b->frames);
	map_release(&b->map);
	b->map = (struct map){ 0 };
	strings_release(&b->strings);
	strings_init(&b->strings);
	n->bytes -= b->bytes;
	b->bytes = b->nnamed = 0;
}

static void free_binary(struct names *n, struct store_binary *b)
{
	names_forget(n, b);
	strings_release(&b->strings);
	vec_release(&b->wanted);
	free(b->build_id);
	free(b->file);
	free(b->local_said);
	free(b->fetch_said);
	free(b->read_said);
	free(b);
}

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

static struct store_binary *binary(void *ctx, struct str build_id, struct str file)
{
	struct names *n = ctx;
	struct store_binary *b;

	if (!debuginfo_is_id(build_id))
		return NULL;
	pthread_mutex_lock(&n->lock);
	b = find_binary(n, build_id);
	if (!b)
		b = add_binary(n, build_id, file);
	if (b) {
		b->last_use = ++n->clock;
		if (b->state == NOTHING && clock_now_ms() >= b->retry_ms)
			b->state = ASKABLE;
		if (b->state != ASKABLE && !b->entries.n)
			b = NULL;
	}
	pthread_mutex_unlock(&n->lock);
	return b;
}

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
	bool is_asked = false;

	pthread_mutex_lock(&n->lock);
	if (b->state == ASKABLE && b->wanted.n < MAX_WANTED) {
		is_asked = true;
		vec_push(&b->wanted, *at);
		if (!b->is_queued) {
			b->is_queued = true;
			vec_push(&n->queue, b);
			pthread_cond_signal(&n->wake);
		}
	}
	pthread_mutex_unlock(&n->lock);
	return is_asked;
}

static uint32_t find(void *ctx, struct store_binary *b, const struct store_place *place,
		     const struct profile_frame **frames, uint64_t *nmissing)
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
	*frames = b->frames.at + b->entries.at[i].first;
	return b->entries.at[i].n;
}

static bool wait_for_names(void *ctx)
{
	struct names *n = ctx;
	int64_t until = clock_now_ms() + WAIT_MS, left;
	uint64_t nruns;
	bool is_done;

	pthread_mutex_lock(&n->lock);
	nruns = n->nruns;
	while ((n->queue.n || n->busy_with) && !n->is_stopping &&
	       (left = until - clock_now_ms()) > 0)
		wait_for_ms(&n->idle, &n->lock, (int)left);
	is_done = (!n->queue.n && !n->busy_with) || n->nruns != nruns;
	pthread_mutex_unlock(&n->lock);
	return is_done;
}

/* Under the lock. */
static struct str demangle(struct names *n, struct str name)
{
	struct buf text = { 0 };
	struct str out = { 0 };

	if (demangle_name(&text, name, DEMANGLE_DEFAULT)) {
		uint32_t i = strings_add(&n->texts, buf_view(&text));

		out = n->texts.at[i];
	}
	buf_release(&text);
	return out;
}

static struct str readable(void *ctx, struct str name)
{
	struct names *n = ctx;
	struct str out = { 0 };
	uint32_t i;

	pthread_mutex_lock(&n->reading);
	i = strings_find(&n->mangled, name);
	if (i) {
		out = n->readable.at[i];
	} else if (arena_bytes(&n->mangled.bytes) + arena_bytes(&n->texts.bytes) <
		   n->params.max_bytes / 2) {
		i = strings_add(&n->mangled, name);
		out = demangle(n, name);
		while (n->readable.n <= i)
			vec_push(&n->readable, ((struct str){ 0 }));
		n->readable.at[i] = out;
	}
	pthread_mutex_unlock(&n->reading);
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
	n->generation++;
	pthread_mutex_lock(&n->lock);
	b = find_binary(n, build_id);
	if (b) {
		names_forget(n, b);
		b->state = ASKABLE;
		b->version++;
		free(b->read_said);
		b->read_said = NULL;
	}
	pthread_mutex_unlock(&n->lock);
	pthread_rwlock_unlock(&n->tables);
}

static void add_look(struct names_why *why, const char *where, const char *result)
{
	why->looks[why->nlooks++] = (struct names_look){ where, result };
}

static void explain_binary(struct names *n, const struct store_binary *b, struct arena *a,
			   bool is_uploaded, struct names_why *why)
{
	const char *file = str_dup(a, str_of(b->file));

	why->naddresses = b->entries.n;
	why->nnamed = b->nnamed;
	why->is_pending = b->state == FETCHING || b->is_queued || n->busy_with == b;
	add_look(why, "debug info of this server",
		 !is_uploaded	? "there is none of this build id"
		 : b->read_said ? str_dup(a, str_of(b->read_said))
				: "it is there, and has not been asked yet");
	add_look(why, *file ? file : "the file itself",
		 !n->params.is_local ? "not looked at: the server runs without --symbolize-local"
		 : b->local_said     ? str_dup(a, str_of(b->local_said))
				     : "it has not been asked");
	add_look(why, *n->params.urls ? str_dup(a, str_of(n->params.urls)) : "debuginfod",
		 !*n->params.urls	? "not asked: DEBUGINFOD_URLS is not set"
		 : b->state == FETCHING ? "it is being asked"
		 : b->fetch_said	? str_dup(a, str_of(b->fetch_said))
					: "it has not been asked");
}

void names_explain(struct names *n, struct str build_id, struct str file, struct arena *a,
		   struct names_why *why)
{
	struct debuginfo_file uploaded;
	bool is_uploaded = debuginfo_find(n->params.files, build_id, a, &uploaded);
	struct store_binary *b;

	*why = (struct names_why){ 0 };
	pthread_rwlock_rdlock(&n->tables);
	pthread_mutex_lock(&n->lock);
	b = find_binary(n, build_id);
	if (!b)
		b = add_binary(n, build_id, file);
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
				     .nfetched = n->nfetched };
	for (size_t i = 0; i < n->binaries.n; i++) {
		out->naddresses += n->binaries.at[i]->entries.n;
		out->nnamed += n->binaries.at[i]->nnamed;
	}
	pthread_mutex_unlock(&n->lock);
	pthread_rwlock_unlock(&n->tables);
}

struct names *names_new(const struct names_params *params)
{
	struct names *n = xcalloc(1, sizeof(*n));

	n->params = *params;
	if (n->params.tidy_ms <= 0)
		n->params.tidy_ms = 3600 * 1000;
	n->namer = (struct store_namer){ .ctx = n,
					 .begin = begin,
					 .end = end,
					 .binary = binary,
					 .find = find,
					 .wait = wait_for_names,
					 .readable = readable,
					 .generation = generation };
	pthread_rwlock_init(&n->tables, NULL);
	pthread_mutex_init(&n->lock, NULL);
	pthread_mutex_init(&n->reading, NULL);
	strings_init(&n->mangled);
	strings_init(&n->texts);
	pthread_cond_init(&n->wake, NULL);
	pthread_cond_init(&n->wake_fetcher, NULL);
	pthread_cond_init(&n->idle, NULL);
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
		free_binary(n, n->binaries.at[i]);
	vec_release(&n->binaries);
	vec_release(&n->queue);
	vec_release(&n->fetches);
	map_release(&n->map);
	pthread_rwlock_destroy(&n->tables);
	pthread_mutex_destroy(&n->lock);
	pthread_mutex_destroy(&n->reading);
	strings_release(&n->mangled);
	strings_release(&n->texts);
	vec_release(&n->readable);
	pthread_cond_destroy(&n->wake);
	pthread_cond_destroy(&n->wake_fetcher);
	pthread_cond_destroy(&n->idle);
	free(n);
}

const struct store_namer *names_namer(struct names *n)
{
	return &n->namer;
}
