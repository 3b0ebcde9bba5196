#include "server/live.h"

#include <stdlib.h>

#include "base/wait.h"
#include "http/stream.h"
#include "server/gate.h"
#include "server/limits.h"
#include "server/log.h"
#include "server/viewer.h"

#define SECOND INT64_C(1000000000)
#define MILLISECOND INT64_C(1000000)
enum {
	TICK_MS = 500, /* so that is how often pages hear of something */
	BEAT_MS = 15000,
	MAX_AGE_MS = 15 * 60 * 1000,
	WAIT_TURN_MS = 100, /* for one of the queries' turns */
	REST = 3,	    /* times as long as a drawing took, so that others have theirs */
	MEMORY_PART = 8,    /* of that for requests, which streams may have */
	MAX_UNREAD_BYTES = WEB_FEED_BYTES, /* of which an event is half */
	MIN_SLIDE_S = 2,		   /* a window that moves on has to be drawn again */
	SLIDES = 30,			   /* in the time that a window has */
};

struct watch {
	struct arena arena; /* of what the request says */
	struct request request;
	struct http_stream *stream;
	struct web_feed *feed;
	struct str client;     /* whose turns it takes */
	int64_t window, since; /* of these one is 0 */
	int64_t start_ms, beat_ms, rest_ms, slide_at;
	struct seen {
		uint64_t nputs; /* of the store */
		uint64_t nall;	/* profiles of the selection */
		uint64_t n;	/* those in the window, which began at `from` */
		int64_t from;
		bool has_any;
	} seen; /* when it was last looked at */
	bool is_told;
};

struct live {
	struct server *server;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	vec(struct watch *) watches; /* the thread's own */
	atomic_bool is_stopping;
	bool has_thread;
	/* Under the lock, which nobody has while the store is asked: */
	vec(struct watch *) new;
	size_t nopen;
	uint64_t nevents;
};

/* ---- a stream */

static void watch_free(struct watch *w)
{
	http_stream_end(w->stream);
	web_feed_free(w->feed);
	selector_release(&w->request.selector);
	arena_release(&w->arena);
	free(w);
}

static int64_t window_start(const struct watch *w, int64_t now)
{
	return w->since ? w->since : now - w->window;
}

/* Whole milliseconds, as the event has them: who asks for these times gets the same. */
static struct store_query window_query(struct live *l, const struct watch *w, int64_t now)
{
	return (struct store_query){ .matchers = w->request.selector.matchers.at,
				     .nmatchers = w->request.selector.matchers.n,
				     .from = window_start(w, now) / MILLISECOND * MILLISECOND,
				     .to = now / MILLISECOND * MILLISECOND,
				     .stop = &l->is_stopping };
}

/* False: that cannot be told. */
static bool find_newest(struct live *l, struct store_query query, bool *has_any,
			struct store_meta *newest, struct arena *a)
{
	struct store_meta *metas = NULL;
	struct err e = { 0 };
	size_t n = 0;

	query.limit = 1;
	if (!store_find(l->server->store, &query, a, &metas, &n, &e) && e.kind != ERR_NOTFOUND)
		return false;
	*has_any = n > 0;
	if (n)
		*newest = metas[n - 1];
	return true;
}

/* How many there are; of all times, which two zeros mean, memory knows it. False: that cannot be
 * told. */
static bool count(struct live *l, struct store_query query, int64_t from, int64_t to, uint64_t *n,
		  struct arena *a)
{
	struct store_name *names;
	size_t nnames;
	struct err e;

	query.from = from;
	query.to = to;
	if (!store_names(l->server->store, &query, STR("type"), a, &names, &nnames, &e))
		return false;
	*n = 0;
	for (size_t i = 0; i < nnames; i++)
		*n += names[i].nprofiles;
	return true;
}

/* ---- events */

static bool put_picture(struct live *l, struct watch *w, const struct store_query *query,
			struct buf *out, struct err *e)
{
	struct session s = { .threads = 1 };
	struct web_feed_source source = { .session = &s, .stop = &l->is_stopping };
	struct store_merged merged;
	bool ok;

