/* build.h - makes a profile row by row. For the readers of text formats, tagframes and the merger.
 *
 *	builder_init(&b, strings);
 *	... vec_push(&b.types, ...), vec_push(&b.functions, ...) and so on: rows refer to each other
 *	    by index (not by id); ids are for you to set, 1..n
 *	builder_sample(&b, stack, nstack, builder_labels(&b, labels, n), values);
 *	builder_finish(&b, arena, &profile);	or builder_release(&b) when it goes wrong
 *
 * Header fields (period, time, drop_frames ...) are set in b.head directly; `head.strings` is set.
 */
#ifndef PROFILE_BUILD_H
#define PROFILE_BUILD_H

#include "base/map.h"
#include "base/vec.h"
#include "profile/profile.h"

/* Interned label sets; the empty set is there from the start. */
struct label_table {
	vec(struct label_set) sets;
	vec(struct label) labels;
	struct map map;
	uint64_t seed;
};

struct label_input {
	struct label label;
	bool is_number;
};

void label_table_init(struct label_table *t);
void label_table_release(struct label_table *t);
/* Index of the set of these labels, given in any order. */
uint32_t label_table_add(struct label_table *t, const struct strings *strings,
			 const struct label_input *labels, size_t n);
/* Index of a set given in canonical order, as it stands in another profile's tables. */
uint32_t label_table_add_set(struct label_table *t, const struct label *labels, uint32_t nstrings,
			     uint32_t nnumbers);

struct builder {
	struct profile head;
	vec(struct value_type) types;
	vec(struct sample) samples;
	vec(uint32_t) stacks;
	vec(int64_t) values;
	vec(struct mapping) mappings;
	vec(struct location) locations;
	vec(struct line) lines;
	vec(struct function) functions;
	vec(uint32_t) comments;
	struct label_table labels;
};

void builder_init(struct builder *b, struct strings *strings);
void builder_release(struct builder *b);
uint32_t builder_string(struct builder *b, struct str s);
/* Appends a sample; `values` has b->types.n elements. */
void builder_sample(struct builder *b, const uint32_t *stack, size_t nstack, uint32_t labels,
		    const int64_t *values);
/* Moves the tables into `a`. The builder is empty afterwards. */
void builder_finish(struct builder *b, struct arena *a, struct profile *out);

#endif
