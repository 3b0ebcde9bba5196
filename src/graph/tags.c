/* tags.c - label values seen at each node, for dot's nodelets.
 *
 * A node's label tag is all string labels of a sample joined to one text. Its numeric tags are the
 * values of `bytes`, kept apart by the label tag they came with.
 */
#include "graph/weights.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/unit.h"
#include "base/vec.h"

struct set_weight {
	uint32_t node, set;
	int64_t flat, flat_div, cum, cum_div;
};

struct tag_tally {
	const struct profile *p;
	const struct graph_params *params;
	struct map map;
	uint64_t seed;
	vec(struct set_weight) weights;
	uint32_t *text_of; /* by set: string of the joined labels, + 1 */
};

/* One tag of one node, before equal ones are summed. */
struct row {
	uint32_t node, label,
		name; /* strings; name: of a numeric tag, NONE: the label tag itself */
	uint32_t rank;
	struct node_tag tag;
};

static bool is_bytes(const struct profile *p, const struct label *l)
{
	return str_eq(profile_str(p, l->key), STR("bytes"));
}

bool tags_exist(const struct profile *p)
{
	for (uint32_t s = 0; s < p->nlabel_sets; s++)
		if (p->label_sets[s].nstrings || p->label_sets[s].nnumbers)
			return true;
	return false;
}

struct tag_tally *tag_tally_new(const struct profile *p, const struct graph_params *params)
{
	struct tag_tally *t = xmalloc(sizeof(*t));

	*t = (struct tag_tally){ .p = p, .params = params, .seed = map_seed() };
	return t;
}

static bool same_weight(const void *ctx, uint32_t index)
{
	const struct tag_tally *t = ((const void *const *)ctx)[0];
	const struct set_weight *want = ((const void *const *)ctx)[1], *w = &t->weights.at[index];

	return w->node == want->node && w->set == want->set;
}

void tag_tally_add(struct tag_tally *t, uint32_t node, uint32_t set, bool is_flat, int64_t w,
		   int64_t div)
{
	struct set_weight key = { .node = node, .set = set }, *x;
	const void *ctx[2] = { t, &key };
	uint64_t hash = hash_mix(t->seed, (uint64_t)node << 32 | set);
	uint32_t at = map_put(&t->map, hash, t->weights.n, same_weight, ctx);

	if (at == t->weights.n)
		vec_push(&t->weights, key);
	x = &t->weights.at[at];
	if (is_flat) {
		x->flat = int_add(x->flat, w);
		x->flat_div = int_add(x->flat_div, div);
	} else {
		x->cum = int_add(x->cum, w);
		x->cum_div = int_add(x->cum_div, div);
	}
}

static int compare_strs(const void *x, const void *y)
{
	return str_cmp(*(const struct str *)x, *(const struct str *)y);
}

/* "key:value" of all string labels, sorted, joined by \n (two characters: dot's line end). */
static uint32_t join_labels(struct arena *a, const struct profile *p, uint32_t set)
{
	uint32_t n = p->label_sets[set].nstrings;
	const struct label *l = set_labels(p, set);
	struct str *pairs = arena_many(a, n, struct str);
	struct buf text = { 0 };
	uint32_t string;

	for (uint32_t i = 0; i < n; i++) {
		text.n = 0;
		buf_str(&text, profile_str(p, l[i].key));
		buf_char(&text, ':');
		buf_str(&text, profile_str(p, l[i].text));
		pairs[i] = (struct str){ arena_copy(a, text.p, text.n), text.n };
	}
	if (n > 1)
		qsort(pairs, n, sizeof(*pairs), compare_strs);
	text.n = 0;
	for (uint32_t i = 0; i < n; i++) {
		if (i)
			buf_puts(&text, "\\n");
		buf_str(&text, pairs[i]);
	}
	string = strings_add(p->strings, buf_view(&text));
	buf_release(&text);
	return string;
}

static int compare_rows(const void *x, const void *y)
{
	const struct row *a = x, *b = y;

	if (a->node != b->node)
		return a->node < b->node ? -1 : 1;
	if (a->label != b->label)
		return a->label < b->label ? -1 : 1;
	if (a->name != b->name)
		return a->name < b->name ? -1 : 1;
	return a->rank < b->rank ? -1 : 1; /* the value that came first gives its name */
}

typedef vec(struct row) row_list;

static void push_row(row_list *rows, const struct set_weight *w, uint32_t label, uint32_t name,
		     const struct node_tag *tag)
{
	struct row r = { w->node, label, name, (uint32_t)rows->n, *tag };

	r.tag.flat = w->flat;
	r.tag.flat_div = w->flat_div;
	r.tag.cum = w->cum;
	r.tag.cum_div = w->cum_div;
	vec_push(rows, r);
}

