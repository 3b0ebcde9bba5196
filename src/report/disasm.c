/* disasm.c - instructions with their weights: -disasm. */
#include "report/report.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/number.h"
#include "base/path.h"
#include "base/vec.h"
#include "report/binary.h"

/* Instructions that are shorter have their source line beside them. */
#define TEXT_WIDTH 40
#define LOCATION_COLUMN 74

/* What was asked for: names that match, and an address if the text is one. */
struct wanted {
	bool is_address;
	uint64_t address;
	bool *files; /* by string: binaries that have a node of a matching name */
	const struct regex *regex;
};

/* A node by where its address was linked. */
struct place {
	uint64_t address;
	const struct node *node;
};

/* A symbol that was asked for, with the nodes in it. */
struct routine {
	struct binary *binary;
	uint64_t start, end;
	struct str name;
	const struct symbol *names; /* all of the symbol, or none but `name` */
	size_t nnames;
	const struct place *places; /* in order of addresses */
	size_t nplaces;
};

struct routines {
	vec(struct binary *) binaries;
	vec(struct routine) all;
	bool has_address; /* the address lies in a symbol, which may have no nodes */
};

static struct wanted find_wanted(struct report_run *r)
{
	struct wanted w = { .files = arena_many(r->a, r->p->strings->n, bool),
			    .regex = r->params->regex };

	w.is_address = number_parse_uint(str_of(r->params->argument), 0, &w.address) == NUMBER_OK;
	for (uint32_t i = 0; i < r->g.norder; i++) {
		const struct node *n = &r->g.nodes[r->g.order[i]];

		if (!w.files[n->info.object] && regex_match(r->params->regex, n->text))
			w.files[n->info.object] = true;
	}
	w.files[0] = false; /* frames without a binary */
	return w;
}

static bool is_wanted(const struct wanted *w, const struct mapping *m)
{
	return w->files[m->file] ||
	       (w->is_address && m->start <= w->address && w->address <= m->limit);
}

/* Whoever reads the report must learn that a binary is missing from it, so this goes to stdout even
 * if the report itself fails or goes elsewhere. */
static void note_missing(const struct err *e)
{
	struct buf note = { 0 };
	struct err ignored;

	buf_printf(&note, "%s\n", e->text);
	buf_to_fd(&note, STDOUT_FILENO);
	buf_flush(&note, &ignored);
	buf_release(&note);
}

/* ---- symbols with their nodes */

static int by_place(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return (x->node > y->node) - (x->node < y->node);
}

static size_t find_places(struct report_run *r, struct binary *b, struct place **places)
{
	struct err outside;
	size_t n = 0;

	*places = arena_many(r->a, r->g.norder, struct place);
	for (uint32_t i = 0; i < r->g.norder; i++) {
		const struct node *node = &r->g.nodes[r->g.order[i]];
		struct place *place = &(*places)[n];

		if (binary_address(b, node->info.address, &place->address, &outside)) {
			place->node = node;
			n++;
		}
	}
	if (n)
		qsort(*places, n, sizeof(**places), by_place);
	return n;
}

/* The form of the name that matches: raw, or demangled with less and less detail. */
static bool match_name(struct arena *a, const struct wanted *w, struct str raw, struct str *form)
{
	static const enum demangle_mode modes[] = { DEMANGLE_FULL, DEMANGLE_TEMPLATES,
						    DEMANGLE_DEFAULT };
	struct buf text = { 0 };
	bool found = regex_match(w->regex, raw);

	*form = raw;
	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes) && !found; i++) {
		text.n = 0;
		found = demangle_name(&text, raw, modes[i]) &&
			regex_match(w->regex, buf_view(&text));
		if (found)
			*form = (struct str){ str_dup(a, buf_view(&text)), text.n };
	}
	buf_release(&text);
	return found;
}

static bool match_routine(struct arena *a, const struct wanted *w, struct routine *routine)
{
	bool is_inside = w->is_address && w->address && w->address >= routine->start &&
			 w->address <= routine->end;

	routine->name = routine->names[0].name;
	if (is_inside)
		return true;
	for (size_t i = 0; i < routine->nnames; i++) {
		if (match_name(a, w, routine->names[i].name, &routine->name)) {
			routine->nnames = 0;
			return true;
		}
	}
	return false;
}

