/* jobs.c - jobs, and their targets as they come and go. */
#include <stdlib.h>

#include "base/map.h"
#include "collect/inside.h"
#include "http/client.h"

void set_text(char **to, const char *text)
{
	free(*to);
	*to = NULL;
	if (text) {
		*to = xmalloc(strlen(text) + 1);
		memcpy(*to, text, strlen(text) + 1);
	}
}

/* ---- one job */

struct job *job_new(const struct scrape_job *config, struct shared_config *shared)
{
	struct job *j = xcalloc(1, sizeof(*j));

	j->config = config;
	j->shared = shared;
	shared->refs++;
	j->refs = 1;
	j->client = http_client_new(&(struct http_tls){
		.cert = config->tls_cert, .key = config->tls_key, .ca = config->tls_ca });
	if (config->ntargets)
		j->sources[j->nsources++] = source_fixed_new(config->targets, config->ntargets);
	if (config->nfiles)
		j->sources[j->nsources++] = source_files_new(config->files, config->nfiles);
	return j;
}

void job_drop(struct job *j)
{
	if (--j->refs)
		return;
	for (size_t i = 0; i < j->nsources; i++) {
		target_set_release(&j->sets[i]);
		j->sources[i]->free(j->sources[i]);
	}
	http_client_free(j->client);
	vec_release(&j->targets);
	if (!--j->shared->refs) {
		scrape_config_release(&j->shared->config);
		free(j->shared);
	}
	free(j);
}

/* ---- one target */

void task_drop(struct task *t)
{
	if (!t->is_gone || t->is_running)
		return;
	free(t->problem);
	free(t);
}

void target_drop(struct target *t)
{
	if (!t->is_gone || t->nrunning)
		return;
	vec_release(&t->tasks);
	free(t->problem);
	arena_release(&t->arena);
	free(t);
}

static void remove_task(struct collector *c, struct task *t)
{
	queue_remove(&c->queue, &t->queued);
	t->is_gone = true;
	task_drop(t);
}

/* What is under way of it has no use any more. */
static void remove_target(struct collector *c, struct target *t)
{
	for (size_t i = 0; i < c->running.n; i++)
		if (c->running.at[i]->target == t)
			atomic_store(&c->running.at[i]->canceled, true);
	for (size_t i = 0; i < t->tasks.n; i++)
		remove_task(c, t->tasks.at[i]);
	t->tasks.n = 0;
	t->is_gone = true;
	c->ntargets--;
	target_drop(t);
}

void job_remove_targets(struct collector *c, struct job *j)
{
	for (size_t i = 0; i < j->targets.n; i++)
		remove_target(c, j->targets.at[i]);
	j->targets.n = 0;
}

static struct task *take_task(struct target *t, const char *name)
{
	for (size_t i = 0; i < t->tasks.n; i++) {
		struct task *task = t->tasks.at[i];

		if (task && strcmp(task->type.name, name) == 0) {
			t->tasks.at[i] = NULL;
			return task;
		}
	}
	return NULL;
}

/* Those of types that the job still has stay as they are. */
static void set_tasks(struct collector *c, struct target *t)
{
	const struct scrape_job *config = t->job->config;
	int64_t now = clock_now_ns();
	vec(struct task *) tasks = { 0 };

	for (size_t i = 0; i < config->ntypes; i++) {
		const struct profile_type *type = &config->types[i];
		struct task *task = take_task(t, type->name);
		bool is_same = task && task->type.interval == type->interval;

		if (!task) {
			task = xcalloc(1, sizeof(*task));
			task->target = t;
			task->hash = hash_bytes(t->hash, type->name, strlen(type->name));
		}
		task->type = *type;
		if (!is_same && !task->is_running)
			queue_put(&c->queue, &task->queued, task_next(task, now));
		vec_push(&tasks, task);
	}
	for (size_t i = 0; i < t->tasks.n; i++)
		if (t->tasks.at[i])
			remove_task(c, t->tasks.at[i]);
	vec_release(&t->tasks);
	t->tasks.at = tasks.at;
	t->tasks.n = tasks.n;
	t->tasks.cap = tasks.cap;
}

/* ---- labels */

static int by_name(const void *a, const void *b)
{
	return str_cmp(((const struct target_label *)a)->name,
		       ((const struct target_label *)b)->name);
}

static void set_label(struct target *t, struct str name, struct str value)
{
	size_t i = 0;

	while (i < t->nlabels && !str_eq(t->labels[i].name, name))
		i++;
	if (i == t->nlabels)
		t->nlabels++;
	t->labels[i].name = (struct str){ str_dup(&t->arena, name), name.n };
	t->labels[i].value = (struct str){ str_dup(&t->arena, value), value.n };
}

