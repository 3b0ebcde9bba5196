/* names_fetch.c - asks debuginfod servers for what nobody on this machine has. */
#include <string.h>

#include "http/client.h"
#include "server/names_inside.h"

enum {
	MAX_FETCHES = 1000, /* that wait */
	FETCH_MS = 120000,
};
#define MAX_FETCHED (UINT64_C(256) << 20)

/* Can they have more than there is? */
static bool is_of_use(const struct names *n, const struct store_binary *b)
{
	struct debuginfo_file file;
	struct arena a = { 0 };
	bool is_there = debuginfo_find(n->params.files, str_of(b->build_id), &a, &file);

	arena_release(&a);
	return !is_there || file.is_unreadable || !file.has.has_lines;
}

/* What was fetched and is of no use is not fetched again before its time. */
bool names_queue_fetch(struct names *n, struct store_binary *b)
{
	if (b->is_fetching)
		return true;
	if (!n->has_fetcher || b->retry_ms || n->fetches.items.n >= MAX_FETCHES || !is_of_use(n, b))
		return false;
	b->is_fetching = true;
	names_push(&n->fetches, b);
	pthread_cond_signal(&n->wake_fetcher);
	return true;
}

static bool fetch_one(struct names *n, struct http_client *client, const char *url,
		      const struct store_binary *b, const char *name, struct err *e)
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
							  .name = str_of(name),
							  .body = buf_view(&r.body),
							  .is_fetched = true },
				 &how, e);
	http_response_release(&r);
	return ok && (how != DEBUGINFO_THERE ||
		      err_set(e, ERR_NOTFOUND, "it tells no more than what is here"));
}

/* Debug information first, then the binary itself, from each server in turn. */
static bool fetch(struct names *n, struct http_client *client, const struct store_binary *b,
		  const char *name, struct buf *said)
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
			ok = fetch_one(n, client, full.p, b, name, &e);
			buf_printf(said, "%s%s: %s", said->n ? "; " : "", full.p,
				   ok ? "it has been fetched" : e.text);
			buf_release(&full);
			if (ok)
				return true;
		}
	}
	return false;
}

/* Under the lock, which it lets go of. */
static void fetch_next(struct names *n, struct http_client *client, struct store_binary *b)
{
	struct arena a = { 0 };
	const char *name = b->npaths ? str_dup(&a, str_of(b->paths[0])) : "";
	struct buf said = { 0 };
	bool ok;

	pthread_mutex_unlock(&n->lock);
	ok = fetch(n, client, b, name, &said);
	buf_char(&said, '\0');
	if (ok)
		names_changed(n, str_of(b->build_id));
	pthread_mutex_lock(&n->lock);
	names_say(&b->fetch_said, said.p);
	names_retry_later(n, b);
	b->is_fetching = false;
	n->nfetched += ok;
	buf_release(&said);
	arena_release(&a);
}

void *names_fetch(void *ctx)
{
	struct names *n = ctx;
	struct http_client *client = http_client_new(&(struct http_tls){ 0 });

	pthread_mutex_lock(&n->lock);
	while (!n->is_stopping) {
		struct store_binary *b = names_pop(&n->fetches);

		if (b)
			fetch_next(n, client, b);
		else
			pthread_cond_wait(&n->wake_fetcher, &n->lock);
	}
	pthread_mutex_unlock(&n->lock);
	http_client_free(client);
	return NULL;
}
