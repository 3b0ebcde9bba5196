/* collector.c - the threads: one hands out what is due, workers do it, one looks at sources. */
#include <stdlib.h>

#include "base/map.h"
#include "collect/inside.h"

enum {
	LOOK_MS = 2000,		 /* at sources */
	STACK_BYTES = 512 << 10, /* for libcurl, and to read a profile */
	BUSY_NS = 200000000,	 /* then look again whether it is still */
	MAX_OF_TARGET = 2,	 /* profiles at a time, so that one that hangs holds few threads */
	MAX_LOGGED = 10,	 /* of what is wrong with single targets, each time */
};

/* What was to be logged while `lock` was held. */
static void log_lines(struct collector *c, struct buf *log)
{
	for (size_t i = 0; i < log->n; i += strlen(log->p + i) + 1)
		c->params.sink.log(c->params.sink.ctx, log->p + i);
	buf_release(log);
}

/* ---- workers */

/* Called with the lock held. */
static void finish(struct collector *c, struct shot *s)
{
	struct buf log = { 0 };

	for (size_t i = 0; i < c->running.n; i++)
		if (c->running.at[i] == s)
			c->running.at[i] = c->running.at[--c->running.n];
	s->target->nrunning--;
	if (s->task)
		task_done(c, s, &log);
	else
		capture_done(c, s);
	target_drop(s->target);
	shot_free(s);
	pthread_cond_signal(&c->changed);
	if (!log.n)
		return;
	pthread_mutex_unlock(&c->lock);
	log_lines(c, &log);
	pthread_mutex_lock(&c->lock);
}

