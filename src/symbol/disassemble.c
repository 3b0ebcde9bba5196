/* disassemble.c - machine code as text.
 *
 * Capstone decodes. Its text is rewritten to that of llvm-objdump or GNU objdump: numbers, names of
 * places, comments on what is hard to see.
 */
#include "symbol/symbol.h"

#include <capstone/capstone.h>
#include <stdlib.h>

#include "base/vec.h"
#include "symbol/asmtext.h"
#include "symbol/elf.h"

/* Where comments start, counted from the mnemonic. */
#define COMMENT_COLUMN 32
#define TAB 8

/* GNU objdump leaves out zeros: no fewer than ZEROS_MIN, or at the end fewer than ZEROS_AT_END. */
#define ZEROS_MIN 8
#define ZEROS_AT_END 3

struct instruction_vec {
	struct instruction *at;
	size_t n, cap;
};

/* A place with a name. */
struct label {
	uint64_t address, size;
	struct str name, text; /* text: the readable form, once it has been asked for */
	bool is_function;
	uint8_t rank;
};

struct disassembler {
	struct arena arena;
	const struct elf *f;
	csh capstone;
	cs_insn *insn;
	struct asm_style style;
	bool is_x86;
	size_t step; /* over bytes that are no instruction */
	struct label *labels;
	size_t nlabels;
	uint32_t *functions; /* those of the labels that are */
	size_t nfunctions;
	const struct section **loaded; /* in order of addresses */
	size_t nloaded;
	struct buf text, comment; /* of the instruction at hand */
};

/* ---- labels */

static struct label label_of(const struct symbol *s)
{
	return (struct label){ .address = s->address,
			       .size = s->size,
			       .name = s->name,
			       .is_function = s->is_function,
			       .rank = s->rank };
}

/* Of those at one address, the one that GNU objdump shows comes last. */
static int by_address_preference(const void *a, const void *b)
{
	const struct label *x = a, *y = b;
	bool x_is_dotted = str_has_prefix(x->name, STR("."));

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank > y->rank ? -1 : 1;
	if (x->size != y->size)
		return x->size < y->size ? -1 : 1;
	if (x_is_dotted != str_has_prefix(y->name, STR(".")))
		return x_is_dotted ? -1 : 1;
	return str_cmp(y->name, x->name);
}

/* Symbols and stubs in one table; both are sorted. */
static void read_labels(struct disassembler *d, const struct symbol_list *t)
{
	size_t i = 0, k = 0;

	d->labels = arena_many(&d->arena, t->n + t->nstubs, struct label);
	d->functions = arena_many(&d->arena, t->n + t->nstubs, uint32_t);
	while (i < t->n || k < t->nstubs) {
		bool is_stub =
			i == t->n || (k < t->nstubs && t->stubs[k].address < t->at[i].address);
		const struct symbol *s = is_stub ? &t->stubs[k++] : &t->at[i++];

		if (s->has_place)
			d->labels[d->nlabels++] = label_of(s);
	}
	if (d->style.is_gnu && d->nlabels)
		qsort(d->labels, d->nlabels, sizeof(*d->labels), by_address_preference);
	for (i = 0; i < d->nlabels; i++)
		if (d->labels[i].is_function)
			d->functions[d->nfunctions++] = (uint32_t)i;
}

/* What a stub or a version appends stays: "operator new(unsigned long)@plt". */
static bool demangle_gnu(struct buf *text, struct str name)
{
	size_t at = str_find_char(name, '@');

	if (!demangle_name(text, (struct str){ name.p, at == STR_NONE ? name.n : at },
			   DEMANGLE_CLONES))
		return false;
	if (at != STR_NONE)
		buf_str(text, str_from(name, at));
	return true;
}

static bool demangle_llvm(struct buf *text, struct str name)
{
	size_t suffix = str_find_char(name, '.');

	if (!demangle_name(text, name, DEMANGLE_FULL))
		return false;
	if (suffix != STR_NONE)
		buf_printf(text, " (%.*s)", STR_ARG(str_from(name, suffix)));
	return true;
}

/* With what clones append, as in "work(int) (.cold)". */
static struct str label_text(struct disassembler *d, struct label *l)
{
	struct buf text = { 0 };

	if (l->text.p)
		return l->text;
	l->text = l->name;
	if (d->style.is_gnu ? demangle_gnu(&text, l->name) : demangle_llvm(&text, l->name))
		l->text = (struct str){ str_dup(&d->arena, buf_view(&text)), text.n };
	buf_release(&text);
	return l->text;
}

