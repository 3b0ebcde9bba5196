/* results.c - what became of a request, and when the next one is. */
#include "collect/inside.h"

/* Of one that the target does not have: it may, once it has been updated. */
enum { ABSENT_INTERVALS = 10 };

const char *collect_result_name(enum collect_result r)
{
	static const char *const names[] = { "ok",	"empty",       "absent",  "wrong",
					     "refused", "unreachable", "canceled" };

	return names[r];
}

static bool is_good(enum collect_result r)
{
	return r == COLLECT_OK || r == COLLECT_EMPTY;
}

int64_t task_next(const struct task *t, int64_t after)
{
	return schedule_next(after, t->type.interval, t->target->job->config->jitter, t->hash);
}

void task_queue(struct collector *c, struct task *t, int64_t at)
{
	t->slot = at;
	queue_put(&c->queue, &t->queued, at);
}

/* The turn after the last one. It may be over by a little, as the last took all of the interval,
 * or had to wait: then it is taken at once. */
static int64_t task_after(const struct task *t, int64_t now)
{
	int64_t next = task_next(t, t->slot);

	return now - next < t->type.interval / 2 ? next : task_next(t, now);
}

static void set_state(struct target *t, enum target_state state, const char *why, struct buf *log)
{
	if (state != t->state) {
		t->since = wall_now();
		buf_printf(log, "scrape: %s %.*s is %s%s%s%c", t->job->config->name,
			   STR_ARG(t->address), target_state_name(state), why ? ": " : "",
			   why ? why : "", '\0');
	}
	t->state = state;
	set_text(&t->problem, why);
}

void target_wake(struct collector *c, struct target *t)
{
	int64_t now = clock_now_ns();

	t->nfailures = 0;
	t->retry_at = 0;
	for (size_t i = 0; i < t->tasks.n; i++) {
		struct task *task = t->tasks.at[i];

		if (!task->is_running && !task->nfailures)
			task_queue(c, task, task_next(task, now));
	}
}

/* It is up as long as any of its profiles can be had. */
static void judge(struct target *t, const struct shot *s, struct buf *log)
{
	bool is_tried = true, is_any_good = false, are_all_absent = true;

	for (size_t i = 0; i < t->tasks.n; i++) {
		const struct task *task = t->tasks.at[i];

		is_tried = is_tried && task->is_tried;
		is_any_good = is_any_good || (task->is_tried && is_good(task->result));
		are_all_absent = are_all_absent && task->result == COLLECT_ABSENT;
	}
	if (is_any_good)
		set_state(t, TARGET_UP, NULL, log);
	else if (is_tried && are_all_absent)
		set_state(t, TARGET_DOWN, "it has none of the profiles: is path-prefix right?",
			  log);
	else if (is_tried)
		set_state(t, TARGET_DOWN, s->e.text, log);
}

/* Is it the target that cannot be reached, or does it only not give this profile? The latter if it
 * has given any other meanwhile; or since this one was tried before, if it could at least be asked
 * for. */
static bool is_silent(const struct target *t, const struct shot *s)
{
	return s->result == COLLECT_UNREACHABLE &&
	       t->answered_ms <= (s->was_sent ? s->task->tried_ms : s->started_ms);
}

/* From now on only one profile at a time is asked for, and that is the shortest. */
static void note_unreachable(struct collector *c, struct target *t, const struct shot *s,
			     struct buf *log)
{
	const struct scrape_job *config = t->job->config;
	struct task *probe = target_probe(t);

	t->is_unreachable = true;
	if (s->started_ms >= t->failed_ms) { /* those that fail together do so once */
		t->failed_ms = clock_now_ms();
		t->nfailures++;
		t->retry_at =
			clock_now_ns() + schedule_backoff(config->interval, t->nfailures,
							  config->backoff, random_next(&c->random));
	}
	if (probe && !probe->is_running)
		task_queue(c, probe, t->retry_at);
	set_state(t, TARGET_DOWN, s->e.text, log);
}

static void note_answer(struct collector *c, struct target *t)
{
	t->answered_ms = clock_now_ms();
	if (t->is_unreachable) {
		t->is_unreachable = false;
		target_wake(c, t);
	}
}

/* What the server itself had no room for says nothing of the target. */
static void note_result(struct task *task, const struct shot *s)
{
	bool is_own_failure = !is_good(s->result) && s->result != COLLECT_ABSENT &&
			      (s->result != COLLECT_UNREACHABLE || s->was_sent);

	task->is_resting = false;
	task->tried_ms = s->started_ms;
	task->last = s->started;
	task->duration_s = (double)(clock_now_ms() - s->started_ms) / 1e3;
	set_text(&task->problem, s->result == COLLECT_OK ? NULL : s->e.text);
	if (s->result == COLLECT_REFUSED)
		return;
	task->is_tried = true;
	task->result = s->result;
	task->nok += is_good(s->result);
	task->nfailed += !is_good(s->result) && s->result != COLLECT_ABSENT;
	task->nfailures = is_good(s->result) ? 0 : task->nfailures + is_own_failure;
}

static int64_t due_after(struct collector *c, const struct task *task, const struct shot *s)
{
	const struct target *t = task->target;
	int64_t now = clock_now_ns();

	if (is_good(s->result) || s->result == COLLECT_REFUSED)
		return task_after(task, now);
	if (s->result == COLLECT_ABSENT)
		return task_next(task, now + ABSENT_INTERVALS * task->type.interval);
	if (t->is_unreachable && task == target_probe(t))
		return t->retry_at;
	return now + schedule_backoff(task->type.interval, task->nfailures, t->job->config->backoff,
				      random_next(&c->random));
}

void task_done(struct collector *c, const struct shot *s, struct buf *log)
{
	struct task *task = s->task;
	struct target *t = s->target;
	bool has_failed;

	task->is_running = false;
	if (task->is_gone) {
		task_drop(task);
		return;
	}
	if (s->result == COLLECT_CANCELED) {
		task_queue(c, task, task_next(task, clock_now_ns()));
		return;
	}
	has_failed = is_silent(t, s);
	note_result(task, s);
	t->last = s->started;
	if (has_failed)
		note_unreachable(c, t, s, log);
	else if (s->result != COLLECT_UNREACHABLE)
		note_answer(c, t);
	if (!has_failed && s->result != COLLECT_REFUSED)
		judge(t, s, log);
	task_queue(c, task, due_after(c, task, s));
}
