/* jobs.c - jobs, and their targets as they come and go. */
#include <stdlib.h>

#include "base/map.h"
#include "collect/inside.h"
#include "http/client.h"

/* ---- one job */

/* In the order of struct http_tls. */
static const char *const tls_keys[] = { "tls-cert", "tls-key", "tls-ca" };

struct job *job_new(const struct scrape_job *config, struct shared_config *shared)
{
	struct job *j = xcalloc(1, sizeof(*j));

	j->config = config;
	j->shared = shared;
	shared->refs++;
	j->refs = 1;
	j->client = http_client_new(&(struct http_tls){ .cert = config->tls_cert,
							.key = config->tls_key,
							.ca = config->tls_ca,
							.names = tls_keys });
	if (config->ntargets)
		j->sources[j->nsources++] = source_fixed_new(config->targets, config->ntargets);
	if (config->nfiles)
		j->sources[j->nsources++] = source_files_new(config->files, config->nfiles);
	if (config->kubernetes)
		j->sources[j->nsources++] = source_kubernetes_new(config);
	return j;
}

void job_stop(struct job *j)
{
	for (size_t i = 0; i < j->nsources; i++)
		if (j->sources[i]->stop)
			j->sources[i]->stop(j->sources[i]);
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
	vec_release(&j->members);
	vec_release(&j->groups);
	if (!--j->shared->refs) {
		scrape_config_release(&j->shared->config);
		free(j->shared);
	}
	free(j);
}

void job_remove_targets(struct collector *c, struct job *j)
{
	for (size_t i = 0; i < j->targets.n; i++)
		target_remove(c, j->targets.at[i]);
	j->targets.n = 0;
}

/* ---- all targets of a job */

struct target_key {
	const struct job *job;
	const struct target *described;
};

static bool same_target(const void *ctx, uint32_t i)
{
	const struct target_key *k = ctx;

	return target_same(k->job->targets.at[i], k->described);
}

/* New ones stand after those that there are, and do not count yet. */
static void see(struct job *j, struct map *map, const struct target_spec *spec)
{
	struct target_label labels[MAX_MERGED_LABELS];
	struct target described;
	struct target_key key = { j, &described };
	uint32_t i;

	target_describe(&described, labels, j, spec);
	i = map_put(map, described.hash, j->targets.n, same_target, &key);
	if (i == j->targets.n)
		vec_push(&j->targets, target_new(&described));
	j->targets.at[i]->is_seen = true;
}

static bool has_room(const struct collector *c, size_t bytes)
{
	return c->ntargets < MAX_TARGETS && c->target_bytes + bytes <= MAX_TARGETS_BYTES;
}

bool job_may_grow(const struct collector *c, const struct job *j)
{
	return j->left_out_bytes && has_room(c, j->left_out_bytes);
}

static bool add_target(struct collector *c, struct job *j, struct target *t)
{
	if (!has_room(c, t->bytes)) {
		if (!j->left_out_bytes)
			j->left_out_bytes = t->bytes;
		t->is_gone = true;
		target_drop(t);
		return false;
	}
	c->ntargets++;
	c->target_bytes += t->bytes;
	target_set_tasks(c, t);
	return true;
}

/* Those that go are before those that come, and make room for them. */
static void keep_seen(struct collector *c, struct job *j, size_t nold)
{
	size_t n = 0;

	for (size_t i = 0; i < j->targets.n; i++) {
		struct target *t = j->targets.at[i];

		if (i < nold && !t->is_seen)
			target_remove(c, t);
		else if (i < nold || add_target(c, j, t))
			j->targets.at[n++] = t;
	}
	j->targets.n = n;
}

void job_sync(struct collector *c, struct job *j, struct buf *log)
{
	size_t nold = j->targets.n;
	bool had_all = !j->left_out_bytes;
	struct map map = { 0 };

	j->left_out_bytes = 0;
	for (size_t i = 0; i < nold; i++) {
		j->targets.at[i]->is_seen = false;
		map_add(&map, j->targets.at[i]->hash, i);
	}
	for (size_t s = 0; s < j->nsources; s++)
		for (size_t i = 0; i < j->sets[s].n; i++)
			see(j, &map, &j->sets[s].at[i]);
	map_release(&map);
	keep_seen(c, j, nold);
	replicas_group(j);
	if (j->left_out_bytes && had_all)
		buf_printf(log, "scrape: job %s: %s%c", j->config->name, TARGETS_LEFT_OUT, '\0');
	pthread_cond_signal(&c->changed);
}

void job_refresh(struct collector *c, struct job *j, struct buf *log)
{
	job_sync(c, j, log);
	for (size_t i = 0; i < j->targets.n; i++) {
		struct target *t = j->targets.at[i];

		target_set_tasks(c, t);
		for (size_t k = 0; k < t->tasks.n; k++)
			t->tasks.at[k]->nfailures = 0;
		target_wake(c, t); /* maybe that was what is mended now */
	}
}

void job_inherit(struct job *j, struct job *old)
{
	bool has_same_rounds = j->config->interval == old->config->interval &&
			       j->config->replicas == old->config->replicas;

	for (size_t i = 0; i < old->targets.n; i++) {
		struct target *t = old->targets.at[i];

		t->job = j;
		if (!has_same_rounds)
			t->round = -1;
		vec_push(&j->targets, t);
	}
	old->targets.n = 0;
	j->left_out_bytes = old->left_out_bytes;
}
