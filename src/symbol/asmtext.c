/* asmtext.c - capstone's text of x86 instructions turned into that of llvm-objdump.
 *
 * Both come from the same tables, so it is the details that differ: numbers are decimal, and
 * negative where the processor extends their sign; a shift by one does not say so; a scale comes
 * before its register; destinations of string instructions name their segment.
 */
#include "symbol/asmtext.h"

#include <ctype.h>

#include "base/number.h"
#include "base/str.h"

/* Values of a one-byte immediate of these are signed. */
static const unsigned signed_immediates[] = {
	X86_INS_ADD, X86_INS_ADC, X86_INS_SUB,	X86_INS_SBB, X86_INS_AND,  X86_INS_OR,
	X86_INS_XOR, X86_INS_CMP, X86_INS_TEST, X86_INS_MOV, X86_INS_PUSH, X86_INS_IMUL,
};

/* Loads that fill the rest of a vector register with zeros. */
static const struct {
	const char *mnemonic, *fill;
} loads[] = {
	{ "movsd", "mem[0],zero" },
	{ "movq", "mem[0],zero" },
	{ "movss", "mem[0],zero,zero,zero" },
	{ "movd", "mem[0],zero,zero,zero" },
	{ "vmovsd", "mem[0],zero" },
	{ "vmovq", "mem[0],zero" },
	{ "vmovss", "mem[0],zero,zero,zero" },
	{ "vmovd", "mem[0],zero,zero,zero" },
};

/* An instruction on its way to text. */
struct writer {
	struct buf *out, *comments;
	csh capstone;
	const cs_insn *i;
	const cs_x86 *x;
	bool is_intel;
};

static const cs_x86_op *operand_of_type(const cs_x86 *x, x86_op_type type)
{
	for (size_t k = 0; k < x->op_count; k++)
		if (x->operands[k].type == type)
			return &x->operands[k];
	return NULL;
}

/* The last word, after prefixes. */
static struct str bare_mnemonic(const cs_insn *i)
{
	struct str mnemonic = str_of(i->mnemonic);
	size_t space = str_rfind_char(mnemonic, ' ');

	return space == STR_NONE ? mnemonic : str_from(mnemonic, space + 1);
}

bool asm_has_string(const cs_insn *i)
{
	struct str mnemonic = bare_mnemonic(i);
	const cs_x86 *x = &i->detail->x86;
	bool two_memories = x->op_count == 2 && x->operands[0].type == X86_OP_MEM &&
			    x->operands[1].type == X86_OP_MEM;

	return str_has_prefix(mnemonic, STR("stos")) || str_has_prefix(mnemonic, STR("scas")) ||
	       str_has_prefix(mnemonic, STR("lods")) ||
	       (two_memories &&
		(str_has_prefix(mnemonic, STR("movs")) || str_has_prefix(mnemonic, STR("cmps"))));
}

bool asm_shifts_by_one(const cs_insn *i)
{
	return (i->detail->x86.opcode[0] & 0xfe) == 0xd0;
}

/* ---- mnemonic */

static void write_mnemonic(const struct writer *w, struct str mnemonic)
{
	const cs_x86_op *reg = operand_of_type(w->x, X86_OP_REG);
	bool has_memory = operand_of_type(w->x, X86_OP_MEM);

	if (str_eq(mnemonic, STR("movd")) && !has_memory && w->x->rex & 8)
		mnemonic = STR("movq");
	else if (str_has_prefix(mnemonic, STR("cvtsi2s")) && !has_memory && !w->is_intel)
		mnemonic.n = sizeof("cvtsi2ss") - 1;
	buf_str(w->out, mnemonic);
	if (!w->is_intel && mnemonic.n == 3 && asm_shifts_by_one(w->i) && reg && !has_memory)
		buf_char(w->out, "?bw?l???q"[reg->size <= 8 ? reg->size : 0]);
}

/* "rep stosq" and its like: the prefix stands in a column of its own. Returns the mnemonic. */
static struct str write_prefix(const struct writer *w)
{
	struct str all = str_of(w->i->mnemonic), mnemonic = bare_mnemonic(w->i);

