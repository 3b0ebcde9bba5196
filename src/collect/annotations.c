#include "collect/annotations.h"

#include <stdio.h>

#include "base/amount.h"
#include "base/number.h"
#include "base/vec.h"

#define KILN "kiln.dev/"
#define PROFEFE "profefe.com/"
#define GRAFANA "profiles.grafana.com/"

enum {
	DEFAULT_PORT = 6060,
	MAX_SHOWN = 100, /* bytes of a wrong value */
	MAX_SERVICE = 1000,
	MAX_TYPES = 50,
};

enum annotation {
#define ANNOTATION(key, name, profefe, value, help) KEY_##key,
#include "collect/annotations.def"
#undef ANNOTATION
};

const struct annotation_def annotation_defs[] = {
#define ANNOTATION(key, name, profefe, value, help) { name, profefe, value, help },
#include "collect/annotations.def"
#undef ANNOTATION
};
const size_t nannotation_defs = sizeof(annotation_defs) / sizeof(*annotation_defs);

/* ---- annotations */

struct reader {
	struct arena *a;
	const struct kube_pod *pod;
	const struct pod_targets_params *params;
	const struct kube_container *container; /* whose annotations are read; NULL: all */
	vec(struct pod_target) targets;
	vec(struct target_label) labels;
	struct err *e;
};

static const struct kube_pair *find(const struct kube_pod *pod, const char *name)
{
	for (size_t i = 0; i < pod->nannotations; i++)
		if (str_eq(pod->annotations[i].name, str_of(name)))
			return &pod->annotations[i];
	return NULL;
}

/* kiln.dev/port.sidecar, kiln.dev/port or profefe.com/port; NULL if there is none. */
static const struct kube_pair *get(const struct reader *r, enum annotation key)
{
	const struct annotation_def *d = &annotation_defs[key];
	const struct kube_pair *found = NULL;
	char name[400];

	if (r->container) {
		snprintf(name, sizeof(name), KILN "%s.%.*s", d->name, STR_ARG(r->container->name));
		found = find(r->pod, name);
	}
	snprintf(name, sizeof(name), KILN "%s", d->name);
	if (!found)
		found = find(r->pod, name);
	snprintf(name, sizeof(name), PROFEFE "%s", d->name);
	if (!found && d->is_profefe)
		found = find(r->pod, name);
	return found;
}

static bool fail_pod(struct reader *r)
{
	return err_wrap(r->e, "pod %.*s/%.*s", STR_ARG(r->pod->namespace), STR_ARG(r->pod->name));
}

/* Anybody may write annotations: what is shown of them is quoted. */
static bool fail(struct reader *r, const struct kube_pair *at, const char *fix)
{
	struct str value = at->value;
	struct buf shown = { 0 };

	if (value.n > MAX_SHOWN)
		value.n = MAX_SHOWN;
	quote_go(&shown, value);
	err_set(r->e, ERR_USAGE, "annotation %.*s is %.*s: %s", STR_ARG(at->name),
		STR_ARG(buf_view(&shown)), fix);
	buf_release(&shown);
	return fail_pod(r);
}

static bool is_true(const struct kube_pair *at)
{
	return at && str_eq(at->value, STR("true"));
}

/* What is neither is a mistake, which somebody wants to hear of. */
static bool read_enable(struct reader *r, bool *enabled)
{
	const struct kube_pair *at = get(r, KEY_ENABLE);

	*enabled = is_true(at);
	return !at || *enabled || !at->value.n || str_eq(at->value, STR("false")) ||
	       fail(r, at, "write \"true\", or \"false\"");
}

static bool is_key(const struct reader *r, struct str name)
{
	for (size_t i = 0; i < nannotation_defs; i++) {
		struct str key = str_of(annotation_defs[i].name), rest;

		if (!str_has_prefix(name, key))
			continue;
		rest = str_from(name, key.n);
		if (!rest.n)
			return true;
		for (size_t k = 0; rest.p[0] == '.' && k < r->pod->ncontainers; k++)
			if (str_eq(str_from(rest, 1), r->pod->containers[k].name))
				return true;
	}
	return false;
}

