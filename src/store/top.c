/* top.c - the functions that weigh most, over all services. */
#include "store/top.h"

#include <stdlib.h>
#include <time.h>

#include "base/int.h"
#include "base/parallel.h"
#include "base/stop.h"
#include "base/unit.h"
#include "store/by.h"
#include "store/kept.h"

enum {
	MIN_SERIES = 8, /* of a part */
	MAX_AGAIN = 2,	/* for one kind of values, and for names */
};

/* ---- a series */

static uint32_t *slot_of(struct top_part *p, uint32_t function)
{
	while (p->slots.n <= function)
		vec_push(&p->slots, 0);
	return &p->slots.at[function];
}

static void add_locals(struct top_part *p, bool is_late, double ratio)
{
	for (size_t i = 0; i < p->sum.weights.n; i++) {
		const struct hot_weight *w = &p->sum.weights.at[i];
		uint32_t *slot = slot_of(p, w->function);
		struct top_local *l;

		if (!*slot) {
			vec_push(&p->locals, (struct top_local){ .function = w->function });
			*slot = (uint32_t)p->locals.n;
		}
		l = &p->locals.at[*slot - 1];
		l->flat += (double)w->flat * ratio;
		l->cum += (double)w->cum * ratio;
		if (is_late)
			l->late += (double)w->flat * ratio;
	}
}

uint32_t top_key_of(struct top_part *p, uint32_t function)
{
	struct hot_groups *g = &p->groups;
	struct hot *hot = p->t->hot;
	struct hot_function f;

	if (!g->group)
		return function;
	while (g->of.n <= function)
		vec_push(&g->of, 0);
	if (!g->of.at[function]) {
		f = hot_function_at(hot, function);
		g->of.at[function] =
			hot_string(hot, g->group(g->ctx, hot_text(hot, f.name),
						 hot_text(hot, f.file), hot_text(hot, f.module))) +
			1;
	}
	return g->of.at[function] - 1;
}

struct weight_key {
	const struct top_weights *weights;
	uint32_t key, by;
};

static bool same_weight(const void *ctx, uint32_t index)
{
	const struct weight_key *k = ctx;
	const struct top_weight *w = &k->weights->at.at[index];

	return w->key == k->key && w->by == k->by;
}

struct top_weight *top_weight_of(struct top_part *p, struct top_weights *weights, uint32_t key,
				 uint32_t by)
{
	struct weight_key k = { weights, key, by };
	uint64_t hash = hash_mix(p->t->hot->seed, (uint64_t)key << 32 | by);
	uint32_t i = map_put(&weights->map, hash, weights->at.n, same_weight, &k);

	if (i == weights->at.n)
		vec_push(&weights->at, (struct top_weight){ .key = key, .by = by });
	return &weights->at.at[i];
}

struct share_key {
	const struct top_part *p;
	const struct top_share *like;
};

static bool same_share(const void *ctx, uint32_t index)
{
	const struct share_key *k = ctx;
	const struct top_share *x = k->like, *y = &k->p->shares.at[index];

	return x->key == y->key && x->by == y->by && x->ctx == y->ctx;
}

static void keep_share(struct top_part *p, struct top_weight *w, const struct top_share *x)
{
	struct top_share like = { .key = w->key, .by = w->by, .ctx = x->ctx, .next = w->shares };
	struct share_key key = { p, &like };
	uint64_t hash = hash_mix(hash_mix(p->t->hot->seed, (uint64_t)w->key << 32 | w->by),
				 (uint64_t)(uintptr_t)x->ctx);
	uint32_t i = map_put(&p->share_map, hash, p->shares.n, same_share, &key);

	if (i == p->shares.n) {
		vec_push(&p->shares, like);
		w->shares = i + 1;
	}
	p->shares.at[i].ran += x->ran;
	p->shares.at[i].cum += x->cum;
}

/* What it is that shares divide. */
static double ran_of(const struct top_part *p, const struct top_weight *w)
{
	return p->is_gauge ? w->flat : w->early + w->late;
}

