/* heap.c - samples of allocations, and the profiles `heap`, `allocs` and `growth`. */
#include "agent/heap.h"

#include <errno.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/heap_text.h"
#include "agent/profiles.h"
#include "agent/stack.h"

/* Values of a bucket. In use is what was not freed: so each event adds to two of them only. */
enum { ALLOC_OBJECTS, ALLOC_BYTES, FREED_OBJECTS, FREED_BYTES };
enum { GROWTH_OBJECTS, GROWTH_BYTES };

enum { HIDDEN_MAX = 8 };

static atomic_size_t rate, last_rate; /* last_rate: not 0 */
static struct buckets buckets, growth;
static struct bucket overflow; /* for when there is no room for more */
static atomic_llong in_use, highest;
static struct {
	uintptr_t start, end;
} hidden[HIDDEN_MAX];
static atomic_uint nhidden;

/* ---- numbers: libm is not ours to bring along */

/* Of numbers from 2^-53 up to 1. */
static double natural_log(double x)
{
	double s, s2, sum = 0;
	int exponent = 0;

	for (; x < 0x1p-16; x *= 0x1p16)
		exponent -= 16;
	for (; x < 0.70710678118654752; x *= 2)
		exponent--;
	s = (x - 1) / (x + 1);
	s2 = s * s;
	for (int i = 17; i > 0; i -= 2)
		sum = sum * s2 + 1.0 / i;
	return 2 * s * sum + exponent * 0.69314718055994531;
}

/* 1 - e^-x for x >= 0. */
static double one_minus_exp(double x)
{
	double sum = 0;
	int halvings = 0;

	if (x > 40)
		return 1;
	for (; x > 0.125; x /= 2)
		halvings++;
	for (int i = 10; i > 0; i--)
		sum = (1 - sum) * x / i;
	/* 1 - e^-2x = (1 - e^-x) * (2 - (1 - e^-x)) */
	while (halvings-- > 0)
		sum *= 2 - sum;
	return sum;
}

double heap_share_sampled(double size, double mean)
{
	return mean <= 1 || size <= 0 ? 1 : one_minus_exp(size / mean);
}

static int64_t draw_gap(double mean)
{
	double uniform = ((double)(local_random() >> 11) + 1) * 0x1p-53;

	return (int64_t)(-natural_log(uniform) * mean);
}

/* ---- sampling */

/* The first time in a thread, and after a change of the rate, a gap is drawn. With rate 1 none is
 * ever, so that each allocation comes here. */
bool heap_is_sampled(size_t size)
{
	unsigned epoch = atomic_load_explicit(&malloc_ways.epoch, memory_order_acquire);
	size_t mean = atomic_load_explicit(&rate, memory_order_relaxed);

	if (local.inside || !epoch || !mean)
		return false;
	if (mean == 1)
		return true;
	if (local.heap_epoch != epoch) {
		local.heap_epoch = epoch;
		local.heap_left = draw_gap((double)mean);
	}
	if (size <= (uint64_t)local.heap_left) {
		local.heap_left -= (int64_t)size;
		return false;
	}
	local.heap_left = draw_gap((double)mean);
	return true;
}

static bool is_hidden(frame_t f)
{
	uintptr_t address = frame_address(f);

	for (unsigned i = 0; i < HIDDEN_MAX; i++)
		if (address >= hidden[i].start && address < hidden[i].end)
			return true;
	return false;
}

static uint32_t stack_of_caller(const struct walk_start *start)
{
	frame_t frames[STACK_MAX];
	uint32_t n = walk_stack(start, frames, STACK_MAX), skip = 0;

	while (skip + 1 < n && is_hidden(frames[skip]))
		skip++;
	return stack_add(frames + skip, n - skip);
}

static struct bucket *bucket_for(struct buckets *b, uint32_t stack, uint32_t *number)
{
	struct bucket *found = bucket_of(b, stack, local.labels);

	if (found)
		*number = (uint32_t)(found - bucket_at(b, 0));
	else
		*number = UINT32_MAX;
	return found ? found : &overflow;
}

static double bytes_of(const struct live_sample *s)
{
	return (double)s->weight * (double)s->size;
}

static void count_in_use(double bytes)
{
	atomic_fetch_add_explicit(&in_use, (int64_t)bytes, memory_order_relaxed);
}

static struct bucket *bucket_of_sample(const struct live_sample *s)
{
	return s->bucket == UINT32_MAX ? &overflow : bucket_at(&buckets, s->bucket);
}

