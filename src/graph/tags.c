/* tags.c - label values seen at each node, for dot's nodelets.
 *
 * A node's label tag is all string labels of a sample joined to one text. Its numeric tags are the
 * values of `bytes`, kept apart by the label tag they came with.
 *
 * There is a sum for each node and text. Of texts that are too many for that, some are counted at a
 * time, and those that are too light as a whole, as most are then, not at all.
 */
#include "graph/weights.h"

#include <stdlib.h>

#include "base/parallel.h"
#include "base/unit.h"

enum { PARALLEL_SAMPLES = 20000, MAX_SUMS = 1 << 16 };

typedef vec(struct tag_row) row_list;

/* What the samples of one label set, or of several with the same text, add up to at a node. */
struct node_sum {
	int64_t flat, flat_div, cum, cum_div;
	uint32_t last;	/* sample, + 1 */
	uint32_t first; /* sample; if it is among the touched */
	bool is_touched;
};

struct tag_count {
	const struct profile *p;
	const struct tag_walk *walk;
	uint32_t *text_of;  /* by set: string of the joined labels; 0: none */
	bool *has_numbers;  /* by set */
	uint32_t *names;    /* by label: string, of numbers that are shown */
	uint32_t *group_of; /* by set: sets that have the same tags; NONE: it has none to show */
	uint32_t *set_of;   /* by group: one of its sets */
	uint32_t ngroups, batch; /* groups in all, and that are counted at a time */
	uint32_t *samples;	 /* that have a group: those of a batch after the other's */
};

/* One thread's share of a batch. */
struct share {
	const struct tag_count *c;
	uint32_t first_group;
	uint32_t first, end;   /* of `samples` */
	struct node_sum *sums; /* by group, then node */
	node_list touched, nodes;
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

/* ---- what sets stand for */

static void name_numbers(struct tag_count *c, uint32_t set, struct buf *text)
{
	const struct profile *p = c->p;
	const struct label_set *s = &p->label_sets[set];

	for (uint32_t i = s->first + s->nstrings; i < s->first + s->nstrings + s->nnumbers; i++) {
		const struct label *l = &p->labels[i];

		if (!is_bytes(p, l))
			continue;
		text->n = 0;
		unit_label(text, l->number, label_unit(p, c->walk->params->units, l->key),
			   c->walk->params->tag_unit);
		c->names[i] = strings_add(p->strings, buf_view(text));
		c->has_numbers[set] = true;
	}
}

static void read_sets(struct arena *a, struct tag_count *c)
{
	const struct profile *p = c->p;
	struct buf text = { 0 };
	uint32_t nlabels = 0;

	for (uint32_t s = 0; s < p->nlabel_sets; s++) {
		const struct label_set *set = &p->label_sets[s];

		if (set->first + set->nstrings + set->nnumbers > nlabels)
			nlabels = set->first + set->nstrings + set->nnumbers;
	}
	c->names = arena_many(a, nlabels, uint32_t);
	c->text_of = arena_many(a, p->nlabel_sets, uint32_t);
	c->has_numbers = arena_many(a, p->nlabel_sets, bool);
	for (uint32_t s = 0; s < p->nlabel_sets; s++) {
		c->text_of[s] = join_labels(a, p, s);
		name_numbers(c, s, &text);
	}
	buf_release(&text);
}

/* ---- the order of samples */

static int compare_sets(const void *x, const void *y, void *ctx)
{
	const struct tag_count *c = ctx;
	uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;

	if (c->text_of[a] != c->text_of[b])
		return c->text_of[a] < c->text_of[b] ? -1 : 1;
	return a < b ? -1 : a > b;
}

/* A tag weighs no more than all samples of its text. */
static bool *choose_sets(struct arena *a, struct tag_count *c)
{
	const struct profile *p = c->p;
	uint64_t *weights = arena_many(a, p->strings->n, uint64_t); /* by text */
	bool *is_shown = arena_many(a, p->nlabel_sets, bool);
	int64_t cut = c->walk->cut;

	for (uint32_t i = 0; i < p->nsamples; i++) {
		const struct sample *s = &p->samples[i];
		uint64_t *sum = &weights[c->text_of[s->labels]];
		uint64_t w = (uint64_t)int_abs(sample_values(p, s)[c->walk->params->value]);

		*sum = *sum + w < w ? UINT64_MAX : *sum + w;
	}
	for (uint32_t s = 0; s < p->nlabel_sets; s++)
		is_shown[s] = (c->text_of[s] || c->has_numbers[s]) &&
			      (cut <= 0 || weights[c->text_of[s]] >= (uint64_t)cut);
	return is_shown;
}

static void group_sets(struct arena *a, struct tag_count *c)
{
	const bool *is_shown = choose_sets(a, c);
	uint32_t n = 0, nsets = c->p->nlabel_sets, *sets = arena_many(a, nsets, uint32_t);

	c->group_of = arena_many(a, nsets, uint32_t);
	c->set_of = arena_many(a, nsets, uint32_t);
	for (uint32_t s = 0; s < nsets; s++) {
		c->group_of[s] = NONE;
		if (is_shown[s])
			sets[n++] = s;
	}
	if (n > 1)
		qsort_r(sets, n, sizeof(*sets), compare_sets, c);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t last = c->ngroups ? c->set_of[c->ngroups - 1] : NONE;

		if (last == NONE || c->text_of[last] != c->text_of[sets[i]] ||
		    c->has_numbers[last] || c->has_numbers[sets[i]])
			c->set_of[c->ngroups++] = sets[i];
		c->group_of[sets[i]] = c->ngroups - 1;
	}
	c->batch = MAX_SUMS / (c->walk->nnodes + 1) + 1;
}

