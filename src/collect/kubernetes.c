/* kubernetes.c - targets that are pods of a cluster, as their annotations say. */
#include <stdlib.h>

#include "base/vec.h"
#include "collect/annotations.h"
#include "collect/own.h"
#include "kube/kube.h"

struct kubernetes {
	struct target_source source;
	const struct scrape_job *job;
	struct pod_targets_params params;
	struct kube_config config;
	struct kube_client *client;
	struct secrets *secrets;
	struct kube_follow *follow; /* NULL: there is no cluster, or it has been stopped */
	struct err problem;	    /* why there is none */
	struct target_set kept;	    /* of whoever was there before, until there is a list */
	uint64_t version;	    /* that was told last */
	bool is_told;
};

/* ---- one pod */

/* All pods, while they are taken. */
struct taking {
	const struct kubernetes *k;
	struct target_set *out;
	vec(struct target_spec) specs;
	vec(const char *) faults;
	size_t labels_bytes;
	bool is_full;
};

static struct str copy_str(struct arena *a, struct str s)
{
	return (struct str){ str_dup(a, s), s.n };
}

static bool add_fault(struct taking *t, const char *text)
{
	if (t->faults.n < MAX_FAULTS)
		vec_push(&t->faults, str_dup(&t->out->arena, str_of(text)));
	else
		t->out->nmore_faults++;
	return false;
}

/* With the service among them, by which a target gets it. */
static bool copy_labels(struct taking *t, const struct pod_target *from, struct target_spec *to)
{
	struct target_label *labels =
		arena_many(&t->out->arena, from->nlabels + 1, struct target_label);
	size_t bytes = 0;

	labels[0] =
		(struct target_label){ STR("service"), copy_str(&t->out->arena, from->service) };
	for (size_t i = 0; i < from->nlabels; i++) {
		bytes += from->labels[i].name.n + from->labels[i].value.n;
		labels[i + 1] = (struct target_label){
			copy_str(&t->out->arena, from->labels[i].name),
			copy_str(&t->out->arena, from->labels[i].value),
		};
	}
	to->labels = labels;
	to->nlabels = from->nlabels + 1;
	t->labels_bytes += bytes;
	return bytes <= MAX_LABELS_BYTES;
}

/* NULL if nothing is. */
static const struct target_own *make_own(struct taking *t, const struct pod_target *from,
					 const char *namespace)
{
	const struct scrape_job *job = t->k->job;
	struct target_own own = { 0 };

	if (strcmp(from->scheme, job->scheme) != 0)
		own.scheme = from->scheme;
	if (strcmp(from->prefix, job->path_prefix) != 0)
		own.path_prefix = from->prefix;
	if (!profile_types_same(from->types, from->ntypes, job->types, job->ntypes)) {
		own.types = from->types;
		own.ntypes = from->ntypes;
	}
	if (from->secret.name && *from->secret.name) {
		own.secret = from->secret;
		own.namespace = namespace;
	}
	return own.scheme || own.path_prefix || own.ntypes || own.namespace
		       ? own_copy(&t->out->arena, &own)
		       : NULL;
}

static bool add_target(struct taking *t, const struct kube_pod *pod, const struct pod_target *from,
		       struct arena *scratch)
{
	struct target_spec spec = { 0 };
	struct err e;

	if (t->specs.n == MAX_TARGETS || t->labels_bytes > MAX_ALL_LABELS_BYTES) {
		t->is_full = true;
		return false;
	}
	if (!copy_labels(t, from, &spec)) {
		err_set(&e, ERR_LIMIT, "pod %.*s/%.*s: its labels have more than %d bytes together",
			STR_ARG(pod->namespace), STR_ARG(pod->name), MAX_LABELS_BYTES);
		return add_fault(t, e.text);
	}
	spec.address = copy_str(&t->out->arena, from->address);
	spec.own = make_own(t, from, str_dup(scratch, pod->namespace));
	vec_push(&t->specs, spec);
	return true;
}

static bool take_pod(void *ctx, const struct kube_pod *pod)
{
	struct taking *t = ctx;
	struct arena scratch = { 0 };
	struct pod_target *targets;
	struct err e;
	size_t n;

	if (!pod_targets_read(&scratch, pod, &t->k->params, &targets, &n, &e))
		add_fault(t, e.text);
	for (size_t i = 0; i < n; i++)
		add_target(t, pod, &targets[i], &scratch);
	arena_release(&scratch);
	return !t->is_full;
}

/* ---- all of them */

static void tell_problem(const struct kubernetes *k, const struct kube_follow_state *state,
			 bool is_full, struct target_set *out)
{
	if (state->problem.kind != ERR_NONE)
		out->problem = state->problem;
	else if (state->ndropped || is_full)
		err_set(&out->problem, ERR_LIMIT,
			"the cluster has more pods with annotations than kiln can have, or larger "
			"ones: the rest is left out");
	if (out->problem.kind != ERR_NONE)
		err_wrap(&out->problem, "scrape job %s: kubernetes", k->job->name);
}

