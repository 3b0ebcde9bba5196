/* Tables as the Go linker writes them, made here for each layout. */
#include "test.h"

#include "base/buf.h"
#include "symbol/gotable.h"

#define TEXT 0x401000
#define DATA 0x500000
#define TABLE 0x600000
#define TREES (DATA + 0x100)

/* One program: main.f, of 64 bytes, calls main.g at byte 16, which is inlined up to byte 32. */
struct program {
	struct buf table, data;
	struct elf f;
	struct section sections[4];
	struct segment segment;
};

static void put(struct buf *b, uint64_t v, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		buf_char(b, (char)(v >> 8 * i));
}

static void set(struct buf *b, size_t at, uint64_t v, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		b->p[at + i] = (char)(v >> 8 * i);
}

static void align(struct buf *b, size_t to)
{
	while (b->n % to)
		buf_char(b, '\0');
}

/* Steps of value and address; a value's first step starts from -1. Returns the table's offset. */
static uint32_t put_steps(struct buf *b, size_t base, const int (*steps)[2], size_t n)
{
	size_t at = b->n;

	for (size_t i = 0; i < n; i++) {
		int v = steps[i][0];

		buf_char(b, (char)(v < 0 ? (-v << 1) - 1 : v << 1));
		buf_char(b, (char)steps[i][1]);
	}
	buf_char(b, '\0');
	return (uint32_t)(at - base);
}

static const char names[] = "\0main.f\0main.g";
static const char files[] = "\0/src/f.go\0/src/g.go";
/* line 10, then 30 in main.g, then 12 */
static const int lines[][2] = { { 11, 16 }, { 20, 16 }, { -18, 32 } };
/* file 0, then 1 in main.g, then 0 */
static const int places[][2] = { { 1, 16 }, { 1, 16 }, { -1, 32 } };
/* not inlined, the first inlined call, not inlined */
static const int inlined[][2] = { { 0, 16 }, { 1, 16 }, { -1, 32 } };

struct offsets {
	uint32_t names, files, lines, places, inlined;
};

static void put_record(struct buf *t, enum go_layout layout, const struct offsets *o)
{
	bool is_old = layout < GO_1_18;

	put(t, is_old ? TEXT : 0, is_old ? 8 : 4); /* entry */
	put(t, o->names + 1, 4);
	buf_fill(t, '\0', 12); /* args, deferreturn, pcsp */
	put(t, o->places, 4);
	put(t, o->lines, 4);
	put(t, 3, 4); /* npcdata */
	if (layout >= GO_1_16)
		put(t, 0, 4); /* unit */
	if (layout >= GO_1_20)
		put(t, 9, 4); /* start line */
	put(t, 4 << 24, 4);   /* nfuncdata */
	put(t, 0, 8);
	put(t, o->inlined, 4);
	if (is_old)
		align(t, 8);
	for (int i = 0; i < 3; i++)
		put(t, is_old ? 0 : UINT32_MAX, is_old ? 8 : 4);
	put(t, is_old ? TREES : 0, is_old ? 8 : 4);
}

static void put_functions(struct buf *t, enum go_layout layout, const struct offsets *o)
{
	size_t word = layout < GO_1_18 ? 8 : 4, start = t->n, record;
	uint64_t text = layout < GO_1_18 ? TEXT : 0;

	put(t, text, word);
	put(t, 0, word);
	put(t, text + 64, word);
	if (layout == GO_1_2)
		put(t, 0, 4); /* files */
	align(t, 8);
	record = t->n;
	set(t, start + word, layout == GO_1_2 ? record : record - start, word);
	put_record(t, layout, o);
}

/* Since 1.16 each part has a place of its own. */
static void make_table(struct buf *t, enum go_layout layout)
{
	static const uint32_t magics[] = { 0xfffffffb, 0xfffffffa, 0xfffffff0, 0xfffffff1 };
	struct offsets o = { 0 };
	size_t parts, values;

	put(t, magics[layout], 4);
	put(t, 0x08010000, 4); /* addresses in bytes, pointers of 8 */
	put(t, 1, 8);	       /* functions */
	put(t, 2, 8);	       /* files */
	if (layout >= GO_1_18)
		put(t, TEXT, 8);
	parts = t->n;
	buf_fill(t, '\0', 5 * 8);
	set(t, parts, t->n, 8);
	buf_add(t, names, sizeof(names));
	align(t, 4);
	set(t, parts + 8, t->n, 8);
	put(t, 1, 4); /* the unit's files */
	put(t, 11, 4);
	set(t, parts + 16, t->n, 8);
	buf_add(t, files, sizeof(files));
	set(t, parts + 24, t->n, 8);
	values = t->n;
	buf_char(t, '\0');
	o.lines = put_steps(t, values, lines, 3);
	o.places = put_steps(t, values, places, 3);
	o.inlined = put_steps(t, values, inlined, 3);
	align(t, 8);
	set(t, parts + 32, t->n, 8);
	put_functions(t, layout, &o);
}

