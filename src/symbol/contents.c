#include "symbol/symbol.h"

#include "symbol/elf.h"

#define PAGE 4096

static bool has_bytes(const struct elf *f, const char *name)
{
	return elf_bytes(f, elf_section(f, str_of(name))).n > 0;
}

static bool has_table(const struct elf *f, uint32_t type)
{
	struct elf_symbols symbols = elf_symbols(f, type);
	struct elf_symbol first;

	return elf_next_symbol(&symbols, &first);
}

static bool is_code(const struct segment *s)
{
	return s->type == PT_LOAD && s->flags & PF_X;
}

/* Files with debug information alone still have segments, but nothing in them. */
static bool has_code(const struct elf *f)
{
	for (size_t i = 0; i < f->nsegments; i++)
		if (is_code(&f->segments[i]) && f->segments[i].filesz)
			return true;
	return false;
}

struct object_contents object_contents(const struct object *o)
{
	const struct elf *f = o->elf;

	if (!f)
		return (struct object_contents){ 0 };
	return (struct object_contents){
		.is_loadable = has_code(f),
		.has_symbols = has_table(f, SHT_SYMTAB) || has_bytes(f, ".gnu_debugdata"),
		.has_exports = has_table(f, SHT_DYNSYM),
		.has_debug_info = has_bytes(f, ".debug_info") || has_bytes(f, ".zdebug_info"),
		.has_lines = has_bytes(f, ".debug_line") || has_bytes(f, ".zdebug_line"),
		.has_go_table =
			has_bytes(f, ".gopclntab") || has_bytes(f, ".data.rel.ro.gopclntab"),
		.machine = (uint16_t)FIELD(f, f->bytes.p, Ehdr, e_machine),
	};
}

int object_contents_rank(const struct object_contents *c)
{
	int names = c->has_debug_info && c->has_lines ? 4
		    : c->has_go_table		      ? 3
		    : c->has_symbols		      ? 2
		    : c->has_exports		      ? 1
						      : 0;

	return names ? 2 * names + c->is_loadable : 0;
}

/* The segment that fills as many pages as the mapping has; the only one, if there is only one. */
static const struct segment *segment_of_size(const struct elf *f, uint64_t size)
{
	const struct segment *only = NULL;
	size_t n = 0;

	for (size_t i = 0; i < f->nsegments; i++) {
		const struct segment *s = &f->segments[i];

		if (!is_code(s))
			continue;
		only = s;
		n++;
		if ((s->vaddr % PAGE + s->memsz + PAGE - 1) / PAGE * PAGE == size)
			return s;
	}
	return n == 1 ? only : NULL;
}

bool object_debug_address(const struct object *o, const struct object_place *place,
			  uint64_t address, uint64_t *out, struct err *e)
{
	uint64_t size = place->limit - place->start;
	const struct segment *s;

	if (!o->elf || !o->elf->nsegments || has_code(o->elf) || !place->start)
		return object_address(o, place, address, out, e);
	s = segment_of_size(o->elf, size);
	if (!s)
		return err_set(e, ERR_FORMAT,
			       "%s has only debug information, and of several segments none has "
			       "the size of the mapping, %jx",
			       o->path, (uintmax_t)size);
	if (address < place->start || address - place->start >= size)
		return err_set(e, ERR_FORMAT, "address %jx is outside of its mapping",
			       (uintmax_t)address);
	*out = address - place->start + s->vaddr / PAGE * PAGE;
	return true;
}
