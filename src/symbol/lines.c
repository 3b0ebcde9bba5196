#include "symbol/lines.h"

#include <dwarf.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/vec.h"

/* Reads forward in .debug_line; what lies behind `end` reads as 0, and sets is_over. */
struct reader {
	const struct line_table *t;
	uint64_t at, end;
	bool is_over;
};

static uint64_t take(struct reader *r, unsigned bytes)
{
	const uint8_t *p = (const uint8_t *)r->t->in.lines.p + r->at;
	uint64_t v = 0;

	if (bytes > r->end - r->at) {
		r->is_over = true;
		r->at = r->end;
		return 0;
	}
	r->at += bytes;
	for (unsigned i = 0; i < bytes; i++)
		v = v << 8 | p[r->t->in.is_big_endian ? i : bytes - 1 - i];
	return v;
}

static uint64_t take_leb(struct reader *r, bool is_signed)
{
	uint64_t v = 0;

	for (unsigned shift = 0; r->at < r->end; shift += 7) {
		uint8_t byte = (uint8_t)r->t->in.lines.p[r->at++];

		if (shift < 64)
			v |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			if (is_signed && byte & 0x40 && shift < 57)
				v |= ~(uint64_t)0 << (shift + 7);
			return v;
		}
	}
	r->is_over = true;
	return 0;
}

static void skip(struct reader *r, uint64_t bytes)
{
	r->is_over |= bytes > r->end - r->at;
	r->at = r->is_over ? r->end : r->at + bytes;
}

static struct str text_at(struct str section, uint64_t at)
{
	const char *end = at < section.n ? memchr(section.p + at, '\0', section.n - at) : NULL;

	return end ? (struct str){ section.p + at, (size_t)(end - section.p) - at } : STR("");
}

static struct str take_text(struct reader *r)
{
	struct str s = text_at((struct str){ r->t->in.lines.p, r->end }, r->at);

	skip(r, s.n + 1);
	return s;
}

typedef vec(struct str) dir_vec;
typedef vec(struct line_file) file_vec;

/* Up to DWARF 4: a name, the number of a directory, a time and a size. */
static bool take_old_file(struct reader *r, file_vec *files)
{
	struct line_file f = { .name = take_text(r) };

	if (!f.name.n || r->is_over)
		return false;
	f.dir = take_leb(r, false);
	take_leb(r, false);
	take_leb(r, false);
	vec_push(files, f);
	return true;
}

static void read_old_lists(struct reader *r, dir_vec *dirs, file_vec *files)
{
	for (struct str dir = take_text(r); dir.n && !r->is_over; dir = take_text(r))
		vec_push(dirs, dir);
	while (take_old_file(r, files))
		;
}

/* A value of a list of DWARF 5; texts go to *text, numbers to *number. */
static void take_form(struct reader *r, uint64_t form, struct str *text, uint64_t *number)
{
	const struct line_table *t = r->t;

	switch (form) {
	case DW_FORM_string:
		*text = take_text(r);
		break;
	case DW_FORM_line_strp:
		*text = text_at(t->in.line_strings, take(r, t->offset_bytes));
		break;
	case DW_FORM_strp:
		*text = text_at(t->in.strings, take(r, t->offset_bytes));
		break;
	case DW_FORM_data1:
		*number = take(r, 1);
		break;
	case DW_FORM_data2:
		*number = take(r, 2);
		break;
	case DW_FORM_data4:
		*number = take(r, 4);
		break;
	case DW_FORM_data8:
		*number = take(r, 8);
		break;
	case DW_FORM_udata:
		*number = take_leb(r, false);
		break;
	case DW_FORM_data16:
		skip(r, 16);
		break;
	case DW_FORM_block:
		skip(r, take_leb(r, false));
		break;
	default:
		r->is_over = true;
	}
}

/* DWARF 5 lists directories and files in the same way: first what each entry has, then the entries.
 */
static void read_list(struct reader *r, file_vec *out)
{
	struct {
		uint64_t type, form;
	} parts[UINT8_MAX];
	size_t nparts = take(r, 1);
	uint64_t n;

	for (size_t i = 0; i < nparts; i++) {
		parts[i].type = take_leb(r, false);
		parts[i].form = take_leb(r, false);
	}
	n = take_leb(r, false);
	for (uint64_t i = 0; i < n && !r->is_over && nparts; i++) {
		struct line_file f = { .name = STR("") };
		uint64_t before = r->at;

		for (size_t k = 0; k < nparts; k++) {
			struct str text = STR("");
			uint64_t number = 0;

			take_form(r, parts[k].form, &text, &number);
			if (parts[k].type == DW_LNCT_path)
				f.name = text;
			else if (parts[k].type == DW_LNCT_directory_index)
				f.dir = number;
		}
		/* Entries without a byte could go on for ever. */
		if (r->is_over || r->at == before)
			break;
		vec_push(out, f);
	}
}