/* All of it so far was of one kind. */
static void keep_own(struct top_part *p, struct top_weight *w)
{
	keep_share(p, w, &(struct top_share){ .ctx = w->ctx, .ran = ran_of(p, w), .cum = w->cum });
}

void top_share(struct top_part *p, struct top_weight *w, const struct top_share *x)
{
	if (!w->ctx)
		w->ctx = x->ctx;
	else if (!w->shares && w->ctx != x->ctx)
		keep_own(p, w);
	if (w->shares)
		keep_share(p, w, x);
	w->cum += x->cum;
}

/* What a series has of one value of `by`. */
static void add_counts(struct top_part *p, const struct picked *series, uint32_t by, double whole)
{
	for (size_t i = 0; i < p->locals.n; i++) {
		const struct top_local *l = &p->locals.at[i];
		struct top_weight *w =
			top_weight_of(p, &p->weights, top_key_of(p, l->function), by);

		w->flat += l->flat;
		top_share(p, w,
			  &(struct top_share){ .ctx = p->ctx,
					       .ran = l->flat * whole,
					       .cum = p->t->params->group ? 0 : l->cum });
		w->early += (l->flat - l->late) * whole;
		w->late += l->late * whole;
		/* Of groups, what is only called does not count. */
		if (p->t->params->group && l->flat == 0)
			continue;
		w->nservices += w->service != series->service;
		w->service = series->service;
	}
}

/* ---- kinds of values */

static void count_kinds(struct top_part *p, const struct picked *series)
{
	const struct hot_sum *sum = &p->sum;
	struct hot *hot = p->t->hot;
	uint32_t none;

	if (sum->ntyped) {
		/* Most are of the kind of the one before. */
		if (p->kind == NONE || p->kind_name != sum->name || p->kind_unit != sum->unit)
			p->kind = kinds_find(&p->kinds, hot_text(hot, sum->name),
					     hot_text(hot, sum->unit));
		p->kind_name = sum->name;
		p->kind_unit = sum->unit;
		kinds_count(&p->kinds, p->kind, series->service, series->service_name, sum->ntyped);
	}
	if (sum->nprofiles > sum->ntyped) {
		none = kinds_find(&p->kinds, STR(""), STR(""));
		p->kinds.at.at[none].is_unfit = true;
		kinds_count(&p->kinds, none, series->service, series->service_name,
			    sum->nprofiles - sum->ntyped);
	}
}

/* Is the window of the kind that is told, which as long as nobody has chosen is the first? */
static bool take_kind(struct top_part *p, double *ratio)
{
	const struct topping *t = p->t;
	const struct hot_sum *sum = &p->sum;

	*ratio = 1;
	if (!sum->has_type)
		return false;
	if (!p->has_unit) {
		p->name = t->is_chosen ? t->name : sum->name;
		p->unit = t->is_chosen ? t->unit : sum->unit;
	}
	if (sum->name != p->name)
		return false;
	if (sum->unit != p->unit) {
		struct str from = hot_text(t->hot, sum->unit), to = hot_text(t->hot, p->unit);

		if (!unit_same_family(from, to))
			return false;
		*ratio = kind_ratio(from, to);
	}
	p->has_unit = true;
	p->is_gauge = sum->is_gauge;
	return true;
}

/* ---- */

/* How much of what ran was profiled, of what was added since the last call: its inverse. */
static double whole_of(struct running *r)
{
	double whole;

	running_end(r);
	whole = r->duration > 0 ? (double)r->ran / (double)r->duration : 1;
	*r = (struct running){ 0 };
	return whole;
}

static void flush_locals(struct top_part *p, const struct picked *series, uint32_t by)
{
	double whole = whole_of(&p->running);

	if (p->told.nprofiles)
		top_add_level(p, series, by);
	else
		add_counts(p, series, by, whole);
	for (size_t i = 0; i < p->locals.n; i++)
		*slot_of(p, p->locals.at[i].function) = 0;
	p->locals.n = 0;
}

