/* trace_json.c - a trace as Chrome's trace events, which Perfetto, chrome://tracing and speedscope
 * read.
 *
 * Times are microseconds since the start. When threads ran is shown as a process of its own, since
 * slices of a thread have to be nested and those would cut through all others. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/memory.h"
#include "agent/stack.h"
#include "agent/symbols.h"
#include "agent/thread.h"
#include "agent/trace.h"
#include "base/version.h"

enum {
	SCHED_PID = 10000000, /* added to ours; no process has a number as large */
	REGIONS_MAX = 64,     /* that may be nested; deeper ones are left out */
	SAMPLE_FRAMES = 32,
	NAME_BYTES = 512
};

/* ---- JSON */

/* How many bytes of `s` are a character in UTF-8; 0: none. */
static size_t utf8_length(const unsigned char *s, size_t left)
{
	size_t n = s[0] < 0x80 ? 1 : s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;

	if (s[0] > 0xf4 || n > left)
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((s[i] & 0xc0) != 0x80)
			return 0;
	if (n == 3 && ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f)))
		return 0;
	if (n == 4 && ((s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f)))
		return 0;
	return n;
}

static size_t plain_length(const unsigned char *s, size_t left)
{
	size_t n = 0;

	while (n < left && s[n] >= ' ' && s[n] < 0x7f && s[n] != '"' && s[n] != '\\')
		n++;
	return n;
}

/* Names come from the program: anything may be in them. */
static void write_text(struct out *o, const char *text)
{
	const unsigned char *s = (const unsigned char *)text;

	out_text(o, "\"");
	for (size_t left = strlen(text), n; left; s += n, left -= n) {
		n = plain_length(s, left);
		if (n > 0) {
			out_add(o, s, n);
			continue;
		}
		n = utf8_length(s, left);
		if (n == 0)
			out_text(o, "\\ufffd");
		else if (*s < ' ' || *s == 0x7f)
			out_format(o, "\\u%04x", (unsigned)*s);
		else if (*s == '"' || *s == '\\')
			out_format(o, "\\%c", *s);
		else
			out_add(o, s, n);
		n = n ? n : 1;
	}
	out_text(o, "\"");
}

/* There are many numbers, and printf takes its time. At least `least` digits. */
static void write_digits(struct out *o, uint64_t number, int least)
{
	char digits[20];
	int n = 0;

	for (; number || n < least; number /= 10)
		digits[sizeof(digits) - (size_t)++n] = (char)('0' + number % 10);
	out_add(o, digits + sizeof(digits) - n, (size_t)n);
}

/* `before` is what stands before it, as ",\"pid\":". */
static inline void write_number(struct out *o, const char *before, int64_t number)
{
	out_text(o, before);
	if (number < 0)
		out_text(o, "-");
	write_digits(o, number < 0 ? -(uint64_t)number : (uint64_t)number, 1);
}

static void write_address(struct out *o, uint64_t address)
{
	char digits[16];
	size_t n = 0;

	do
		digits[sizeof(digits) - ++n] = "0123456789abcdef"[address & 15];
	while (address >>= 4);
	out_text(o, "0x");
	out_add(o, digits + sizeof(digits) - n, n);
}

/* Nanoseconds as microseconds. */
static inline void write_time(struct out *o, const char *before, int64_t ns)
{
	ns = ns > 0 ? ns : 0;
	write_number(o, before, ns / 1000);
	out_text(o, ".");
	write_digits(o, (uint64_t)(ns % 1000), 3);
}

/* Up to its name; the caller goes on with ",..." and "}". */
static void begin_event(struct out *o, const char *phase, int pid, uint32_t tid, const char *name)
{
	out_text(o, ",\n{\"ph\":\"");
	out_text(o, phase);
	out_text(o, "\"");
	write_number(o, ",\"pid\":", pid);
	write_number(o, ",\"tid\":", tid);
	out_text(o, ",\"name\":");
	write_text(o, name);
}

/* ---- names of threads */

static bool read_file(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);

	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return false;
	text[n] = 0;
	text[strcspn(text, "\n")] = 0;
	return true;
}

static void write_name(struct out *o, int pid, uint32_t tid, const char *what, const char *name)
{
	begin_event(o, "M", pid, tid, what);
	out_text(o, ",\"args\":{\"name\":");
	write_text(o, name);
	out_text(o, "}}");
}

static void write_thread_name(struct out *o, const struct trace *t, uint32_t tid, const char *name)
{
	write_name(o, t->pid, tid, "thread_name", name);
	write_name(o, t->pid + SCHED_PID, tid, "thread_name", name);
}

/* Of those that there are now. */
static void write_names(struct out *o, const struct trace *t)
{
	struct tids tids = { 0 };
	uint32_t n = threads_list(&tids);
	char path[64], name[64];

	for (uint32_t i = 0; i < n; i++) {
		snprintf(path, sizeof(path), "/proc/self/task/%u/comm", tids.at[i]);
		if (read_file(path, name, sizeof(name)))
			write_thread_name(o, t, tids.at[i], name);
	}
	tids_release(&tids);
}

