#include "symbol/symbol.h"

#include <elf.h>
#include <stdlib.h>

#include "base/map.h"
#include "symbol/cfi.h"

enum {
	SECTIONS_MAX = 4,
	ROWS_MAX = 1 << 18, /* what is cached of one file */
};

struct load {
	uint64_t offset, address, size;
};

/* An entry of a section, by the addresses that it is for. */
struct entry {
	uint64_t start, limit;
	uint32_t section;
	size_t at;
};

/* A rule other than "same". */
struct step_rule {
	uint32_t reg;
	struct cfi_rule rule;
};

/* A row as it is applied, again and again. */
struct step {
	uint64_t address;
	struct cfi_rule cfa;
	uint32_t first_rule, nrules, return_register;
	bool is_known, is_signal_frame;
};

struct unwind_table {
	struct object object;
	enum unwind_machine machine;
	struct cfi_section sections[SECTIONS_MAX];
	uint32_t nsections;
	vec(struct load) loads;
	vec(struct entry) entries; /* by start */
	vec(struct step) steps;
	vec(struct step_rule) rules;
	struct map by_address; /* of steps */
	uint64_t seed;
};

static const struct {
	uint16_t elf;
	uint32_t stack_pointer, frame_pointer, link; /* link: that holds the return address */
	uint64_t address_mask;
} machines[] = {
	[UNWIND_X86_64] = { EM_X86_64, 7, 6, 16, UINT64_MAX },
	/* Above the 48 bits of a user's address there may be its signature. */
	[UNWIND_AARCH64] = { EM_AARCH64, 31, 29, 30, (UINT64_C(1) << 48) - 1 },
};

uint32_t unwind_stack_pointer(enum unwind_machine machine)
{
	return machines[machine].stack_pointer;
}

/* ---- reading the file */

static bool in_file(struct str bytes, uint64_t offset, uint64_t n)
{
	return offset <= bytes.n && n <= bytes.n - offset;
}

static bool read_header(const struct unwind_table *t, Elf64_Ehdr *h)
{
	struct str bytes = t->object.bytes;

	if (t->object.kind != OBJECT_ELF || bytes.n < sizeof(*h))
		return false;
	memcpy(h, bytes.p, sizeof(*h));
	return h->e_ident[EI_CLASS] == ELFCLASS64 && h->e_ident[EI_DATA] == ELFDATA2LSB &&
	       h->e_machine == machines[t->machine].elf;
}

static void read_loads(struct unwind_table *t, const Elf64_Ehdr *h)
{
	struct str bytes = t->object.bytes;

	for (uint64_t i = 0; i < h->e_phnum && h->e_phentsize >= sizeof(Elf64_Phdr); i++) {
		uint64_t at = i * h->e_phentsize;
		Elf64_Phdr p;

		if (h->e_phoff > bytes.n || !in_file(bytes, h->e_phoff + at, sizeof(p)))
			return;
		memcpy(&p, bytes.p + h->e_phoff + at, sizeof(p));
		if (p.p_type == PT_LOAD)
			vec_push(&t->loads, (struct load){ p.p_offset, p.p_vaddr, p.p_filesz });
	}
}

static bool read_section(const struct unwind_table *t, const Elf64_Ehdr *h, uint64_t index,
			 Elf64_Shdr *s)
{
	struct str bytes = t->object.bytes;
	uint64_t at = index * h->e_shentsize;

	if (h->e_shentsize < sizeof(*s) || h->e_shoff > bytes.n ||
	    !in_file(bytes, h->e_shoff + at, sizeof(*s)))
		return false;
	memcpy(s, bytes.p + h->e_shoff + at, sizeof(*s));
	return true;
}

static bool is_named(struct str names, uint64_t at, struct str want)
{
	return at < names.n && names.n - at > want.n && str_has_prefix(str_from(names, at), want) &&
	       !names.p[at + want.n];
}

