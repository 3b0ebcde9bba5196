#include "cmd/pods.h"

#include "cmd/args.h"

/* ---- the cluster */

/* The flag's values stand in the order of the last first. */
static const char *const *split_groups(struct arena *a, const char *list)
{
	vec(const char *) groups = { 0 };
	struct str rest = str_of(list);

	if (!rest.n)
		return NULL;
	while (rest.p)
		vec_push(&groups, str_dup(a, str_cut(&rest, ',')));
	vec_push(&groups, NULL);
	return vec_adopt(a, &groups);
}

bool cluster_open(struct cluster *c, const struct kube_flags *flags, bool in_cluster_first,
		  struct arena *a, struct err *e)
{
	struct kube_access access = {
		.kubeconfig = flags->kubeconfig,
		.context = flags->context,
		.cluster = flags->cluster,
		.user = flags->user,
		.namespace = flags->namespace,
		.server = flags->server,
		.token = flags->token,
		.certificate_authority = flags->certificate_authority,
		.client_certificate = flags->client_certificate,
		.client_key = flags->client_key,
		.tls_server_name = flags->tls_server_name,
		.as = flags->as,
		.as_group = split_groups(a, flags->as_group),
		.insecure = flags->insecure,
		.request_timeout_ms = flags->request_timeout / 1000000,
		.in_cluster_first = in_cluster_first,
	};

	*c = (struct cluster){ 0 };
	if (!kube_config_load(&c->config, &access, e))
		return false;
	c->client = kube_client_new(&c->config);
	return true;
}

void cluster_close(struct cluster *c)
{
	kube_client_free(c->client);
	kube_config_release(&c->config);
}

/* ---- pods */

struct search {
	const struct pods_params *params;
	struct pods *out;
};

static struct str copy(struct arena *a, struct str s)
{
	return (struct str){ str_dup(a, s), s.n };
}

static void add_problem(struct search *s, const char *text)
{
	vec_push(&s->out->problems, str_dup(&s->out->arena, str_of(text)));
}

static void set_names(struct arena *a, struct round_target *out, const struct pod_target *t,
		      const struct pod_origin *origin)
{
	struct buf text = { 0 };
	struct str prefix = str_of(t->prefix);

	while (str_has_suffix(prefix, STR("/")))
		prefix.n--;
	buf_printf(&text, "%s://%.*s%.*s", t->scheme, STR_ARG(t->address), STR_ARG(prefix));
	out->url = str_dup(a, buf_view(&text));
	text.n = 0;
	buf_printf(&text, "%s/%s", origin->namespace, origin->pod);
	out->name = str_dup(a, buf_view(&text));
	buf_release(&text);
}

static void copy_labels(struct arena *a, struct round_target *out, const struct pod_target *t)
{
	struct target_label *labels = arena_many(a, t->nlabels, struct target_label);

	for (size_t i = 0; i < t->nlabels; i++)
		labels[i] = (struct target_label){ copy(a, t->labels[i].name),
						   copy(a, t->labels[i].value) };
	out->labels = labels;
	out->nlabels = t->nlabels;
}

static bool add_target(struct search *s, const struct kube_pod *pod, const struct pod_target *t,
		       struct err *e)
{
	struct arena *a = &s->out->arena;
	struct pod_origin *origin = arena_new(a, struct pod_origin);
	struct round_target out = { .service = copy(a, t->service),
				    .instance = t->instance,
				    .types = t->types,
				    .ntypes = t->ntypes,
				    .origin = origin };

	*origin = (struct pod_origin){ .namespace = str_dup(a, pod->namespace),
				       .pod = str_dup(a, pod->name),
				       .scheme = t->scheme,
				       .prefix = t->prefix,
				       .port = t->port };
	set_names(a, &out, t, origin);
	copy_labels(a, &out, t);
	if (*t->secret.name &&
	    !pod_secret_read(a, s->params->cluster->client, origin->namespace, &t->secret,
			     s->params->canceled, &out.authorization, e))
		return err_wrap(e, "pod %s", out.name);
	vec_push(&s->out->targets, out);
	return true;
}

/* A pod that was named is profiled whether it asks for it or not. */
static void add_pod(struct search *s, const struct kube_pod *pod, bool is_named)
{
	const struct kube_pair asks = { STR("kiln.dev/enable"), STR("true") };
	struct arena *a = &s->out->arena;
	struct kube_pod as_asking = *pod;
	struct pod_target *targets;
	struct err e;
	size_t n;

	s->out->nseen++;
	if (is_named && !pod_is_annotated(pod)) {
		struct kube_pair *pairs = arena_many(a, pod->nannotations + 1, struct kube_pair);

		for (size_t i = 0; i < pod->nannotations; i++)
			pairs[i] = pod->annotations[i];
		pairs[pod->nannotations] = asks;
		as_asking.annotations = pairs;
		as_asking.nannotations++;
	}
	if (!pod_targets_read(a, &as_asking, &s->params->types, &targets, &n, &e)) {
		add_problem(s, e.text);
		return;
	}
	for (size_t i = 0; i < n; i++)
		if (!add_target(s, pod, &targets[i], &e))
			add_problem(s, e.text);
	if (!n && is_named) {
		err_set(&e, ERR_NOTFOUND, "pod %.*s/%.*s: %s", STR_ARG(pod->namespace),
			STR_ARG(pod->name),
			pod->is_running ? "its annotations say that it is not to be profiled"
					: "it does not run");
		add_problem(s, e.text);
	}
}

static bool take_pod(void *ctx, const struct kube_pod *pod)
{
	struct search *s = ctx;

	if (s->out->targets.n >= MAX_TARGETS) {
		add_problem(s, "there are more than 20000 targets: choose some, with -n or -l");
		return false;
	}
	add_pod(s, pod, false);
	return true;
}

static bool find_named(struct search *s, const char *namespace, struct err *e)
{
	for (size_t i = 0; i < s->params->nnames; i++) {
		const char *name = s->params->names[i];
		struct arena a = { 0 };
		struct kube_pod pod;
		bool ok;

		if (strncmp(name, "pod/", 4) == 0 || strncmp(name, "pods/", 5) == 0)
			name = strchr(name, '/') + 1;
		ok = kube_get_pod(s->params->cluster->client, &a, namespace, name, &pod, e);
		if (ok)
			add_pod(s, &pod, true);
		else if (e->kind == ERR_NOTFOUND)
			add_problem(s, e->text);
		arena_release(&a);
		if (!ok && e->kind != ERR_NOTFOUND)
			return false;
	}
	return true;
}

bool pods_find(struct pods *out, const struct pods_params *params, struct err *e)
{
	struct search s = { params, out };
	const char *namespace = params->cluster->config.namespace;
	struct kube_query q = { .namespace = params->flags->all_namespaces ? "" : namespace,
				.selector = params->flags->selector,
				.fields = params->flags->field_selector,
				.canceled = params->canceled };

	if (params->nnames && params->flags->all_namespaces)
		return err_set(e, ERR_USAGE, "pods are named within a namespace: not with -A");
	if (params->nnames && *params->flags->selector)
		return err_set(e, ERR_USAGE, "pods are named, or selected with -l, not both");
	return params->nnames ? find_named(&s, namespace, e)
			      : kube_list_pods(params->cluster->client, &q, take_pod, &s, e);
}

void pods_release(struct pods *p)
{
	vec_release(&p->targets);
	vec_release(&p->problems);
	arena_release(&p->arena);
}
