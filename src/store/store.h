/* store.h - profiles of a fleet, kept in one folder: put in, found again, summed up.
 *
 * A profile belongs to a series: a service, a type ("cpu", "heap"; any name) and labels. It is
 * split on arrival into what repeats, which goes to the service's book (book.h), and numbers, so
 * that summing a thousand of them is adding integers, and any of them can still be rebuilt with
 * every field. What is not a profile ("trace") is kept as it came.
 *
 * What store_put has returned true for survives a crash. Threads: any number may use one store.
 */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/regex.h"
#include "base/stop.h"
#include "base/str.h"
#include "profile/profile.h"

struct store;

/* How long what is kept, and how finely. All may be 0: no limit. A tier stays for at least as long
 * as what is finer; one that would end with that is not made at all. */
struct store_keep {
	int64_t raw_ns, minute_ns, hour_ns, day_ns; /* ages at which a tier is dropped */
	uint64_t max_bytes; /* of the folder: the oldest is thinned, then dropped, to stay below */
	uint64_t min_free_bytes; /* of the disk: the same */
};

/* Ages for a service, or for those that a pattern fits: "batch-*", where '*' is any text. */
struct store_rule {
	struct str service;
	int64_t raw_ns, minute_ns, hour_ns, day_ns; /* below 0: as for all */
	bool is_stored;				    /* set by store_rules: in the folder */
};

/* Where an address is: in a mapping of a binary. */
struct store_place {
	uint64_t address; /* from the mapping's start */
	uint64_t size, offset;
};
struct store_binary; /* the namer's own */
/* Who knows names of addresses that came without: sums, and what is told of functions, have them.
 * What was pushed stays as it is, and so does what was named by whoever pushed it. Called from any
 * thread. */
enum { STORE_MAX_FRAMES = 64 };
struct store_namer {
	void *ctx;
	/* From `begin` to `end`, in which nobody waits, what was found stays. */
	void (*begin)(void *ctx);
	void (*end)(void *ctx);
	/* NULL: nothing is known of it, nor will be soon. */
	struct store_binary *(*binary)(void *ctx, struct str build_id, struct str file);
	/* How many frames there are, innermost first; `frames` has room for STORE_MAX_FRAMES. 0:
	 * none; if there may be some in a while, *nmissing goes up. */
	uint32_t (*find)(void *ctx, struct store_binary *b, const struct store_place *place,
			 struct profile_frame *frames, uint64_t *nmissing);
	/* Waits a while for what was missing. */
	void (*wait)(void *ctx);
	/* How many addresses have got names so far; cheap. */
	uint64_t (*nfound)(void *ctx);
	/* A name that linkers know as people read it, between `begin` and `end`; p == NULL: it is
	 * no such name. */
	struct str (*readable)(void *ctx, struct str name);
	/* Goes up when an answer that was given for good, which is any but one that raised
	 * *nmissing, may be another now: debug info came, was replaced, or went. Cheap, and may be
	 * called at any time. */
	uint64_t (*generation)(void *ctx);
};

struct store_params {
	const char *dir;     /* made if it is not there; one process at a time may have it */
	uint64_t max_memory; /* that books, caches and merges may take together */
	uint32_t max_series; /* 0: no limit; more are refused (ERR_LIMIT) */
	uint32_t max_service_series;	/* the same for each service */
	struct store_keep keep;		/* of all services */
	const struct store_rule *rules; /* of some: the first that fits, names before patterns */
	size_t nrules;
	bool is_passive; /* no work in the background: for tools that work offline */
	bool is_lazy;	 /* what is put is durable when the store has been closed, not before */
	/* Of long work of tools, or NULL: done of all. */
	void (*progress)(void *ctx, uint64_t done, uint64_t all);
	void *progress_ctx;
	void (*log)(void *ctx, const char *line); /* or NULL */
	void *log_ctx;
};

struct store *store_open(const struct store_params *params, struct err *e);
/* From now on, until the store is closed; nobody asks yet. */
void store_set_namer(struct store *s, const struct store_namer *namer);
/* Gives a profile of the store, as store_get returns it, the names that merges have. */
void store_name_profile(struct store *s, struct arena *a, struct profile *p);
/* So many bytes of the folder are not the store's own, but count towards its limit. ERR_LIMIT:
 * there is no room for them; what is old is being thinned out, so that there will be. */
