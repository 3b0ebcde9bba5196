#include "http/server.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/wait.h"
#include "http/inside.h"
#include "http/listen.h"

enum {
	MAX_CONNECTIONS = 512,
	HANDLERS = 16,
	PATIENCE_S = 60,
	LEAST_BYTES_PER_S = 64 << 10,
};

/* ---- what handlers ask for */

static struct exchange *exchange_of(const struct http_call *c)
{
	return (struct exchange *)(uintptr_t)c;
}

struct str http_call_header(const struct http_call *c, const char *name)
{
	const struct exchange *x = exchange_of(c);
	const char *value =
		x->connection ? x->server->mhd.lookup(x->connection, MHD_HEADER_KIND, name) : NULL;

	return value ? str_of(value) : (struct str){ 0 };
}

struct http_call *http_call_new(struct http_server *s)
{
	struct exchange *x = xcalloc(1, sizeof(*x));

	x->server = s;
	x->call.peer = "";
	x->call.abandoned = &x->abandoned;
	x->call.start_ns = clock_now_ns();
	return &x->call;
}

void http_call_free(struct http_call *c)
{
	arena_release(&c->arena);
	free(exchange_of(c));
}

struct http_server *http_call_server(const struct http_call *c)
{
	return exchange_of(c)->server;
}

void http_reply_header(struct http_reply *r, const char *name, const char *value)
{
	if (r->nheaders == HTTP_REPLY_HEADERS)
		return;
	r->headers[r->nheaders][0] = name;
	r->headers[r->nheaders++][1] = value;
}

/* ---- start and end */

static void set_default(unsigned *field, unsigned value)
{
	if (!*field)
		*field = value;
}

struct http_server *http_server_start(const struct http_server_params *params, struct err *e)
{
	struct http_server *s = xcalloc(1, sizeof(*s));

	s->params = *params;
	set_default(&s->params.patience_s, PATIENCE_S);
	set_default(&s->params.least_bytes_per_s, LEAST_BYTES_PER_S);
	set_default(&s->params.max_connections, MAX_CONNECTIONS);
	set_default(&s->params.handlers, HANDLERS);
	s->fd = s->stop_fd = -1;
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->has_waiting, NULL);
	pthread_cond_init(&s->has_running, NULL);
	if (microhttpd_load(&s->mhd, e) &&
	    (!params->certificate ||
	     http_tls_load(&s->tls, params->certificate, params->key, params->client_ca, e)))
		s->fd = http_listen(params->host, params->port, e);
	if (s->fd >= 0) {
		s->port = http_listen_port(s->fd);
		if (handlers_start(s, e) && acceptor_start(s, e))
			return s;
	}
	http_server_stop(s);
	return NULL;
}

bool http_server_reload(struct http_server *s, bool only_changed, bool *is_new, struct err *e)
{
	*is_new = false;
	if (!http_tls_is_on(&s->tls) || (only_changed && !http_tls_has_changed(&s->tls)))
		return true;
	*is_new = http_tls_reload(&s->tls, e);
	return *is_new;
}

uint16_t http_server_port(const struct http_server *s)
{
	return s->port;
}

void http_server_stats(struct http_server *s, struct http_server_stats *out)
{
	pthread_mutex_lock(&s->lock);
	*out = s->stats;
	out->nopen = s->peers.n;
	out->nwaiting = s->waiting.n;
	out->nrunning = s->running.n;
	out->nstreams = s->streams.n;
	pthread_mutex_unlock(&s->lock);
}

void http_server_drain(struct http_server *s, int64_t max_ms)
{
	int64_t until = clock_now_ms() + max_ms;
	bool is_busy;

	atomic_store(&s->is_draining, true);
	streams_end(s);
	acceptor_quiesce(s);
	shutdown(s->fd, SHUT_RDWR); /* else the kernel would go on to take connections */
	do {
		pthread_mutex_lock(&s->lock);
		is_busy = s->nexchanges;
		pthread_mutex_unlock(&s->lock);
	} while (is_busy && clock_now_ms() < until && poll(NULL, 0, WATCH_MS) == 0);
}

void http_server_stop(struct http_server *s)
{
	acceptor_quiesce(s);
	handlers_stop(s);
	streams_end(s);
	acceptor_stop(s);
	if (s->fd >= 0)
		close(s->fd);
	vec_release(&s->waiting);
	vec_release(&s->running);
	vec_release(&s->late);
	vec_release(&s->peers);
	vec_release(&s->streams);
	free(s->handlers);
	http_tls_release(&s->tls);
	pthread_cond_destroy(&s->has_waiting);
	pthread_cond_destroy(&s->has_running);
	pthread_mutex_destroy(&s->lock);
	free(s);
}
