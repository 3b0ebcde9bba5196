/* debugfile.h - where the debug information of a stripped file is; private to symbol/. */
#ifndef SYMBOL_DEBUGFILE_H
#define SYMBOL_DEBUGFILE_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/buf.h"
#include "symbol/elf.h"
#include "symbol/symbol.h"

/* Opens the file that belongs to `of`: by its build id or by its .gnu_debuglink, whose checksum
 * must be right; on this machine, then, if DEBUGINFOD_URLS is set, from a server. `tried` gets the
 * names of all files that were looked for, a blank before each. */
bool debug_file_open(struct object *out, const struct object *of, const char *binary_path,
		     struct buf *tried);

/* The symbols that a distribution keeps compressed in .gnu_debugdata: an ELF file, unpacked into
 * `a`. False if there is none. */
bool debug_data_read(struct arena *a, struct elf *out, const struct elf *of);

#endif