/* One that is misspelt would be overlooked. */
static bool check_names(struct reader *r)
{
	for (size_t i = 0; i < r->pod->nannotations; i++) {
		const struct kube_pair *at = &r->pod->annotations[i];

		if (str_has_prefix(at->name, STR(KILN)) &&
		    !is_key(r, str_from(at->name, sizeof(KILN) - 1)))
			return fail(r, at,
				    "there is no such annotation, or no such container; "
				    "kiln-collect(1) lists them");
	}
	return true;
}

/* ---- where it is */

static bool is_ip(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (!strchr("0123456789abcdefABCDEF:.", s.p[i]) || !s.p[i])
			return false;
	return s.n;
}

/* NULL: no container has such a port. */
static const struct kube_container *find_port(const struct reader *r, struct str name,
					      uint16_t *number)
{
	for (size_t i = 0; i < r->pod->ncontainers; i++) {
		const struct kube_container *c = &r->pod->containers[i];

		for (size_t k = 0; k < c->nports && (!r->container || r->container == c); k++)
			if (name.n ? str_eq(c->ports[k].name, name)
				   : c->ports[k].number == *number) {
				*number = c->ports[k].number;
				return c;
			}
	}
	return NULL;
}

static bool read_port(struct reader *r, const struct kube_pair *at, uint16_t *port)
{
	uint64_t number;

	*port = DEFAULT_PORT;
	if (!at || (at->value.n && find_port(r, at->value, port)))
		return true;
	if (number_parse_uint(at->value, 10, &number) != NUMBER_OK || !number ||
	    number > UINT16_MAX)
		return fail(r, at,
			    "write a number from 1 to 65535, or the name of a port of its "
			    "containers");
	*port = (uint16_t)number;
	return true;
}

static bool read_scheme(struct reader *r, const struct kube_pair *at, const char **out)
{
	static const char *const known[] = { "http", "https", "https+insecure" };

	*out = r->params->scheme ? r->params->scheme : known[0];
	if (!at)
		return true;
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (str_eq(at->value, str_of(known[i]))) {
			*out = known[i];
			return true;
		}
	return fail(r, at, "write http, https or https+insecure");
}

static bool read_path(struct reader *r, const struct kube_pair *at, const char **out)
{
	const char *usual = r->params->prefix ? r->params->prefix : "/debug/pprof";
	struct str path = at ? at->value : str_of(usual);

	while (path.n > 1 && path.p[path.n - 1] == '/')
		path.n--;
	if (!profile_type_is_path(path) || path.p[0] != '/')
		return fail(r, at, "write a path that begins with a slash, as /debug/pprof");
	*out = str_dup(r->a, path);
	return true;
}

static bool set_address(struct reader *r, struct pod_target *t, uint16_t port)
{
	struct str ip = r->pod->ip;
	bool is_v6 = str_find_char(ip, ':') != STR_NONE;
	struct buf text = { 0 };

	if (!is_ip(ip)) {
		err_set(r->e, ERR_FORMAT, "it has no address that could be asked");
		return fail_pod(r);
	}
	t->port = port;
	buf_printf(&text, "%s%.*s%s:%u", is_v6 ? "[" : "", STR_ARG(ip), is_v6 ? "]" : "", port);
	t->address = str_of(str_dup(r->a, buf_view(&text)));
	text.n = 0;
	if (r->pod->uid.n)
		buf_printf(&text, "%.*s:%u", STR_ARG(r->pod->uid), port);
	else
		buf_printf(&text, "%.*s/%.*s:%u", STR_ARG(r->pod->namespace), STR_ARG(r->pod->name),
			   port);
	t->instance = str_of(str_dup(r->a, buf_view(&text)));
	buf_release(&text);
	return true;
}

/* ---- which profiles */

/* By its name alone it is as whoever collects has it. */
static void take_settings(const struct reader *r, struct profile_type *type)
{
	const struct profile_type *known = profile_type_find(str_of(type->name));
	bool is_plain = known && strcmp(known->path, type->path) == 0;

	for (size_t i = 0; i < r->params->ntypes; i++) {
		const struct profile_type *usual = &r->params->types[i];

		if (strcmp(usual->name, type->name) == 0 &&
		    (is_plain || strcmp(usual->path, type->path) == 0))
			*type = *usual;
	}
}

