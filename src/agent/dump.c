/* dump.c - where all threads are now: the profiles "threads" and "goroutine", which is what tools
 * for Go ask for. Each thread is asked by a signal and writes down its own stack. */
#include "agent/dump.h"

#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "agent/agent.h"
#include "agent/kernel.h"
#include "agent/local.h"
#include "agent/record.h"
#include "agent/signal.h"
#include "agent/stack.h"
#include "agent/symbols.h"
#include "agent/task.h"
#include "agent/thread.h"

enum {
	ASKED_AT_ONCE = 64,
	NAME_SIZE = 4096,
	MILLISECOND = 1000000,
	/* One that does not answer is looked at, then asked once more, then given up. */
	LOOK_AFTER = 5 * MILLISECOND,
	AGAIN_AFTER = 50 * MILLISECOND,
	GIVE_UP_AFTER = 200 * MILLISECOND,
	NAP = 30000,
};

/* Of each row, in this order. */
enum { TAG_THREAD, TAG_TID, TAG_STATE, NTAGS };
static const char is_running[] = "running", is_waiting[] = "waiting",
		  is_silent[] = "not responding";

struct question {
	int64_t asked; /* when; 0: there is none */
	size_t row;
	bool is_looked_at, is_repeated;
};

struct dump {
	struct record *record;
	struct question questions[ASKED_AT_ONCE];
	unsigned open;
};

/* Threads that are late write to it when they like: it is never given back. */
static _Atomic(void *) all_slots;
static struct lock lock;

static struct dump_slot *slot_at(unsigned i)
{
	return (struct dump_slot *)atomic_load(&all_slots) + i;
}

void dump_forget(void)
{
	atomic_store(&lock.state, 0);
	if (atomic_load(&all_slots))
		for (unsigned i = 0; i < ASKED_AT_ONCE; i++)
			atomic_store(&slot_at(i)->state, DUMP_FREE);
}

/* ---- rows */

static void describe(struct record *r, struct record_row *row, const char *name, const char *state)
{
	const char *kept = region_text(&r->memory, name, strlen(name));

	row->values[0] = 1;
	row->ntags = NTAGS;
	row->tags[TAG_THREAD] = (struct tag){ .key = "thread", .text = kept ? kept : "" };
	row->tags[TAG_STATE] = (struct tag){ .key = "state", .text = state };
}

static void set_frames(struct record *r, struct record_row *row, const frame_t *frames, uint32_t n)
{
	frame_t *kept = region_alloc(&r->memory, n * sizeof(*kept));

	if (!kept)
		return;
	memcpy(kept, frames, n * sizeof(*kept));
	row->frames = kept;
	row->nframes = n;
}

static void add_answer(struct dump *d, unsigned i)
{
	const struct dump_slot *slot = slot_at(i);
	struct record_row *row = &d->record->rows[d->questions[i].row];

	row->labels = slot->labels;
	describe(d->record, row, slot->name, slot->is_waiting ? is_waiting : is_running);
	set_frames(d->record, row, slot->frames, slot->nframes);
}

/* One that has ended since it was listed keeps a row of nothing. */
static void add_silent(struct dump *d, struct record_row *row)
{
	static const frame_t nowhere = FRAME_SILENT;
	uint32_t tid = (uint32_t)row->tags[TAG_TID].number;
	char name[NAME_MAX_THREAD];

	if (kernel_call(SYS_tgkill, kernel_call(SYS_getpid, 0, 0, 0, 0), tid, 0, 0) != 0)
		return;
	task_name(tid, name);
	describe(d->record, row, name, is_silent);
	row->frames = &nowhere;
	row->nframes = 1;
}

static void add_self(struct dump *d, struct record_row *row)
{
	struct walk_start here = walk_here();
	frame_t frames[STACK_MAX];
	char name[NAME_MAX_THREAD] = "";
	uint32_t n = walk_stack(&here, frames, STACK_MAX);

	kernel_call(SYS_prctl, PR_GET_NAME, (long)name, 0, 0);
	row->labels = local.labels;
	describe(d->record, row, name, is_running);
	set_frames(d->record, row, frames, n);
}

static void drop_ended(struct record *r)
{
	size_t kept = 0;

	for (size_t i = 0; i < r->n; i++)
		if (r->rows[i].values[0])
			r->rows[kept++] = r->rows[i];
	r->n = kept;
}

/* ---- questions */

static void ask(struct dump *d, unsigned i, uint32_t tid)
{
	struct record_row *row = record_add(d->record);

	if (!row)
		return;
	row->tags[TAG_TID] = (struct tag){ .key = "tid", .number = tid };
	if (tid == local_tid()) {
		add_self(d, row);
	} else if (dump_ask(slot_at(i), tid)) {
		d->questions[i] = (struct question){ .asked = now_ns(), .row = d->record->n - 1 };
		d->open++;
	} else {
		add_silent(d, row);
	}
}

/* Can it answer at all? */
static bool is_deaf(uint32_t tid)
{
	bool blocks = false;
	char state = task_state(tid, (int)settings.signal, &blocks);

	/* Libc blocks signals for a moment, as in fork: who runs may still get to it. */
	return (blocks && state != 'R') || state == '?' || strchr("TtZX", state) != NULL;
}

