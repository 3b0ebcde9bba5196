#include "symbol/debuginfo.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <gelf.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/vec.h"
#include "symbol/dies.h"
#include "symbol/lines.h"
#include "symbol/ranges.h"

#define NO_SCOPE RANGE_NONE
/* Levels of inlined calls that are told apart; further ones count as part of the last. */
#define DEPTH_MAX 512
/* Ranges that one unit may have for each byte of it: entries may all name the same long list. */
#define RANGES_PER_BYTE 1
/* How often the bytes of a unit are looked at for inlined calls: functions that lie in each other
 * without end would make that quadratic. */
#define WALKS_PER_BYTE 16

/* A function, or a call that was inlined. */
struct scope {
	Dwarf_Die die;
	uint32_t parent;    /* what it is inlined in; NO_SCOPE: the function */
	bool was_innermost; /* of an address that was looked up */
	bool is_read;	    /* whether what follows is set */
	struct str linkage_name, name;
	int64_t start_line, call_line, call_column;
	uint64_t call_file;
};

struct function {
	struct scope scope;
	uint64_t offset;
	bool has_inlined; /* whether what follows is set */
	struct scope *inlined;
	struct range_map inlined_at;
};

struct unit {
	Dwarf_Die die; /* the one that has the lines */
	bool is_open, has_dies, is_complete, has_lines;
	struct die_unit dies;
	Dwarf *dwarf; /* the one that has the functions; of a split unit another file's */
	struct function *functions;
	struct range_map functions_at;
	struct line_table lines;
	bool is_c;
	uint64_t walked; /* bytes of functions that were looked at for inlined calls */
};

struct debug_info {
	struct arena arena;
	int fd;
	Elf *elf;
	Dwarf *dwarf;
	struct unit *units;
	size_t nunits;
	struct range_map units_at;
	/* The abbreviations that were read last; many units share theirs. */
	Dwarf *shapes_of;
	uint64_t shapes_at;
	struct die_shapes shapes;
	vec(struct debug_frame) frames;
};

typedef vec(struct range) range_vec;

/* Adds the entry's ranges, up to `max` in all. */
static void add_ranges(range_vec *ranges, Dwarf_Die *die, uint32_t value, size_t max)
{
	Dwarf_Addr base, low, high;
	ptrdiff_t offset = 0;

	while (ranges->n < max && (offset = dwarf_ranges(die, offset, &base, &low, &high)) > 0)
		if (low < high)
			vec_push(ranges, ((struct range){ low, high, value }));
}

struct unit_offset {
	Dwarf_Off offset;
	uint32_t unit;
	bool has_ranges;
};

static int by_offset(const void *a, const void *b)
{
	Dwarf_Off x = ((const struct unit_offset *)a)->offset;
	Dwarf_Off y = ((const struct unit_offset *)b)->offset;

	return (x > y) - (x < y);
}

/* The units and the offsets of their first entries, in the order of the file. */
static struct unit_offset *list_units(struct debug_info *d)
{
	vec(struct unit) units = { 0 };
	vec(struct unit_offset) offsets = { 0 };
	Dwarf_CU *cu = NULL;
	Dwarf_Die die;
	uint8_t type;

	while (units.n < RANGE_NONE &&
	       dwarf_get_units(d->dwarf, cu, &cu, NULL, &type, &die, NULL) == 0) {
		if (type == DW_UT_type || type == DW_UT_split_type)
			continue;
		vec_push(&offsets, ((struct unit_offset){ .offset = dwarf_dieoffset(&die),
							  .unit = (uint32_t)units.n }));
		vec_push(&units, ((struct unit){ .die = die }));
	}
	d->nunits = units.n;
	d->units = vec_adopt(&d->arena, &units);
	return vec_adopt(&d->arena, &offsets);
}

