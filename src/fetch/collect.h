/* collect.h - profiles of running servers, saved in dated folders, again and again.
 *
 * A round takes one profile after the other from each target, all targets at the same time, and
 * writes DIR/2020-10-01-22:08:40/<service>-<type>-<time>.pb.gz in local time. A target that does
 * not answer is reported and asked again in the next round.
 */
#ifndef FETCH_COLLECT_H
#define FETCH_COLLECT_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

struct fetch_remote;

/* A server to ask. */
struct collect_target {
	const char *service; /* part of file names */
	const char *url;     /* of its profiles: http://host:port/debug/pprof */
};

/* Reads host:port, http://host:port or name=http://host:port; strings go to `a`. */
bool collect_target_parse(struct arena *a, const char *text, struct collect_target *out,
			  struct err *e);

struct collect_params {
	const struct collect_target *targets;
	size_t ntargets;
	const char *const *types; /* cpu, heap and so on: what comes after /debug/pprof/ */
	size_t ntypes;
	const char *out_dir;
	int64_t seconds; /* of CPU profiles */
	int64_t timeout; /* in seconds; what is not above 0 was not given */
	size_t max_bytes;
	int64_t every_ms; /* 0: one round */
	int64_t for_ms;	  /* 0: until stopped */
	struct fetch_remote *remote;
	/* After the first read from here nothing more is begun; after the second what goes on is
	 * ended. A pipe or a signalfd. */
	int stop_fd;
	/* Gets whole lines, from one thread at a time. */
	void (*tell)(void *ctx, bool is_failure, struct str line);
	void *tell_ctx;
};

/* Returns when all rounds are done. `summary` gets lines that say how many of what were saved, and
 * why others were not. False: nothing was saved. */
bool collect_run(const struct collect_params *params, struct buf *summary, struct err *e);

#endif