/* Compressed .debug_frame sections are left out: nothing but hand-written assembly needs it. */
static void read_sections(struct unwind_table *t, const Elf64_Ehdr *h)
{
	struct str bytes = t->object.bytes, names;
	Elf64_Shdr s;

	if (!read_section(t, h, h->e_shstrndx, &s) || !in_file(bytes, s.sh_offset, s.sh_size))
		return;
	names = (struct str){ bytes.p + s.sh_offset, s.sh_size };
	for (uint64_t i = 0; i < h->e_shnum && read_section(t, h, i, &s); i++) {
		bool is_eh = is_named(names, s.sh_name, STR(".eh_frame"));

		if ((!is_eh && !is_named(names, s.sh_name, STR(".debug_frame"))) ||
		    s.sh_type == SHT_NOBITS || s.sh_flags & SHF_COMPRESSED ||
		    !in_file(bytes, s.sh_offset, s.sh_size) || t->nsections == SECTIONS_MAX)
			continue;
		t->sections[t->nsections++] = (struct cfi_section){
			.bytes = { bytes.p + s.sh_offset, s.sh_size },
			.address = s.sh_addr,
			.is_eh = is_eh,
		};
	}
}

static int by_start(const void *x, const void *y)
{
	const struct entry *a = x, *b = y;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return a->section < b->section ? -1 : a->section > b->section;
}

static void read_entries(struct unwind_table *t)
{
	for (uint32_t i = 0; i < t->nsections; i++) {
		struct cfi_fde fde;
		size_t at = 0, before = 0;
		bool is_fde;

		for (; cfi_next(&t->sections[i], &at, &fde, &is_fde); before = at)
			if (is_fde)
				vec_push(&t->entries,
					 (struct entry){ fde.start, fde.limit, i, before });
	}
	if (t->entries.n)
		qsort(t->entries.at, t->entries.n, sizeof(*t->entries.at), by_start);
}

struct unwind_table *unwind_open(const char *path, struct str build_id, enum unwind_machine machine)
{
	struct unwind_table *t = xcalloc(1, sizeof(*t));
	struct err ignored;
	Elf64_Ehdr h;

	t->machine = machine;
	t->seed = map_seed();
	if (object_open(&t->object, path, &ignored) && read_header(t, &h) &&
	    (!build_id.n || !t->object.build_id.n || str_eq(build_id, t->object.build_id))) {
		read_loads(t, &h);
		read_sections(t, &h);
		read_entries(t);
	}
	if (t->entries.n)
		return t;
	unwind_close(t);
	return NULL;
}

void unwind_close(struct unwind_table *t)
{
	if (!t)
		return;
	object_close(&t->object);
	vec_release(&t->loads);
	vec_release(&t->entries);
	vec_release(&t->steps);
	vec_release(&t->rules);
	map_release(&t->by_address);
	free(t);
}

/* ---- finding the row of an address */

static const struct entry *find_entry(const struct unwind_table *t, uint64_t address)
{
	size_t low = 0, high = t->entries.n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (t->entries.at[mid].start <= address)
			low = mid + 1;
		else
			high = mid;
	}
	return low && address < t->entries.at[low - 1].limit ? &t->entries.at[low - 1] : NULL;
}

static bool find_row(const struct unwind_table *t, uint64_t address, struct cfi_row *row)
{
	const struct entry *found = find_entry(t, address);
	struct cfi_fde fde;
	size_t at;
	bool is_fde;

	if (!found)
		return false;
	at = found->at;
	return cfi_next(&t->sections[found->section], &at, &fde, &is_fde) && is_fde &&
	       cfi_row_at(&fde, address, row);
}

struct step_key {
	const struct unwind_table *table;
	uint64_t address;
};

static bool same_address(const void *ctx, uint32_t index)
{
	const struct step_key *key = ctx;

	return key->table->steps.at[index].address == key->address;
}

static void add_step(struct unwind_table *t, uint64_t address)
{
	struct step s = { .address = address, .first_rule = (uint32_t)t->rules.n };
	struct cfi_row row;

	s.is_known = find_row(t, address, &row);
	if (s.is_known) {
		s.cfa = row.cfa;
		s.return_register = (uint32_t)row.return_register;
		s.is_signal_frame = row.is_signal_frame;
		for (uint32_t i = 0; i < UNWIND_REGISTERS; i++)
			if (row.registers[i].kind != CFI_SAME)
				vec_push(&t->rules, (struct step_rule){ i, row.registers[i] });
	}
	s.nrules = (uint32_t)t->rules.n - s.first_rule;
	vec_push(&t->steps, s);
}

static void forget_steps(struct unwind_table *t)
{
	t->steps.n = t->rules.n = 0;
	map_release(&t->by_address);
	t->by_address = (struct map){ 0 };
}

static const struct step *find_step(struct unwind_table *t, uint64_t address)
{
	struct step_key key = { t, address };
	uint32_t i;

	if (t->steps.n == ROWS_MAX)
		forget_steps(t);
	i = map_put(&t->by_address, hash_mix(t->seed, address), t->steps.n, same_address, &key);
	if (i == t->steps.n)
		add_step(t, address);
	return &t->steps.at[i];
}