static void *work(void *arg)
{
	struct collector *c = arg;

	pthread_mutex_lock(&c->lock);
	for (;;) {
		struct shot *s = c->first;

		if (!s && c->is_stopping)
			break;
		if (!s) {
			c->nidle++;
			pthread_cond_wait(&c->has_work, &c->lock);
			c->nidle--;
			continue;
		}
		c->first = s->next;
		if (!c->first)
			c->last = &c->first;
		pthread_mutex_unlock(&c->lock);
		shot_run(s);
		pthread_mutex_lock(&c->lock);
		finish(c, s);
	}
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

static bool start_thread(pthread_t *t, void *(*run)(void *), struct collector *c)
{
	pthread_attr_t attr;
	bool ok;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	ok = pthread_create(t, &attr, run, c) == 0;
	pthread_attr_destroy(&attr);
	return ok;
}

void start_shot(struct collector *c, struct shot *s)
{
	size_t nwaiting = 1;
	pthread_t thread;

	s->started = wall_now();
	s->started_ms = clock_now_ms();
	s->target->nrunning++;
	vec_push(&c->running, s);
	for (const struct shot *w = c->first; w; w = w->next)
		nwaiting++;
	*c->last = s;
	c->last = &s->next;
	if (nwaiting > c->nidle && start_thread(&thread, work, c))
		vec_push(&c->workers, thread);
	pthread_cond_signal(&c->has_work);
}

/* ---- what is due */

/* Is the one profiler of the process at that address in use? */
static bool is_in_use(const struct collector *c, struct str address, const char *exclusive)
{
	for (size_t i = 0; i < c->running.n; i++) {
		const struct shot *s = c->running.at[i];

		if (s->type.exclusive && strcmp(s->type.exclusive, exclusive) == 0 &&
		    str_eq(s->address, address))
			return true;
	}
	return false;
}

bool may_start(const struct collector *c, const struct target *t, const struct profile_type *type)
{
	return c->running.n < c->params.max_at_once &&
	       t->nrunning < (t->is_unreachable ? 1 : MAX_OF_TARGET) &&
	       !(type->exclusive && is_in_use(c, t->address, type->exclusive));
}

/* When it is to have its turn, if not now; 0: now. */
static int64_t turn_of(struct collector *c, struct task *task, int64_t now)
{
	const struct target *t = task->target;
	int64_t from = t->retry_at > now ? t->retry_at : now;

	task->is_resting = replicas_are_others(c, task, now);
	if (task->is_resting)
		return task_next(task, now);
	if (!t->is_unreachable)
		return 0;
	if (task != target_probe(t))
		return task_next(task, from);
	return t->retry_at > now ? t->retry_at : 0;
}

static void start_task(struct collector *c, struct task *task, int64_t now)
{
	int64_t later = turn_of(c, task, now);
	struct shot *s;

	if (later) {
		task_queue(c, task, later);
		return;
	}
	if (!may_start(c, task->target, &task->type)) { /* it is still its turn */
		queue_put(&c->queue, &task->queued, now + BUSY_NS);
		return;
	}
	queue_remove(&c->queue, &task->queued);
	task->is_running = true;
	s = shot_new(c, task->target, &task->type);
	s->task = task;
	start_shot(c, s);
}

/* Starts what is due; returns how long to wait for more, in milliseconds. */
static int start_due(struct collector *c)
{
	for (;;) {
		struct queued *first = queue_first(&c->queue);
		int64_t now = clock_now_ns();

		if (!first || c->running.n >= c->params.max_at_once)
			return LOOK_MS;
		if (first->due > now)
			return first->due - now < LOOK_MS * INT64_C(1000000)
				       ? (int)((first->due - now) / 1000000) + 1
				       : LOOK_MS;
		start_task(c, (struct task *)first, now);
	}
}

static void *dispatch(void *arg)
{
	struct collector *c = arg;

	pthread_mutex_lock(&c->lock);
	while (!c->is_stopping) {
		captures_start(c);
		wait_for_ms(&c->changed, &c->lock, start_due(c));
	}
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

/* ---- sources */

/* With sources_lock held. */
static bool look(struct job *j, size_t source, struct target_set *fresh)
{
	*fresh = (struct target_set){ 0 };
	return j->sources[source]->look(j->sources[source], fresh);
}

static bool has_fault(const struct target_set *set, const char *fault)
{
	for (size_t i = 0; i < set->nfaults; i++)
		if (strcmp(set->faults[i], fault) == 0)
			return true;
	return false;
}

/* Whoever writes them may write many, and again and again. */
static void log_faults(const struct target_set *before, const struct target_set *fresh,
		       const char *job, struct buf *log)
{
	size_t n = 0;

	for (size_t i = 0; i < fresh->nfaults; i++)
		if (!has_fault(before, fresh->faults[i]) && n++ < MAX_LOGGED)
			buf_printf(log, "scrape: job %s: %s%c", job, fresh->faults[i], '\0');
	if (n > MAX_LOGGED)
		buf_printf(log, "scrape: job %s: and %zu others%c", job, n - MAX_LOGGED, '\0');
}

/* What is wrong is told when it is new. */
static void set_targets(struct job *j, size_t source, const struct target_set *fresh,
			struct buf *log)
{
	struct target_set *set = &j->sets[source];

	log_faults(set, fresh, j->config->name, log);
	if (fresh->problem.kind != ERR_NONE &&
	    (set->problem.kind == ERR_NONE || strcmp(set->problem.text, fresh->problem.text) != 0))
		buf_printf(log, "%s%c", fresh->problem.text, '\0');
	target_set_release(set);
	*set = *fresh;
}

static void look_at_job(struct collector *c, struct job *j)
{
	struct buf log = { 0 };
	bool is_new = false;

	for (size_t s = 0; s < j->nsources; s++) {
		struct target_set fresh;

		if (!look(j, s, &fresh))
			continue;
		pthread_mutex_lock(&c->lock);
		set_targets(j, s, &fresh, &log);
		pthread_mutex_unlock(&c->lock);
		is_new = true;
	}
	pthread_mutex_lock(&c->lock);
	if (is_new || job_may_grow(c, j))
		job_sync(c, j, &log);
	pthread_mutex_unlock(&c->lock);
	log_lines(c, &log);
}

static void look_at_sources(struct collector *c)
{
	pthread_mutex_lock(&c->sources_lock);
	for (size_t i = 0; i < c->jobs.n; i++)
		look_at_job(c, c->jobs.at[i]);
	pthread_mutex_unlock(&c->sources_lock);
}

static void *watch(void *arg)
{
	struct collector *c = arg;

	pthread_mutex_lock(&c->lock);
	while (!c->is_stopping) {
		wait_for_ms(&c->stopped, &c->lock, LOOK_MS);
		if (c->is_stopping)
			break;
		pthread_mutex_unlock(&c->lock);
		look_at_sources(c);
		pthread_mutex_lock(&c->lock);
	}
	pthread_mutex_unlock(&c->lock);
	return NULL;
}

static struct job *find_job(struct collector *c, const char *name)
{
	for (size_t i = 0; i < c->jobs.n; i++) {
		struct job *j = c->jobs.at[i];

		if (strcmp(j->config->name, name) == 0)
			return j;
	}
	return NULL;
}

/* Files of which there was something to remember: one that is wrong keeps its targets. */
static void inherit_sources(struct job *j, struct job *old)
{
	for (size_t s = 0; s < j->nsources; s++)
		for (size_t k = 0; old && k < old->nsources; k++)
			if (j->sources[s]->inherit &&
			    j->sources[s]->inherit == old->sources[k]->inherit)
				j->sources[s]->inherit(j->sources[s], old->sources[k]);
}

/* Reads the sources before anything is locked that others need. */
static struct job *read_job(struct collector *c, const struct scrape_job *config,
			    struct shared_config *shared, struct buf *log)
{
	struct job *j = job_new(config, shared);

	inherit_sources(j, find_job(c, config->name));
	for (size_t s = 0; s < j->nsources; s++) {
		struct target_set fresh;

		if (look(j, s, &fresh))
			set_targets(j, s, &fresh, log);
	}
	return j;
}

void collector_set_jobs(struct collector *c, struct scrape_config *config)
{
	struct shared_config *shared = xcalloc(1, sizeof(*shared));
	vec(struct job *) fresh = { 0 };
	struct buf log = { 0 };

	shared->config = *config;
	shared->refs = 1;
	*config = (struct scrape_config){ 0 };
	pthread_mutex_lock(&c->sources_lock);
	for (size_t i = 0; i < shared->config.njobs; i++)
		vec_push(&fresh, read_job(c, &shared->config.jobs[i], shared, &log));
	for (size_t i = 0; i < c->jobs.n; i++)
		job_stop(c->jobs.at[i]);
	pthread_mutex_lock(&c->lock);
	for (size_t i = 0; i < fresh.n; i++) {
		struct job *old = find_job(c, fresh.at[i]->config->name);

		if (old)
			job_inherit(fresh.at[i], old);
	}
	for (size_t i = 0; i < c->jobs.n; i++)
		job_remove_targets(c, c->jobs.at[i]);
	for (size_t i = 0; i < fresh.n; i++)
		job_refresh(c, fresh.at[i], &log);
	for (size_t i = 0; i < c->jobs.n; i++)
		job_drop(c->jobs.at[i]);
	c->jobs.n = 0;
	for (size_t i = 0; i < fresh.n; i++)
		vec_push(&c->jobs, fresh.at[i]);
	if (!--shared->refs) { /* there are no jobs at all */
		scrape_config_release(&shared->config);
		free(shared);
	}
	pthread_mutex_unlock(&c->lock);
	pthread_mutex_unlock(&c->sources_lock);
	log_lines(c, &log);
	vec_release(&fresh);
}

/* ---- start and end */

struct collector *collector_new(const struct collector_params *params)
{
	struct collector *c = xcalloc(1, sizeof(*c));

	c->params = *params;
	c->last = &c->first;
	c->random = map_seed();
	pthread_mutex_init(&c->sources_lock, NULL);
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->changed, NULL);
	pthread_cond_init(&c->has_work, NULL);
	pthread_cond_init(&c->stopped, NULL);
	c->has_dispatcher = start_thread(&c->dispatcher, dispatch, c);
	c->has_watcher = start_thread(&c->watcher, watch, c);
	return c;
}

void collector_stop(struct collector *c)
{
	pthread_mutex_lock(&c->lock);
	c->is_stopping = true;
	for (size_t i = 0; i < c->running.n; i++)
		atomic_store(&c->running.at[i]->canceled, true);
	pthread_cond_broadcast(&c->changed);
	pthread_cond_broadcast(&c->has_work);
	pthread_cond_broadcast(&c->stopped);
	pthread_mutex_unlock(&c->lock);
}

void collector_join(struct collector *c)
{
	collector_stop(c);
	if (c->has_dispatcher)
		pthread_join(c->dispatcher, NULL);
	if (c->has_watcher)
		pthread_join(c->watcher, NULL);
	for (size_t i = 0; i < c->jobs.n; i++)
		job_stop(c->jobs.at[i]);
	for (size_t i = 0; i < c->workers.n; i++)
		pthread_join(c->workers.at[i], NULL);
	c->has_dispatcher = c->has_watcher = false;
	c->workers.n = 0;
}

void collector_free(struct collector *c)
{
	if (!c)
		return;
	collector_join(c);
	for (size_t i = 0; i < c->jobs.n; i++) {
		job_remove_targets(c, c->jobs.at[i]);
		job_drop(c->jobs.at[i]);
	}
	vec_release(&c->jobs);
	vec_release(&c->workers);
	vec_release(&c->running);
	vec_release(&c->captures);
	vec_release(&c->queue.at);
	pthread_mutex_destroy(&c->sources_lock);
	pthread_mutex_destroy(&c->lock);
	pthread_cond_destroy(&c->changed);
	pthread_cond_destroy(&c->has_work);
	pthread_cond_destroy(&c->stopped);
	free(c);
}
