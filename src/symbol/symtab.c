#include "symbol/symtab.h"

#include <stdlib.h>

#include "base/vec.h"

/* Symbols of other sections, and of one address, that a lookup goes past. */
#define STEPS_MAX 1000

typedef vec(struct symtab_entry) entry_vec;
typedef vec(struct symtab_file) file_vec;

static const struct section *section_of(const struct elf *f, uint16_t index)
{
	return index != SHN_UNDEF && index < SHN_LORESERVE && index < f->nsections
		       ? &f->sections[index]
		       : NULL;
}

/* Does nm call it b, d, r, v or W? */
static bool is_nm_data(const struct elf *f, const struct elf_symbol *s)
{
	const struct section *section = section_of(f, s->section);

	if (s->type == STT_GNU_IFUNC || s->bind == STB_GNU_UNIQUE)
		return false;
	if (s->bind == STB_WEAK)
		return s->section != SHN_UNDEF;
	return section && section->flags & SHF_ALLOC && !(section->flags & SHF_EXECINSTR);
}

/* pprof splits nm's lines at blanks. */
static bool is_listed_by_nm(const struct elf_symbol *s, enum symtab_manner manner)
{
	return s->type != STT_FILE && s->type != STT_SECTION && s->name.n &&
	       str_find_char(s->name, ' ') == STR_NONE &&
	       (manner == SYMTAB_LLVM_NM || (s->size && s->section != SHN_UNDEF));
}

static bool is_wanted(const struct elf *f, const struct elf_symbol *s, enum symtab_manner manner)
{
	const struct section *section = section_of(f, s->section);

	if (manner == SYMTAB_NM || manner == SYMTAB_LLVM_NM)
		return is_listed_by_nm(s, manner);
	if (!section || !(section->flags & SHF_ALLOC))
		return false;
	if (manner == SYMTAB_SYMBOLIZER && s->type == STT_OBJECT)
		return true;
	return s->type == STT_NOTYPE || s->type == STT_FUNC || s->type == STT_GNU_IFUNC;
}

static void collect(const struct elf *f, enum symtab_manner manner, uint32_t table,
		    entry_vec *entries, file_vec *files)
{
	struct elf_symbols symbols = elf_symbols(f, table);
	struct elf_symbol s;

	while (elf_next_symbol(&symbols, &s)) {
		if (s.type == STT_FILE)
			vec_push(files, ((struct symtab_file){ s.index, s.name }));
		if (!is_wanted(f, &s, manner))
			continue;
		vec_push(entries, ((struct symtab_entry){
					  .address = s.value,
					  .size = s.size,
					  .name = s.name,
					  .index = s.index,
					  .section = s.section,
					  .type = s.type,
					  .is_local = s.bind == STB_LOCAL,
					  .is_defined = s.section != SHN_UNDEF,
					  .is_data = is_nm_data(f, &s),
				  }));
	}
}

static int by_address(const void *a, const void *b)
{
	const struct symtab_entry *x = a, *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return (x->index > y->index) - (x->index < y->index);
}

/* As nm --numeric-sort. */
static int by_nm_order(const void *a, const void *b)
{
	const struct symtab_entry *x = a, *y = b;
	int order;

	if (x->is_defined != y->is_defined)
		return x->is_defined ? 1 : -1;
	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	order = str_cmp(x->name, y->name);
	return order ? order : (x->size > y->size) - (x->size < y->size);
}

/* Of symbols at one address llvm-symbolizer keeps the largest, and the last of those. */
static size_t keep_largest(struct symtab_entry *at, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		if (kept && at[kept - 1].address == at[i].address) {
			if (at[i].size >= at[kept - 1].size)
				at[kept - 1] = at[i];
		} else {
			at[kept++] = at[i];
		}
	}
	return kept;
}

static void sort_entries(struct symtab *t)
{
	bool is_nm = t->manner == SYMTAB_NM || t->manner == SYMTAB_LLVM_NM;

	if (t->n)
		qsort(t->at, t->n, sizeof(*t->at), is_nm ? by_nm_order : by_address);
	if (t->manner == SYMTAB_SYMBOLIZER)
		t->n = keep_largest(t->at, t->n);
}

