/* tags.c - label values seen at each node, for dot's nodelets.
 *
 * A node's label tag is all string labels of a sample joined to one text. Its numeric tags are the
 * values of `bytes`, kept apart by the label tag they came with.
 *
 * Samples are taken in the order of their texts, so that a few sums for each node are all that is
 * written to, and what is too light to be shown is known, and forgotten, as soon as a text is done.
 * Texts that are too light as a whole, as most are where there are many, are not looked at.
 */
#include "graph/weights.h"

#include <stdlib.h>

#include "base/parallel.h"
#include "base/unit.h"

enum { PARALLEL_SAMPLES = 20000, PIECES_PER_THREAD = 4 };

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
	uint32_t *text_of; /* by set: string of the joined labels; 0: none */
	bool *has_numbers; /* by set */
	bool *is_shown;	   /* by set: has it tags, and may they reach the cut? */
	uint32_t *names;   /* by label: string, of numbers that are shown */
	uint32_t *samples; /* in the order of their texts, then sets */
	uint32_t nsamples; /* of those with anything to show */
	struct piece {
		const struct tag_count *c;
		uint32_t first, end; /* of `samples` */
		row_list rows;
	} * pieces;
	size_t npieces;
};

/* One thread's, for a piece. */
struct tally {
	const struct tag_count *c;
	struct node_sum *sums; /* by node */
	node_list touched, nodes;
	row_list rows;
	size_t done; /* rows of earlier texts */
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

/* By set: where its samples begin. */
static uint32_t *place_sets(struct arena *a, struct tag_count *c)
{
	const struct profile *p = c->p;
	uint32_t *sets = arena_many(a, p->nlabel_sets, uint32_t);
	uint32_t *place = arena_many(a, p->nlabel_sets, uint32_t), at = 0;

	for (uint32_t i = 0; i < p->nsamples; i++)
		place[p->samples[i].labels] += c->is_shown[p->samples[i].labels];
	for (uint32_t s = 0; s < p->nlabel_sets; s++)
		sets[s] = s;
	qsort_r(sets, p->nlabel_sets, sizeof(*sets), compare_sets, c);
	for (uint32_t i = 0; i < p->nlabel_sets; i++) {
		uint32_t n = place[sets[i]];

		place[sets[i]] = at;
		at += n;
	}
	c->nsamples = at;
	return place;
}

/* A tag weighs no more than all samples of its text. */
static void choose_sets(struct arena *a, struct tag_count *c)
{
	const struct profile *p = c->p;
	uint64_t *weights = arena_many(a, p->strings->n, uint64_t); /* by text */
	int64_t cut = c->walk->cut;

	c->is_shown = arena_many(a, p->nlabel_sets, bool);
	for (uint32_t i = 0; i < p->nsamples; i++) {
		const struct sample *s = &p->samples[i];
		uint64_t *sum = &weights[c->text_of[s->labels]];
		uint64_t w = (uint64_t)int_abs(sample_values(p, s)[c->walk->params->value]);

		*sum = *sum + w < w ? UINT64_MAX : *sum + w;
	}
	for (uint32_t s = 0; s < p->nlabel_sets; s++)
		c->is_shown[s] = (c->text_of[s] || c->has_numbers[s]) &&
				 (cut <= 0 || weights[c->text_of[s]] >= (uint64_t)cut);
}

static void order_samples(struct arena *a, struct tag_count *c)
{
	const struct profile *p = c->p;
	uint32_t *place = place_sets(a, c), *all = arena_many(a, p->nsamples, uint32_t);

	for (uint32_t i = 0; i < p->nsamples; i++)
		if (c->is_shown[p->samples[i].labels])
			all[place[p->samples[i].labels]++] = i;
	c->samples = all;
}

static uint32_t text_at(const struct tag_count *c, uint32_t i)
{
	return c->text_of[c->p->samples[c->samples[i]].labels];
}

static void cut_pieces(struct arena *a, struct tag_count *c)
{
	c->npieces = c->nsamples < PARALLEL_SAMPLES
			     ? 1
			     : (size_t)c->walk->params->threads * PIECES_PER_THREAD;
	c->pieces = arena_many(a, c->npieces, struct piece);
	for (size_t i = 0; i < c->npieces; i++)
		c->pieces[i] =
			(struct piece){ .c = c,
					.first = (uint32_t)(c->nsamples * i / c->npieces),
					.end = (uint32_t)(c->nsamples * (i + 1) / c->npieces) };
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

static void touch(struct tally *t, uint32_t node, uint32_t sample)
{
	struct node_sum *x = &t->sums[node];

	if (x->is_touched)
		return;
	x->is_touched = true;
	x->first = sample;
	vec_push(&t->touched, node);
}

static void add_sample(struct tally *t, uint32_t sample)
{
	const struct tag_walk *walk = t->c->walk;
	const int64_t *values = sample_values(t->c->p, &t->c->p->samples[sample]);
	int64_t w = values[walk->params->value], div = walk->params->mean ? values[0] : 0;
	uint32_t leaf;

	if (!w && !div)
		return;
	t->nodes.n = 0;
	leaf = walk->list(walk->ctx, sample, &t->nodes);
	for (size_t i = 0; i < t->nodes.n; i++) {
		uint32_t node = t->nodes.at[i];
		struct node_sum *x = &t->sums[node];

		if (x->last == sample + 1)
			continue;
		x->last = sample + 1;
		touch(t, node, sample);
		x->cum = int_add(x->cum, w);
		x->cum_div = int_add(x->cum_div, div);
	}
	if (leaf != NONE) {
		t->sums[leaf].flat = int_add(t->sums[leaf].flat, w);
		t->sums[leaf].flat_div = int_add(t->sums[leaf].flat_div, div);
	}
}

static void push_row(struct tally *t, uint32_t node, uint32_t label, uint32_t name, uint32_t number)
{
	const struct node_sum *x = &t->sums[node];

	vec_push(&t->rows,
		 (struct tag_row){ node, label, name, number, (uint64_t)x->first << 32 | number,
				   x->flat, x->flat_div, x->cum, x->cum_div });
}

/* Makes rows of the sums, and clears them. */
static void flush_set(struct tally *t, uint32_t set)
{
	const struct tag_count *c = t->c;
	const struct label_set *s = &c->p->label_sets[set];
	uint32_t numbers = s->first + s->nstrings, label = c->text_of[set];

	for (size_t k = 0; k < t->touched.n; k++) {
		uint32_t node = t->touched.at[k];

		if (label)
			push_row(t, node, label, NONE, 0);
		for (uint32_t i = numbers; c->has_numbers[set] && i < numbers + s->nnumbers; i++)
			if (is_bytes(c->p, &c->p->labels[i]))
				push_row(t, node, label, c->names[i], i);
		t->sums[node] = (struct node_sum){ 0 };
	}
	t->touched.n = 0;
}

/* All that has the text of the last rows has been counted, or will be summed up with others. */
static void end_text(struct tally *t, bool is_whole)
{
	struct tag_row *rows = t->rows.at + t->done;
	size_t n = sum_rows(rows, t->rows.n - t->done), kept = 0;
	int64_t cut = is_whole ? t->c->walk->cut : 0;

	for (size_t i = 0; i < n; i++)
		if (int_abs(rows[i].flat) >= cut || int_abs(rows[i].cum) >= cut)
			rows[kept++] = rows[i];
	t->rows.n = t->done += kept;
}

static void count_piece(void *ctx, size_t index)
{
	struct piece *x = (struct piece *)ctx + index;
	const struct tag_count *c = x->c;
	const struct sample *samples = c->p->samples;
	struct tally t = { .c = c, .sums = xcalloc(c->walk->nnodes, sizeof(*t.sums)) };
	uint32_t begun = x->first; /* the text at hand */

	for (uint32_t i = x->first; i < x->end && !stop_asked_at(c->walk->params->stop, i); i++) {
		uint32_t set = samples[c->samples[i]].labels;
		uint32_t next = i + 1 < x->end ? samples[c->samples[i + 1]].labels : NONE;
		bool ends_text = next == NONE || c->text_of[next] != c->text_of[set];

		add_sample(&t, c->samples[i]);
		if (ends_text || (next != set && (c->has_numbers[set] || c->has_numbers[next])))
			flush_set(&t, set);
		if (ends_text) {
			bool is_cut_before = begun && text_at(c, begun - 1) == c->text_of[set];
			bool is_cut_after =
				i + 1 < c->nsamples && text_at(c, i + 1) == c->text_of[set];

			end_text(&t, !is_cut_before && !is_cut_after);
			begun = i + 1;
		}
	}
	x->rows = t.rows;
	free(t.sums);
	vec_release(&t.touched);
	vec_release(&t.nodes);
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
		struct node *node = &g->nodes[rows[i].node];

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

	read_sets(&scratch, &c);
	choose_sets(&scratch, &c);
	order_samples(&scratch, &c);
	cut_pieces(&scratch, &c);
	parallel_for(walk->params->threads, c.npieces, count_piece, c.pieces);
	for (size_t i = 0; i < c.npieces; i++) {
		row_list *r = &c.pieces[i].rows;

		vec_reserve(&rows, r->n);
		if (r->n)
			memcpy(rows.at + rows.n, r->at, r->n * sizeof(*r->at));
		rows.n += r->n;
		vec_release(r);
	}
	l->n = sum_rows(rows.at, rows.n);
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
