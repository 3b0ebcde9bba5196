/* disasm.c - instructions with their weights: -disasm. */
#include "report/report.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/number.h"
#include "symbol/symbol.h"

/* What was asked for: names that match, and an address if the text is one. */
struct wanted {
	bool is_address;
	uint64_t address;
	bool *files; /* by string: binaries that have a node of a matching name */
};

static struct wanted find_wanted(struct report_run *r)
{
	struct wanted w = { .files = arena_many(r->a, r->p->strings->n, bool) };

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
static void open_binaries(struct report_run *r, const struct wanted *w)
{
	struct buf notes = { 0 };
	struct err e;

	for (uint32_t i = 0; i < r->p->nmappings; i++) {
		const struct mapping *m = &r->p->mappings[i];
		struct object_place place = {
			.start = m->start,
			.limit = m->limit,
			.offset = m->offset,
			.kernel_symbol = profile_str(r->p, m->kernel_symbol),
		};
		struct object o;
		const char *path;

		if (!is_wanted(w, m))
			continue;
		path = str_dup(r->a, profile_str(r->p, m->file));
		if (!object_open(&o, path, &e)) {
			buf_printf(&notes, "%s\n", e.text);
			continue;
		}
		if (!object_check_base(&o, path, &place, &e))
			buf_printf(&notes, "%s\n", e.text);
		object_close(&o);
	}
	buf_to_fd(&notes, STDOUT_FILENO);
	buf_flush(&notes, &e);
	buf_release(&notes);
}

static bool run(struct buf *out, struct report_run *r, struct err *e)
{
	struct wanted wanted = find_wanted(r);

	(void)out;
	open_binaries(r, &wanted);
	if (wanted.is_address)
		return err_set(e, ERR_NOTFOUND, "no matches found for address 0x%jx",
			       (uintmax_t)wanted.address);
	return err_set(e, ERR_NOTFOUND, "no matches found for regexp %s", r->params->argument);
}

const struct report report_disasm = {
	.name = "disasm",
	.flags = REPORT_GRAPH | REPORT_NO_EDGES | REPORT_UNTRIMMED | REPORT_ADDRESSES |
		 REPORT_NOINLINES | REPORT_OBJECTS | REPORT_OWN_UNITS,
	.run = run,
};