static bool read_types(struct reader *r, struct pod_target *t)
{
	const struct kube_pair *at = get(r, KEY_PROFILES);
	struct err why;

	if (at) {
		if (!profile_types_parse(r->a, at->value, &t->types, &t->ntypes, &why))
			return fail(r, at, why.text);
		for (size_t i = 0; i < t->ntypes; i++)
			take_settings(r, &t->types[i]);
		return true;
	}
	t->types =
		arena_copy(r->a, r->params->types, r->params->ntypes * sizeof(*r->params->types));
	t->ntypes = r->params->ntypes;
	return true;
}

/* Nobody said that it should take longer than an interval. */
static void fit_times(const struct reader *r, struct pod_target *t)
{
	for (size_t i = 0; i < t->ntypes; i++) {
		struct profile_type *type = &t->types[i];

		if (!type->interval)
			type->interval = r->params->interval;
		if (type->interval && type->seconds * COLLECT_SECOND > type->interval)
			type->seconds = type->interval / COLLECT_SECOND;
	}
}

static bool read_times(struct reader *r, struct pod_target *t)
{
	const struct kube_pair *seconds = get(r, KEY_SECONDS), *interval = get(r, KEY_INTERVAL);
	int64_t s = 0, ns = 0;
	struct err why;

	if (seconds && (!amount_parse_time(seconds->value, &s, &why) || s % COLLECT_SECOND ||
			s < COLLECT_SECOND || s > PROFILE_MAX_SECONDS * COLLECT_SECOND))
		return fail(r, seconds, "write a whole number from 1 to 3600");
	if (interval && (!amount_parse_time(interval->value, &ns, &why) || ns < COLLECT_SECOND ||
			 ns > 86400 * COLLECT_SECOND))
		return fail(r, interval, "write a time between 1s and 1d, as 30s or 5m");
	if (interval && s > ns)
		return fail(r, interval, "a CPU profile takes longer; make kiln.dev/seconds less");
	if (seconds && r->params->interval && !interval && s > r->params->interval)
		return fail(r, seconds,
			    "that is longer than the interval; write kiln.dev/interval, too");
	for (size_t i = 0; i < t->ntypes; i++) {
		if (t->types[i].seconds && s)
			t->types[i].seconds = s / COLLECT_SECOND;
		if (ns)
			t->types[i].interval = ns;
	}
	fit_times(r, t);
	return true;
}

static bool is_secret_word(struct str s)
{
	return label_is_name(s) && str_find_char(s, '/') == STR_NONE && s.p[0] != '.';
}

static bool read_secret(struct reader *r, struct pod_target *t)
{
	const struct kube_pair *at = get(r, KEY_AUTH_SECRET), *user = get(r, KEY_AUTH_USER);
	struct str key = at ? at->value : STR(""), name = str_cut(&key, '/');

	t->secret = (struct pod_secret){ "", "", "" };
	if (user && (!at || !user->value.n || str_find_char(user->value, ':') != STR_NONE))
		return fail(r, user,
			    "write a name without a colon, and the secret that has its password "
			    "as kiln.dev/auth-secret");
	if (!at)
		return true;
	if (!key.p)
		key = user ? STR("password") : STR("token");
	if (!is_secret_word(name) || !is_secret_word(key))
		return fail(r, at, "write the secret's name, or NAME/KEY");
	t->secret = (struct pod_secret){ str_dup(r->a, name), str_dup(r->a, key),
					 user ? str_dup(r->a, user->value) : "" };
	return true;
}

/* ---- labels */

/* The tag; without one what the digest says, or what "no tag" means. */
static struct str image_version(struct str image)
{
	struct str digest = image, tag;
	size_t slash, colon;

	image = str_cut(&digest, '@');
	slash = str_rfind_char(image, '/');
	tag = slash == STR_NONE ? image : str_from(image, slash + 1);
	colon = str_find_char(tag, ':');
	if (colon != STR_NONE)
		return str_from(tag, colon + 1);
	return digest.n ? digest : STR("latest");
}

