/* cors.h - pages of other sites that may ask the API from a browser: --cors-origins.
 *
 * A browser sends no password that it knows along: such a page says itself who it is, by the header
 * Authorization. What pages of ours are made of is not for others.
 */
#ifndef SERVER_CORS_H
#define SERVER_CORS_H

#include "server/server.h"

/* Are all of them origins (scheme://host:port), or "*"? */
bool cors_check(struct str origins, struct err *e);
/* Does a page ask that may? */
bool cors_is_allowed(const struct call *c, struct str path);
/* Adds to the answer what lets the page read it, if it may. */
void cors_put_headers(struct call *c, struct str path);
/* Answers a browser that asks whether the page may; false: it did not, or may not. */
bool cors_answer(struct call *c, struct str path, const char *methods);

#endif