/* Of one that has ended. */
static void write_last_name(struct out *o, const struct trace *t, const struct event *e)
{
	char name[sizeof(e->thread_name) + 1] = "";

	memcpy(name, e->thread_name, sizeof(e->thread_name));
	write_thread_name(o, t, e->tid, name);
}

static const char *program_name(char *path, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", path, size - 1);
	const char *slash;

	if (n <= 0)
		return "program";
	path[n] = 0;
	slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

static void write_process_names(struct out *o, const struct trace *t)
{
	char path[NAME_BYTES], name[NAME_BYTES + 64];
	const char *program = program_name(path, sizeof(path));

	write_name(o, t->pid, (uint32_t)t->pid, "process_name", program);
	snprintf(name, sizeof(name), "%s: when threads ran", program);
	write_name(o, t->pid + SCHED_PID, (uint32_t)t->pid, "process_name", name);
}

/* ---- events */

/* From `start`, if that is in the trace. */
static void write_slice(struct out *o, const struct trace *t, int64_t start, int64_t end)
{
	start = start < t->start ? t->start : start;
	end = end > t->end ? t->end : end;
	write_time(o, ",\"ts\":", start - t->start);
	write_time(o, ",\"dur\":", end - start);
}

static void write_span(struct out *o, const struct trace *t, const struct event *e)
{
	begin_event(o, "X", t->pid, e->tid, e->name);
	write_slice(o, t, e->time, e->time + e->duration);
	out_text(o, ",\"cat\":\"wait\",\"args\":{\"object\":\"");
	write_address(o, e->object);
	out_text(o, "\"}}");
}

static void write_run(struct out *o, const struct trace *t, const struct event *e)
{
	begin_event(o, "X", t->pid + SCHED_PID, e->tid,
		    e->kind == EVENT_RAN_PART ? "ran for a part" : "running");
	write_slice(o, t, e->time, e->time + e->duration);
	write_number(o, ",\"cat\":\"sched\",\"args\":{\"ns\":", (int64_t)e->object);
	out_text(o, e->kind == EVENT_RAN_PREEMPTED ? ",\"preempted\":true}}" : "}}");
}

static void write_instant(struct out *o, const struct trace *t, const struct event *e,
			  const char *name, const char *category)
{
	begin_event(o, "i", t->pid, e->tid, name);
	write_time(o, ",\"ts\":", e->time - t->start);
	out_text(o, ",\"s\":\"t\",\"cat\":\"");
	out_text(o, category);
	out_text(o, "\"");
}

static void write_counter(struct out *o, const struct trace *t, const struct event *e)
{
	begin_event(o, "C", t->pid, e->tid, e->name);
	write_time(o, ",\"ts\":", e->time - t->start);
	write_number(o, ",\"args\":{\"value\":", e->value);
	out_text(o, "}}");
}

static void frame_name(frame_t f, char *name, size_t size)
{
	uint64_t offset;

	if (!symbol_name(f, name, size, &offset))
		snprintf(name, size, "0x%llx", (unsigned long long)frame_address(f));
}

/* The function that ran is the name; callers follow in "stack". */
static void write_sample(struct out *o, const struct trace *t, const struct event *e)
{
	uint32_t n;
	const frame_t *frames = sequence_words(t->stacks, e->stack, &n);
	struct out stack = { 0 };
	char name[NAME_BYTES] = "?";

	for (uint32_t i = 0; i < n && i < SAMPLE_FRAMES; i++) {
		frame_name(frames[i], name, sizeof(name));
		out_text(&stack, i ? " < " : "");
		out_text(&stack, name);
	}
	if (n > 0)
		frame_name(frames[0], name, sizeof(name));
	out_add(&stack, "", 1);
	write_instant(o, t, e, name, e->name);
	out_format(o, ",\"args\":{\"ticks\":%lld,\"stack\":", (long long)e->value);
	write_text(o, stack.has_failed ? "" : stack.p);
	out_text(o, "}}");
	out_release(&stack);
}

static void write_event(struct out *o, const struct trace *t, const struct event *e)
{
	unsigned kind = atomic_load_explicit(&e->kind, memory_order_relaxed);

	switch (kind) {
	case EVENT_SPAN:
		write_span(o, t, e);
		break;
	case EVENT_RAN:
	case EVENT_RAN_PREEMPTED:
	case EVENT_RAN_PART:
		write_run(o, t, e);
		break;
	case EVENT_INSTANT:
		write_instant(o, t, e, e->name, "event");
		write_number(o, ",\"args\":{\"value\":", e->value);
		out_text(o, "}}");
		break;
	case EVENT_THREAD_BEGINS:
	case EVENT_THREAD_ENDS:
		write_instant(o, t, e,
			      kind == EVENT_THREAD_BEGINS ? "thread starts" : "thread ends",
			      "thread");
		out_text(o, "}");
		if (kind == EVENT_THREAD_ENDS)
			write_last_name(o, t, e);
		break;
	case EVENT_COUNTER:
		write_counter(o, t, e);
		break;
	case EVENT_SAMPLE:
		write_sample(o, t, e);
		break;
	default:
		break;
	}
}

/* ---- regions: their begins and ends meet here; one of them may be missing */

struct regions {
	uint32_t tid, depth; /* how many are open */
	const struct event *open[REGIONS_MAX];
};

static void write_region(struct out *o, const struct trace *t, const struct event *begin,
			 int64_t end, bool has_ended)
{
	begin_event(o, "X", t->pid, begin->tid, begin->name);
	write_slice(o, t, begin->time, end);
	out_format(o, ",\"cat\":\"region\"%s}", has_ended ? "" : ",\"args\":{\"unfinished\":true}");
}

/* All that are nested as deep as `depth`, or deeper; only the end of that one was seen. */
static void close_regions(struct out *o, const struct trace *t, struct regions *r, int64_t depth,
			  int64_t end, bool has_ended)
{
	while (r->depth > 0 && r->open[r->depth - 1]->value >= depth) {
		const struct event *begin = r->open[--r->depth];

		write_region(o, t, begin, end, has_ended && begin->value == depth);
	}
}

static void take_region(struct out *o, const struct trace *t, struct regions *r,
			const struct event *e)
{
	if (e->kind == EVENT_REGION_ENDS) {
		close_regions(o, t, r, e->value, e->time, true);
		return;
	}
	close_regions(o, t, r, e->value, e->time, false);
	if (r->depth < REGIONS_MAX)
		r->open[r->depth++] = e;
}

static void take_event(struct out *o, const struct trace *t, struct regions *r,
		       const struct event *e)
{
	unsigned kind = atomic_load_explicit(&e->kind, memory_order_relaxed);

	if (kind == EVENT_THREAD_ENDS)
		close_regions(o, t, r, 0, e->time, false);
	if (kind == EVENT_REGION_BEGINS || kind == EVENT_REGION_ENDS)
		take_region(o, t, r, e);
	else
		write_event(o, t, e);
}

/* Whoever was about to write when the trace ended may do so meanwhile. */
static bool is_there(const struct trace *t, const struct event *e)
{
	return atomic_load_explicit(&e->kind, memory_order_acquire) != EVENT_NONE &&
	       e->time <= t->end;
}

/* Viewers want no order among events of a thread, but its regions begin before they end. Returns
 * how many there are. */
static uint64_t write_events(struct out *o, const struct trace *t)
{
	struct regions regions = { 0 };
	uint64_t n = 0;

	for (uint32_t i = 0; i < t->nchunks; i++) {
		const struct event *events = t->chunks[t->order[i].chunk].events;

		if (t->order[i].owner != regions.tid)
			close_regions(o, t, &regions, 0, t->end, false);
		regions.tid = t->order[i].owner;
		for (uint32_t k = 0; k < CHUNK_EVENTS; k++) {
			if (!is_there(t, &events[k]))
				continue;
			take_event(o, t, &regions, &events[k]);
			n++;
		}
	}
	close_regions(o, t, &regions, 0, t->end, false);
	return n;
}

static uint64_t count_short_waits(const struct trace *t)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < t->nchunks; i++)
		n += atomic_load_explicit(&t->chunks[t->order[i].chunk].short_waits,
					  memory_order_relaxed);
	return n;
}

