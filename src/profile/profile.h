/* profile.h - a profile in memory, and what can be done with one.
 *
 * Flat tables and 32-bit indices. A stack is a range of `stacks` (location indices, leaf first), a
 * sample's values are row `row` of `values`, its labels are one of the interned `label_sets`. Names
 * are indices into `strings`. All indices have been checked when the profile was read and are
 * trusted here.
 *
 * Ownership: the tables lie in the arena that was given to the function which made the profile;
 * `strings` outlives the profile. A struct profile may be copied; functions that "return" a changed
 * profile share every table that they did not change with their input and never write to it.
 * Threads: a profile that nobody writes to may be read by many.
 */
#ifndef PROFILE_PROFILE_H
#define PROFILE_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/stop.h"
#include "base/str.h"
#include "base/strings.h"

#define NONE UINT32_MAX /* no mapping, no function */

struct value_type {
	uint32_t type, unit; /* strings */
};

struct sample {
	uint32_t stack, nstack; /* stacks[stack] .. stacks[stack + nstack - 1], leaf first */
	uint32_t labels;	/* label_sets[labels] */
	uint32_t row;		/* values[row * ntypes] .. */
};

/* labels[first] .. : nstrings string labels sorted by key, then nnumbers numeric ones sorted by
 * key; values of one key keep the order in which they came. */
struct label_set {
	uint32_t first, nstrings, nnumbers;
};

struct label {
	uint32_t key;
	uint32_t text; /* the string value, or the unit of a number (0: none) */
	int64_t number;
};

struct mapping {
	uint64_t id, start, limit, offset;
	uint32_t file, build_id;
	uint32_t
		kernel_symbol; /* relocation symbol that followed "[kernel.kallsyms]" in the file */
	bool has_functions, has_filenames, has_line_numbers, has_inline_frames;
};

struct location {
	uint64_t id, address;
	uint32_t mapping;    /* or NONE */
	uint32_t first_line; /* innermost inlined function first */
	uint32_t nlines;
	bool is_folded;
	bool is_hidden; /* by -hide or -show: no frame of any stack, though still in the table */
};

struct line {
	int64_t line, column;
	uint32_t function; /* or NONE */
};

struct function {
	uint64_t id;
	int64_t start_line;
	uint32_t name, system_name, filename;
};

/* When something was sampled. Whatever has a time has it of a row of values, which stays the row of
 * its sample through filters. */
struct profile_tick {
	int64_t at; /* nanoseconds, of any clock */
	uint32_t row;
	uint32_t values; /* row of times->values: its part of the row's values */
};
struct profile_times {
	struct profile_tick *ticks; /* in order of time */
	const int64_t *values;
	size_t n;
};

struct profile {
	struct strings *strings;
	struct value_type *types;
	struct sample *samples;
	uint32_t *stacks;
	int64_t *values;
	struct label_set *label_sets;
	struct label *labels;
	struct mapping *mappings; /* the first is the main binary */
	struct location *locations;
	struct line *lines;
	struct function *functions;
	uint32_t *comments; /* strings */
	uint32_t ntypes, nsamples, nlabel_sets, nmappings, nlocations, nlines, nfunctions,
		ncomments;

	bool has_hidden; /* are there hidden locations? profile_drop_hidden takes them out */

	/* Or NULL. Nothing but what times.c has looks at it; what makes other rows forgets it. */
	const struct profile_times *times;

	uint32_t drop_frames, keep_frames, default_type, doc_url; /* strings */
	struct value_type period_type;
	int64_t period, time_nanos, duration_nanos;
};

static inline struct str profile_str(const struct profile *p, uint32_t string)
{
	return p->strings->at[string];
}

static inline const int64_t *sample_values(const struct profile *p, const struct sample *s)
{
	return p->values + (size_t)s->row * p->ntypes;
}

static inline const struct label *set_labels(const struct profile *p, uint32_t set)
{
	return p->labels + p->label_sets[set].first;
}

/* ---- reading and writing (decode.c, encode.c, gzip.c, legacy*.c, folded.c) */

/* The plain bytes of a profile file: unpacks gzip (any number of members) into `a`, up to
 * `max_bytes`; what is not gzipped is returned as it is. */
bool profile_unpack(struct arena *a, struct str data, size_t max_bytes, struct str *out,
		    struct err *e);
