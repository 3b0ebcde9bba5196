/* series.c - values over time. */
#include <stdlib.h>

#include "base/int.h"
#include "base/unit.h"
#include "store/by.h"
#include "store/kind.h"
#include "store/meaning.h"
#include "store/naming.h"
#include "store/rounds.h"
#include "store/scan.h"

enum { MAX_PROCESSES = 64 };		     /* that are told apart for the level of a series */
#define SLACK 1.5			     /* profiles do not come at the very second */
#define MAX_HOLD (INT64_C(900) * 1000000000) /* for which a series is what it was */

struct chart_line {
	uint32_t name; /* string */
};

struct point {
	uint32_t line;
	int64_t time;
	double value, level;
	uint64_t nprofiles;
};

/* Profiles of one series that belong to one point; they come one after the other. */
struct run {
	const struct picked *series;
	uint32_t line;
	int64_t time;
	double sum, last, max;
	uint64_t nprofiles;
	int64_t duration, first, end; /* of its profiles: sum; time of the first and of the last */
	int64_t processes[MAX_PROCESSES];
	size_t nprocesses; /* at least so many push under the same labels */
	bool has_sums;	   /* which do not say of how many they are */
};

/* What a series was when it last told, for the steps until it tells again. */
struct held {
	const struct picked *series;
	uint32_t line;
	int64_t time, gap; /* to the time before */
	double level;
};

/* What to tell, if values of several kinds (kind.h) were found. */
struct choice {
	bool is_made;
	struct str name, unit;
};

struct charting {
	struct store *s;
	const struct store_series_params *params;
	enum store_sum how; /* not STORE_AS_TYPE, once a profile has been seen */
	struct strings strings;
	struct buf scratch;
	vec(struct chart_line) lines;
	vec(struct point) points;
	struct choice *choice;
	struct map line_map, point_map;
	uint64_t seed;
	size_t max_points;
	struct run run;
	struct held held;
	/* Values are of one kind: the first one, or once several were found what most have. */
	struct kinds kinds;
	uint32_t kind;
	struct str unit;
	double ratio;		  /* of what is read now */
	struct shelf_book *book;  /* that was used last */
	struct err no_type;	  /* of a profile that was left out */
	struct book_probe *probe; /* of it, for the function */
	struct naming naming;
};

/* ---- lines and points */

static bool same_line(const void *ctx, uint32_t index)
{
	const struct charting *c = ((const void *const *)ctx)[0];
	const uint32_t *name = ((const void *const *)ctx)[1];

	return c->lines.at[index].name == *name;
}

static uint32_t line_of(struct charting *c, struct str name)
{
	uint32_t string = strings_add(&c->strings, name);
	const void *key[2] = { c, &string };
	uint32_t i = map_put(&c->line_map, hash_mix(c->seed, string), c->lines.n, same_line, key);

	if (i == c->lines.n)
		vec_push(&c->lines, (struct chart_line){ .name = string });
	return i;
}

static bool same_point(const void *ctx, uint32_t index)
{
	const struct charting *c = ((const void *const *)ctx)[0];
	const struct point *want = ((const void *const *)ctx)[1];

	return c->points.at[index].line == want->line && c->points.at[index].time == want->time;
}

static double run_value(const struct charting *c)
{
	switch (c->how) {
	case STORE_LAST:
		return c->run.last;
	case STORE_MAX:
		return c->run.max;
	default:
		return c->run.sum;
	}
}

/* ---- levels */

struct span {
	double from, to;
};

/* What of the step is asked for. */
static struct span step_span(const struct charting *c)
{
	const struct store_query *q = &c->params->query;
	int64_t from = c->run.time, to = int_add(from, c->params->step);

	from = q->from > from ? q->from : from;
	to = q->to < to ? q->to : to;
	return (struct span){ (double)from, to > from ? (double)to : (double)from + 1 };
}

/* For how much of it the series was there: from the first profile to the last, and up to the edges
 * if another could not yet have come there. One that has too few profiles to tell was there all the
 * time. */