	strings_init(&s.strings);
	ok = store_merge(l->server->store, query, STORE_AS_TYPE, &s.arena, &s.strings, &merged, e);
	if (ok) {
		s.profile = merged.profile;
		source.bytes = web_session_bytes(&s);
		ok = viewer_take(l->server, source.bytes) ||
		     err_set(e, ERR_LIMIT, "max-memory: there is none left to show this");
	}
	if (!ok) {
		session_release(&s);
		return false;
	}
	return web_feed_put(w->feed, l->server->site, &source, out, e);
}

static void put_problem(struct buf *event, const struct err *e)
{
	event->n = 0;
	buf_puts(event, "event: problem\ndata: {\"error\":");
	json_put(event, str_of(e->text));
	buf_puts(event, "}\n\n");
}

static void put_update(struct live *l, struct watch *w, const struct store_query *query,
		       const struct store_meta *newest, struct buf *event)
{
	struct err e = { 0 };
	bool ok = true;

	buf_printf(event, "event: update\ndata: {\"seconds\":%.3f",
		   (double)(query->to - query->from) / 1e9);
	json_time(event, "from", query->from);
	json_time(event, "to", query->to);
	json_time(event, "newest", newest ? newest->created : 0);
	if (newest) {
		buf_char(event, ',');
		ok = put_picture(l, w, query, event, &e);
	} else {
		web_feed_forget(w->feed);
	}
	if (ok)
		buf_puts(event, "}\n\n");
	else
		put_problem(event, &e);
}

static bool tell(struct live *l, struct watch *w, const struct store_query *query,
		 const struct store_meta *newest)
{
	struct buf event = { 0 };
	int64_t start = clock_now_ms();
	bool ok;

	put_update(l, w, query, newest, &event);
	ok = http_stream_write(w->stream, buf_view(&event));
	buf_release(&event);
	w->is_told = true;
	w->beat_ms = clock_now_ms();
	w->rest_ms = start + TICK_MS + REST * (w->beat_ms - start);
	pthread_mutex_lock(&l->lock);
	l->nevents++;
	pthread_mutex_unlock(&l->lock);
	return ok;
}

static int64_t slide_ns(const struct watch *w)
{
	int64_t slide = w->window / SLIDES;

	return slide > MIN_SLIDE_S * SECOND ? slide : MIN_SLIDE_S * SECOND;
}

/* What comes while a page is busy with the last event, or we were for long, is told together. */
static bool may_be_told(const struct watch *w)
{
	return clock_now_ms() >= w->rest_ms && !http_stream_unread(w->stream);
}

/* What has to be drawn is a query as others are. False: it is over. */
static bool tell_in_turn(struct live *l, struct watch *w, const struct store_query *query,
			 const struct store_meta *newest, bool *is_told)
{
	struct turns *turns = l->server->limits->turns;
	bool ok;

	*is_told = !newest || turns_take(turns, w->client, WAIT_TURN_MS, &l->is_stopping);
	if (!*is_told)
		return true;
	ok = tell(l, w, query, newest);
	if (newest)
		turns_give(turns, w->client);
	return ok;
}

/* What comes may be older than what has come before, so that only the number of those in the window
 * tells of it. Counted before it is drawn: what comes then is told again. */
static bool see(struct live *l, const struct watch *w, const struct store_query *query,
		struct seen *now, struct store_meta *newest, bool *is_new, struct arena *a)
{
	uint64_t n;

	if (!find_newest(l, *query, &now->has_any, newest, a) ||
	    !count(l, *query, w->seen.from, query->to, &n, a) ||
	    !count(l, *query, query->from, query->to, &now->n, a))
		return false;
	now->from = query->from;
	*is_new = !w->is_told || now->has_any != w->seen.has_any || n != w->seen.n;
	return true;
}

