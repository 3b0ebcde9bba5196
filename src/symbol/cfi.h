/* cfi.h - call frame information (.eh_frame, .debug_frame); private to unwind.c, cfi.c and
 * expression.c.
 *
 * A row says, for one address, where the caller's registers are. All of it is little endian and for
 * 64 bits: the machines that can be unwound are. Offsets and lengths are hostile; a reader that
 * runs over the end is marked as broken and gives zeros from then on.
 */
#ifndef SYMBOL_CFI_H
#define SYMBOL_CFI_H

#include "base/vec.h"
#include "symbol/symbol.h"

struct cfi_reader {
	const char *p, *end;
	bool is_broken;
};

/* A little endian number of 1 to 8 bytes. */
static inline uint64_t cfi_uint(struct cfi_reader *r, size_t bytes)
{
	uint64_t v = 0;

	if ((size_t)(r->end - r->p) < bytes) {
		r->is_broken = true;
		r->p = r->end;
		return 0;
	}
	for (size_t i = 0; i < bytes; i++)
		v |= (uint64_t)(uint8_t)r->p[i] << 8 * i;
	r->p += bytes;
	return v;
}

static inline int64_t cfi_int(struct cfi_reader *r, size_t bytes)
{
	unsigned shift = 64 - 8 * (unsigned)bytes;

	return (int64_t)(cfi_uint(r, bytes) << shift) >> shift;
}

uint64_t cfi_uleb(struct cfi_reader *r);
int64_t cfi_sleb(struct cfi_reader *r);
/* A block of bytes, empty if it is not all there. */
struct str cfi_bytes(struct cfi_reader *r, uint64_t n);

/* ---- sections (cfi.c) */

struct cfi_section {
	struct str bytes;
	uint64_t address; /* where it is when the file is loaded */
	bool is_eh;	  /* .eh_frame, else .debug_frame */
};

struct cfi_cie {
	uint64_t code_align;
	int64_t data_align;
	uint64_t return_register;
	uint8_t pointer_encoding;
	bool has_augmentation, is_signal_frame;
	struct str instructions;
};

struct cfi_fde {
	uint64_t start, limit; /* of the addresses that it describes */
	struct cfi_cie cie;
	struct str instructions;
};

/* Entries follow one another; *at is moved over the one that stands there. False at the end. */
bool cfi_next(const struct cfi_section *s, size_t *at, struct cfi_fde *fde, bool *is_fde);

/* ---- rows (cfi.c) */

enum cfi_rule_kind {
	CFI_SAME,
	CFI_UNDEFINED,
	CFI_AT_OFFSET,	   /* in memory at CFA + value */
	CFI_IS_OFFSET,	   /* CFA + value */
	CFI_REGISTER,	   /* in register `value` */
	CFI_AT_EXPRESSION, /* in memory at the expression's value */
	CFI_IS_EXPRESSION,
};

struct cfi_rule {
	enum cfi_rule_kind kind;
	uint32_t reg;
	int64_t value;
	struct str expression;
};

struct cfi_row {
	struct cfi_rule cfa; /* CFI_REGISTER `reg` + value, or CFI_IS_EXPRESSION */
	struct cfi_rule registers[UNWIND_REGISTERS];
	uint64_t return_register;
	bool is_signal_frame;
};

/* False if the instructions make no sense. */
bool cfi_row_at(const struct cfi_fde *fde, uint64_t address, struct cfi_row *row);

/* ---- expressions (expression.c) */

struct cfi_context {
	const struct unwind_frame *frame;
	const struct unwind_stack *stack;
};

bool unwind_read(const struct unwind_stack *stack, uint64_t address, size_t bytes, uint64_t *out);
/* `initial`, if not NULL, lies on the expression's stack at first. */
bool cfi_evaluate(struct str expression, const struct cfi_context *c, const uint64_t *initial,
		  uint64_t *out);

#endif
