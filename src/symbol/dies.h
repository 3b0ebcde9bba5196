/* dies.h - walks the entries of a DWARF unit one after the other; private to symbol/.
 *
 * libdw reads single entries well, but going from one to its sibling it reads all that lies between
 * them again and again. A walker goes forward only, so a unit costs its size, whatever is in it.
 */
#ifndef SYMBOL_DIES_H
#define SYMBOL_DIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/str.h"

/* What an abbreviation says about the entries that use it. */
struct die_shape {
	uint64_t code;
	uint32_t first_form, nforms;
	uint32_t fixed_bytes; /* of all attributes, if none varies in size; else UINT32_MAX */
	uint32_t sibling;     /* which attribute is DW_AT_sibling; UINT32_MAX if none */
	uint32_t sibling_at;  /* how many bytes come before it, if fixed_bytes is known */
	uint16_t tag;
	bool has_children, has_code; /* has_code: there is DW_AT_low_pc or DW_AT_ranges */
};

struct die_shapes {
	struct die_shape *at; /* sorted by code */
	uint16_t *forms;
	size_t n;
};

struct die_unit {
	struct str info;     /* the whole section: .debug_info */
	uint64_t start, end; /* of the unit in it */
	uint64_t first;	     /* its first entry, that of the unit itself */
	uint16_t version;
	uint8_t address_bytes, offset_bytes;
	bool is_big_endian;
	struct die_shapes shapes;
};

/* An entry, and where the walk goes on. */
struct die {
	const struct die_shape *shape; /* NULL: the end of a list of children */
	uint64_t offset;	       /* in the section */
	uint64_t next;		       /* of whatever comes after it: its first child, if any */
	uint64_t sibling;	       /* behind its children; 0 if that is not said */
};

/* Reads the abbreviations at `abbrev`. False if there are none that make sense. */
bool die_shapes_read(struct arena *a, struct die_shapes *shapes, const struct die_unit *unit,
		     struct str abbrev);
/* Reads the entry at `offset`. False at the unit's end and if it is broken. */
bool die_read(const struct die_unit *unit, uint64_t offset, struct die *out);

#endif
