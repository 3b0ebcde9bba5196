/* http.h - answers HTTP requests, in one thread of the agent's. Answers may come later: 64 requests
 * can wait at the same time, and whoever sends or reads slowly is in nobody's way. */
#ifndef AGENT_HTTP_H
#define AGENT_HTTP_H

#include "agent/out.h"
#include "agent/request.h"

/* One request and its answer. Zero but for the request when the handler gets it. */
struct exchange {
	struct request request;
	int status;	    /* 0: 200 */
	const char *type;   /* of the content; NULL: none is told */
	char location[512]; /* of a redirect */
	char file[128];	    /* the name under which it is to be saved */
	bool is_guessable;  /* may readers guess another type? */
	bool is_pprof_error;
	struct out body;
	/* An answer that comes later: what is called at that time (CLOCK_MONOTONIC, ns), or before
	 * if the client leaves, and then what it writes is for nobody. */
	void (*finish)(struct exchange *x);
	int64_t until;
	bool has_left;
	void *data; /* the handler's, for `finish` */
	/* The handler's, for what comes in pieces. */
	char rest[32];
	size_t nrest;
};

struct http_handler {
	/* A piece of the request's body. False: no use for it, so it may be a form's. */
	bool (*body)(struct exchange *x, const char *p, size_t n);
	/* All of it is there. */
	void (*answer)(struct exchange *x);
};

/* Listens on ":port", "host:port", "[v6]:port" or "unix:/path"; %p in a path is the process id. The
 * handler is the same for all. If the port is taken: with `later` it is tried for a second more by
 * the thread, then one of the next is used, which agent_say tells. Returns 0 or -errno. */
int http_listen(const char *address, const struct http_handler *handler, bool later);
/* No socket comes or goes meanwhile. */
void http_before_fork(void);
void http_after_fork(void);
/* In a child after fork, instead: closes what is the parent's. */
void http_forget(void);
/* Before the end: takes away what it made in the file system. */
void http_end(void);

#endif