/* Reads a plain profile of any known format and checks it. Its tables go to `a`, its strings to
 * `strings`; `data` is not kept. */
struct parse_params {
	int threads;	  /* at most */
	bool may_discard; /* `data` lies in memory of an arena that nobody reads any more: give its
			     pages back while reading, as the tables grow */
};
bool profile_parse(struct profile *p, struct arena *a, struct strings *strings, struct str data,
		   const struct parse_params *params, struct err *e);
/* Both. */
bool profile_read(struct profile *p, struct arena *a, struct strings *strings, struct str data,
		  size_t max_bytes, struct err *e);

/* profile.proto bytes, not compressed. */
void profile_encode(struct buf *out, const struct profile *p);
/* The same with strings that are valid UTF-8, for readers who insist on it: each byte that is not
 * becomes a U+FFFD. */
void profile_encode_text(struct buf *out, const struct profile *p);
/* The same gzipped, as one member. */
void profile_encode_gzip(struct buf *out, const struct profile *p);
/* The same for somebody who may stop waiting for it: what is large is gzipped in several members.
 */
void profile_encode_unless(struct buf *out, const struct profile *p, const atomic_bool *stop);

/* ---- lookups (lookup.c) */

/* Index of the sample type that `name` (a name, a number, or "" for the default) selects. */
bool profile_sample_index(const struct profile *p, const char *name, uint32_t *index,
			  struct err *e);
/* Is it memory without a file that could name it, as [vdso]? */
bool file_is_system(struct str file);
bool mapping_is_system(const struct profile *p, const struct mapping *m);
/* Does any of its frames have a name? */
bool location_has_name(const struct profile *p, const struct location *l);

/* ---- time (times.c) */

/* Gives it these, in any order, which lie in memory that lives as long as it does; so do `values`,
 * with a row for each that they name. */
void profile_set_times(struct arena *a, struct profile *p, struct profile_tick *ticks, size_t n,
		       const int64_t *values);
/* Of samples that have a number with a unit of time as their label timestamp, timestamp_ns,
 * timestamp_us, timestamp_ms or time: those are their times. Nothing if too few have one. */
void profile_find_times(struct arena *a, struct profile *p);
/* Which of a set's labels is such a time, if it is the first of its key; or NONE. A label that is
 * only called time is none: it may be how long something took. */
uint32_t profile_set_stamp(const struct profile *p, uint32_t set);
/* Leaves what was sampled from `from` to before `to`, in nanoseconds after the first. Once `stop`
 * is set, the profile is of no use. */
void profile_take_times(struct arena *a, struct profile *p, int64_t from, int64_t to,
			const atomic_bool *stop);
/* Index of the first tick that is not before `after` nanoseconds after the first. */
size_t profile_tick_at(const struct profile_times *t, int64_t after);

/* ---- names that are found later (names.c) */

/* What is at an address; "" and 0 if not known. */
struct profile_frame {
	struct str name, system_name, file;
	int64_t line, column, start_line;
};
/* Gives locations other frames: for each profile_names_location, then its frames, innermost first.
 * New functions come after those there are, each once. Between begin and end nobody else may use
 * the profile's tables. */
struct profile_names *profile_names_begin(struct arena *a, struct profile *p);
/* False: there would be more lines than a profile can have. */
bool profile_names_location(struct profile_names *n, uint32_t location, uint32_t nframes);
void profile_names_frame(struct profile_names *n, const struct profile_frame *frame);
void profile_names_end(struct profile_names *n);

/* ---- combining (merge.c, rebase.c, combine.c) */

/* Collects profiles one by one; equal stacks with equal labels are summed. Memory is bounded by
 * what is distinct. All profiles that are added must have the same sample types and share
 * `strings`. */
struct merger;
struct merger *merger_new(struct strings *strings);
bool merger_add(struct merger *m, const struct profile *p, struct err *e);
/* The sum. Its tables go to `a`; the merger is freed. */
void merger_finish(struct merger *m, struct arena *a, struct profile *out);
void merger_free(struct merger *m);

/* Moves a profile that nobody shares tables with to another table of strings, in place. */
void profile_rebase(struct profile *p, struct strings *to);

/* Makes profiles with differing types and units comparable, and merges them when there is more than
 * one. `profiles` are overwritten. */