static double covered_time(const struct charting *c, double nprocesses)
{
	double n = (double)c->run.nprofiles / nprocesses;
	double first = (double)c->run.first, last = (double)c->run.end, gap;
	struct span all = step_span(c);

	if (n < 1.5 || last <= first)
		return all.to - all.from;
	gap = (last - first) / (n - 1);
	if (first - all.from > SLACK * gap)
		all.from = first;
	if (all.to - last > SLACK * gap)
		all.to = last + gap;
	return all.to - all.from;
}

/* store_point.level of one series, of gauges: all its processes together. */
static bool gauge_level(const struct charting *c, double *level, struct err *e)
{
	const struct run *run = &c->run;
	const struct store_query *q = &c->params->query;
	int64_t end = c->params->step > 0 ? int_add(run->time, c->params->step - 1) : run->time;
	struct rounds told = { .series = run->series->series,
			       .from = q->from > run->time ? q->from : run->time,
			       .to = q->to < end ? q->to : end,
			       .nprofiles = run->nprofiles };
	double rounds = (double)run->nprofiles;

	if ((run->has_sums || run->nprocesses > 1) && !rounds_count(c->s, &told, &rounds, e))
		return false;
	*level = rounds > 0 ? run->sum / rounds : 0;
	return true;
}

/* The same of what is counted. Its profiles may be of several processes at a time, and may be
 * of a small part of their time. */
static double run_level(const struct charting *c)
{
	double nprocesses = c->run.nprocesses ? (double)c->run.nprocesses : 1;
	double duration = (double)c->run.duration, covered, all, n;
	struct span step = step_span(c);

	if (c->how != STORE_SUM)
		return run_value(c);
	covered = covered_time(c, nprocesses);
	all = step.to - step.from;
	if (duration <= 0)
		return run_value(c) * 1e9 / all;
	/* Sums of minutes do not say of how many processes they are, but may be longer than time;
	 * a single profile is, in a short step. */
	n = (double)c->run.nprofiles;
	if (n > 1 && 2 * duration / n <= all && nprocesses < duration / covered)
		nprocesses = duration / covered;
	return run_value(c) * 1e9 / duration * nprocesses * covered / all;
}

static void note_process(struct run *run, int64_t process)
{
	if (!process || run->nprocesses == MAX_PROCESSES)
		return;
	for (size_t i = 0; i < run->nprocesses; i++)
		if (run->processes[i] == process)
			return;
	run->processes[run->nprocesses++] = process;
}

static bool point_of(struct charting *c, uint32_t line, int64_t time, struct point **out,
		     struct err *e)
{
	const struct point want = { .line = line, .time = time };
	const void *key[2] = { c, &want };
	uint64_t hash = hash_mix(hash_mix(c->seed, (uint64_t)time), line);
	uint32_t i = map_put(&c->point_map, hash, c->points.n, same_point, key);

	if (i == c->points.n)
		vec_push(&c->points, (struct point){ .line = line, .time = time });
	*out = &c->points.at[i];
	return c->points.n <= c->max_points ||
	       err_set(e, ERR_LIMIT,
		       "max-memory: more than %zu points; ask for a longer step or less time",
		       c->max_points);
}

/* A series that tells less often than there are steps is what it was until it tells again. Else, of
 * a hundred that do not tell at the same moment, each step would have only some. */
static bool hold_level(struct charting *c, int64_t until, struct err *e)
{
	const struct held *held = &c->held;
	int64_t step = c->params->step;

	if (!c->params->has_levels || !held->series || step <= 0)
		return true;
	for (int64_t time = held->time + step; time < until; time += step) {
		struct point *p;

		if (time > c->params->query.to)
			break;
		if (!point_of(c, held->line, time, &p, e))
			return false;
		p->level += held->level;
	}
	return true;
}

/* The series has no more: it is held for as long as it was apart before. */
static bool drop_held(struct charting *c, struct err *e)
{
	bool ok = hold_level(c, int_add(c->held.time, c->held.gap), e);

	c->held = (struct held){ 0 };
	return ok;
}

static bool keep_held(struct charting *c, double level, struct err *e)
{
	const struct run *run = &c->run;
	struct held *held = &c->held;
	bool is_next = held->series == run->series && held->line == run->line &&
		       run->time > held->time && run->time - held->time <= MAX_HOLD;
	int64_t gap = is_next ? run->time - held->time : 0;

	if (is_next ? !hold_level(c, run->time, e) : !drop_held(c, e))
		return false;
	*held = (struct held){ run->series, run->line, run->time, gap, level };
	return true;
}

