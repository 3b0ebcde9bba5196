/* replicas.c - of the targets with the same service some are chosen anew in each round.
 *
 * A round is one interval of the job. Who comes while one lasts waits for the next: else each
 * newcomer would have others taken besides those that have been. */
#include <stdlib.h>

#include "collect/inside.h"

static int by_service(const void *a, const void *b)
{
	return str_cmp((*(const struct target *const *)a)->service,
		       (*(const struct target *const *)b)->service);
}

void replicas_group(struct job *j)
{
	j->members.n = j->groups.n = 0;
	if (!j->config->replicas || !j->targets.n)
		return;
	for (size_t i = 0; i < j->targets.n; i++)
		vec_push(&j->members, j->targets.at[i]);
	qsort(j->members.at, j->members.n, sizeof(*j->members.at), by_service);
	for (size_t i = 0; i < j->members.n; i++) {
		struct target *t = j->members.at[i];
		struct replicas *g;

		if (!i || !str_eq(t->service, j->members.at[i - 1]->service))
			vec_push(&j->groups, (struct replicas){ .first = i, .round = -1 });
		g = &j->groups.at[j->groups.n - 1];
		g->n++;
		if (t->round > g->round)
			g->round = t->round;
		t->group = j->groups.n - 1;
	}
}

/* Among those that can be reached. */
static void draw(struct collector *c, const struct job *j, struct replicas *g, int64_t round,
		 int64_t now)
{
	vec(struct target *) from = { 0 };

	g->round = round;
	for (size_t i = g->first; i < g->first + g->n; i++) {
		struct target *t = j->members.at[i];

		t->round = round;
		t->is_chosen = false;
		if (!t->is_unreachable || t->retry_at <= now)
			vec_push(&from, t);
	}
	for (size_t left = (size_t)j->config->replicas; left && from.n; left--) {
		size_t i = random_next(&c->random) % from.n;

		from.at[i]->is_chosen = true;
		from.at[i] = from.at[--from.n];
	}
	vec_release(&from);
}

bool replicas_are_others(struct collector *c, const struct task *task, int64_t now)
{
	const struct target *t = task->target;
	const struct job *j = t->job;
	int64_t round = schedule_round(task->slot, j->config->interval);

	if (!j->config->replicas)
		return false;
	if (j->groups.at[t->group].round < round)
		draw(c, j, &j->groups.at[t->group], round, now);
	return !t->is_chosen;
}
