/* api_chart.c - stacks in order of time, a lane for each thread.
 *
 * A sample stands for the time until the next of its thread, unless that comes much later than
 * usual: then the thread was not running. Of samples that fall on the same pixel the first is
 * shown, and frames that go on are one box: so an answer has as many boxes as can be seen, however
 * many samples there are. */
#include "web/names.h"

#include <stdlib.h>

#include "base/int.h"
#include "base/map.h"
#include "base/number.h"
#include "base/vec.h"

enum {
	MOST_LANES = 24,     /* that are shown */
	MOST_THREADS = 4096, /* of others nothing is told */
	MOST_BOXES = 40000,
	MOST_FRAMES = 128, /* of a stack, from its root */
	MIN_COLUMNS = 16,
	MAX_COLUMNS = 4000,
	USUAL_COLUMNS = 1000,
	NDELTAS = 256, /* that tell how often a thread is sampled */
	LANE_KEYS = 4,
};

struct lane {
	struct label label[LANE_KEYS]; /* key 0: it has none of that kind */
	uint64_t nticks;	       /* in the window */
	int64_t last_at, gap;	       /* gap is 0 of those that are not shown */
	uint32_t ndeltas;
	int64_t *deltas;    /* between its ticks */
	vec(uint32_t) kept; /* ticks, at most one for each pixel */
	vec(int64_t) until; /* for each of these: the last tick that it stands for */
};

struct chart {
	struct api_call *q;
	struct report_run *r;
	const struct profile_times *t;
	struct time_range window;
	int64_t from, to; /* of the window, by the ticks' clock */
	int64_t ncolumns;
	struct frames frames;
	uint32_t *ids;	       /* of frames */
	uint32_t *function_of; /* by node: its number in the answer, from 1 */
	uint32_t nfunctions;
	struct buf functions;
	uint32_t *sample_of; /* by row, from 1 */
	uint32_t nrows;
	uint32_t *lane_of; /* by label set, from 1 */
	struct map by_label;
	vec(struct lane) lanes;
	vec(uint32_t) order; /* of those that are shown */
	size_t nboxes;
	bool is_cut;
};

/* ---- lanes */

/* What tells threads apart, as profilers name it; the first of each kind that is there. */
static const char *const lane_keys[LANE_KEYS][5] = {
	{ "comm", "thread_name", "thread name", "thread", NULL },
	{ "pid", "process", NULL },
	{ "tid", "thread_id", "thread id", "thread.id", NULL },
	{ "goroutine", "goroutine_id", "goroutine id", NULL },
};

static bool is_lane_key(struct str key, size_t kind)
{
	for (size_t i = 0; lane_keys[kind][i]; i++)
		if (str_eq(key, str_of(lane_keys[kind][i])))
			return true;
	return false;
}

static void read_lane(const struct profile *p, uint32_t set, struct label label[LANE_KEYS])
{
	const struct label_set *s = &p->label_sets[set];
	const struct label *labels = set_labels(p, set);

	memset(label, 0, LANE_KEYS * sizeof(*label));
	for (uint32_t i = 0; i < s->nstrings + s->nnumbers; i++)
		for (size_t kind = 0; kind < LANE_KEYS; kind++)
			if (!label[kind].key && is_lane_key(profile_str(p, labels[i].key), kind)) {
				label[kind].key = labels[i].key;
				label[kind].text = i < s->nstrings ? labels[i].text : 0;
				label[kind].number = i < s->nstrings ? 0 : labels[i].number;
			}
}

struct lane_key {
	const struct chart *c;
	const struct label *label;
};

static bool same_lane(const void *ctx, uint32_t index)
{
	const struct lane_key *key = ctx;
	const struct label *a = key->c->lanes.at[index].label, *b = key->label;

	for (size_t i = 0; i < LANE_KEYS; i++)
		if (a[i].key != b[i].key || a[i].text != b[i].text || a[i].number != b[i].number)
			return false;
	return true;
}

/* NULL: there are too many. */
static struct lane *find_lane(struct chart *c, uint32_t set)
{
	struct label label[LANE_KEYS];
	struct lane_key key = { c, label };
	uint64_t hash = map_seed();

	if (!c->lane_of[set]) {
		uint32_t i;

		read_lane(c->r->p, set, label);
		for (size_t k = 0; k < LANE_KEYS; k++)
			hash = hash_mix(hash ^ label[k].key,
					(uint64_t)label[k].text << 32 ^ (uint64_t)label[k].number);
		if (c->lanes.n == MOST_THREADS) {
			c->is_cut = true;
			return NULL;
		}
		i = map_put(&c->by_label, hash, c->lanes.n, same_lane, &key);
		if (i == c->lanes.n) {
			struct lane lane = { .last_at = INT64_MIN };

			memcpy(lane.label, label, sizeof(label));
			vec_push(&c->lanes, lane);
		}
		c->lane_of[set] = i + 1;
	}
	return &c->lanes.at[c->lane_of[set] - 1];
}