/* Ends the run: its value goes to its point. */
static bool end_run(struct charting *c, struct err *e)
{
	const struct run *run = &c->run;
	double level = 0;
	struct point *p;

	if (!run->series)
		return true;
	if (c->how != STORE_MEAN)
		level = run_level(c);
	else if (!gauge_level(c, &level, e))
		return false;
	if (!point_of(c, run->line, run->time, &p, e))
		return false;
	p->value += run_value(c);
	p->level += level;
	p->nprofiles += run->nprofiles;
	if (!keep_held(c, level, e))
		return false;
	c->run.series = NULL;
	return true;
}

static int64_t step_of(int64_t time, int64_t step)
{
	int64_t rest;

	if (step <= 0)
		return time;
	rest = time % step;
	/* A step before the first moment that there is begins with it. */
	return rest < 0 && time - rest < INT64_MIN + step ? INT64_MIN
							  : time - rest - (rest < 0 ? step : 0);
}

static bool add_value(struct charting *c, const struct scan_row *row, uint32_t line, double value,
		      struct err *e)
{
	struct run *run = &c->run;
	int64_t time = step_of(row->time, c->params->step);

	if (run->series && (run->series != row->series || run->time != time || run->line != line) &&
	    !end_run(c, e))
		return false;
	if (!run->series)
		*run = (struct run){ .series = row->series,
				     .line = line,
				     .time = time,
				     .max = value,
				     .first = row->time };
	run->sum += value;
	run->last = value;
	if (value > run->max)
		run->max = value;
	run->nprofiles += row->nprofiles;
	run->duration = int_add(run->duration, row->duration);
	run->end = row->last;
	run->has_sums |= row->is_sum;
	note_process(run, row->process);
	return true;
}

/* ---- values of a profile */

static struct book_probe *new_probe(struct charting *c)
{
	const struct store_series_params *p = c->params;

	if (p->ncall_site)
		return book_probe_new(c->book->book, p->call_site, p->ncall_site, PROBE_ROOT,
				      &c->naming);
	return book_probe_new(c->book->book, &p->function, 1,
			      p->is_flat ? PROBE_LEAF : PROBE_ANYWHERE, &c->naming);
}

static bool has_functions(const struct store_series_params *p)
{
	return p->function.n || p->ncall_site;
}

static bool function_value(struct charting *c, const struct scan_row *row, uint32_t type,
			   double *value, struct err *e)
{
	if (!c->probe)
		c->probe = new_probe(c);
	/* In a run of differences most rows do not count. */
	if (row->factors && row->factors[type] == 0) {
		*value = 0;
		return true;
	}
	if (!book_probe_read(c->probe, row->data, row->head, type, value, e))
		return err_wrap(e, "a profile of service \"%.*s\"",
				STR_ARG(row->series->service_name));
	*value *= row->factors ? row->factors[type] : 1;
	return true;
}

static bool total_value(const struct scan_row *row, uint32_t type, double *value, struct err *e)
{
	int64_t total;

	if (type >= row->totals.n / sizeof(total))
		return err_set(e, ERR_FORMAT, "totals of a profile are damaged");
	memcpy(&total, row->totals.p + type * sizeof(total), sizeof(total));
	*value = (double)total * (row->factors ? row->factors[type] : 1);
	return true;
}

/* Told are values of this, in the unit that was asked for or the finest so far. */
static void set_kind(struct charting *c, uint32_t kind)
{
	struct str wanted = c->params->unit, unit = c->kinds.at.at[kind].unit;

	c->kind = kind;
	c->unit = unit_same_family(wanted, unit) ? wanted : unit;
}

static bool wants_unit(const struct charting *c, struct str unit)
{
	struct str wanted = c->params->unit;

	return !wanted.n || str_eq(wanted, unit) || unit_same_family(wanted, unit);
}

