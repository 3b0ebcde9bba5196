/* http.c - one thread polls all connections. What goes on with each is its state. */
#include "agent/http.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/listen.h"
#include "agent/memory.h"

enum {
	LISTENERS_MAX = 8,
	CONNECTIONS_MAX = 64,
	HEAD_MAX = 8 << 10,
	PIECE = 8 << 10, /* of a body, behind the head */
	FORM_MAX = 4 << 10,
	BODY_MAX = 10 << 20,
	LENGTH_MAX = 2048, /* larger answers are chunked, as Go's are */
	PORTS_TRIED = 10,
};

#define MILLISECOND ((int64_t)1000000)
#define SECOND (1000 * MILLISECOND)
#define HEAD_TIME (10 * SECOND)	  /* to send the head of a request */
#define IDLE_TIME (60 * SECOND)	  /* between two requests */
#define BODY_TIME (60 * SECOND)	  /* to send all of a body */
#define ANSWER_TIME (30 * SECOND) /* to take an answer, and a second more for each KB */
#define GOODBYE_TIME (SECOND / 2) /* to read what we answered before we hang up */
#define LOOK_TIME SECOND	  /* the program may have closed our sockets */
#define RETRY_TIME (SECOND / 10)

enum state { FREE, HEAD, BODY, WAITING, ANSWERING, GOODBYE };

struct connection {
	struct socket socket;
	enum state state;
	int64_t since, deadline;
	size_t used, head_size; /* of `in`; the head is at its start */
	struct exchange exchange;
	struct body body;
	char form[FORM_MAX];
	size_t form_size;
	char first[1024]; /* status and fields of the answer */
	char last[16];	  /* what ends a chunked one */
	size_t first_size, body_size, last_size, sent;
	bool is_last; /* request of this connection */
	char in[HEAD_MAX + PIECE + 1];
};

struct listener {
	struct address address;
	struct socket socket;
	int64_t retry_until; /* somebody else listens there: tried until then; 0: not any more */
};

/* The lock is for listeners, and for whatever opens or closes a socket: a fork copies files first
 * and memory later, and both must tell the same. Connections are the thread's otherwise. */
static struct {
	struct lock lock;
	struct listener listeners[LISTENERS_MAX];
	unsigned nlisteners;
	bool has_thread;
	const struct http_handler *handler;
	struct connection *connections;
	int64_t pause_until; /* before that nobody is let in */
} http;

/* ---- answers */

static const char *status_text(int status)
{
	switch (status) {
	case 200:
		return "OK";
	case 301:
		return "Moved Permanently";
	case 400:
		return "Bad Request";
	case 404:
		return "Not Found";
	case 405:
		return "Method Not Allowed";
	default:
		return "Internal Server Error";
	}
}