/* .debug_aranges is quick to read, but may lack units, or be missing. */
static void index_units(struct debug_info *d)
{
	struct unit_offset *offsets = list_units(d);
	range_vec ranges = { 0 };
	Dwarf_Aranges *table;
	size_t n = 0;

	if (dwarf_getaranges(d->dwarf, &table, &n) != 0)
		n = 0;
	for (size_t i = 0; i < n; i++) {
		Dwarf_Arange *entry = dwarf_onearange(table, i);
		struct unit_offset key = { 0 }, *found;
		Dwarf_Addr low;
		Dwarf_Word bytes;

		if (!entry || dwarf_getarangeinfo(entry, &low, &bytes, &key.offset) != 0)
			continue;
		found = bsearch(&key, offsets, d->nunits, sizeof(key), by_offset);
		if (!found)
			continue;
		found->has_ranges = true;
		vec_push(&ranges, ((struct range){ low, low + bytes, found->unit }));
	}
	for (size_t i = 0; i < d->nunits; i++)
		if (!offsets[i].has_ranges)
			add_ranges(&ranges, &d->units[i].die, (uint32_t)i, SIZE_MAX);
	range_map_build(&d->arena, &d->units_at, ranges.at, ranges.n);
	vec_release(&ranges);
}

struct debug_info *debug_info_open(int fd)
{
	struct debug_info *d = xcalloc(1, sizeof(*d));

	elf_version(EV_CURRENT);
	d->fd = dup(fd);
	d->elf = elf_begin(d->fd, ELF_C_READ_MMAP, NULL);
	d->dwarf = d->elf ? dwarf_begin_elf(d->elf, DWARF_C_READ, NULL) : NULL;
	if (d->dwarf)
		index_units(d);
	if (d->nunits == 0) {
		debug_info_close(d);
		return NULL;
	}
	return d;
}

void debug_info_close(struct debug_info *d)
{
	if (!d)
		return;
	dwarf_end(d->dwarf);
	elf_end(d->elf);
	if (d->fd >= 0)
		close(d->fd);
	vec_release(&d->frames);
	arena_release(&d->arena);
	free(d);
}

static struct str section_bytes(Dwarf *dwarf, const char *name, const char *split_name)
{
	Elf *elf = dwarf_getelf(dwarf);
	size_t names;
	Elf_Scn *section = NULL;

	if (!elf || elf_getshdrstrndx(elf, &names) != 0)
		return (struct str){ 0 };
	while ((section = elf_nextscn(elf, section))) {
		GElf_Shdr header;
		const char *is = gelf_getshdr(section, &header)
					 ? elf_strptr(elf, names, header.sh_name)
					 : NULL;
		Elf_Data *data;

		/* .debug_info and .zdebug_info, which libdw has unpacked */
		if (!is || is[0] != '.' ||
		    (strcmp(is + 1 + (is[1] == 'z'), name) != 0 && strcmp(is + 1, split_name) != 0))
			continue;
		data = elf_getdata(section, NULL);
		if (data && data->d_buf && data->d_size)
			return (struct str){ data->d_buf, data->d_size };
	}
	return (struct str){ 0 };
}

static uint64_t number(const struct die_unit *u, const char *at, size_t bytes)
{
	uint64_t v = 0;

	for (size_t i = 0; i < bytes; i++)
		v = v << 8 | (uint8_t)at[u->is_big_endian ? i : bytes - 1 - i];
	return v;
}

