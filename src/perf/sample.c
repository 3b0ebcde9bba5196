#include "perf/data.h"

enum {
	READ_TIME_ENABLED = 1 << 0,
	READ_TIME_RUNNING = 1 << 1,
	READ_ID = 1 << 2,
	READ_GROUP = 1 << 3,
	READ_LOST = 1 << 4,
	BRANCH_INDEX = 1 << 17, /* of branch_type */
	BRANCH_COUNTERS = 1 << 19,
	REGISTERS_64 = 2,
};

struct fields {
	const struct perf_data *d;
	struct str left;
	bool is_short;
};

static struct str take(struct fields *f, uint64_t n)
{
	struct str bytes = { f->left.p, n };

	if (n > f->left.n) {
		f->is_short = true;
		f->left.n = 0;
		return (struct str){ f->left.p, 0 };
	}
	f->left = (struct str){ f->left.p + n, f->left.n - n };
	return bytes;
}

static uint64_t take_u64(struct fields *f)
{
	struct str bytes = take(f, 8);

	return bytes.n ? perf_u64(f->d, bytes.p) : 0;
}

/* n elements of `bytes` each. */
static struct str take_many(struct fields *f, uint64_t n, size_t bytes)
{
	return take(f, n <= f->left.n ? n * bytes : UINT64_MAX);
}

static uint64_t bits(uint64_t flags)
{
	return (uint64_t)__builtin_popcountll(flags);
}

static void skip_read(struct fields *f, uint64_t format)
{
	uint64_t times = bits(format & (READ_TIME_ENABLED | READ_TIME_RUNNING));
	uint64_t per_value = 1 + bits(format & (READ_ID | READ_LOST));

	if (format & READ_GROUP) {
		uint64_t n = take_u64(f);

		take_many(f, times, 8);
		take_many(f, n, 8 * per_value);
	} else {
		take_many(f, times + per_value, 8);
	}
}

static void skip_branches(struct fields *f, uint64_t type)
{
	uint64_t n = take_u64(f);

	if (type & BRANCH_INDEX)
		take_u64(f);
	take_many(f, n, 24);
	if (type & BRANCH_COUNTERS)
		take_many(f, n, 8);
}

static void read_user_state(struct fields *f, const struct perf_event *event, struct perf_sample *s)
{
	uint64_t types = event->sample_type;

	if (types & SAMPLE_REGS_USER) {
		uint64_t abi = take_u64(f);

		if (abi) {
			uint64_t n = bits(event->user_registers);

			s->registers = take_many(f, n, 8).p;
			s->is_64 = abi == REGISTERS_64;
		}
	}
	if (types & SAMPLE_STACK_USER) {
		uint64_t size = take_u64(f), used;
		struct str bytes = take(f, size);

		if (size) {
			used = take_u64(f);
			s->stack = (struct str){ bytes.p, used < bytes.n ? used : bytes.n };
		}
	}
}

static void read_fields(struct fields *f, const struct perf_event *event, struct perf_sample *s)
{
	uint64_t types = event->sample_type;

	if (types & SAMPLE_IDENTIFIER)
		take_u64(f);
	if (types & SAMPLE_IP)
		s->ip = take_u64(f);
	if (types & SAMPLE_TID) {
		struct str both = take(f, 8);

		s->pid = both.n ? perf_u32(f->d, both.p) : 0;
		s->tid = both.n ? perf_u32(f->d, both.p + 4) : 0;
	}
	if (types & SAMPLE_TIME)
		s->time = take_u64(f);
	take_many(f, bits(types & (SAMPLE_ADDR | SAMPLE_ID | SAMPLE_STREAM_ID | SAMPLE_CPU)), 8);
	s->period = types & SAMPLE_PERIOD ? take_u64(f) : event->is_frequency ? 1 : event->period;
	if (types & SAMPLE_READ)
		skip_read(f, event->read_format);
	if (types & SAMPLE_CALLCHAIN) {
		s->nchain = take_u64(f);
		s->chain = take_many(f, s->nchain, 8).p;
	}
	if (types & SAMPLE_RAW) {
		struct str size = take(f, 4);

		take(f, size.n ? perf_u32(f->d, size.p) : 0);
	}
	if (types & SAMPLE_BRANCH_STACK)
		skip_branches(f, event->branch_type);
	read_user_state(f, event, s);
}

/* Where the id of a sample's event stands: all events of a file have it at the same place. */
static uint64_t sample_id(const struct perf_data *d, struct str body)
{
	uint64_t types = d->events.at[0].sample_type, before;

	if (types & SAMPLE_IDENTIFIER)
		return body.n >= 8 ? perf_u64(d, body.p) : 0;
	if (!(types & SAMPLE_ID))
		return 0;
	before = 8 * bits(types & (SAMPLE_IP | SAMPLE_TID | SAMPLE_TIME | SAMPLE_ADDR));
	return body.n >= before + 8 ? perf_u64(d, body.p + before) : 0;
}

bool perf_read_sample(const struct perf_data *d, size_t at, struct perf_sample *s, struct err *e)
{
	struct str record = perf_record(d, at);
	struct fields f = { .d = d, .left = str_from(record, 8) };

	*s = (struct perf_sample){ .mode = (uint8_t)(perf_u16(d, record.p + 4) & MODE_MASK) };
	s->event = perf_find_event(d, sample_id(d, f.left));
	/* An id that nobody announced: such samples are of the first event, as perf has it. */
	if (s->event == NONE)
		s->event = 0;
	read_fields(&f, &d->events.at[s->event], s);
	return !f.is_short || perf_record_error(d, at, "is shorter than its fields", e);
}

uint64_t perf_record_time(const struct perf_data *d, struct str record)
{
	uint64_t types = d->events.at[0].sample_type, after;

	if (!d->events.at[0].has_sample_id || !(types & SAMPLE_TIME))
		return 0;
	after = 8 +
		8 * bits(types & (SAMPLE_ID | SAMPLE_STREAM_ID | SAMPLE_CPU | SAMPLE_IDENTIFIER));
	return record.n >= 8 + after ? perf_u64(d, record.p + record.n - after) : 0;
}
