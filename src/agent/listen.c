#include "agent/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { HIGH = 200, WAITING_MAX = 128 };

/* ---- sockets */

struct socket socket_keep(int fd)
{
	struct socket s = { fd, 0 };
	struct stat st;

	if (fd < 0)
		return s;
	/* Few may be allowed. */
	for (int from = HIGH; from > fd && s.fd == fd; from /= 2) {
		int high = fcntl(fd, F_DUPFD_CLOEXEC, from);

		if (high >= 0) {
			close(fd);
			s.fd = high;
		}
	}
	if (fstat(s.fd, &st) == 0)
		s.inode = st.st_ino;
	return s;
}

bool socket_is_ours(const struct socket *s)
{
	struct stat st;

	return s->fd >= 0 && fstat(s->fd, &st) == 0 && S_ISSOCK(st.st_mode) &&
	       st.st_ino == s->inode;
}

void socket_close(struct socket *s)
{
	if (socket_is_ours(s))
		close(s->fd);
	s->fd = -1;
}

/* ---- addresses */

static bool parse_port(struct address *a, const char *text)
{
	unsigned port = 0;

	if (!*text)
		return false;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return false;
		port = port * 10 + (unsigned)(*text - '0');
		if (port > 65535)
			return false;
	}
	a->port = port;
	return true;
}

/* Names are not looked up: that would load libraries into the program. */
static bool parse_host(struct address *a, const char *text, size_t n)
{
	unsigned char bytes[16];

	if (n > 1 && text[0] == '[' && text[n - 1] == ']') {
		text++;
		n -= 2;
	}
	if (n == 0 || (n == 9 && strncmp(text, "localhost", n) == 0)) {
		text = "127.0.0.1";
		n = strlen(text);
	}
	if (n >= sizeof(a->host))
		return false;
	memcpy(a->host, text, n);
	a->host[n] = '\0';
	return inet_pton(AF_INET, a->host, bytes) == 1 || inet_pton(AF_INET6, a->host, bytes) == 1;
}

static bool parse_path(struct address *a, const char *text)
{
	size_t n = 0;

	for (; *text && n + 16 < sizeof(a->path); text++) {
		if (strncmp(text, "%p", 2) == 0) {
			n += (size_t)snprintf(a->path + n, 16, "%d", (int)getpid());
			text++;
		} else {
			a->path[n++] = *text;
		}
	}
	return n > 0 && !*text;
}

bool address_parse(struct address *a, const char *text)
{
	const char *colon = strrchr(text, ':');

	*a = (struct address){ 0 };
	if (strncmp(text, "unix:", 5) == 0)
		return parse_path(a, text + 5);
	return colon && parse_host(a, text, (size_t)(colon - text)) && parse_port(a, colon + 1);
}

/* ---- listening */

union any_address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	struct sockaddr_un local;
};

static socklen_t fill(union any_address *to, const struct address *a)
{
	memset(to, 0, sizeof(*to));
	if (a->path[0]) {
		to->local.sun_family = AF_UNIX;
		memcpy(to->local.sun_path, a->path, sizeof(a->path));
		return sizeof(to->local);
	}
	if (inet_pton(AF_INET, a->host, &to->v4.sin_addr) == 1) {
		to->v4.sin_family = AF_INET;
		to->v4.sin_port = htons((uint16_t)a->port);
		return sizeof(to->v4);
	}
	inet_pton(AF_INET6, a->host, &to->v6.sin6_addr);
	to->v6.sin6_family = AF_INET6;
	to->v6.sin6_port = htons((uint16_t)a->port);
	return sizeof(to->v6);
}

static int open_socket(int family)
{
	return socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

/* Is it a socket on which nobody listens any more? */
static bool is_stale(const union any_address *to, socklen_t n)
{
	struct stat st;
	int fd = open_socket(AF_UNIX);
	bool is_dead = fd >= 0 && lstat(to->local.sun_path, &st) == 0 && S_ISSOCK(st.st_mode) &&
		       connect(fd, &to->any, n) != 0 && errno == ECONNREFUSED;

	if (fd >= 0)
		close(fd);
	return is_dead;
}

static bool bind_to(int fd, const struct address *a, const union any_address *to, socklen_t n)
{
	int on = 1;

	if (!a->path[0]) {
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
		return bind(fd, &to->any, n) == 0;
	}
	if (bind(fd, &to->any, n) != 0) {
		int failed = errno;

		if (failed != EADDRINUSE || !is_stale(to, n)) {
			errno = failed;
			return false;
		}
		unlink(a->path);
		if (bind(fd, &to->any, n) != 0)
			return false;
	}
	chmod(a->path, 0600);
	return true;
}

static void ask_port(struct address *a, int fd)
{
	union any_address got;
	socklen_t n = sizeof(got);

	if (a->path[0] || getsockname(fd, &got.any, &n) != 0)
		return;
	a->port = ntohs(got.any.sa_family == AF_INET ? got.v4.sin_port : got.v6.sin6_port);
}

int address_listen(struct address *a, struct socket *s)
{
	union any_address to;
	socklen_t n = fill(&to, a);
	int fd = open_socket(to.any.sa_family);

	s->fd = -1;
	if (fd < 0)
		return -errno;
	if (!bind_to(fd, a, &to, n) || listen(fd, WAITING_MAX) != 0) {
		int failed = errno;

		close(fd);
		return -failed;
	}
	ask_port(a, fd);
	*s = socket_keep(fd);
	return 0;
}
