/* read.c - from the records of perf.data to a profile. */
#include "perf/perf.h"

#include "base/int.h"
#include "perf/collect.h"
#include "perf/kernel.h"
#include "perf/script.h"
#include "perf/walk.h"

enum {
	EVENT_SOFTWARE = 1,
	EVENT_TRACEPOINT = 2,
	SOFTWARE_DUMMY = 9,
	SOFTWARE_BPF_OUTPUT = 10,
};

struct reader {
	struct perf_data d;
	struct collector c;
	struct machine m;
	struct walker w;
	vec(uint32_t) columns; /* by event, those of the collector; NONE: not there yet */
	struct map by_place;   /* of locations */
	vec(uint32_t) stack;
};

/* ---- events */

static const char *const hardware_names[] = {
	"cycles",
	"instructions",
	"cache-references",
	"cache-misses",
	"branches",
	"branch-misses",
	"bus-cycles",
	"stalled-cycles-frontend",
	"stalled-cycles-backend",
	"ref-cycles",
};

static const char *const software_names[] = {
	"cpu-clock",	    "task-clock",   "page-faults",  "context-switches",
	"cpu-migrations",   "minor-faults", "major-faults", "alignment-faults",
	"emulation-faults", "dummy",	    "bpf-output",   "cgroup-switches",
};

/* The name, or one for the kind of event when the file has none. */
static void event_name(struct buf *out, const struct perf_event *event)
{
	size_t nhardware = sizeof(hardware_names) / sizeof(*hardware_names);
	size_t nsoftware = sizeof(software_names) / sizeof(*software_names);

	if (event->name.n)
		buf_str(out, event->name);
	else if (event->type == 0 && event->config < nhardware)
		buf_puts(out, hardware_names[event->config]);
	else if (event->type == EVENT_SOFTWARE && event->config < nsoftware)
		buf_puts(out, software_names[event->config]);
	else
		buf_printf(out, "event-%u-%jx", event->type, (uintmax_t)event->config);
}

/* A frequency is one of clocks only. */
static int64_t event_period(const struct perf_event *event)
{
	bool is_clock = event->type == EVENT_SOFTWARE && event->config < 2;

	if (!event->is_frequency)
		return (int64_t)event->period;
	return is_clock && event->period ? (int64_t)(1000000000 / event->period) : 0;
}

static uint32_t find_column(struct reader *r, uint32_t event)
{
	uint32_t *column = &r->columns.at[event];

	if (*column == NONE) {
		const struct perf_event *x = &r->d.events.at[event];
		struct buf name = { 0 };

		event_name(&name, x);
		*column = collector_event(&r->c, buf_view(&name));
		r->c.events.at[*column].is_tracepoint = x->type == EVENT_TRACEPOINT;
		r->c.events.at[*column].period = event_period(x);
		buf_release(&name);
	}
	return *column;
}

/* perf adds events that count nothing, to be told of new processes. */
static void add_events(struct reader *r)
{
	for (uint32_t i = 0; i < r->d.events.n; i++) {
		const struct perf_event *x = &r->d.events.at[i];

		vec_push(&r->columns, NONE);
		if (x->type != EVENT_SOFTWARE ||
		    (x->config != SOFTWARE_DUMMY && x->config != SOFTWARE_BPF_OUTPUT))
			find_column(r, i);
	}
}

/* ---- samples */

struct place_key {
	const struct builder *b;
	uint32_t mapping;
	uint64_t address;
};

static bool same_place(const void *ctx, uint32_t index)
{
	const struct place_key *key = ctx;
	const struct location *l = &key->b->locations.at[index];

	return l->address == key->address && l->mapping == key->mapping;
}

static uint32_t find_location(struct reader *r, uint32_t pid, const struct walk_frame *f)
{
	/* What a caller does is the call, which stands before the address it returns to. */
	uint64_t address = f->address - f->is_return;
	const struct range *range = machine_find(&r->m, pid, f->mode, address);
	struct builder *b = &r->c.b;
	struct place_key key = { b, range ? range->mapping : NONE,
				 range ? address + range->shift : address };
	uint64_t hash = hash_mix(r->c.seed ^ key.mapping, key.address);
	uint32_t i = map_put(&r->by_place, hash, b->locations.n, same_place, &key);

	if (i == b->locations.n)
		vec_push(&b->locations, (struct location){ .id = i + 1u,
							   .address = key.address,
							   .mapping = key.mapping });
	return i;
}

