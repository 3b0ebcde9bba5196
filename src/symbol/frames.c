#include "symbol/symbol.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/strings.h"
#include "base/vec.h"
#include "symbol/debugfile.h"
#include "symbol/debuginfo.h"
#include "symbol/gotable.h"
#include "symbol/symtab.h"

struct symbolizer {
	struct arena arena;
	struct symbolizer_params params;
	struct object object;
	struct object debug_file; /* has the debug information, if the object has not */
	bool has_debug_file;
	struct buf tried;	  /* files that were looked for */
	struct debug_info *debug; /* NULL if there is none */
	struct symtab symbols;	  /* in the manner of the tool that `detail` follows */
	struct symtab listed;	  /* nm's, for SYMBOL_PLAIN */
	struct elf debug_data;	  /* .gnu_debugdata, unpacked */
	struct symtab more;	  /* symbols that were stripped from the object */
	struct go_table go;	  /* for programs without debug information */
	bool has_go;
	struct strings unlined; /* file names without a line */
	vec(struct symbol_frame) frames;
};

static void read_symbols(struct symbolizer *s, const struct elf *f)
{
	enum symtab_manner nm = s->params.nm_is_llvm ? SYMTAB_LLVM_NM : SYMTAB_NM;

	switch (s->params.detail) {
	case SYMBOL_FULL:
		symtab_read(&s->arena, &s->symbols, f, SYMTAB_SYMBOLIZER);
		break;
	case SYMBOL_PLAIN:
		symtab_read(&s->arena, &s->symbols, f, SYMTAB_ADDR2LINE);
		symtab_read(&s->arena, &s->listed, f, nm);
		break;
	case SYMBOL_NAMES:
		symtab_read(&s->arena, &s->symbols, f, nm);
		break;
	case SYMBOL_INNER:
		symtab_read(&s->arena, &s->symbols, f, SYMTAB_ADDR2LINE);
		break;
	}
}

static struct debug_info *read_debug_info(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct debug_info *d;

	if (fd < 0)
		return NULL;
	d = debug_info_open(fd);
	close(fd);
	return d;
}

/* What was stripped from the file is somewhere else. */
static void find_debug_info(struct symbolizer *s)
{
	const char *binary_path = s->params.binary_path ? s->params.binary_path : "";

	s->debug = read_debug_info(s->object.path);
	if (s->debug)
		return;
	s->has_debug_file = debug_file_open(&s->debug_file, &s->object, binary_path, &s->tried);
	if (s->has_debug_file) {
		s->debug = read_debug_info(s->debug_file.path);
		if (!s->debug)
			symtab_read(&s->arena, &s->more, s->debug_file.elf, s->symbols.manner);
	} else if (go_table_read(&s->go, s->object.elf)) {
		s->has_go = true;
	} else if (debug_data_read(&s->arena, &s->debug_data, s->object.elf)) {
		symtab_read(&s->arena, &s->more, &s->debug_data, s->symbols.manner);
	}
}

struct symbolizer *symbolizer_open(const char *path, const struct symbolizer_params *params,
				   struct err *e)
{
	struct symbolizer *s = xcalloc(1, sizeof(*s));

	s->params = *params;
	strings_init(&s->unlined);
	if (!object_open(&s->object, path, e)) {
		symbolizer_close(s);
		return NULL;
	}
	if (s->object.kind == OBJECT_ELF) {
		read_symbols(s, s->object.elf);
		if (params->detail != SYMBOL_NAMES)
			find_debug_info(s);
	}
	return s;
}

void symbolizer_close(struct symbolizer *s)
{
	if (!s)
		return;
	debug_info_close(s->debug);
	object_close(&s->object);
	object_close(&s->debug_file);
	buf_release(&s->tried);
	vec_release(&s->frames);
	strings_release(&s->unlined);
	arena_release(&s->arena);
	free(s);
}

const struct object *symbolizer_object(const struct symbolizer *s)
{
	return &s->object;
}

/* FILE:? or ??:?. Kept once: there are few of them. */
static struct str question_mark(struct symbolizer *s, struct str file)
{
	struct buf text = { 0 };
	uint32_t at;

	buf_str(&text, file.n ? file : STR("??"));
	buf_puts(&text, ":?");
	at = strings_add(&s->unlined, buf_view(&text));
	buf_release(&text);
	return s->unlined.at[at];
}

static void add_go_frames(struct symbolizer *s, uint64_t address)
{
	struct symbol_frame frames[GO_FRAMES_MAX];
	size_t n = s->has_go ? go_table_find(&s->go, address, frames) : 0;

	for (size_t i = 0; i < n; i++) {
		if (s->params.detail != SYMBOL_FULL)
			frames[i].start_line = 0;
		vec_push(&s->frames, frames[i]);
	}
}

