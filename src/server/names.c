#include "server/names.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/vec.h"
#include "base/wait.h"
#include "http/client.h"
#include "server/log.h"
#include "server/names_child.h"

enum {
	WAIT_MS = 2000,		   /* that a question waits for names */
	RETRY_MS = 10 * 60 * 1000, /* until it is looked again for what was not there */
	MAX_BINARIES = 50000,
	MAX_WANTED = 200000, /* addresses of a binary that wait to be named */
	MAX_FETCHES = 100,   /* that wait */
	FETCH_MS = 120000,
};
/* No file has more; what says so lies. */
#define MAX_OFFSET (UINT64_C(1) << 43)
#define MAX_FETCHED (UINT64_C(256) << 20)

struct entry {
	uint64_t key;
	uint32_t first, n; /* frames; none if nobody knows */
};

enum state {
	ASKABLE,  /* what is not known is to be looked for */
	FETCHING, /* from a debuginfod server, for which nobody waits */
	NOTHING,  /* is there, until `retry_ms` */
};

struct store_binary {
	char *build_id, *file;
	/* under names.tables */
	vec(struct entry) entries;
	struct map map;
	vec(struct profile_frame) frames;
	struct strings strings; /* of the frames */
	uint64_t nnamed, bytes;
	/* under names.lock */
	enum state state;
	int64_t retry_ms;
	uint64_t last_use;
	vec(struct names_place) wanted;
	bool is_queued;
	uint64_t version;			   /* goes up when there is other debug info */
	char *local_said, *fetch_said, *read_said; /* NULL: it was not asked */
};

struct names {
	struct names_params params;
	struct store_namer namer;
	pthread_rwlock_t tables; /* readers go first: they do not wait, and there is one writer */
	pthread_mutex_t lock;	 /* taken after `tables`, if both are */
	pthread_cond_t wake, wake_fetcher, idle;
	vec(struct store_binary *) binaries, queue, fetches;
	struct map map;
	uint64_t clock, bytes, nruns, nfailed, nfetched;
	bool is_busy;
	atomic_bool is_stopping;
	/* Names that linkers know, and how people read them, of as many as there is room for; under
	 * a lock of their own. */
	pthread_mutex_t reading;
	struct strings mangled, texts;
	vec(struct str) readable; /* of each in `mangled`; p == NULL: it is none */
	pthread_t thread, fetcher;
	bool has_thread, has_fetcher;
};

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
	b->file = strndup(file.p, file.n);
	strings_init(&b->strings);
	map_add(&n->map, hash_bytes(map_seed(), build_id.p, build_id.n), n->binaries.n);
	vec_push(&n->binaries, b);
	return b;
}

/* Under `tables` as a writer. */
static void forget_names(struct names *n, struct store_binary *b)
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
	forget_names(n, b);
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

static uint32_t find_entry(const struct store_binary *b, uint64_t key)
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
	i = find_entry(b, at.key);
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
	while ((n->queue.n || n->is_busy) && !n->is_stopping && (left = until - clock_now_ms()) > 0)
		wait_for_ms(&n->idle, &n->lock, (int)left);
	is_done = (!n->queue.n && !n->is_busy) || n->nruns != nruns;
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

/* ---- names come in */

static struct str keep_text(struct store_binary *b, const struct profile *p, uint32_t string)
{
	uint32_t i = strings_add(&b->strings, profile_str(p, string)); /* it may move the table */

	return b->strings.at[i];
}

static void add_frames(struct store_binary *b, const struct profile *p, const struct location *l)
{
	for (uint32_t i = 0; i < l->nlines; i++) {
		const struct line *line = &p->lines[l->first_line + i];
		struct profile_frame f = { .line = line->line, .column = line->column };

		if (line->function != NONE) {
			const struct function *from = &p->functions[line->function];

			f.name = keep_text(b, p, from->name);
			f.system_name = keep_text(b, p, from->system_name);
			f.file = keep_text(b, p, from->filename);
			f.start_line = from->start_line;
		}
		vec_push(&b->frames, f);
	}
}

