/* callgrind.c - valgrind's format, for KCachegrind: -callgrind. */
#include "report/report.h"

#include <stdio.h>
#include <string.h>

#include "base/map.h"
#include "base/unit.h"
#include "base/vec.h"

/* Names are written once, and then by number. */
struct name_table {
	uint32_t *number; /* by string */
	uint32_t n;
};

/* Nodes of one (file, name) that are different functions get numbers of their own. */
struct function_key {
	uint32_t parent; /* node; in a call tree, else NONE */
	struct node_info info;
};

struct callgrind_writer {
	struct buf *out;
	struct report_run *r;
	struct name_table objects, files, functions;
	uint32_t *function_of;	   /* by node: its function, or NONE */
	uint32_t *rank, *siblings; /* by function: its rank among those of the same name, and how
				      many there are (at the one that came first) */
	uint32_t *first;	   /* by function: the first of the same name */
};

static void put_name(struct callgrind_writer *w, struct name_table *t, uint32_t string,
		     struct str text)
{
	if (!text.n)
		return;
	if (t->number[string]) {
		buf_printf(w->out, "(%u)", t->number[string]);
		return;
	}
	t->number[string] = ++t->n;
	buf_printf(w->out, "(%u) ", t->n);
	buf_str(w->out, text);
}

static void put_string(struct callgrind_writer *w, struct name_table *t, uint32_t string)
{
	put_name(w, t, string, profile_str(w->r->p, string));
}

/* Relative to the node before, where that is shorter. */
static void put_address(struct buf *out, const struct node_info *before, uint64_t address)
{
	char hex[20], relative[24];

	snprintf(hex, sizeof(hex), "0x%llx", (unsigned long long)address);
	if (before && before->address == address) {
		buf_char(out, '*');
		return;
	}
	if (before) {
		snprintf(relative, sizeof(relative), "%+lld",
			 (long long)(address - before->address));
		if (strlen(relative) < strlen(hex)) {
			buf_puts(out, relative);
			return;
		}
	}
	buf_puts(out, hex);
}

static int64_t scaled(const struct report_run *r, int64_t v)
{
	struct str unit;

	return int_from_double(unit_scale(v, r->sample_unit, r->unit, &unit));
}

/* ---- functions of the same name */

struct function_table {
	vec(struct function_key) keys;
	struct map map, names;
};

static bool same_function(const void *ctx, uint32_t index)
{
	const struct function_table *t = ((const void *const *)ctx)[0];
	const struct function_key *want = ((const void *const *)ctx)[1], *k = &t->keys.at[index];

	return k->parent == want->parent && memcmp(&k->info, &want->info, sizeof(k->info)) == 0;
}

static bool same_name(const void *ctx, uint32_t index)
{
	const struct function_table *t = ((const void *const *)ctx)[0];
	const struct function_key *want = ((const void *const *)ctx)[1], *k = &t->keys.at[index];

	return k->info.name == want->info.name && k->info.file == want->info.file;
}

static void number_functions(struct callgrind_writer *w)
{
	const struct graph *g = &w->r->g;
	struct function_table t = { 0 };
	uint64_t seed = map_seed();

	for (uint32_t i = 0; i < g->norder; i++) {
		const struct node *n = &g->nodes[g->order[i]];
		struct function_key key = { NONE, n->info };
		const void *ctx[2] = { &t, &key };
		uint64_t hash = hash_mix(seed, (uint64_t)key.info.name << 32 | key.info.file);
		uint32_t f, first;

		if (g->is_tree && n->nin)
			key.parent = g->edges[n->in[0]].from;
		key.info.address = 0;
		key.info.line = key.info.column = 0;
		f = map_put(&t.map, hash_mix(hash, (uint64_t)key.parent << 32 | key.info.object),
			    t.keys.n, same_function, ctx);
		w->function_of[g->order[i]] = f;
		if (f != t.keys.n)
			continue;
		vec_push(&t.keys, key);
		first = map_put(&t.names, hash, f, same_name, ctx);
		w->first[f] = first;
		w->rank[f] = ++w->siblings[first];
	}
	vec_release(&t.keys);
	map_release(&t.map);
	map_release(&t.names);
}

