/* asmtext.h - an x86 instruction in the words of llvm-objdump or of GNU objdump; private to
 * symbol/.
 *
 * Capstone must have been asked for details. */
#ifndef SYMBOL_ASMTEXT_H
#define SYMBOL_ASMTEXT_H

#include <capstone/capstone.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

/* What is worth a comment. */
struct asm_note {
	bool has_target; /* the text ends with an address to jump to or to call */
	bool has_memory; /* an operand's place is known, because it is relative to the instruction
			  */
	uint64_t place;	 /* of either */
};

/* Appends the text; `comments` gets what follows it after "# ". (asmtext.c) */
void asm_text_llvm(struct buf *out, struct buf *comments, csh capstone, const cs_insn *i,
		   bool is_intel, struct asm_note *note);
/* Appends the text. (gnutext.c) */
void asm_text_gnu(struct buf *out, csh capstone, const cs_insn *i, bool is_intel,
		  struct asm_note *note);
/* What objdump calls a prefix that stands alone, or NULL if the byte is none. */
const char *asm_prefix_gnu(uint8_t byte, bool is_64);

/* ---- what both want to know (asmtext.c) */

struct asm_note asm_note_x86(const cs_insn *i);
bool asm_is_branch(const cs_insn *i);
/* Is it movs, stos or the like, whose memory operands have segments of their own? */
bool asm_has_string(const cs_insn *i);
/* Is a one-byte immediate of this instruction signed? */
bool asm_extends_immediate(const cs_insn *i);
/* A shift or rotation by one has an opcode of its own. */
bool asm_shifts_by_one(const cs_insn *i);

#endif
