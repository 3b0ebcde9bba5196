/* round.h - one profile of each type of each target, once.
 *
 * Targets are asked at the same time, as many as there are workers; each for one profile after the
 * other, so that no two CPU profiles of a process run into each other, and no profile has in it
 * what taking another costs. Those that follow each other and have the same name, as containers of
 * a pod, take turns, too. They have a deadline: the seconds that they are asked to collect, and
 * `timeout_ms`. What may pass by itself (no answer, a status of 500 and more, a sink that is busy)
 * is tried again, later each time. Whatever a target does costs no other one anything.
 */
#ifndef COLLECT_ROUND_H
#define COLLECT_ROUND_H

#include "collect/collect.h"

struct http_client;
struct http_response;

struct round_target {
	const char *name;	   /* for people: ops/web-1 */
	const char *url;	   /* scheme://host:port/prefix, without a slash at its end */
	const char *authorization; /* a header, or NULL */
	struct str service, instance;
	const struct profile_type *types;
	size_t ntypes;
	const struct target_label *labels;
	size_t nlabels;
	const void *origin; /* whatever it was made of */
};

struct round_request {
	const struct round_target *target;
	const char *path; /* below the target's URL: profile?seconds=30 */
	int64_t timeout_ms;
	size_t max_bytes;
	atomic_bool *canceled;
};

/* What became of one profile. */
struct round_result {
	const struct round_target *target;
	const struct profile_type *type;
	enum collect_result result;
	unsigned ntries;
	size_t nbytes;
	int64_t took_ms;
	char id[COLLECT_ID_BYTES];
	struct err e; /* why, unless the result is COLLECT_OK */
};

struct round_params {
	const struct round_target *targets;
	size_t ntargets;
	unsigned nworkers;
	int64_t timeout_ms;
	unsigned max_tries; /* of each request */
	size_t max_bytes;   /* of a profile, as it is sent */
	atomic_bool *canceled;
	/* Asks a target; true if it has answered in full, whatever the status. NULL: over HTTP, by
	 * round_get. From any thread, as the next. */
	bool (*get)(void *ctx, const struct round_request *q, struct http_response *r,
		    struct err *e);
	/* As collect_sink's; after COLLECT_UNREACHABLE it is tried again. */
	enum collect_result (*put)(void *ctx, const struct collected *p, char id[COLLECT_ID_BYTES],
				   struct err *e);
	/* One at a time. */
	void (*tell)(void *ctx, const struct round_result *r);
	void *ctx;
	struct http_client *client; /* for round_get */
};

void round_run(const struct round_params *params);
/* Redirects are not followed, and no proxy is asked. */
bool round_get(struct http_client *client, const struct round_request *q, struct http_response *r,
	       struct err *e);

#endif
