/* top.h - the parts of store_top. Private to top*.c.
 *
 * A series' time is cut into windows: days, hours and pieces of five minutes that have come to
 * rest, of which sums by function are kept (hot.h), pieces to which something may still come, and
 * the rest. Services are divided among threads.
 */
#ifndef STORE_TOP_H
#define STORE_TOP_H

#include "store/kind.h"
#include "store/naming.h"
#include "store/running.h"
#include "store/sums.h"

#define TOP_SECOND ((int64_t)1000000000)
#define TOP_PIECE (300 * TOP_SECOND)
#define TOP_HOUR (3600 * TOP_SECOND)
#define TOP_DAY (24 * TOP_HOUR)
enum { TOP_MAX_PARTS = 16 };

/* A row to be. */
struct top_weight {
	uint32_t key; /* function, or string that is a group */
	uint32_t by;  /* string */
	double flat, cum;
	/* In each half: flat, times how much of what ran was profiled; of gauges, what there was */
	double early, late;
	int64_t service; /* that was the last to add to it */
	uint32_t nservices;
	uint32_t shares; /* the first of several, + 1; 0: all of it is of: */
	void *ctx;	 /* of group_ctx_of */
};

/* Most functions are of services that are all alike. What others weigh in each kind of service. */
struct top_share {
	uint32_t key, by; /* of the weight */
	void *ctx;
	double ran, cum;
	uint32_t next; /* of the same weight, + 1 */
};
struct top_weights {
	vec(struct top_weight) at;
	struct map map;
};

/* What a series has of a function, before it is known how long it ran. */
struct top_local {
	uint32_t function;
	double flat, cum, late;
};

/* A function of a book, and its number in hot.h. */
struct top_known {
	int64_t book;
	uint64_t id;
	uint32_t function;
};

struct topping {
	struct store *s;
	const struct store_top_params *params;
	struct hot *hot;
	struct picked *picked;
	uint32_t sample_type; /* string */
	uint64_t generation;  /* of names */
	int64_t settled;      /* what is older has come to rest */
	int64_t from, to, middle;
	bool has_weeks; /* they are told apart */
	/* Several kinds of values were found: this one is told (strings of `hot`). */
	bool is_chosen;
	uint32_t name, unit;
	size_t max_weights;
	atomic_bool is_failed;
	size_t first[TOP_MAX_PARTS + 1]; /* series of each part */
	struct top_part *parts;
	size_t nparts;
};

/* Of gauges: how often a series has told what it is, in each half, since when and until when. */
struct top_told {
	double early, late, total;
	uint64_t nprofiles;
	int64_t first, last;
};

/* What a service has of gauges: values, times for how long (in nanoseconds) they were there. */
struct top_levels {
	struct top_weights weights;
	double total;
	double first, end;     /* since its first profile, until it would have told again */
	double longest, gap;   /* that one of its series was there; between two times it told */
	double early, late;    /* the longest in each half */
	bool has_any, is_told; /* one of them told more than once */
};

enum top_kind { TOP_ONCE, TOP_OPEN, TOP_KEPT };
struct top_window {
	int64_t from, to;
	enum top_kind kind;
	unsigned level; /* of what is kept: how long it is */
};

/* What one thread does. */
struct top_part {
	struct topping *t;
	struct sums sums;
	struct buf scratch;
	struct top_weights weights;
	struct top_levels levels; /* of the service that is being read */
	vec(struct top_share) shares;
	struct map share_map;
	void *ctx;	     /* of the service that is being read, if services are told apart */
	vec(uint32_t) slots; /* of functions: number in `locals` + 1 */
	struct hot_groups groups;
	vec(struct top_local) locals;
	vec(struct top_known) known;
	struct map known_map;
	double total;
	uint64_t nprofiles, nservices;
	uint32_t name, unit;
	bool has_unit, is_gauge;
	struct kinds kinds; /* of all that was found */
	/* the last of them */
	uint32_t kind, kind_name, kind_unit;
	int64_t first, last;	/* times of profiles */
	struct picked *untyped; /* a series without the sample type, here: */
	struct top_window untyped_window;
	struct err no_type; /* of what was left out */
	struct err e;
	bool ok;
	/* of the window that is being read */
	struct hot_sum sum;
	struct running running;
	struct top_told told;
	struct str type; /* of the profiles */
	struct naming naming;
	struct top_opening *opening; /* or NULL */
	/* ERR_LIMIT if an open window has more profiles, or more that are new; 0: any number */
	int64_t max_rows, max_new;
};

/* ---- windows (top_windows.c) */

/* How long those are that are kept: each is a whole number of the next. */
enum { TOP_HOUR_LEVEL = 2, TOP_NLEVELS = 5 };
extern const int64_t top_lengths[TOP_NLEVELS];

void top_part_init(struct top_part *p, struct topping *t);
void top_part_release(struct top_part *p);
/* The next one of a series from a time on. */
struct top_window top_cut(const struct topping *t, const struct picked *series, int64_t at,
			  int64_t to);
/* What functions weigh in it: p->sum. */
bool top_read(struct top_part *p, struct picked *series, const struct top_window *w, struct err *e);

/* ---- gauges (top_levels.c): each value of a function is there until the next one of its process;
 * those of processes and series are added, and divided by how long the service was there. */

/* The window that was read belongs to a series that counts no events. Its values are multiplied by
 * `ratio`, as they may be in another unit. */
void top_note_level(struct top_part *p, bool is_late, double ratio);
/* What the series has of one value of `by` has been read: p->locals. */
void top_add_level(struct top_part *p, const struct picked *series, uint32_t by);
/* All series of a service have been. */
void top_end_levels(struct top_part *p);

/* ---- of all (top.c) */

struct top_weight *top_weight_of(struct top_part *p, struct top_weights *weights, uint32_t key,
				 uint32_t by);
/* Adds to `ran` and `cum` of a weight what services of one kind, x->ctx, have of it. Shares are
 * only kept once there are several kinds. */
void top_share(struct top_part *p, struct top_weight *w, const struct top_share *x);
/* A function, or what it is of: the key of a weight. */
uint32_t top_key_of(struct top_part *p, uint32_t function);

/* ---- rows (top_rows.c): of what is in the first part */

void top_make_rows(struct topping *t, struct arena *a, struct store_top *top);

#endif