bool profile_combine(struct arena *a, struct profile *profiles, size_t n, struct profile *out,
		     struct err *e);
/* Leaves only these columns, of which none is named twice. Tables that change go to `a`. */
void profile_select(struct arena *a, struct profile *p, const uint32_t *columns, uint32_t n);
/* source - base. With `mark_base` (-diff_base) base samples get the label pprof::base=true, with
 * `normalize` the source is scaled to the base's totals first. */
struct diff_params {
	bool mark_base, normalize;
};
bool profile_diff(struct arena *a, struct profile source, struct profile base,
		  const struct diff_params *params, struct profile *out, struct err *e);
/* Column c times ratios[c], rounded; drops samples whose rescaled columns are all zero. */
void profile_scale(struct arena *a, struct profile *p, const double *ratios);

/* ---- labels (label.c) */

#define LABEL_BASE "pprof::base"
/* Is the sample one of -diff_base? */
bool label_set_is_base(const struct profile *p, uint32_t set);
void profile_add_base_label(struct arena *a, struct profile *p);
void profile_remove_base_label(struct arena *a, struct profile *p);
/* Leaves one side of what -diff_base made: the base as it was before it was subtracted, or what
 * that was subtracted from. */
void profile_take_side(struct arena *a, struct profile *p, bool is_base);
/* Keeps labels whose key (a string index) is marked. */
void profile_keep_label_keys(struct arena *a, struct profile *p, const bool *keep);

/* The unit (a string) of every numeric label key (a string), 0 for all other strings. */
struct label_units {
	uint32_t *of;
	size_t n; /* keys that are not below n came later, and have no unit */
};
/* `warnings`, if not NULL, gets one line for each key that has several units. */
void profile_label_units(struct arena *a, struct profile *p, struct label_units *units,
			 struct buf *warnings);

static inline struct str label_unit(const struct profile *p, const struct label_units *units,
				    uint32_t key)
{
	return profile_str(p, key < units->n ? units->of[key] : 0);
}

/* ---- narrowing down (filter.c, tagmatch.c, prune.c, tagframes.c, aggregate.c) */

struct regex;
struct tag_match;

/* NULL where not set. */
struct profile_filter {
	const struct regex *focus, *ignore, *hide, *show, *show_from, *prune_from;
	const struct tag_match *tagfocus, *tagignore;
	const struct regex *tagshow, *taghide;
	const struct label_units *units;
	int threads;		 /* at most */
	const atomic_bool *stop; /* or NULL; once set, the profile is of no use */
};
/* `warnings` gets "Focus expression matched no samples" and its like, one a line. */
void profile_filter(struct arena *a, struct profile *p, const struct profile_filter *f,
		    struct buf *warnings);
/* Takes hidden locations, which filters leave in stacks, out of them. Graphs need not have that.
 * Once `stop` is set, the profile is of no use. */
void profile_drop_hidden(struct arena *a, struct profile *p, const atomic_bool *stop);

/* Compiles the value of -tagfocus or -tagignore: a range of numbers, or regexps. `option` is the
 * option's name, for warnings and errors. Free with tag_match_free. */
struct tag_match *tag_match_compile(const char *option, const char *value, struct buf *warnings,
				    struct err *e);
void tag_match_free(struct tag_match *m);
bool tag_match_set(const struct tag_match *m, const struct profile *p,
		   const struct label_units *units, uint32_t set);

/* Removes frames by the profile's own drop_frames and keep_frames; a bad regexp there is ignored.
 */
void profile_drop_frames(struct arena *a, struct profile *p);
/* Removes all frames below the first that matches. */
void profile_prune_from(struct arena *a, struct profile *p, const struct profile_filter *f);

/* Adds a frame for each of the comma-separated label keys at the root and at the leaf of all
 * stacks. */
struct tag_frames {
	const char *root_keys, *leaf_keys;
	struct str unit;	 /* of the numbers' text */
	bool has_root, has_leaf; /* set: did any sample have one of the keys? */
	const atomic_bool *stop; /* or NULL; once set, the profile is of no use */
};
void profile_add_tag_frames(struct arena *a, struct profile *p, struct tag_frames *t);

/* What to keep of each frame. */
struct granularity {
	bool inlines, function, filename, line, column, address;
};
void profile_aggregate(struct arena *a, struct profile *p, const struct granularity *keep);

#endif
