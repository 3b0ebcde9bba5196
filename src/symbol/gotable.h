/* gotable.h - functions and lines of a Go program without debug information; private to symbol/.
 *
 * The Go runtime needs a table of functions, lines and inlined calls (pclntab) to print stacks, so
 * not even a stripped Go program is without it. Known are the layouts since Go 1.2, 1.16, 1.18 and
 * 1.20; inlined calls since 1.16. Strings point into the file. For one thread at a time.
 */
#ifndef SYMBOL_GOTABLE_H
#define SYMBOL_GOTABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbol/elf.h"
#include "symbol/symbol.h"

enum go_layout { GO_1_2, GO_1_16, GO_1_18, GO_1_20 };

struct go_table {
	const struct elf *f;
	struct str bytes;
	enum go_layout layout;
	unsigned pointer_bytes, pc_unit;
	uint64_t nfunctions, text_start;
	uint64_t names, units, files, values, functions; /* offsets */
	uint64_t inline_trees; /* address that those are relative to; 0 if not known */
	uint64_t work_left;    /* bytes that may still be decoded: a bound for hostile tables */
};

#define GO_FRAMES_MAX 64

/* False if the file has no table, or one of an unknown layout. */
bool go_table_read(struct go_table *t, const struct elf *f);
/* Sets up to GO_FRAMES_MAX frames, innermost first, and returns how many. */
size_t go_table_find(struct go_table *t, uint64_t address, struct symbol_frame *frames);

#endif
