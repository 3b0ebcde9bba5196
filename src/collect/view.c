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
	struct target_label *labels = arena_many(a, t->nlabels, struct target_label);

	for (size_t i = 0; i < t->nlabels; i++) {
		labels[i].name = copy_str(a, t->labels[i].name);
		labels[i].value = copy_str(a, t->labels[i].value);
	}
	*out = (struct target_view){ .address = copy_str(a, t->address),
				     .service = copy_str(a, t->service),
				     .labels = labels,
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

static const char *problem_of(struct arena *a, const struct job *j)
{
	for (size_t i = 0; i < j->nsources; i++)
		if (j->sets[i].problem.kind != ERR_NONE)
			return copy_text(a, j->sets[i].problem.text);
	return j->left_out_bytes ? TARGETS_LEFT_OUT : "";
}

static void view_job(struct arena *a, const struct job *j, bool with_targets, struct job_view *out)
{
	*out = (struct job_view){ .name = copy_text(a, j->config->name),
				  .problem = problem_of(a, j),
				  .interval = j->config->interval,
				  .replicas = j->config->replicas,
				  .ntargets = j->targets.n };
	for (size_t i = 0; i < j->targets.n; i++) {
		enum target_state state = j->targets.at[i]->state;

		out->nup += state == TARGET_UP;
		out->ndown += state == TARGET_DOWN;
		out->nnew += state == TARGET_NEW;
	}
	if (!with_targets)
		return;
	out->targets = arena_many(a, j->targets.n, struct target_view);
	for (size_t i = 0; i < j->targets.n; i++)
		view_target(a, j->targets.at[i], &out->targets[i]);
}

void collector_view(struct collector *c, bool with_targets, struct arena *a, struct job_view **jobs,
		    size_t *n)
{
	pthread_mutex_lock(&c->lock);
	*n = c->jobs.n;
	*jobs = arena_many(a, c->jobs.n, struct job_view);
	for (size_t i = 0; i < c->jobs.n; i++)
		view_job(a, c->jobs.at[i], with_targets, &(*jobs)[i]);
	pthread_mutex_unlock(&c->lock);
}