static void put_callee_name(struct callgrind_writer *w, uint32_t node)
{
	const struct node *n = &w->r->g.nodes[node];
	uint32_t f = w->function_of[node], siblings;
	struct buf text = { 0 };
	uint32_t string;

	if (f == NONE) /* not among the nodes that are shown */
		return;
	siblings = w->siblings[w->first[f]];
	buf_str(&text, profile_str(w->r->p, n->info.name));
	if (siblings > 1)
		buf_printf(&text, " [%u/%u]", w->rank[f], siblings);
	string = strings_add(w->r->p->strings, buf_view(&text));
	put_name(w, &w->functions, string, buf_view(&text));
	buf_release(&text);
}

static void put_header(struct callgrind_writer *w, const struct node_info *i)
{
	buf_puts(w->out, "\nob=");
	put_string(w, &w->objects, i->object);
	buf_puts(w->out, "\nfl=");
	put_string(w, &w->files, i->file);
	buf_puts(w->out, "\nfn=");
	put_string(w, &w->functions, i->name);
	buf_char(w->out, '\n');
}

static void put_node(struct callgrind_writer *w, const struct node *n, const struct node *before)
{
	const struct graph *g = &w->r->g;
	const struct node_info *i = &n->info, *b = before ? &before->info : NULL;

	if (!b || b->object != i->object || b->file != i->file || b->name != i->name)
		put_header(w, i);
	put_address(w->out, b, i->address);
	buf_printf(w->out, " %lld %lld\n", (long long)i->line,
		   (long long)scaled(w->r, node_flat(n)));
	for (uint32_t k = 0; k < n->nout; k++) {
		const struct edge *e = &g->edges[n->out[k]];
		const struct node *to = &g->nodes[e->to];

		buf_puts(w->out, "cfl=");
		put_string(w, &w->files, to->info.file);
		buf_puts(w->out, "\ncfn=");
		put_callee_name(w, e->to);
		buf_puts(w->out, "\ncalls=0 ");
		put_address(w->out, b, to->info.address);
		buf_printf(w->out, " %lld\n* * %lld\n", (long long)to->info.line,
			   (long long)scaled(w->r, e->weight));
	}
}

static bool run(struct buf *out, struct report_run *r, struct err *e)
{
	const struct graph *g = &r->g;
	const struct profile *p = r->p;
	/* Names with a suffix are new strings, at most one per node. */
	size_t nstrings = p->strings->n + g->norder + 1;
	struct callgrind_writer w = { .out = out, .r = r };
	const struct node *before = NULL;

	(void)e;
	w.objects.number = arena_many(r->a, nstrings, uint32_t);
	w.files.number = arena_many(r->a, nstrings, uint32_t);
	w.functions.number = arena_many(r->a, nstrings, uint32_t);
	w.function_of = arena_many(r->a, g->nnodes, uint32_t);
	memset(w.function_of, 0xff, g->nnodes * sizeof(*w.function_of)); /* NONE */
	w.rank = arena_many(r->a, g->norder, uint32_t);
	w.siblings = arena_many(r->a, g->norder, uint32_t);
	w.first = arena_many(r->a, g->norder, uint32_t);
	number_functions(&w);
	buf_puts(out, "positions: instr line\nevents: ");
	buf_puts(out, r->params->mean ? "mean_" : "");
	buf_str(out, profile_str(p, p->types[r->params->value].type));
	buf_char(out, '(');
	buf_str(out, r->unit);
	buf_puts(out, ")\n");
	for (uint32_t i = 0; i < g->norder; i++) {
		const struct node *n = &g->nodes[g->order[i]];

		put_node(&w, n, before);
		before = n;
	}
	return true;
}

const struct report report_callgrind = {
	.name = "callgrind",
	.flags = REPORT_GRAPH | REPORT_UNTRIMMED | REPORT_ADDRESSES | REPORT_OBJECTS | REPORT_TREE |
		 REPORT_BINARY | REPORT_UNDIVIDED,
	.extension = "callgraph.out",
	.run = run,
};