bool store_set_others(struct store *s, uint64_t bytes, struct err *e);
/* The build ids of all binaries that stored profiles name, sorted; they lie in `a`. Reads all
 * books.
 */
bool store_build_ids(struct store *s, const atomic_bool *stop, struct arena *a, struct str **ids,
		     size_t *n, struct err *e);
/* Waits for what is being put. */
void store_close(struct store *s);

/* ---- one profile */

enum { STORE_ID_BYTES = 12, STORE_ID_CHARS = 20 };
/* As profefe's: 20 characters of 0-9a-v; the first four bytes are the second of arrival. */
struct store_id {
	unsigned char at[STORE_ID_BYTES];
};
void store_id_print(struct buf *out, const struct store_id *id);
/* False: that is no id. */
bool store_id_parse(struct str text, struct store_id *id);

struct store_label {
	struct str key, value;
};

struct store_meta {
	struct store_id id;
	struct str service, type;
	const struct store_label *labels; /* sorted by key, then in the order in which they came */
	size_t nlabels;
	int64_t created; /* nanoseconds since 1970 */
	uint64_t nsamples;
	uint64_t bytes;	 /* that it takes in the store */
	int64_t process; /* tells apart those that push under the same labels; 0: not known */
};

struct store_new {
	struct str service, type;
	const struct store_label *labels; /* in any order */
	size_t nlabels;
	const struct store_id *id;     /* or NULL: a new one */
	int64_t created;	       /* if the profile does not say; 0, or far ahead: now */
	struct str instance;	       /* which process, pod, ...: any text; "": not known */
	int64_t process;	       /* as store_meta has told it; 0: see delta.h */
	const struct profile *profile; /* or NULL: */
	struct str bytes;	       /* what is kept as it is */
	/* Or NULL: called once the profile is not needed any more, which is before it is durable.
	 * Not if it is refused before that. */
	void (*let_go)(void *ctx);
	void *ctx;
};
/* Returns when it is durable. ERR_LIMIT: it is refused, and e->text begins with the limit's name;
 * ERR_IO: the disk is full or broken. `meta`, in `a`, is what is known of it then. */
bool store_put(struct store *s, const struct store_new *new, struct arena *a,
	       struct store_meta *meta, struct err *e);
/* Several that come together, and are stored together or not at all. A profile that has been added
 * need not live on; one that is refused then, as by store_put, leaves the others as they are. For
 * one thread. */
struct store_batch;
struct store_batch *store_batch_new(struct store *s);
bool store_batch_add(struct store_batch *b, const struct store_new *new, struct err *e);
/* Returns when they are durable. Once. */
bool store_batch_commit(struct store_batch *b, struct err *e);
void store_batch_free(struct store_batch *b);
/* The profile, equal in every field to what was put; or, if it was no profile, its bytes (then
 * p->strings is NULL). ERR_NOTFOUND. */
bool store_get(struct store *s, const struct store_id *id, struct arena *a, struct strings *strings,
	       struct store_meta *meta, struct profile *p, struct str *bytes, struct err *e);

/* ---- many */

enum store_match { STORE_EQUAL, STORE_NOT_EQUAL, STORE_LIKE, STORE_NOT_LIKE };
/* A label that is not there is "". The names "service" and "type" mean those; labels that are
 * called so go by store_query_name. */
struct store_matcher {
	struct str name;
	enum store_match op;
	struct str value;
	const struct regex
		*regex; /* of STORE_LIKE and STORE_NOT_LIKE: all of the value must match */
};

/* By which name queries have a label: "exported_service" and "exported_type", as Prometheus has it,
 * or what it is called. */
struct str store_query_name(struct str key);

struct store_query {
	const struct store_matcher *matchers; /* all must hold */
	size_t nmatchers;
	int64_t from, to;	 /* nanoseconds; both belong to it */
	uint64_t limit;		 /* the newest so many; 0: all */
	const atomic_bool *stop; /* or NULL */
	/* Sums may be of profiles of several types: who asks knows that they mean the same. */
	bool may_mix_types;
	/* Of store_merge: profiles that have this sample type, in this unit or another of its
	 * family; "", or what none has: in that which most services have. */
	struct str sample_type, unit;
	bool is_whole; /* of store_merge: ERR_USAGE if anything had to be left out */
};