static void push_rows(struct tag_tally *t, row_list *rows, const struct set_weight *w,
		      struct buf *text)
{
	const struct profile *p = t->p;
	const struct label_set *s = &p->label_sets[w->set];
	const struct label *l = set_labels(p, w->set);
	uint32_t label = t->text_of[w->set] - 1;

	if (label)
		push_row(rows, w, label, NONE, &(struct node_tag){ .name = profile_str(p, label) });
	for (uint32_t i = s->nstrings; i < s->nstrings + s->nnumbers; i++) {
		struct node_tag tag = { .value = l[i].number };
		uint32_t name;

		if (!is_bytes(p, &l[i]))
			continue;
		tag.unit = label_unit(p, t->params->units, l[i].key);
		text->n = 0;
		unit_label(text, l[i].number, tag.unit, t->params->tag_unit);
		name = strings_add(p->strings, buf_view(text));
		tag.name = profile_str(p, name);
		push_row(rows, w, label, name, &tag);
	}
}

/* Sums equal rows; returns how many are left. */
static size_t sum_rows(struct row *r, size_t n)
{
	size_t kept = 0;

	qsort(r, n, sizeof(*r), compare_rows);
	for (size_t i = 0; i < n; i++) {
		struct row *last = kept ? &r[kept - 1] : NULL;

		if (!last || last->node != r[i].node || last->label != r[i].label ||
		    last->name != r[i].name) {
			r[kept++] = r[i];
			continue;
		}
		last->tag.flat = int_add(last->tag.flat, r[i].tag.flat);
		last->tag.flat_div = int_add(last->tag.flat_div, r[i].tag.flat_div);
		last->tag.cum = int_add(last->tag.cum, r[i].tag.cum);
		last->tag.cum_div = int_add(last->tag.cum_div, r[i].tag.cum_div);
	}
	return kept;
}

static bool is_group_start(const struct row *rows, size_t i)
{
	return i == 0 || rows[i].node != rows[i - 1].node || rows[i].label != rows[i - 1].label ||
	       rows[i - 1].name == NONE;
}

/* Rows are sorted by node, label, and then the label tag comes last (NONE is the largest name). */
static void hand_out(struct arena *a, struct graph *g, const struct profile *p,
		     const struct row *rows, size_t n)
{
	struct node_tag *tags = arena_many(a, n, struct node_tag);
	struct node_tag *labels = arena_many(a, n, struct node_tag);
	struct tag_group *groups = arena_many(a, n, struct tag_group);

	for (size_t i = 0; i < n; i++) {
		struct node *node = &g->nodes[rows[i].node];

		if (i == 0 || rows[i].node != rows[i - 1].node) {
			node->labels = labels;
			node->groups = groups;
		}
		if (rows[i].name == NONE) {
			*labels++ = rows[i].tag;
			node->nlabels++;
			continue;
		}
		if (is_group_start(rows, i)) {
			*groups++ = (struct tag_group){ profile_str(p, rows[i].label), tags, 0 };
			node->ngroups++;
		}
		groups[-1].ntags++;
		*tags++ = rows[i].tag;
	}
}

void tag_tally_finish(struct tag_tally *t, struct arena *a, struct graph *g)
{
	struct arena scratch = { 0 };
	struct buf text = { 0 };
	row_list rows = { 0 };

	t->text_of = arena_many(&scratch, t->p->nlabel_sets, uint32_t);
	for (size_t i = 0; i < t->weights.n; i++) {
		uint32_t set = t->weights.at[i].set;

		if (!t->text_of[set])
			t->text_of[set] = 1 + join_labels(&scratch, t->p, set);
		push_rows(t, &rows, &t->weights.at[i], &text);
	}
	for (uint32_t i = 0; i < g->nnodes; i++)
		g->nodes[i].nlabels = g->nodes[i].ngroups = 0;
	hand_out(a, g, t->p, rows.at, rows.n ? sum_rows(rows.at, rows.n) : 0);
	vec_release(&rows);
	buf_release(&text);
	vec_release(&t->weights);
	map_release(&t->map);
	arena_release(&scratch);
	free(t);
}

struct tag_order {
	bool by_flat;
};

static int compare_tags(const void *x, const void *y, void *ctx)
{
	const struct node_tag *a = x, *b = y;
	bool by_flat = ((const struct tag_order *)ctx)->by_flat;

	if (!by_flat && a->cum != b->cum) {
		int64_t p = int_abs(a->cum), q = int_abs(b->cum);

		if (p != q)
			return p > q ? -1 : 1;
		return str_cmp(a->name, b->name);
	}
	if (a->flat != b->flat) {
		int64_t p = int_abs(a->flat), q = int_abs(b->flat);

		if (p != q)
			return p > q ? -1 : 1;
	}
	return str_cmp(a->name, b->name);
}

void node_tags_sort(struct node_tag *tags, size_t n, bool by_flat)
{
	struct tag_order order = { by_flat };

	if (n > 1)
		qsort_r(tags, n, sizeof(*tags), compare_tags, &order);
}
