/* analyze.h - the pipeline: sources to a profile, a profile to a report.
 *
 *	analyze_load(&s, &command_line, &warnings, &e)		once
 *	analyze_report(&s, report, argument, &options, &out, &warnings, &e)	any number of times
 *	session_release(&s)
 *
 * Nothing is printed here; warnings are whole lines.
 */
#ifndef ANALYZE_ANALYZE_H
#define ANALYZE_ANALYZE_H

#include "analyze/cache.h"
#include "analyze/flags.h"
#include "analyze/views.h"
#include "base/buf.h"
#include "base/stop.h"
#include "profile/profile.h"
#include "report/report.h"

struct session {
	struct arena arena;
	struct strings strings;
	struct profile profile; /* merged, named, as it came: not filtered */
	int threads;
	struct viewed viewed;
	/* Of those who ask for many reports: what the next may need again is kept. */
	bool keeps_slices;
	struct cache cache;
};

/* Reads, merges and names what the command line asks for. */
bool analyze_load(struct session *s, const struct command_line *c, struct buf *warnings,
		  struct err *e);
void session_release(struct session *s);

/* What the shell says first: the profile's labels, and how to go on. */
bool analyze_greet(struct session *s, const struct analyze_options *options, struct buf *out,
		   struct err *e);

/* Of a profile's time, in nanoseconds after its first sample; both 0: all of it. */
struct time_range {
	int64_t from, to;
};

/* Filters, aggregates and prints. The session's profile stays as it is. */
struct analyze_request {
	const struct report *report;
	const char *argument; /* of -peek and its like, or "" */
	const struct analyze_options *options;
	void *into;		 /* report_params.into */
	struct time_range time;	 /* what was sampled then, of profiles that know */
	const atomic_bool *stop; /* or NULL; once set, what comes out is of no use */
};
bool analyze_report(struct session *s, const struct analyze_request *q, struct buf *out,
		    struct buf *warnings, struct err *e);

#endif
