/* web.h - profiles as pages in a browser: -http.
 *
 * One server for one person or a few: pages and their data come from here, nothing is fetched from
 * elsewhere. Parameters of a page are pprof's, by the table of options.
 */
#ifndef WEB_WEB_H
#define WEB_WEB_H

#include "analyze/analyze.h"
#include "http/server.h"

struct web_params {
	const struct command_line *c;
	const char *version;
	void (*warn)(struct buf *warnings); /* prints whole lines, and empties the buffer */
	void (*tell)(const char *line);	    /* prints it, in no color */
};

/* Loads what the command line asks for, and serves it until SIGINT or SIGTERM. */
bool web_serve(const struct web_params *params, struct err *e);

/* ---- as part of another server */

struct site;

/* Where its profiles come from, instead of a command line. */
struct web_source {
	/* Loads what `key`, the value of a parameter a or b, means. The same key must mean the same
	 * later. Fills in the session, which is empty, a name for people, and how much memory to
	 * give back once it is not needed any more. If it fails it may have replied. */
	bool (*load)(void *ctx, struct http_call *call, struct http_reply *reply, struct str key,
		     struct session *s, struct buf *name, uint64_t *bytes, struct err *e);
	void (*give)(void *ctx, uint64_t bytes);
	void *ctx;
	size_t answer_bytes; /* of answers that are kept for who asks again */
};

/* It shows profiles, and nothing else: no files of this machine, no settings, no uploads. */
struct site *web_site_new(const struct web_source *source);
void web_site_free(struct site *s);
/* Answers what is below /ui/. */
void web_reply(struct site *s, struct http_call *call, struct http_reply *reply);
/* Closes the profile that was last used longest ago, to make room. False: all are in use. */
bool web_site_shed(struct site *s);
/* How many it has open. */
size_t web_site_profiles(struct site *s);
/* What the session takes, and what reports of it will. */
uint64_t web_session_bytes(const struct session *s);
/* Of every reply, for http_server_params. */
extern const char *const web_headers[][2];
/* A file of the pages by its name, such as "fleet.html"; 404 if there is none. */
void web_reply_file(struct site *s, struct http_reply *reply, struct str name);

#endif