/* Is the row of the kind that is told? The first profile says what its type means, and its unit. */
static bool learn(struct charting *c, const struct scan_row *row, uint32_t type)
{
	const struct book *b = c->book->book;
	struct str name = book_type_name(b, row->head, type);
	struct str unit = book_type_unit(b, row->head, type);
	uint32_t kind = kinds_find(&c->kinds, name, unit);

	kinds_count(&c->kinds, kind, row->series->service, row->series->service_name,
		    row->nprofiles);
	c->kinds.at.at[kind].is_unfit = !wants_unit(c, unit);
	if (c->kind == NONE && wants_unit(c, unit))
		set_kind(c, kind);
	if (kind != c->kind)
		return false;
	c->ratio = kind_ratio(unit, c->unit);
	if (c->how == STORE_AS_TYPE)
		c->how = meaning_of(row->series->type, book_type_name(b, row->head, type)) ==
					 MEANING_GAUGE
				 ? STORE_MEAN
				 : STORE_SUM;
	return true;
}

/* It has no such sample type. */
static void note_untyped(struct charting *c, const struct scan_row *row)
{
	uint32_t kind = kinds_find(&c->kinds, STR(""), STR(""));

	c->kinds.at.at[kind].is_unfit = true;
	kinds_count(&c->kinds, kind, row->series->service, row->series->service_name,
		    row->nprofiles);
	if (!c->lines.n && !c->no_type.kind)
		book_no_type(c->book->book, row->head, c->params->sample_type, &c->no_type);
}

static bool add_locked(struct charting *c, const struct scan_row *row, struct err *e)
{
	uint32_t type = book_find_type(c->book->book, row->head, c->params->sample_type), line;
	double value = 0;
	bool ok;

	if (type == NONE)
		note_untyped(c, row);
	if (type == NONE || !learn(c, row, type))
		return true;
	line = line_of(c, by_value(row->series, row->time, c->params->by, &c->scratch));
	if (has_functions(c->params))
		ok = function_value(c, row, type, &value, e);
	else
		ok = total_value(row, type, &value, e);
	return ok && add_value(c, row, line, value * c->ratio, e);
}

static void put_back(struct charting *c)
{
	book_probe_free(c->probe);
	c->probe = NULL;
	if (c->book)
		shelf_put_back(c->s, c->book);
	c->book = NULL;
}

static bool turn_to_book(struct charting *c, int64_t id, struct err *e)
{
	if (c->book && c->book->id == id)
		return true;
	put_back(c);
	c->book = shelf_take(c->s, id, e);
	return c->book;
}

static bool add_row(void *ctx, const struct scan_row *row, struct err *e)
{
	struct charting *c = ctx;
	bool ok;

	if (!row->book)
		return true;
	if (!turn_to_book(c, row->book, e))
		return e->kind == ERR_NOTFOUND;
	pthread_rwlock_rdlock(&c->book->lock);
	ok = add_locked(c, row, e);
	pthread_rwlock_unlock(&c->book->lock);
	return ok;
}

/* ---- result */

static int by_name_and_time(const void *a, const void *b, void *ctx)
{
	const struct charting *c = ctx;
	const struct point *x = a, *y = b;

	if (x->line != y->line)
		return str_cmp(c->strings.at[c->lines.at[x->line].name],
			       c->strings.at[c->lines.at[y->line].name]);
	return (x->time > y->time) - (x->time < y->time);
}

static struct str copy_string(struct arena *a, const struct charting *c, uint32_t string)
{
	struct str s = c->strings.at[string];

	return (struct str){ arena_copy(a, s.p, s.n), s.n };
}

static void make_lines(struct charting *c, struct arena *a, struct store_line **lines, size_t *n)
{
	struct store_point *to = arena_many(a, c->points.n + 1, struct store_point);
	struct store_line *line = NULL;

	if (c->points.n)
		qsort_r(c->points.at, c->points.n, sizeof(*c->points.at), by_name_and_time, c);
	*lines = arena_many(a, c->lines.n + 1, struct store_line);
	*n = 0;
	for (size_t i = 0; i < c->points.n; i++) {
		const struct point *p = &c->points.at[i];
		const struct chart_line *from = &c->lines.at[p->line];
		double n_profiles = c->how == STORE_MEAN && p->nprofiles ? (double)p->nprofiles : 1;

		if (!i || p->line != p[-1].line) {
			line = &(*lines)[(*n)++];
			*line = (struct store_line){ .name = copy_string(a, c, from->name),
						     .unit = (struct str){ str_dup(a, c->unit),
									   c->unit.n },
						     .is_gauge = c->how != STORE_SUM,
						     .points = &to[i] };
		}
		to[i] = (struct store_point){ p->time, p->value / n_profiles, p->nprofiles,
					      p->level };
		line->n++;
	}
}

