/* binary.h - a binary that the profile was taken from, opened to show its instructions.
 *
 * What is not asked for is not read. For one thread at a time.
 */
#ifndef REPORT_BINARY_H
#define REPORT_BINARY_H

#include "profile/profile.h"
#include "symbol/symbol.h"

struct binary {
	const char *path;
	struct object object;
	struct object_place place;
	struct symbol_list symbols;
	struct disassembler *disassembler; /* NULL until binary_disassemble */
	struct symbolizer *symbolizer;	   /* NULL until binary_frames */
	struct asm_style style;
	enum symbol_detail detail; /* of frames */
	bool has_symbols, has_no_frames;
	struct arena arena;
};

/* Opens the file of a mapping. Instructions are spelled as `style` says. */
bool binary_open(struct binary *b, const struct profile *p, const struct mapping *m,
		 struct asm_style style, struct err *e);
void binary_close(struct binary *b);
/* Sorted; see symbol.h. */
const struct symbol_list *binary_symbols(struct binary *b);
/* The instructions that begin in [start, end), addresses as linked. */
bool binary_disassemble(struct binary *b, struct arena *a, uint64_t start, uint64_t end,
			struct instructions *out, struct err *e);
/* Where the linker put what the profile has at `address`. False if that is outside of the mapping.
 */
bool binary_address(const struct binary *b, uint64_t address, uint64_t *linked, struct err *e);
/* Functions and source lines at an address as linked, innermost first; valid until the next call.
 */
size_t binary_frames(struct binary *b, uint64_t linked, const struct symbol_frame **frames);

#endif