/* "worker 12, pid 10" is as much as there is to say. */
static void put_lane_name(struct buf *out, const struct profile *p, const struct lane *l)
{
	struct buf text = { 0 };

	for (size_t i = 0; i < LANE_KEYS; i++) {
		if (!l->label[i].key)
			continue;
		buf_puts(&text, text.n ? ", " : "");
		if (i) {
			buf_str(&text, profile_str(p, l->label[i].key));
			buf_char(&text, ' ');
		}
		if (l->label[i].text)
			buf_str(&text, profile_str(p, l->label[i].text));
		else
			buf_int(&text, l->label[i].number);
	}
	json_put(out, text.n ? buf_view(&text) : STR("all samples"));
	buf_release(&text);
}

/* ---- which ticks */

/* The sample that a tick is of; NULL: the filters took it. */
static const struct sample *sample_at(const struct chart *c, const struct profile_tick *tick)
{
	if (tick->row >= c->nrows || !c->sample_of[tick->row])
		return NULL;
	return &c->r->p->samples[c->sample_of[tick->row] - 1];
}

static bool is_inside(const struct chart *c, const struct profile_tick *tick)
{
	return tick->at >= c->from && tick->at < c->to;
}

static void count_ticks(struct chart *c)
{
	for (size_t i = 0; i < c->t->n && !stop_asked_at(c->r->params->stop, i); i++) {
		const struct profile_tick *tick = &c->t->ticks[i];
		const struct sample *s = sample_at(c, tick);
		struct lane *l = s ? find_lane(c, s->labels) : NULL;

		if (l)
			l->nticks += is_inside(c, tick);
	}
}

static void measure_deltas(struct chart *c)
{
	size_t nknown = 0;

	for (size_t i = 0; i < c->t->n && nknown < c->order.n; i++) {
		const struct profile_tick *tick = &c->t->ticks[i];
		const struct sample *s = sample_at(c, tick);
		struct lane *l = s ? find_lane(c, s->labels) : NULL;

		if (!l || !l->deltas || l->ndeltas == NDELTAS)
			continue;
		if (l->last_at != INT64_MIN)
			l->deltas[l->ndeltas++] = int_distance(l->last_at, tick->at);
		l->last_at = tick->at;
		nknown += l->ndeltas == NDELTAS;
	}
}

