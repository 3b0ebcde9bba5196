/* site.h - the state of a web server, and what its parts share. Private to web/.
 *
 * Requests come on several threads. A profile is worked on by one of them at a time, which holds
 * its lock; answers that are done are kept, so that many may ask for the same.
 */
#ifndef WEB_SITE_H
#define WEB_SITE_H

#include <pthread.h>

#include "base/escape.h"
#include "http/server.h"
#include "web/answers.h"
#include "web/functions.h"
#include "web/profiles.h"
#include "web/web.h"

enum { TOKEN_BYTES = 16 };

struct site {
	struct web_params params;
	struct web_source source; /* of a part of another server; else .load is NULL */
	struct command_line line; /* the same: it has none */
	pthread_mutex_t loading;  /* the same: held while one is loaded */
	const char *host;	  /* as it was asked for */
	bool is_loopback_only;	  /* pprof's rule: the host is a name of this machine for itself */
	char token[2 * TOKEN_BYTES + 1];
	struct functions functions;
	struct profiles profiles;
	struct answers answers;
	const char *settings_path;
	pthread_mutex_t settings; /* the file is read, changed and written by one at a time */
};

/* A request to the API, on its way. */
struct api_call {
	struct site *site;
	struct http_call *http;
	struct http_reply *reply;
	struct arena *a;
	struct analyze_options options;
	struct time_range time;		/* that is asked for */
	struct time_range base_time;	/* the same of side a, if it is another; else .to is 0 */
	struct loaded *profile, *other; /* sides a and b, maybe the same; `other` may be NULL */
	bool is_locked;			/* are they? */
	const char *key;		/* of the answer, if that is kept; else NULL */
	struct buf warnings;
	const char *type; /* of the content; JSON unless changed */
	int status;	  /* of a failure; 0: what its kind says */
	/* For a file rather than a page: reports are made of what this one has. Else NULL. */
	const struct report_run *run;
};

/* ---- route.c */

/* For http_server_params. */
size_t site_admit(void *site, struct http_call *call, struct http_reply *reply);
void site_handle(void *site, struct http_call *call, struct http_reply *reply);

/* Takes a lock, or gives up after some 20 ms: whoever waits may look at what else has happened. */
bool site_lock(pthread_mutex_t *lock);

/* ---- guard.c */

/* May this peer ask for it, and from that page? Else the status, and why. */
bool guard_allows(const struct site *site, const struct http_call *call, int *status,
		  const char **why);
void guard_make_token(char token[2 * TOKEN_BYTES + 1]);

/* ---- serve.c */

void site_init(struct site *site);
void site_release(struct site *site);

/* ---- part.c */

/* The profile of a key, held; loads it if need be. */
bool part_open(struct api_call *q, struct str key, struct loaded **out, struct err *e);

/* ---- urls.c */

/* The options that a query asks for, on top of those of the command line. ERR_USAGE in pprof's
 * words if a value is wrong. */
bool url_options(const struct http_target *t, struct arena *a, struct analyze_options *o,
		 struct err *e);
/* "f=main&n=10": what of the options that have all these flags is not as usual. */
void url_put_options(struct buf *out, const struct analyze_options *o, unsigned flags);

/* "1.25-3.5", seconds after the first sample, as what a parameter says; "" is all of it. ERR_USAGE.
 */
bool url_time(const struct http_target *t, const char *name, struct time_range *out, struct err *e);

/* ---- api.c */

struct str api_param(const struct api_call *q, const char *name);
/* True for 1, t, true. */
bool api_flag(const struct api_call *q, const char *name);
/* Runs a report on the session, that of side a if there are two. `into` is for the report. */
bool api_report(struct api_call *q, struct session *s, const struct report *report,
		const char *argument, void *into, struct buf *out, struct err *e);
/* The same of side b, which must be there. Within a report of side a it may be called, too. */
bool api_report_other(struct api_call *q, const struct report *report, void *into, struct buf *out,
		      struct err *e);
/* Adds ,"warnings":[...] */
void api_put_warnings(struct api_call *q, struct buf *out);
/* A regular expression that matches exactly this text; if it is very long, what begins as it does.
 */
const char *api_quoted(struct arena *a, struct str text);
/* Lets others work on the profiles, of which this call needs no more. */
void api_unlock(struct api_call *q);
/* "type":"cpu","unit":"nanoseconds" */
void api_put_type(struct buf *out, const struct report_run *r);
/* Is -source_url an address that pages may link to? */
bool source_url_check(const char *url, struct err *e);
/* "profiles":[...] */
void api_put_profiles(struct buf *out, struct api_call *q);
/* "configs":[...]: names and queries of saved settings. */
void api_put_configs(struct buf *out, struct api_call *q);
void json_put_number(struct buf *out, double v);

typedef bool api_handler(struct api_call *q, struct buf *out, struct err *e);
api_handler api_meta, api_flame, api_top, api_search, api_function, api_graph, api_peek, api_source,
	api_labels, api_heat, api_chart, api_profiles, api_add_profile, api_subtract,
	api_remove_profile, api_diff, api_export, api_configs, api_save_config, api_delete_config,
	api_download;

#endif
