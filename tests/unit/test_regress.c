#include "test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "server/regress.h"

/* A simulated service: what parts of two sides would count of it. Shares fall as those of real
 * programs do. From part to part its load changes, and so does what it does with it. */
enum { FUNCTIONS = 120, PARTS = 8, SEEDS = 5 };

struct service {
	double samples;	  /* of a side */
	double load;	  /* relative standard deviation of a part's number of samples */
	double mix;	  /* the same of a function's share */
	double memory;	  /* how much of a part's mix stays in the next: 0 to 1 */
	size_t grown;	  /* this function */
	double growth;	  /* becomes more by this part of itself */
	double new_cores; /* of the service */
	struct regress_limits limits;
};

struct lab {
	struct arena arena;
	uint64_t random;
	struct compare_source sources[2 * PARTS];
	double values[2 * PARTS][FUNCTIONS], squares[2 * PARTS][FUNCTIONS], mix[FUNCTIONS];
	struct str names[FUNCTIONS];
	char name_text[FUNCTIONS][8];
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

static double poisson(struct lab *l, double mean)
{
	double product = 1, n = -1, limit = exp(-mean);

	if (mean > 100)
		return fmax(0, round(mean + sqrt(mean) * normal(l)));
	do {
		product *= uniform(l);
		n++;
	} while (product > limit);
	return n;
}

/* 13%, 8.5%, 6.4%, ... */
static double share_of(size_t function)
{
	static double sum;

	if (!sum)
		for (size_t i = 0; i < FUNCTIONS; i++)
			sum += 1 / (double)(i + 2);
	return 1 / (double)(function + 2) / sum;
}

static void record(struct lab *l, const struct service *s, size_t part)
{
	double *values = l->values[part], sum = 0, load = exp(s->load * normal(l));
	double kept = part % PARTS ? s->memory : 0;

	for (size_t i = 0; i < FUNCTIONS; i++) {
		double share = share_of(i);

		l->mix[i] = kept * l->mix[i] + sqrt(1 - kept * kept) * normal(l);
		if (part >= PARTS && i == s->grown)
			share *= 1 + s->growth;
		share *= exp(s->mix * l->mix[i]);
		values[i] = poisson(l, share * load * s->samples / PARTS);
		l->squares[part][i] = values[i];
		sum += values[i];
	}
	l->sources[part] = (struct compare_source){ .name = "x",
						    .is_new = part >= PARTS,
						    .type = STR("cpu"),
						    .unit = STR("nanoseconds"),
						    .total = sum,
						    .total_square = sum,
						    .nevents = sum,
						    .has_events = true,
						    .names = l->names,
						    .values = values,
						    .squares = l->squares[part],
						    .n = FUNCTIONS };
}

/* *flagged: anything, more or less. */
static struct regress judged(struct lab *l, const struct service *s, bool *flagged)
{
	struct regress r = { .unit = STR("nanoseconds") };
	struct comparison c;
	struct err e;

	for (size_t i = 0; i < 2 * PARTS; i++)
		record(l, s, i);
	if (!regress_compare(&l->arena, l->sources, 2 * PARTS, NULL, &r, &c, &e))
		fail_msg("%s", e.text);
	assert_true(regress_has_enough(&c));
	r.old.cores = r.new.cores = s->new_cores;
	regress_judge(&l->arena, &c, &s->limits, &r);
	*flagged = c.nchanged > 0 || r.nfaster > 0;
	return r;
}

static struct lab *lab_new(uint64_t seed)
{
	struct lab *l = calloc(1, sizeof(*l));

	l->random = seed;
	for (size_t i = 0; i < FUNCTIONS; i++) {
		snprintf(l->name_text[i], sizeof(l->name_text[i]), "f%zu", i);
		l->names[i] = str_of(l->name_text[i]);
	}
	return l;
}

static bool has_found(const struct lab *l, const struct regress *r, size_t function)
{
	for (size_t i = 0; i < r->n; i++)
		if (str_eq(r->findings[i].function, l->names[function]))
			return true;
	return false;
}

/* Parts of comparisons, in which ... */
struct rates {
	double flagged;	   /* ... anything is said to have changed, */
	double found;	   /* ... anything is listed, */
	double right;	   /* ... what has grown is. */
	double detectable; /* what they say would be found, on average */
};

/* Each seed makes as many of them. */
static struct rates simulate(const struct service *s, int n)
{
	struct rates sum = { 0 };

	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct lab *l = lab_new(seed * 1000003);

