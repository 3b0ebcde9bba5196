#include "agent/post.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/listen.h"
#include "base/version.h"

enum { ANSWER_BYTES = 2048, SLICE_MS = 50 };

static bool copy(char *to, size_t size, const char *from, size_t n)
{
	if (n >= size || memchr(from, '\r', n) || memchr(from, '\n', n) || memchr(from, ' ', n))
		return false;
	memcpy(to, from, n);
	to[n] = '\0';
	return true;
}

bool post_parse(struct post_server *s, const char *url)
{
	const char *host = url + 7, *end, *port, *at;
	size_t n;

	*s = (struct post_server){ .port = "80" };
	if (strncmp(url, "http://", 7) != 0)
		return false;
	end = host + strcspn(host, "/?#");
	at = memrchr(host, '@', (size_t)(end - host));
	if (at && !credential_basic(s->authorization, sizeof(s->authorization), host,
				    (size_t)(at - host)))
		return false;
	host = at ? at + 1 : host;
	port = *host == '[' ? strchr(host, ']') : host;
	port = port ? memchr(port, ':', (size_t)(end - port)) : NULL;
	n = (size_t)((port ? port : end) - host);
	if (*host == '[' && (n < 3 || host[n - 1] != ']'))
		return false;
	if (*host == '[')
		host++, n -= 2;
	if (!n || !copy(s->host, sizeof(s->host), host, n))
		return false;
	if (port && (end - port < 2 || strspn(port + 1, "0123456789") < (size_t)(end - port - 1) ||
		     !copy(s->port, sizeof(s->port), port + 1, (size_t)(end - port - 1))))
		return false;
	n = strcspn(end, "?#");
	while (n && end[n - 1] == '/')
		n--;
	return copy(s->prefix, sizeof(s->prefix), end, n);
}

int post_find(struct post_server *s)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST };
	struct addrinfo *found = NULL;

	if (s->address_bytes)
		return 0;
	if (getaddrinfo(s->host, s->port, &hints, &found) != 0) {
		hints.ai_flags = AI_ADDRCONFIG;
		if (getaddrinfo(s->host, s->port, &hints, &found) != 0)
			return -EHOSTUNREACH;
	}
	memcpy(&s->address, found->ai_addr, found->ai_addrlen);
	s->address_bytes = found->ai_addrlen;
	freeaddrinfo(found);
	return 0;
}

/* 0 when the socket can be read or written, or -errno. */
static int wait_for(int fd, short events, const atomic_llong *until)
{
	struct pollfd p = { .fd = fd, .events = events };

	while (now_ns() < atomic_load(until)) {
		int n = poll(&p, 1, SLICE_MS);

		if (n > 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return -errno;
	}
	return -ETIMEDOUT;
}

static int connect_to(const struct post_server *s, int fd, const atomic_llong *until)
{
	socklen_t size = sizeof(int);
	int failed;

	if (connect(fd, (const struct sockaddr *)&s->address, s->address_bytes) == 0)
		return 0;
	if (errno != EINPROGRESS)
		return -errno;
	failed = wait_for(fd, POLLOUT, until);
	if (!failed && getsockopt(fd, SOL_SOCKET, SO_ERROR, &failed, &size) == 0)
		failed = -failed;
	return failed;
}

static int send_all(int fd, const struct out *o, const atomic_llong *until)
{
	for (size_t at = 0; at < o->n;) {
		ssize_t n = send(fd, o->p + at, o->n - at, MSG_NOSIGNAL);
		int failed = n < 0 && errno == EAGAIN ? wait_for(fd, POLLOUT, until) : 0;

		if (failed)
			return failed;
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return -errno;
		at += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

/* The status, or -errno. */
static int receive(int fd, const atomic_llong *until, char *answer, size_t size)
{
	char text[ANSWER_BYTES];
	size_t n = 0;
	const char *body;

	while (n < sizeof(text) - 1) {
		int failed = wait_for(fd, POLLIN, until);
		ssize_t got = failed ? 0 : recv(fd, text + n, sizeof(text) - 1 - n, 0);

		if (failed)
			return failed;
		if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
			break;
		n += got > 0 ? (size_t)got : 0;
	}
	text[n] = '\0';
	if (strncmp(text, "HTTP/1.", 7) != 0 || n < 12)
		return -EPROTO;
	body = strstr(text, "\r\n\r\n");
	snprintf(answer, size, "%.*s", body ? (int)strcspn(body + 4, "\r\n") : 0,
		 body ? body + 4 : "");
	return atoi(text + 9);
}

static void write_head(struct out *o, const struct post_server *s, const char *target, size_t n)
{
	bool is_v6 = strchr(s->host, ':'), has_name = *s->authorization;

	out_format(o,
		   "POST %s%s HTTP/1.1\r\nHost: %s%s%s:%s\r\nUser-Agent: kiln/" KILN_VERSION
		   "\r\nContent-Type: application/octet-stream\r\nContent-Length: %zu\r\n"
		   "%s%s%sConnection: close\r\n\r\n",
		   s->prefix, target, is_v6 ? "[" : "", s->host, is_v6 ? "]" : "", s->port, n,
		   has_name ? "Authorization: " : "", s->authorization, has_name ? "\r\n" : "");
}

int post_send(struct post_server *s, const char *target, const struct out *body,
	      const atomic_llong *until, char *answer, size_t size)
{
	struct socket connection;
	struct out head = { 0 };
	int result = post_find(s);

	*answer = '\0';
	if (result)
		return result;
	connection = socket_keep(
		socket(s->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
	if (connection.fd < 0)
		return -errno;
	write_head(&head, s, target, body->n);
	result = connect_to(s, connection.fd, until);
	if (!result)
		result = send_all(connection.fd, &head, until);
	if (!result)
		result = send_all(connection.fd, body, until);
	if (!result)
		result = receive(connection.fd, until, answer, size);
	out_release(&head);
	socket_close(&connection);
	/* It may have moved. */
	if (result < 0)
		s->address_bytes = 0;
	return result;
}