static bool add_sample(struct reader *r, size_t at, struct err *e)
{
	struct collect_sample out;
	struct perf_sample s;

	if (!perf_read_sample(&r->d, at, &s, e))
		return false;
	walker_walk(&r->w, &s);
	r->stack.n = 0;
	for (size_t i = 0; i < r->w.frames.n; i++) {
		uint32_t location = find_location(r, s.pid, &r->w.frames.at[i]);

		vec_push(&r->stack, location);
	}
	out = (struct collect_sample){
		.event = find_column(r, s.event),
		.thread = { s.pid, s.tid, machine_comm(&r->m, s.tid) },
		.time = s.time,
		.period = s.period,
		.stack = r->stack.at,
		.nstack = r->stack.n,
	};
	return collector_add(&r->c, &out, e) || err_wrap(e, "perf.data");
}

static bool read_records(struct reader *r, struct err *e)
{
	for (size_t i = 0; i < r->d.records.n; i++) {
		size_t at = r->d.records.at[i].at;
		bool is_sample = perf_u32(&r->d, perf_at(&r->d, at)) == RECORD_SAMPLE;

		if (!(is_sample ? add_sample(r, at, e) : machine_update(&r->m, at, e)))
			return false;
	}
	return true;
}

/* ---- the profile */

/* Comments that start with # are shown only to those who ask. */
static void add_comments(struct reader *r)
{
	struct builder *b = &r->c.b;
	uint64_t nlost = r->m.nlost_samples ? r->m.nlost_samples : r->m.nlost_records;
	struct buf text = { 0 };

	if (nlost) {
		buf_uint(&text, nlost);
		buf_puts(&text, " samples were lost while recording");
		vec_push(&b->comments, builder_string(b, buf_view(&text)));
	}
	text.n = 0;
	buf_char(&text, '#');
	for (size_t i = 0; i < r->d.command.n; i++) {
		buf_char(&text, ' ');
		buf_str(&text, r->d.command.at[i]);
	}
	if (r->d.command.n)
		vec_push(&b->comments, builder_string(b, buf_view(&text)));
	text.n = 0;
	if (r->d.host.n) {
		buf_puts(&text, "# host ");
		buf_str(&text, r->d.host);
		buf_puts(&text, ", kernel ");
		buf_str(&text, r->d.release);
		vec_push(&b->comments, builder_string(b, buf_view(&text)));
	}
	buf_release(&text);
}

static bool read_data(struct reader *r, const struct perf_params *params, struct err *e)
{
	machine_init(&r->m, &r->d, &r->c.b);
	walker_init(&r->w, &r->m, params->locate);
	r->w.is_foreign = params->is_foreign;
	add_events(r);
	if (!read_records(r, e))
		return false;
	if (!params->is_foreign)
		perf_name_kernel(&r->d, &r->c.b);
	add_comments(r);
	if (r->d.wall_clock_offset && r->c.last_time)
		r->c.b.head.time_nanos = int_add((int64_t)r->c.first_time, r->d.wall_clock_offset);
	return true;
}

static bool parse_data(struct profile *p, struct arena *a, struct strings *strings, struct str data,
		       const struct perf_params *params, struct err *e)
{
	struct reader r = { 0 };
	bool ok;

	collector_init(&r.c, strings);
	r.c.has_times = params->has_times;
	ok = perf_data_open(&r.d, data, params->max_bytes, e) && read_data(&r, params, e);
	if (ok)
		collector_finish(&r.c, a, p);
	walker_release(&r.w);
	machine_release(&r.m);
	collector_release(&r.c);
	perf_data_release(&r.d);
	vec_release(&r.columns);
	vec_release(&r.stack);
	map_release(&r.by_place);
	return ok;
}

bool perf_recognizes(struct str data)
{
	return perf_data_recognizes(data) || perf_script_recognizes(data);
}

bool perf_parse(struct profile *p, struct arena *a, struct strings *strings, struct str data,
		const struct perf_params *params, struct err *e)
{
	if (perf_data_recognizes(data))
		return parse_data(p, a, strings, data, params, e);
	return perf_script_parse(p, a, strings, data, params->has_times, e);
}