static void make_table_1_2(struct buf *t)
{
	struct offsets o = { 0 };
	struct buf head = { 0 };
	size_t start, list;

	put(t, 0xfffffffb, 4);
	put(t, 0x08010000, 4);
	put(t, 1, 8);
	start = t->n;
	/* The functions come first here, and what they name behind them: measured, then written. */
	put_functions(&head, GO_1_2, &o);
	o.names = (uint32_t)(start + head.n + 64);
	o.lines = o.names + sizeof(names);
	head.n = 0;
	buf_fill(&head, '\0', o.lines);
	put_steps(&head, 0, lines, 3);
	o.places = put_steps(&head, 0, places, 3);
	put_functions(t, GO_1_2, &o);
	buf_fill(t, '\0', o.names - t->n);
	buf_add(t, names, sizeof(names));
	put_steps(t, 0, lines, 3);
	put_steps(t, 0, places, 3);
	align(t, 4);
	list = t->n;
	put(t, list + 8, 4); /* file 0 */
	put(t, list + 8 + 10, 4);
	buf_add(t, files + 1, sizeof(files) - 1);
	set(t, start + 3 * 8, list, 4);
	buf_release(&head);
}

static void make_data(struct buf *d, enum go_layout layout)
{
	put(d, TABLE, 8); /* runtime.moduledata */
	buf_fill(d, '\0', 0x200);
	if (layout >= GO_1_18)
		set(d, (layout == GO_1_18 ? 38 : 40) * 8, TREES, 8);
	/* Overlaps what follows moduledata's word only in layouts that have none there. */
	if (layout == GO_1_20) {
		set(d, 0x100 + 4, 8, 4);   /* name */
		set(d, 0x100 + 8, 15, 4);  /* caller's address */
		set(d, 0x100 + 12, 29, 4); /* start line */
	} else {
		set(d, 0x100 + 12, 8, 4);
		set(d, 0x100 + 16, 15, 4);
	}
}

static void make(struct program *p, enum go_layout layout)
{
	struct buf file = { 0 };

	*p = (struct program){ 0 };
	make_data(&p->data, layout);
	if (layout == GO_1_2)
		make_table_1_2(&p->table);
	else
		make_table(&p->table, layout);
	buf_str(&file, buf_view(&p->data));
	buf_str(&file, buf_view(&p->table));
	p->sections[1] = (struct section){ .name = STR(".noptrdata"), .type = SHT_PROGBITS };
	p->sections[1].size = p->data.n;
	p->sections[2] = (struct section){ .name = STR(".gopclntab"), .type = SHT_PROGBITS };
	p->sections[2].addr = TABLE;
	p->sections[2].offset = p->data.n;
	p->sections[2].size = p->table.n;
	p->segment = (struct segment){ .type = PT_LOAD, .vaddr = DATA, .filesz = p->data.n };
	buf_release(&p->table);
	p->table = file;
	p->f = (struct elf){ .bytes = buf_view(&p->table),
			     .is_64 = true,
			     .sections = p->sections,
			     .nsections = 3,
			     .segments = &p->segment,
			     .nsegments = 1 };
}

static void release(struct program *p)
{
	buf_release(&p->table);
	buf_release(&p->data);
}

static void assert_frame(const struct symbol_frame *f, const char *name, const char *file, int line)
{
	assert_true(str_eq(f->name, str_of(name)));
	assert_true(str_eq(f->file, str_of(file)));
	assert_int_equal(f->line, line);
}

static void check(enum go_layout layout)
{
	struct symbol_frame frames[GO_FRAMES_MAX];
	struct program p;
	struct go_table t;

	make(&p, layout);
	assert_true(go_table_read(&t, &p.f));
	assert_int_equal(go_table_find(&t, TEXT, frames), 1);
	assert_frame(&frames[0], "main.f", "/src/f.go", 10);
	if (layout != GO_1_2) {
		assert_int_equal(go_table_find(&t, TEXT + 20, frames), 2);
		assert_frame(&frames[0], "main.g", "/src/g.go", 30);
		assert_frame(&frames[1], "main.f", "/src/f.go", 10);
		assert_int_equal(frames[0].start_line, layout == GO_1_20 ? 29 : 0);
	}
	assert_int_equal(go_table_find(&t, TEXT + 40, frames), 1);
	assert_frame(&frames[0], "main.f", "/src/f.go", 12);
	assert_int_equal(frames[0].start_line, layout == GO_1_20 ? 9 : 0);
	assert_int_equal(go_table_find(&t, TEXT + 64, frames), 0);
	assert_int_equal(go_table_find(&t, TEXT - 1, frames), 0);
	release(&p);
}

TEST(go_1_2)
{
	check(GO_1_2);
}

TEST(go_1_16)
{
	check(GO_1_16);
}

TEST(go_1_18)
{
	check(GO_1_18);
}

TEST(go_1_20)
{
	check(GO_1_20);
}

/* However short the table is cut, nothing outside of it is read. */
TEST(cut_tables)
{
	struct symbol_frame frames[GO_FRAMES_MAX];
	struct program p;
	struct go_table t;

	for (int layout = GO_1_2; layout <= GO_1_20; layout++) {
		make(&p, (enum go_layout)layout);
		for (size_t n = p.sections[2].size; n-- > 0;) {
			char *copy = malloc(p.data.n + n);

			memcpy(copy, p.table.p, p.data.n + n);
			p.f.bytes = (struct str){ copy, p.data.n + n };
			p.sections[2].size = n;
			if (go_table_read(&t, &p.f))
				go_table_find(&t, TEXT + 20, frames);
			free(copy);
		}
		release(&p);
	}
}

TEST(no_table)
{
	struct elf f = { .is_64 = true };
	struct go_table t;

	assert_false(go_table_read(&t, &f));
}