/* Fills c->samples. Returns where in it those of each batch end. */
static uint32_t *order_samples(struct arena *a, struct tag_count *c)
{
	const struct profile *p = c->p;
	uint32_t nbatches = c->ngroups / c->batch + 1, at = 0;
	uint32_t *ends = arena_many(a, nbatches, uint32_t);

	c->samples = arena_many_raw(a, p->nsamples, uint32_t);
	for (uint32_t i = 0; i < p->nsamples; i++)
		if (c->group_of[p->samples[i].labels] != NONE)
			ends[c->group_of[p->samples[i].labels] / c->batch]++;
	for (uint32_t i = 0; i < nbatches; i++) {
		uint32_t n = ends[i];

		ends[i] = at;
		at += n;
	}
	for (uint32_t i = 0; i < p->nsamples; i++)
		if (c->group_of[p->samples[i].labels] != NONE)
			c->samples[ends[c->group_of[p->samples[i].labels] / c->batch]++] = i;
	return ends;
}

static int compare_rows(const void *x, const void *y)
{
	const struct tag_row *a = x, *b = y;

	if (a->node != b->node)
		return a->node < b->node ? -1 : 1;
	if (a->label != b->label)
		return a->label < b->label ? -1 : 1;
	if (a->name != b->name)
		return a->name < b->name ? -1 : 1;
	return a->rank < b->rank ? -1 : 1; /* the value that came first gives its name */
}

/* Sums equal rows; returns how many are left. */
static size_t sum_rows(struct tag_row *r, size_t n)
{
	size_t kept = 0;

	if (n > 1)
		qsort(r, n, sizeof(*r), compare_rows);
	for (size_t i = 0; i < n; i++) {
		struct tag_row *last = kept ? &r[kept - 1] : NULL;

		if (!last || last->node != r[i].node || last->label != r[i].label ||
		    last->name != r[i].name) {
			r[kept++] = r[i];
			continue;
		}
		last->flat = int_add(last->flat, r[i].flat);
		last->flat_div = int_add(last->flat_div, r[i].flat_div);
		last->cum = int_add(last->cum, r[i].cum);
		last->cum_div = int_add(last->cum_div, r[i].cum_div);
	}
	return kept;
}

/* ---- counting */

static struct node_sum *touch(struct share *x, uint32_t place, uint32_t sample)
{
	struct node_sum *sum = &x->sums[place];

	if (!sum->is_touched) {
		sum->is_touched = true;
		sum->first = sample;
		vec_push(&x->touched, place);
	}
	return sum;
}

