/* symlist.c - the symbols of an object, as nm lists them, and the stubs of its procedure linkage
 * table, which have no symbols of their own. */
#include "symbol/symbol.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/vec.h"
#include "symbol/elf.h"

/* A stub is a jump through the global offset table with something around it; those of .plt.got have
 * half the size. */
#define STUB_BYTES 16

static int by_address_name(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return str_cmp(x->name, y->name);
}

/* Does the symbol's section hold the place that it names? Thread local ones count from elsewhere.
 */
static bool has_place(const struct elf *f, const struct elf_symbol *s)
{
	const struct section *in;

	if (s->section == SHN_UNDEF || s->section >= f->nsections || s->type == STT_TLS)
		return false;
	in = &f->sections[s->section];
	return in->flags & SHF_ALLOC && s->value >= in->addr && s->value - in->addr <= in->size;
}

/* nm leaves out files and sections, and has no addresses for what other objects define. */
static bool is_listed(const struct elf_symbol *s)
{
	return s->type != STT_FILE && s->type != STT_SECTION && s->section != SHN_UNDEF &&
	       s->name.n;
}

/* Functions first, then variables; global ones first, local ones last. */
static uint8_t rank_of(const struct elf_symbol *s)
{
	int type = s->type == STT_FUNC ? 0 : s->type == STT_OBJECT ? 1 : 2;
	int binding = s->bind == STB_GLOBAL ? 0 : s->bind == STB_LOCAL ? 2 : 1;

	return (uint8_t)(3 * type + binding);
}

static void read_symbols(struct arena *a, const struct elf *f, struct symbol_list *t)
{
	struct elf_symbols symbols = elf_symbols(f, SHT_SYMTAB);
	vec(struct symbol) listed = { 0 };
	struct elf_symbol s;

	while (elf_next_symbol(&symbols, &s))
		if (is_listed(&s))
			vec_push(&listed, (struct symbol){ .address = s.value,
							   .size = s.size,
							   .name = s.name,
							   .is_function = s.type == STT_FUNC ||
									  s.type == STT_GNU_IFUNC,
							   .has_place = has_place(f, &s),
							   .rank = rank_of(&s) });
	if (listed.n)
		qsort(listed.at, listed.n, sizeof(*listed.at), by_address_name);
	t->n = listed.n;
	t->at = vec_adopt(a, &listed);
}

/* ---- stubs */

/* A slot of the global offset table and the symbol that the loader puts there. */
struct slot {
	uint64_t address;
	uint32_t symbol;
};

struct slots {
	vec(struct slot) all;
	struct map map;
	uint64_t seed;
};

struct slot_key {
	const struct slots *slots;
	uint64_t address;
};

static bool same_slot(const void *ctx, uint32_t index)
{
	const struct slot_key *key = ctx;

	return key->slots->all.at[index].address == key->address;
}

static uint32_t find_slot(const struct slots *slots, uint64_t address)
{
	struct slot_key key = { slots, address };

	return map_get(&slots->map, hash_mix(slots->seed, address), same_slot, &key);
}

static void read_slots(const struct elf *f, const struct section *s, struct slots *slots)
{
	size_t size = s->type == SHT_RELA ? SIZE(f, Rela) : SIZE(f, Rel);
	struct str bytes = elf_bytes(f, s);

	for (size_t i = 0; i < bytes.n / size; i++) {
		const char *at = bytes.p + i * size;
		uint64_t info = FIELD(f, at, Rel, r_info);
		struct slot slot = { .address = FIELD(f, at, Rel, r_offset),
				     .symbol = (uint32_t)(f->is_64 ? info >> 32 : info >> 8) };

		if (slot.symbol == 0 || find_slot(slots, slot.address) != MAP_NONE)
			continue;
		map_add(&slots->map, hash_mix(slots->seed, slot.address), slots->all.n);
		vec_push(&slots->all, slot);
	}
}

/* The slot that an x86-64 stub jumps through: jmp *disp(%rip), which is ff 25 and 4 bytes. */
static bool stub_slot(struct str stub, uint64_t address, uint64_t *slot)
{
	for (size_t i = 0; i + 6 <= stub.n; i++) {
		const unsigned char *p = (const unsigned char *)stub.p + i;
		uint32_t disp;

		if (p[0] != 0xff || p[1] != 0x25)
			continue;
		memcpy(&disp, p + 2, sizeof(disp));
		*slot = address + i + 6 + (uint64_t)(int64_t)(int32_t)disp;
		return true;
	}
	return false;
}