/* As RFC 9110 has it. Not by gmtime, which reads files and takes locks. */
static void format_date(char *to, size_t size)
{
	static const char days[][4] = { "Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed" };
	static const char months[][4] = { "Jan", "Feb", "Mar", "Apr", "May", "Jun",
					  "Jul", "Aug", "Sep", "Oct", "Nov", "Dec" };
	static const int lengths[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	int64_t seconds = wall_ns() / SECOND, day = seconds / 86400, left = day;
	int year = 1970, month = 0;

	for (;; year++) {
		int n = 365 + (year % 4 == 0 && (year % 100 != 0 || year % 400 == 0));

		if (left < n) {
			for (; left >= lengths[month] + (month == 1 && n == 366); month++)
				left -= lengths[month] + (month == 1 && n == 366);
			break;
		}
		left -= n;
	}
	snprintf(to, size, "%s, %02d %s %04d %02d:%02d:%02d GMT", days[day % 7], (int)left + 1,
		 months[month], year, (int)(seconds / 3600 % 24), (int)(seconds / 60 % 60),
		 (int)(seconds % 60));
}

__attribute__((format(printf, 2, 3))) static void add_field(struct connection *c,
							    const char *format, ...)
{
	size_t left = sizeof(c->first) - c->first_size;
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(c->first + c->first_size, left, format, args);
	va_end(args);
	if (n > 0 && (size_t)n < left)
		c->first_size += (size_t)n;
}

/* What tells how long the body is, or that nothing follows. */
static void add_length(struct connection *c)
{
	const struct exchange *x = &c->exchange;
	bool is_head = x->request.method == METHOD_HEAD;
	bool is_short = x->body.n <= LENGTH_MAX, is_chunked = !is_short && x->request.minor > 0;

	if (is_short && (!is_head || x->body.n))
		add_field(c, "Content-Length: %zu\r\n", x->body.n);
	if (!is_short && !is_chunked && !is_head)
		c->is_last = true;
	if (c->is_last && x->request.minor > 0)
		add_field(c, "Connection: close\r\n");
	else if (!c->is_last && x->request.minor == 0)
		add_field(c, "Connection: keep-alive\r\n");
	if (is_chunked && !is_head)
		add_field(c, "Transfer-Encoding: chunked\r\n");
	add_field(c, "\r\n");
	c->body_size = is_head ? 0 : x->body.n;
	if (!is_chunked || is_head)
		return;
	add_field(c, "%zx\r\n", x->body.n);
	c->last_size = (size_t)snprintf(c->last, sizeof(c->last), "\r\n0\r\n\r\n");
}

/* Fields in the order that Go has them in. */
static void begin_answer(struct connection *c)
{
	struct exchange *x = &c->exchange;
	int status = x->status ? x->status : 200;
	char date[128];

	c->first_size = c->last_size = c->sent = 0;
	add_field(c, "HTTP/1.%d %d %s\r\n", x->request.minor, status, status_text(status));
	if (x->file[0])
		add_field(c, "Content-Disposition: attachment; filename=\"%s\"\r\n", x->file);
	if (x->type)
		add_field(c, "Content-Type: %s\r\n", x->type);
	if (x->location[0])
		add_field(c, "Location: %s\r\n", x->location);
	if (!x->is_guessable)
		add_field(c, "X-Content-Type-Options: nosniff\r\n");
	if (x->is_pprof_error)
		add_field(c, "X-Go-Pprof: 1\r\n");
	format_date(date, sizeof(date));
	add_field(c, "Date: %s\r\n", date);
	add_length(c);
	c->state = ANSWERING;
	c->deadline = now_ns() + ANSWER_TIME;
}

/* To what is no request. */
static void refuse(struct connection *c, const char *status, const char *text)
{
	c->first_size = c->body_size = c->last_size = c->sent = 0;
	c->is_last = true;
	add_field(c, "HTTP/1.1 %s\r\n", status);
	add_field(c, "Content-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n%s",
		  text);
	c->state = ANSWERING;
	c->deadline = now_ns() + ANSWER_TIME;
}

/* ---- connections */

static void hang_up(struct connection *c)
{
	if (c->state == WAITING) {
		c->exchange.has_left = true;
		c->exchange.finish(&c->exchange);
	}
	out_release(&c->exchange.body);
	lock_take(&http.lock);
	socket_close(&c->socket);
	c->state = FREE;
	lock_give(&http.lock);
}

/* For the next request; what was sent of it already stays. */
static void expect_head(struct connection *c, size_t from)
{
	out_release(&c->exchange.body);
	c->used -= from;
	memmove(c->in, c->in + from, c->used);
	c->state = HEAD;
	c->since = now_ns();
	c->deadline = c->since + (c->used ? HEAD_TIME : IDLE_TIME);
	c->form_size = 0;
	c->is_last = false;
}

static void answer(struct connection *c)
{
	struct exchange *x = &c->exchange;

	if (x->request.has_form) {
		c->form[c->form_size] = '\0';
		x->request.form = c->form;
	}
	http.handler->answer(x);
	if (!x->finish) {
		begin_answer(c);
		return;
	}
	c->state = WAITING;
	c->deadline = x->until;
}

static void take_form(struct connection *c, const char *p, size_t n)
{
	size_t left = sizeof(c->form) - 1 - c->form_size;

	n = n < left ? n : left;
	memcpy(c->form + c->form_size, p, n);
	c->form_size += n;
}

/* The bytes behind the head. */
static void go_on_with_body(struct connection *c)
{
	size_t at = c->head_size, ndata;
	const char *data;

	while (!c->body.is_over && !c->body.is_wrong && at < c->used) {
		at += body_take(&c->body, c->in + at, c->used - at, &data, &ndata);
		if (ndata && !http.handler->body(&c->exchange, data, ndata) &&
		    c->exchange.request.has_form)
			take_form(c, data, ndata);
	}
	c->used -= at - c->head_size;
	memmove(c->in + c->head_size, c->in + at, c->used - c->head_size);
	if (c->body.is_wrong)
		refuse(c, "400 Bad Request", "400 Bad Request");
	else if (c->body.total > BODY_MAX)
		refuse(c, "413 Request Entity Too Large", "413 Request Entity Too Large");
	else if (c->body.is_over)
		answer(c);
}

static void say_continue(struct connection *c)
{
	static const char text[] = "HTTP/1.1 100 Continue\r\n\r\n";

	send(c->socket.fd, text, sizeof(text) - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void go_on_with_head(struct connection *c)
{
	size_t n = request_head_size(c->in, c->used < HEAD_MAX ? c->used : HEAD_MAX);
	struct request *r = &c->exchange.request;

	if (!n && c->used >= HEAD_MAX)
		refuse(c, "431 Request Header Fields Too Large",
		       "431 Request Header Fields Too Large");
	if (!n)
		return;
	memset(&c->exchange, 0, sizeof(c->exchange));
	if (!request_parse(r, c->in, n)) {
		refuse(c, r->error, r->error_text);
		return;
	}
	c->head_size = n;
	c->is_last = !r->keeps_open;
	if (r->body_size > BODY_MAX) {
		refuse(c, "413 Request Entity Too Large", "413 Request Entity Too Large");
		return;
	}
	body_begin(&c->body, r);
	c->state = BODY;
	c->deadline = now_ns() + BODY_TIME;
	if (r->wants_continue && !c->body.is_over && c->used == n)
		say_continue(c);
	if (c->body.is_over)
		answer(c);
}

/* Goes on as far as what was read allows. Ends: each time less is left, or it waits. */
static void go_on(struct connection *c)
{
	enum state was;

	do {
		was = c->state;
		if (c->state == HEAD && c->used)
			go_on_with_head(c);
		else if (c->state == BODY)
			go_on_with_body(c);
	} while (c->state != was);
}

static void read_more(struct connection *c)
{
	size_t room = c->state == HEAD ? HEAD_MAX : c->head_size + PIECE;
	ssize_t n = recv(c->socket.fd, c->in + c->used, room - c->used, 0);

	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
		hang_up(c);
		return;
	}
	if (n < 0)
		return;
	if (c->state == HEAD && c->used == 0)
		c->deadline = now_ns() + HEAD_TIME;
	c->used += (size_t)n;
	go_on(c);
}

static void say_goodbye(struct connection *c)
{
	shutdown(c->socket.fd, SHUT_WR);
	c->state = GOODBYE;
	c->deadline = now_ns() + GOODBYE_TIME;
}

static void end_answer(struct connection *c)
{
	if (c->is_last) {
		say_goodbye(c);
		return;
	}
	expect_head(c, c->head_size);
	go_on(c);
}

static void add_piece(struct iovec *v, int *n, const char *p, size_t size, size_t *skip)
{
	size_t over = *skip < size ? *skip : size;

	*skip -= over;
	if (size > over)
		v[(*n)++] = (struct iovec){ (void *)(uintptr_t)(p + over), size - over };
}

static void write_more(struct connection *c)
{
	size_t skip = c->sent;
	struct iovec v[3];
	int pieces = 0;
	struct msghdr message = { .msg_iov = v };
	ssize_t n;

	add_piece(v, &pieces, c->first, c->first_size, &skip);
	add_piece(v, &pieces, c->exchange.body.p, c->body_size, &skip);
	add_piece(v, &pieces, c->last, c->last_size, &skip);
	message.msg_iovlen = (size_t)pieces;
	n = sendmsg(c->socket.fd, &message, MSG_NOSIGNAL);
	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		hang_up(c);
		return;
	}
	if (n > 0) {
		c->sent += (size_t)n;
		c->deadline += n * (SECOND / 1024);
	}
	if (c->deadline > now_ns() + ANSWER_TIME)
		c->deadline = now_ns() + ANSWER_TIME;
	if (c->sent == c->first_size + c->body_size + c->last_size)
		end_answer(c);
}

static void read_goodbye(struct connection *c)
{
	char nobody[4096];
	ssize_t n = recv(c->socket.fd, nobody, sizeof(nobody), 0);

	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
		hang_up(c);
}

static void finish(struct connection *c, bool has_left)
{
	c->exchange.has_left = has_left;
	c->exchange.finish(&c->exchange);
	c->is_last |= has_left;
	begin_answer(c);
}

static void on_time(struct connection *c)
{
	if (c->state == WAITING)
		finish(c, false);
	else
		hang_up(c);
}

static void on_event(struct connection *c, short events)
{
	if (!socket_is_ours(&c->socket)) {
		hang_up(c);
		return;
	}
	if (c->state == WAITING && events & (POLLRDHUP | POLLHUP | POLLERR))
		finish(c, true);
	else if (c->state == HEAD || c->state == BODY)
		read_more(c);
	else if (c->state == GOODBYE)
		read_goodbye(c);
	if (c->state == ANSWERING)
		write_more(c);
}

static short events_of(const struct connection *c)
{
	switch (c->state) {
	case HEAD:
	case BODY:
	case GOODBYE:
		return POLLIN;
	case ANSWERING:
		return POLLOUT;
	default:
		return POLLRDHUP;
	}
}

/* ---- who comes */

/* A place for one more: if none is free, whoever has waited longest to send something goes. */
static struct connection *find_place(void)
{
	struct connection *oldest = NULL;

	for (unsigned i = 0; i < CONNECTIONS_MAX; i++) {
		struct connection *c = &http.connections[i];

		if (c->state == FREE)
			return c;
		if ((c->state == HEAD || c->state == GOODBYE) &&
		    (!oldest || c->since < oldest->since))
			oldest = c;
	}
	return oldest;
}

static bool accept_to(struct connection *c, const struct socket *from)
{
	int fd;

	lock_take(&http.lock);
	fd = accept4(from->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd >= 0) {
		c->socket = socket_keep(fd);
		c->state = HEAD;
	}
	lock_give(&http.lock);
	return fd >= 0;
}

/* False: there is nobody, or nothing to talk to them with. */
static bool accept_one(const struct socket *from)
{
	struct connection *c = find_place();

	if (c && c->state != FREE)
		hang_up(c);
	if (!c || !accept_to(c, from))
		return c && (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED);
	c->used = 0;
	expect_head(c, 0);
	c->deadline = c->since + HEAD_TIME;
	return true;
}

/* ---- listeners. The lock is held. */

static void describe(char *to, size_t size, const struct address *a)
{
	if (a->path[0])
		snprintf(to, size, "unix:%s", a->path);
	else
		snprintf(to, size, strchr(a->host, ':') ? "[%s]:%u" : "%s:%u", a->host, a->port);
}

/* Tries the ports that follow. */
static int listen_near(struct listener *l)
{
	struct address a = l->address;
	char wanted[160], got[160];
	int failed = -EADDRINUSE;

	describe(wanted, sizeof(wanted), &a);
	for (unsigned i = 1; i <= PORTS_TRIED && failed == -EADDRINUSE; i++) {
		a.port = l->address.port + i;
		if (a.port <= 65535)
			failed = address_listen(&a, &l->socket);
	}
	if (failed) {
		agent_say("cannot serve on %s: %s", wanted, strerrordesc_np(-failed));
		return failed;
	}
	l->address = a;
	describe(got, sizeof(got), &a);
	agent_say("%s is in use, serving on %s", wanted, got);
	return 0;
}

static int try_listen(struct listener *l, bool is_patient)
{
	bool is_any_port = !l->address.path[0] && l->address.port == 0;
	int failed = address_listen(&l->address, &l->socket);
	char name[160];

	if (failed == -EADDRINUSE && !l->address.path[0] && !is_patient)
		return listen_near(l);
	describe(name, sizeof(name), &l->address);
	if (failed && !(is_patient && failed == -EADDRINUSE))
		agent_say("cannot serve on %s: %s", name, strerrordesc_np(-failed));
	else if (!failed && (is_any_port || settings.verbose))
		agent_say("serving on %s", name);
	return failed;
}

/* What is to be listened on once more: the program closed it, or somebody else has it. */
static void look_at_listeners(int64_t now)
{
	for (unsigned i = 0; i < http.nlisteners; i++) {
		struct listener *l = &http.listeners[i];
		bool is_patient = now < l->retry_until;

		if (socket_is_ours(&l->socket))
			continue;
		if (l->socket.fd >= 0) { /* it was */
			l->socket.fd = -1;
			l->retry_until = now + SECOND;
			is_patient = true;
		}
		if (l->retry_until && (try_listen(l, is_patient) == 0 || !is_patient))
			l->retry_until = 0;
	}
}

/* ---- the thread */

/* How long nothing happens by itself, in milliseconds. */
static int time_left(int64_t now)
{
	int64_t next = now + LOOK_TIME;

	for (unsigned i = 0; i < http.nlisteners; i++)
		if (http.listeners[i].retry_until && now + RETRY_TIME < next)
			next = now + RETRY_TIME;
	if (now < http.pause_until && http.pause_until < next)
		next = http.pause_until;
	for (unsigned i = 0; i < CONNECTIONS_MAX; i++)
		if (http.connections[i].state != FREE && http.connections[i].deadline < next)
			next = http.connections[i].deadline;
	return next <= now ? 0 : (int)((next - now) / MILLISECOND + 1);
}

/* What to wait for: listeners, then connections. No more than are open, or poll may refuse. */
struct watch {
	struct pollfd fds[LISTENERS_MAX + CONNECTIONS_MAX];
	struct socket listeners[LISTENERS_MAX];
	struct connection *connections[CONNECTIONS_MAX];
	unsigned nlisteners, n;
	int timeout;
};

static void watch_listeners(struct watch *w)
{
	int64_t now = now_ns();

	lock_take(&http.lock);
	look_at_listeners(now);
	for (unsigned i = 0; i < http.nlisteners && now >= http.pause_until && find_place(); i++) {
		const struct socket *s = &http.listeners[i].socket;

		if (s->fd < 0)
			continue;
		w->listeners[w->n] = *s;
		w->fds[w->n++] = (struct pollfd){ s->fd, POLLIN, 0 };
	}
	w->nlisteners = w->n;
	w->timeout = time_left(now);
	lock_give(&http.lock);
}

static void watch_connections(struct watch *w)
{
	for (unsigned i = 0; i < CONNECTIONS_MAX; i++) {
		struct connection *c = &http.connections[i];

		if (c->state == FREE)
			continue;
		w->connections[w->n - w->nlisteners] = c;
		w->fds[w->n++] = (struct pollfd){ c->socket.fd, events_of(c), 0 };
	}
}

static void handle_events(struct watch *w)
{
	for (unsigned i = w->nlisteners; i < w->n; i++) {
		struct connection *c = w->connections[i - w->nlisteners];

		if (w->fds[i].revents)
			on_event(c, w->fds[i].revents);
		else if (c->deadline <= now_ns())
			on_time(c);
	}
	for (unsigned i = 0; i < w->nlisteners; i++)
		if (w->fds[i].revents && socket_is_ours(&w->listeners[i]) &&
		    !accept_one(&w->listeners[i]))
			http.pause_until = now_ns() + RETRY_TIME;
}

static void wait_for_events(void)
{
	static const struct timespec a_while = { 0, RETRY_TIME };
	struct watch w = { .n = 0 };

	watch_listeners(&w);
	watch_connections(&w);
	if (poll(w.fds, w.n, w.timeout) >= 0)
		handle_events(&w);
	else
		nanosleep(&a_while, NULL); /* rather than try all the time */
}

static void *run(void *nothing)
{
	agent_thread_begins();
	for (;;)
		wait_for_events();
	return nothing;
}

static int start_thread(void)
{
	if (http.has_thread)
		return 0;
	if (!http.connections)
		http.connections = pages_map(CONNECTIONS_MAX * sizeof(*http.connections));
	if (!http.connections)
		return -ENOMEM;
	http.has_thread = agent_create_thread(run);
	return http.has_thread ? 0 : -EAGAIN;
}

static int add_listener(const struct address *a, bool later)
{
	struct listener *l = &http.listeners[http.nlisteners];
	int failed;

	if (http.nlisteners == LISTENERS_MAX)
		return -ENOSPC;
	*l = (struct listener){ .address = *a };
	failed = try_listen(l, later);
	if (failed == -EADDRINUSE && later)
		l->retry_until = now_ns() + SECOND;
	else if (failed)
		return failed;
	failed = start_thread();
	if (failed)
		socket_close(&l->socket);
	else
		http.nlisteners++;
	return failed;
}

int http_listen(const char *address, const struct http_handler *handler, bool later)
{
	struct address a;
	int failed;

	if (!address_parse(&a, address)) {
		agent_say("cannot serve on %s: not an address as :8070, 127.0.0.1:8070 or "
			  "unix:/path",
			  address);
		return -EINVAL;
	}
	lock_take(&http.lock);
	http.handler = handler;
	failed = add_listener(&a, later);
	lock_give(&http.lock);
	return failed;
}

void http_before_fork(void)
{
	lock_take(&http.lock);
}

void http_after_fork(void)
{
	lock_give(&http.lock);
}

void http_forget(void)
{
	for (unsigned i = 0; i < http.nlisteners; i++)
		socket_close(&http.listeners[i].socket);
	for (unsigned i = 0; http.connections && i < CONNECTIONS_MAX; i++)
		if (http.connections[i].state != FREE)
			socket_close(&http.connections[i].socket);
	pages_unmap(http.connections, CONNECTIONS_MAX * sizeof(*http.connections));
	lock_give(&http.lock);
	memset(&http, 0, sizeof(http));
}

void http_end(void)
{
	for (unsigned i = 0; i < http.nlisteners; i++)
		if (http.listeners[i].address.path[0] && http.listeners[i].socket.fd >= 0)
			unlink(http.listeners[i].address.path);
}