/* Where the unit's entries are in the file. */
static bool place_unit(struct die_unit *u, Dwarf *dwarf, Dwarf_Die *die, Dwarf_Half version,
		       uint8_t address_bytes, uint8_t offset_bytes)
{
	const char *ident = elf_getident(dwarf_getelf(dwarf), NULL);
	Dwarf_Off first = dwarf_dieoffset(die), in_unit = dwarf_cuoffset(die);
	size_t skip = offset_bytes == 8 ? 4 : 0; /* 64 bit lengths follow ffffffff */
	uint64_t bytes;

	*u = (struct die_unit){ .info = section_bytes(dwarf, "debug_info", "debug_info.dwo"),
				.start = first - in_unit,
				.version = version,
				.address_bytes = address_bytes,
				.offset_bytes = offset_bytes,
				.is_big_endian = ident && ident[EI_DATA] == ELFDATA2MSB };
	if (in_unit > first || first >= u->info.n || offset_bytes + skip > in_unit)
		return false;
	bytes = number(u, u->info.p + u->start + skip, offset_bytes);
	if (bytes > u->info.n - u->start - skip - offset_bytes)
		return false;
	u->first = first;
	u->end = u->start + skip + offset_bytes + bytes;
	return true;
}

static bool read_shapes(struct debug_info *d, struct unit *u, Dwarf_Off offset)
{
	struct str abbrev;

	if (d->shapes_of != u->dwarf || d->shapes_at != offset) {
		abbrev = section_bytes(u->dwarf, "debug_abbrev", "debug_abbrev.dwo");
		if (offset >= abbrev.n)
			return false;
		d->shapes_of = NULL;
		if (!die_shapes_read(&d->arena, &d->shapes, &u->dies, str_from(abbrev, offset)))
			return false;
		d->shapes_of = u->dwarf;
		d->shapes_at = offset;
	}
	u->dies.shapes = d->shapes;
	return true;
}

/* Types have no code in them, or so it is with gcc, which alone says where their siblings are. */
static bool can_be_skipped(const struct die *die)
{
	return die->sibling && die->shape->tag != DW_TAG_namespace &&
	       die->shape->tag != DW_TAG_module && die->shape->tag != DW_TAG_compile_unit &&
	       die->shape->tag != DW_TAG_partial_unit;
}

/* Lists the unit's functions: in a first pass those that are not inside other functions, and in
 * another one, if an address asks for it, all. */
static void index_functions(struct debug_info *d, struct unit *u, bool complete)
{
	vec(struct function) functions = { 0 };
	range_vec ranges = { 0 };
	size_t max = (u->dies.end - u->dies.start) * RANGES_PER_BYTE;
	uint64_t offset = u->dies.first;
	struct die die;

	u->is_complete = complete;
	while (die_read(&u->dies, offset, &die)) {
		if (die.shape && die.shape->tag == DW_TAG_subprogram && die.shape->has_code) {
			struct function f = { .offset = die.offset };

			if (dwarf_offdie(u->dwarf, die.offset, &f.scope.die)) {
				f.scope.parent = NO_SCOPE;
				add_ranges(&ranges, &f.scope.die, (uint32_t)functions.n, max);
				vec_push(&functions, f);
			}
		}
		offset = die.shape && !complete && can_be_skipped(&die) ? die.sibling : die.next;
	}
	u->functions = vec_adopt(&d->arena, &functions);
	range_map_build(&d->arena, &u->functions_at, ranges.at, ranges.n);
	vec_release(&ranges);
}

/* binutils' list: languages whose names are what the linker sees. */
static bool has_plain_names(int language)
{
	switch (language) {
	case DW_LANG_C89:
	case DW_LANG_C:
	case DW_LANG_C99:
	case DW_LANG_C11:
	case DW_LANG_UPC:
	case DW_LANG_Ada83:
	case DW_LANG_Ada95:
	case DW_LANG_Cobol74:
	case DW_LANG_Cobol85:
	case DW_LANG_Fortran77:
	case DW_LANG_Pascal83:
	case DW_LANG_PLI:
	case DW_LANG_Mips_Assembler:
		return true;
	default:
		return false;
	}
}