		for (int i = 0; i < n / SEEDS; i++) {
			bool flagged;
			struct regress r = judged(l, s, &flagged);

			sum.flagged += flagged;
			sum.found += r.n > 0;
			sum.right += s->growth > 0 && has_found(l, &r, s->grown);
			sum.detectable += r.detectable;
			arena_release(&l->arena);
		}
		free(l);
	}
	return (struct rates){ sum.flagged / n, sum.found / n, sum.right / n, sum.detectable / n };
}

/* More of them with SIMULATIONS=10, as `make bench` has it. */
static int times(int n)
{
	const char *more = getenv("SIMULATIONS");

	return n * (more ? atoi(more) : 1);
}

static const struct regress_limits usual = { .min_share = 0.005, .min_cores = 0.1 };
/* Limits that keep nothing quiet: it is the test that does. */
static const struct regress_limits none = { 0 };

TEST(of_1000_comparisons_without_a_change_at_most_5_percent_find_one)
{
	static const struct {
		const char *what;
		double samples, load, mix, memory;
	} cases[] = {
		{ "chance alone, 2,000 samples", 2000, 0, 0, 0 },
		{ "chance alone, 100,000 samples", 100000, 0, 0, 0 },
		{ "load of 50%, 20,000 samples", 20000, 0.5, 0, 0 },
		{ "mix of 6%, 20,000 samples", 20000, 0.5, 0.06, 0 },
		{ "mix of 6%, drift .5", 20000, 0.5, 0.06, 0.5 },
		{ "mix of 6%, drift .7", 20000, 0.5, 0.06, 0.7 },
		{ "mix of 6%, drift .8", 20000, 0.5, 0.06, 0.8 },
		{ "mix of 10%, 200,000 samples", 200000, 0.5, 0.1, 0 },
		{ "mix of 10%, drift .5", 200000, 0.5, 0.1, 0.5 },
		{ "mix of 10%, drift .7", 200000, 0.5, 0.1, 0.7 },
		{ "mix of 10%, drift .8", 200000, 0.5, 0.1, 0.8 },
		{ "mix of 20%, 200,000 samples", 200000, 0.5, 0.2, 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct service s = { .samples = cases[i].samples,
				     .load = cases[i].load,
				     .mix = cases[i].mix,
				     .memory = cases[i].memory,
				     .new_cores = 10,
				     .limits = none };
		int n = times(1000);
		struct rates r = simulate(&s, n);

		print_message("# %s: of %d %.1f%% flagged, %.1f%% listed\n", cases[i].what, n,
			      100 * r.flagged, 100 * r.found);
		assert_true(r.flagged <= 0.05);
	}
}

/* What the numbers of samples in kiln-serve(1) promise. */
TEST(seeded_changes_are_found)
{
	static const struct {
		const char *what;
		size_t function;
		double growth, samples, mix, memory;
	} cases[] = {
		/* f3 has 4%: with this growth it takes so much of the service more. */
		{ "1% of the service", 3, 0.01, 100000, 0, 0 },
		{ "5% of the service", 3, 0.05, 7000, 0, 0 },
		{ "20% of the service", 3, 0.20, 1500, 0, 0 },
		{ "1% of the service, mix of 2%", 3, 0.01, 250000, 0.02, 0 },
		{ "5% of the service, mix of 10%", 3, 0.05, 10000, 0.1, 0 },
		{ "20% of the service, mix of 20%", 3, 0.20, 2000, 0.2, 0 },
		{ "1% of the service, mix of 2%, drift .5", 3, 0.01, 250000, 0.02, 0.5 },
		{ "5% of the service, mix of 2%, drift .5", 3, 0.05, 10000, 0.02, 0.5 },
		{ "5% of the service, mix of 6%, drift .5", 3, 0.05, 10000, 0.06, 0.5 },
		{ "20% of the service, mix of 2%, drift .5", 3, 0.20, 2000, 0.02, 0.5 },
		{ "20% of the service, mix of 20%, drift .5", 3, 0.20, 10000, 0.2, 0.5 },
		/* f0 has 10% of the service. */
		{ "a function of 10% by 1% of itself", 0, -0.01, 15000000, 0, 0 },
		{ "a function of 10% by 5% of itself", 0, -0.05, 600000, 0, 0 },
		{ "a function of 10% by 20% of itself", 0, -0.20, 40000, 0, 0 },
		{ "by 20% of itself, mix of 2%, drift .5", 0, -0.20, 200000, 0.02, 0.5 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		double growth = cases[i].growth;
		struct service s = { .samples = cases[i].samples,
				     .load = 0.5,
				     .mix = cases[i].mix,
				     .memory = cases[i].memory,
				     .grown = cases[i].function,
				     .growth = growth > 0 ? growth / share_of(cases[i].function)
							  : -growth,
				     .new_cores = 200,
				     .limits = usual };
		struct rates r = simulate(&s, times(200));

		print_message("# %s, %.0f samples: %.1f%% found (%.1f%% any)\n", cases[i].what,
			      cases[i].samples, 100 * r.right, 100 * r.found);
		assert_true(r.right >= 0.8);
	}
}

/* Four times of five, about: with drift and without. */
TEST(what_is_said_to_be_detectable_is)
{
	static const struct {
		double samples, mix, memory;
	} cases[] = { { 40000, 0, 0 }, { 100000, 0.04, 0.5 }, { 1000000, 0.1, 0.5 } };

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct service s = { .samples = cases[i].samples,
				     .load = 0.5,
				     .mix = cases[i].mix,
				     .memory = cases[i].memory,
				     .grown = 2, /* has 5.7% */
				     .limits = none };
		double detectable = simulate(&s, times(100)).detectable, share = share_of(2), right;

		/* It is said of 5%, of a share; the more this grows the more there is of all. */
		detectable *= sqrt(share * (1 - share) / (0.05 * 0.95));
		s.growth = detectable / (1 - share) / share;
		right = simulate(&s, times(200)).right;
		print_message("# %.0f samples, mix of %.0f%%: of %.2f%% %.0f%% found\n",
			      cases[i].samples, 100 * cases[i].mix, 100 * detectable, 100 * right);
		assert_true(right > 0.7 && right < 0.97);
	}
}

/* A function that takes half of what it took: others take more of what is left, and are no slower.
 */
TEST(what_became_faster_makes_nothing_else_slower)
{
	struct service s = { .samples = 100000, .load = 0.5, .growth = -0.5, .limits = none };

	assert_true(simulate(&s, 200).found <= 0.05);
}

TEST(few_samples_or_parts_tell_nothing)
{
	struct comparison c = { .has_events = true,
				.old = { .nevents = 5000, .nsources = 8 },
				.new = { .nevents = 5000, .nsources = 8 } };

	assert_true(regress_has_enough(&c));
	c.new.nsources = 3;
	assert_false(regress_has_enough(&c));
	c.new = c.old;
	c.old.nevents = 499;
	assert_false(regress_has_enough(&c));
	c.old = c.new;
	c.has_events = false;
	assert_false(regress_has_enough(&c));
}

TEST(small_changes_are_left_out)
{
	struct arena a = { 0 };
	struct compare_row rows[] = {
		{ .name = STR("large"), .change = 0.02, .verdict = VERDICT_MORE },
		{ .name = STR("less"), .change = -0.02, .verdict = VERDICT_LESS },
		{ .name = STR("small"), .change = 0.004, .verdict = VERDICT_MORE },
		{ .name = STR("chance"), .change = 0.5, .verdict = VERDICT_FEW },
	};
	struct comparison c = { .rows = rows, .nrows = 4, .old.nevents = 1, .new.nevents = 1 };
	struct regress r = { .unit = STR("nanoseconds"), .new.cores = 1, .rest = { 1, 1 } };

	regress_judge(&a, &c, &usual, &r);
	assert_int_equal(r.n, 1);
	assert_true(str_eq(r.findings[0].function, STR("large")));
	r.new.cores = 100; /* 0.4 cores */
	regress_judge(&a, &c, &usual, &r);
	assert_int_equal(r.n, 2);
	r.is_gauge = true;
	regress_judge(&a, &c, &usual, &r);
	assert_int_equal(r.n, 1);
	r.is_gauge = false;
	r.unit = STR("bytes"); /* which are no cores */
	regress_judge(&a, &c, &usual, &r);
	assert_int_equal(r.n, 1);
	arena_release(&a);
}

TEST(a_change_has_a_time)
{
	double function[] = { 1, 1, 2, 1, 5, 6, 5 }, all[] = { 10, 10, 20, 10, 10, 10, 10 };
	double falling[] = { 5, 4, 3, 2 };

	assert_int_equal(regress_change_point(function, all, 7), 4);
	assert_int_equal(regress_change_point(falling, all, 4), 0);
	assert_int_equal(regress_change_point(function, all, 0), 0);
	all[0] = all[1] = 0; /* nothing was there */
	assert_int_equal(regress_change_point(function, all, 7), 4);
}