/* What a reader should know to trust it: how it was made, and what is missing. */
static void write_about(struct out *o, const struct trace *t, uint64_t nevents)
{
	out_text(o, "{\"agent\":\"kiln " KILN_VERSION "\",\"scheduling\":");
	write_text(o, t->scheduling);
	write_number(o, ",\"start_ns\":", t->start_wall);
	write_number(o, ",\"duration_ns\":", t->end - t->start);
	write_number(o, ",\"events\":", (int64_t)nevents);
	write_number(o, ",\"short_waits\":", (int64_t)count_short_waits(t));
	write_number(o, ",\"dropped_events\":", (int64_t)t->lost);
	write_number(o, ",\"dropped_switches\":", (int64_t)t->switches_lost);
	write_number(o, ",\"unwatched_threads\":", t->unwatched);
	write_number(o, ",\"busy_threads\":", t->busy);
	out_text(o, "}");
}

void trace_write(struct out *o, const struct trace *t)
{
	uint64_t n;

	/* All other events begin with a comma. */
	write_number(
		o, "{\"displayTimeUnit\":\"ns\",\n\"traceEvents\":[{\"ph\":\"M\",\"pid\":", t->pid);
	out_text(o, ",\"name\":\"process_labels\",\"args\":{\"labels\":\"kiln\"}}");
	write_process_names(o, t);
	write_names(o, t);
	n = write_events(o, t);
	out_text(o, "\n],\n\"otherData\":");
	write_about(o, t, n);
	out_text(o, "}\n");
}