static void add_sample(struct share *x, uint32_t sample)
{
	const struct tag_walk *walk = x->c->walk;
	const struct sample *s = &x->c->p->samples[sample];
	const int64_t *values = sample_values(x->c->p, s);
	int64_t w = values[walk->params->value], div = walk->params->mean ? values[0] : 0;
	uint32_t start = (x->c->group_of[s->labels] - x->first_group) * walk->nnodes, leaf;

	if (!w && !div)
		return;
	x->nodes.n = 0;
	leaf = walk->list(walk->ctx, sample, &x->nodes);
	for (size_t i = 0; i < x->nodes.n; i++) {
		struct node_sum *sum = touch(x, start + x->nodes.at[i], sample);

		if (sum->last == sample + 1)
			continue;
		sum->last = sample + 1;
		sum->cum = int_add(sum->cum, w);
		sum->cum_div = int_add(sum->cum_div, div);
	}
	if (leaf != NONE) {
		x->sums[start + leaf].flat = int_add(x->sums[start + leaf].flat, w);
		x->sums[start + leaf].flat_div = int_add(x->sums[start + leaf].flat_div, div);
	}
}

static void count_share(void *ctx, size_t index)
{
	struct share *x = (struct share *)ctx + index;

	for (uint32_t i = x->first; i < x->end && !stop_asked_at(x->c->walk->params->stop, i); i++)
		add_sample(x, x->c->samples[i]);
}

/* Adds all sums of a share to another's, whose samples came before, and clears them. */
static void join_share(struct share *to, struct share *x)
{
	for (size_t i = 0; i < x->touched.n; i++) {
		struct node_sum *from = &x->sums[x->touched.at[i]];
		struct node_sum *sum = touch(to, x->touched.at[i], from->first);

		sum->flat = int_add(sum->flat, from->flat);
		sum->flat_div = int_add(sum->flat_div, from->flat_div);
		sum->cum = int_add(sum->cum, from->cum);
		sum->cum_div = int_add(sum->cum_div, from->cum_div);
		*from = (struct node_sum){ 0 };
	}
	x->touched.n = 0;
}

/* Whose tag it is, see struct tag_row. */
struct tag_key {
	uint32_t node, label, name, number;
};

static void push_row(row_list *rows, const struct node_sum *x, const struct tag_key *k)
{
	vec_push(rows, (struct tag_row){ k->node, k->label, k->name, k->number,
					 (uint64_t)x->first << 32 | k->number, x->flat, x->flat_div,
					 x->cum, x->cum_div });
}

/* Makes rows of the sums, and clears them. */
static void flush_share(struct share *x, row_list *rows)
{
	const struct tag_count *c = x->c;

	for (size_t k = 0; k < x->touched.n; k++) {
		struct node_sum *sum = &x->sums[x->touched.at[k]];
		uint32_t node = x->touched.at[k] % c->walk->nnodes;
		uint32_t set = c->set_of[x->first_group + x->touched.at[k] / c->walk->nnodes];
		const struct label_set *s = &c->p->label_sets[set];
		uint32_t numbers = s->first + s->nstrings, label = c->text_of[set];

		if (label)
			push_row(rows, sum, &(struct tag_key){ node, label, NONE, 0 });
		for (uint32_t i = numbers; c->has_numbers[set] && i < numbers + s->nnumbers; i++)
			if (is_bytes(c->p, &c->p->labels[i]))
				push_row(rows, sum,
					 &(struct tag_key){ node, label, c->names[i], i });
		*sum = (struct node_sum){ 0 };
	}
	x->touched.n = 0;
}

/* Counts the samples from `first` to `end` of c->samples, which are of one batch. */
static void count_batch(const struct tag_count *c, struct share *shares, uint32_t batch,
			uint32_t first, uint32_t end)
{
	size_t n = end - first < PARALLEL_SAMPLES ? 1 : (size_t)c->walk->params->threads;

	for (size_t i = 0; i < n; i++) {
		shares[i].first_group = batch * c->batch;
		shares[i].first = first + (uint32_t)((uint64_t)(end - first) * i / n);
		shares[i].end = first + (uint32_t)((uint64_t)(end - first) * (i + 1) / n);
	}
	parallel_for((int)n, n, count_share, shares);
	for (size_t i = 1; i < n; i++)
		join_share(&shares[0], &shares[i]);
}

