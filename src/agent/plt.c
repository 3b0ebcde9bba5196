/* Only the program's own table: it is there until the end, and libraries may be unloaded while
 * somebody writes to theirs. */
#include "agent/plt.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stddef.h>
#include <string.h>

#include <linux/futex.h>

#include "agent/kernel.h"
#include "agent/real.h"

struct table {
	const ElfW(Rela) * relocations;
	size_t n;
	const ElfW(Sym) * symbols;
	const char *strings;
};

struct search {
	const char *name;
	uintptr_t hook;
	atomic_uintptr_t *slot;
};

static bool is_in_segment(const struct dl_phdr_info *info, uintptr_t address, ElfW(Word) type,
			  ElfW(Word) flags)
{
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type == type && (p->p_flags & flags) == flags &&
		    address - (info->dlpi_addr + p->p_vaddr) < p->p_memsz)
			return true;
	}
	return false;
}

static bool read_table(const struct dl_phdr_info *info, struct table *t)
{
	const ElfW(Dyn) *d = NULL;
	bool has_addends = false;

	for (unsigned i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
			d = (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
	for (; d && d->d_tag != DT_NULL; d++) {
		if (d->d_tag == DT_JMPREL)
			t->relocations = (const void *)d->d_un.d_ptr;
		else if (d->d_tag == DT_PLTRELSZ)
			t->n = d->d_un.d_val / sizeof(ElfW(Rela));
		else if (d->d_tag == DT_PLTREL)
			has_addends = d->d_un.d_val == DT_RELA;
		else if (d->d_tag == DT_SYMTAB)
			t->symbols = (const void *)d->d_un.d_ptr;
		else if (d->d_tag == DT_STRTAB)
			t->strings = (const void *)d->d_un.d_ptr;
	}
	return has_addends && t->relocations && t->symbols && t->strings;
}

/* What is not bound yet leads back into the program, and from there to the loader. */
static bool leads_to_hook(const struct dl_phdr_info *info, const struct search *s, uintptr_t to)
{
	if (is_in_segment(info, to, PT_LOAD, PF_X))
		return (uintptr_t)dlsym(RTLD_DEFAULT, s->name) == s->hook;
	return to == s->hook;
}

static int look_at_program(struct dl_phdr_info *info, size_t size, void *data)
{
	struct search *s = data;
	struct table t = { 0 };

	(void)size;
	if (!read_table(info, &t))
		return 1;
	for (size_t i = 0; i < t.n; i++) {
		const ElfW(Rela) *r = &t.relocations[i];
		const ElfW(Sym) *symbol = &t.symbols[ELF64_R_SYM(r->r_info)];
		uintptr_t at = info->dlpi_addr + r->r_offset;

		if (ELF64_R_TYPE(r->r_info) != R_X86_64_JUMP_SLOT ||
		    symbol->st_shndx != SHN_UNDEF || strcmp(t.strings + symbol->st_name, s->name))
			continue;
		if (at % sizeof(void *) == 0 && is_in_segment(info, at, PT_LOAD, PF_W) &&
		    !is_in_segment(info, at, PT_GNU_RELRO, 0) &&
		    leads_to_hook(info, s, *(uintptr_t *)at))
			s->slot = (atomic_uintptr_t *)at;
		break;
	}
	return 1; /* the program is the first */
}

atomic_uintptr_t *plt_find(const char *name, uintptr_t hook)
{
	struct search s = { .name = name, .hook = hook };

	if (!real_is_static())
		dl_iterate_phdr(look_at_program, &s);
	return s.slot;
}

/* The kernel can be asked for "word |= 0", which fails where a store would be the end. Other
 * threads notice nothing. */
static bool is_writable(atomic_uintptr_t *slot)
{
	uint32_t mine = 0;

	return kernel_call6(SYS_futex, (long)&mine, FUTEX_WAKE_OP_PRIVATE, 0, 0, (long)slot,
			    FUTEX_OP(FUTEX_OP_OR, 0, FUTEX_OP_CMP_LT, 0)) >= 0;
}

bool plt_replace(atomic_uintptr_t *slot, uintptr_t to)
{
	if (atomic_load_explicit(slot, memory_order_relaxed) == to)
		return true;
	if (!is_writable(slot))
		return false;
	atomic_store_explicit(slot, to, memory_order_relaxed);
	return true;
}