static void set_label(struct reader *r, struct str name, struct str value)
{
	if (value.n > MAX_LABEL)
		value.n = MAX_LABEL;
	if (!value.n)
		return;
	for (size_t i = 0; i < r->labels.n; i++)
		if (str_eq(r->labels.at[i].name, name)) {
			r->labels.at[i].value = value;
			return;
		}
	if (r->labels.n < MAX_LABELS)
		vec_push(&r->labels, (struct target_label){ name, value });
}

/* What the cluster says, and what profiles have anyway, is not to be said otherwise. */
static bool is_free(struct str name)
{
	static const char *const taken[] = { "service", "type", "namespace", "pod", "node" };

	for (size_t i = 0; i < sizeof(taken) / sizeof(*taken); i++)
		if (str_eq(name, str_of(taken[i])))
			return false;
	return label_is_name(name);
}

bool pod_labels_check(struct str list, struct err *e)
{
	while (list.p) {
		struct str name = str_trim(str_cut(&list, ','));

		if (name.n && !is_free(name))
			return err_set(e, ERR_USAGE,
				       "\"%.*s\" cannot be the name of a label of profiles",
				       STR_ARG(name));
	}
	return true;
}

static void add_pod_labels(struct reader *r, struct str list)
{
	while (list.p) {
		struct str name = str_trim(str_cut(&list, ','));

		for (size_t i = 0; name.n && i < r->pod->nlabels; i++)
			if (str_eq(r->pod->labels[i].name, name))
				set_label(r, r->pod->labels[i].name, r->pod->labels[i].value);
	}
}

static bool add_own_labels(struct reader *r)
{
	const struct kube_pair *chosen = get(r, KEY_POD_LABELS), *own = get(r, KEY_LABELS);
	struct str rest;
	struct err why;

	if (chosen && !pod_labels_check(chosen->value, &why))
		return fail(r, chosen, why.text);
	if (chosen)
		add_pod_labels(r, chosen->value);
	rest = own ? own->value : (struct str){ 0 };
	while (rest.p) {
		struct str value = str_cut(&rest, ','), name;

		if (!str_trim(value).n)
			continue;
		name = str_trim(str_cut(&value, '='));
		value = str_trim(value);
		if (!is_free(name) || !value.p || value.n > MAX_LABEL ||
		    (value.n && memchr(value.p, '\0', value.n)))
			return fail(r, own,
				    "write NAME=VALUE,NAME=VALUE; names have letters, digits and _ "
				    "only, and service, type, namespace, pod and node are taken");
		set_label(r, name, value);
	}
	return true;
}

static bool read_labels(struct reader *r, const struct kube_container *c, struct pod_target *t)
{
	const struct kube_pod *pod = r->pod;
	bool ok;

	set_label(r, STR("namespace"), pod->namespace);
	set_label(r, STR("pod"), pod->name);
	set_label(r, STR("node"), pod->node);
	set_label(r, STR("owner"), pod->owner);
	if (c) {
		set_label(r, STR("container"), c->name);
		set_label(r, STR("image"), c->image);
		set_label(r, STR("version"), image_version(c->image));
	}
	if (r->params->pod_labels)
		add_pod_labels(r, str_of(r->params->pod_labels));
	ok = add_own_labels(r);
	t->nlabels = r->labels.n;
	t->labels = vec_adopt(r->a, &r->labels);
	return ok;
}

/* ---- kiln.dev/ and profefe.com/ */

static bool read_service(struct reader *r, const struct kube_pair *at, struct str initial,
			 struct str *out)
{
	*out = at ? at->value : initial;
	if (out->n && out->n <= MAX_SERVICE && !memchr(out->p, '\0', out->n))
		return true;
	if (at)
		return fail(r, at, "write a name");
	err_set(r->e, ERR_FORMAT, "it has no name that could be the service's");
	return fail_pod(r);
}

static bool choose_container(struct reader *r, uint16_t port, const struct kube_container **out)
{
	const struct kube_pair *at = get(r, KEY_CONTAINER);

	*out = r->container ? r->container : find_port(r, STR(""), &port);
	if (!*out && r->pod->ncontainers)
		*out = &r->pod->containers[0];
	if (!at || r->container)
		return true;
	for (size_t i = 0; i < r->pod->ncontainers; i++)
		if (str_eq(r->pod->containers[i].name, at->value)) {
			*out = &r->pod->containers[i];
			return true;
		}
	return fail(r, at, "the pod has no such container");
}

