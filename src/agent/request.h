/* request.h - HTTP requests as they come in: hostile bytes. Knows nothing of sockets. */
#ifndef AGENT_REQUEST_H
#define AGENT_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum method { METHOD_GET, METHOD_HEAD, METHOD_POST, METHOD_OTHER };

/* Its texts are in the bytes that it was parsed from. */
struct request {
	enum method method;
	char *path;	     /* decoded; "" for "*" */
	char *query;	     /* as it came, behind the '?' */
	const char *form;    /* the same from the body; NULL: there is none */
	int minor;	     /* of the version: 1.minor */
	bool keeps_open;     /* may another request follow? */
	bool wants_continue; /* before it sends the body */
	bool has_form;	     /* the body is a form */
	bool is_chunked;
	uint64_t body_size; /* if it is not chunked */
	/* What is wrong with it, if anything: the status line's end, and the answer's text. */
	const char *error, *error_text;
};

/* Where the head of a request ends in these bytes; 0: not yet. */
size_t request_head_size(const char *p, size_t n);
/* Parses a whole head, changing it. False: it is wrong, see `error`. */
bool request_parse(struct request *r, char *head, size_t n);
/* The value of a parameter in form or query, decoded; "" if it has none. False: there is none. */
bool request_value(const struct request *r, const char *name, char *value, size_t size);

/* A body that comes in pieces. */
struct body {
	bool is_chunked, is_over, is_wrong;
	int state;
	uint64_t left, total; /* of this chunk; of all that came */
};
void body_begin(struct body *b, const struct request *r);
/* Takes from p: returns how much of it was used up, and in `data` what is content of that, maybe
 * none. Call it until all is used up or the body is over or wrong. */
size_t body_take(struct body *b, const char *p, size_t n, const char **data, size_t *ndata);

#endif
