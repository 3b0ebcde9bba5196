/* record.c - what becomes of collected rows, without a running agent: sums, differences, sizes and
 * time of writing. Is linked with the agent's objects. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/agent.h"
#include "agent/label.h"
#include "agent/module.h"
#include "agent/record.h"
#include "agent/stack.h"

static const struct agent_profile profile = {
	.name = "test",
	.types = { { "things", "count" }, { "space", "bytes" } },
	.ntypes = 2,
	.period_type = { "space", "bytes" },
	.default_type = "things",
};

static int count;

static void check(bool is_right, const char *name)
{
	printf("%s %d - %s\n", is_right ? "ok" : "not ok", ++count, name);
}

static const frame_t *stack_of(frame_t a, frame_t b, uint32_t *n)
{
	frame_t frames[] = { a, b };

	return stack_frames(stack_add(frames, 2), n);
}

static struct record_row *add(struct record *r, frame_t a, uint32_t labels, int64_t value)
{
	struct record_row *row = record_add(r);

	row->frames = stack_of(a, 0x7000, &row->nframes);
	row->labels = labels;
	row->values[0] = 1;
	row->values[1] = value;
	return row;
}

static int64_t value_at(const struct record *r, frame_t a, uint32_t labels)
{
	int64_t sum = 0;

	for (size_t i = 0; i < r->n; i++)
		if (r->rows[i].frames[0] == a && r->rows[i].labels == labels)
			sum += r->rows[i].values[1];
	return sum;
}

static void test_join(void)
{
	struct record r = { 0 };
	struct region memory = { 0 };
	struct joined j;
	uint32_t labels = labels_with(0, "key", "value");

	add(&r, 0x1000, 0, 5);
	add(&r, 0x2000, 0, 7);
	add(&r, 0x1000, 0, 6);
	add(&r, 0x1000, labels, 8);
	check(record_join(&memory, &r, &j) && j.n == 3,
	      "rows of the same stack and labels are one");
	check(j.values[0][0] == 2 && j.values[0][1] == 11, "which has their sum");
	region_release(&memory);
	record_release(&r);
}

static void test_tags(void)
{
	struct record r = { 0 };
	struct region memory = { 0 };
	struct joined j;

	for (int i = 0; i < 4; i++) {
		struct record_row *row = add(&r, 0x1000, 0, 1);

		row->ntags = 1;
		row->tags[0] = (struct tag){ .key = "n", .number = i, .is_average = i >= 2 };
	}
	/* Whether one is an average is a property of the profile, not of a row. */
	for (int i = 2; i < 4; i++)
		r.rows[i].tags[0].key = "bytes";
	check(record_join(&memory, &r, &j) && j.n == 3, "numbers tell rows apart, averages do not");
	region_release(&memory);
	record_release(&r);
}

static void test_subtract(void)
{
	struct record before = { .time = 1000 }, now = { .time = 3000 };

	add(&before, 0x1000, 0, 5);
	add(&before, 0x2000, 0, 7);
	add(&before, 0x3000, 0, 9);
	add(&now, 0x1000, 0, 2);
	add(&now, 0x1000, 0, 5)->values[0] = 0;
	add(&now, 0x2000, 0, 7);
	add(&now, 0x4000, 0, 1);
	check(record_subtract(&now, &before), "two records are subtracted");
	record_release(&before);
	check(now.n == 3, "what did not change is gone");
	check(value_at(&now, 0x1000, 0) == 2, "what grew has grown by that");
	check(value_at(&now, 0x3000, 0) == -9, "what is gone is negative");
	check(value_at(&now, 0x4000, 0) == 1, "what is new is there");
	check(now.duration == 2000, "it lasted as long as was between them");
	record_release(&now);
}

static void test_text(void)
{
	static const char want[] = "test profile: total 3\n"
				   "2 @ 0x1001 0x7001\n"
				   "# labels: {\"a\":\"\\\"\\n\\x01\", \"b\":\"2\"}\n"
				   "#\t0x1000\n"
				   "#\t0x7000\n"
				   "\n"
				   "1 @ 0x1001\n"
				   "#\t0x1000\n"
				   "#\t0x0\t[truncated]\n"
				   "\n";
	struct record r = { 0 };
	struct out o = { 0 };
	uint32_t labels = labels_with(labels_with(0, "b", "2"), "a", "\"\n\x01");
	struct record_row *row = record_add(&r);

	row->frames = stack_of(0x1000, FRAME_TRUNCATED, &row->nframes);
	row->values[0] = 1;
	add(&r, 0x1000, labels, 1)->values[0] = 2;
	record_write_text(&o, &profile, &r, 1);
	check(o.n == sizeof(want) - 1 && memcmp(o.p, want, o.n) == 0, "text as Go's");
	if (o.n != sizeof(want) - 1 || memcmp(o.p, want, o.n) != 0)
		fprintf(stderr, "%.*s", (int)o.n, o.p);
	out_release(&o);
	record_release(&r);
}

/* 10,000 stacks of 30 frames, as programs have them: alike at their roots, in the code of libc. */
static void fill(struct record *r)
{
	uint64_t random = 1;

	for (unsigned i = 0; i < 10000; i++) {
		struct record_row *row = record_add(r);
		frame_t frames[30];

		for (unsigned k = 0; k < 30; k++) {
			random = random * 6364136223846793005u + 1442695040888963407u;
			frames[k] = frame_of((uintptr_t)&printf +
					     (k < 20 ? (random >> 33) % 20000 * 16 : k * 64u));
		}
		row->frames = stack_frames(stack_add(frames, 30), &row->nframes);
		row->values[0] = 1;
		row->values[1] = (int64_t)(random >> 40);
		row->ntags = 1;
		row->tags[0] = (struct tag){ .key = "bytes", .number = (int64_t)(random >> 50) };
	}
}

/* Others may use the processor too. */
static int64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}

static void test_size(const char *path)
{
	struct record r = { .time = wall_ns(), .period = 524288 };
	int64_t best = INT64_MAX;
	struct out o = { 0 };
	size_t pages;
	FILE *f;

	fill(&r);
	pages = pages_total();
	for (int i = 0; i < 5; i++) {
		int64_t start = cpu_ns(), took;

		out_release(&o);
		record_write(&o, &profile, &r);
		took = cpu_ns() - start;
		best = took < best ? took : best;
	}
	printf("# 10,000 stacks, %zu bytes, %.1f ms\n", o.n, (double)best / 1e6);
	check(best < 100000000, "10,000 stacks are written in less than 100 ms");
	f = fopen(path, "w");
	check(f && fwrite(o.p, 1, o.n, f) == o.n && fclose(f) == 0, "to a file");
	pages = pages_total() - pages - o.cap;
	printf("# %zu KB are kept\n", pages >> 10);
	check(pages < (4 << 20), "and memory is given back, but for names");
	out_release(&o);
	record_release(&r);
}

int main(int argc, char **argv)
{
	(void)argc;
	modules_update(false);
	test_join();
	test_tags();
	test_subtract();
	test_text();
	test_size(argv[1]);
	printf("1..%d\n", count);
	return 0;
}