	if (mnemonic.n < all.n) {
		buf_add(w->out, all.p, all.n - mnemonic.n - 1);
		buf_puts(w->out, "\t\t");
	}
	return mnemonic;
}

/* ---- operands */

bool asm_extends_immediate(const cs_insn *i)
{
	for (size_t k = 0; k < sizeof(signed_immediates) / sizeof(*signed_immediates); k++)
		if (signed_immediates[k] == i->id)
			return true;
	return false;
}

static int64_t signed_immediate(const struct writer *w, uint64_t v)
{
	return w->x->encoding.imm_size == 1 && v & 0x80 && asm_extends_immediate(w->i) ? (int8_t)v
										       : (int64_t)v;
}

/* Hexadecimal, without the bits that only repeat the sign. */
static void comment_immediate(const struct writer *w, int64_t v)
{
	uint64_t bits = v == (int16_t)v ? (uint16_t)v : v == (int32_t)v ? (uint32_t)v : (uint64_t)v;

	if (!w->is_intel && (v > 255 || v < -256) && !w->comments->n)
		buf_printf(w->comments, "imm = 0x%jX", (uintmax_t)bits);
}

/* The number "0x1f" of capstone's text at the start of s. Returns its length. */
static size_t take_number(struct str s, uint64_t *v)
{
	size_t n = 2;

	while (n < s.n && isxdigit((unsigned char)s.p[n]))
		n++;
	return number_parse_uint((struct str){ s.p, n }, 0, v) == NUMBER_OK ? n : 0;
}

static bool is_number(struct str s, size_t at)
{
	return at + 2 < s.n && s.p[at] == '0' && s.p[at + 1] == 'x' &&
	       (at == 0 || !isalnum((unsigned char)s.p[at - 1]));
}

static void write_number(const struct writer *w, uint64_t v, bool is_negative, bool is_immediate)
{
	if (is_immediate && !is_negative) {
		int64_t value = signed_immediate(w, v);

		comment_immediate(w, value);
		buf_int(w->out, value);
	} else {
		if (is_immediate)
			comment_immediate(w, (int64_t)-v);
		buf_int(w->out, (int64_t)v);
	}
}

/* "rax*8" is 8*rax to LLVM. True if one begins at the start of s; *n is its length. */
static bool write_scaled(const struct writer *w, struct str s, size_t *n)
{
	size_t name = 0;

	while (name < s.n && isalnum((unsigned char)s.p[name]))
		name++;
	if (name == 0 || name + 1 >= s.n || s.p[name] != '*')
		return false;
	buf_char(w->out, s.p[name + 1]);
	buf_char(w->out, '*');
	buf_add(w->out, s.p, name);
	*n = name + 2;
	return true;
}

static void write_operands(const struct writer *w, struct str from, bool is_string)
{
	struct str memory = w->is_intel ? STR("[rdi]") : STR("(%rdi)");
	bool inside = false;

	for (size_t i = 0; i < from.n;) {
		struct str rest = str_from(from, i);
		char c = from.p[i];
		uint64_t v;
		size_t n = is_number(from, i) ? take_number(rest, &v) : 0;

		if (n) {
			bool is_immediate = w->is_intel ? !inside : i && from.p[i - 1] == '$';
			bool is_negative = i && from.p[i - 1] == '-';

			is_immediate |= !w->is_intel && i > 1 && from.p[i - 2] == '$';
			write_number(w, v, is_negative, is_immediate);
			i += n;
			continue;
		}
		if (w->is_intel && inside && isalpha((unsigned char)c) &&
		    write_scaled(w, rest, &n)) {
			i += n;
			continue;
		}
		if (is_string && str_has_prefix(rest, memory))
			buf_puts(w->out, w->is_intel ? "es:" : "%es:");
		if (c == '(' || c == '[')
			inside = true;
		else if (c == ')' || c == ']')
			inside = false;
		if (c != ' ' || !inside || w->is_intel)
			buf_char(w->out, c);
		i++;
	}
}

