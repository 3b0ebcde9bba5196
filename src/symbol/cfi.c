#include "symbol/cfi.h"

#include <dwarf.h>

enum {
	STATES_MAX = 16, /* nesting of remembered states */
	AUGMENTATION_MAX = 8,
};

uint64_t cfi_uleb(struct cfi_reader *r)
{
	uint64_t v = 0;

	for (unsigned shift = 0;; shift += 7) {
		uint64_t byte = cfi_uint(r, 1);

		if (shift < 64)
			v |= (byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return v;
	}
}

int64_t cfi_sleb(struct cfi_reader *r)
{
	uint64_t v = 0;

	for (unsigned shift = 0;; shift += 7) {
		uint64_t byte = cfi_uint(r, 1);

		if (shift < 64)
			v |= (byte & 0x7f) << shift;
		if (byte & 0x80)
			continue;
		if (byte & 0x40 && shift < 57)
			v |= UINT64_MAX << (shift + 7);
		return (int64_t)v;
	}
}

struct str cfi_bytes(struct cfi_reader *r, uint64_t n)
{
	struct str bytes = { r->p, n };

	if (n > (size_t)(r->end - r->p)) {
		r->is_broken = true;
		r->p = r->end;
		return (struct str){ r->end, 0 };
	}
	r->p += n;
	return bytes;
}

/* ---- entries */

/* A pointer as .eh_frame encodes it. Only what compilers use for code: absolute, or relative to
 * where it stands. */
static uint64_t encoded_pointer(struct cfi_reader *r, const struct cfi_section *s, uint8_t encoding)
{
	uint64_t here = s->address + (uint64_t)(r->p - s->bytes.p), v = 0;

	switch (encoding & 0x0f) {
	case DW_EH_PE_absptr:
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
		v = cfi_uint(r, 8);
		break;
	case DW_EH_PE_udata2:
		v = cfi_uint(r, 2);
		break;
	case DW_EH_PE_udata4:
		v = cfi_uint(r, 4);
		break;
	case DW_EH_PE_sdata2:
		v = (uint64_t)cfi_int(r, 2);
		break;
	case DW_EH_PE_sdata4:
		v = (uint64_t)cfi_int(r, 4);
		break;
	case DW_EH_PE_uleb128:
		v = cfi_uleb(r);
		break;
	case DW_EH_PE_sleb128:
		v = (uint64_t)cfi_sleb(r);
		break;
	default:
		r->is_broken = true;
	}
	if ((encoding & 0x70) == DW_EH_PE_pcrel)
		return here + v;
	if (encoding & 0x70)
		r->is_broken = true;
	return v;
}

/* What the letters after 'z' stand for. */
static void read_augmentation(struct cfi_reader *r, const struct cfi_section *s, struct str letters,
			      struct cfi_cie *cie)
{
	for (size_t i = 1; i < letters.n; i++) {
		switch (letters.p[i]) {
		case 'L':
			cfi_uint(r, 1);
			break;
		case 'P': {
			uint8_t encoding = (uint8_t)cfi_uint(r, 1);

			encoded_pointer(r, s, encoding & 0x1f); /* only its length matters */
			break;
		}
		case 'R':
			cie->pointer_encoding = (uint8_t)cfi_uint(r, 1);
			break;
		case 'S':
			cie->is_signal_frame = true;
			break;
		default:
			return; /* 'B' and what is to come: nothing that we need */
		}
	}
}

static bool read_cie(struct cfi_reader *r, const struct cfi_section *s, struct cfi_cie *cie)
{
	uint8_t version = (uint8_t)cfi_uint(r, 1);
	struct str letters = { r->p, strnlen(r->p, (size_t)(r->end - r->p)) };
	struct cfi_reader data;

	*cie = (struct cfi_cie){ .pointer_encoding = DW_EH_PE_absptr };
	cfi_bytes(r, letters.n + 1);
	if ((version != 1 && version != 3 && version != 4) || letters.n > AUGMENTATION_MAX)
		return false;
	if (version == 4 && cfi_uint(r, 2) != 8) /* size of an address, of a segment selector */
		return false;
	cie->code_align = cfi_uleb(r);
	cie->data_align = cfi_sleb(r);
	cie->return_register = version == 1 ? cfi_uint(r, 1) : cfi_uleb(r);
	cie->has_augmentation = letters.n && letters.p[0] == 'z';
	if (letters.n && !cie->has_augmentation)
		return false;
	if (cie->has_augmentation) {
		struct str bytes = cfi_bytes(r, cfi_uleb(r));

		data = (struct cfi_reader){ .p = bytes.p, .end = bytes.p + bytes.n };
		read_augmentation(&data, s, letters, cie);
		r->is_broken |= data.is_broken;
	}
	cie->instructions = (struct str){ r->p, (size_t)(r->end - r->p) };
	return !r->is_broken;
}

/* Reader of the entry at `at`, behind its length; *next is where the one after it starts. */
static bool open_entry(const struct cfi_section *s, size_t at, struct cfi_reader *r, size_t *next,
		       uint64_t *id)
{
	uint64_t length;
	bool is_64;

	*r = (struct cfi_reader){ .p = s->bytes.p + at, .end = s->bytes.p + s->bytes.n };
	length = cfi_uint(r, 4);
	is_64 = length == UINT32_MAX;
	if (is_64)
		length = cfi_uint(r, 8);
	if (r->is_broken || length == 0 || length > (size_t)(r->end - r->p))
		return false;
	r->end = r->p + length;
	*next = (size_t)(r->end - s->bytes.p);
	*id = cfi_uint(r, is_64 ? 8 : 4);
	if (!s->is_eh && !is_64 && *id == UINT32_MAX)
		*id = UINT64_MAX;
	return !r->is_broken;
}

static bool is_cie(const struct cfi_section *s, uint64_t id)
{
	return id == (s->is_eh ? 0 : UINT64_MAX);
}

static bool find_cie(const struct cfi_section *s, uint64_t at, struct cfi_cie *cie)
{
	struct cfi_reader r;
	uint64_t id;
	size_t next;

	return at < s->bytes.n && open_entry(s, at, &r, &next, &id) && is_cie(s, id) &&
	       read_cie(&r, s, cie);
}

static bool read_fde(struct cfi_reader *r, const struct cfi_section *s, struct cfi_fde *fde)
{
	uint8_t encoding = fde->cie.pointer_encoding;
	uint64_t n;

	if (encoding & DW_EH_PE_indirect)
		return false;
	fde->start = encoded_pointer(r, s, encoding);
	n = encoded_pointer(r, s, encoding & 0x0f);
	fde->limit = fde->start + n;
	if (fde->cie.has_augmentation)
		cfi_bytes(r, cfi_uleb(r));
	fde->instructions = (struct str){ r->p, (size_t)(r->end - r->p) };
	/* Functions that the linker has thrown away stand at 0. */
	return !r->is_broken && fde->start && fde->limit > fde->start;
}

bool cfi_next(const struct cfi_section *s, size_t *at, struct cfi_fde *fde, bool *is_fde)
{
	struct cfi_reader r;
	size_t next, id_at;
	uint64_t id, cie_at;

	*is_fde = false;
	if (*at >= s->bytes.n || !open_entry(s, *at, &r, &next, &id))
		return false;
	id_at = (size_t)(r.p - s->bytes.p) - 4; /* .eh_frame of 64 bits is not in use */
	*at = next;
	if (is_cie(s, id))
		return true;
	cie_at = s->is_eh ? id_at - id : id;
	*is_fde = find_cie(s, cie_at, &fde->cie) && read_fde(&r, s, fde);
	return true;
}

/* ---- instructions */

struct states {
	struct cfi_row at[STATES_MAX];
	size_t n;
};

struct program {
	struct cfi_reader in;
	const struct cfi_cie *cie;
	const struct cfi_row *initial; /* NULL in the CIE's own instructions */
	struct cfi_row *row;
	struct states *saved;
	uint64_t address;
	bool is_broken;
};

static void set_rule(struct program *x, uint64_t reg, struct cfi_rule rule)
{
	/* Others, such as those of vectors, are nothing that finds a caller. */
	if (reg < UNWIND_REGISTERS)
		x->row->registers[reg] = rule;
}

static void restore(struct program *x, uint64_t reg)
{
	if (!x->initial)
		x->is_broken = true;
	else if (reg < UNWIND_REGISTERS)
		x->row->registers[reg] = x->initial->registers[reg];
}

static int64_t factored(const struct program *x, uint64_t n)
{
	return (int64_t)(n * (uint64_t)x->cie->data_align);
}

static void define_cfa(struct program *x, uint64_t reg, int64_t offset)
{
	if (reg >= UNWIND_REGISTERS)
		x->is_broken = true;
	x->row->cfa = (struct cfi_rule){ CFI_REGISTER, (uint32_t)reg, offset, { NULL, 0 } };
}

static struct cfi_rule expression_rule(struct program *x, enum cfi_rule_kind kind)
{
	return (struct cfi_rule){ .kind = kind, .expression = cfi_bytes(&x->in, cfi_uleb(&x->in)) };
}

static void remember_state(struct program *x)
{
	if (x->saved->n == STATES_MAX)
		x->is_broken = true;
	else
		x->saved->at[x->saved->n++] = *x->row;
}

static void restore_state(struct program *x)
{
	if (!x->saved->n)
		x->is_broken = true;
	else
		*x->row = x->saved->at[--x->saved->n];
}

static void run_cfa(struct program *x, uint8_t op)
{
	uint64_t reg;

	switch (op) {
	case DW_CFA_def_cfa:
		reg = cfi_uleb(&x->in);
		define_cfa(x, reg, (int64_t)cfi_uleb(&x->in));
		break;
	case DW_CFA_def_cfa_sf:
		reg = cfi_uleb(&x->in);
		define_cfa(x, reg, factored(x, (uint64_t)cfi_sleb(&x->in)));
		break;
	case DW_CFA_def_cfa_register:
		define_cfa(x, cfi_uleb(&x->in), x->row->cfa.value);
		break;
	case DW_CFA_def_cfa_offset:
		define_cfa(x, x->row->cfa.reg, (int64_t)cfi_uleb(&x->in));
		break;
	case DW_CFA_def_cfa_offset_sf:
		define_cfa(x, x->row->cfa.reg, factored(x, (uint64_t)cfi_sleb(&x->in)));
		break;
	default: /* DW_CFA_def_cfa_expression */
		x->row->cfa = expression_rule(x, CFI_IS_EXPRESSION);
	}
}

static void run_rule(struct program *x, uint8_t op)
{
	uint64_t reg = cfi_uleb(&x->in);
	struct cfi_rule rule = { CFI_SAME, 0, 0, { NULL, 0 } };

	switch (op) {
	case DW_CFA_offset_extended:
		rule.kind = CFI_AT_OFFSET;
		rule.value = factored(x, cfi_uleb(&x->in));
		break;
	case DW_CFA_offset_extended_sf:
		rule.kind = CFI_AT_OFFSET;
		rule.value = factored(x, (uint64_t)cfi_sleb(&x->in));
		break;
	case DW_CFA_GNU_negative_offset_extended:
		rule.kind = CFI_AT_OFFSET;
		rule.value = (int64_t) - (uint64_t)factored(x, cfi_uleb(&x->in));
		break;
	case DW_CFA_val_offset:
		rule.kind = CFI_IS_OFFSET;
		rule.value = factored(x, cfi_uleb(&x->in));
		break;
	case DW_CFA_val_offset_sf:
		rule.kind = CFI_IS_OFFSET;
		rule.value = factored(x, (uint64_t)cfi_sleb(&x->in));
		break;
	case DW_CFA_register:
		rule.kind = CFI_REGISTER;
		rule.reg = (uint32_t)cfi_uleb(&x->in);
		break;
	case DW_CFA_undefined:
		rule.kind = CFI_UNDEFINED;
		break;
	case DW_CFA_expression:
		rule = expression_rule(x, CFI_AT_EXPRESSION);
		break;
	case DW_CFA_val_expression:
		rule = expression_rule(x, CFI_IS_EXPRESSION);
		break;
	default:
		break; /* DW_CFA_same_value */
	}
	set_rule(x, reg, rule);
}

static void advance(struct program *x, uint64_t delta)
{
	x->address += delta * x->cie->code_align;
}

static void run_extended(struct program *x, uint8_t op)
{
	switch (op) {
	case DW_CFA_nop:
	case DW_CFA_GNU_window_save:
		break; /* on arm64: the return address is signed */
	case DW_CFA_set_loc:
		x->address = cfi_uint(&x->in, 8);
		break;
	case DW_CFA_advance_loc1:
		advance(x, cfi_uint(&x->in, 1));
		break;
	case DW_CFA_advance_loc2:
		advance(x, cfi_uint(&x->in, 2));
		break;
	case DW_CFA_advance_loc4:
		advance(x, cfi_uint(&x->in, 4));
		break;
	case DW_CFA_restore_extended:
		restore(x, cfi_uleb(&x->in));
		break;
	case DW_CFA_remember_state:
		remember_state(x);
		break;
	case DW_CFA_restore_state:
		restore_state(x);
		break;
	case DW_CFA_GNU_args_size:
		cfi_uleb(&x->in);
		break;
	case DW_CFA_def_cfa:
	case DW_CFA_def_cfa_sf:
	case DW_CFA_def_cfa_register:
	case DW_CFA_def_cfa_offset:
	case DW_CFA_def_cfa_offset_sf:
	case DW_CFA_def_cfa_expression:
		run_cfa(x, op);
		break;
	case DW_CFA_offset_extended:
	case DW_CFA_offset_extended_sf:
	case DW_CFA_GNU_negative_offset_extended:
	case DW_CFA_val_offset:
	case DW_CFA_val_offset_sf:
	case DW_CFA_register:
	case DW_CFA_undefined:
	case DW_CFA_same_value:
	case DW_CFA_expression:
	case DW_CFA_val_expression:
		run_rule(x, op);
		break;
	default:
		x->is_broken = true;
	}
}

static void run_one(struct program *x)
{
	uint8_t op = (uint8_t)cfi_uint(&x->in, 1), low = op & 0x3f;
	struct cfi_rule at_offset = { CFI_AT_OFFSET, 0, 0, { NULL, 0 } };

	switch (op & 0xc0) {
	case DW_CFA_advance_loc:
		advance(x, low);
		break;
	case DW_CFA_offset:
		at_offset.value = factored(x, cfi_uleb(&x->in));
		set_rule(x, low, at_offset);
		break;
	case DW_CFA_restore:
		restore(x, low);
		break;
	default:
		run_extended(x, op);
	}
}

/* Runs until the row for `address` is complete: to the instruction that leads beyond it. */
static bool run(struct program *x, struct str instructions, uint64_t address)
{
	x->in = (struct cfi_reader){ .p = instructions.p, .end = instructions.p + instructions.n };
	while (x->in.p < x->in.end && x->address <= address && !x->is_broken && !x->in.is_broken)
		run_one(x);
	return !x->is_broken && !x->in.is_broken;
}

bool cfi_row_at(const struct cfi_fde *fde, uint64_t address, struct cfi_row *row)
{
	struct states saved;
	struct cfi_row initial;
	struct program x = { .cie = &fde->cie, .row = row, .saved = &saved, .address = fde->start };

	saved.n = 0;
	*row = (struct cfi_row){ .return_register = fde->cie.return_register,
				 .is_signal_frame = fde->cie.is_signal_frame };
	if (row->return_register >= UNWIND_REGISTERS || !run(&x, fde->cie.instructions, address))
		return false;
	initial = *row;
	x.initial = &initial;
	return run(&x, fde->instructions, address) && row->cfa.kind != CFI_SAME;
}