/* What a query found, but could not add to the rest: it has other sample types (kind.h). */
struct store_left_out {
	uint64_t nprofiles, nservices;
	struct str why; /* for people; "" if there is nothing */
};

/* In order of time. */
bool store_find(struct store *s, const struct store_query *q, struct arena *a,
		struct store_meta **metas, size_t *n, struct err *e);

/* How values of several profiles become one. */
enum store_sum {
	STORE_AS_TYPE, /* what a sample type means: counters are added, those that count from a
			  process's start as differences; gauges (memory in use, threads) are
			  averaged */
	STORE_SUM,
	STORE_MEAN,
	STORE_LAST, /* of each series */
	STORE_MAX,  /* the profile with the highest total, of each series */
};
struct store_merged {
	struct profile profile;
	uint64_t nprofiles, nseries;
	int64_t first, last;		/* times of the profiles in it */
	uint64_t ntiers;		/* sums that were read instead of single profiles */
	struct store_left_out left_out; /* is in none of these numbers */
};
/* One profile of all that the query finds; they must be of one type. ERR_NOTFOUND: nothing. */
bool store_merge(struct store *s, const struct store_query *q, enum store_sum how, struct arena *a,
		 struct strings *strings, struct store_merged *out, struct err *e);
/* The same, as STORE_AS_TYPE, of profiles that are named: each adds what it adds to a sum over
 * time, and one alone is what was pushed. ERR_NOTFOUND: one of them is not there. */
bool store_merge_ids(struct store *s, const struct store_id *ids, size_t n, const atomic_bool *stop,
		     struct arena *a, struct strings *strings, struct store_merged *out,
		     struct err *e);

/* ---- what there is */

struct store_name {
	struct str name;
	uint64_t nseries, nprofiles;
	int64_t first, last; /* 0: not known */
};
/* Of "service", "type" or a label: its values; of "": the names of labels. Of what the query finds,
 * whose times may be 0 for all. Sorted. */
bool store_names(struct store *s, const struct store_query *q, struct str of, struct arena *a,
		 struct store_name **names, size_t *n, struct err *e);

/* Series, and what their newest profiles have: for those who list what may be asked for. */
struct store_sample_type {
	struct str type, unit, period_type, period_unit;
};
struct store_listed {
	struct str service, type;
	const struct store_label *labels; /* sorted by key */
	size_t nlabels;
	const struct store_sample_type *types; /* none of what is no profile */
	size_t ntypes;
};
/* Those that the query, whose times may be 0 for all, finds profiles of; by service, in the order
 * in which they came. */
bool store_list(struct store *s, const struct store_query *q, struct arena *a,
		struct store_listed **series, size_t *n, struct err *e);

/* Values over time: the total of a sample type, or of those samples that have a function. */
struct store_series_params {
	struct store_query query;
	struct str by; /* a label, "service" or "type": one line for each; "": one in all. Several
			  have a NUL between them, and so have the names of their lines */
	struct str sample_type; /* "": the default one */
	struct str unit; /* that values are wanted in; "": the finest that most services have */
	struct store_left_out *left_out; /* or NULL: set to what is not in the lines */
	struct str function;		 /* "": the whole profile */
	bool is_flat;			 /* of the function: itself only */
	/* Instead of one function: only samples whose stacks begin with these, from the root on. */
	const struct str *call_site;
	size_t ncall_site;
	int64_t step;	 /* nanoseconds; points are at multiples of it */
	bool has_levels; /* then there are points, with a level only, between those of a series */
	enum store_sum how;
};
struct store_point {
	int64_t time;
	double value;
	uint64_t nprofiles;
	/* How much it is at a time, all series together: of what is counted so much per second of
	 * its profiles' durations, or of the step if they have none; of gauges their means. */
	double level;
};
struct store_line {
	struct str name, unit;
	bool is_gauge;
	struct store_point *points;
	size_t n;
};
bool store_series(struct store *s, const struct store_series_params *params, struct arena *a,
		  struct store_line **lines, size_t *n, struct err *e);