/* Dynamic symbols by their index. */
static struct str *dynamic_names(struct arena *a, const struct elf *f, size_t *n)
{
	struct elf_symbols symbols = elf_symbols(f, SHT_DYNSYM);
	struct str *names;
	struct elf_symbol s;

	*n = symbols.entries.n / SIZE(f, Sym);
	names = arena_many(a, *n, struct str);
	while (elf_next_symbol(&symbols, &s))
		names[s.index] = s.name;
	return names;
}

static struct str stub_name(struct arena *a, struct str of)
{
	static const char suffix[] = "@plt";
	char *name = arena_raw(a, of.n + sizeof(suffix));

	memcpy(name, of.p, of.n);
	memcpy(name + of.n, suffix, sizeof(suffix));
	return (struct str){ name, of.n + sizeof(suffix) - 1 };
}

/* What stubs are read with. */
struct stub_reader {
	struct arena *a;
	const struct elf *f;
	struct slots slots;
	struct str *names;
	size_t nnames;
	vec(struct symbol) stubs;
};

static void add_stub(struct stub_reader *r, struct symbol stub, uint64_t slot)
{
	uint32_t found = find_slot(&r->slots, slot);
	uint32_t symbol = found == MAP_NONE ? 0 : r->slots.all.at[found].symbol;

	if (symbol == 0 || symbol >= r->nnames || !r->names[symbol].n)
		return;
	stub.name = stub_name(r->a, r->names[symbol]);
	vec_push(&r->stubs, stub);
}

/* .plt, .plt.sec and .plt.got */
static void read_section_stubs(struct stub_reader *r, const struct section *s)
{
	size_t step = str_eq(s->name, STR(".plt.got")) ? STUB_BYTES / 2 : STUB_BYTES;
	struct str bytes = elf_bytes(r->f, s);

	for (size_t at = 0; at < bytes.n; at += step) {
		struct symbol stub = { .address = s->addr + at,
				       .size = step,
				       .is_function = true,
				       .has_place = true };
		uint64_t slot;

		if (stub_slot(elf_part(bytes, at, step), stub.address, &slot))
			add_stub(r, stub, slot);
	}
}

static bool is_relocations(const struct section *s)
{
	return (s->type == SHT_RELA || s->type == SHT_REL) && s->flags & SHF_ALLOC;
}

/* Sections do not overlap, so all of them have no more bytes than the file, or it is broken. */
static bool may_read(uint64_t *left, const struct section *s)
{
	if (s->size > *left)
		return false;
	*left -= s->size;
	return true;
}

static void read_stubs(struct arena *a, const struct elf *f, struct symbol_list *t)
{
	struct stub_reader r = { .a = a, .f = f, .slots.seed = map_seed() };
	uint64_t left = f->bytes.n;

	if (FIELD(f, f->bytes.p, Ehdr, e_machine) != EM_X86_64 || f->is_big_endian)
		return;
	r.names = dynamic_names(a, f, &r.nnames);
	for (size_t i = 0; i < f->nsections; i++)
		if (is_relocations(&f->sections[i]) && may_read(&left, &f->sections[i]))
			read_slots(f, &f->sections[i], &r.slots);
	for (size_t i = 0; i < f->nsections; i++)
		if (str_has_prefix(f->sections[i].name, STR(".plt")) &&
		    may_read(&left, &f->sections[i]))
			read_section_stubs(&r, &f->sections[i]);
	vec_release(&r.slots.all);
	map_release(&r.slots.map);
	if (r.stubs.n)
		qsort(r.stubs.at, r.stubs.n, sizeof(*r.stubs.at), by_address_name);
	t->nstubs = r.stubs.n;
	t->stubs = vec_adopt(a, &r.stubs);
}

void symbol_list_read(struct arena *a, const struct object *o, struct symbol_list *t)
{
	*t = (struct symbol_list){ 0 };
	if (o->kind != OBJECT_ELF)
		return;
	read_symbols(a, o->elf, t);
	read_stubs(a, o->elf, t);
}