static void read_lists(struct line_table *t, struct reader *r, dir_vec *dirs, file_vec *files)
{
	file_vec list = { 0 };

	if (t->version < 5) {
		read_old_lists(r, dirs, files);
		return;
	}
	read_list(r, &list);
	for (size_t i = 0; i < list.n; i++)
		vec_push(dirs, list.at[i].name);
	vec_release(&list);
	read_list(r, files);
}

static bool read_header(struct line_table *t, struct reader *r)
{
	uint64_t bytes = take(r, 4), start;

	t->offset_bytes = 4;
	if (bytes == UINT32_MAX) {
		t->offset_bytes = 8;
		bytes = take(r, 8);
	}
	if (bytes < r->end - r->at)
		r->end = r->at + bytes;
	t->version = (uint16_t)take(r, 2);
	if (t->version < 2 || t->version > 5)
		return false;
	if (t->version == 5) {
		t->address_bytes = (uint8_t)take(r, 1);
		take(r, 1);
	}
	bytes = take(r, t->offset_bytes);
	start = r->at;
	t->step = (uint8_t)take(r, 1);
	t->ops_per_step = t->version >= 4 ? (uint8_t)take(r, 1) : 1;
	take(r, 1); /* whether rows are statements */
	t->line_base = (int8_t)take(r, 1);
	t->line_range = (uint8_t)take(r, 1);
	t->opcode_base = (uint8_t)take(r, 1);
	t->operand_counts = r->at;
	skip(r, t->opcode_base ? t->opcode_base - 1u : 0);
	t->program = bytes < r->end - start ? start + bytes : r->end;
	t->program_end = r->end;
	return !r->is_over && t->line_range && t->opcode_base && t->ops_per_step;
}

/* The machine that the program is for. */
struct machine {
	struct line_row row;
	uint64_t op; /* in a step of several operations */
};

static void advance(const struct line_table *t, struct machine *m, uint64_t by)
{
	if (t->ops_per_step == 1) {
		m->row.address += by * t->step;
		return;
	}
	m->row.address += (m->op + by) / t->ops_per_step * t->step;
	m->op = (m->op + by) % t->ops_per_step;
}

enum outcome { GO_ON, ROW, END };

static enum outcome run_extended(struct reader *r, struct machine *m, file_vec *files)
{
	uint64_t bytes = take_leb(r, false), next;
	enum outcome outcome = GO_ON;

	if (bytes == 0 || bytes > r->end - r->at)
		return GO_ON;
	next = r->at + bytes;
	switch (take(r, 1)) {
	case DW_LNE_end_sequence:
		outcome = END;
		break;
	case DW_LNE_set_address:
		if (bytes - 1 <= 8)
			m->row.address = take(r, (unsigned)bytes - 1);
		m->op = 0;
		break;
	case DW_LNE_define_file:
		if (files)
			take_old_file(r, files);
		break;
	}
	r->at = next;
	return outcome;
}

static enum outcome run_standard(struct reader *r, struct machine *m, uint8_t opcode)
{
	const struct line_table *t = r->t;

	switch (opcode) {
	case DW_LNS_copy:
		return ROW;
	case DW_LNS_advance_pc:
		advance(t, m, take_leb(r, false));
		break;
	case DW_LNS_advance_line:
		m->row.line += (uint32_t)take_leb(r, true);
		break;
	case DW_LNS_set_file:
		m->row.file = (uint32_t)take_leb(r, false);
		break;
	case DW_LNS_set_column:
		m->row.column = (uint32_t)take_leb(r, false);
		break;
	case DW_LNS_const_add_pc:
		advance(t, m, (255u - t->opcode_base) / t->line_range);
		break;
	case DW_LNS_fixed_advance_pc:
		m->row.address += take(r, 2);
		m->op = 0;
		break;
	default: /* Those that are not known say how many operands they have. */
		for (uint8_t n = (uint8_t)t->in.lines.p[t->operand_counts + opcode - 1]; n; n--)
			take_leb(r, false);
	}
	return GO_ON;
}

/* Runs up to the next row or the end of the sequence; END at the end of the program too. */
static enum outcome run(struct reader *r, struct machine *m, file_vec *files)
{
	const struct line_table *t = r->t;
	enum outcome outcome = GO_ON;