/* The functions that weigh most in all that the query finds, over all services. */
enum store_top_order {
	STORE_TOP_FLAT,
	STORE_TOP_CUM,
	STORE_TOP_RATE,
	STORE_TOP_SERVICES,
	STORE_TOP_TREND
};
struct store_top_params {
	struct store_query query;
	struct str sample_type;
	struct str by; /* "", "service", a label (version), or "week": rows are per function and
			  that */
	enum store_top_order order;
	uint32_t limit;
	/* Times of more than six hours begin at a whole hour, and those of one or more at whole
	 * five minutes: sums of those are kept, and what is shorter must be read. */
	bool is_rough;
	/* The same, and times end where profiles have come to rest, some minutes ago: then all is
	 * known from sums that are kept in memory, once they have been made. If they begin within
	 * the last hour, or the profiles do, they end now. */
	bool is_settled;
	/* What is summed up for it is written down, too: so it is known when the store is opened
	 * again. For who asks again and again, in the background. */
	bool is_kept;
	/* Or NULL: rows are of what this makes of functions, and have no file. Always the same text
	 * of the same function, good as long as the function's. Called by several threads at a
	 * time. */
	struct str (*group)(void *ctx, struct str function, struct str file, struct str module);
	void *group_ctx;
	/* Or NULL: what `group` gets as its ctx for functions of a service, made of group_ctx. The
	 * same texts for the same one, which is good as long as the store. Without `group` it says
	 * what services are alike: rows have a part for each that is different. */
	void *(*group_ctx_of)(void *ctx, struct str service);
	struct str function; /* only this one, or this group; "": all */
};
struct store_top_part {
	void *ctx;	  /* of group_ctx_of */
	double flat, cum; /* for comparing: what was profiled in part counts for all of it */
};
struct store_top_row {
	struct str function, file, module, by;
	int64_t flat, cum; /* of groups no cum: 0 */
	/* A second, as far as can be told (running.h): CPU seconds in a second, if it is CPU time.
	 * And how much more that is in the second half of the time than in the first. Of gauges
	 * there are no rates: it is what there is at a time, as are flat and cum. Instances and
	 * services are added, each averaged over the time in which its service was there. */
	double rate, trend;
	uint64_t nservices;
	struct store_top_part *parts; /* in any order */
	size_t nparts;
};
struct store_top {
	struct store_top_row *rows;
	size_t n, nall; /* shown, and of all */
	int64_t total;
	double rate; /* of all */
	bool is_gauge;
	struct str unit;
	uint64_t nprofiles, nservices;
	int64_t from, to;
	struct store_left_out left_out;
};
bool store_top(struct store *s, const struct store_top_params *params, struct arena *a,
	       struct store_top *top, struct err *e);

/* From now on, until the store is closed; once. Sums by function of profiles of this type, which
 * must stay, are made as they are put, as far as that takes a fiftieth of the machine: so the
 * first who asks for the newest, without is_settled, need not wait until they are read. */
void store_follow(struct store *s, struct str type);
/* What was made so is durable, and known when the store is opened again. */
void store_save_followed(struct store *s, const atomic_bool *stop);

/* Names of functions at addresses of some profile or merge; nobody says which, so it is that of
 * which most are known. names[i].p is NULL if there is none; they lie in `a`. */
bool store_symbols(struct store *s, const uint64_t *addresses, size_t n, const atomic_bool *stop,
		   struct arena *a, struct str *names, struct err *e);

/* ---- less */

/* Deletes what the query finds, tiers too; with `dry_run` only counts. */
bool store_delete(struct store *s, const struct store_query *q, bool dry_run, uint64_t *n,
		  struct err *e);
/* What is kept of one service, or of those that a pattern fits, whatever holds for all. It is kept
 * in the folder, and goes before the rules of store_params. */
bool store_set_rule(struct store *s, const struct store_rule *rule, struct err *e);
/* ERR_NOTFOUND: there is none of that name. */
bool store_drop_rule(struct store *s, struct str service, struct err *e);
/* All: first those that were set, by name, then those of store_params. */
void store_rules(struct store *s, struct arena *a, struct store_rule **rules, size_t *n);
bool store_rule_fits(struct str pattern, struct str name);
/* What would go now for its age, if this were so; nothing changes. */
struct store_rule_change {
	const struct store_rule *rule; /* NULL: nothing else than what is */
	bool is_drop;		       /* only its service counts */
};
struct store_foreseen {
	uint64_t nthinned; /* profiles of which only sums would be left */
	uint64_t ndropped; /* of which nothing would */
	uint64_t nseries;  /* that have some of them */
};
bool store_foresee(struct store *s, const struct store_rule_change *change, int64_t now,
		   const atomic_bool *stop, struct store_foreseen *out, struct err *e);

