#include "test.h"

#include <math.h>
#include <stdio.h>

#include "compare/compare.h"
#include "profiles.h"

/* ---- simulated profiles */

enum { FUNCTIONS = 50, MAX_SOURCES = 10 };

/* A sampled program: how often each function is hit, and how much that varies from run to run. */
struct program {
	double share[FUNCTIONS];
	double nsamples;
	double variation; /* relative standard deviation of a share from run to run */
	bool is_heap;	  /* samples weigh differently */
};

struct lab {
	struct arena arena;
	uint64_t random;
	struct compare_source sources[MAX_SOURCES];
	double values[MAX_SOURCES][FUNCTIONS], squares[MAX_SOURCES][FUNCTIONS];
	struct str names[FUNCTIONS];
	char name_text[FUNCTIONS][8];
	size_t n;
};

static double uniform(struct lab *l)
{
	uint64_t z = l->random += 0x9e3779b97f4a7c15u; /* splitmix64 */

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

static double normal(struct lab *l)
{
	return sqrt(-2 * log(1 - uniform(l))) * cos(2 * M_PI * uniform(l));
}

static void lab_init(struct lab *l, uint64_t seed)
{
	*l = (struct lab){ .random = seed };
	for (size_t i = 0; i < FUNCTIONS; i++) {
		snprintf(l->name_text[i], sizeof(l->name_text[i]), "f%zu", i);
		l->names[i] = str_of(l->name_text[i]);
	}
}

/* Shares that fall as those of real programs do. */
static struct program typical(double nsamples)
{
	struct program p = { .nsamples = nsamples };

	for (size_t i = 0; i < FUNCTIONS; i++)
		p.share[i] = 1 / (double)(i + 3);
	return p;
}

/* Takes a profile: each sample hits a function by chance. The number of samples goes with the work
 * there is, so shares that add up to more give more of them. */
static void record(struct lab *l, const struct program *p, bool is_new)
{
	struct compare_source *s = &l->sources[l->n];
	double *values = l->values[l->n], *squares = l->squares[l->n++];
	double norm = 0, sum = 0, square = 0, below[FUNCTIONS];
	static const double scale = 2.4997; /* of typical() */

	memset(values, 0, sizeof(l->values[0]));
	memset(squares, 0, sizeof(l->squares[0]));
	for (size_t i = 0; i < FUNCTIONS; i++) {
		norm += p->share[i] * exp(p->variation * normal(l));
		below[i] = norm;
	}
	for (double k = 0; k < p->nsamples * norm / scale; k++) {
		double x = uniform(l) * norm, weight = 1;
		size_t i = 0;

		while (below[i] < x)
			i++;
		if (p->is_heap)
			weight = 1 - log(1 - uniform(l)) * (double)(1 + i % 7);
		values[i] += weight;
		squares[i] += weight * weight;
	}
	for (size_t i = 0; i < FUNCTIONS; i++) {
		sum += values[i];
		square += squares[i];
	}
	*s = (struct compare_source){ .name = "x",
				      .is_new = is_new,
				      .type = STR("samples"),
				      .unit = STR("count"),
				      .duration_s = 1,
				      .total = sum,
				      .total_square = square,
				      .nevents = sum,
				      .has_events = true,
				      .names = l->names,
				      .values = values,
				      .squares = squares,
				      .n = FUNCTIONS };
}

static struct comparison compared(struct lab *l, enum compare_mode mode)
{
	struct compare_params params = {
		.mode = mode, .fdr = 0.05, .fail_over = -1, .max_rows = 1
	};
	struct comparison c;
	struct err e;

	if (!compare(&l->arena, l->sources, l->n, &params, &c, &e))
		fail_msg("%s", e.text);
	return c;
}

static const struct compare_row *row(const struct comparison *c, const char *name)
{
	for (size_t i = 0; i < c->nrows; i++)
		if (str_eq(c->rows[i].name, str_of(name)))
			return &c->rows[i];
	fail_msg("no row %s", name);
	return NULL;
}

enum { TRIALS = 200 };
/* What a rate of 5% may seem to be in so many trials, three standard deviations up. */
static const double nominal = 0.05 + 3 * 0.0154;

/* How often anything is found where nothing changed. */
static double false_alarms(const struct program *p, enum compare_mode mode, size_t nruns)
{
	struct lab l;
	double found = 0;

	lab_init(&l, 1);
	for (int t = 0; t < TRIALS; t++) {
		l.n = 0;
		for (size_t i = 0; i < 2 * nruns; i++)
			record(&l, p, i >= nruns);
		found += compared(&l, mode).nchanged > 0;
		arena_release(&l.arena);
	}
	return found / TRIALS;
}

TEST(where_nothing_changed_nothing_is_found)
{
	for (double n = 200; n < 4000; n *= 4) {
		struct program p = typical(n);

		assert_true(false_alarms(&p, COMPARE_SHARE, 1) <= nominal);
		assert_true(false_alarms(&p, COMPARE_PER_RUN, 1) <= nominal);
	}
}

TEST(nor_with_events_that_weigh_differently)
{
	struct program p = typical(1000);

	p.is_heap = true;
	assert_true(false_alarms(&p, COMPARE_SHARE, 1) <= nominal);
	assert_true(false_alarms(&p, COMPARE_PER_RUN, 1) <= nominal);
}

/* A single run cannot know how much runs vary; several can. */
TEST(nor_with_runs_that_vary)
{
	struct program p = typical(1000);

	p.variation = 0.2;
	assert_true(false_alarms(&p, COMPARE_SHARE, 1) > 0.3);
	for (size_t nruns = 2; nruns <= 4; nruns++)
		assert_true(false_alarms(&p, COMPARE_SHARE, nruns) <= nominal);
}

/* How often a function that became 30% slower is found. */
static double detections(size_t nruns, double nsamples)
{
	struct program before = typical(nsamples), after = before;
	struct lab l;
	double found = 0;

	lab_init(&l, 2);
	after.share[4] *= 1.3;
	for (int t = 0; t < TRIALS / 4; t++) {
		struct comparison c;

		l.n = 0;
		for (size_t i = 0; i < 2 * nruns; i++)
			record(&l, i < nruns ? &before : &after, i >= nruns);
		c = compared(&l, COMPARE_PER_RUN);
		found += row(&c, "f4")->verdict == VERDICT_MORE;
		arena_release(&l.arena);
	}
	return found / (TRIALS / 4);
}

TEST(more_samples_find_more)
{
	double few = detections(1, 500), some = detections(1, 3000), many = detections(1, 10000);

	assert_true(few < 0.2);
	assert_true(some > few);
	assert_true(many > 0.9);
}

TEST(more_runs_find_more)
{
	assert_true(detections(4, 2000) > detections(1, 2000) + 0.2);
}

/* Of what is found while ten functions did change, how much is wrong? */
TEST(false_findings_among_true_ones)
{
	struct program before = typical(3000), after = before;
	struct lab l;
	double wrong = 0, found = 0;

	lab_init(&l, 3);
	for (size_t i = 0; i < 10; i++)
		after.share[i] *= i % 2 ? 1.6 : 0.5;
	for (int t = 0; t < TRIALS; t++) {
		struct comparison c;
		double nwrong = 0;

		l.n = 0;
		record(&l, &before, false);
		record(&l, &after, true);
		c = compared(&l, COMPARE_PER_RUN);
		for (size_t i = 0; i < c.nrows; i++)
			if (c.rows[i].verdict >= VERDICT_MORE)
				nwrong += c.rows[i].name.n > 2; /* f10 and on */
		wrong += c.nchanged ? nwrong / (double)c.nchanged : 0;
		found += (double)c.nchanged;
		arena_release(&l.arena);
	}
	assert_true(found / TRIALS > 5);
	assert_true(wrong / TRIALS <= 0.05);
}

/* ---- profiles written down */

static const struct granularity by_function = { .inlines = true, .function = true };

static struct compare_source counted(struct world *w, const char *stacks, bool is_new, bool is_cum)
{
	struct profile p = folded(w, stacks);
	struct compare_source s = { .name = "x", .is_new = is_new };
	struct compare_count_params params = { by_function, 0, is_cum, &p, NULL };
	struct err e;

	if (!compare_count(&w->arena, &p, &params, &s, &e))
		fail_msg("%s", e.text);
	return s;
}

static struct comparison compare_folded(struct world *w, const char *old, const char *new,
					struct compare_params params)
{
	struct compare_source sources[] = { counted(w, old, false, params.is_cum),
					    counted(w, new, true, params.is_cum) };
	struct comparison c;
	struct err e;

	params.fdr = 0.05;
	if (!compare(&w->arena, sources, 2, &params, &c, &e))
		fail_msg("%s", e.text);
	return c;
}

TEST(equal_profiles_are_the_same)
{
	struct world w;
	struct comparison c;

	world_init(&w);
	c = compare_folded(&w, "main;f 500\nmain;g 10\nmain 90\n",
			   "main;f 500\nmain;g 10\nmain 90\n", (struct compare_params){ 0 });
	assert_int_equal(c.nrows, 3);
	assert_int_equal(c.nchanged, 0);
	assert_int_equal(row(&c, "f")->verdict, VERDICT_SAME);
	assert_int_equal(row(&c, "g")->verdict, VERDICT_FEW);
	assert_true(row(&c, "g")->ratio_low < 0.5 && row(&c, "g")->ratio_high > 2);
	world_release(&w);
}

TEST(functions_come_and_go)
{
	struct world w;
	struct comparison c;

	world_init(&w);
	c = compare_folded(&w, "main;old 100\nmain 900\n", "main;new 100\nmain 900\n",
			   (struct compare_params){ 0 });
	assert_int_equal(row(&c, "old")->verdict, VERDICT_LESS);
	assert_int_equal(row(&c, "new")->verdict, VERDICT_MORE);
	assert_int_equal(row(&c, "main")->verdict, VERDICT_SAME);
	assert_true(row(&c, "old")->new == 0 && row(&c, "new")->old == 0);
	world_release(&w);
}

/* A profile of twice the length has the same shares. */
TEST(loads_may_differ)
{
	struct world w;
	struct comparison c;

	world_init(&w);
	c = compare_folded(&w, "f 300\ng 700\n", "f 600\ng 1400\n", (struct compare_params){ 0 });
	assert_int_equal(c.nchanged, 0);
	c = compare_folded(&w, "f 300\ng 700\n", "f 600\ng 1400\n",
			   (struct compare_params){ .mode = COMPARE_PER_RUN });
	assert_int_equal(c.nchanged, 2);
	assert_int_equal(c.total.verdict, VERDICT_MORE);
	assert_true(fabs(c.total.ratio - 2) < 1e-9);
	assert_true(c.total.ratio_low > 1.8 && c.total.ratio_high < 2.2);
	world_release(&w);
}

TEST(a_limit_needs_both_size_and_significance)
{
	struct compare_params params = { .fail_over = 0.05 };
	struct world w;
	struct comparison c;

	world_init(&w);
	c = compare_folded(&w, "f 1000\ng 9000\n", "f 1400\ng 8600\n", params);
	assert_int_equal(row(&c, "f")->verdict, VERDICT_MORE); /* by 4 points */
	assert_int_equal(c.nover, 0);
	c = compare_folded(&w, "f 1000\ng 9000\n", "f 1600\ng 8400\n", params);
	assert_int_equal(c.nover, 1);
	assert_true(row(&c, "f")->is_over);
	c = compare_folded(&w, "f 10\ng 90\n", "f 16\ng 84\n", params); /* the same, by chance */
	assert_int_equal(c.nover, 0);
	params.mode = COMPARE_PER_RUN; /* each by 3% of the total, all of it by 6% */
	c = compare_folded(&w, "f 10000\ng 10000\n", "f 10600\ng 10600\n", params);
	assert_int_equal(c.nover, 1);
	assert_true(c.total.is_over);
	world_release(&w);
}

/* More than half of the total: the rest decides, and it has few samples. */
TEST(what_is_nearly_all_is_judged_by_the_rest)
{
	struct world w;
	struct comparison c;

	world_init(&w);
	c = compare_folded(&w, "f 9999\ng 1\n", "f 9996\ng 4\n", (struct compare_params){ 0 });
	assert_int_equal(row(&c, "f")->verdict, VERDICT_SAME);
	c = compare_folded(&w, "f 9990\ng 10\n", "f 9900\ng 100\n", (struct compare_params){ 0 });
	assert_int_equal(row(&c, "f")->verdict, VERDICT_LESS);
	assert_int_equal(row(&c, "g")->verdict, VERDICT_MORE);
	world_release(&w);
}

TEST(cumulative_counts_recursion_once)
{
	struct world w;
	struct comparison c;

	world_init(&w);
	c = compare_folded(&w, "main;f;g;f 10\n", "main;f 10\n",
			   (struct compare_params){ .is_cum = true });
	assert_true(row(&c, "f")->old == 10);
	assert_true(row(&c, "main")->old == 10);
	world_release(&w);
}

TEST(clones_are_the_function)
{
	struct world w;
	struct comparison c;

	world_init(&w);
	c = compare_folded(&w, "f.constprop.0 3\nf.part.3.cold 4\nf 5\n",
			   "f(int) [clone .isra.0] 1\nf.llvm.123 2\nf.1 7\nf.cold 2\n",
			   (struct compare_params){ 0 });
	assert_int_equal(c.nrows, 3); /* f, f(int) and f.1 */
	assert_true(row(&c, "f")->old == 12 && row(&c, "f")->new == 4);
	assert_true(row(&c, "f(int)")->new == 1);
	assert_true(row(&c, "f.1")->new == 7);
	world_release(&w);
}

/* ---- which events are behind the values */

/* One sample of one function. */
static struct compare_source single(struct world *w, const char *const (*types)[2], uint32_t value,
				    const char *period_type, const char *period_unit,
				    int64_t period, const int64_t *values)
{
	struct profile p = folded(w, "f 1\n");
	struct compare_source s = { .name = "x" };
	struct compare_count_params params = { by_function, value, false, &p, NULL };
	struct err e;

	p.types = arena_many(&w->arena, 4, struct value_type);
	for (p.ntypes = 0; types[p.ntypes][0]; p.ntypes++)
		p.types[p.ntypes] =
			(struct value_type){ strings_add(&w->strings, str_of(types[p.ntypes][0])),
					     strings_add(&w->strings, str_of(types[p.ntypes][1])) };
	p.values = arena_copy(&w->arena, values, p.ntypes * sizeof(*values));
	p.period_type = (struct value_type){ strings_add(&w->strings, str_of(period_type)),
					     strings_add(&w->strings, str_of(period_unit)) };
	p.period = period;
	if (!compare_count(&w->arena, &p, &params, &s, &e))
		fail_msg("%s", e.text);
	return s;
}

TEST(events_of_cpu_profiles)
{
	static const char *const types[][2] = { { "samples", "count" },
						{ "cpu", "nanoseconds" },
						{ 0 } };
	static const char *const alone[][2] = { { "cpu", "microseconds" }, { 0 } };
	struct world w;

	world_init(&w);
	assert_true(single(&w, types, 1, "cpu", "nanoseconds", 10000000, (int64_t[]){ 5, 50000000 })
			    .nevents == 5);
	assert_true(single(&w, types, 1, "", "", 0, (int64_t[]){ 5, 50000000 }).nevents == 5);
	assert_true(single(&w, types, 0, "cpu", "nanoseconds", 10000000, (int64_t[]){ 5, 50000000 })
			    .nevents == 5);
	assert_true(fabs(single(&w, alone, 0, "cpu", "nanoseconds", 10000000, (int64_t[]){ 50000 })
				 .nevents -
			 5) < 1e-9);
	assert_false(single(&w, alone, 0, "", "", 0, (int64_t[]){ 50000 }).has_events);
	world_release(&w);
}

/* 8 objects of 64 kB were sampled at every 512 kB and scaled up: 8 / (1 - exp(-1/8)) = 68.08. */
TEST(events_of_heap_profiles)
{
	static const char *const types[][2] = { { "inuse_objects", "count" },
						{ "inuse_space", "bytes" },
						{ 0 } };
	struct world w;

	world_init(&w);
	for (uint32_t value = 0; value < 2; value++)
		assert_true(fabs(single(&w, types, value, "space", "bytes", 524288,
					(int64_t[]){ 68, 68 * 65536 })
					 .nevents -
				 8) < 0.02);
	assert_true(single(&w, types, 1, "space", "bytes", 1, (int64_t[]){ 68, 680 }).nevents ==
		    68);
	world_release(&w);
}

/* Waits vary among each other: the variance is taken as twice that of equal ones. */
TEST(events_of_contention_profiles)
{
	static const char *const types[][2] = { { "contentions", "count" },
						{ "delay", "nanoseconds" },
						{ 0 } };
	struct compare_source s;
	struct world w;

	world_init(&w);
	s = single(&w, types, 1, "contentions", "count", 1, (int64_t[]){ 4, 100 });
	assert_true(s.nevents == 4);
	assert_true(s.total_square == 2.0 * 100 * 100 / 4);
	world_release(&w);
}

TEST(differences_and_other_types_are_refused)
{
	struct world w;
	struct profile p;
	struct compare_source s[2] = { { .name = "a" }, { .name = "b", .is_new = true } };
	struct comparison c;
	struct err e;

	world_init(&w);
	p = folded(&w, "f 1\n");
	p.values = arena_copy(&w.arena, &(int64_t){ -1 }, sizeof(int64_t));
	assert_false(compare_count(
		&w.arena, &p, &(struct compare_count_params){ by_function, 0, false, &p, NULL },
		&s[0], &e));
	assert_non_null(strstr(e.text, "negative"));
	s[0] = counted(&w, "f 1\n", false, false);
	s[1] = counted(&w, "f 1\n", true, false);
	s[1].type = STR("cpu");
	assert_false(compare(&w.arena, s, 2, &(struct compare_params){ .fdr = 0.05 }, &c, &e));
	assert_non_null(strstr(e.text, "cpu"));
	world_release(&w);
}

/* The change lies in its interval, which is about as wide as chance makes it, and samples are told.
 */
TEST(changes_have_intervals_and_samples)
{
	struct world w;
	struct comparison c;
	const struct compare_row *f;
	double error = sqrt(0.1 * 0.9 / 10000 + 0.16 * 0.84 / 10000);

	world_init(&w);
	c = compare_folded(&w, "f 1000\ng 9000\n", "f 1600\ng 8400\n",
			   (struct compare_params){ .max_rows = 1 });
	f = row(&c, "f");
	assert_true(f->old_events == 1000 && f->new_events == 1600);
	assert_true(f->change_low < 0.06 && f->change_high > 0.06);
	assert_true(fabs((f->change_high - f->change_low) / (2 * 1.96 * error) - 1) < 0.1);
	assert_true(row(&c, "g")->change_high < 0); /* not shown, but changed */
	c = compare_folded(&w, "g 9000\n", "f 600\ng 8400\n", (struct compare_params){ 0 });
	f = row(&c, "f");
	assert_true(f->change_low > 0.05 && f->change_low < f->new_share);
	assert_true(f->change_high >= f->new_share && f->change_high < 0.09);
	world_release(&w);
}
