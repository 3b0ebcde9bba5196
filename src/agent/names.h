/* names.h - one table of symbols, sorted by address: of an ELF file, of an image in memory, or of
 * what a JIT compiler tells perf. All that is read may be damaged or somebody else's. */
#ifndef AGENT_NAMES_H
#define AGENT_NAMES_H

#include "agent/module.h"

struct symbol {
	uint64_t start;
	uint32_t size; /* 0: up to the next */
	uint32_t name; /* where it begins in `text` */
};

/* Zero-initialised it is empty. */
struct names {
	struct symbol *symbols;
	size_t n, symbols_bytes;
	char *text; /* the last of it is a NUL */
	size_t text_bytes;
};

/* Functions of the file that `m` was loaded from: .symtab, or else .dynsym. False: it has none, or
 * is not the same any more. */
bool names_read_file(struct names *t, const char *path, const struct module *m);
/* The same from all of an ELF file in memory. */
bool names_read_image(struct names *t, const void *image, size_t n);
/* Lines "start size name", in hexadecimal numbers: what the open file has of them. */
bool names_read_perf_map(struct names *t, int fd);
void names_release(struct names *t);

/* NULL: none is there. */
const char *names_find(const struct names *t, uint64_t address, uint64_t *offset);

#endif