/* Names that nobody asked for lately make room. */
static void drop_oldest(struct names *n, const struct store_binary *but)
{
	while (n->bytes > n->params.max_bytes) {
		struct store_binary *oldest = NULL;

		for (size_t i = 0; i < n->binaries.n; i++) {
			struct store_binary *b = n->binaries.at[i];

			if (b != but && b->bytes && (!oldest || b->last_use < oldest->last_use))
				oldest = b;
		}
		if (!oldest)
			return;
		forget_names(n, oldest);
	}
}

static uint64_t version_of(struct names *n, const struct store_binary *b)
{
	uint64_t version;

	pthread_mutex_lock(&n->lock);
	version = b->version;
	pthread_mutex_unlock(&n->lock);
	return version;
}

/* What was found in a file that has been replaced meanwhile is of no use. */
static void take_names(struct names *n, struct store_binary *b, const struct names_job *job,
		       const struct profile *p, uint64_t version)
{
	const struct names_place *places = job->places;
	size_t nplaces;

	pthread_rwlock_wrlock(&n->tables);
	nplaces = version_of(n, b) == version ? job->n : 0;
	for (size_t i = 0; i < nplaces; i++) {
		const struct location *l = &p->locations[i];
		struct entry e = { .key = places[i].key, .first = (uint32_t)b->frames.n };

		if (find_entry(b, e.key) != MAP_NONE)
			continue;
		if (location_has_name(p, l) && l->nlines <= UINT32_MAX - b->frames.n) {
			e.n = l->nlines;
			add_frames(b, p, l);
		}
		b->nnamed += e.n > 0;
		map_add(&b->map, hash_mix(map_seed(), e.key), b->entries.n);
		vec_push(&b->entries, e);
	}
	n->bytes -= b->bytes;
	b->bytes = b->entries.cap * (sizeof(struct entry) + 2 * sizeof(struct map_slot)) +
		   b->frames.cap * sizeof(struct profile_frame) + arena_bytes(&b->strings.bytes);
	n->bytes += b->bytes;
	pthread_mutex_lock(&n->lock);
	drop_oldest(n, b);
	pthread_mutex_unlock(&n->lock);
	pthread_rwlock_unlock(&n->tables);
}

/* ---- the thread that asks a child */

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

	qsort(at, n, sizeof(*at), by_mapping);
	for (size_t i = 0; i < n; i++)
		if (!left || by_mapping(&at[left - 1], &at[i]) != 0)
			at[left++] = at[i];
	return left;
}

static void say(char **what, const char *text)
{
	free(*what);
	*what = strdup(text);
}

static bool ask_child(struct names *n, struct store_binary *b, const char *path,
		      const struct names_place *places, size_t nplaces, struct err *e)
{
	struct arena a = { 0 };
	struct strings strings;
	struct profile p;
	struct names_job job = { .program = n->params.program,
				 .path = path,
				 .build_id = str_of(b->build_id),
				 .places = places,
				 .n = nplaces,
				 .stop = &n->is_stopping };
	uint64_t version = version_of(n, b);
	bool ok;

	strings_init(&strings);
	ok = names_child_ask(&job, &a, &strings, &p, e);
	if (ok)
		take_names(n, b, &job, &p, version);
	strings_release(&strings);
	arena_release(&a);
	return ok;
}

static bool ask_upload(struct names *n, struct store_binary *b, const struct names_place *places,
		       size_t nplaces)
{
	struct debuginfo_file file;
	struct arena a = { 0 };
	struct err e;
	bool ok = debuginfo_find(n->params.files, str_of(b->build_id), &a, &file);

	if (ok) {
		debuginfo_use(n->params.files, str_of(b->build_id));
		ok = ask_child(n, b, file.path, places, nplaces, &e);
		pthread_mutex_lock(&n->lock);
		say(&b->read_said, ok ? "it has been read" : e.text);
		pthread_mutex_unlock(&n->lock);
		if (!ok && !n->is_stopping)
			log_error("debug info of %s (%s) cannot be read: %s", b->file, b->build_id,
				  e.text);
	}
	arena_release(&a);
	return ok;
}