static void note_window(struct top_part *p, const struct picked *series, bool is_late, double ratio)
{
	const struct hot_sum *sum = &p->sum;
	struct scan_row row = { .series = series,
				.time = sum->first,
				.last = sum->last,
				.duration = sum->duration,
				.nprofiles = sum->nprofiles };

	running_add(&p->running, &row);
	if (!p->nprofiles || sum->first < p->first)
		p->first = sum->first;
	if (!p->nprofiles || sum->last > p->last)
		p->last = sum->last;
	p->nprofiles += sum->ntyped;
	if (sum->is_gauge)
		top_note_level(p, is_late, ratio);
	else
		p->total += sum->total * ratio;
}

/* Nothing is before its first profile, and nothing after its last, but for the rest of windows. */
static void clip(const struct topping *t, const struct picked *series, int64_t *from, int64_t *to)
{
	int64_t first = series->counts.first - series->counts.first % TOP_DAY;
	int64_t last = series->counts.last - series->counts.last % TOP_HOUR;

	*from = t->from > first ? t->from : first;
	*to = int_distance(last, t->to) < TOP_HOUR ? t->to : last + TOP_HOUR - 1;
	if (*from < 0)
		*from = 0;
}

/* Windows of one value of `by` follow one another. */
static uint32_t by_of(struct top_part *p, const struct picked *series, int64_t at, bool is_first,
		      uint32_t last)
{
	if (!is_first && !p->t->has_weeks)
		return last;
	return hot_string(p->t->hot, by_value(series, at, p->t->params->by, &p->scratch));
}

static bool check_memory(struct top_part *p, struct err *e)
{
	if (p->weights.at.n + p->levels.weights.at.n + p->shares.n > p->t->max_weights)
		return err_set(e, ERR_LIMIT,
			       "max-memory: more than %zu functions; ask for fewer services or "
			       "less time",
			       p->t->max_weights);
	return !hot_is_full(p->t->hot) ||
	       err_set(e, ERR_LIMIT,
		       "max-memory: names of functions, and of what they are split by, take too "
		       "much; ask for fewer services, or by another label");
}

static bool read_series(struct top_part *p, struct picked *series, struct err *e)
{
	struct topping *t = p->t;
	uint32_t by = 0, next_by;
	struct top_window w;
	int64_t from, to;
	double ratio;
	bool is_first = true;

	clip(t, series, &from, &to);
	for (int64_t at = from; at <= to; at = w.to + 1) {
		if (stop_asked(t->params->query.stop))
			return err_set(e, ERR_IO, "nobody waits for it any more");
		w = top_cut(t, series, at, to);
		if (!top_read(p, series, &w, e))
			return false;
		if (p->sum.nprofiles && !p->sum.has_type) {
			p->untyped = series;
			p->untyped_window = w;
		}
		count_kinds(p, series);
		if (!p->sum.nprofiles || !take_kind(p, &ratio))
			continue;
		next_by = by_of(p, series, at, is_first, by);
		if (!is_first && next_by != by)
			flush_locals(p, series, by);
		is_first = false;
		by = next_by;
		note_window(p, series, at >= t->middle, ratio);
		add_locals(p, at >= t->middle, ratio);
	}
	if (!is_first)
		flush_locals(p, series, by);
	return check_memory(p, e);
}

/* Groups that are known of functions, of this service if they differ. */
static void choose_groups(struct top_part *p, const struct picked *series)
{
	const struct store_top_params *params = p->t->params;
	void *ctx = params->group_ctx;

	if (params->group_ctx_of)
		ctx = params->group_ctx_of(ctx, series->service_name);
	if (p->groups.group && p->groups.ctx == ctx)
		return;
	if (p->groups.group)
		hot_put_groups(p->t->hot, &p->groups);
	p->groups.group = params->group;
	p->groups.ctx = ctx;
	hot_get_groups(p->t->hot, &p->groups);
}

