/* gnutext.c - capstone's text of x86 instructions turned into that of GNU objdump.
 *
 * Capstone's operands are kept in their order, each is written anew: numbers are hexadecimal and as
 * wide as what they are for, displacements are shown if they were encoded, scales always. Prefixes
 * that change nothing stand before the mnemonic, and a mnemonic has no suffix where a register
 * tells the size.
 */
#include "symbol/asmtext.h"

#include <ctype.h>

#include "base/str.h"

/* Mnemonics are padded to this. */
#define MNEMONIC_WIDTH 6
/* Bit of a REX prefix: operands have 64 bits. */
#define REX_W 8

enum prefix {
	PREFIX_LOCK = 0xf0,
	PREFIX_REPNE = 0xf2,
	PREFIX_REP = 0xf3,
	PREFIX_DATA = 0x66,
	PREFIX_ADDRESS = 0x67,
	PREFIX_CS = 0x2e,
	PREFIX_SS = 0x36,
	PREFIX_DS = 0x3e,
	PREFIX_ES = 0x26,
	PREFIX_FS = 0x64,
	PREFIX_GS = 0x65,
};

static const struct {
	uint8_t byte;
	const char *name;
} prefixes[] = {
	{ PREFIX_LOCK, "lock" },      { PREFIX_REPNE, "repnz" }, { PREFIX_REP, "repz" },
	{ PREFIX_DATA, "data16" },    { PREFIX_CS, "cs" },	 { PREFIX_SS, "ss" },
	{ PREFIX_DS, "ds" },	      { PREFIX_ES, "es" },	 { PREFIX_FS, "fs" },
	{ PREFIX_ADDRESS, "addr32" }, { PREFIX_GS, "gs" },
};

/* The prefixes 0x40 to 0x4f of 64-bit code. */
static const char *const rex_prefixes[] = {
	"rex",	 "rex.B",  "rex.X",  "rex.XB",	"rex.R",  "rex.RB",  "rex.RX",	"rex.RXB",
	"rex.W", "rex.WB", "rex.WX", "rex.WXB", "rex.WR", "rex.WRB", "rex.WRX", "rex.WRXB",
};

/* Never have a suffix: their size is that of an address. */
static const unsigned unsized[] = {
	X86_INS_CALL, X86_INS_JMP, X86_INS_RET, X86_INS_PUSH, X86_INS_POP, X86_INS_LEAVE,
};

/* Their register may be a count, which tells nothing about the size. */
static const unsigned shifts[] = {
	X86_INS_SHL, X86_INS_SHR, X86_INS_SAR, X86_INS_SAL,
	X86_INS_ROL, X86_INS_ROR, X86_INS_RCL, X86_INS_RCR,
};

static const struct {
	const char *capstone, *gnu;
} other_names[] = {
	{ "pushfq", "pushf" },
	{ "popfq", "popf" },
	{ "wait", "fwait" },
};

/* An instruction on its way to text. */
struct writer {
	struct buf *out;
	csh capstone;
	const cs_insn *i;
	const cs_x86 *x;
	bool is_intel, is_branch, is_string;
	size_t memories, immediates; /* operands that have been written */
};

#define COUNT(table) (sizeof(table) / sizeof(*(table)))

static bool has_id(const unsigned *ids, size_t n, unsigned id)
{
	for (size_t k = 0; k < n; k++)
		if (ids[k] == id)
			return true;
	return false;
}

static const char *legacy_prefix(uint8_t byte)
{
	for (size_t k = 0; k < COUNT(prefixes); k++)
		if (prefixes[k].byte == byte)
			return prefixes[k].name;
	return NULL;
}

static const cs_x86_op *operand_of_type(const cs_x86 *x, x86_op_type type, size_t nth)
{
	for (size_t k = 0; k < x->op_count; k++)
		if (x->operands[k].type == type && nth-- == 0)
			return &x->operands[k];
	return NULL;
}