	while (outcome == GO_ON && r->at < r->end) {
		uint8_t opcode = (uint8_t)t->in.lines.p[r->at++];

		if (opcode >= t->opcode_base) {
			uint8_t by = (uint8_t)(opcode - t->opcode_base);

			advance(t, m, by / t->line_range);
			m->row.line += (uint32_t)(t->line_base + by % t->line_range);
			return ROW;
		}
		outcome = opcode ? run_standard(r, m, opcode) : run_extended(r, m, files);
	}
	return outcome == GO_ON ? END : outcome;
}

static const struct machine initial = { .row = { .file = 1, .line = 1 } };

static void find_sequences(struct line_table *t, file_vec *files)
{
	struct reader r = { .t = t, .at = t->program, .end = t->program_end };
	vec(struct line_sequence) sequences = { 0 };
	vec(struct range) ranges = { 0 };

	while (r.at < r.end && sequences.n < RANGE_NONE) {
		struct line_sequence s = { .program = r.at };
		struct machine m = initial;

		for (; run(&r, &m, files) == ROW; s.nrows++)
			if (s.nrows == 0)
				s.low = m.row.address;
		s.high = m.row.address;
		if (s.nrows == 0 || s.low >= s.high)
			continue;
		vec_push(&ranges, ((struct range){ s.low, s.high, (uint32_t)sequences.n }));
		vec_push(&sequences, s);
	}
	range_map_build(t->arena, &t->sequences_at, ranges.at, ranges.n);
	vec_release(&ranges);
	t->nsequences = sequences.n;
	t->sequences = vec_adopt(t->arena, &sequences);
}

void line_table_read(struct line_table *t, struct arena *a, const struct line_sections *in,
		     uint64_t offset, uint8_t address_bytes, struct str compiled_in)
{
	struct reader r = { .t = t, .at = offset, .end = in->lines.n };
	dir_vec dirs = { 0 };
	file_vec files = { 0 };

	*t = (struct line_table){
		.in = *in, .arena = a, .compiled_in = compiled_in, .address_bytes = address_bytes
	};
	if (offset >= in->lines.n || !read_header(t, &r))
		return;
	r.end = t->program;
	if (r.at < r.end)
		read_lists(t, &r, &dirs, &files);
	find_sequences(t, t->version < 5 ? &files : NULL);
	t->ndirs = dirs.n;
	t->dirs = vec_adopt(a, &dirs);
	t->nfiles = files.n;
	t->files = vec_adopt(a, &files);
}

static void read_rows(struct line_table *t, struct line_sequence *s)
{
	struct reader r = { .t = t, .at = s->program, .end = t->program_end };
	struct machine m = initial;

	s->rows = arena_many_raw(t->arena, s->nrows, struct line_row);
	for (size_t i = 0; i < s->nrows && run(&r, &m, NULL) == ROW; i++)
		s->rows[i] = m.row;
}

const struct line_row *line_table_find(struct line_table *t, uint64_t address)
{
	uint32_t at = range_map_find(&t->sequences_at, address);
	struct line_sequence *s;
	size_t low = 0, high;

	if (at == RANGE_NONE)
		return NULL;
	s = &t->sequences[at];
	if (!s->rows)
		read_rows(t, s);
	for (high = s->nrows; high - low > 1;) {
		size_t middle = low + (high - low) / 2;

		if (s->rows[middle].address <= address)
			low = middle;
		else
			high = middle;
	}
	return &s->rows[low];
}

static void add_part(struct buf *out, struct str part)
{
	if (out->n && out->p[out->n - 1] != '/' && part.n)
		buf_char(out, '/');
	buf_str(out, part);
}

static bool is_absolute(struct str path)
{
	return path.n && path.p[0] == '/';
}

/* As llvm-symbolizer and addr2line put it together. With DWARF 5 a relative directory of the whole
 * unit is there twice, as it is the list's first entry too. */
static struct str full_name(const struct line_table *t, const struct line_file *f)
{
	uint64_t dir = f->dir - (t->version < 5); /* no directory becomes a very large number */
	struct str in = dir < t->ndirs ? t->dirs[dir] : STR("");
	struct buf name = { 0 };
	struct str out = f->name;

	if (is_absolute(f->name) || !f->name.n)
		return out;
	if (!is_absolute(in))
		buf_str(&name, t->compiled_in);
	add_part(&name, in);
	add_part(&name, f->name);
	out = (struct str){ arena_copy(t->arena, name.p, name.n), name.n };
	buf_release(&name);
	return out;
}

struct str line_table_file(struct line_table *t, uint64_t number)
{
	uint64_t index = number - (t->version < 5);

	if (index >= t->nfiles)
		return STR("");
	if (!t->files[index].full_name.p)
		t->files[index].full_name = full_name(t, &t->files[index]);
	return t->files[index].full_name;
}