static void begin_service(struct top_part *p, const struct picked *series)
{
	const struct store_top_params *params = p->t->params;

	if (params->group)
		choose_groups(p, series);
	else if (params->group_ctx_of)
		p->ctx = params->group_ctx_of(params->group_ctx, series->service_name);
}

static void run_part(void *ctx, size_t number)
{
	struct topping *t = ctx;
	struct top_part *p = &t->parts[number];
	int64_t service = 0, begun = 0;

	p->ok = true;
	for (size_t i = t->first[number]; p->ok && i < t->first[number + 1]; i++) {
		uint64_t before = p->nprofiles;

		if (atomic_load(&t->is_failed))
			return;
		p->type = t->picked[i].type;
		if (t->picked[i].service != begun) {
			begin_service(p, &t->picked[i]);
			begun = t->picked[i].service;
		}
		p->ok = read_series(p, &t->picked[i], &p->e);
		if (p->nprofiles > before && t->picked[i].service != service) {
			p->nservices++;
			service = t->picked[i].service;
		}
		if (i + 1 == t->first[number + 1] ||
		    t->picked[i].service != t->picked[i + 1].service)
			top_end_levels(p);
	}
	if (!p->ok)
		atomic_store(&t->is_failed, true);
}

/* ---- all of them */

static void divide(struct topping *t, size_t n)
{
	size_t wanted = (size_t)parallel_cores();

	if (wanted > TOP_MAX_PARTS)
		wanted = TOP_MAX_PARTS;
	if (wanted > n / MIN_SERIES)
		wanted = n / MIN_SERIES ? n / MIN_SERIES : 1;
	t->first[0] = 0;
	for (t->nparts = 1; t->nparts < wanted; t->nparts++) {
		size_t at = n * t->nparts / wanted;

		/* A service is never in two. */
		while (at > 0 && at < n && t->picked[at].service == t->picked[at - 1].service)
			at++;
		t->first[t->nparts] = at > t->first[t->nparts - 1] ? at : t->first[t->nparts - 1];
	}
	t->first[t->nparts] = n;
}

static void join_shares(struct top_part *to, struct top_weight *w, const struct top_part *p,
			const struct top_weight *x)
{
	if (!x->shares) {
		top_share(to, w,
			  &(struct top_share){ .ctx = x->ctx, .ran = ran_of(p, x), .cum = x->cum });
		return;
	}
	if (w->ctx && !w->shares)
		keep_own(to, w);
	for (uint32_t i = x->shares; i; i = p->shares.at[i - 1].next)
		keep_share(to, w, &p->shares.at[i - 1]);
	w->ctx = w->ctx ? w->ctx : x->ctx;
	w->cum += x->cum;
}

/* All of another part's into the first. */
static void join(struct top_part *to, const struct top_part *p)
{
	if (p->has_unit) {
		to->has_unit = true;
		to->name = p->name;
		to->unit = p->unit;
		to->is_gauge = p->is_gauge;
	}
	kinds_join(&to->kinds, &p->kinds);
	for (size_t i = 0; i < p->weights.at.n; i++) {
		const struct top_weight *x = &p->weights.at.at[i];
		struct top_weight *w = top_weight_of(to, &to->weights, x->key, x->by);

		join_shares(to, w, p, x);
		w->flat += x->flat;
		w->early += x->early;
		w->late += x->late;
		w->nservices += x->nservices;
	}
	if (p->nprofiles && (!to->nprofiles || p->first < to->first))
		to->first = p->first;
	if (p->nprofiles && (!to->nprofiles || p->last > to->last))
		to->last = p->last;
	to->nprofiles += p->nprofiles;
	to->nservices += p->nservices;
	to->total += p->total;
	to->naming.nmissing += p->naming.nmissing;
	if (p->naming.since && (!to->naming.since || p->naming.since < to->naming.since))
		to->naming.since = p->naming.since;
	if (p->untyped) {
		to->untyped = p->untyped;
		to->untyped_window = p->untyped_window;
	}
}