/* ---- prefixes and mnemonic */

const char *asm_prefix_gnu(uint8_t byte, bool is_64)
{
	return is_64 && byte >> 4 == 4 ? rex_prefixes[byte & 15] : legacy_prefix(byte);
}

static bool compares_strings(const struct writer *w)
{
	struct str mnemonic = str_of(w->i->mnemonic);

	return str_contains(mnemonic, STR("cmps")) || str_contains(mnemonic, STR("scas"));
}

/* The name of a prefix that the mnemonic and the operands do not show already, or NULL. Those of
 * opcodes that begin with 0f are part of the opcode. */
static const char *prefix_shown(const struct writer *w, uint8_t byte, bool is_last)
{
	bool is_long = w->x->opcode[0] == 0x0f || w->i->id == X86_INS_ENDBR64;

	switch (byte) {
	case PREFIX_REP:
		if (w->is_string && !compares_strings(w))
			return "rep";
		return is_long || w->i->id == X86_INS_PAUSE ? NULL : "repz";
	case PREFIX_REPNE:
		if (w->is_branch || w->i->id == X86_INS_RET)
			return "bnd";
		return is_long ? NULL : "repnz";
	case PREFIX_DATA:
		if (is_last && (is_long || !(w->x->rex & REX_W || w->is_branch)))
			return NULL;
		break;
	case PREFIX_DS:
		if (w->is_branch)
			return "notrack";
		break;
	case PREFIX_FS:
	case PREFIX_GS:
	case PREFIX_ADDRESS:
		if (operand_of_type(w->x, X86_OP_MEM, 0))
			return NULL;
		break;
	}
	return legacy_prefix(byte);
}

static void write_prefixes(const struct writer *w)
{
	const uint8_t *bytes = w->i->bytes;
	size_t n = 0;

	while (n < w->i->size && legacy_prefix(bytes[n]))
		n++;
	for (size_t k = 0; k < n; k++) {
		bool is_last = !memchr(&bytes[k + 1], bytes[k], n - k - 1);
		const char *name = prefix_shown(w, bytes[k], is_last);

		if (!name)
			continue;
		buf_puts(w->out, name);
		buf_char(w->out, ' ');
	}
	if (w->x->rex & REX_W && w->is_branch)
		buf_puts(w->out, "rex.W ");
}

/* Does an operand other than a count tell how large they are? */
static bool register_tells_size(const struct writer *w)
{
	if (!operand_of_type(w->x, X86_OP_MEM, 0) || has_id(unsized, COUNT(unsized), w->i->id))
		return true;
	if (has_id(shifts, COUNT(shifts), w->i->id))
		return false;
	for (size_t k = 0; k < w->x->op_count; k++)
		if (w->x->operands[k].type == X86_OP_REG && w->x->operands[k].size <= 8)
			return true;
	return false;
}

static struct str mnemonic_of(const struct writer *w)
{
	struct str mnemonic = str_of(w->i->mnemonic);
	size_t space = str_rfind_char(mnemonic, ' ');
	const char *name = cs_insn_name(w->capstone, w->i->id);
	struct str base = name ? str_of(name) : STR("");

	if (space != STR_NONE)
		mnemonic = str_from(mnemonic, space + 1);
	for (size_t k = 0; k < COUNT(other_names); k++)
		if (str_eq(mnemonic, str_of(other_names[k].capstone)))
			return str_of(other_names[k].gnu);
	if (str_eq(mnemonic, STR("movd")) && w->x->rex & REX_W)
		return STR("movq");
	if (w->is_string) { /* with one operand in memory, the other one is a register */
		mnemonic.n -= w->is_intel || !operand_of_type(w->x, X86_OP_MEM, 1);
		return mnemonic;
	}
	if (!w->is_intel && base.n && mnemonic.n == base.n + 1 && str_has_prefix(mnemonic, base) &&
	    strchr("bwlq", mnemonic.p[base.n]) && register_tells_size(w))
		return base;
	return mnemonic;
}

