/* target.c - one target: what it is, and its tasks. */
#include <stdlib.h>

#include "base/map.h"
#include "collect/inside.h"
#include "collect/own.h"

const char *target_state_name(enum target_state state)
{
	static const char *const names[] = { "new", "up", "down" };

	return names[state];
}

void set_text(char **to, const char *text)
{
	free(*to);
	*to = NULL;
	if (text) {
		*to = xmalloc(strlen(text) + 1);
		memcpy(*to, text, strlen(text) + 1);
	}
}

/* ---- what it is */

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
	t->labels[i] = (struct target_label){ name, value };
}

/* The job's, and those of the target, which go first; the one called service is none of them. */
static void merge_labels(struct target *t, const struct scrape_job *config,
			 const struct target_spec *spec)
{
	size_t n = 0;

	set_label(t, STR("instance"), spec->address);
	for (size_t i = 0; i < config->nlabels; i++)
		set_label(t, config->labels[i].name, config->labels[i].value);
	for (size_t i = 0; i < spec->nlabels; i++)
		set_label(t, spec->labels[i].name, spec->labels[i].value);
	t->service = str_of(config->name);
	for (size_t i = 0; i < t->nlabels; i++) {
		if (str_eq(t->labels[i].name, STR("service")))
			t->service = t->labels[i].value;
		else
			t->labels[n++] = t->labels[i];
	}
	t->nlabels = n;
	qsort(t->labels, n, sizeof(*t->labels), by_name);
}

static uint64_t hash_str(uint64_t seed, struct str s)
{
	return hash_bytes(seed, s.p, s.n);
}

void target_describe(struct target *t, struct target_label labels[MAX_MERGED_LABELS], struct job *j,
		     const struct target_spec *spec)
{
	*t = (struct target){
		.job = j, .address = spec->address, .labels = labels, .own = spec->own, .round = -1
	};
	merge_labels(t, j->config, spec);
	/* The same in each start of the server, and other than that of the same target in another
	 * job. With other settings it keeps its place in the interval. */
	t->hash = hash_str(hash_str(hash_str(1, str_of(j->config->name)), t->address), t->service);
	for (size_t i = 0; i < t->nlabels; i++)
		t->hash = hash_str(hash_str(t->hash, t->labels[i].name), t->labels[i].value);
}

bool target_same(const struct target *a, const struct target *b)
{
	if (a->hash != b->hash || a->nlabels != b->nlabels || !str_eq(a->address, b->address) ||
	    !str_eq(a->service, b->service) || !own_same(a->own, b->own))
		return false;
	for (size_t i = 0; i < a->nlabels; i++)
		if (!str_eq(a->labels[i].name, b->labels[i].name) ||
		    !str_eq(a->labels[i].value, b->labels[i].value))
			return false;
	return true;
}

static struct str put_str(char **to, struct str s)
{
	struct str copy = { *to, s.n };

	if (s.n)
		memcpy(*to, s.p, s.n);
	*to += s.n;
	return copy;
}

struct target *target_new(const struct target *described)
{
	const struct target_label *from = described->labels;
	size_t bytes = sizeof(*described) + described->nlabels * sizeof(*from) +
		       described->address.n + described->service.n +
		       (described->own ? own_bytes(described->own) : 0);
	struct target *t;
	char *to;

	for (size_t i = 0; i < described->nlabels; i++)
		bytes += from[i].name.n + from[i].value.n;
	t = xmalloc(bytes);
	*t = *described;
	t->bytes = bytes;
	t->since = wall_now();
	t->labels = (struct target_label *)(t + 1);
	to = (char *)(t->labels + t->nlabels);
	if (t->own) {
		t->own = own_put(to, described->own);
		to += own_bytes(described->own);
	}
	t->address = put_str(&to, described->address);
	t->service = put_str(&to, described->service);
	for (size_t i = 0; i < t->nlabels; i++) {
		t->labels[i].name = put_str(&to, from[i].name);
		t->labels[i].value = put_str(&to, from[i].value);
	}
	return t;
}

/* ---- its tasks */

void task_drop(struct task *t)
{
	if (!t->is_gone || t->is_running)
		return;
	free(t->problem);
	free(t);
}

static void remove_task(struct collector *c, struct task *t)
{
	queue_remove(&c->queue, &t->queued);
	t->is_gone = true;
	task_drop(t);
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

const struct profile_type *target_types(const struct target *t, size_t *n)
{
	bool is_own = t->own && t->own->ntypes;

	*n = is_own ? t->own->ntypes : t->job->config->ntypes;
	return is_own ? t->own->types : t->job->config->types;
}

void target_set_tasks(struct collector *c, struct target *t)
{
	int64_t now = clock_now_ns();
	vec(struct task *) tasks = { 0 };
	size_t ntypes;
	const struct profile_type *types = target_types(t, &ntypes);

	for (size_t i = 0; i < ntypes; i++) {
		const struct profile_type *type = &types[i];
		struct task *task = take_task(t, type->name);
		bool is_same = task && task->type.interval == type->interval;

		if (!task) {
			task = xcalloc(1, sizeof(*task));
			task->target = t;
			task->hash = hash_bytes(t->hash, type->name, strlen(type->name));
		}
		task->type = *type;
		if (!is_same && !task->is_running)
			task_queue(c, task, task_next(task, now));
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

/* The shortest, but of those that fail by themselves the one that has done so least. */
struct task *target_probe(const struct target *t)
{
	struct task *best = NULL;

	for (size_t i = 0; i < t->tasks.n; i++) {
		struct task *task = t->tasks.at[i];

		if (!best || task->nfailures < best->nfailures ||
		    (task->nfailures == best->nfailures && task->type.seconds < best->type.seconds))
			best = task;
	}
	return best;
}

/* ---- its end */

void target_drop(struct target *t)
{
	if (!t->is_gone || t->nrunning)
		return;
	vec_release(&t->tasks);
	free(t->problem);
	free(t);
}

void target_remove(struct collector *c, struct target *t)
{
	for (size_t i = 0; i < c->running.n; i++)
		if (c->running.at[i]->target == t)
			atomic_store(&c->running.at[i]->canceled, true);
	for (size_t i = 0; i < t->tasks.n; i++)
		remove_task(c, t->tasks.at[i]);
	t->tasks.n = 0;
	t->is_gone = true;
	c->ntargets--;
	c->target_bytes -= t->bytes;
	target_drop(t);
}