/* Only its profiles tell which sample types there are instead. */
static bool no_type(struct top_part *p, struct err *e)
{
	p->untyped_window.kind = TOP_ONCE;
	p->untyped_window.level = 0;
	if (!top_read(p, p->untyped, &p->untyped_window, e))
		return false;
	*e = p->no_type;
	/* They may just have been deleted. */
	return !p->no_type.kind;
}

static bool join_parts(struct topping *t, struct err *e)
{
	for (size_t i = 0; i < t->nparts; i++)
		if (!t->parts[i].ok && t->parts[i].e.kind) {
			*e = t->parts[i].e;
			return false;
		}
	for (size_t i = 1; i < t->nparts; i++)
		join(&t->parts[0], &t->parts[i]);
	return t->parts[0].has_unit || !t->parts[0].untyped || no_type(&t->parts[0], e);
}

/* ---- */

/* Where halves meet: where windows do, so that those that are kept need not be cut. */
static int64_t middle_of(int64_t from, int64_t to)
{
	int64_t length = int_distance(from, to), middle = from + length / 2, unit = 1;

	if (length >= 2 * TOP_PIECE)
		unit = TOP_PIECE;
	if (length > TOP_DAY / 4)
		unit = TOP_HOUR;
	if (length > 14 * TOP_DAY)
		unit = TOP_DAY;
	middle = middle > INT64_MAX - unit ? middle : middle + unit / 2;
	return middle - middle % unit;
}

/* Up to where all has come to rest; a little earlier if all has been summed up there, as that is
 * done every few minutes. */
static int64_t settled_end(const struct topping *t)
{
	int64_t end = t->settled - t->settled % TOP_PIECE, until = atomic_load(&t->s->kept.until);

	return !t->params->is_kept && until < end && until >= end - 2 * TOP_PIECE ? until : end;
}

/* Of what began within the last hour, too little would have come to rest, or nothing: all of it
 * counts. An hour as people ask for it, by their own clocks. */
static bool is_young(const struct topping *t, int64_t first, int64_t now)
{
	int64_t from = t->from > first ? t->from : first;

	return !t->params->is_kept && from > now - TOP_HOUR - TOP_PIECE;
}

static void settle(struct topping *t, int64_t first, int64_t now)
{
	int64_t end = settled_end(t);

	if (t->to >= end && !is_young(t, first, now))
		t->to = end - 1;
}

static bool is_rough(const struct store_top_params *params)
{
	return params->is_rough || params->is_settled;
}

/* Where they begin then: short times as they are, unless they need not be fresh. */
static int64_t rough_from(const struct store_top_params *params, int64_t from, int64_t to)
{
	int64_t length = int_distance(from, to), unit = TOP_PIECE;

	if (length > TOP_DAY / 4)
		unit = TOP_HOUR;
	else if (!params->is_settled && length < TOP_HOUR - TOP_PIECE)
		unit = 1;
	return from - from % unit;
}

/* Where times end, if the query does not say. */
static void find_times(struct topping *t, size_t n, int64_t now)
{
	int64_t first = INT64_MAX, last = 0;

	for (size_t i = 0; i < n; i++) {
		first = t->picked[i].counts.first < first ? t->picked[i].counts.first : first;
		last = t->picked[i].counts.last > last ? t->picked[i].counts.last : last;
	}
	t->settled = now - CATALOG_SETTLED;
	t->from = t->params->query.from > 0 ? t->params->query.from : 0;
	t->to = t->params->query.to;
	if (t->to > last && t->to > now)
		t->to = last > now ? last : now;
	if (t->params->is_settled)
		settle(t, first, now);
	if (is_rough(t->params))
		t->from = rough_from(t->params, t->from, t->to);
	t->middle = middle_of(t->from > first ? t->from : first, t->to);
}

