/* handlers.c - threads that run handlers, and one that looks which peers have gone meanwhile. */
#include <poll.h>
#include <stdlib.h>

#include "http/inside.h"

enum {
	LOOK_MS = 250, /* at peers that may be late */
	LATE_PART = 8, /* of the connections */
};

static void remove_exchange(exchanges *all, const struct exchange *x)
{
	for (size_t i = 0; i < all->n; i++) {
		if (all->at[i] == x) {
			memmove(all->at + i, all->at + i + 1, (--all->n - i) * sizeof(*all->at));
			return;
		}
	}
}

static struct exchange *take_exchange(struct http_server *s)
{
	struct exchange *x = NULL;

	pthread_mutex_lock(&s->lock);
	while (!s->waiting.n && !s->is_stopping)
		pthread_cond_wait(&s->has_waiting, &s->lock);
	if (s->waiting.n) {
		x = s->waiting.at[0];
		remove_exchange(&s->waiting, x);
		vec_push(&s->running, x);
		atomic_store(&x->abandoned, s->is_stopping);
		pthread_cond_signal(&s->has_running);
	}
	pthread_mutex_unlock(&s->lock);
	return x;
}

/* ---- replies that are kept back: all for as long, so they are in order */

static bool is_ending(const struct http_server *s)
{
	return s->is_stopping || atomic_load(&s->is_draining);
}

/* Called with the lock, as the next. Connections may be as scarce as time. */
static bool may_be_late(const struct http_server *s)
{
	return !is_ending(s) && s->late.n < s->params.max_connections / LATE_PART;
}

/* Its connection is suspended. Of its body only the length is still of use. */
static void keep_back(struct exchange *x)
{
	struct http_server *s = x->server;

	buf_release(&x->body);
	x->body = (struct buf){ 0 };
	x->call.body.p = NULL;
	x->late_until_ms = clock_now_ms() + x->reply.late_ms;
	vec_push(&s->late, x);
	pthread_cond_signal(&s->has_running);
}

bool exchange_delay(struct exchange *x)
{
	struct http_server *s = x->server;
	bool ok;

	pthread_mutex_lock(&s->lock);
	ok = may_be_late(s);
	if (ok) {
		s->mhd.suspend(x->connection);
		x->peer->deadline_ms = 0;
		keep_back(x);
	}
	pthread_mutex_unlock(&s->lock);
	return ok;
}

/* The next whose time has come, or NULL. Called with the lock. */
static struct exchange *take_late(struct http_server *s)
{
	struct exchange *x = s->late.n ? s->late.at[0] : NULL;

	if (!x || (x->late_until_ms > clock_now_ms() && !is_ending(s)))
		return NULL;
	remove_exchange(&s->late, x);
	return x;
}

/* Called with the lock, which it gives back meanwhile. */
static void send_late(struct http_server *s)
{
	struct exchange *x;

	while ((x = take_late(s))) {
		pthread_mutex_unlock(&s->lock);
		x->is_answered = true;
		s->mhd.resume(x->connection);
		pthread_mutex_lock(&s->lock);
	}
}

/* ---- threads */

static void finish_exchange(struct exchange *x)
{
	struct http_server *s = x->server;
	bool is_late;

	pthread_mutex_lock(&s->lock);
	remove_exchange(&s->running, x);
	is_late = x->reply.late_ms && may_be_late(s);
	if (is_late)
		keep_back(x);
	pthread_mutex_unlock(&s->lock);
	if (is_late)
		return;
	x->is_answered = true;
	s->mhd.resume(x->connection);
}

static void *run_handlers(void *server)
{
	struct http_server *s = server;
	struct exchange *x;

	while ((x = take_exchange(s))) {
		if (!atomic_load(&x->abandoned))
			s->params.handle(s->params.ctx, &x->call, &x->reply);
		if (!x->reply.status)
			exchange_say(&x->reply, 503, "the server is stopping\n");
		if (x->reply.content && x->accepts_gzip && !atomic_load(&x->abandoned))
			http_content_packed(x->reply.content);
		finish_exchange(x);
	}
	return NULL;
}

/* Looks which peers have gone. Sockets of running exchanges stay open, as these are suspended. */
static void watch(struct http_server *s)
{
	for (size_t i = 0; i < s->running.n; i++) {
		struct pollfd fd = { s->running.at[i]->peer->fd, POLLRDHUP, 0 };

		if (s->is_stopping || (poll(&fd, 1, 0) > 0 && fd.revents))
			atomic_store(&s->running.at[i]->abandoned, true);
	}
}

/* Until something runs, or it is time for a reply that was kept back, or to look who is late. */
static void wait_for_running(struct http_server *s)
{
	int64_t wait_ms = s->late.n ? s->late.at[0]->late_until_ms - clock_now_ms() : LOOK_MS;

	if (!s->peers.n)
		pthread_cond_wait(&s->has_running, &s->lock);
	else if (wait_ms > 0)
		wait_for_ms(&s->has_running, &s->lock, wait_ms < LOOK_MS ? (int)wait_ms : LOOK_MS);
}

static void *run_watcher(void *server)
{
	struct http_server *s = server;

	pthread_mutex_lock(&s->lock);
	while (!s->is_stopping) {
		send_late(s);
		peers_shut_late(s);
		streams_cut_gone(s);
		if (!s->running.n) {
			wait_for_running(s);
			continue;
		}
		watch(s);
		pthread_mutex_unlock(&s->lock);
		poll(NULL, 0, WATCH_MS);
		pthread_mutex_lock(&s->lock);
	}
	watch(s);
	send_late(s);
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

bool exchange_give(struct exchange *x)
{
	struct http_server *s = x->server;
	bool ok;

	pthread_mutex_lock(&s->lock);
	ok = !s->is_stopping;
	if (ok) {
		s->mhd.suspend(x->connection); /* before a handler can resume it */
		x->peer->deadline_ms = 0;
		vec_push(&s->waiting, x);
	}
	pthread_mutex_unlock(&s->lock);
	if (ok) /* not before: who wakes up wants the lock */
		pthread_cond_signal(&s->has_waiting);
	return ok;
}

/* ---- start and end */

bool handlers_start(struct http_server *s, struct err *e)
{
	s->handlers = xcalloc(s->params.handlers, sizeof(*s->handlers));
	s->has_watcher = pthread_create(&s->watcher, NULL, run_watcher, s) == 0;
	while (s->nhandlers < s->params.handlers &&
	       pthread_create(&s->handlers[s->nhandlers], NULL, run_handlers, s) == 0)
		s->nhandlers++;
	return (s->has_watcher && s->nhandlers == s->params.handlers) ||
	       err_set(e, ERR_IO, "no threads for the web page can be started");
}

void handlers_stop(struct http_server *s)
{
	pthread_mutex_lock(&s->lock);
	s->is_stopping = true;
	watch(s);
	pthread_cond_broadcast(&s->has_waiting);
	pthread_cond_signal(&s->has_running);
	pthread_mutex_unlock(&s->lock);
	for (size_t i = 0; i < s->nhandlers; i++)
		pthread_join(s->handlers[i], NULL);
	if (s->has_watcher)
		pthread_join(s->watcher, NULL);
}
