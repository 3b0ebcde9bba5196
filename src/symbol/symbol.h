/* symbol.h - from addresses and mangled names to what a person reads: names, binaries, source
 * lines.
 *
 * Everything that is looked at here (names, object files, source files) is hostile: lengths are
 * checked, sizes and depths are limited, and nothing waits for a FIFO. Threads: there is no shared
 * state; calls on different profiles and objects may run at the same time.
 */
#ifndef SYMBOL_SYMBOL_H
#define SYMBOL_SYMBOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

struct profile;
struct profile_names;

/* ---- names (demangle.c) */

enum demangle_mode {
	DEMANGLE_DEFAULT,   /* neither parameters nor template arguments */
	DEMANGLE_NONE,	    /* names stay as they are */
	DEMANGLE_TEMPLATES, /* no parameters */
	DEMANGLE_FULL,	    /* everything but clone suffixes such as .isra.0 */
	DEMANGLE_CLONES,    /* everything: "work() [clone .isra.0]" */
};

/* Gives the profile a functions table with readable names. Without `force` functions whose name
 * differs from their system name stay as they are; with it they start again from the system name.
 */
void profile_demangle(struct arena *a, struct profile *p, enum demangle_mode mode, bool force);
/* Appends the readable form of a mangled C++ or Rust name. False, and nothing appended, if it is
 * none; a name that is too long or too deep to be taken apart safely counts as none. `out` collects
 * in memory: it may not flow into a file. */
bool demangle_name(struct buf *out, struct str mangled, enum demangle_mode mode);

/* ---- object files (object.c) */

enum object_kind { OBJECT_ELF, OBJECT_MACHO, OBJECT_PE };

/* An object file, mapped into memory until object_close. */
struct object {
	enum object_kind kind;
	struct str bytes;
	struct str build_id; /* in hex; empty if there is none */
	const char *path;    /* as it was opened */
	struct elf *elf;     /* NULL unless kind is OBJECT_ELF */
	struct arena arena;  /* owns build_id, path and elf */
};

/* Where a mapping of the profile has put the file. */
struct object_place {
	uint64_t start, limit, offset;
	struct str kernel_symbol; /* the symbol that `start` is relative to; often "" */
};

bool object_open(struct object *o, const char *path, struct err *e);
void object_close(struct object *o);
/* Can addresses of such a mapping be turned into the object's own? `path` is for the error text. */
bool object_check_base(const struct object *o, const char *path, const struct object_place *place,
		       struct err *e);
/* Turns an address of the mapping into the object's own, which the linker gave it. */
bool object_address(const struct object *o, const struct object_place *place, uint64_t address,
		    uint64_t *out, struct err *e);

/* ---- what a file can tell (contents.c) */

struct object_contents {
	bool is_loadable;		/* has the code itself, not only what is known of it */
	bool has_symbols;		/* .symtab, or the compressed one of distributions */
	bool has_exports;		/* .dynsym */
	bool has_debug_info, has_lines; /* DWARF */
	bool has_go_table;
	uint16_t machine; /* EM_X86_64 ... */
};
/* Of an ELF file; looks at its tables of sections and segments only. */
struct object_contents object_contents(const struct object *o);
/* How much it tells: 0 is nothing; with lines more than with names, and with the code more than
 * without. */
int object_contents_rank(const struct object_contents *c);
/* As object_address, also where a file has only debug information: such files have forgotten where
 * in the file their segments were, so it is taken from the mapping. */
bool object_debug_address(const struct object *o, const struct object_place *place,
			  uint64_t address, uint64_t *out, struct err *e);

/* ---- functions and lines at an address (frames.c) */

enum symbol_detail {
	SYMBOL_FULL,  /* inlined calls, lines, columns and start lines, as llvm-symbolizer */
	SYMBOL_PLAIN, /* inlined calls and lines, as addr2line */
	SYMBOL_NAMES, /* the function's name, as nm */
	SYMBOL_INNER, /* as SYMBOL_PLAIN, but names are not completed by those of nm: as objdump */
};

/* Strings are "" and numbers 0 if not known. */
struct symbol_frame {
	struct str name; /* for the linker: not demangled */
	struct str file;
	int64_t line, column, start_line;
};

