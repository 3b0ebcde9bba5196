/* api1.h - what the requests of /api/1/ have in common. Private to api1*.c and openapi.c.
 *
 * Each request is a `struct endpoint`: its parameters are declared there, once, with their kinds,
 * limits, defaults and descriptions. All are read and checked before the request runs, one that
 * nobody declared is refused, and the OpenAPI description is made of the same rows.
 */
#ifndef SERVER_API1_H
#define SERVER_API1_H

#include "base/buf.h"
#include "base/when.h"
#include "server/selector.h"
#include "server/server.h"

enum param_kind {
	PARAM_TEXT,
	PARAM_SELECTOR, /* its conditions go to request.selector, unless it is IS_APART */
	PARAM_TIME,
	PARAM_DURATION, /* more than 0 */
	PARAM_INT,
	PARAM_NUMBER,
	PARAM_FLAG,   /* "", 1, true: yes; 0, false: no */
	PARAM_CHOICE, /* of those in `choices` */
};

enum param_flag {
	IS_LABEL = 1,	/* a text: "name=value" is a condition, if it is given */
	IS_APART = 2,	/* a selector of its own, to be read by the request */
	IS_SETTING = 4, /* an option of the analyzer, of the same name */
	IS_PATH = 8,	/* the rest of the path, not a parameter of the query; must be given */
};

struct param {
	const char *name;
	enum param_kind kind;
	const char *initial; /* as if the request had it; NULL: it is not set */
	double min, max;     /* of numbers */
	const char *choices; /* names with blanks between them */
	unsigned flags;
	const char *help;
};

/* A value that was given, or the default. */
struct value {
	bool is_set;
	struct str text;
	int64_t number; /* ns of times and durations; 1 of a flag that is on; index of a choice */
	double real;
};

struct request {
	struct call *c;
	struct arena *a;
	const struct endpoint *endpoint;
	struct value *values; /* one for each of the endpoint's parameters */
	struct selector selector;
	int64_t now;
	const atomic_bool *stop;
};

struct endpoint {
	const char *path;    /* as in routes.def */
	const char *details; /* for the description */
	const struct param *params;
	size_t nparams;
	bool is_lax; /* what nobody declared is passed over, and of repeated ones the first counts
		      */
	const char *answer; /* name of a schema in schemas.def; NULL: no JSON */
	bool takes_body;    /* that is no form */
	const char *types;  /* of other content that it may answer with; blanks between them */
	const char *event;  /* name of the schema of the data of events, if it answers with those */
	const char *error;  /* name of the schema of errors; NULL: Error */
	/* Writes the JSON of the answer, or answers by itself; then it does not matter what it
	 * returns. */
	bool (*run)(struct request *q, struct buf *out, struct err *e);
};

#define ENDPOINT_PARAMS(table) .params = (table), .nparams = sizeof(table) / sizeof(*(table))

/* All of them. Each has a handler for routes.def, such as api1_services. */
#define API1_ENDPOINTS(each)                                                                      \
	each(services) each(types) each(labels) each(label_values) each(profiles) each(profile)   \
		each(merge) each(diff) each(top) each(series) each(keep) each(delete) each(stats) \
			each(refusals) each(openapi) each(targets) each(capture)                  \
				each(capture_state) each(unnamed) each(debuginfo) each(debugfile) \
					each(regressions) each(regression) each(render)           \
						each(render_diff) each(render_values)             \
							each(annotations) each(live)
#define API1_DECLARE(name)                            \
	extern const struct endpoint endpoint_##name; \
	route_handler api1_##name;
API1_ENDPOINTS(API1_DECLARE)
#undef API1_DECLARE
/* Reads and checks what a query says, by the table of q->endpoint, which need not have a
   path. */
bool request_read(struct request *q, const struct http_target *t, struct err *e);
/* Others that are described, but read their parameters by themselves. */
#define PUSH_ENDPOINTS(each) each(ingest) each(push) each(otlp)
#define PUSH_DECLARE(name) extern const struct endpoint endpoint_##name;
PUSH_ENDPOINTS(PUSH_DECLARE)
#undef PUSH_DECLARE
/* By the path in routes.def; NULL if it is none of these. */
const struct endpoint *api1_find(const char *path);

/* ---- values of parameters, which must be among the endpoint's */

const struct value *request_param(const struct request *q, const char *name);
struct str request_text(const struct request *q, const char *name);
int64_t request_int(const struct request *q, const char *name);
/* The selector and the times `from` and `to`; a limit is not set. ERR_USAGE if from is after to. */
bool request_query(const struct request *q, struct store_query *query, struct err *e);
/* What "aggregate" says. */
enum store_sum request_aggregate(const struct request *q);

/* ---- JSON */

/* A number that is no number is null. */
void json_number(struct buf *out, double v);
/* ,"name": and a time; null if it is 0, which is not known */
void json_time(struct buf *out, const char *name, int64_t ns);

/* ---- api1_format.c: profiles as something else */

struct analyze_options;
struct report;
/* The settings that a request has. */
bool format_options(const struct request *q, struct analyze_options *o, struct err *e);
/* Replies with the profile in the format that the request asks for. */
bool format_reply(struct request *q, const struct profile *p, const char *filename, struct buf *out,
		  struct err *e);
/* A report of the profile; `into` is for those that print nothing. */
bool format_report(struct call *c, const struct profile *p, const struct report *report,
		   const struct analyze_options *o, void *into, struct buf *out, struct err *e);

#endif
