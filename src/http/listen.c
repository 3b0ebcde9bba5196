#include "http/listen.h"

#include <ctype.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BACKLOG = 1024 };

/* "127.0.0.1:80" or "[::1]:80". */
static void address_text(const struct sockaddr *a, socklen_t n, char *text, size_t size)
{
	char host[NI_MAXHOST] = "?", port[NI_MAXSERV] = "?";
	bool is_v6 = a->sa_family == AF_INET6;

	getnameinfo(a, n, host, sizeof(host), port, sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV);
	snprintf(text, size, "%s%.*s%s:%.*s", is_v6 ? "[" : "", 200, host, is_v6 ? "]" : "", 8,
		 port);
}

static int listen_at(const struct sockaddr *a, socklen_t n, struct err *e)
{
	int fd = socket(a->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1;
	const char *failed = fd < 0 ? "socket" : NULL, *why;
	int code, both = 0;
	char text[256];

	if (!failed && a->sa_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &both, sizeof(both));
	if (!failed &&
	    (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 || bind(fd, a, n) != 0))
		failed = "bind";
	if (!failed && listen(fd, BACKLOG) != 0)
		failed = "listen";
	if (!failed)
		return fd;
	code = errno;
	why = strerrordesc_np(code);
	address_text(a, n, text, sizeof(text));
	err_set(e, ERR_IO, "listen tcp %s: %s: %c%s", text, failed, tolower((unsigned char)*why),
		why + 1);
	if (fd >= 0)
		close(fd);
	errno = code;
	return -1;
}

/* As Go does: both protocols on one socket, if the kernel has IPv6. */
static int open_any(uint16_t port, struct err *e)
{
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(port) };
	int fd = listen_at((const struct sockaddr *)&v6, sizeof(v6), e);

	if (fd >= 0 || errno == EADDRINUSE || errno == EACCES)
		return fd;
	return listen_at((const struct sockaddr *)&v4, sizeof(v4), e);
}

int http_listen(const char *host, uint16_t port, struct err *e)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE };
	struct addrinfo *all = NULL, *best;
	char service[8];
	int failure, fd;

	if (!*host)
		return open_any(port, e);
	snprintf(service, sizeof(service), "%u", port);
	failure = getaddrinfo(host, service, &hints, &all);
	/* A bare container may have no /etc/hosts to say so. */
	if (failure && !strcmp(host, "localhost"))
		failure = getaddrinfo("127.0.0.1", service, &hints, &all);
	if (failure) {
		err_set(e, ERR_IO, "listen tcp: lookup %s: no such host", host);
		return -1;
	}
	best = all;
	for (struct addrinfo *a = all; a; a = a->ai_next)
		if (a->ai_family == AF_INET && best->ai_family != AF_INET)
			best = a;
	fd = listen_at(best->ai_addr, best->ai_addrlen, e);
	freeaddrinfo(all);
	return fd;
}

uint16_t http_listen_port(int fd)
{
	union {
		struct sockaddr any;
		struct sockaddr_in v4;
		struct sockaddr_in6 v6;
	} a = { 0 };
	socklen_t n = sizeof(a);

	getsockname(fd, &a.any, &n);
	return ntohs(a.any.sa_family == AF_INET6 ? a.v6.sin6_port : a.v4.sin_port);
}