static void count_batches(struct arena *a, struct tag_count *c, row_list *rows)
{
	size_t nshares = (size_t)c->walk->params->threads;
	uint32_t *ends = order_samples(a, c), first = 0;
	uint32_t ngroups = c->ngroups < c->batch ? c->ngroups : c->batch;
	struct share *shares = arena_many(a, nshares, struct share);

	for (size_t i = 0; i < nshares; i++) {
		shares[i].c = c;
		shares[i].sums = arena_many(a, (size_t)ngroups * c->walk->nnodes, struct node_sum);
	}
	for (uint32_t batch = 0; batch * c->batch < c->ngroups; batch++) {
		size_t done = rows->n;

		count_batch(c, shares, batch, first, ends[batch]);
		flush_share(&shares[0], rows);
		rows->n = done + sum_rows(rows->at + done, rows->n - done);
		first = ends[batch];
	}
	for (size_t i = 0; i < nshares; i++) {
		vec_release(&shares[i].touched);
		vec_release(&shares[i].nodes);
	}
}

/* ---- the nodes' tags */

static bool is_group_start(const struct tag_row *rows, size_t i)
{
	return i == 0 || rows[i].node != rows[i - 1].node || rows[i].label != rows[i - 1].label ||
	       rows[i - 1].name == NONE;
}

static struct node_tag make_tag(const struct tag_walk *walk, const struct tag_row *r)
{
	const struct profile *p = walk->p;
	struct node_tag tag = {
		.flat = r->flat, .flat_div = r->flat_div, .cum = r->cum, .cum_div = r->cum_div
	};

	tag.name = profile_str(p, r->name == NONE ? r->label : r->name);
	if (r->name != NONE) {
		tag.value = p->labels[r->number].number;
		tag.unit = label_unit(p, walk->params->units, p->labels[r->number].key);
	}
	return tag;
}

/* Rows are sorted by node, label, and then the label tag comes last (NONE is the largest name). */
void tags_hand_out(struct arena *a, struct graph *g, const struct tag_list *l,
		   const struct tag_walk *walk)
{
	const struct tag_row *rows = l->rows;
	size_t n = l->n;
	struct node_tag *tags = arena_many(a, n, struct node_tag);
	struct node_tag *labels = arena_many(a, n, struct node_tag);
	struct tag_group *groups = arena_many(a, n, struct tag_group);

	for (size_t i = 0; i < n; i++) {
		uint32_t number = rows[i].node;
		struct node *node = &g->nodes[walk->nodes ? walk->nodes[number] : number];

		if (i == 0 || rows[i].node != rows[i - 1].node) {
			node->labels = labels;
			node->groups = groups;
		}
		if (rows[i].name == NONE) {
			*labels++ = make_tag(walk, &rows[i]);
			node->nlabels++;
			continue;
		}
		if (is_group_start(rows, i)) {
			*groups++ =
				(struct tag_group){ profile_str(walk->p, rows[i].label), tags, 0 };
			node->ngroups++;
		}
		groups[-1].ntags++;
		*tags++ = make_tag(walk, &rows[i]);
	}
}

void tags_count(struct arena *a, struct tag_list *l, const struct tag_walk *walk)
{
	struct tag_count c = { .p = walk->p, .walk = walk };
	struct arena scratch = { 0 };
	row_list rows = { 0 };
	size_t kept = 0, n;

	read_sets(&scratch, &c);
	group_sets(&scratch, &c);
	count_batches(&scratch, &c, &rows);
	n = sum_rows(rows.at, rows.n);
	for (size_t i = 0; i < n; i++)
		if (int_abs(rows.at[i].flat) >= walk->cut || int_abs(rows.at[i].cum) >= walk->cut)
			rows.at[kept++] = rows.at[i];
	l->n = rows.n = kept;
	l->rows = vec_adopt(a, &rows);
	arena_release(&scratch);
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