static bool ask_local(struct names *n, struct store_binary *b, const struct names_place *places,
		      size_t nplaces)
{
	struct err e;
	bool ok;

	if (!n->params.is_local || b->file[0] != '/')
		return false;
	ok = ask_child(n, b, b->file, places, nplaces, &e);
	pthread_mutex_lock(&n->lock);
	say(&b->local_said, ok ? "it has been read" : e.text);
	pthread_mutex_unlock(&n->lock);
	return ok;
}

/* Nobody on this machine knows. */
static void ask_others(struct names *n, struct store_binary *b, uint64_t version)
{
	pthread_mutex_lock(&n->lock);
	b->wanted.n = 0;
	if (b->version != version) {
		b->state = ASKABLE; /* it came while nobody had it */
	} else if (*n->params.urls && n->fetches.n < MAX_FETCHES) {
		b->state = FETCHING;
		vec_push(&n->fetches, b);
		pthread_cond_signal(&n->wake_fetcher);
	} else {
		b->state = NOTHING;
		b->retry_ms = clock_now_ms() + RETRY_MS;
	}
	pthread_mutex_unlock(&n->lock);
}

static void name_wanted(struct names *n, struct store_binary *b, struct names_place *places,
			size_t nplaces)
{
	uint64_t version = version_of(n, b);
	bool ok;

	nplaces = unique_places(places, nplaces);
	ok = ask_upload(n, b, places, nplaces) || ask_local(n, b, places, nplaces);
	if (!ok)
		ask_others(n, b, version);
	pthread_mutex_lock(&n->lock);
	n->nruns++;
	n->nfailed += !ok;
	pthread_mutex_unlock(&n->lock);
}

static void *work(void *ctx)
{
	struct names *n = ctx;
	int64_t next_tidy = clock_now_ms() + n->params.tidy_ms;

	pthread_mutex_lock(&n->lock);
	while (!n->is_stopping) {
		struct store_binary *b;
		struct names_place *places;
		size_t nplaces;

		if (n->params.tidy && clock_now_ms() >= next_tidy) {
			pthread_mutex_unlock(&n->lock);
			n->params.tidy(n->params.ctx);
			next_tidy = clock_now_ms() + n->params.tidy_ms;
			pthread_mutex_lock(&n->lock);
		}
		if (!n->queue.n) {
			wait_for_ms(&n->wake, &n->lock, (int)n->params.tidy_ms);
			continue;
		}
		b = n->queue.at[0];
		memmove(n->queue.at, n->queue.at + 1, --n->queue.n * sizeof(*n->queue.at));
		b->is_queued = false;
		places = b->wanted.at;
		nplaces = b->wanted.n;
		memset(&b->wanted, 0, sizeof(b->wanted));
		n->is_busy = true;
		pthread_mutex_unlock(&n->lock);
		if (nplaces)
			name_wanted(n, b, places, nplaces);
		free(places);
		pthread_mutex_lock(&n->lock);
		n->is_busy = false;
		pthread_cond_broadcast(&n->idle);
	}
	pthread_mutex_unlock(&n->lock);
	return NULL;
}

/* ---- the thread that asks debuginfod servers */

static bool fetch_one(struct names *n, struct http_client *client, const char *url,
		      struct store_binary *b, struct err *e)
{
	struct http_response r = { 0 };
	struct http_request q = { .url = url,
				  .timeout_ms = FETCH_MS,
				  .max_bytes = n->params.max_file < MAX_FETCHED ? n->params.max_file
										: MAX_FETCHED,
				  .canceled = &n->is_stopping };
	enum debuginfo_put how;
	bool ok = http_send(client, &q, &r, e);