/* Goes over symbols and nodes side by side. A symbol ends a byte before the next one, and its last
 * byte is not looked at, as in pprof. */
static void find_routines(struct report_run *r, const struct wanted *w, struct binary *b,
			  struct routines *found)
{
	const struct symbol_list *t = binary_symbols(b);
	struct place *places;
	size_t n = find_places(r, b, &places), at = 0, next;

	for (size_t i = 0; i < t->n; i = next) {
		struct routine routine = { .binary = b, .start = t->at[i].address };

		for (next = i + 1; next < t->n && t->at[next].address == routine.start; next++)
			;
		routine.end = next < t->n ? t->at[next].address - 1 : UINT64_MAX;
		routine.names = &t->at[i];
		routine.nnames = next - i;
		if (w->is_address && w->address >= routine.start && w->address <= routine.end)
			found->has_address = true;
		while (at < n && places[at].address < routine.start)
			at++;
		routine.places = places + at;
		while (at < n && places[at].address < routine.end)
			at++;
		routine.nplaces = (size_t)(places + at - routine.places);
		if (routine.nplaces && match_routine(r->a, w, &routine))
			vec_push(&found->all, routine);
	}
}

static int by_name_start(const void *a, const void *b)
{
	const struct routine *x = a, *y = b;
	int order = str_cmp(x->name, y->name);

	return order ? order : (x->start > y->start) - (x->start < y->start);
}

static void open_binaries(struct report_run *r, const struct wanted *w, struct routines *found)
{
	for (uint32_t i = 0; i < r->p->nmappings; i++) {
		const struct mapping *m = &r->p->mappings[i];
		struct binary *b;
		struct err e;

		if (!is_wanted(w, m))
			continue;
		b = arena_new(r->a, struct binary);
		if (!binary_open(b, r->p, m, r->params->asm_style, &e)) {
			note_missing(&e);
			continue;
		}
		if (r->params->asm_style.is_gnu)
			b->detail = SYMBOL_INNER;
		vec_push(&found->binaries, b);
		find_routines(r, w, b, found);
	}
	if (found->all.n)
		qsort(found->all.at, found->all.n, sizeof(*found->all.at), by_name_start);
}

/* ---- text */

/* Where an instruction comes from. */
struct origin {
	struct str function, file;
	int64_t line;
};

struct weight {
	int64_t flat, flat_div, cum, cum_div;
};

/* How far a routine has been written. */
struct listing {
	struct origin known; /* of the instruction at hand */
	struct origin shown; /* of the one before, as it was written */
	struct origin said;  /* what objdump would have printed last; no file */
	uint64_t next;	     /* where the instruction before ends */
};

/* What the debug information knows; what it does not know stays as it was for the instruction
 * before. */
static void find_origin_llvm(struct binary *b, uint64_t address, struct origin *o)
{
	struct str function = disassembler_function(b->disassembler, address);
	const struct symbol_frame *frames;
	size_t n = binary_frames(b, address, &frames);

	if (function.n) {
		if (str_has_suffix(function, STR("()")))
			function.n -= 2;
		o->function = function;
	}
	if (n && frames[0].file.n && frames[0].line) {
		o->file = path_base(frames[0].file);
		o->line = frames[0].line;
	}
}

/* What pprof takes for the function's name in the line that objdump prints for it, which ends with
 * "():" if the name is not demangled and with ":" if it is: all before the last "():", or what
 * follows the digits of an address, for which it takes the letters a to f, too. */
static struct str function_in_line(struct str line)
{
	static const char digits[] = "0123456789abcdefABCDEF";
	size_t end = line.n, start = 0;

	while (end > 3 && !str_has_suffix((struct str){ line.p, end }, STR("():")))
		end--;
	if (end > 3)
		return (struct str){ line.p, end - 3 };
	while (start < line.n && memchr(digits, line.p[start], sizeof(digits) - 1))
		start++;
	start += start < line.n && line.p[start] == ' ';
	return (struct str){ line.p + start, line.n - 1 - start };
}