/* False: it is over. */
static bool look(struct live *l, struct watch *w, uint64_t nputs, struct arena *a)
{
	int64_t now = time_now();
	struct store_query query = window_query(l, w, now);
	/* Profiles leave the window, and those whose times are ahead come into it. */
	bool is_due = now >= w->slide_at, is_new = false, is_told = true, ok = true;
	struct store_meta newest;
	struct seen seen = w->seen;

	if ((nputs == w->seen.nputs && !is_due) || !may_be_told(w))
		return true;
	if (!count(l, query, 0, 0, &seen.nall, a))
		return true; /* the next time, maybe */
	if ((is_due || seen.nall != w->seen.nall) && !see(l, w, &query, &seen, &newest, &is_new, a))
		return true;
	if (is_new || (is_due && seen.has_any && w->window))
		ok = tell_in_turn(l, w, &query, seen.has_any ? &newest : NULL, &is_told);
	if (!is_told)
		return true; /* the same */
	seen.nputs = nputs;
	w->seen = seen;
	if (is_due || is_new)
		w->slide_at = now + slide_ns(w);
	return ok;
}

/* Proxies shut what is silent, and a peer that has gone is found so. */
static bool beat(struct watch *w)
{
	int64_t now = clock_now_ms();

	if (now - w->start_ms > MAX_AGE_MS)
		return false;
	if (now - w->beat_ms < BEAT_MS || http_stream_unread(w->stream))
		return true;
	w->beat_ms = now;
	return http_stream_write(w->stream, STR(": still here\n\n"));
}

/* ---- places */

static bool has_place(const struct live *l)
{
	return l->has_thread && !atomic_load(&l->is_stopping) &&
	       l->nopen < (size_t)l->server->options->max_live &&
	       (l->nopen + 1) * WEB_FEED_BYTES <= l->server->limits->memory.total / MEMORY_PART;
}

static bool take_place(struct live *l)
{
	bool has_memory = viewer_take(l->server, WEB_FEED_BYTES), ok;

	pthread_mutex_lock(&l->lock);
	ok = has_memory && has_place(l);
	l->nopen += ok;
	pthread_mutex_unlock(&l->lock);
	if (has_memory && !ok)
		budget_give(&l->server->limits->memory, WEB_FEED_BYTES);
	return ok;
}

static void give_place(struct live *l)
{
	budget_give(&l->server->limits->memory, WEB_FEED_BYTES);
	pthread_mutex_lock(&l->lock);
	l->nopen--;
	pthread_mutex_unlock(&l->lock);
}

/* ---- all of them */

static void close_watch(struct live *l, size_t i)
{
	watch_free(l->watches.at[i]);
	l->watches.at[i] = l->watches.at[--l->watches.n];
	give_place(l);
}

static void look_at_all(struct live *l)
{
	struct arena a = { 0 };
	struct store_stats stats;

	store_stats(l->server->store, &stats);
	for (size_t i = 0; i < l->watches.n && !atomic_load(&l->is_stopping);) {
		struct watch *w = l->watches.at[i];
		/* A peer that has gone must not keep its place until there is news. */
		bool is_on = http_stream_write(w->stream, STR("")) && look(l, w, stats.nputs, &a) &&
			     beat(w);

		arena_release(&a);
		a = (struct arena){ 0 };
		if (is_on)
			i++;
		else
			close_watch(l, i);
	}
}

/* Until it is time to look, or to end. */
static void take_new(struct live *l)
{
	pthread_mutex_lock(&l->lock);
	if (l->watches.n && !l->new.n && !atomic_load(&l->is_stopping))
		wait_for_ms(&l->wake, &l->lock, TICK_MS);
	while (!l->watches.n && !l->new.n && !atomic_load(&l->is_stopping))
		pthread_cond_wait(&l->wake, &l->lock);
	for (size_t i = 0; i < l->new.n; i++)
		vec_push(&l->watches, l->new.at[i]);
	l->new.n = 0;
	pthread_mutex_unlock(&l->lock);
}

static void *run(void *ctx)
{
	struct live *l = ctx;

	while (!atomic_load(&l->is_stopping)) {
		take_new(l);
		look_at_all(l);
	}
	while (l->watches.n)
		close_watch(l, 0);
	return NULL;
}

/* ---- start and end */

struct live *live_start(struct server *s)
{
	struct live *l = xcalloc(1, sizeof(*l));

	l->server = s;
	pthread_mutex_init(&l->lock, NULL);
	pthread_cond_init(&l->wake, NULL);
	l->has_thread = pthread_create(&l->thread, NULL, run, l) == 0;
	if (!l->has_thread)
		log_error("there is no thread to tell pages what is new: they ask instead");
	return l;
}