/* Did nobody answer, and nobody will? */
static bool is_over(struct question *q, struct dump_slot *slot, int64_t now)
{
	unsigned asked = DUMP_ASKED;
	bool is_hopeless = now - q->asked > GIVE_UP_AFTER;

	if (!q->is_looked_at && now - q->asked > LOOK_AFTER) {
		q->is_looked_at = true;
		is_hopeless = is_deaf(slot->tid);
	}
	/* The signal may have come together with another, of which the kernel keeps one. */
	if (!q->is_repeated && now - q->asked > AGAIN_AFTER) {
		q->is_repeated = true;
		is_hopeless = !dump_ask(slot, slot->tid);
	}
	return is_hopeless && atomic_compare_exchange_strong(&slot->state, &asked, DUMP_FREE);
}

/* Is the question settled? */
static bool settle(struct dump *d, unsigned i, int64_t now)
{
	struct question *q = &d->questions[i];
	struct dump_slot *slot = slot_at(i);

	if (atomic_load_explicit(&slot->state, memory_order_acquire) == DUMP_ANSWERED)
		add_answer(d, i);
	else if (is_over(q, slot, now))
		add_silent(d, &d->record->rows[q->row]);
	else
		return false;
	atomic_store(&slot->state, DUMP_FREE);
	q->asked = 0;
	d->open--;
	return true;
}

static void ask_all(struct dump *d, const uint32_t *tids, uint32_t n)
{
	struct timespec nap = { 0, NAP };
	uint32_t next = 0;

	while (next < n || d->open) {
		int64_t now = now_ns();
		bool is_idle = true;

		for (unsigned i = 0; i < ASKED_AT_ONCE; i++) {
			if (d->questions[i].asked && !settle(d, i, now))
				continue;
			if (next < n) {
				ask(d, i, tids[next++]);
				is_idle = false;
			}
		}
		if (is_idle && d->open)
			kernel_call(SYS_nanosleep, (long)&nap, 0, 0, 0);
	}
}

static bool collect(struct record *r)
{
	struct dump d = { .record = r };
	struct tids tids = { 0 };
	uint32_t n = threads_list(&tids);

	agent_enter();
	modules_update(false);
	lock_take(&lock);
	r->period = 1;
	signal_install(); /* or nobody can be asked */
	if (pages_once(&all_slots, ASKED_AT_ONCE * sizeof(struct dump_slot)))
		ask_all(&d, tids.at, n);
	lock_give(&lock);
	agent_leave();
	tids_release(&tids);
	drop_ended(r);
	return true;
}

/* ---- text */

static void write_code(struct out *o, const char *before, frame_t f, const char *after)
{
	const struct module *m = frame_module(f) ? module_get(frame_module(f)) : NULL;
	const char *special = frame_special_name(f);
	char name[NAME_SIZE];
	uint64_t offset = 0;

	if (special)
		out_format(o, "%s%s\n", before, special);
	else if (symbol_name(f, name, sizeof(name), &offset))
		out_format(o, "%s%s%s\n\t%s +%#lx\n", before, name, after, m ? m->path : "?",
			   offset);
	else
		out_format(o, "%s%#lx%s\n\t%s +%#lx\n", before, frame_address(f), after,
			   m ? m->path : "?", f & FRAME_OFFSET);
}

static void write_creator(struct out *o, uint32_t tid)
{
	uint32_t n, places = threads_places();

	for (uint32_t i = 0; i < places; i++) {
		const struct thread *t = thread_place(i);
		const frame_t *frames;

		if (t->tid != tid)
			continue;
		frames = stack_frames(t->created_by, &n);
		if (n)
			write_code(o, "created by ", frames[0], "");
		return;
	}
}

static void write_thread(struct out *o, const struct record_row *row)
{
	uint32_t tid = (uint32_t)row->tags[TAG_TID].number;
	const char *state = row->tags[TAG_STATE].text;
	char where[64] = "", letter = state == is_running ? 'R' : 'S';

	if (state != is_running)
		task_waits_in(tid, where, sizeof(where));
	if (state == is_silent)
		letter = task_state(tid, 0, NULL);
	out_format(o, "thread %u \"%s\" [%c, %s%s%s%.2fs CPU]:\n", tid, row->tags[TAG_THREAD].text,
		   letter, state == is_silent ? "not responding, " : "", where, *where ? ", " : "",
		   (double)task_cpu(tid) / 1e9);
	record_write_labels(o, &(struct record_row){ .labels = row->labels });
	for (uint32_t i = 0; i < row->nframes; i++)
		write_code(o, "", row->frames[i], "(...)");
	write_creator(o, tid);
	out_text(o, "\n");
}

/* debug=1 has stacks with the number of threads in each, debug=2 each thread. */
static void write_text(struct out *o, const struct agent_profile *p, struct record *r, int debug)
{
	for (size_t i = 0; debug > 1 && i < r->n; i++)
		write_thread(o, &r->rows[i]);
	if (debug > 1)
		return;
	for (size_t i = 0; i < r->n; i++)
		r->rows[i].ntags = 0;
	record_write_text(o, p, r, debug);
}

const struct agent_profile profile_goroutine = {
	.name = "goroutine",
	.about = "Where all threads are, for tools that ask for goroutines",
	.types = { { "goroutine", "count" } },
	.ntypes = 1,
	.period_type = { "goroutine", "count" },
	.has_delta = true,
	.count = threads_count,
	.collect = collect,
	.write_text = write_text,
};

const struct agent_profile profile_threads = {
	.name = "threads",
	.about = "Where all threads are, with their names and states; debug=2 is for reading",
	.types = { { "goroutine", "count" } },
	.ntypes = 1,
	.period_type = { "goroutine", "count" },
	.has_delta = true,
	.count = threads_count,
	.collect = collect,
	.write_text = write_text,
};