/* ---- operands */

static void write_signed(struct buf *out, int64_t v, bool shows_plus)
{
	if (v < 0)
		buf_char(out, '-');
	else if (shows_plus)
		buf_char(out, '+');
	buf_puts(out, "0x");
	buf_hex(out, v < 0 ? -(uint64_t)v : (uint64_t)v);
}

static void write_register(const struct writer *w, unsigned reg)
{
	const char *name = cs_reg_name(w->capstone, reg);

	if (!w->is_intel)
		buf_char(w->out, '%');
	buf_puts(w->out, name ? name : "?");
}

/* Segments that are shown: those that count, and those that string instructions have anyway. */
static void write_segment(const struct writer *w, const x86_op_mem *m)
{
	unsigned segment = (unsigned)m->segment;

	if (w->is_string && segment == X86_REG_INVALID)
		segment =
			m->base == X86_REG_RDI || m->base == X86_REG_EDI ? X86_REG_ES : X86_REG_DS;
	if (!w->is_string && segment != X86_REG_FS && segment != X86_REG_GS) {
		if (!w->is_intel || m->base != X86_REG_INVALID || m->index != X86_REG_INVALID)
			return;
		segment = X86_REG_DS;
	}
	write_register(w, segment);
	buf_char(w->out, ':');
}

static void write_memory_att(const struct writer *w, const x86_op_mem *m, bool has_disp)
{
	if (has_disp)
		write_signed(w->out, m->disp, false);
	buf_char(w->out, '(');
	if (m->base != X86_REG_INVALID)
		write_register(w, (unsigned)m->base);
	if (m->index != X86_REG_INVALID) {
		buf_char(w->out, ',');
		write_register(w, (unsigned)m->index);
		buf_printf(w->out, ",%d", m->scale);
	}
	buf_char(w->out, ')');
}

static void write_memory_intel(const struct writer *w, const x86_op_mem *m, bool has_disp)
{
	buf_char(w->out, '[');
	if (m->base != X86_REG_INVALID)
		write_register(w, (unsigned)m->base);
	if (m->index != X86_REG_INVALID) {
		if (m->base != X86_REG_INVALID)
			buf_char(w->out, '+');
		write_register(w, (unsigned)m->index);
		buf_printf(w->out, "*%d", m->scale);
	}
	if (has_disp && m->base == X86_REG_RIP)
		buf_printf(w->out, "+0x%jx", (uintmax_t)m->disp);
	else if (has_disp)
		write_signed(w->out, m->disp, true);
	buf_char(w->out, ']');
}

static void write_memory(const struct writer *w, const x86_op_mem *m)
{
	bool has_disp = m->disp || w->x->encoding.disp_size || m->base == X86_REG_INVALID;

	write_segment(w, m);
	if (m->base == X86_REG_INVALID && m->index == X86_REG_INVALID) {
		buf_puts(w->out, "0x");
		buf_hex(w->out, (uint64_t)m->disp);
	} else if (w->is_intel) {
		write_memory_intel(w, m, has_disp);
	} else {
		write_memory_att(w, m, has_disp);
	}
}

/* As wide as what it is for. */
static void write_immediate(const struct writer *w, const cs_x86_op *op)
{
	int64_t v = op->imm;
	size_t size = op->size;

	for (size_t k = 0; k < w->x->op_count; k++)
		if (w->x->operands[k].type != X86_OP_IMM && w->x->operands[k].size <= 8)
			size = w->x->operands[k].size;
	if (w->x->encoding.imm_size == 1 && asm_extends_immediate(w->i))
		v = (int8_t)v;
	else if (w->x->encoding.imm_size == 1)
		size = 1;
	if (!w->is_intel)
		buf_char(w->out, '$');
	buf_puts(w->out, "0x");
	buf_hex(w->out,
		size && size < 8 ? (uint64_t)v & ((UINT64_C(1) << 8 * size) - 1) : (uint64_t)v);
}