static int by_size(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

/* Twice as long as is usual between two samples. */
static int64_t usual_gap(struct lane *l, int64_t window)
{
	int64_t usual;

	if (!l->ndeltas)
		return window / 100 + 1;
	qsort(l->deltas, l->ndeltas, sizeof(*l->deltas), by_size);
	usual = l->deltas[l->ndeltas / 2];
	return int_add(int_add(usual, usual), 1);
}

/* The busiest, which then stand in the order in which they came first. */
static void choose_lanes(struct chart *c)
{
	for (uint32_t i = 0; i < c->lanes.n; i++) {
		struct lane *l = &c->lanes.at[i];
		uint64_t busier = 0;

		if (!l->nticks)
			continue;
		for (uint32_t k = 0; k < c->lanes.n && busier < MOST_LANES; k++)
			busier += c->lanes.at[k].nticks > l->nticks ||
				  (k < i && c->lanes.at[k].nticks == l->nticks);
		if (busier >= MOST_LANES)
			continue;
		l->deltas = arena_many(c->r->a, NDELTAS, int64_t);
		vec_push(&c->order, i);
	}
	measure_deltas(c);
	for (size_t i = 0; i < c->order.n; i++) {
		struct lane *l = &c->lanes.at[c->order.at[i]];

		l->gap = usual_gap(l, int_distance(c->from, c->to));
	}
}

static int64_t column_of(const struct chart *c, int64_t at)
{
	double share = (double)int_distance(c->from, at) / (double)int_distance(c->from, c->to);
	double column = share * (double)c->ncolumns;

	return column < 0 ? 0 : column > (double)c->ncolumns ? c->ncolumns : (int64_t)column;
}

/* The first on each pixel; with those before the window that reach into it. */
static void keep_ticks(struct chart *c)
{
	int64_t longest = 0;
	size_t i;

	for (size_t k = 0; k < c->order.n; k++)
		if (c->lanes.at[c->order.at[k]].gap > longest)
			longest = c->lanes.at[c->order.at[k]].gap;
	i = profile_tick_at(c->t, int_distance(c->t->ticks[0].at, c->from) - longest);
	for (; i < c->t->n && c->t->ticks[i].at < c->to; i++) {
		const struct profile_tick *tick = &c->t->ticks[i];
		const struct sample *s = sample_at(c, tick);
		struct lane *l = s ? find_lane(c, s->labels) : NULL;
		size_t n;

		if (!l || !l->gap)
			continue;
		n = l->kept.n;
		if (n && (tick->at <= c->from || column_of(c, c->t->ticks[l->kept.at[n - 1]].at) ==
							 column_of(c, tick->at))) {
			if (tick->at <= c->from) /* only the last of these is seen */
				l->kept.at[n - 1] = (uint32_t)i;
			l->until.at[n - 1] = tick->at;
			continue;
		}
		vec_push(&l->kept, (uint32_t)i);
		vec_push(&l->until, tick->at);
	}
}

/* ---- boxes */

/* A stack whose boxes are not at their end yet. */
struct open_stack {
	uint32_t nodes[MOST_FRAMES];
	int64_t since[MOST_FRAMES];
	size_t n;
	uint64_t deepest;
	int64_t end; /* column */
	bool has_any;
};

static uint32_t function_number(struct chart *c, uint32_t node)
{
	struct node_info info;

	if (!c->function_of[node]) {
		frames_info(&c->frames, c->r->p, node, &info);
		buf_puts(&c->functions, c->nfunctions ? ",\n" : "");
		name_put(&c->functions, c->q->profile, c->r, c->ids[node], &info);
		c->function_of[node] = ++c->nfunctions;
	}
	return c->function_of[node] - 1;
}

/* Ends the boxes that are deeper than `depth`. */
static void close_boxes(struct chart *c, struct buf *out, struct open_stack *o, size_t depth)
{
	for (; o->n > depth; o->n--) {
		int64_t x = o->since[o->n - 1], width = o->end - x;

		buf_printf(out, "%s%zu,%lld,%lld,%u", o->has_any ? "," : "", o->n - 1, (long long)x,
			   (long long)(width > 0 ? width : 1),
			   function_number(c, o->nodes[o->n - 1]));
		o->has_any = true;
		c->nboxes++;
	}
}

/* Nodes from the root on. */
static size_t read_stack(const struct chart *c, const struct sample *s, uint32_t *nodes)
{
	size_t n = 0;

	for (uint32_t i = s->nstack; i-- > 0;) {
		uint32_t loc = c->r->p->stacks[s->stack + i];

		for (uint32_t k = c->frames.first[loc];
		     k < c->frames.first[loc + 1] && n < MOST_FRAMES; k++)
			nodes[n++] = c->frames.lists[k] & FRAME_NODE;
	}
	return n;
}

static void add_stack(struct chart *c, struct buf *out, struct open_stack *o,
		      const struct sample *s, int64_t start, int64_t end)
{
	uint32_t nodes[MOST_FRAMES];
	size_t n = read_stack(c, s, nodes), same = 0;

	if (start <= o->end) /* with nothing between */
		while (same < n && same < o->n && nodes[same] == o->nodes[same])
			same++;
	close_boxes(c, out, o, same);
	for (; o->n < n; o->n++) {
		o->nodes[o->n] = nodes[o->n];
		o->since[o->n] = start;
	}
	o->end = end;
	if (n > o->deepest)
		o->deepest = n;
}

static void put_lane(struct chart *c, struct buf *out, const struct lane *l)
{
	struct open_stack o = { 0 };

	buf_puts(out, "{\"name\":");
	put_lane_name(out, c->r->p, l);
	buf_printf(out, ",\"ticks\":%llu,\"boxes\":[", (unsigned long long)l->nticks);
	for (size_t i = 0; i < l->kept.n && c->nboxes < MOST_BOXES; i++) {
		const struct profile_tick *tick = &c->t->ticks[l->kept.at[i]];
		int64_t until = int_add(l->until.at[i], l->gap);

		if (i + 1 < l->kept.n && c->t->ticks[l->kept.at[i + 1]].at < until)
			until = c->t->ticks[l->kept.at[i + 1]].at;
		if (until > c->from)
			add_stack(c, out, &o, sample_at(c, tick), column_of(c, tick->at),
				  column_of(c, until));
	}
	c->is_cut |= c->nboxes >= MOST_BOXES;
	close_boxes(c, out, &o, 0);
	buf_printf(out, "],\"depth\":%llu}", (unsigned long long)o.deepest);
}

/* ---- the answer */

static void index_samples(struct chart *c)
{
	const struct profile *p = c->r->p;

	for (uint32_t i = 0; i < p->nsamples; i++)
		if (p->samples[i].row >= c->nrows)
			c->nrows = p->samples[i].row + 1;
	c->sample_of = arena_many(c->r->a, c->nrows, uint32_t);
	for (uint32_t i = 0; i < p->nsamples; i++)
		c->sample_of[p->samples[i].row] = i + 1;
	c->lane_of = arena_many(c->r->a, p->nlabel_sets + 1, uint32_t);
}

static void set_window(struct chart *c, const struct time_range *wanted)
{
	const struct profile_tick *ticks = c->t->ticks;
	int64_t first = ticks[0].at, span = int_distance(first, ticks[c->t->n - 1].at);
	int64_t to = wanted->to && wanted->to < span ? wanted->to : span;
	int64_t from = wanted->from < to ? wanted->from : 0;

	c->from = int_add(first, from);
	c->to = int_add(int_add(first, to), 1); /* the last belongs to it */
}

static void put_chart(struct chart *c, struct buf *out)
{
	uint64_t nmore = 0;

	for (size_t i = 0; i < c->lanes.n; i++)
		nmore += c->lanes.at[i].nticks > 0;
	buf_char(out, '{');
	api_put_type(out, c->r);
	buf_printf(out, ",\"from\":%lld,\"to\":%lld,\"columns\":%lld,\"lanes\":[",
		   (long long)int_distance(c->t->ticks[0].at, c->from),
		   (long long)int_distance(c->t->ticks[0].at, c->to), (long long)c->ncolumns);
	for (size_t i = 0; i < c->order.n && !stop_asked(c->r->params->stop); i++) {
		buf_puts(out, i ? ",\n" : "\n");
		put_lane(c, out, &c->lanes.at[c->order.at[i]]);
	}
	buf_printf(out, "],\"more_lanes\":%llu,\"is_cut\":%s,\"functions\":[",
		   (unsigned long long)(nmore - c->order.n), c->is_cut ? "true" : "false");
	buf_str(out, buf_view(&c->functions));
	buf_char(out, ']');
}

static void chart_release(struct chart *c)
{
	for (size_t i = 0; i < c->lanes.n; i++) {
		vec_release(&c->lanes.at[i].kept);
		vec_release(&c->lanes.at[i].until);
	}
	vec_release(&c->lanes);
	vec_release(&c->order);
	map_release(&c->by_label);
	buf_release(&c->functions);
}

static bool run_chart(struct buf *out, struct report_run *r, struct err *e)
{
	struct chart *c = r->params->into;

	c->r = r;
	c->t = r->p->times;
	if (!c->t)
		return err_set(e, ERR_NOTFOUND, "the samples of this profile have no times");
	set_window(c, &c->window);
	name_graph_frames(r, &c->frames);
	c->ids = name_frames(c->q->site, c->q->profile, r, &c->frames);
	c->function_of = arena_many(r->a, c->frames.nnodes + 1, uint32_t);
	index_samples(c);
	count_ticks(c);
	choose_lanes(c);
	keep_ticks(c);
	put_chart(c, out);
	return true;
}

static const struct report report_chart = {
	.name = "chart",
	.flags = REPORT_ALL_NODES | REPORT_UNTRIMMED | REPORT_PATHS,
	.run = run_chart,
};

static bool read_columns(struct api_call *q, int64_t *n, struct err *e)
{
	struct str text = api_param(q, "columns");

	*n = USUAL_COLUMNS;
	return !text.n ||
	       (number_parse_int(text, 10, n) == NUMBER_OK && *n >= MIN_COLUMNS &&
		*n <= MAX_COLUMNS) ||
	       err_set(e, ERR_USAGE, "columns=%.*s: not a number between %d and %d", STR_ARG(text),
		       MIN_COLUMNS, MAX_COLUMNS);
}

bool api_chart(struct api_call *q, struct buf *out, struct err *e)
{
	struct chart c = { .q = q, .window = q->time };
	bool ok;

	q->time = (struct time_range){ 0 }; /* samples before it reach into it */
	ok = read_columns(q, &c.ncolumns, e) &&
	     api_report(q, loaded_session(q->profile), &report_chart, "", &c, out, e);
	chart_release(&c);
	if (!ok)
		return false;
	api_put_warnings(q, out);
	buf_puts(out, "}\n");
	return true;
}