/* ---- applying it */

static bool to_address(const struct unwind_table *t, uint64_t offset, uint64_t *address)
{
	for (size_t i = 0; i < t->loads.n; i++) {
		const struct load *l = &t->loads.at[i];

		if (offset >= l->offset && offset - l->offset < l->size) {
			*address = offset - l->offset + l->address;
			return true;
		}
	}
	return false;
}

static bool apply_rule(const struct cfi_rule *rule, const struct cfi_context *c, uint64_t cfa,
		       uint64_t *out)
{
	switch (rule->kind) {
	case CFI_AT_OFFSET:
		return unwind_read(c->stack, cfa + (uint64_t)rule->value, 8, out);
	case CFI_IS_OFFSET:
		*out = cfa + (uint64_t)rule->value;
		return true;
	case CFI_REGISTER:
		if (rule->reg < UNWIND_REGISTERS)
			*out = c->frame->registers[rule->reg];
		return rule->reg < UNWIND_REGISTERS;
	case CFI_AT_EXPRESSION:
		return cfi_evaluate(rule->expression, c, &cfa, out) &&
		       unwind_read(c->stack, *out, 8, out);
	case CFI_IS_EXPRESSION:
		return cfi_evaluate(rule->expression, c, &cfa, out);
	default:
		*out = 0;
		return true;
	}
}

static bool find_cfa(const struct step *s, const struct cfi_context *c, uint64_t *cfa)
{
	if (s->cfa.kind == CFI_IS_EXPRESSION)
		return cfi_evaluate(s->cfa.expression, c, NULL, cfa);
	*cfa = c->frame->registers[s->cfa.reg] + (uint64_t)s->cfa.value;
	return true;
}

/* A saved register that cannot be read is only a loss when something needs it later. */
static bool apply(const struct unwind_table *t, const struct step *s, struct unwind_frame *f,
		  const struct unwind_stack *stack)
{
	struct unwind_frame caller = *f;
	struct cfi_context c = { f, stack };
	uint32_t sp = machines[t->machine].stack_pointer;
	uint64_t cfa, v;

	if (!find_cfa(s, &c, &cfa))
		return false;
	caller.registers[sp] = cfa;
	for (uint32_t i = 0; i < s->nrules; i++) {
		const struct step_rule *r = &t->rules.at[s->first_rule + i];

		if (apply_rule(&r->rule, &c, cfa, &v))
			caller.registers[r->reg] = v;
		else if (r->reg == s->return_register)
			return false;
		if (r->reg == s->return_register && r->rule.kind == CFI_UNDEFINED)
			return false; /* the outermost frame says so */
	}
	caller.pc = caller.registers[s->return_register] & machines[t->machine].address_mask;
	caller.is_return = !s->is_signal_frame;
	/* Each caller's frame lies above; a leaf function of arm64 may have none of its own. */
	if (!caller.pc || caller.registers[sp] < f->registers[sp] ||
	    (caller.registers[sp] == f->registers[sp] && caller.pc == f->pc))
		return false;
	*f = caller;
	return true;
}

bool unwind_step(struct unwind_table *t, uint64_t offset, struct unwind_frame *f,
		 const struct unwind_stack *stack)
{
	const struct step *s;
	uint64_t address;

	if (!to_address(t, offset - f->is_return, &address))
		return false;
	s = find_step(t, address);
	if (t->machine == UNWIND_X86_64) /* where the pc is a register for expressions */
		f->registers[machines[UNWIND_X86_64].link] = f->pc;
	return s->is_known && apply(t, s, f, stack);
}

bool unwind_step_frame_pointer(enum unwind_machine machine, struct unwind_frame *f,
			       const struct unwind_stack *stack)
{
	uint32_t fp = machines[machine].frame_pointer, sp = machines[machine].stack_pointer;
	uint64_t at = f->registers[fp], saved, pc;

	if (at % 8 || at < f->registers[sp] || !unwind_read(stack, at, 8, &saved) ||
	    !unwind_read(stack, at + 8, 8, &pc))
		return false;
	pc &= machines[machine].address_mask;
	if (!pc)
		return false;
	f->registers[fp] = saved;
	f->registers[sp] = at + 16;
	f->pc = pc;
	f->is_return = true;
	return true;
}
