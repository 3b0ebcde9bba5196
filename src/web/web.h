/* web.h - profiles as pages in a browser: -http.
 *
 * One server for one person or a few: pages and their data come from here, nothing is fetched from
 * elsewhere. Parameters of a page are pprof's, by the table of options.
 */
#ifndef WEB_WEB_H
#define WEB_WEB_H

#include "analyze/analyze.h"
#include "http/server.h"
#include "report/code.h"

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

struct web_loaded {
	struct session session;
	struct buf name;  /* for people */
	struct buf notes; /* lines that the page shows beside it: what it lacks */
	uint64_t bytes;	  /* of memory, to give back once it is not needed any more */
};

/* Where its profiles come from, instead of a command line. */
struct web_source {
	/* Loads what `key`, the value of a parameter a or b, means. The same key must mean the same
	 * later. `to` is empty, and if it fails stays its caller's; it may have replied then. */
	bool (*load)(void *ctx, struct http_call *call, struct http_reply *reply, struct str key,
		     struct web_loaded *to, struct err *e);
	void (*give)(void *ctx, uint64_t bytes);
	void *ctx;
	size_t answer_bytes; /* of answers that are kept for who asks again */
	/* For listings of code and sources. May memory be taken for one, until the request's end?
	 * If not, it has replied. */
	bool (*take_listing)(void *ctx, struct http_call *call, struct http_reply *reply);
	struct code_reader code;
	const char *source_path; /* sources are shown from below these: source_params.beneath */
	size_t source_bytes;	 /* of sources, and of one */
};

/* It shows profiles, their code and sources, and nothing else: no other files of this machine, no
 * settings, no uploads. */
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

/* ---- what a page is shown of profiles that come and go (feed.c) */

/* A flame graph, or a table of functions, as what changes of it from one time to the next. For one
 * thread at a time. */
struct web_feed;
enum web_feed_kind { WEB_FEED_FLAME, WEB_FEED_TOP };
/* What one takes at most, with the text that was last put. */
#define WEB_FEED_BYTES (UINT64_C(512) << 10)

/* `sample_type` says which values; "": the usual. */
struct web_feed *web_feed_new(enum web_feed_kind kind, struct str sample_type);
void web_feed_free(struct web_feed *f);
/* The page has nothing any more. */
void web_feed_forget(struct web_feed *f);

struct web_feed_source {
	struct session *session; /* is taken over, whatever happens */
	uint64_t bytes;		 /* the same: web_source.give */
	const atomic_bool *stop;
};
/* Writes members of a JSON object, at most half of WEB_FEED_BYTES: what differs from the last time
 * (see LiveUpdate in server/schemas.def). ERR_LIMIT: it cannot be made so short, or for now. */
bool web_feed_put(struct web_feed *f, struct site *site, const struct web_feed_source *source,
		  struct buf *out, struct err *e);

/* ---- of both */

/* Of every reply, for http_server_params. */
extern const char *const web_headers[][2];
/* A file of the pages by its name, such as "fleet.html"; 404 if there is none. */
void web_reply_file(struct site *s, struct http_reply *reply, struct str name);

#endif
