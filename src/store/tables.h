/* tables.h - the inside of a book: flat tables, each with a map from content to number.
 *
 * Numbers are those of the book, of strings too. What two profiles have in common must look the
 * same in both, so nothing here has an id, and addresses count from the start of their mapping:
 * programs are loaded elsewhere each time they start. Where a profile has its mappings, and with
 * which ids, is a layout.
 *
 * Within one profile two rows may have the same content. Their `copy` tells them apart: 0, 1, ...
 */
#ifndef STORE_TABLES_H
#define STORE_TABLES_H

#include "base/map.h"
#include "base/vec.h"
#include "store/book.h"

struct book_mapping {
	uint64_t start; /* where it was seen first; not part of the content */
	uint64_t size, offset;
	uint32_t file, build_id, kernel_symbol, copy;
	uint32_t flags; /* has_functions 1, has_filenames 2, has_line_numbers 4, has_inline_frames 8
			 */
};

struct book_function {
	int64_t start_line;
	uint32_t name, system_name, filename, copy;
};

struct book_location {
	uint64_t address; /* from the start of the mapping */
	uint32_t mapping; /* or NONE */
	uint32_t first_line, nlines;
	uint32_t variant; /* copy * 2 + is_folded */
};

/* Of another table: of frames, labels, ... */
struct range {
	uint32_t first, n;
};

struct book_types {
	uint32_t first, n; /* of `types` */
	struct value_type period_type;
	uint32_t default_type;
};

/* Where a profile has a mapping. */
struct placed {
	uint64_t start, id;
	uint32_t mapping;
};

struct book {
	vec(struct str) strings;
	vec(struct book_mapping) mappings;
	vec(struct book_function) functions;
	vec(struct line) lines;
	vec(struct book_location) locations;
	vec(uint32_t) frames;
	vec(struct range) stacks;
	vec(struct label) labels;
	vec(struct label_set) label_sets;
	vec(struct value_type) types;
	vec(struct book_types) heads;
	vec(struct placed) placed;
	vec(struct range) layouts;
	struct arena bytes; /* of strings */
	/* What is read from chunks enters the maps when something is packed: most books are only
	 * read. The maps are complete up to `mapped`. */
	struct {
		struct map strings, mappings, functions, locations, stacks, label_sets, heads,
			layouts;
	} maps;
	struct book_mark mapped;
	uint64_t seed;
};

/* Brings the maps up to date; before anything is looked for. */
void book_index(struct book *b);
/* Number of what has this content. If it is new it is added or, if it may not be, NONE: then
 * nothing changes, and many may look at a time. */
uint32_t book_find_string(struct book *b, struct str s, bool may_add);
uint32_t book_find_mapping(struct book *b, const struct book_mapping *m, bool may_add);
uint32_t book_find_function(struct book *b, const struct book_function *f, bool may_add);
uint32_t book_find_location(struct book *b, const struct book_location *l, const struct line *lines,
			    bool may_add);
uint32_t book_find_stack(struct book *b, const uint32_t *frames, uint32_t n, bool may_add);
uint32_t book_find_labels(struct book *b, const struct label *labels, uint32_t nstrings,
			  uint32_t nnumbers, bool may_add);
uint32_t book_find_head(struct book *b, const struct book_types *head,
			const struct value_type *types, bool may_add);
uint32_t book_find_layout(struct book *b, const struct placed *placed, uint32_t n, bool may_add);

#endif