static void open_unit(struct debug_info *d, struct unit *u)
{
	Dwarf_Die die, split;
	Dwarf_Half version;
	Dwarf_Off abbrev;
	uint8_t address_bytes, offset_bytes, type;

	u->is_open = true;
	if (dwarf_cu_info(u->die.cu, &version, &type, NULL, &split, NULL, NULL, NULL) != 0)
		return;
	u->is_c = has_plain_names(dwarf_srclang(&u->die));
	die = type == DW_UT_skeleton && split.addr ? split : u->die;
	u->dwarf = dwarf_cu_getdwarf(die.cu);
	if (!dwarf_cu_die(die.cu, &die, &version, &abbrev, &address_bytes, &offset_bytes, NULL,
			  NULL))
		return;
	u->has_dies = place_unit(&u->dies, u->dwarf, &die, version, address_bytes, offset_bytes) &&
		      read_shapes(d, u, abbrev);
	if (u->has_dies)
		index_functions(d, u, false);
}

/* The walk through a function: what each level of entries is inlined in. */
struct inline_walk {
	uint32_t scope_at[DEPTH_MAX];
	size_t depth; /* of the entry that comes next, below the function */
};

/* Lists the calls that were inlined into the function. */
static void index_inlined(struct debug_info *d, struct unit *u, struct function *f)
{
	size_t max = (u->dies.end - f->offset) * RANGES_PER_BYTE;
	struct inline_walk w = { .depth = 0 };
	vec(struct scope) scopes = { 0 };
	range_vec ranges = { 0 };
	uint64_t offset = f->offset;
	struct die die;

	f->has_inlined = true;
	while (u->walked <= (u->dies.end - u->dies.start) * WALKS_PER_BYTE &&
	       die_read(&u->dies, offset, &die)) {
		uint32_t scope = w.depth ? w.scope_at[w.depth - 1] : NO_SCOPE;
		bool is_other = w.depth && die.shape && die.shape->tag == DW_TAG_subprogram;

		offset = die.next;
		u->walked += die.next - die.offset;
		if (die.shape && die.shape->tag == DW_TAG_inlined_subroutine &&
		    die.shape->has_code && scopes.n < NO_SCOPE) {
			struct scope s = { .parent = scope };

			if (dwarf_offdie(u->dwarf, die.offset, &s.die)) {
				scope = (uint32_t)scopes.n;
				add_ranges(&ranges, &s.die, scope, max);
				vec_push(&scopes, s);
			}
		}
		if (!die.shape)
			w.depth--;
		else if (die.shape->has_children && is_other && die.sibling)
			offset = die.sibling;
		else if (die.shape->has_children && w.depth < DEPTH_MAX)
			w.scope_at[w.depth++] = scope;
		else if (die.shape->has_children)
			break;
		if (w.depth == 0)
			break;
	}
	f->inlined = vec_adopt(&d->arena, &scopes);
	range_map_build(&d->arena, &f->inlined_at, ranges.at, ranges.n);
	vec_release(&ranges);
}

static struct str text_of(Dwarf_Die *die, unsigned attribute)
{
	Dwarf_Attribute a;
	const char *text = dwarf_attr_integrate(die, attribute, &a) ? dwarf_formstring(&a) : NULL;

	return text ? str_of(text) : STR("");
}

static int64_t number_of(Dwarf_Attribute *a)
{
	Dwarf_Word value;

	return a && dwarf_formudata(a, &value) == 0 && value <= INT64_MAX ? (int64_t)value : 0;
}

static void read_scope(struct scope *s)
{
	Dwarf_Attribute a;

	if (s->is_read)
		return;
	s->is_read = true;
	s->linkage_name = text_of(&s->die, DW_AT_linkage_name);
	if (!s->linkage_name.n)
		s->linkage_name = text_of(&s->die, DW_AT_MIPS_linkage_name);
	s->name = text_of(&s->die, DW_AT_name);
	s->start_line = number_of(dwarf_attr_integrate(&s->die, DW_AT_decl_line, &a));
	s->call_line = number_of(dwarf_attr(&s->die, DW_AT_call_line, &a));
	s->call_column = number_of(dwarf_attr(&s->die, DW_AT_call_column, &a));
	s->call_file = (uint64_t)number_of(dwarf_attr(&s->die, DW_AT_call_file, &a));
}