static bool has_weeks(struct str by)
{
	while (by.n)
		if (str_eq(str_cut(&by, '\0'), STR("week")))
			return true;
	return false;
}

static void parts_init(struct topping *t, struct top_part *parts)
{
	t->parts = parts;
	for (size_t i = 0; i < t->nparts; i++) {
		top_part_init(&parts[i], t);
		kinds_init(&parts[i].kinds);
		parts[i].kind = NONE;
	}
}

static void parts_release(struct topping *t)
{
	for (size_t i = 0; i < t->nparts; i++) {
		struct top_part *p = &t->parts[i];

		if (p->groups.group)
			hot_put_groups(t->hot, &p->groups);
		kinds_release(&p->kinds);
		top_part_release(p);
	}
}

/* Values of several kinds have been found, and added: it is to be done again, for one of them.
 * Where there is but one, as almost everywhere, it costs nothing. */
static bool choose_kind(struct topping *t)
{
	const struct kinds *kinds = &t->parts[0].kinds;
	uint32_t chosen = kinds_are_mixed(kinds) ? kinds_choose(kinds) : NONE;

	if (t->is_chosen || chosen == NONE)
		return false;
	t->is_chosen = true;
	t->name = hot_string(t->hot, kinds->at.at[chosen].name);
	t->unit = hot_string(t->hot, kinds->at.at[chosen].unit);
	return true;
}

static void tell_left_out(struct topping *t, struct arena *a, struct store_top *top)
{
	struct top_part *p = &t->parts[0];

	if (p->has_unit)
		kinds_left_out(
			&p->kinds,
			kinds_find(&p->kinds, hot_text(t->hot, p->name), hot_text(t->hot, p->unit)),
			a, &top->left_out);
}

/* *is_early: it is to be done again; some names were not there yet, and are now, or values are not
 * all of one kind. */
static bool weigh(struct topping *t, size_t n, struct arena *a, struct store_top *top,
		  bool *is_early, struct err *e)
{
	struct top_part parts[TOP_MAX_PARTS];
	struct timespec now;
	bool ok;

	clock_gettime(CLOCK_REALTIME, &now);
	find_times(t, n, now.tv_sec * TOP_SECOND);
	divide(t, n);
	t->max_weights = t->s->params.max_memory / 6 / sizeof(struct top_weight) / t->nparts;
	t->generation = naming_generation(t->s->namer);
	parts_init(t, parts);
	t->sample_type = hot_string(t->hot, t->params->sample_type);
	parallel_for((int)t->nparts, t->nparts, run_part, t);
	ok = join_parts(t, e);
	*is_early = ok && choose_kind(t);
	if (ok && !*is_early) {
		top_make_rows(t, a, top);
		tell_left_out(t, a, top);
	}
	*is_early = *is_early || (ok && naming_wait(&parts[0].naming));
	parts_release(t);
	return ok;
}

bool store_top(struct store *s, const struct store_top_params *params, struct arena *a,
	       struct store_top *top, struct err *e)
{
	struct topping t = {
		.s = s, .params = params, .hot = &s->hot, .has_weeks = has_weeks(params->by)
	};
	struct store_query q = params->query;
	struct scan scan = { .s = s, .q = &q };
	bool ok, is_early;

	/* What ended between this and the time that was asked for counts, too. */
	if (is_rough(params) && q.from > 0)
		q.from = rough_from(params, q.from, q.to);
	scan_pick(&scan, a);
	t.picked = scan.picked;
	if (!scan_check_type(&scan, e))
		return false;
	hot_begin(&s->hot);
	kept_begin(s);
	ok = weigh(&t, scan.npicked, a, top, &is_early, e);
	for (int i = 0; is_early && i < MAX_AGAIN; i++)
		ok = weigh(&t, scan.npicked, a, top, &is_early, e);
	if (ok && params->is_kept)
		kept_save(s, t.from, t.to + 1, params->query.stop);
	hot_end(&s->hot);
	return ok;
}
