/* asmtext.h - an x86 instruction in the words of llvm-objdump; private to symbol/. */
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

/* Appends the text; `comments` gets what follows it after "# ". Capstone must have been asked for
 * details. */
void asm_text_x86(struct buf *out, struct buf *comments, csh capstone, const cs_insn *i,
		  bool is_intel, struct asm_note *note);

#endif