static bool add_target(struct reader *r)
{
	const struct kube_container *container = NULL;
	struct pod_target t = { 0 };
	uint16_t port;

	if (!read_port(r, get(r, KEY_PORT), &port) || !choose_container(r, port, &container) ||
	    !set_address(r, &t, port) || !read_scheme(r, get(r, KEY_SCHEME), &t.scheme) ||
	    !read_path(r, get(r, KEY_PATH), &t.prefix) ||
	    !read_service(r, get(r, KEY_SERVICE), r->pod->name, &t.service) || !read_types(r, &t) ||
	    !read_times(r, &t) || !read_secret(r, &t) || !read_labels(r, container, &t))
		return false;
	vec_push(&r->targets, t);
	return true;
}

/* One for the pod as a whole, unless only containers have ports; one for each container that has
 * kiln.dev/port.NAME. */
static bool add_targets(struct reader *r)
{
	const struct kube_pod *pod = r->pod;
	bool has_own = false;

	for (size_t i = 0; i < pod->ncontainers; i++) {
		char name[400];

		snprintf(name, sizeof(name), KILN "port.%.*s", STR_ARG(pod->containers[i].name));
		if (!find(pod, name))
			continue;
		has_own = true;
		r->container = &pod->containers[i];
		if (!add_target(r))
			return false;
		r->container = NULL;
	}
	return (has_own && !get(r, KEY_PORT)) || add_target(r);
}

/* ---- Grafana's */

static const struct grafana_type {
	const char *name, *type, *path;
} grafana_types[] = {
	{ "cpu", "cpu", "debug/pprof/profile" },
	{ "process_cpu", "cpu", "debug/pprof/profile" },
	{ "memory", "heap", "debug/pprof/allocs" },
	{ "goroutine", "goroutine", "debug/pprof/goroutine" },
	{ "mutex", "mutex", "debug/pprof/mutex" },
	{ "block", "block", "debug/pprof/block" },
	{ "threadcreate", "threadcreate", "debug/pprof/threadcreate" },
	{ "wall", "wall", "debug/pprof/wall" },
};

/* profiles.grafana.com/cpu.scrape: what stands between. */
static bool is_scrape(const struct kube_pair *at, struct str *type)
{
	struct str name = at->name;

	if (!str_has_prefix(name, STR(GRAFANA)) || !str_has_suffix(name, STR(".scrape")))
		return false;
	*type = (struct str){ name.p + sizeof(GRAFANA) - 1,
			      name.n - (sizeof(GRAFANA) - 1) - (sizeof(".scrape") - 1) };
	return is_true(at);
}

static const struct kube_pair *get_grafana(const struct reader *r, struct str type, const char *key)
{
	char name[400];

	snprintf(name, sizeof(name), GRAFANA "%.*s.%s", STR_ARG(type), key);
	return find(r->pod, name);
}

/* Its number or its name; without either, the only port that the pod has. */
static bool read_grafana_port(struct reader *r, const struct kube_pair *scrape, struct str type,
			      uint16_t *port)
{
	const struct kube_pair *named = get_grafana(r, type, "port_name"),
			       *numbered = get_grafana(r, type, "port");
	size_t nports = 0;

	if (numbered)
		return read_port(r, numbered, port);
	if (named)
		return (named->value.n && find_port(r, named->value, port)) ||
		       fail(r, named, "no container of the pod has a port of that name");
	for (size_t i = 0; i < r->pod->ncontainers; i++)
		for (size_t k = 0; k < r->pod->containers[i].nports; k++, nports++)
			*port = r->pod->containers[i].ports[k].number;
	return nports == 1 ||
	       fail(r, scrape, "which port is it? Write .port or .port_name beside it");
}

static bool read_grafana_type(struct reader *r, const struct kube_pair *scrape, struct str name,
			      struct profile_type *out)
{
	const struct kube_pair *path = get_grafana(r, name, "path");
	const struct grafana_type *g = NULL;
	const struct profile_type *known;