/* Without the "$1, " (or ", 1") of a shift by one. */
static struct str without_one(const cs_insn *i)
{
	struct str operands = str_of(i->op_str);

	if (!asm_shifts_by_one(i))
		return operands;
	if (str_has_prefix(operands, STR("$1, ")))
		return str_from(operands, 4);
	if (str_has_suffix(operands, STR(", 1")))
		operands.n -= 3;
	return operands;
}

/* ---- notes */

bool asm_is_branch(const cs_insn *i)
{
	for (size_t k = 0; k < i->detail->groups_count; k++)
		if (i->detail->groups[k] == X86_GRP_JUMP || i->detail->groups[k] == X86_GRP_CALL)
			return true;
	return false;
}

static void note_load(const struct writer *w, struct str mnemonic)
{
	const cs_x86_op *to = &w->x->operands[w->is_intel ? 0 : 1];
	const cs_x86_op *from = &w->x->operands[w->is_intel ? 1 : 0];

	if (w->x->op_count != 2 || to->type != X86_OP_REG || from->type != X86_OP_MEM ||
	    to->size != 16)
		return;
	for (size_t k = 0; k < sizeof(loads) / sizeof(*loads); k++)
		if (str_eq(mnemonic, str_of(loads[k].mnemonic)))
			buf_printf(w->comments, "%s = %s",
				   cs_reg_name(w->capstone, (unsigned)to->reg), loads[k].fill);
}

/* Four elements of 32 bits, each chosen by two bits of the immediate: pshufd takes them from one
 * register, shufps two from its destination and two from its source. */
static void note_shuffle(const struct writer *w)
{
	const cs_x86_op *ops = w->x->operands;
	unsigned to, from, choice;

	if (w->x->op_count != 3 || (w->i->id != X86_INS_PSHUFD && w->i->id != X86_INS_SHUFPS) ||
	    ops[1].type != X86_OP_REG)
		return;
	to = (unsigned)ops[w->is_intel ? 0 : 2].reg;
	from = (unsigned)ops[1].reg;
	choice = (unsigned)ops[w->is_intel ? 2 : 0].imm;
	buf_printf(w->comments, "%s = ", cs_reg_name(w->capstone, to));
	if (w->i->id == X86_INS_PSHUFD || to == from)
		buf_printf(w->comments, "%s[%u,%u,%u,%u]", cs_reg_name(w->capstone, from),
			   choice & 3, choice >> 2 & 3, choice >> 4 & 3, choice >> 6 & 3);
	else
		buf_printf(w->comments, "%s[%u,%u],%s[%u,%u]", cs_reg_name(w->capstone, to),
			   choice & 3, choice >> 2 & 3, cs_reg_name(w->capstone, from),
			   choice >> 4 & 3, choice >> 6 & 3);
}

struct asm_note asm_note_x86(const cs_insn *i)
{
	const cs_x86 *x = &i->detail->x86;
	const cs_x86_op *memory = operand_of_type(x, X86_OP_MEM);
	struct asm_note note = { 0 };

	if (asm_is_branch(i) && x->op_count == 1 && x->operands[0].type == X86_OP_IMM) {
		note.has_target = true;
		note.place = (uint64_t)x->operands[0].imm;
	} else if (memory && memory->mem.base == X86_REG_RIP) {
		note.has_memory = true;
		note.place = i->address + i->size + (uint64_t)memory->mem.disp;
	}
	return note;
}

void asm_text_llvm(struct buf *out, struct buf *comments, csh capstone, const cs_insn *i,
		   bool is_intel, struct asm_note *note)
{
	struct writer w = { out, comments, capstone, i, &i->detail->x86, is_intel };
	struct str mnemonic = write_prefix(&w);

	*note = asm_note_x86(i);
	note_load(&w, mnemonic);
	note_shuffle(&w);
	write_mnemonic(&w, mnemonic);
	if (note->has_target) {
		buf_puts(out, "\t0x");
		buf_hex(out, note->place);
	} else if (i->op_str[0]) {
		buf_char(out, '\t');
		write_operands(&w, without_one(i), asm_has_string(i));
	}
}