/* True: that is all pods, not only those of a list that has just begun. */
static bool take_all(const struct kubernetes *k, struct kube_follow *follow, struct target_set *out)
{
	struct taking t = { .k = k, .out = out };
	struct kube_follow_state state;

	kube_follow_pods(follow, take_pod, &t, &state);
	tell_problem(k, &state, t.is_full, out);
	out->n = t.specs.n;
	out->at = vec_adopt(&out->arena, &t.specs);
	out->nfaults = t.faults.n;
	out->faults = vec_adopt(&out->arena, &t.faults);
	return state.is_synced;
}

/* What there was stays until it is known what there is. */
static void use_kept(struct kubernetes *k, struct target_set *out)
{
	struct err problem = out->problem;

	target_set_release(out);
	out->at = arena_many(&out->arena, k->kept.n, struct target_spec);
	out->n = k->kept.n;
	targets_copy(&out->arena, out->at, k->kept.at, k->kept.n);
	out->problem = problem;
}

static bool look(struct target_source *source, struct target_set *out)
{
	struct kubernetes *k = (struct kubernetes *)source;
	uint64_t version = k->follow ? kube_follow_version(k->follow) : 0;

	if (k->is_told && version == k->version)
		return false;
	k->is_told = true;
	k->version = version;
	if (!k->follow)
		out->problem = k->problem;
	if (k->follow && take_all(k, k->follow, out))
		target_set_release(&k->kept);
	else if (k->kept.n)
		use_kept(k, out);
	return true;
}

/* ---- from one to the next, when jobs are read again */

static bool is_same_place(const struct scrape_job *a, const struct scrape_job *b)
{
	return strcmp(a->kube_namespace, b->kube_namespace) == 0 &&
	       strcmp(a->kube_selector, b->kube_selector) == 0 &&
	       strcmp(a->kubeconfig, b->kubeconfig) == 0 &&
	       strcmp(a->kube_context, b->kube_context) == 0;
}

static void inherit(struct target_source *source, struct target_source *old)
{
	struct kubernetes *k = (struct kubernetes *)source, *from = (struct kubernetes *)old;

	if (!is_same_place(k->job, from->job))
		return;
	if (from->follow && take_all(k, from->follow, &k->kept))
		return;
	target_set_release(&k->kept);
	k->kept = from->kept;
	from->kept = (struct target_set){ 0 };
}

static bool authorize(struct target_source *source, const struct target_own *own, struct arena *a,
		      atomic_bool *canceled, const char **header, struct err *e)
{
	struct kubernetes *k = (struct kubernetes *)source;

	if (!k->secrets)
		return err_set(e, ERR_IO, "there is no cluster to ask for secrets");
	return secrets_get(k->secrets, a, own->namespace, &own->secret, canceled, header, e);
}

/* ---- start and end */

static bool load_config(struct kube_config *config, const struct scrape_job *job, struct err *e)
{
	struct kube_access access = { .kubeconfig = job->kubeconfig,
				      .context = job->kube_context,
				      .in_cluster_first = true };

	return kube_config_load(config, &access, e);
}

bool source_kubernetes_check(const struct scrape_job *job, struct err *e)
{
	struct kube_config config;

	if (!load_config(&config, job, e))
		return false;
	kube_config_release(&config);
	return true;
}

static bool wants(void *ctx, const struct kube_pod *pod)
{
	(void)ctx;
	return pod_is_annotated(pod);
}

/* It is asked no more, but those that are profiled right now may still need a secret. */
static void stop(struct target_source *source)
{
	struct kubernetes *k = (struct kubernetes *)source;

	kube_follow_free(k->follow);
	k->follow = NULL;
}

static void kubernetes_free(struct target_source *source)
{
	struct kubernetes *k = (struct kubernetes *)source;

	stop(source);
	secrets_free(k->secrets);
	if (k->client) {
		kube_client_free(k->client);
		kube_config_release(&k->config);
	}
	target_set_release(&k->kept);
	free(k);
}

struct target_source *source_kubernetes_new(const struct scrape_job *job)
{
	struct kubernetes *k = xcalloc(1, sizeof(*k));

	k->source = (struct target_source){ .look = look,
					    .inherit = inherit,
					    .authorize = authorize,
					    .stop = stop,
					    .free = kubernetes_free };
	k->job = job;
	k->params = (struct pod_targets_params){ .types = job->types,
						 .ntypes = job->ntypes,
						 .pod_labels = job->kube_pod_labels,
						 .scheme = job->scheme,
						 .prefix = job->path_prefix,
						 .interval = job->interval };
	if (!load_config(&k->config, job, &k->problem)) {
		err_wrap(&k->problem, "scrape job %s: kubernetes", job->name);
		return &k->source;
	}
	k->client = kube_client_new(&k->config);
	k->secrets = secrets_new(k->client);
	k->follow = kube_follow_new(k->client, &(struct kube_follow_params){
						       .query = { .namespace = job->kube_namespace,
								  .selector = job->kube_selector },
						       .wants = wants,
						       .max_pods = MAX_TARGETS });
	return &k->source;
}