/* It is there no more; or, with a sign of -1, still is. */
static void count_freed(const struct live_sample *s, int sign)
{
	struct bucket *b = bucket_of_sample(s);

	bucket_add(b, FREED_OBJECTS, sign * (double)s->weight);
	bucket_add(b, FREED_BYTES, sign * bytes_of(s));
	count_in_use(-sign * bytes_of(s));
}

/* Who brings the heap to a new height is charged for the difference. */
static void count_growth(uint32_t stack)
{
	long long now = atomic_load_explicit(&in_use, memory_order_relaxed);
	long long was = atomic_load_explicit(&highest, memory_order_relaxed);
	struct bucket *b;

	if (now <= was || !atomic_compare_exchange_strong(&highest, &was, now))
		return;
	b = bucket_of(&growth, stack, 0);
	if (!b)
		return;
	bucket_add(b, GROWTH_OBJECTS, 1);
	bucket_add(b, GROWTH_BYTES, (double)(now - was));
}

static void add_sample(const void *p, size_t size, uint32_t stack)
{
	size_t mean = atomic_load_explicit(&last_rate, memory_order_relaxed);
	struct live_sample sample = { .address = (uintptr_t)p, .size = size }, old;
	struct bucket *b = bucket_for(&buckets, stack, &sample.bucket);

	sample.weight = (float)(1 / heap_share_sampled((double)size, (double)mean));
	bucket_add(b, ALLOC_OBJECTS, (double)sample.weight);
	bucket_add(b, ALLOC_BYTES, bytes_of(&sample));
	count_in_use(bytes_of(&sample));
	if (live_add(&sample, &old))
		count_freed(&old, 1);
	count_growth(stack);
}

void heap_add(const void *p, size_t size, const struct walk_start *start)
{
	int kept = errno;

	/* Nothing here minds being interrupted by a signal handler that does the same, but for
	 * locks of live.c, which look after that. */
	live_expect(p);
	add_sample(p, size, stack_of_caller(start));
	if (agent_is_on(ON_TRACE))
		trace_malloc(size);
	errno = kept;
}

bool heap_remove(const void *p, struct live_sample *sample)
{
	int kept = errno;
	bool is_known = live_take(p, sample);

	if (is_known)
		count_freed(sample, 1);
	errno = kept;
	return is_known;
}

void heap_restore(const struct live_sample *sample)
{
	int kept = errno;
	struct live_sample old;

	count_freed(sample, -1);
	if (live_add(sample, &old))
		count_freed(&old, 1);
	errno = kept;
}

void heap_hide(uintptr_t start, uintptr_t end)
{
	unsigned i = atomic_fetch_add(&nhidden, 1);

	if (i >= HIDDEN_MAX)
		return;
	hidden[i].start = start;
	hidden[i].end = end;
}

/* ---- the rate */

void heap_set_rate(size_t mean_bytes)
{
	size_t was = atomic_exchange(&rate, mean_bytes);

	if (mean_bytes) {
		atomic_store(&last_rate, mean_bytes);
		if (!was && !agent_switch_on(ON_HEAP)) {
			atomic_store(&rate, 0);
			return;
		}
		if (atomic_fetch_add(&malloc_ways.epoch, 1) + 1 == 0)
			atomic_store(&malloc_ways.epoch, 1);
		hooks_malloc_switch(true);
	} else if (was) {
		hooks_malloc_switch(false);
		agent_switch_off(ON_HEAP);
	}
}

size_t heap_rate(void)
{
	return atomic_load(&rate);
}

uint64_t heap_in_use(void)
{
	int64_t n = atomic_load(&in_use);

	return n > 0 ? (uint64_t)n : 0;
}

/* ---- profiles */

static uint32_t count_buckets(void)
{
	return buckets_count(&buckets);
}

static int64_t rounded(double v)
{
	return v > 0 ? (int64_t)(v + 0.5) : 0;
}

static bool add_row(struct record *r, const struct bucket *b, unsigned nvalues)
{
	static const frame_t lost_frame = FRAME_LOST;
	struct record_row *row = record_add(r);

	if (!row)
		return false;
	row->frames = stack_frames(b->stack, &row->nframes);
	if (!b->stack) {
		row->frames = &lost_frame;
		row->nframes = 1;
	}
	row->labels = b->labels;
	for (unsigned i = 0; i < nvalues; i++)
		row->values[i] = rounded(atomic_load(&b->values[i]));
	return true;
}

