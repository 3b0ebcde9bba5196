/* elf.h - the parts of an ELF file that object.c has read and checked; private to symbol/. */
#ifndef SYMBOL_ELF_H
#define SYMBOL_ELF_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

struct segment {
	uint32_t type, flags;
	uint64_t offset, vaddr, filesz, memsz, align;
};

struct section {
	struct str name;
	uint32_t type, link;
	uint64_t flags, addr, offset, size;
};

struct elf {
	struct str bytes;
	bool is_64, is_big_endian;
	uint16_t type;
	struct segment *segments;
	struct section *sections;
	size_t nsegments, nsections;
	/* The kernel symbol that was looked for last: reading all symbols takes its time. */
	struct elf_kernel_symbol *kernel_symbol;
};

struct elf_kernel_symbol {
	uint64_t name_hash, value;
	bool is_known, is_there;
};

static inline bool elf_has(struct str bytes, uint64_t offset, uint64_t n)
{
	return offset <= bytes.n && n <= bytes.n - offset;
}

/* What the file has of a range; tools cut files short. */
static inline struct str elf_part(struct str bytes, uint64_t offset, uint64_t n)
{
	uint64_t left = offset <= bytes.n ? bytes.n - offset : 0;

	return left ? (struct str){ bytes.p + offset, n < left ? n : left } : (struct str){ 0 };
}

/* A field of 1, 2, 4 or 8 bytes. The caller has checked that it is there. */
static inline uint64_t elf_field(const struct elf *f, const char *at, size_t bytes)
{
	uint64_t v = 0;

	for (size_t i = 0; i < bytes; i++)
		v = v << 8 | (uint8_t)at[f->is_big_endian ? i : bytes - 1 - i];
	return v;
}

/* FIELD(f, at, Ehdr, e_phoff): the member of the 32 or the 64 bit struct at `at`. */
#define FIELD(f, at, T, member)                                          \
	((f)->is_64 ? elf_field((f), (at) + offsetof(Elf64_##T, member), \
				sizeof(((Elf64_##T *)0)->member))        \
		    : elf_field((f), (at) + offsetof(Elf32_##T, member), \
				sizeof(((Elf32_##T *)0)->member)))
#define SIZE(f, T) ((f)->is_64 ? sizeof(Elf64_##T) : sizeof(Elf32_##T))

/* Reads the tables of a file that is in memory. Its name is the caller's to add to the error. */
bool elf_read(struct arena *a, struct elf *f, struct str bytes, struct err *e);
/* The first section of that name, or NULL. */
const struct section *elf_section(const struct elf *f, struct str name);
/* What the file has of it; nothing of NULL and of a section without bytes. */
struct str elf_bytes(const struct elf *f, const struct section *s);

/* Symbols one by one, without the first, which is none. Those whose name is broken are left out. */
struct elf_symbols {
	const struct elf *f;
	struct str entries, names;
	size_t next;
	size_t budget; /* bytes of names that may still be looked at */
};

struct elf_symbol {
	uint64_t value, size;
	struct str name;
	uint32_t index;
	uint16_t section;
	uint8_t type, bind;
};

/* `type` is SHT_SYMTAB or SHT_DYNSYM. Without such a table there are none. */
struct elf_symbols elf_symbols(const struct elf *f, uint32_t type);
bool elf_next_symbol(struct elf_symbols *symbols, struct elf_symbol *out);

#endif
