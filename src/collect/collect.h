/* collect.h - takes profiles of targets, again and again, and hands them over.
 *
 * Jobs (scrape_config.h) say which profiles of which targets, and how often. Each is asked for over
 * HTTP on a thread of its own, of which there are only so many; what comes goes to the sink,
 * whoever that is. A target that dies, hangs or talks nonsense is asked less and less often, and
 * costs nobody else anything.
 *
 *	struct collector *c = collector_new(&params);
 *	collector_set_jobs(c, &config);
 *	...
 *	collector_stop(c);	at once
 *	collector_join(c);	waits, some second at most: the sink is called no more
 *	collector_free(c);
 *
 * Threads: any may call these, but for the last three.
 */
#ifndef COLLECT_COLLECT_H
#define COLLECT_COLLECT_H

#include <stdatomic.h>

#include "collect/scrape_config.h"
#include "profile/profile.h"

/* A profile that has come. */
struct collected {
	struct str job, service, type, instance;
	const struct target_label *labels; /* with instance, without service */
	size_t nlabels;
	int64_t started; /* ns since 1970: when it was asked for */
	struct str bytes;
	const atomic_bool *stop; /* true: nobody waits any more */
};

enum collect_result {
	COLLECT_OK,
	COLLECT_EMPTY,	     /* a profile without samples: nothing was going on */
	COLLECT_ABSENT,	     /* the target has no such profile (404) */
	COLLECT_WRONG,	     /* it answered with something else, or not to the end */
	COLLECT_REFUSED,     /* the sink has no room now, whatever the target sends */
	COLLECT_UNREACHABLE, /* there was no answer */
	COLLECT_CANCELED,
};
const char *collect_result_name(enum collect_result r);

enum { COLLECT_ID_BYTES = 40 };

/* Where profiles go. All are called from any thread; `log` must not call the collector. */
struct collect_sink {
	void *ctx;
	/* Is there memory for so many more bytes of a profile? May wait for it. What was taken is
	 * given back later. */
	bool (*take)(void *ctx, size_t bytes, const atomic_bool *stop);
	void (*give)(void *ctx, size_t bytes);
	/* Keeps it, and tells its id: COLLECT_OK. COLLECT_EMPTY, _WRONG and _REFUSED: it does not,
	 * and `e` says why. */
	enum collect_result (*put)(void *ctx, const struct collected *p, char id[COLLECT_ID_BYTES],
				   struct err *e);
	/* One has been asked for; `late_s` is what it took beyond what the target was asked to. */
	void (*count)(void *ctx, struct str job, enum collect_result r, double late_s);
	void (*log)(void *ctx, const char *line);
};
/* For sinks: is this what a target should have sent? */
bool collect_check_type(const struct profile *p, struct str type, struct err *e);

struct collector_params {
	struct collect_sink sink;
	size_t max_bytes;     /* of one profile, as it is sent */
	unsigned max_at_once; /* profiles */
};

struct collector *collector_new(const struct collector_params *params);
/* Takes the place of all jobs that there were; `config` is empty then. Targets that stay keep what
 * is known of them. */
void collector_set_jobs(struct collector *c, struct scrape_config *config);
void collector_stop(struct collector *c);
/* It can still be asked how it is. */
void collector_join(struct collector *c);
void collector_free(struct collector *c);

/* ---- profile now */

enum capture_state {
	CAPTURE_WAITING,
	CAPTURE_RUNNING,
	CAPTURE_DONE,
	CAPTURE_EMPTY,
	CAPTURE_FAILED
};

struct capture {
	char id[24];
	enum capture_state state;
	char service[1004], target[304], type[64];
	int64_t seconds;
	int64_t created, started, ended; /* ns since 1970; 0: not yet */
	int64_t left_ns;		 /* until it should be there */
	char profile[COLLECT_ID_BYTES];	 /* of CAPTURE_DONE */
	char why[500];			 /* of CAPTURE_EMPTY and _FAILED, or what it waits for */
};

struct capture_request {
	struct str service, target; /* one may be "": any of the service, any of this address */
	struct str type;
	int64_t seconds; /* 0: as the job has it; of no matter to what a target has at once */
};

/* Only of what is a target of some job. ERR_NOTFOUND: it is none; ERR_LIMIT: too many at a time. */
bool collector_capture(struct collector *c, const struct capture_request *r, struct capture *out,
		       struct err *e);
/* False: there is none of that id, or it was long ago. */
bool collector_find_capture(struct collector *c, struct str id, struct capture *out);

/* ---- how it is */

struct type_view {
	const char *type;
	const char *state;   /* new, ok, failing, absent, running, resting */
	const char *problem; /* "": none */
	int64_t last, next;  /* ns since 1970; 0: never, or right now */
	double duration_s;   /* of the last */
	uint64_t nok, nfailed;
};

struct target_view {
	struct str address, service;
	const struct target_label *labels;
	size_t nlabels;
	const char *state; /* new, up, down */
	const char *problem;
	int64_t last, since; /* scraped; in this state. ns since 1970 */
	struct type_view *types;
	size_t ntypes;
};

struct job_view {
	const char *name, *problem;
	int64_t interval, replicas;
	size_t nup, ndown, nnew;
	struct target_view *targets;
	size_t ntargets;
	/* What keeps single targets from being any: the first of them, and how many more. */
	const char **faults;
	size_t nfaults, nmore_faults;
};

/* Which jobs and targets; p == NULL: any. */
struct target_filter {
	struct str job, service, state;
};

/* All in `a`. Without a filter it is all jobs, but only their numbers. */
void collector_view(struct collector *c, const struct target_filter *f, struct arena *a,
		    struct job_view **jobs, size_t *n);
/* Memory that such a view takes, by and large. */
size_t collector_view_bytes(struct collector *c, const struct target_filter *f);

#endif