	for (size_t i = 0; i < sizeof(grafana_types) / sizeof(*grafana_types); i++)
		if (str_eq(str_of(grafana_types[i].name), name))
			g = &grafana_types[i];
	if (!profile_type_is_name(name) || (!g && !path))
		return fail(r, scrape,
			    "kiln does not know where such profiles are; write .path beside it");
	known = g ? profile_type_find(str_of(g->type)) : NULL;
	*out = known ? *known : (struct profile_type){ .name = str_dup(r->a, name) };
	if (g)
		out->path = g->path;
	if (!path)
		return true;
	if (!profile_type_is_path(path->value) || path->value.p[0] != '/' || path->value.n < 2)
		return fail(r, path, "write a path that begins with a slash");
	out->path = str_dup(r->a, str_from(path->value, 1));
	profile_type_set_exclusive(out);
	return true;
}

/* The target at that port, made if there is none yet. */
static struct pod_target *grafana_target(struct reader *r, uint16_t port, const char *scheme)
{
	const struct kube_container *c = find_port(r, STR(""), &port);
	const struct kube_pair *service = find(r->pod, GRAFANA "service_name");
	struct pod_target t = { .scheme = scheme, .prefix = "/", .secret = { "", "", "" } };
	char *name;

	for (size_t i = 0; i < r->targets.n; i++)
		if (r->targets.at[i].port == port && r->targets.at[i].scheme == scheme)
			return &r->targets.at[i];
	if (!c && r->pod->ncontainers)
		c = &r->pod->containers[0];
	/* As Grafana Alloy names it. */
	name = arena_alloc(r->a, r->pod->namespace.n + (c ? c->name.n : 0) + 2);
	sprintf(name, "%.*s/%.*s", STR_ARG(r->pod->namespace), STR_ARG(c ? c->name : STR("")));
	if (!set_address(r, &t, port) || !read_service(r, service, str_of(name), &t.service) ||
	    !read_labels(r, c, &t))
		return NULL;
	t.types = arena_many(r->a, MAX_TYPES, struct profile_type);
	vec_push(&r->targets, t);
	return &r->targets.at[r->targets.n - 1];
}

static bool add_grafana_targets(struct reader *r)
{
	for (size_t i = 0; i < r->pod->nannotations; i++) {
		const struct kube_pair *scrape = &r->pod->annotations[i];
		struct profile_type type;
		struct pod_target *t;
		const char *scheme;
		struct str name;
		uint16_t port = 0;

		if (!is_scrape(scrape, &name))
			continue;
		if (!read_grafana_port(r, scrape, name, &port) ||
		    !read_scheme(r, get_grafana(r, name, "scheme"), &scheme) ||
		    !read_grafana_type(r, scrape, name, &type))
			return false;
		t = grafana_target(r, port, scheme);
		if (!t)
			return false;
		for (size_t k = 0; k < t->ntypes; k++)
			if (strcmp(t->types[k].name, type.name) == 0)
				return fail(r, scrape, "there are two of that type");
		if (t->ntypes < MAX_TYPES)
			t->types[t->ntypes++] = type;
	}
	for (size_t i = 0; i < r->targets.n; i++)
		fit_times(r, &r->targets.at[i]);
	return true;
}

/* ---- */

bool pod_is_annotated(const struct kube_pod *pod)
{
	for (size_t i = 0; i < pod->nannotations; i++) {
		struct str name = pod->annotations[i].name, type;

		if (str_eq(name, STR(KILN "enable")) || str_eq(name, STR(PROFEFE "enable")) ||
		    is_scrape(&pod->annotations[i], &type))
			return true;
	}
	return false;
}

static bool read_pod(struct reader *r)
{
	bool enabled;

	if (!read_enable(r, &enabled))
		return false;
	if (enabled)
		return check_names(r) && add_targets(r);
	/* Whoever says false means it. */
	return find(r->pod, KILN "enable") || add_grafana_targets(r);
}

bool pod_targets_read(struct arena *a, const struct kube_pod *pod,
		      const struct pod_targets_params *params, struct pod_target **targets,
		      size_t *n, struct err *e)
{
	struct reader r = { .a = a, .pod = pod, .params = params, .e = e };
	bool ok = !pod->is_running || !pod_is_annotated(pod) || read_pod(&r);

	vec_release(&r.labels);
	*n = ok ? r.targets.n : 0;
	*targets = vec_adopt(a, &r.targets);
	return ok;
}
