/* listen.h - sockets that are not in the program's way: closed on exec, with high numbers, and
 * known again if the program closes them and gets the same number for something else. */
#ifndef AGENT_LISTEN_H
#define AGENT_LISTEN_H

#include <stdbool.h>
#include <sys/types.h>

struct socket {
	int fd;	     /* -1: none */
	ino_t inode; /* tells whether fd is still this socket */
};

/* Takes over fd, which moves. */
struct socket socket_keep(int fd);
bool socket_is_ours(const struct socket *s);
void socket_close(struct socket *s);

struct address {
	char path[108]; /* of a unix socket; "": TCP */
	char host[64];
	unsigned port;
};

/* False: it makes no sense. */
bool address_parse(struct address *a, const char *text);
/* Listens; -errno, or 0. Port 0 becomes the one it got. */
int address_listen(struct address *a, struct socket *s);

#endif