void symtab_read(struct arena *a, struct symtab *t, const struct elf *f, enum symtab_manner manner)
{
	entry_vec entries = { 0 };
	file_vec files = { 0 };
	struct elf_symbols symbols = elf_symbols(f, SHT_SYMTAB);
	bool is_nm = manner == SYMTAB_NM || manner == SYMTAB_LLVM_NM;
	bool is_empty = symbols.entries.n <= SIZE(f, Sym);

	collect(f, manner, is_empty && !is_nm ? SHT_DYNSYM : SHT_SYMTAB, &entries, &files);
	*t = (struct symtab){ .manner = manner, .f = f, .n = entries.n, .nfiles = files.n };
	t->files_come_first = files.n && files.at[files.n - 1].index == files.n;
	t->at = vec_adopt(a, &entries);
	t->files = vec_adopt(a, &files);
	sort_entries(t);
}

/* Number of entries that do not lie above the address. */
static size_t count_up_to(const struct symtab *t, uint64_t address)
{
	size_t low = 0, high = t->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (t->at[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The source file that a local symbol belongs to is the last one named before it. */
static struct str file_before(const struct symtab *t, uint32_t index)
{
	size_t low = 0, high = t->nfiles;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (t->files[middle].index < index)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? t->files[low - 1].name : STR("");
}

static const struct symtab_entry *find_for_symbolizer(const struct symtab *t, uint64_t address)
{
	size_t n = count_up_to(t, address);
	const struct symtab_entry *s = n ? &t->at[n - 1] : NULL;

	return s && s->size && address - s->address >= s->size ? NULL : s;
}

static const struct section *section_at(const struct elf *f, uint64_t address)
{
	for (size_t i = 1; i < f->nsections; i++)
		if (f->sections[i].flags & SHF_ALLOC && address >= f->sections[i].addr &&
		    address - f->sections[i].addr < f->sections[i].size)
			return &f->sections[i];
	return NULL;
}

/* Of two symbols that start at the same place: is `s` better than `best`? binutils' rules. */
static bool is_better(const struct symtab_entry *s, const struct symtab_entry *best,
		      uint64_t address)
{
	uint64_t size = s->size ? s->size : 1, best_size = best->size ? best->size : 1;
	bool is_function = s->type == STT_FUNC || s->type == STT_GNU_IFUNC;
	bool best_is_function = best->type == STT_FUNC || best->type == STT_GNU_IFUNC;

	if (address - best->address >= best_size)
		return size > best_size;
	if (address - s->address >= size)
		return false;
	if (is_function != best_is_function)
		return is_function;
	return size < best_size;
}

static const struct symtab_entry *find_for_addr2line(const struct symtab *t, uint64_t address)
{
	const struct section *section = section_at(t->f, address);
	const struct symtab_entry *best = NULL;
	size_t n = count_up_to(t, address);
	uint64_t start;

	if (!section)
		return NULL;
	/* Only symbols of the section that the address is in count. */
	for (size_t steps = 0; n && &t->f->sections[t->at[n - 1].section] != section; n--)
		if (t->at[n - 1].address < section->addr || ++steps > STEPS_MAX)
			return NULL;
	start = n ? t->at[n - 1].address : 0;
	while (n && t->at[n - 1].address == start && start >= section->addr)
		n--;
	for (; n < t->n && t->at[n].address == start && start >= section->addr; n++)
		if (&t->f->sections[t->at[n].section] == section &&
		    (!best || is_better(&t->at[n], best, address)))
			best = &t->at[n];
	return best;
}

/* The steps of pprof's search, which at an address with several symbols decide which one it is. */
static const struct symtab_entry *find_for_nm(const struct symtab *t, uint64_t address)
{
	const struct symtab_entry *at = t->at;
	size_t low = 0, high = t->n;

	if (!t->n || address < at[0].address ||
	    (address >= at[t->n - 1].address &&
	     address - at[t->n - 1].address >= at[t->n - 1].size))
		return NULL;
	while (low + 1 < high) {
		size_t middle = (low + high) / 2;

		if (at[middle].address > address) {
			high = middle;
			continue;
		}
		low = middle;
		if (at[middle].address == address)
			break;
	}
	return at[low].is_data && address - at[low].address >= at[low].size ? NULL : &at[low];
}

bool symtab_find(const struct symtab *t, uint64_t address, struct str *name, struct str *file)
{
	const struct symtab_entry *s;

	if (t->manner == SYMTAB_SYMBOLIZER)
		s = find_for_symbolizer(t, address);
	else if (t->manner == SYMTAB_ADDR2LINE)
		s = find_for_addr2line(t, address);
	else
		s = find_for_nm(t, address);
	if (!s)
		return false;
	*name = s->name;
	*file = s->is_local || (t->manner == SYMTAB_ADDR2LINE && t->files_come_first)
			? file_before(t, s->index)
			: STR("");
	return true;
}
