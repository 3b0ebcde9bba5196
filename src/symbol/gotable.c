#include "symbol/gotable.h"

#define PCDATA_INLINE_INDEX 2
#define FUNCDATA_INLINE_TREE 3
/* How often the table may be decoded as a whole, in bytes that are read. */
#define WORK_PER_BYTE 64

/* A number of the table; false if it lies outside. */
static bool get(const struct go_table *t, uint64_t at, unsigned bytes, uint64_t *out)
{
	if (!elf_has(t->bytes, at, bytes))
		return false;
	*out = elf_field(t->f, t->bytes.p + at, bytes);
	return true;
}

static struct str text_at(const struct go_table *t, uint64_t at)
{
	const char *end = at < t->bytes.n ? memchr(t->bytes.p + at, '\0', t->bytes.n - at) : NULL;

	return end ? (struct str){ t->bytes.p + at, (size_t)(end - t->bytes.p) - at } : STR("");
}

/* The bytes of the file that are loaded at an address. */
static struct str loaded_at(const struct elf *f, uint64_t address, size_t n)
{
	for (size_t i = 0; i < f->nsegments; i++) {
		const struct segment *s = &f->segments[i];

		if (s->type == PT_LOAD && address >= s->vaddr && address - s->vaddr < s->filesz &&
		    n <= s->filesz - (address - s->vaddr) &&
		    elf_has(f->bytes, s->offset + (address - s->vaddr), n))
			return (struct str){ f->bytes.p + s->offset + (address - s->vaddr), n };
	}
	return (struct str){ 0 };
}

/* A word of runtime.moduledata, which starts with the address of the table. */
static uint64_t module_word(const struct go_table *t, uint64_t table_address, size_t word)
{
	static const char *const sections[] = { ".go.module", ".noptrdata", ".data",
						".data.rel.ro" };
	size_t step = t->pointer_bytes;

	for (size_t i = 0; i < sizeof(sections) / sizeof(*sections); i++) {
		struct str data = elf_bytes(t->f, elf_section(t->f, str_of(sections[i])));

		for (size_t at = 0; at + (word + 1) * step <= data.n; at += step)
			if (elf_field(t->f, data.p + at, step) == table_address)
				return elf_field(t->f, data.p + at + word * step, step);
	}
	return 0;
}

static bool read_header(struct go_table *t, uint64_t table_address)
{
	size_t p = t->pointer_bytes, at = 8;
	bool has_text = t->layout >= GO_1_18;

	if (t->layout == GO_1_2) {
		t->functions = at + p;
		return get(t, at, (unsigned)p, &t->nfunctions);
	}
	if (!get(t, at, (unsigned)p, &t->nfunctions) ||
	    (has_text && !get(t, at + 2 * p, (unsigned)p, &t->text_start)))
		return false;
	at += (2 + has_text) * p;
	if (!get(t, at, (unsigned)p, &t->names) || !get(t, at + p, (unsigned)p, &t->units) ||
	    !get(t, at + 2 * p, (unsigned)p, &t->files) ||
	    !get(t, at + 3 * p, (unsigned)p, &t->values) ||
	    !get(t, at + 4 * p, (unsigned)p, &t->functions))
		return false;
	if (has_text)
		t->inline_trees = module_word(t, table_address, t->layout == GO_1_18 ? 38 : 40);
	return true;
}

static size_t entry_bytes(const struct go_table *t)
{
	return t->layout >= GO_1_18 ? 4 : t->pointer_bytes;
}