struct symbolizer_params {
	enum symbol_detail detail;
	bool leave_unknown;	 /* in full: no frame at all where nothing is known */
	bool nm_is_llvm;	 /* for names: list symbols as llvm-nm does, not as GNU nm */
	const char *binary_path; /* $PPROF_BINARY_PATH, where debug files may be too; or NULL */
};

/* Names addresses of one binary. For one thread at a time. */
struct symbolizer;
/* NULL if the file cannot be read. A file without any symbols opens, and names nothing. */
struct symbolizer *symbolizer_open(const char *path, const struct symbolizer_params *params,
				   struct err *e);
void symbolizer_close(struct symbolizer *s);
/* The file it was opened for, for object_address. */
const struct object *symbolizer_object(const struct symbolizer *s);
/* The frames at an address of the binary itself (see object_address), innermost inlined call
 * first, the function last. Returns how many there are. The frames stay until the next call, their
 * strings until symbolizer_close. With SYMBOL_FULL there is always one, perhaps with nothing in it,
 * unless leave_unknown is set.
 */
size_t symbolizer_find(struct symbolizer *s, uint64_t address, const struct symbol_frame **frames);
/* Appends where the symbols come from or, if there are none, where they were looked for, in words:
 * "symbols from x", "it is stripped, and there is no debug file: looked for x y z". */
void symbolizer_explain(const struct symbolizer *s, struct buf *out);

/* Which programs does pprof find here, and what would it show? (tools.c) */
struct symbol_tools {
	const char *option; /* -tools, or "" */
	const char *path;   /* $PATH */
};
/* Symbols read so look as they would there; without any tool they are read in full. */
struct symbolizer_params symbol_tools_choose(const struct symbol_tools *t, bool only_names);
/* Are instructions shown as GNU objdump spells them? No if llvm-objdump is there, or none. */
bool symbol_tools_objdump_is_gnu(const struct symbol_tools *t);

/* ---- naming a profile (local.c) */

struct symbolize_params {
	struct symbolizer_params symbolizer;
	bool force; /* mappings that have names too */
	int threads;
	/* If not NULL, one for each mapping: gets why names may be missing, and how to fix it. */
	const char **reasons;
};

/* Names the locations of a profile by the files that its mappings name. New functions come after
 * those there are. `warnings` gets pprof's lines about files that cannot be used. */
void profile_symbolize(struct arena *a, struct profile *p, const struct symbolize_params *params,
		       struct buf *warnings);

/* Gives a location these frames; see profile.h. */
void profile_names_put(struct profile_names *names, uint32_t location,
		       const struct symbol_frame *frames, size_t n);

/* A line for each mapping that has locations without a name, and a reason. */
void profile_explain_names(const struct profile *p, const char *const *reasons, struct buf *out);

/* ---- symbols (symlist.c) */

struct symbol {
	uint64_t address, size;
	struct str name;  /* as it stands in the file: mangled */
	bool is_function; /* by its type */
	bool has_place;	  /* it names a place in a section that is loaded */
	uint8_t rank;	  /* of those at one address, objdump shows the one of the lowest rank */
};

struct symbol_list {
	struct symbol *at; /* what `nm -n` lists with an address, in its order: address, name */
	size_t n;
	struct symbol *stubs; /* of functions in other objects: "free@plt" */
	size_t nstubs;
};

/* An object without symbols has none of both. Names may be views of the object. */
void symbol_list_read(struct arena *a, const struct object *o, struct symbol_list *t);

/* ---- instructions (disassemble.c) */

struct instruction {
	uint64_t address;
	uint32_t size;
	struct str text; /* mnemonic, tab, operands: "callq\t0x4010b0 <calloc@plt>" */
};

struct asm_style {
	bool is_gnu; /* GNU objdump's text, not llvm-objdump's: "call   4010b0 <calloc@plt>" */
	bool is_intel;
};

struct instructions {
	struct instruction *at;
	size_t n;
};

/* Texts are those of llvm-objdump or GNU objdump as far as that is cheap. The object and its
 * symbols must outlive the disassembler. NULL if instructions of that machine are not known. */
