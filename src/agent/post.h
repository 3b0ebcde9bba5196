/* post.h - sends bytes to an HTTP server: one request per connection, no TLS. */
#ifndef AGENT_POST_H
#define AGENT_POST_H

#include <stdatomic.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "agent/credential.h"
#include "agent/out.h"

struct post_server {
	char host[256], port[8];
	char prefix[256];		      /* of the path, without a slash at the end */
	char authorization[CREDENTIAL_BYTES]; /* the header; "": none */
	struct sockaddr_storage address;
	socklen_t address_bytes; /* 0: not looked up yet */
};

/* "http://[user:password@]host[:port][/path]". False: it is none. */
bool post_parse(struct post_server *s, const char *url);

/* Looks its address up, as long as there is memory for it. 0, or -errno. */
int post_find(struct post_server *s);
/* POSTs `body` to prefix + target, and returns the status, or -errno; gives up at *until
 * (CLOCK_MONOTONIC), which may be moved meanwhile. `answer` gets the beginning of what the server
 * says. Host names are looked up by libc, which takes memory from the program's allocator. */
int post_send(struct post_server *s, const char *target, const struct out *body,
	      const atomic_llong *until, char *answer, size_t size);

#endif