/* "qword ptr " is QWORD PTR, "*" stands before where to jump to. */
static void write_before_memory(const struct writer *w, struct str operand)
{
	size_t ptr = str_find(operand, STR("ptr "));

	if (operand.n && operand.p[0] == '*')
		buf_char(w->out, '*');
	for (size_t k = 0; ptr != STR_NONE && k < ptr + 4; k++)
		buf_char(w->out, (char)toupper((unsigned char)operand.p[k]));
}

static bool is_memory(const struct writer *w, struct str operand)
{
	if (w->is_intel)
		return str_contains(operand, STR("["));
	/* AT&T: a register or an immediate is none, "%fs:8" is one. */
	return str_contains(operand, STR(":")) || operand.p[0] == '*' ||
	       (operand.p[0] != '%' && operand.p[0] != '$');
}

static void write_operand(struct writer *w, struct str operand)
{
	const cs_x86_op *memory = operand_of_type(w->x, X86_OP_MEM, w->memories);
	const cs_x86_op *immediate = operand_of_type(w->x, X86_OP_IMM, w->immediates);
	bool is_number = operand.n && (operand.p[0] == '$' ||
				       isdigit((unsigned char)operand.p[0]) || operand.p[0] == '-');

	if (memory && is_memory(w, operand)) {
		write_before_memory(w, operand);
		write_memory(w, &memory->mem);
		w->memories++;
	} else if (is_number && immediate && !asm_shifts_by_one(w->i)) {
		write_immediate(w, immediate);
		w->immediates++;
	} else {
		for (size_t k = 0; k < operand.n; k++)
			if (operand.p[k] != ' ')
				buf_char(w->out, operand.p[k]);
	}
}

/* Cuts off what stands before the next comma that is not in brackets. */
static struct str next_operand(struct str *rest)
{
	int depth = 0;

	for (size_t k = 0; k < rest->n; k++) {
		char c = rest->p[k];

		depth += (c == '(' || c == '[') - (c == ')' || c == ']');
		if (c == ',' && depth == 0) {
			struct str operand = { rest->p, k };

			*rest = str_from(*rest, k + 1);
			return str_trim(operand);
		}
	}
	return str_trim(str_cut(rest, '\0'));
}

static void write_operands(struct writer *w, struct str operands)
{
	struct str rest = operands;

	for (bool is_first = true; rest.n; is_first = false) {
		if (!is_first)
			buf_char(w->out, ',');
		write_operand(w, next_operand(&rest));
	}
}

void asm_text_gnu(struct buf *out, csh capstone, const cs_insn *i, bool is_intel,
		  struct asm_note *note)
{
	struct writer w = { .out = out,
			    .capstone = capstone,
			    .i = i,
			    .x = &i->detail->x86,
			    .is_intel = is_intel,
			    .is_branch = asm_is_branch(i) };
	struct str operands = str_of(i->op_str);
	size_t start = out->n;

	*note = asm_note_x86(i);
	if (i->size == 2 && i->bytes[0] == PREFIX_DATA && i->bytes[1] == 0x90) {
		buf_puts(out, is_intel ? "xchg   ax,ax" : "xchg   %ax,%ax");
		return;
	}
	w.is_string = asm_has_string(i);
	if (!is_intel && asm_shifts_by_one(i) && str_has_prefix(operands, STR("$1, ")))
		operands = str_from(operands, 4);
	write_prefixes(&w);
	buf_str(out, mnemonic_of(&w));
	if (!operands.n)
		return;
	buf_fill(out, ' ', out->n - start < MNEMONIC_WIDTH ? MNEMONIC_WIDTH - (out->n - start) : 0);
	buf_char(out, ' ');
	if (note->has_target)
		buf_hex(out, note->place);
	else
		write_operands(&w, operands);
}
