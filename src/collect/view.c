/* view.c - what the collector knows, as others may see it. */
#include "collect/inside.h"

static const char *copy_text(struct arena *a, const char *text)
{
	return text ? str_dup(a, str_of(text)) : "";
}

static struct str copy_str(struct arena *a, struct str s)
{
	return (struct str){ str_dup(a, s), s.n };
}

static const char *state_of(const struct task *t)
{
	if (t->is_running)
		return "running";
	if (t->is_resting)
		return "resting";
	if (!t->is_tried)
		return "new";
	return t->result == COLLECT_OK || t->result == COLLECT_EMPTY ? "ok"
	       : t->result == COLLECT_ABSENT			     ? "absent"
								     : "failing";
}

static void view_task(struct arena *a, const struct task *t, struct type_view *out)
{
	int64_t wait = t->queued.due - clock_now_ns();

	*out = (struct type_view){ .type = copy_text(a, t->type.name),
				   .state = state_of(t),
				   .problem = copy_text(a, t->problem),
				   .last = t->last,
				   .duration_s = t->duration_s,
				   .nok = t->nok,
				   .nfailed = t->nfailed };
	if (!t->is_running)
		out->next = wall_now() + (wait > 0 ? wait : 0);
}

static void view_target(struct arena *a, const struct target *t, struct target_view *out)
{
	*out = (struct target_view){ .address = copy_str(a, t->address),
				     .service = copy_str(a, t->service),
				     .labels = labels_copy(a, t->labels, t->nlabels),
				     .nlabels = t->nlabels,
				     .state = target_state_name(t->state),
				     .problem = copy_text(a, t->problem),
				     .last = t->last,
				     .since = t->since,
				     .types = arena_many(a, t->tasks.n, struct type_view),
				     .ntypes = t->tasks.n };
	for (size_t i = 0; i < t->tasks.n; i++)
		view_task(a, t->tasks.at[i], &out->types[i]);
}

static const char *tell_faults(struct arena *a, const struct target_set *set)
{
	size_t n = set->nfaults + set->nmore_faults;
	struct err e;

	if (n == 1)
		return copy_text(a, set->faults[0]);
	err_set(&e, ERR_USAGE, "%zu are left out; the first: %s", n, set->faults[0]);
	return copy_text(a, e.text);
}

static const char *problem_of(struct arena *a, const struct job *j)
{
	for (size_t i = 0; i < j->nsources; i++)
		if (j->sets[i].problem.kind != ERR_NONE)
			return copy_text(a, j->sets[i].problem.text);
	for (size_t i = 0; i < j->nsources; i++)
		if (j->sets[i].nfaults)
			return tell_faults(a, &j->sets[i]);
	return j->left_out_bytes ? TARGETS_LEFT_OUT : "";
}

static void view_faults(struct arena *a, const struct job *j, struct job_view *out)
{
	for (size_t i = 0; i < j->nsources; i++)
		out->nfaults += j->sets[i].nfaults;
	out->faults = arena_many(a, out->nfaults, const char *);
	out->nfaults = 0;
	for (size_t i = 0; i < j->nsources; i++) {
		out->nmore_faults += j->sets[i].nmore_faults;
		for (size_t k = 0; k < j->sets[i].nfaults; k++)
			out->faults[out->nfaults++] = copy_text(a, j->sets[i].faults[k]);
	}
}

/* ---- which */

static bool is_it(const struct str *wanted, struct str s)
{
	return !wanted->p || str_eq(*wanted, s);
}

static bool is_job_wanted(const struct target_filter *f, const struct job *j)
{
	return !f || is_it(&f->job, str_of(j->config->name));
}

static bool is_wanted(const struct target_filter *f, const struct target *t)
{
	return is_it(&f->service, t->service) &&
	       is_it(&f->state, str_of(target_state_name(t->state)));
}

static size_t count_wanted(const struct target_filter *f, const struct job *j)
{
	size_t n = 0;

	for (size_t i = 0; f && i < j->targets.n; i++)
		n += is_wanted(f, j->targets.at[i]);
	return n;
}

/* ---- all of it */

static void view_job(struct arena *a, const struct job *j, const struct target_filter *f,
		     struct job_view *out)
{
	*out = (struct job_view){ .name = copy_text(a, j->config->name),
				  .problem = problem_of(a, j),
				  .interval = j->config->interval,
				  .replicas = j->config->replicas,
				  .targets =
					  arena_many(a, count_wanted(f, j), struct target_view) };
	if (f)
		view_faults(a, j, out);
	for (size_t i = 0; i < j->targets.n; i++) {
		const struct target *t = j->targets.at[i];

		out->nup += t->state == TARGET_UP;
		out->ndown += t->state == TARGET_DOWN;
		out->nnew += t->state == TARGET_NEW;
		if (f && is_wanted(f, t))
			view_target(a, t, &out->targets[out->ntargets++]);
	}
}

void collector_view(struct collector *c, const struct target_filter *f, struct arena *a,
		    struct job_view **jobs, size_t *n)
{
	pthread_mutex_lock(&c->lock);
	*n = 0;
	*jobs = arena_many(a, c->jobs.n, struct job_view);
	for (size_t i = 0; i < c->jobs.n; i++)
		if (is_job_wanted(f, c->jobs.at[i]))
			view_job(a, c->jobs.at[i], f, &(*jobs)[(*n)++]);
	pthread_mutex_unlock(&c->lock);
}

static size_t text_bytes(const char *text)
{
	return text ? strlen(text) : 0;
}

static size_t target_bytes(const struct target *t)
{
	size_t bytes = sizeof(struct target_view) + t->bytes + text_bytes(t->problem);

	for (size_t i = 0; i < t->tasks.n; i++)
		bytes += sizeof(struct type_view) + text_bytes(t->tasks.at[i]->type.name) +
			 text_bytes(t->tasks.at[i]->problem);
	return bytes;
}

size_t collector_view_bytes(struct collector *c, const struct target_filter *f)
{
	size_t bytes = 0;

	pthread_mutex_lock(&c->lock);
	for (size_t i = 0; i < c->jobs.n; i++) {
		const struct job *j = c->jobs.at[i];

		for (size_t k = 0; is_job_wanted(f, j) && k < j->nsources; k++)
			bytes += j->sets[k].nfaults * sizeof(struct err);
		for (size_t k = 0; is_job_wanted(f, j) && k < j->targets.n; k++)
			if (is_wanted(f, j->targets.at[k]))
				bytes += target_bytes(j->targets.at[k]);
	}
	pthread_mutex_unlock(&c->lock);
	return bytes;
}