/* The last label that is not after the address among n sorted ones, or n. */
static size_t find_before(const struct label *labels, const uint32_t *order, size_t n,
			  uint64_t address)
{
	size_t low = 0, high = n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (labels[order ? order[middle] : middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? low - 1 : n;
}

struct str disassembler_function(struct disassembler *d, uint64_t address)
{
	size_t i = find_before(d->labels, d->functions, d->nfunctions, address);
	struct label *l = i < d->nfunctions ? &d->labels[d->functions[i]] : NULL;

	if (l && (l->size == 0 || address - l->address < l->size))
		return label_text(d, l);
	return STR("");
}

/* The loaded section that an address lies in, or NULL. */
static const struct section *section_at(const struct disassembler *d, uint64_t address)
{
	size_t low = 0, high = d->nloaded;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (d->loaded[middle]->addr <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low && address - d->loaded[low - 1]->addr < d->loaded[low - 1]->size
		       ? d->loaded[low - 1]
		       : NULL;
}

/* " <main+0x10>", if there is a symbol before that place; for llvm-objdump in its section. */
static void write_place(struct disassembler *d, uint64_t address)
{
	const struct section *s = section_at(d, address);
	size_t i = find_before(d->labels, NULL, d->nlabels, address);
	struct label *l = i < d->nlabels ? &d->labels[i] : NULL;

	if (!l || (!d->style.is_gnu && (!s || l->address < s->addr)))
		return;
	buf_puts(&d->text, " <");
	buf_str(&d->text, label_text(d, l));
	if (address != l->address) {
		buf_puts(&d->text, "+0x");
		buf_hex(&d->text, address - l->address);
	}
	buf_char(&d->text, '>');
}

/* ---- text */

/* Where the text ends when it is shown, counted from its mnemonic. */
static size_t column_of(struct str text)
{
	size_t column = 0;

	for (size_t i = 0; i < text.n; i++)
		column = text.p[i] == '\t' ? (column / TAB + 1) * TAB : column + 1;
	return column;
}

static void write_comment(struct disassembler *d, const struct asm_note *note)
{
	size_t column = column_of(buf_view(&d->text));

	if (!d->comment.n && !note->has_memory)
		return;
	buf_fill(&d->text, ' ', column < COMMENT_COLUMN ? COMMENT_COLUMN - column : 1);
	buf_puts(&d->text, "# ");
	if (d->comment.n) {
		buf_str(&d->text, buf_view(&d->comment));
	} else {
		buf_puts(&d->text, "0x");
		buf_hex(&d->text, note->place);
		write_place(d, note->place);
	}
}

static void write_gnu(struct disassembler *d)
{
	struct asm_note note;

	asm_text_gnu(&d->text, d->capstone, d->insn, d->style.is_intel, &note);
	if (note.has_memory) {
		buf_puts(&d->text, "        # ");
		buf_hex(&d->text, note.place);
	}
	if (note.has_target || note.has_memory)
		write_place(d, note.place);
}

static void write_llvm(struct disassembler *d)
{
	struct asm_note note;

	d->comment.n = 0;
	asm_text_llvm(&d->text, &d->comment, d->capstone, d->insn, d->style.is_intel, &note);
	if (note.has_target)
		write_place(d, note.place);
	else
		write_comment(d, &note);
}

static void write_arm64(struct disassembler *d)
{
	const cs_arm64 *x = &d->insn->detail->arm64;
	const cs_arm64_op *last = x->op_count ? &x->operands[x->op_count - 1] : NULL;

	buf_puts(&d->text, d->insn->mnemonic);
	if (d->insn->op_str[0]) {
		buf_char(&d->text, '\t');
		buf_puts(&d->text, d->insn->op_str);
	}
	if (last && last->type == ARM64_OP_IMM &&
	    (cs_insn_group(d->capstone, d->insn, ARM64_GRP_JUMP) ||
	     cs_insn_group(d->capstone, d->insn, ARM64_GRP_CALL)))
		write_place(d, (uint64_t)last->imm);
}

/* ---- instructions */

static void write_instruction(struct disassembler *d)
{
	if (!d->is_x86)
		write_arm64(d);
	else if (d->style.is_gnu)
		write_gnu(d);
	else
		write_llvm(d);
}

/* Of bytes that are no instruction, or the start of one that is cut off. */
static void write_unknown(struct disassembler *d, uint8_t first, bool is_cut)
{
	const char *prefix = asm_prefix_gnu(first, d->f->is_64);

	if (!d->style.is_gnu || !d->is_x86)
		buf_puts(&d->text, "<unknown>");
	else if (!is_cut)
		buf_puts(&d->text, "(bad)");
	else if (prefix)
		buf_puts(&d->text, prefix);
	else
		buf_printf(&d->text, ".byte 0x%x", first);
}

static struct str take_text(struct disassembler *d, struct arena *a)
{
	char *text = arena_raw(a, d->text.n);

	memcpy(text, d->text.p, d->text.n);
	return (struct str){ text, d->text.n };
}

/* The one at the start of `bytes`, of which the first `left` may be used. */
static struct instruction decode_one(struct disassembler *d, struct arena *a, struct str bytes,
				     uint64_t left, uint64_t address)
{
	const uint8_t *code = (const uint8_t *)bytes.p, first = *code;
	struct instruction i = { .address = address };
	bool ok = cs_disasm_iter(d->capstone, &code, &bytes.n, &address, d->insn);
	bool is_cut = ok && d->insn->size > left;

	d->text.n = 0;
	if (ok && !is_cut)
		write_instruction(d);
	else
		write_unknown(d, first, is_cut);
	i.size = (uint32_t)(ok && !is_cut ? d->insn->size : d->step < left ? d->step : left);
	i.text = take_text(d, a);
	return i;
}

/* How many zeros at the start of `bytes` GNU objdump would not show. */
static size_t skipped_zeros(struct str bytes)
{
	size_t n = 0;

	while (n < bytes.n && bytes.p[n] == 0)
		n++;
	if (n == bytes.n)
		return n >= ZEROS_MIN || n < ZEROS_AT_END ? n : 0;
	return n >= ZEROS_MIN ? n & ~(size_t)3 : 0;
}

/* The instructions of one section from offset `from` on, up to `to`. One that begins before `to` is
 * shown even if it ends after it, but not by GNU objdump. */
static void decode(struct disassembler *d, struct arena *a, const struct section *s, uint64_t from,
		   uint64_t to, struct instruction_vec *out)
{
	struct str bytes = elf_bytes(d->f, s);
	uint64_t end = to < bytes.n ? to : bytes.n;
	uint64_t limit = d->style.is_gnu ? end : bytes.n;

	for (uint64_t at = from; at < end;) {
		size_t zeros = d->style.is_gnu ? skipped_zeros(elf_part(bytes, at, end - at)) : 0;

		at += zeros;
		if (at == end)
			break;
		vec_push(out, decode_one(d, a, str_from(bytes, at), limit - at, s->addr + at));
		at += out->at[out->n - 1].size;
	}
}

/* Sections of a broken file may overlap; no byte is decoded twice. */
void disassemble(struct disassembler *d, struct arena *a, uint64_t start, uint64_t end,
		 struct instructions *out)
{
	struct instruction_vec all = { 0 };

	for (size_t i = 0; i < d->nloaded; i++) {
		const struct section *s = d->loaded[i];
		uint64_t from = start > s->addr ? start - s->addr : 0;

		if (!(s->flags & SHF_EXECINSTR) || from >= s->size || end <= s->addr)
			continue;
		decode(d, a, s, from, end - s->addr, &all);
		if (all.n)
			start = all.at[all.n - 1].address + all.at[all.n - 1].size;
	}
	out->n = all.n;
	out->at = vec_adopt(a, &all);
}

/* ---- opening */

static int by_section_address(const void *a, const void *b)
{
	const struct section *x = *(const struct section *const *)a;
	const struct section *y = *(const struct section *const *)b;

	return (x->addr > y->addr) - (x->addr < y->addr);
}

static void find_sections(struct disassembler *d)
{
	d->loaded = arena_many(&d->arena, d->f->nsections, const struct section *);
	for (size_t i = 0; i < d->f->nsections; i++)
		if (d->f->sections[i].flags & SHF_ALLOC && d->f->sections[i].type != SHT_NULL &&
		    !(d->f->sections[i].flags & SHF_TLS))
			d->loaded[d->nloaded++] = &d->f->sections[i];
	if (d->nloaded)
		qsort(d->loaded, d->nloaded, sizeof(*d->loaded), by_section_address);
}

static bool open_capstone(struct disassembler *d, struct err *e)
{
	uint64_t machine = FIELD(d->f, d->f->bytes.p, Ehdr, e_machine);
	bool ok = false;

	d->step = 1;
	d->is_x86 = machine == EM_X86_64 || machine == EM_386;
	if (d->is_x86) {
		ok = cs_open(CS_ARCH_X86, machine == EM_386 ? CS_MODE_32 : CS_MODE_64,
			     &d->capstone) == CS_ERR_OK;
	} else if (machine == EM_AARCH64) {
		d->step = 4;
		ok = cs_open(CS_ARCH_ARM64, CS_MODE_LITTLE_ENDIAN, &d->capstone) == CS_ERR_OK;
	}
	if (!ok)
		return err_set(e, ERR_FORMAT,
			       "cannot disasm: instructions of ELF machine %u are not known "
			       "(x86, x86-64 and arm64 are)",
			       (unsigned)machine);
	cs_option(d->capstone, CS_OPT_DETAIL, CS_OPT_ON);
	if (d->is_x86 && !d->style.is_intel)
		cs_option(d->capstone, CS_OPT_SYNTAX, CS_OPT_SYNTAX_ATT);
	d->insn = cs_malloc(d->capstone);
	return d->insn || err_set(e, ERR_LIMIT, "cannot disasm: out of memory");
}

struct disassembler *disassembler_new(const struct object *o, const struct symbol_list *t,
				      struct asm_style style, struct err *e)
{
	struct disassembler *d;

	if (o->kind != OBJECT_ELF) {
		err_set(e, ERR_FORMAT, "cannot disasm: not an ELF file");
		return NULL;
	}
	d = xcalloc(1, sizeof(*d));
	d->f = o->elf;
	d->style = style;
	if (!open_capstone(d, e)) {
		disassembler_free(d);
		return NULL;
	}
	read_labels(d, t);
	find_sections(d);
	return d;
}

void disassembler_free(struct disassembler *d)
{
	if (!d)
		return;
	if (d->insn)
		cs_free(d->insn, 1);
	if (d->capstone)
		cs_close(&d->capstone);
	arena_release(&d->arena);
	buf_release(&d->text);
	buf_release(&d->comment);
	free(d);
}