/* With the mean size as a label, as Go has it. */
static void add_heap_row(struct record *r, const struct bucket *b)
{
	double freed_objects = atomic_load(&b->values[FREED_OBJECTS]);
	double freed_bytes = atomic_load(&b->values[FREED_BYTES]);
	double objects = atomic_load(&b->values[ALLOC_OBJECTS]);
	double bytes = atomic_load(&b->values[ALLOC_BYTES]);

	struct record_row *row;

	if (objects <= 0 || !add_row(r, b, 2))
		return;
	row = &r->rows[r->n - 1];
	row->values[2] = rounded(objects - freed_objects);
	row->values[3] = rounded(bytes - freed_bytes);
	row->ntags = 1;
	row->tags[0] = (struct tag){
		.key = "bytes",
		.number = rounded(bytes / objects),
		.is_average = true,
	};
}

static void add_comments(struct record *r)
{
	char allocator[512];

	hooks_malloc_describe(allocator, sizeof(allocator));
	record_comment(r, "%s", allocator);
	if (live_lost())
		record_comment(r, "lost live samples: %llu", (unsigned long long)live_lost());
	if (stacks_lost())
		record_comment(r, "stacks there was no room for: %llu",
			       (unsigned long long)stacks_lost());
}

static bool collect_heap(struct record *r)
{
	uint32_t n = buckets_count(&buckets);

	r->period = (int64_t)atomic_load(&last_rate);
	for (uint32_t i = 0; i < n; i++)
		add_heap_row(r, bucket_at(&buckets, i));
	add_heap_row(r, &overflow);
	add_comments(r);
	return true;
}

static uint32_t count_growths(void)
{
	return buckets_count(&growth);
}

static bool collect_growth(struct record *r)
{
	uint32_t n = buckets_count(&growth);

	r->period = 1;
	for (uint32_t i = 0; i < n; i++)
		add_row(r, bucket_at(&growth, i), 2);
	record_comment(r, "stacks that brought the heap, as sampled, to a new height");
	add_comments(r);
	return true;
}

#define HEAP_TYPES                                                        \
	{                                                                 \
		{ "alloc_objects", "count" }, { "alloc_space", "bytes" }, \
			{ "inuse_objects", "count" },                     \
		{                                                         \
			"inuse_space", "bytes"                            \
		}                                                         \
	}

const struct agent_profile profile_heap = {
	.name = "heap",
	.about =
		"Memory that is in use, by the stacks that allocated it, as sampled. With gc=1 the "
		"allocator returns what it can to the system first.",
	.types = HEAP_TYPES,
	.ntypes = 4,
	.period_type = { "space", "bytes" },
	.has_delta = true,
	.count = count_buckets,
	.collect = collect_heap,
	.write_text = heap_write_text,
};

const struct agent_profile profile_allocs = {
	.name = "allocs",
	.about = "All memory that was ever allocated, in use or not, as sampled",
	.types = HEAP_TYPES,
	.ntypes = 4,
	.period_type = { "space", "bytes" },
	.default_type = "alloc_space",
	.has_delta = true,
	.count = count_buckets,
	.collect = collect_heap,
	.write_text = heap_write_text,
};

const struct agent_profile profile_growth = {
	.name = "growth",
	.about = "Stacks that brought the heap to a new height",
	.types = { { "objects", "count" }, { "space", "bytes" } },
	.ntypes = 2,
	.period_type = { "space", "bytes" },
	.count = count_growths,
	.collect = collect_growth,
	.write_text = growth_write_text,
};

/* ---- life */

static void init(void)
{
	bool is_written = settings.heap_profile || settings.allocs_profile || settings.push_url ||
			  settings.memory_limit_heap > 0;

	if (settings.heap_rate > 0 && is_written)
		pages_reserve();
	if (settings.heap_rate > 0 && (is_written || settings.pprof_addr))
		heap_set_rate((size_t)settings.heap_rate);
}

/* What was allocated is there in the child too, but nobody asks. */
static void in_child(void)
{
	atomic_store(&rate, 0);
	hooks_malloc_switch(false);
	live_unlock_all();
}

const struct agent_part part_heap = {
	.name = "heap",
	.init = init,
	.before_fork = live_lock_all,
	.after_fork = live_unlock_all,
	.in_child = in_child,
};
