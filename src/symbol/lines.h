/* lines.h - the line table of a DWARF unit; private to symbol/.
 *
 * Reading it once finds the sequences, which are runs of ascending addresses; the rows of one are
 * kept when an address of it is asked for. libdw would keep and sort all rows of the unit, which
 * for many programs is more work than everything else together.
 */
#ifndef SYMBOL_LINES_H
#define SYMBOL_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/str.h"
#include "symbol/ranges.h"

struct line_sections {
	struct str lines, line_strings, strings; /* .debug_line, .debug_line_str, .debug_str */
	bool is_big_endian;
};

struct line_row {
	uint64_t address;
	uint32_t file, line, column;
};

struct line_sequence {
	uint64_t low, high, program; /* where its first opcode is */
	struct line_row *rows;	     /* NULL until asked for */
	size_t nrows;
};

struct line_file {
	struct str name;
	uint64_t dir;
	struct str full_name; /* p is NULL until asked for */
};

struct line_table {
	struct line_sections in;
	struct arena *arena;
	struct str compiled_in; /* directory */
	uint16_t version;
	uint8_t offset_bytes, address_bytes;
	uint8_t step, ops_per_step, line_range, opcode_base;
	int8_t line_base;
	uint64_t operand_counts;       /* where those of the standard opcodes are */
	uint64_t program, program_end; /* offsets */
	struct str *dirs;
	struct line_file *files;
	struct line_sequence *sequences;
	size_t ndirs, nfiles, nsequences;
	struct range_map sequences_at;
};

/* Reads the table at `offset` of .debug_line. What it finds goes to `a`. Of a broken table the part
 * before what is broken is there. */
void line_table_read(struct line_table *t, struct arena *a, const struct line_sections *in,
		     uint64_t offset, uint8_t address_bytes, struct str compiled_in);
/* The row that covers an address, or NULL. */
const struct line_row *line_table_find(struct line_table *t, uint64_t address);
/* The name of a file by the number that rows and entries use; "" if there is none. */
struct str line_table_file(struct line_table *t, uint64_t number);

#endif