static void add_frames_as_symbolizer(struct symbolizer *s, uint64_t address)
{
	const struct debug_frame *found;
	size_t n = s->debug ? debug_info_find(s->debug, address, &found) : 0;

	for (size_t i = 0; i < n; i++) {
		struct symbol_frame frame = { .name = found[i].linkage_name,
					      .file = found[i].file,
					      .line = found[i].line,
					      .column = found[i].column,
					      .start_line = found[i].start_line };

		if (!frame.name.n)
			frame.name = found[i].name;
		vec_push(&s->frames, frame);
	}
}

/* The symbol table names the function, which debug information does not tell from its clones. */
static void name_as_symbolizer(struct symbolizer *s, uint64_t address)
{
	struct symbol_frame *outer;
	struct str name, file;

	if (s->frames.n == 0)
		vec_push(&s->frames, ((struct symbol_frame){ .name = STR(""), .file = STR("") }));
	outer = &s->frames.at[s->frames.n - 1];
	if (!symtab_find(&s->symbols, address, &name, &file) &&
	    (outer->name.n || !symtab_find(&s->more, address, &name, &file)))
		return;
	outer->name = name;
	if (!outer->file.n)
		outer->file = file;
}

/* Does the symbol table name the innermost frame? Yes, unless debug information knows what the
 * linker calls it. But binutils look only once: objdump, which goes on from one instruction to the
 * next, takes an inlined call's own name from the second one on. */
static bool is_named_by_symbol(const struct symbolizer *s, const struct debug_frame *found,
			       size_t n)
{
	if (found->is_c && found->name.n)
		return false;
	return s->params.detail != SYMBOL_INNER || n == 1 || !found->is_again;
}

/* Where the line is not known addr2line prints a question mark. */
static void add_frames_as_addr2line(struct symbolizer *s, uint64_t address)
{
	const struct debug_frame *found = NULL;
	size_t n = s->debug ? debug_info_find(s->debug, address, &found) : 0;
	struct str name, file;
	bool has_symbol = symtab_find(&s->symbols, address, &name, &file) ||
			  (n == 0 && symtab_find(&s->more, address, &name, &file));

	for (size_t i = 0; i < n; i++) {
		struct symbol_frame frame = { .name = found[i].linkage_name,
					      .file = found[i].file,
					      .line = found[i].line };

		if (!frame.name.n)
			frame.name = i == 0 && has_symbol && is_named_by_symbol(s, found, n)
					     ? name
					     : found[i].name;
		vec_push(&s->frames, frame);
	}
	if (n == 0 && has_symbol)
		vec_push(&s->frames, ((struct symbol_frame){ .name = name, .file = file }));
	for (size_t i = 0; i < s->frames.n; i++)
		if (s->frames.at[i].line == 0)
			s->frames.at[i].file = question_mark(s, s->frames.at[i].file);
}

/* pprof's own rule: nm may know more of the name. */
static void name_as_nm(struct symbolizer *s, uint64_t address)
{
	struct str name, file;
	struct symbol_frame *outer;

	if (!symtab_find(&s->listed, address, &name, &file))
		return;
	if (s->frames.n == 0)
		vec_push(&s->frames, ((struct symbol_frame){ .name = STR(""), .file = STR("") }));
	outer = &s->frames.at[s->frames.n - 1];
	if (name.n > outer->name.n + 1)
		outer->name = name;
}

static bool is_empty(const struct symbol_frame *f)
{
	return !f->name.n && !f->file.n && !f->line;
}

size_t symbolizer_find(struct symbolizer *s, uint64_t address, const struct symbol_frame **frames)
{
	struct str name, file;

	s->frames.n = 0;
	if (s->object.kind != OBJECT_ELF)
		return 0;
	if (s->params.detail != SYMBOL_NAMES)
		add_go_frames(s, address);
	if (s->frames.n) {
		*frames = s->frames.at;
		return s->frames.n;
	}
	switch (s->params.detail) {
	case SYMBOL_FULL:
		add_frames_as_symbolizer(s, address);
		name_as_symbolizer(s, address);
		if (s->params.leave_unknown && is_empty(&s->frames.at[0]))
			s->frames.n = 0;
		break;
	case SYMBOL_PLAIN:
		add_frames_as_addr2line(s, address);
		name_as_nm(s, address);
		break;
	case SYMBOL_INNER:
		add_frames_as_addr2line(s, address);
		break;
	case SYMBOL_NAMES:
		if (symtab_find(&s->symbols, address, &name, &file))
			vec_push(&s->frames,
				 ((struct symbol_frame){ .name = name, .file = STR("") }));
		break;
	}
	*frames = s->frames.at;
	return s->frames.n;
}

void symbolizer_explain(const struct symbolizer *s, struct buf *out)
{
	if (s->object.kind != OBJECT_ELF) {
		buf_puts(out, "it is no ELF file");
	} else if (s->has_debug_file) {
		buf_printf(out, "symbols from %s", s->debug_file.path);
	} else if (s->debug || s->has_go || s->params.detail == SYMBOL_NAMES) {
		buf_puts(out, "its symbols do not cover them");
	} else {
		buf_puts(out, "it is stripped, and there is no debug file: looked for");
		buf_str(out,
			s->tried.n ? buf_view(&s->tried) : STR(" none, as it has no build id"));
	}
}