bool go_table_read(struct go_table *t, const struct elf *f)
{
	static const struct {
		uint32_t magic;
		enum go_layout layout;
	} layouts[] = {
		{ 0xfffffffb, GO_1_2 },
		{ 0xfffffffa, GO_1_16 },
		{ 0xfffffff0, GO_1_18 },
		{ 0xfffffff1, GO_1_20 },
	};
	const struct section *s = elf_section(f, STR(".gopclntab")), *text;
	uint64_t magic, unit, pointer;
	bool is_known = false;

	if (!s)
		s = elf_section(f, STR(".data.rel.ro.gopclntab"));
	*t = (struct go_table){ .f = f, .bytes = elf_bytes(f, s) };
	t->work_left = t->bytes.n * WORK_PER_BYTE;
	if (!get(t, 0, 4, &magic) || !get(t, 6, 1, &unit) || !get(t, 7, 1, &pointer) ||
	    (pointer != 4 && pointer != 8))
		return false;
	t->pc_unit = (unsigned)unit;
	t->pointer_bytes = (unsigned)pointer;
	for (size_t i = 0; i < sizeof(layouts) / sizeof(*layouts); i++) {
		if (magic == layouts[i].magic) {
			t->layout = layouts[i].layout;
			is_known = true;
		}
	}
	if (!is_known || !read_header(t, s->addr) || t->functions > t->bytes.n ||
	    t->nfunctions > (t->bytes.n - t->functions) / (2 * entry_bytes(t)))
		return false;
	/* In a program that can be loaded anywhere it is for the loader to fill in. */
	text = elf_section(f, STR(".text"));
	if (t->layout >= GO_1_18 && !t->text_start && text)
		t->text_start = text->addr;
	return t->nfunctions != 0;
}

static uint64_t entry_of(const struct go_table *t, uint64_t function)
{
	uint64_t pc = 0;

	get(t, t->functions + function * 2 * entry_bytes(t), (unsigned)entry_bytes(t), &pc);
	return pc + t->text_start;
}

/* A function's record, and its fields as they are called in Go's source. */
struct go_function {
	uint64_t entry, end, record;
	uint64_t name, pcfile, pcln, npcdata, unit, start_line;
	uint64_t pcdata; /* where the offsets of its other tables are */
	uint64_t nfuncdata;
};

static bool read_function(const struct go_table *t, uint64_t index, struct go_function *g)
{
	size_t n = entry_bytes(t);
	uint64_t at, start = t->functions + index * 2 * n;

	*g = (struct go_function){ .entry = entry_of(t, index), .end = entry_of(t, index + 1) };
	if (!get(t, start + n, (unsigned)n, &g->record))
		return false;
	if (t->layout != GO_1_2)
		g->record += t->functions;
	at = g->record + (t->layout >= GO_1_18 ? 4 : t->pointer_bytes);
	if (g->record > t->bytes.n || !get(t, at, 4, &g->name) || !get(t, at + 16, 4, &g->pcfile) ||
	    !get(t, at + 20, 4, &g->pcln) || !get(t, at + 24, 4, &g->npcdata))
		return false;
	at += 28;
	if (t->layout >= GO_1_16) {
		get(t, at, 4, &g->unit);
		at += 4;
	}
	if (t->layout >= GO_1_20) {
		get(t, at, 4, &g->start_line);
		at += 4;
	}
	get(t, at + 3, 1, &g->nfuncdata);
	g->pcdata = at + 4;
	return true;
}

static bool find_function(const struct go_table *t, uint64_t address, struct go_function *g)
{
	uint64_t low = 0, high = t->nfunctions;

	if (address < entry_of(t, 0) || address >= entry_of(t, t->nfunctions))
		return false;
	while (high - low > 1) {
		uint64_t middle = low + (high - low) / 2;

		if (entry_of(t, middle) <= address)
			low = middle;
		else
			high = middle;
	}
	return read_function(t, low, g);
}