static void read_lines(struct debug_info *d, struct unit *u)
{
	struct line_sections sections;
	Dwarf_Attribute a;
	Dwarf_Word offset;
	const char *dir;

	if (u->has_lines)
		return;
	u->has_lines = true;
	if (!dwarf_attr(&u->die, DW_AT_stmt_list, &a) || dwarf_formudata(&a, &offset) != 0)
		return;
	dir = dwarf_attr(&u->die, DW_AT_comp_dir, &a) ? dwarf_formstring(&a) : NULL;
	sections = (struct line_sections){
		.lines = section_bytes(d->dwarf, "debug_line", ""),
		.line_strings = section_bytes(d->dwarf, "debug_line_str", ""),
		.strings = section_bytes(d->dwarf, "debug_str", ""),
		.is_big_endian = u->dies.is_big_endian,
	};
	line_table_read(&u->lines, &d->arena, &sections, offset, u->dies.address_bytes,
			dir ? str_of(dir) : STR(""));
}

static bool place_by_row(struct debug_info *d, struct unit *u, uint64_t address,
			 struct debug_frame *frame)
{
	const struct line_row *row;

	read_lines(d, u);
	row = line_table_find(&u->lines, address);
	if (!row)
		return false;
	frame->file = line_table_file(&u->lines, row->file);
	frame->line = row->line;
	frame->column = row->column;
	return true;
}

static void place_by_call(struct debug_info *d, struct unit *u, const struct scope *inlined,
			  struct debug_frame *frame)
{
	read_lines(d, u);
	frame->file = line_table_file(&u->lines, inlined->call_file);
	frame->line = inlined->call_line;
	frame->column = inlined->call_column;
}

static struct function *find_function(struct debug_info *d, struct unit *u, uint64_t address)
{
	uint32_t found;

	if (!u->is_open)
		open_unit(d, u);
	found = range_map_find(&u->functions_at, address);
	if (found == RANGE_NONE && u->has_dies && !u->is_complete) {
		index_functions(d, u, true);
		found = range_map_find(&u->functions_at, address);
	}
	return found == RANGE_NONE ? NULL : &u->functions[found];
}

static void add_frame(struct debug_info *d, struct unit *u, uint64_t address, struct scope *s,
		      const struct scope *called)
{
	struct debug_frame frame;

	read_scope(s);
	frame = (struct debug_frame){ .linkage_name = s->linkage_name,
				      .name = s->name,
				      .file = STR(""),
				      .start_line = s->start_line,
				      .is_c = u->is_c };
	if (called) {
		place_by_call(d, u, called, &frame);
	} else {
		place_by_row(d, u, address, &frame);
		frame.is_again = s->was_innermost;
		s->was_innermost = true;
	}
	vec_push(&d->frames, frame);
}

size_t debug_info_find(struct debug_info *d, uint64_t address, const struct debug_frame **frames)
{
	struct debug_frame nameless = { .linkage_name = STR(""), .name = STR(""), .file = STR("") };
	uint32_t at = range_map_find(&d->units_at, address);
	struct scope *called = NULL;
	struct function *f;

	d->frames.n = 0;
	if (at == RANGE_NONE)
		return 0;
	f = find_function(d, &d->units[at], address);
	if (f && !f->has_inlined)
		index_inlined(d, &d->units[at], f);
	if (f) {
		uint32_t scope = range_map_find(&f->inlined_at, address);

		for (; scope != NO_SCOPE; scope = called->parent) {
			add_frame(d, &d->units[at], address, &f->inlined[scope], called);
			called = &f->inlined[scope];
		}
		add_frame(d, &d->units[at], address, &f->scope, called);
	} else if (place_by_row(d, &d->units[at], address, &nameless)) {
		vec_push(&d->frames, nameless);
	}
	*frames = d->frames.at;
	return d->frames.n;
}
