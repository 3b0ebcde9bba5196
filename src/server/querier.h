/* querier.h - what answers to Pyroscope's queries have in common. Private to querier*.c and
 * pyroscope.c.
 *
 * Pyroscope's series are of one sample type each, and have it in labels of their own: a series of
 * kiln's is several of those, and its service is their label service_name.
 */
#ifndef SERVER_QUERIER_H
#define SERVER_QUERIER_H

#include "server/profile_types.h"
#include "server/querier_messages.h"
#include "server/selector.h"
#include "server/server.h"

struct querier {
	struct call *c;
	struct arena *a; /* the call's */
	struct store *store;
	const atomic_bool *stop;
	struct strings *strings; /* of profiles */
};

/* ---- which profiles (querier_labels.c) */

/* Zero-initialised it selects everything. */
struct selection {
	struct selector read; /* as it was written */
	/* Conditions that are the store's business, and those that a sample type's own labels must
	 * meet: */
	vec(struct store_matcher) matchers, own;
	struct profile_type_id id; /* of selection_set_type */
};
/* Adds a selector of PromQL: {service_name="x", version=~"1.*"}; "": nothing. */
bool selection_add(struct selection *s, struct arena *a, struct str selector, struct err *e);
/* Only this profile type: process_cpu:cpu:nanoseconds:cpu:nanoseconds. ERR_NOTFOUND if that is not
 * what the selector says. */
bool selection_set_type(struct selection *s, struct arena *a, struct str id, struct err *e);
void selection_release(struct selection *s);

/* Milliseconds of requests. Both 0 is all times, or, if they are needed, ERR_USAGE. */
bool selection_query(const struct selection *s, const struct querier *q, int64_t start, int64_t end,
		     bool needs_times, struct store_query *query, struct err *e);
/* The value of a label that all of a profile type have in common, such as __type__; p == NULL: it
 * is another one's. */
struct str profile_type_label(struct arena *a, const struct profile_type_id *id, struct str name);
/* The store's name of a label: service_name is its service. */
struct str store_label_name(struct str name);

/* ---- merges (querier_merge.c) */

enum { USUAL_NODES = 8192, MAX_NODES = 1 << 20, MAX_CALL_SITE = 256, MAX_IDS = 1024 };

struct merged {
	struct profile profile;
	uint32_t column; /* of the sample type */
};
/* The sum of what is asked for, in the call's arena. ERR_NOTFOUND: there is nothing. */
bool querier_merge(const struct querier *q, const struct ask_merge *ask, struct merged *m,
		   struct err *e);
/* Two as one, of which the left is the base; one of them may be nothing. */
bool querier_compare(const struct querier *q, const struct ask_merge *left,
		     const struct ask_merge *right, struct merged *m, struct err *e);

/* A flame graph, as one of these forms. */
enum flame_form { FLAME_MESSAGE, FLAME_JSON, FLAME_TREE };
struct flame_made {
	enum flame_form form;
	bool is_diff;
	int64_t max_nodes;
	int64_t total, left, right; /* set */
};
bool querier_flame(const struct querier *q, const struct merged *m, struct flame_made *made,
		   struct buf *out, struct err *e);
/* A graph for Graphviz. */
bool querier_dot(const struct querier *q, const struct merged *m, int64_t max_nodes,
		 struct buf *out, struct err *e);
/* Only the sample type that was asked for. */
struct profile merged_profile(struct arena *a, const struct merged *m);

/* Stacks that begin so, as the store has it. ERR_USAGE: what cannot be done. */
bool querier_call_site(struct arena *a, const struct ask_stacks *ask, struct str **functions,
		       size_t *n, struct err *e);

/* ---- values over time (querier_series.c) */

struct series_made {
	struct store_line *lines; /* the highest first, if there are more than asked for */
	size_t n;
	int64_t step; /* ns */
};
bool querier_series(const struct querier *q, const struct ask_series *ask, struct series_made *made,
		    struct err *e);

/* ---- the calls, each with the struct that its request was read into */

typedef bool querier_call(const struct querier *q, const void *request, struct buf *out,
			  struct err *e);
querier_call querier_profile_types, querier_label_names, querier_label_values, querier_label_sets,
	querier_select_series, querier_merge_stacktraces, querier_merge_profile, querier_diff,
	querier_stats;

#endif
