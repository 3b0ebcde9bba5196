/* unwind.h - how to get from a frame to its caller, for each address of a module's code: what
 * .eh_frame says, turned into tables that a signal handler can search.
 *
 * Code is cut into blocks of 1 KB. A row is four bytes: where in its block it begins, and the
 * number of its rule; each block begins with a row, so that a search stays in one block. Rules are
 * few, since most functions save the same registers in the same places.
 */
#ifndef AGENT_UNWIND_H
#define AGENT_UNWIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The canonical frame address (CFA): what the stack pointer is when the function has returned. The
 * return address is right below it. */
enum cfa_rule {
	CFA_NONE,     /* nothing is known of this code */
	CFA_ROOT,     /* nobody called it */
	CFA_ODD,      /* known, but not to be expressed here */
	CFA_REGISTER, /* register + offset */
	CFA_MEMORY,   /* what is stored at register + offset, + extra */
	CFA_PLT, /* a stub of a procedure linkage table: extra is where in it, of 16 bytes, it has
		    pushed something */
	CFA_SIGNAL, /* the kernel put all registers on the stack */
};

enum bp_rule {
	BP_SAME,
	BP_AT_CFA, /* saved at the CFA + bp_offset */
	BP_AT_BP,  /* saved at itself + bp_offset */
	BP_LOST,
};

enum { REGISTER_BP = 6, REGISTER_SP = 7, REGISTER_PC = 16 }; /* as DWARF numbers them */

struct unwind_rule {
	uint8_t cfa, reg, bp;
	bool is_usual; /* CFA_REGISTER of the stack or frame pointer; BP_SAME or BP_AT_CFA */
	int32_t offset, bp_offset, extra;
};

enum { BLOCK_BITS = 10 };

struct unwind_table {
	uint32_t first; /* of its blocks, counted from the module's base */
	uint32_t nblocks;
	const uint32_t *blocks;		 /* their first rows, and one more */
	const uint32_t *rows;		 /* place in the block << 16 | rule */
	const struct unwind_rule *rules; /* the first: CFA_NONE */
	uint32_t nrules;
};

/* The rule for the code `offset` bytes behind the base. Any context. */
static inline const struct unwind_rule *unwind_find(const struct unwind_table *t, uint64_t offset)
{
	uint64_t block = (offset >> BLOCK_BITS) - t->first;
	uint32_t wanted = (uint32_t)(offset & ((1 << BLOCK_BITS) - 1)) << 16 | 0xffff;
	const uint32_t *row;
	uint32_t n;

	if (block >= t->nblocks)
		return t->rules;
	row = t->rows + t->blocks[block];
	n = t->blocks[block + 1] - t->blocks[block];
	while (n > 1) {
		uint32_t half = n / 2;

		row = row[half] <= wanted ? row + half : row;
		n -= half;
	}
	return t->rules + (*row & 0xffff);
}

/* Where a loaded module has what it says about its code. */
struct unwind_source {
	uintptr_t base;
	uintptr_t header;     /* of .eh_frame_hdr; 0: it has none */
	uintptr_t start, end; /* of the segment that it is in: nothing else is read */
	uintptr_t code_end;   /* where the module ends */
};

/* What one table after the other is made in. Zero-initialised it is empty. */
struct unwind_scratch {
	uint32_t *rows, *blocks;
	size_t rows_bytes, blocks_bytes;
	struct unwind_rule *rules;
	uint32_t *slots, nslots; /* rule by hash; 0: free */
};
void unwind_scratch_release(struct unwind_scratch *s);

/* Reads it; all of it must stay mapped meanwhile. NULL if memory is short. An empty table if there
 * is nothing to read. */
const struct unwind_table *unwind_build(const struct unwind_source *source,
					struct unwind_scratch *scratch);

#endif
