/* url.h - URLs taken apart and put together again as Go's net/url does it, as far as it shows.
 *
 * Parts are decoded, but for the raw ones and the query. All of them lie in the
 * arena that url_parse was given, or in the text.
 */
#ifndef FETCH_URL_H
#define FETCH_URL_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/str.h"

struct url {
	struct str scheme; /* in lower case; may be empty */
	struct str user, password;
	bool has_user, has_password;
	struct str host; /* with the port, if there is one */
	struct str path, raw_path;
	struct str query;
	bool has_empty_query; /* ends in "?" */
	struct str fragment, raw_fragment;
};

/* False if Go would refuse it. */
bool url_parse(struct arena *a, struct url *u, struct str text);
void url_write(struct buf *out, const struct url *u);
/* `path` is decoded; it must live as long as the URL. */
void url_set_path(struct url *u, struct str path);

/* The query's first value of that name, decoded; empty if there is none. */
struct str url_query_get(struct arena *a, const struct url *u, struct str name);
/* Writes the query anew, sorted by name. If `name` is not empty, its values are replaced by
 * `value`. */
void url_query_set(struct arena *a, struct url *u, struct str name, struct str value);

/* A source that is no file, as pprof understands it: without a scheme it is http. A server's root
 * means its CPU profile, as for `go tool pprof`. "unix:/socket:/path" is a server at a socket. */
struct url_source {
	char *url;
	int64_t seconds; /* how long the server will collect; 0: not known */
	int64_t timeout_ms;
};
/* `seconds` and `timeout` (in seconds) are options; what is not above zero was not given. False if
 * the source cannot be a URL. */
bool url_resolve(struct arena *a, struct str source, int64_t seconds, int64_t timeout,
		 struct url_source *out);

#endif
