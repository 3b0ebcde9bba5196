/* record.h - a profile as it is collected, and what becomes of it: profile.proto, Go's text, folded
 * into a difference. */
#ifndef AGENT_RECORD_H
#define AGENT_RECORD_H

#include "agent/memory.h"
#include "agent/module.h"
#include "agent/out.h"

enum { VALUES_MAX = 4, TAGS_MAX = 4 };

struct value_name {
	const char *type, *unit;
};

/* A label of one sample, beside its set of labels. */
struct tag {
	const char *key;
	const char *text; /* NULL: it is a number */
	int64_t number;
	const char *unit; /* or NULL */
	bool is_average;  /* of what the row sums up: rows that differ just in it are the same */
};

struct record_row {
	const frame_t *frames;
	uint32_t nframes, labels;
	int64_t values[VALUES_MAX];
	uint32_t ntags;
	struct tag tags[TAGS_MAX];
};

struct record {
	const struct agent_profile *profile; /* whose it is; see profile_collect */
	struct region memory;		     /* for all that it points to */
	struct record_row *rows;
	size_t n, cap;
	int64_t time, duration, period; /* nanoseconds; since the epoch */
	struct out comments;		/* a line each */
	bool has_failed;		/* memory was short */
};

/* A row that is zero, to be filled; NULL if memory is short. Frames are not copied: they are those
 * of stack_frames, or in r->memory. */
struct record_row *record_add(struct record *r);
/* The same with a copy of these frames. */
struct record_row *record_add_stack(struct record *r, const frame_t *frames, uint32_t n);
/* A row for each of the stacks that differ, with how often it is there. Sorts them. */
void record_add_counts(struct record *r, uint32_t *stacks, size_t n);
void record_comment(struct record *r, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
void record_release(struct record *r);

/* A kind of profile. Each is one file, and one line in profiles.def. */
struct agent_profile {
	const char *name;  /* on /debug/pprof/ */
	const char *about; /* for the index page */
	struct value_name types[VALUES_MAX];
	unsigned ntypes;
	struct value_name period_type;
	const char *default_type;	   /* or NULL: the last */
	bool has_delta;			   /* is the difference of two of use? */
	uint32_t (*count)(void);	   /* for the index page; NULL: custom_profile_count */
	bool (*collect)(struct record *r); /* false: errno */
	/* Text for debug=1 and more; NULL: record_write_text. */
	void (*write_text)(struct out *o, const struct agent_profile *p, struct record *r,
			   int debug);
};

const struct agent_profile *profile_find(const char *name); /* NULL: there is none */
/* In order of names, those of the program too (custom.c); NULL after the last. */
const struct agent_profile *profile_at(unsigned i);
uint32_t profile_count(const struct agent_profile *p);
/* What it has now, with its time. False: errno. Release the record in any case. */
bool profile_collect(const struct agent_profile *p, struct record *r);

/* Rows of the same stack, labels and tags are one: what they add up to, in order of the first of
 * each. In `memory`; false if that is short. */
struct joined {
	const struct record *record;
	uint32_t *rows; /* which row stands for them */
	int64_t (*values)[VALUES_MAX];
	size_t n;
};
bool record_join(struct region *memory, const struct record *r, struct joined *j);

/* Turns `now` into what is new since `before`. */
bool record_subtract(struct record *now, const struct record *before);
/* profile.proto, compressed. */
void record_write(struct out *o, const struct agent_profile *p, const struct record *r);
/* "NAME profile: total N", and stacks with their names. */
void record_write_text(struct out *o, const struct agent_profile *p, struct record *r, int debug);
/* What a frame without code stands for, as "[truncated]"; NULL for code. */
const char *frame_special_name(frame_t f);
/* "@ 0x... 0x...": return addresses, as readers of these texts expect them, and the line's end. */
void record_write_addresses(struct out *o, const struct record_row *row);
/* "# labels: {...}" of a row, if it has any. */
void record_write_labels(struct out *o, const struct record_row *row);
/* "#\t0x...\tname+0x..\tfile" lines of a stack, in columns; a stack of none is 0x0. */
void record_write_stack(struct out *o, const frame_t *frames, uint32_t n);

#endif