/* ---- what is said of a time: a deployment, an outage */

enum { STORE_MAX_ANNOTATIONS = 10000 };
struct store_annotation {
	int64_t id;
	int64_t time, end; /* the same, if it is of a moment */
	struct str text;
	struct str service; /* "": of all */
	struct str tags;    /* with commas between them */
	struct str who;	    /* said so; "": nobody knows */
};
/* It is durable then, and has its id. Kept are the newest STORE_MAX_ANNOTATIONS, for as long as
 * sums of a day of its service are. ERR_USAGE: a text that is empty, too long or no text, or a
 * time that is not to be kept. */
bool store_annotate(struct store *s, struct store_annotation *x, struct err *e);
/* ERR_NOTFOUND: there is none. */
bool store_drop_annotation(struct store *s, int64_t id, struct err *e);
struct store_annotation_query {
	int64_t from, to;   /* some of its time is within them */
	struct str service; /* that, or all; "": any */
	struct str tag;	    /* that it has; "": any */
	size_t limit;	    /* 0: none */
};
struct store_annotations {
	struct store_annotation *at;
	size_t n;
	bool has_more;
};
/* The newest first; they are in `a`. */
bool store_annotations(struct store *s, const struct store_annotation_query *q, struct arena *a,
		       struct store_annotations *found, struct err *e);

/* What is otherwise done in the background, at once, and as if it were `now`: sums of minutes,
 * hours and days, and less of what is older than it is to be kept, or too much. */
bool store_tidy(struct store *s, int64_t now, struct err *e);

/* ---- for tools that work offline */

struct store_checked {
	uint64_t nprofiles, nsums, nproblems;
};
/* Reads everything back; `say` gets a line for each thing that is wrong. False: it could not. */
bool store_check(struct store *s, void (*say)(void *ctx, const char *line), void *ctx,
		 struct store_checked *out, struct err *e);
/* The sum of all profiles of a series in a window of time, in the place of those or beside them. */
struct store_window {
	struct str service, type;
	const struct store_label *labels;
	size_t nlabels;
	int tier; /* 1: a minute, 2: an hour, 3: a day */
	int64_t start, first, last, duration;
	uint64_t nprofiles;
	bool has_deltas; /* of values that count from a process's start it has the differences */
	bool is_thinned; /* the profiles are not there any more */
	int64_t until;	 /* up to here sums of its series have been made */
	const struct profile *profile;
};
struct store_carrier {
	bool (*profile)(void *ctx, const struct store_id *id, struct err *e);
	/* A window may come in parts, one after the other. */
	bool (*window)(void *ctx, const struct store_window *w, struct err *e);
	/* One of them (ERR_FORMAT) cannot be had; true: go on. */
	bool (*damaged)(void *ctx, const struct err *e);
	void *ctx;
};
/* Hands over all that there is: first profiles, those of each series in order of time. */
bool store_carry(struct store *s, const struct store_carrier *to, struct err *e);
/* One that is there already is left alone; with `is_more` it is another part of the one before. */
bool store_put_window(struct store *s, const struct store_window *w, bool is_more, bool *is_put,
		      struct err *e);
/* What can be said of a folder that cannot be opened. */
bool store_check_file(const char *dir, void (*say)(void *ctx, const char *line), void *ctx,
		      struct store_checked *out, struct err *e);
/* Drops what nothing needs, and makes the file as small as it can be. Puts wait meanwhile. */
bool store_compact(struct store *s, struct err *e);

/* ---- how it is */

struct store_stats {
	uint64_t nservices, nseries, nprofiles, nsamples;
	uint64_t bytes_on_disk, bytes_of_profiles, free_bytes;
	uint64_t memory; /* in use now */
	uint64_t nputs, ncommits, ndeleted, nthinned;
	uint64_t nwaiting; /* to be committed */
	int64_t oldest, newest;
	bool is_full; /* puts are refused for want of disk */
};
void store_stats(struct store *s, struct store_stats *out);

#endif