/* True: it is to be done again, for one kind. */
static bool choose_kind(struct charting *c, struct arena *a)
{
	uint32_t chosen = kinds_choose(&c->kinds);
	const struct kind *kind;

	/* Nothing is in the unit that was asked for: then in any. */
	if (chosen == NONE)
		for (uint32_t i = 0; i < c->kinds.at.n; i++)
			c->kinds.at.at[i].is_unfit = !c->kinds.at.at[i].name.n;
	else if (!kinds_are_mixed(&c->kinds))
		return false;
	chosen = kinds_choose(&c->kinds);
	if (c->choice->is_made || chosen == NONE)
		return false;
	kind = &c->kinds.at.at[chosen];
	*c->choice = (struct choice){ true,
				      { str_dup(a, kind->name), kind->name.n },
				      { str_dup(a, kind->unit), kind->unit.n } };
	return true;
}

static void begin_kinds(struct charting *c)
{
	kinds_init(&c->kinds);
	c->kind = NONE;
	if (c->choice->is_made)
		set_kind(c, kinds_find(&c->kinds, c->choice->name, c->choice->unit));
}

static void tell_left_out(struct charting *c, struct arena *a)
{
	if (!c->params->left_out)
		return;
	*c->params->left_out = (struct store_left_out){ 0 };
	if (c->kind != NONE)
		kinds_left_out(&c->kinds, c->kind, a, c->params->left_out);
}

/* *is_early: it is to be done again; some names were not there yet, and are now, or values are not
 * all of one kind. */
static bool series_once(struct store *s, const struct store_series_params *params,
			struct choice *choice, struct arena *a, struct store_line **lines,
			size_t *n, bool *is_early, struct err *e)
{
	struct charting c = { .s = s,
			      .params = params,
			      .how = params->how,
			      .seed = map_seed(),
			      .choice = choice,
			      .naming.by = s->namer };
	struct scan scan = { .s = s,
			     .q = &params->query,
			     .has_data = has_functions(params),
			     .as_type = params->how == STORE_AS_TYPE,
			     .step = params->step > 0 ? params->step : 1,
			     .each = add_row,
			     .ctx = &c };
	bool ok;

	c.max_points = s->params.max_memory / 8 / sizeof(struct point);
	strings_init(&c.strings);
	begin_kinds(&c);
	scan_pick(&scan, a);
	ok = scan_check_type(&scan, e) && scan_run(&scan, e) && end_run(&c, e) && drop_held(&c, e);
	*is_early = ok && choose_kind(&c, a);
	if (ok && !*is_early && !c.lines.n && c.no_type.kind) {
		*e = c.no_type;
		ok = false;
	}
	if (ok && !*is_early) {
		make_lines(&c, a, lines, n);
		tell_left_out(&c, a);
	}
	put_back(&c);
	strings_release(&c.strings);
	vec_release(&c.lines);
	vec_release(&c.points);
	map_release(&c.line_map);
	map_release(&c.point_map);
	buf_release(&c.scratch);
	kinds_release(&c.kinds);
	*is_early = *is_early || (ok && naming_wait(&c.naming));
	return ok;
}

bool store_series(struct store *s, const struct store_series_params *params, struct arena *a,
		  struct store_line **lines, size_t *n, struct err *e)
{
	enum { MAX_AGAIN = 2 }; /* for one kind of values, and for names */
	struct choice choice = { 0 };
	bool is_early, ok = series_once(s, params, &choice, a, lines, n, &is_early, e);

	for (int i = 0; is_early && i < MAX_AGAIN; i++)
		ok = series_once(s, params, &choice, a, lines, n, &is_early, e);
	return ok;
}