static struct str name_function(struct arena *a, struct str mangled)
{
	struct buf line = { 0 };
	struct str name;

	if (!demangle_name(&line, mangled, DEMANGLE_CLONES)) {
		buf_str(&line, mangled);
		buf_puts(&line, "()");
	}
	buf_char(&line, ':');
	name = function_in_line(buf_view(&line));
	name = (struct str){ str_dup(a, name), name.n };
	buf_release(&line);
	return name;
}

/* GNU objdump says where an instruction comes from if the function's name or the line is another
 * than it said last; pprof forgets what it has read where objdump leaves out zeros. */
static void find_origin_gnu(struct binary *b, struct arena *a, const struct instruction *i,
			    struct listing *x)
{
	const struct symbol_frame *frames;
	size_t n = binary_frames(b, i->address, &frames);

	if (i->address != x->next)
		x->known = (struct origin){ 0 };
	x->next = i->address + i->size;
	if (!n)
		return;
	if (frames[0].name.n && !str_eq(frames[0].name, x->said.function)) {
		x->said = (struct origin){ .function = frames[0].name };
		x->known.function = name_function(a, frames[0].name);
	}
	if (frames[0].line && frames[0].line != x->said.line) {
		x->said.line = x->known.line = frames[0].line;
		x->known.file = path_base(frames[0].file.n ? frames[0].file : STR("???"));
	}
}

/* Adds the nodes before address `next`; they tell what the debug information does not. */
static struct weight take_places(const struct report_run *r, const struct routine *routine,
				 size_t *at, uint64_t next, struct origin *o)
{
	struct weight w = { 0 };

	for (; *at < routine->nplaces && routine->places[*at].address < next; ++*at) {
		const struct node *n = routine->places[*at].node;

		w.flat = int_add(w.flat, n->flat);
		w.flat_div = int_add(w.flat_div, n->flat_div);
		w.cum = int_add(w.cum, n->cum);
		w.cum_div = int_add(w.cum_div, n->cum_div);
		if (!o->file.n && n->info.file)
			o->file = path_base(profile_str(r->p, n->info.file));
		if (!o->line)
			o->line = n->info.line;
		if (!o->function.n)
			o->function = profile_str(r->p, n->info.name);
	}
	return w;
}

static void write_origin(struct buf *out, const struct origin *o)
{
	buf_char(out, ';');
	buf_str(out, o->function);
	if (o->function.n)
		buf_char(out, ' ');
	buf_str(out, o->file);
	if (o->file.n && o->line) {
		buf_char(out, ':');
		buf_int(out, o->line);
	}
}

static void value_cell(struct buf *out, const struct report_run *r, int64_t v)
{
	if (v)
		report_value_cell(out, r, v, 10);
	else
		buf_puts(out, "         .");
	buf_char(out, ' ');
}

/* `o` is NULL if it is that of the instruction before. */
static void write_instruction(struct buf *out, const struct report_run *r,
			      const struct instruction *i, const struct weight *w,
			      const struct origin *o)
{
	bool is_short = i->text.n < TEXT_WIDTH;

	if (o && !o->function.n && !o->file.n)
		o = NULL;
	if (o && !is_short) {
		buf_fill(out, ' ', LOCATION_COLUMN);
		write_origin(out, o);
		buf_char(out, '\n');
	}
	value_cell(out, r, divided(w->flat, w->flat_div));
	value_cell(out, r, divided(w->cum, w->cum_div));
	buf_printf(out, "%10jx: ", (uintmax_t)i->address);
	if (o && is_short) {
		buf_pad_right(out, i->text, TEXT_WIDTH);
		write_origin(out, o);
	} else {
		buf_str(out, i->text);
	}
	buf_char(out, '\n');
}

static bool same_origin(const struct origin *a, const struct origin *b)
{
	return a->line == b->line && str_eq(a->file, b->file) && str_eq(a->function, b->function);
}

