/* debuginfo.h - functions, inlined calls and lines out of DWARF, through libdw; private to symbol/.
 *
 * Lazy: opening reads the table of address ranges, a lookup reads the unit that holds its address.
 * For one thread at a time. Strings live as long as the debug_info.
 */
#ifndef SYMBOL_DEBUGINFO_H
#define SYMBOL_DEBUGINFO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct debug_info;

struct debug_frame {
	struct str linkage_name, name; /* "" if there is none */
	struct str file;
	int64_t line, column, start_line;
	bool is_c;     /* or another language in which `name` is what the linker sees */
	bool is_again; /* the same call was innermost in an earlier lookup */
};

/* NULL if the file has no DWARF. Keeps no hold of `fd`. */
struct debug_info *debug_info_open(int fd);
void debug_info_close(struct debug_info *d);
/* The frames at an address, innermost first; they stay until the next call. None if no unit covers
 * it. Where only the line is known there is one frame without a name. */
size_t debug_info_find(struct debug_info *d, uint64_t address, const struct debug_frame **frames);

#endif