static bool take_varint(const struct go_table *t, uint64_t *at, uint32_t *out)
{
	uint64_t byte;

	*out = 0;
	for (unsigned shift = 0; shift < 32 && get(t, *at, 1, &byte); shift += 7) {
		++*at;
		*out |= (uint32_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

/* The value at an address, of a table of steps (value, address) at `offset`; -1 if there is none.
 */
static int32_t value_at(struct go_table *t, const struct go_function *g, uint64_t offset,
			uint64_t address)
{
	uint64_t at = t->values + offset, start = at, pc = g->entry;
	uint32_t step, bytes;
	int32_t value = -1;

	/* Offset 0 is that of no table. */
	while (offset && at - start < t->work_left && take_varint(t, &at, &step) &&
	       (step || pc == g->entry) && take_varint(t, &at, &bytes) && bytes) {
		step = step & 1 ? ~(step >> 1) : step >> 1;
		value = (int32_t)((uint32_t)value + step);
		pc += (uint64_t)bytes * t->pc_unit;
		if (address < pc) {
			t->work_left -= at - start;
			return value;
		}
	}
	t->work_left -= at - start < t->work_left ? at - start : t->work_left;
	return -1;
}

static struct str file_name(const struct go_table *t, const struct go_function *g, int32_t number)
{
	uint64_t at;

	if (number < 0)
		return STR("");
	if (t->layout == GO_1_2) {
		uint64_t files = 0;

		/* Behind the functions and the end of the last one. */
		get(t, t->functions + (2 * t->nfunctions + 1) * t->pointer_bytes, 4, &files);
		return get(t, files + 4 * (uint64_t)number, 4, &at) ? text_at(t, at) : STR("");
	}
	if (!get(t, t->units + 4 * (g->unit + (uint64_t)number), 4, &at) || at == UINT32_MAX)
		return STR("");
	return text_at(t, t->files + at);
}

/* An entry of the function's tree of inlined calls. */
struct go_call {
	uint64_t name, start_line, caller_pc;
};

static bool read_call(const struct go_table *t, const struct go_function *g, int32_t index,
		      struct go_call *out)
{
	bool is_new = t->layout == GO_1_20;
	size_t bytes = is_new ? 16 : 20;
	uint64_t at = g->pcdata + 4 * g->npcdata, tree;
	unsigned p = t->layout >= GO_1_18 ? 4 : t->pointer_bytes;
	struct str call;

	if (g->nfuncdata <= FUNCDATA_INLINE_TREE)
		return false;
	if (t->layout < GO_1_18)
		at = (at + p - 1) & ~(uint64_t)(p - 1);
	if (!get(t, at + p * FUNCDATA_INLINE_TREE, p, &tree))
		return false;
	if (t->layout >= GO_1_18 && (tree == UINT32_MAX || !t->inline_trees))
		return false;
	tree += t->inline_trees + (uint64_t)index * bytes;
	call = loaded_at(t->f, tree, bytes);
	if (!call.n)
		return false;
	*out = (struct go_call){
		.name = elf_field(t->f, call.p + (is_new ? 4 : 12), 4),
		.caller_pc = elf_field(t->f, call.p + (is_new ? 8 : 16), 4),
		.start_line = is_new ? elf_field(t->f, call.p + 12, 4) : 0,
	};
	return true;
}

static int32_t inline_index(struct go_table *t, const struct go_function *g, uint64_t address)
{
	uint64_t offset;

	if (t->layout == GO_1_2 || g->npcdata <= PCDATA_INLINE_INDEX ||
	    !get(t, g->pcdata + 4 * PCDATA_INLINE_INDEX, 4, &offset))
		return -1;
	return value_at(t, g, offset, address);
}

size_t go_table_find(struct go_table *t, uint64_t address, struct symbol_frame *frames)
{
	struct go_function g;
	struct go_call call;
	size_t n = 0;

	if (!find_function(t, address, &g))
		return 0;
	for (bool is_inlined = true; is_inlined; n++) {
		int32_t line = value_at(t, &g, g.pcln, address);
		int32_t index = inline_index(t, &g, address);

		is_inlined = n + 1 < GO_FRAMES_MAX && index >= 0 &&
			     read_call(t, &g, index, &call) && call.caller_pc < g.end - g.entry;
		frames[n] = (struct symbol_frame){
			.name = text_at(t, t->names + (is_inlined ? call.name : g.name)),
			.file = file_name(t, &g, value_at(t, &g, g.pcfile, address)),
			.line = line > 0 ? line : 0,
			.start_line = (int32_t)(is_inlined ? call.start_line : g.start_line),
		};
		if (is_inlined)
			address = g.entry + call.caller_pc;
	}
	return n;
}