	if (ok && r.status != 200)
		ok = err_set(e, ERR_NOTFOUND, "%.*s", STR_ARG(buf_view(&r.status_text)));
	ok = ok && debuginfo_put(n->params.files,
				 &(struct debuginfo_new){ .build_id = str_of(b->build_id),
							  .name = str_of(b->file),
							  .body = buf_view(&r.body),
							  .is_fetched = true },
				 &how, e);
	http_response_release(&r);
	return ok;
}

/* Debug information first, then the binary itself, from each server in turn. */
static bool fetch(struct names *n, struct http_client *client, struct store_binary *b,
		  struct buf *said)
{
	static const char *const kinds[] = { "debuginfo", "executable" };
	struct str urls = str_of(n->params.urls);

	while (urls.n && !n->is_stopping) {
		struct str url = str_cut(&urls, ' ');

		while (str_has_suffix(url, STR("/")))
			url.n--;
		for (size_t i = 0; url.n && i < sizeof(kinds) / sizeof(*kinds); i++) {
			struct buf full = { 0 };
			struct err e;
			bool ok;

			buf_printf(&full, "%.*s/buildid/%s/%s%c", STR_ARG(url), b->build_id,
				   kinds[i], '\0');
			ok = fetch_one(n, client, full.p, b, &e);
			buf_printf(said, "%s%s: %s", said->n ? "; " : "", full.p,
				   ok ? "it has been fetched" : e.text);
			buf_release(&full);
			if (ok)
				return true;
		}
	}
	return false;
}

static void *work_fetching(void *ctx)
{
	struct names *n = ctx;
	struct http_client *client = http_client_new(&(struct http_tls){ 0 });

	pthread_mutex_lock(&n->lock);
	while (!n->is_stopping) {
		struct store_binary *b;
		struct buf said = { 0 };
		bool ok;

		if (!n->fetches.n) {
			pthread_cond_wait(&n->wake_fetcher, &n->lock);
			continue;
		}
		b = n->fetches.at[0];
		memmove(n->fetches.at, n->fetches.at + 1, --n->fetches.n * sizeof(*n->fetches.at));
		pthread_mutex_unlock(&n->lock);
		ok = fetch(n, client, b, &said);
		buf_char(&said, '\0');
		pthread_mutex_lock(&n->lock);
		say(&b->fetch_said, said.p);
		if (b->state == FETCHING) /* nobody has uploaded it meanwhile */
			b->state = ok ? ASKABLE : NOTHING;
		b->retry_ms = clock_now_ms() + RETRY_MS;
		n->nfetched += ok;
		buf_release(&said);
	}
	pthread_mutex_unlock(&n->lock);
	http_client_free(client);
	return NULL;
}

/* ---- */

void names_changed(struct names *n, struct str build_id)
{
	struct store_binary *b;

	pthread_rwlock_wrlock(&n->tables);
	pthread_mutex_lock(&n->lock);
	b = find_binary(n, build_id);
	if (b) {
		forget_names(n, b);
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
	why->is_pending = b->state == FETCHING || b->is_queued;
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
					 .readable = readable };
	pthread_rwlock_init(&n->tables, NULL);
	pthread_mutex_init(&n->lock, NULL);
	pthread_mutex_init(&n->reading, NULL);
	strings_init(&n->mangled);
	strings_init(&n->texts);
	pthread_cond_init(&n->wake, NULL);
	pthread_cond_init(&n->wake_fetcher, NULL);
	pthread_cond_init(&n->idle, NULL);
	n->has_thread = pthread_create(&n->thread, NULL, work, n) == 0;
	if (*params->urls)
		n->has_fetcher = pthread_create(&n->fetcher, NULL, work_fetching, n) == 0;
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
