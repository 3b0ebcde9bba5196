/* symtab.h - the name of the symbol at an address, as different tools see it; private to symbol/.
 *
 * pprof shows what the tool that it finds on the machine says, and they do not agree about symbols
 * without size, of other types, or at one address. So there is a table for each manner.
 */
#ifndef SYMBOL_SYMTAB_H
#define SYMBOL_SYMTAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "symbol/elf.h"

enum symtab_manner {
	SYMTAB_SYMBOLIZER, /* llvm-symbolizer */
	SYMTAB_ADDR2LINE,  /* GNU addr2line */
	SYMTAB_NM,	   /* pprof's reading of what GNU nm lists */
	SYMTAB_LLVM_NM,	   /* and of what llvm-nm lists */
};

struct symtab_entry {
	uint64_t address, size;
	struct str name;
	uint32_t index; /* in the file's table */
	uint16_t section;
	uint8_t type;
	bool is_local, is_defined;
	bool is_data; /* only reaches as far as its size, for pprof */
};

struct symtab_file {
	uint32_t index;
	struct str name;
};

struct symtab {
	enum symtab_manner manner;
	const struct elf *f;
	struct symtab_entry *at;
	size_t n;
	struct symtab_file *files; /* names of source files; local symbols follow theirs */
	size_t nfiles;
	bool files_come_first; /* before all symbols: then global ones belong to them too */
};

/* Reads .symtab, or if that is empty .dynsym (but for nm). Names point into the file. */
void symtab_read(struct arena *a, struct symtab *t, const struct elf *f, enum symtab_manner manner);
/* False if there is none. *file, the source file if known, is not set for nm. */
bool symtab_find(const struct symtab *t, uint64_t address, struct str *name, struct str *file);

#endif