void live_stop(struct live *l)
{
	bool was_stopping;

	if (!l || !l->has_thread)
		return;
	pthread_mutex_lock(&l->lock);
	was_stopping = atomic_exchange(&l->is_stopping, true);
	pthread_cond_signal(&l->wake);
	pthread_mutex_unlock(&l->lock);
	if (was_stopping)
		return;
	pthread_join(l->thread, NULL);
	for (size_t i = 0; i < l->new.n; i++) /* nobody adds to them any more */
		watch_free(l->new.at[i]);
	l->new.n = 0;
}

void live_free(struct live *l)
{
	if (!l)
		return;
	live_stop(l);
	vec_release(&l->watches);
	vec_release(&l->new);
	pthread_mutex_destroy(&l->lock);
	pthread_cond_destroy(&l->wake);
	free(l);
}

void live_count(struct live *l, size_t *nstreams, uint64_t *nevents)
{
	pthread_mutex_lock(&l->lock);
	*nstreams = l->nopen;
	*nevents = l->nevents;
	pthread_mutex_unlock(&l->lock);
}

/* ---- new ones */

static size_t count_open(struct live *l)
{
	uint64_t nevents;
	size_t n;

	live_count(l, &n, &nevents);
	return n;
}

/* The request in memory of its own, which outlives the call. It has been read once, so that works.
 */
static struct watch *watch_new(const struct request *q)
{
	struct watch *w = xcalloc(1, sizeof(*w));
	char text[INET6_ADDRSTRLEN];
	struct http_target target;
	struct err e;

	w->request = (struct request){ .c = q->c,
				       .a = &w->arena,
				       .endpoint = q->endpoint,
				       .values = arena_many(&w->arena, q->endpoint->nparams + 1,
							    struct value),
				       .now = q->now };
	if (!http_target_parse(&w->arena, str_of(str_dup(&w->arena, q->c->http->target.raw)),
			       &target, &e) ||
	    !request_read(&w->request, &target, &e)) {
		selector_release(&w->request.selector);
		arena_release(&w->arena);
		free(w);
		return NULL;
	}
	w->client = gate_client(q->c->http, text);
	w->client.p = str_dup(&w->arena, w->client);
	w->feed = web_feed_new(str_eq(request_text(q, "view"), STR("top")) ? WEB_FEED_TOP
									   : WEB_FEED_FLAME,
			       request_text(q, "sample_type"));
	w->request.c = NULL; /* which is over soon */
	w->window = request_int(&w->request, "window");
	w->since =
		request_param(&w->request, "since")->is_set ? request_int(&w->request, "since") : 0;
	if (w->since)
		w->window = 0;
	w->start_ms = w->beat_ms = clock_now_ms();
	return w;
}

/* False: it is stopping. */
static bool hand_over(struct live *l, struct watch *w)
{
	bool ok;

	pthread_mutex_lock(&l->lock);
	ok = !atomic_load(&l->is_stopping);
	if (ok)
		vec_push(&l->new, w);
	pthread_cond_signal(&l->wake);
	pthread_mutex_unlock(&l->lock);
	return ok;
}

void live_add(struct live *l, struct request *q)
{
	struct http_reply *r = q->c->reply;
	struct watch *w;

	if (!take_place(l)) {
		gate_refuse(q->c, 503, "max-live",
			    "%zu pages are being told what is new, as many as --max-live and "
			    "--max-memory allow; ask every now and then instead",
			    count_open(l));
		return;
	}
	w = watch_new(q);
	if (!w) {
		give_place(l);
		reply_error(q->c, 400, "the request cannot be read");
		return;
	}
	w->stream = http_stream_new(q->c->http, MAX_UNREAD_BYTES);
	r->status = 200;
	r->stream = w->stream;
	http_reply_header(r, "Content-Type", "text/event-stream");
	http_reply_header(r, "Cache-Control", "no-store");
	http_reply_header(r, "X-Accel-Buffering", "no"); /* nginx would keep events back */
	if (!hand_over(l, w))
		watch_free(w);
}