struct disassembler;
struct disassembler *disassembler_new(const struct object *o, const struct symbol_list *t,
				      struct asm_style style, struct err *e);
void disassembler_free(struct disassembler *d);
/* The instructions that begin in [start, end), addresses as linked, into `a`. In GNU's style none
 * reaches over the end, and zeros are left out. */
void disassemble(struct disassembler *d, struct arena *a, uint64_t start, uint64_t end,
		 struct instructions *out);
/* The readable name of the function whose symbol covers the address, or "". Lives as long as the
 * disassembler. */
struct str disassembler_function(struct disassembler *d, uint64_t address);

/* ---- stacks without frame pointers (unwind.c, cfi.c, expression.c) */

enum unwind_machine { UNWIND_X86_64, UNWIND_AARCH64 };
#define UNWIND_REGISTERS 33

/* A call that is under way. Registers are numbered as DWARF does it. */
struct unwind_frame {
	uint64_t registers[UNWIND_REGISTERS];
	uint64_t pc;
	bool is_return; /* pc is where a call returns to; the call stands before it */
};

/* The part of a thread's stack that was saved. */
struct unwind_stack {
	uint64_t start;
	struct str bytes;
};

/* The call frame information of one file. For one thread at a time. */
struct unwind_table;
/* NULL if the file cannot be read, is for another machine, is of another build than `build_id` (in
 * hex; "" if not known), or has no call frame information. */
struct unwind_table *unwind_open(const char *path, struct str build_id,
				 enum unwind_machine machine);
void unwind_close(struct unwind_table *t);
/* Goes from a frame, whose pc is at `offset` in the file, to its caller's. False at the outermost
 * frame and wherever the way is lost. */
bool unwind_step(struct unwind_table *t, uint64_t offset, struct unwind_frame *f,
		 const struct unwind_stack *stack);
/* The same by the frame pointer, for code of which nothing is known. The caller has to check that
 * the new pc is one. */
bool unwind_step_frame_pointer(enum unwind_machine machine, struct unwind_frame *f,
			       const struct unwind_stack *stack);
/* DWARF's number of the stack pointer. */
uint32_t unwind_stack_pointer(enum unwind_machine machine);

/* ---- finding the binaries of a profile (locate.c) */

struct locate_params {
	const char *binary_path; /* $PPROF_BINARY_PATH, or "" */
	const char *home;	 /* $HOME, or "" */
	const char *exec_name;	 /* replaces the first mapping's file; "" if not given */
	const char *build_id;	 /* the first mapping's, if it has none; "" if not given */
};

/* Gives the profile a mappings table whose files are those found on this machine. A profile without
 * mappings gets one that holds all its locations. `warnings` gets a line per file of another build.
 */
void profile_locate_binaries(struct arena *a, struct profile *p, const struct locate_params *params,
			     struct buf *warnings);

/* ---- source files (source.c) */

/* The name without the build machine's part: a view of `path`. Both lists are ':'-separated; ""
 * if not given. */
struct str source_trim(struct str path, const char *trim_path, const char *source_path);

struct source_params {
	const char *trim_path;
	const char *source_path; /* where to look; not empty (the current directory by default) */
	/* For others than who started kiln: only regular files, none of the system's own, and what
	 * a relative name finds lies below the directory it is looked for in, whatever links say.
	 */
	bool is_confined;
	/* For others than who may read files here, if not NULL: a list as source_path, which takes
	 * its place and that of trim_path. Nothing is read but regular files below its directories,
	 * whatever names and links say. FROM=DIR is for names that begin with FROM. */
	const char *beneath;
	size_t max_bytes; /* of a file that is read; 0: 64 MB */
};

/* The lines of a source file without their line ends; lines[0] is line 1. Of a file that is not a
 * regular one there are none, and a line of 64 KB or more ends the file. */
struct source_file {
	struct str *lines;
	size_t nlines;
};
/* Is it one for source_params.beneath? ERR_USAGE. */
bool source_beneath_check(const char *list, struct err *e);
/* Reads into `a`. Fails with ERR_NOTFOUND if there is no such file. */
bool source_read(struct arena *a, struct source_file *f, struct str path,
		 const struct source_params *params, struct err *e);

#endif
