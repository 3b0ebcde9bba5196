/* report.h - what kiln can print: one file per format, one line in reports.def.
 *
 * A report is given a profile that has been filtered and aggregated for it, and writes text. It
 * fails before it writes anything, or not at all, so `out` may flow straight into a file.
 */
#ifndef REPORT_REPORT_H
#define REPORT_REPORT_H

#include "base/regex.h"
#include "base/stop.h"
#include "graph/graph.h"
#include "profile/profile.h"
#include "symbol/symbol.h"

struct report_params {
	struct granularity keep; /* what tells frames apart */
	uint32_t value;		 /* sample type */
	bool mean, compact_labels, call_tree, drop_negative, is_cum_sorted;
	int64_t max_nodes; /* 0: all */
	double node_fraction, edge_fraction;
	double divide_by;
	int64_t total;		    /* what percentages are of */
	struct str unit;	    /* -unit */
	const char *const *filters; /* "focus=main" ..., NULL at the end */
	const char *argument;	    /* of -peek, -list, -disasm */
	const struct regex *regex;  /* the same compiled */
	const char *trim_path, *source_path;
	struct asm_style asm_style;
	const struct label_units *units;
	struct graph_memo *memo; /* of the profile's graphs; or NULL */
	int threads;
	const atomic_bool *stop; /* or NULL; once set, what comes out is of no use */
	void *into;		 /* for a report that prints nothing: where it puts what it finds */
};

struct report_run {
	struct arena *a;
	const struct profile *p;
	const struct report_params *params;
	struct str sample_unit;
	struct str unit;  /* in which values are printed; starts as params->unit */
	struct graph g;	  /* of those that have REPORT_GRAPH */
	struct buf *text; /* scratch of the functions below */
};

enum report_flag {
	REPORT_GRAPH = 1,	 /* wants r->g */
	REPORT_UNTRIMMED = 2,	 /* shows all nodes and edges, whatever the options say */
	REPORT_ALL_NODES = 4,	 /* no limit of 80 nodes by default */
	REPORT_ADDRESSES = 8,	 /* always by address */
	REPORT_LINES = 16,	 /* always by line */
	REPORT_NOINLINES = 32,	 /* never with inlined frames */
	REPORT_OBJECTS = 64,	 /* binaries and start lines tell frames apart */
	REPORT_VISUAL = 128,	 /* a drawing: tags, entropy order */
	REPORT_TREE = 256,	 /* honours call_tree */
	REPORT_BINARY = 512,	 /* not for a terminal */
	REPORT_OWN_UNITS = 1024, /* every value in its own unit, rather than one for all */
	REPORT_UNDIVIDED = 2048, /* callgrind: the unit of the smallest value, always */
	REPORT_PROFILE = 16384,	 /* prints the profile's own tables, which are aggregated for it */
	REPORT_NO_EDGES = 4096,	 /* looks at nodes only */
	REPORT_INLINE_EDGES = 8192,  /* ... and at whether they are inlined */
	REPORT_NEAR_EDGES = 1 << 15, /* ... and at edges of those that its argument matches */
	REPORT_ONLY_NAMED = 1 << 16, /* ... of functions that its argument matches */
	REPORT_PATHS = 1 << 17,	     /* shows source files as graphs do: without the build machine's
					part of their names */
	REPORT_FILES = 1 << 18,	     /* functions are told apart by their files, too */
	REPORT_NO_STACKS = 1 << 19,  /* looks at no stack: hidden frames may be there */
	REPORT_UNSORTED = 1 << 20,   /* looks at nodes in an order of its own */
};

struct report {
	const char *name;
	unsigned flags;
	const char *extension; /* of the file that a REPORT_BINARY one makes on a terminal */
	double node_fraction;  /* if not 0, the default of -nodefraction */
	bool (*run)(struct buf *out, struct report_run *r, struct err *e);
};

/* NULL if kiln cannot print that (yet). */
const struct report *report_find(const char *name);
/* Builds the graph if the report wants one, and prints it. */
bool report_print(struct buf *out, const struct report *report, struct arena *a,
		  const struct profile *p, const struct report_params *params, struct err *e);

/* ---- pictures of graphs (picture.c) */

/* The text of -dot, for Graphviz rather than for a person: names cannot break it. */
extern const struct report report_drawing;
struct picture_params {
	const char *format; /* svg, pdf, png, gif or ps */
	int64_t max_seconds;
	const atomic_bool *stop; /* or NULL: nobody wants it any more */
};
/* What Graphviz makes of that. */
bool picture_draw(struct buf *out, struct str dot, const struct picture_params *params,
		  struct err *e);
/* Graphviz' SVG as sound XML, whatever names it has. */
void picture_clean(struct buf *out, struct str svg);
/* Graphviz' SVG for browsers: fills the window, can be moved and zoomed. */
void picture_make_zoomable(struct buf *out, struct str svg);

/* ---- for the reports themselves, and the shell's greeting (values.c, labels.c) */

/* A value in the report's unit. */
void report_value(struct buf *out, const struct report_run *r, int64_t v);
/* The same, padded on the left. */
void report_value_cell(struct buf *out, const struct report_run *r, int64_t v, size_t width);
/* The five columns of a node's line; `sum` is what nodes so far weigh by themselves. */
void report_node_columns(struct buf *out, const struct report_run *r, const struct node *n,
			 int64_t sum);
/* The value divided by -divide_by. */
int64_t report_divided(const struct report_run *r, int64_t v);
/* The share of v in the total, with or without the blanks before it. */
void report_percent(struct buf *out, const struct report_run *r, int64_t v);
void report_percent_trimmed(struct buf *out, const struct report_run *r, int64_t v);
/* What a sample weighs, divided if -mean says so. */
int64_t report_sample_value(const struct report_run *r, const struct sample *s);

/* "File: x", "Type: cpu" and so on; lines are separated by '\n', the last has none. */
void report_profile_labels(struct buf *out, const struct report_run *r);
/* Those (unless compact), the filters, and what of the graph is shown. */
void report_labels(struct buf *out, const struct report_run *r, bool is_full);

#endif
