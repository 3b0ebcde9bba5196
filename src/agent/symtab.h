/* symtab.h - one table of symbols, sorted by address: of an ELF file, of an image in memory, or of
 * what a JIT compiler tells perf. All that is read may be damaged or somebody else's. */
#ifndef AGENT_SYMTAB_H
#define AGENT_SYMTAB_H

#include "agent/module.h"

struct symbol {
	uint64_t start;
	uint32_t size; /* 0: up to the next */
	uint32_t name; /* where it begins in `names` */
};

/* Zero-initialised it is empty. */
struct symtab {
	struct symbol *symbols;
	size_t n, symbols_bytes;
	char *names; /* the last of it is a NUL */
	size_t names_bytes;
};

/* Functions of the file that `m` was loaded from: .symtab, or else .dynsym. False: it has none, or
 * is not the same any more. */
bool symtab_read_file(struct symtab *t, const char *path, const struct module *m);
/* The same from all of an ELF file in memory. */
bool symtab_read_image(struct symtab *t, const void *image, size_t n);
/* Lines "start size name", in hexadecimal numbers: what the open file has of them. */
bool symtab_read_perf_map(struct symtab *t, int fd);
void symtab_release(struct symtab *t);

/* NULL: none is there. */
const char *symtab_find(const struct symtab *t, uint64_t address, uint64_t *offset);

#endif
