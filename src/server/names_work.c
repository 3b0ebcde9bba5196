/* names_work.c - finds out names: a child reads debug information, debuginfod servers have more. */
#include <stdlib.h>
#include <string.h>

#include "base/wait.h"
#include "http/client.h"
#include "server/log.h"
#include "server/names_inside.h"

enum {
	MAX_FETCHES = 100, /* that wait */
	FETCH_MS = 120000,
};
#define MAX_FETCHED (UINT64_C(256) << 20)

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
		names_forget(n, oldest);
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
		struct names_entry e = { .key = places[i].key, .first = (uint32_t)b->frames.n };

		if (names_find_entry(b, e.key) != MAP_NONE)
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
	b->bytes = b->entries.cap * (sizeof(struct names_entry) + 2 * sizeof(struct map_slot)) +
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
		b->retry_ms = clock_now_ms() + NAMES_RETRY_MS;
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

void *names_work(void *ctx)
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
		b = n->queue.at[--n->queue.n];
		b->is_queued = false;
		places = b->wanted.at;
		nplaces = b->wanted.n;
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

void *names_fetch(void *ctx)
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
		n->generation += ok;
		b->retry_ms = clock_now_ms() + NAMES_RETRY_MS;
		n->nfetched += ok;
		buf_release(&said);
	}
	pthread_mutex_unlock(&n->lock);
	http_client_free(client);
	return NULL;
}
