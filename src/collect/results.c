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

static const char *const state_names[] = { "new", "up", "down" };

static void set_state(struct target *t, enum target_state state, const char *why, struct buf *log)
{
	if (state != t->state) {
		t->since = wall_now();
		buf_printf(log, "scrape: %s %.*s is %s%s%s\n", t->job->config->name,
			   STR_ARG(t->address), state_names[state], why ? ": " : "",
			   why ? why : "");
	}
	t->state = state;
	set_text(&t->problem, why);
}

void target_wake(struct collector *c, struct target *t)
{
	int64_t now = clock_now_ns();

	t->nfailures = 0;
	t->retry_at = 0;
	for (size_t i = 0; i < t->tasks.n; i++)
		if (!t->tasks.at[i]->is_running)
			queue_put(&c->queue, &t->tasks.at[i]->queued,
				  task_next(t->tasks.at[i], now));
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

static void note_unreachable(struct collector *c, struct target *t, const struct shot *s,
			     struct buf *log)
{
	const struct scrape_job *config = t->job->config;

	t->is_unreachable = true;
	t->nfailures++;
	t->retry_at = clock_now_ns() + schedule_backoff(config->interval, t->nfailures,
							config->backoff, random_next(&c->random));
	set_state(t, TARGET_DOWN, s->e.text, log);
}

static void note_result(struct task *task, const struct shot *s)
{
	task->is_tried = true;
	task->is_resting = false;
	task->result = s->result;
	task->last = s->started;
	task->duration_s = (double)(clock_now_ms() - s->started_ms) / 1e3;
	set_text(&task->problem, s->result == COLLECT_OK ? NULL : s->e.text);
	if (is_good(s->result)) {
		task->nok++;
		task->nfailures = 0;
	} else if (s->result != COLLECT_ABSENT) {
		task->nfailed++;
		task->nfailures++;
	}
}

static int64_t due_after(struct collector *c, const struct task *task)
{
	const struct target *t = task->target;
	int64_t now = clock_now_ns();

	if (is_good(task->result))
		return task_next(task, now);
	if (task->result == COLLECT_ABSENT)
		return task_next(task, now + ABSENT_INTERVALS * task->type.interval);
	if (task->result == COLLECT_UNREACHABLE)
		return t->retry_at;
	return now + schedule_backoff(task->type.interval, task->nfailures, t->job->config->backoff,
				      random_next(&c->random));
}

void task_done(struct collector *c, const struct shot *s, struct buf *log)
{
	struct task *task = s->task;
	struct target *t = s->target;

	task->is_running = false;
	if (task->is_gone) {
		task_drop(task);
		return;
	}
	if (s->result == COLLECT_CANCELED) {
		queue_put(&c->queue, &task->queued, task_next(task, clock_now_ns()));
		return;
	}
	note_result(task, s);
	t->last = s->started;
	if (s->result == COLLECT_UNREACHABLE) {
		note_unreachable(c, t, s, log);
	} else {
		if (t->is_unreachable) {
			t->is_unreachable = false;
			target_wake(c, t);
		}
		judge(t, s, log);
	}
	queue_put(&c->queue, &task->queued, due_after(c, task));
}