static void write_instructions(struct buf *out, const struct report_run *r,
			       const struct routine *routine, struct arena *a,
			       const struct instructions *code)
{
	struct listing x = { .next = routine->start };
	size_t at = 0;

	for (size_t i = 0; i < code->n; i++) {
		uint64_t next = i + 1 < code->n ? code->at[i + 1].address : UINT64_MAX;
		struct origin here;
		struct weight w;

		if (r->params->asm_style.is_gnu)
			find_origin_gnu(routine->binary, a, &code->at[i], &x);
		else
			find_origin_llvm(routine->binary, code->at[i].address, &x.known);
		here = x.known;
		w = take_places(r, routine, &at, next, &here);
		write_instruction(out, r, &code->at[i], &w,
				  same_origin(&here, &x.shown) ? NULL : &here);
		x.shown = here;
	}
}

static void write_header(struct buf *out, const struct report_run *r, const struct routine *routine)
{
	int64_t flat = 0, cum = 0;

	for (size_t i = 0; i < routine->nplaces; i++) {
		flat = int_add(flat, routine->places[i].node->flat);
		cum = int_add(cum, routine->places[i].node->cum);
	}
	buf_puts(out, "ROUTINE ======================== ");
	buf_str(out, routine->name);
	buf_char(out, '\n');
	for (size_t i = 1; i < routine->nnames; i++) {
		buf_puts(out, "    AKA ======================== ");
		buf_str(out, routine->names[i].name);
		buf_char(out, '\n');
	}
	report_value_cell(out, r, flat, 10);
	buf_char(out, ' ');
	report_value_cell(out, r, cum, 10);
	buf_puts(out, " (flat, cum) ");
	report_percent(out, r, cum);
	buf_puts(out, " of Total\n");
}

static bool write_routine(struct buf *out, const struct report_run *r,
			  const struct routine *routine, struct err *e)
{
	struct arena scratch = { 0 };
	struct instructions code;
	bool ok = binary_disassemble(routine->binary, &scratch, routine->start, routine->end, &code,
				     e);

	if (ok) {
		write_header(out, r, routine);
		write_instructions(out, r, routine, &scratch, &code);
	}
	arena_release(&scratch);
	return ok;
}

static bool fail(const struct report_run *r, const struct wanted *w, bool has_address,
		 struct err *e)
{
	if (!w->is_address)
		return err_set(e, ERR_NOTFOUND, "no matches found for regexp %s",
			       r->params->argument);
	if (has_address)
		return err_set(e, ERR_NOTFOUND,
			       "address 0x%jx found in binary, but the corresponding symbols do "
			       "not have samples in the profile",
			       (uintmax_t)w->address);
	return err_set(e, ERR_NOTFOUND, "no matches found for address 0x%jx",
		       (uintmax_t)w->address);
}

static bool run(struct buf *out, struct report_run *r, struct err *e)
{
	struct wanted wanted = find_wanted(r);
	struct routines found = { 0 };
	struct buf text = { 0 }; /* the report fails before it writes anything */
	bool ok = true;

	open_binaries(r, &wanted, &found);
	if (found.all.n) {
		buf_puts(&text, "Total: ");
		report_value(&text, r, r->params->total);
		buf_char(&text, '\n');
	} else {
		ok = fail(r, &wanted, found.has_address, e);
	}
	for (size_t i = 0; i < found.all.n && ok; i++)
		ok = write_routine(&text, r, &found.all.at[i], e);
	if (ok)
		buf_str(out, buf_view(&text));
	buf_release(&text);
	for (size_t i = 0; i < found.binaries.n; i++)
		binary_close(found.binaries.at[i]);
	vec_release(&found.binaries);
	vec_release(&found.all);
	return ok;
}

const struct report report_disasm = {
	.name = "disasm",
	.flags = REPORT_GRAPH | REPORT_NO_EDGES | REPORT_UNTRIMMED | REPORT_ADDRESSES |
		 REPORT_NOINLINES | REPORT_OBJECTS | REPORT_OWN_UNITS | REPORT_UNSORTED,
	.run = run,
};