/* The job's, and those of the target, which go first; the one called service is none of them. */
static void merge_labels(struct target *t, const struct scrape_job *config,
			 const struct target_spec *spec)
{
	size_t n = 0;

	t->labels = arena_many(&t->arena, config->nlabels + spec->nlabels + 1, struct target_label);
	set_label(t, STR("instance"), spec->address);
	for (size_t i = 0; i < config->nlabels; i++)
		set_label(t, config->labels[i].name, config->labels[i].value);
	for (size_t i = 0; i < spec->nlabels; i++)
		set_label(t, spec->labels[i].name, spec->labels[i].value);
	t->service = str_of(str_dup(&t->arena, str_of(config->name)));
	for (size_t i = 0; i < t->nlabels; i++) {
		if (str_eq(t->labels[i].name, STR("service")))
			t->service = t->labels[i].value;
		else
			t->labels[n++] = t->labels[i];
	}
	t->nlabels = n;
	qsort(t->labels, n, sizeof(*t->labels), by_name);
}

/* What makes it the same target after a change of the configuration. */
static void set_key(struct target *t)
{
	struct buf key = { 0 };

	buf_printf(&key, "%.*s\n%.*s", STR_ARG(t->address), STR_ARG(t->service));
	for (size_t i = 0; i < t->nlabels; i++)
		buf_printf(&key, "\n%.*s\n%.*s", STR_ARG(t->labels[i].name),
			   STR_ARG(t->labels[i].value));
	t->key = (struct str){ str_dup(&t->arena, buf_view(&key)), key.n };
	buf_release(&key);
}

static struct target *target_new(struct job *j, const struct target_spec *spec)
{
	struct target *t = xcalloc(1, sizeof(*t));

	t->job = j;
	t->address = (struct str){ str_dup(&t->arena, spec->address), spec->address.n };
	merge_labels(t, j->config, spec);
	set_key(t);
	/* The same in each start of the server, and other than that of the same target in another
	 * job. */
	t->hash = hash_bytes(hash_bytes(1, j->config->name, strlen(j->config->name)), t->key.p,
			     t->key.n);
	t->round = -1;
	t->since = wall_now();
	return t;
}

/* ---- all targets of a job */

struct target_key {
	const struct job *job;
	struct str key;
};

static bool same_target(const void *ctx, uint32_t i)
{
	const struct target_key *k = ctx;

	return str_eq(k->job->targets.at[i]->key, k->key);
}

static void add_target(struct collector *c, struct job *j, struct map *map,
		       const struct target_spec *spec)
{
	struct target *t = target_new(j, spec);
	struct target_key key = { j, t->key };
	uint32_t i = map_put(map, t->hash, j->targets.n, same_target, &key);

	if (i < j->targets.n || c->ntargets >= MAX_TARGETS) {
		if (i < j->targets.n)
			j->targets.at[i]->is_seen = true;
		else
			j->has_too_many = true;
		t->is_gone = true;
		target_drop(t);
		return;
	}
	t->is_seen = true;
	c->ntargets++;
	vec_push(&j->targets, t);
	set_tasks(c, t);
}

void job_sync(struct collector *c, struct job *j)
{
	struct map map = { 0 };
	size_t n = 0;

	j->has_too_many = false;
	for (size_t i = 0; i < j->targets.n; i++) {
		j->targets.at[i]->is_seen = false;
		map_add(&map, j->targets.at[i]->hash, i);
	}
	for (size_t s = 0; s < j->nsources; s++)
		for (size_t i = 0; i < j->sets[s].n && !j->has_too_many; i++)
			add_target(c, j, &map, &j->sets[s].at[i]);
	map_release(&map);
	for (size_t i = 0; i < j->targets.n; i++) {
		struct target *t = j->targets.at[i];

		if (t->is_seen)
			j->targets.at[n++] = t;
		else
			remove_target(c, t);
	}
	j->targets.n = n;
	pthread_cond_signal(&c->changed);
}

void job_refresh(struct collector *c, struct job *j)
{
	job_sync(c, j);
	for (size_t i = 0; i < j->targets.n; i++) {
		set_tasks(c, j->targets.at[i]);
		target_wake(c, j->targets.at[i]); /* maybe that was what is mended now */
	}
}

void job_inherit(struct job *j, struct job *old)
{
	for (size_t i = 0; i < old->targets.n; i++) {
		old->targets.at[i]->job = j;
		vec_push(&j->targets, old->targets.at[i]);
	}
	old->targets.n = 0;
}
