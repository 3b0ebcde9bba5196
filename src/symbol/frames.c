#include "symbol/symbol.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/vec.h"
#include "symbol/debuginfo.h"
#include "symbol/symtab.h"

struct symbolizer {
	struct arena arena;
	struct symbolizer_params params;
	struct object object;
	struct debug_info *debug; /* NULL if there is none */
	struct symtab symbols;	  /* in the manner of the tool that `detail` follows */
	struct symtab listed;	  /* nm's, for SYMBOL_PLAIN */
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
	}
}

static void read_debug_info(struct symbolizer *s, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	if (fd < 0)
		return;
	s->debug = debug_info_open(fd);
	close(fd);
}

struct symbolizer *symbolizer_open(const char *path, const struct symbolizer_params *params,
				   struct err *e)
{
	struct symbolizer *s = xcalloc(1, sizeof(*s));

	s->params = *params;
	if (!object_open(&s->object, path, e)) {
		free(s);
		return NULL;
	}
	if (s->object.kind == OBJECT_ELF) {
		read_symbols(s, s->object.elf);
		if (params->detail != SYMBOL_NAMES)
			read_debug_info(s, path);
	}
	return s;
}

void symbolizer_close(struct symbolizer *s)
{
	if (!s)
		return;
	debug_info_close(s->debug);
	object_close(&s->object);
	vec_release(&s->frames);
	arena_release(&s->arena);
	free(s);
}

static void add_debug_frames(struct symbolizer *s, uint64_t address)
{
	const struct debug_frame *found;
	size_t n = s->debug ? debug_info_find(s->debug, address, &found) : 0;

	for (size_t i = 0; i < n; i++) {
		struct symbol_frame frame = { .file = found[i].file, .line = found[i].line };

		frame.name = found[i].linkage_name.n ? found[i].linkage_name : found[i].name;
		if (s->params.detail == SYMBOL_FULL) {
			frame.column = found[i].column;
			frame.start_line = found[i].start_line;
		}
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
	if (!symtab_find(&s->symbols, address, &name, &file))
		return;
	outer->name = name;
	if (!outer->file.n)
		outer->file = file;
}

static void name_as_addr2line(struct symbolizer *s, uint64_t address)
{
	struct symbol_frame *outer = s->frames.n ? &s->frames.at[s->frames.n - 1] : NULL;
	struct str name, file;

	if (symtab_find(&s->symbols, address, &name, &file)) {
		if (!outer) {
			vec_push(&s->frames,
				 ((struct symbol_frame){ .name = STR(""), .file = file }));
			outer = &s->frames.at[0];
		}
		if (s->frames.n == 1)
			outer->name = name;
	}
	/* pprof's own rule: nm knows more of the name. */
	if (outer && symtab_find(&s->listed, address, &name, &file) && name.n > outer->name.n + 1)
		outer->name = name;
}

size_t symbolizer_find(struct symbolizer *s, uint64_t address, const struct symbol_frame **frames)
{
	struct str name, file;

	s->frames.n = 0;
	switch (s->params.detail) {
	case SYMBOL_FULL:
		add_debug_frames(s, address);
		name_as_symbolizer(s, address);
		break;
	case SYMBOL_PLAIN:
		add_debug_frames(s, address);
		name_as_addr2line(s, address);
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
