#include "collect/scrape_config.h"

#include <stddef.h>
#include <unistd.h>

#include "base/amount.h"
#include "base/number.h"
#include "base/path.h"
#include "base/vec.h"
#include "base/yaml.h"
#include "collect/annotations.h"

enum {
	MAX_JOBS = 1000,
	MAX_TYPES = 50,
	MAX_PATTERNS = 100,
	MAX_NAME = 200,
	MAX_NAMESPACE = 63,
	MAX_SELECTOR = 4000,
};

/* ---- tables */

#define MIN_INTERVAL COLLECT_SECOND
#define MAX_INTERVAL (24 * 3600 * COLLECT_SECOND)

static const struct option_def rows[] = {
#define KEY(type, field, key, initial, value, help) \
	{ key, OPTION_##type, offsetof(struct scrape_job, field), 0, "", value, help },
#include "collect/jobs.def"
#undef KEY
};

static const struct scrape_job defaults = {
#define KEY(type, field, key, initial, value, help) .field = initial,
#include "collect/jobs.def"
#undef KEY
};

const struct option_table scrape_job_table = { .at = rows,
					       .n = sizeof(rows) / sizeof(*rows),
					       .defaults = &defaults };

static const struct {
	struct profile_type type;
	bool is_usual;
} known_types[] = {
#define TYPE(name, path, seconds, usual, exclusive, sample_types) \
	{ { #name, path, seconds, 0, exclusive ? #name : NULL }, usual },
#include "collect/types.def"
#undef TYPE
};
enum { NKNOWN = sizeof(known_types) / sizeof(*known_types) };

const struct profile_type *profile_type_find(struct str name)
{
	for (size_t i = 0; i < NKNOWN; i++)
		if (str_eq(str_of(known_types[i].type.name), name))
			return &known_types[i].type;
	return NULL;
}

/* What a process takes one of at a time; NULL: it is none of these. */
static const struct profile_type *exclusive_by_path(struct str path)
{
	size_t slash = str_rfind_char(path, '/');
	struct str last = slash == STR_NONE ? path : str_from(path, slash + 1);

	for (size_t i = 0; i < NKNOWN; i++)
		if (known_types[i].type.exclusive && str_eq(str_of(known_types[i].type.path), last))
			return &known_types[i].type;
	return NULL;
}

void profile_type_set_exclusive(struct profile_type *t)
{
	const struct profile_type *known = t->exclusive ? NULL : exclusive_by_path(str_of(t->path));

	if (!known)
		return;
	t->exclusive = known->exclusive;
	if (!t->seconds)
		t->seconds = known->seconds;
}

/* ---- profiles */

struct reader {
	struct arena *a;
	const char *dir;
	struct scrape_job *job;
	const struct tree *kubernetes; /* the last key of it */
	bool is_set[sizeof(rows) / sizeof(*rows)];
	struct err *e;
};

static bool read_seconds(struct reader *r, const struct tree *t, int64_t *out)
{
	int64_t ns;
	struct err why;

	if (t->kind != TREE_TEXT || !amount_parse_time(t->text, &ns, &why) || ns % COLLECT_SECOND ||
	    ns > PROFILE_MAX_SECONDS * COLLECT_SECOND)
		return tree_fail(t, r->e, "seconds is a whole number from 0 to %d",
				 PROFILE_MAX_SECONDS);
	*out = ns / COLLECT_SECOND;
	return true;
}

static bool read_interval(struct reader *r, const struct tree *t, int64_t *out)
{
	struct err why = { .text = "it is no text" };

	if (t->kind != TREE_TEXT || !amount_parse_time(t->text, out, &why))
		return tree_fail(t, r->e, "interval: %s; write it as 30s or 5m", why.text);
	return (*out >= MIN_INTERVAL && *out <= MAX_INTERVAL) ||
	       tree_fail(t, r->e, "interval is between 1s and 1d");
}

/* Nothing that ends the path of a URL. */
bool profile_type_is_path(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] <= ' ' || s.p[i] > '~' || strchr("?#%\\\"", s.p[i]))
			return false;
	return s.n && s.n < MAX_NAME && !str_contains(s, STR(".."));
}

static bool read_type_path(struct reader *r, const struct tree *t, const char **out)
{
	if (t->kind != TREE_TEXT || !profile_type_is_path(t->text))
		return tree_fail(t, r->e,
				 "path is what stands after path-prefix in the URL, as heap");
	*out = str_dup(r->a, t->text);
	return true;
}

static bool read_type_keys(struct reader *r, const struct tree *keys, struct profile_type *type)
{
	if (keys->kind == TREE_LIST || (keys->kind == TREE_TEXT && keys->text.n))
		return tree_fail(keys, r->e, "what is said of %s is written as {seconds: 10}",
				 type->name);
	for (size_t i = 0; i < keys->n; i++) {
		const struct tree *t = &keys->at[i];
		struct str name = keys->names[i];
		bool ok;

		if (str_eq(name, STR("path")))
			ok = read_type_path(r, t, &type->path);
		else if (str_eq(name, STR("seconds")))
			ok = read_seconds(r, t, &type->seconds);
		else if (str_eq(name, STR("interval")))
			ok = read_interval(r, t, &type->interval);
		else
			ok = tree_fail(t, r->e,
				       "a profile has path, seconds and interval, no \"%.*s\"",
				       STR_ARG(name));
		if (!ok)
			return false;
	}
	return true;
}

bool profile_type_is_name(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (!((s.p[i] >= 'a' && s.p[i] <= 'z') || (s.p[i] >= 'A' && s.p[i] <= 'Z') ||
		      (s.p[i] >= '0' && s.p[i] <= '9') || strchr("_-.", s.p[i])))
			return false;
	return s.n && s.n < MAX_NAME;
}

static bool parse_type(struct arena *a, struct str item, struct profile_type *out, struct err *e)
{
	struct str path = item, name = str_trim(str_cut(&path, '='));
	const struct profile_type *known = profile_type_find(name);

	path = str_trim(path);
	if (!profile_type_is_name(name) || (path.n && !profile_type_is_path(path)))
		return err_set(e, ERR_USAGE,
			       "write names of profiles with commas between them, as cpu,heap");
	if (!known && !path.n)
		return err_set(e, ERR_USAGE,
			       "kiln does not know where %.*s is; write %.*s=PATH, with what "
			       "stands after /debug/pprof/",
			       STR_ARG(name), STR_ARG(name));
	*out = known ? *known : (struct profile_type){ 0 };
	out->name = str_dup(a, name);
	if (path.n)
		out->path = str_dup(a, path);
	profile_type_set_exclusive(out);
	return true;
}

bool profile_types_parse(struct arena *a, struct str list, struct profile_type **types, size_t *n,
			 struct err *e)
{
	*types = arena_many(a, MAX_TYPES, struct profile_type);
	for (*n = 0; list.p; ++*n) {
		struct profile_type *type = &(*types)[*n];

		if (*n == MAX_TYPES)
			return err_set(e, ERR_LIMIT, "there are more than %d", MAX_TYPES);
		if (!parse_type(a, str_cut(&list, ','), type, e))
			return false;
		for (size_t i = 0; i < *n; i++)
			if (strcmp((*types)[i].name, type->name) == 0)
				return err_set(e, ERR_USAGE, "%s is there twice", type->name);
	}
	return *n || err_set(e, ERR_USAGE, "write names of profiles, as cpu,heap");
}

static bool add_type(struct reader *r, const struct tree *at, struct str name,
		     const struct tree *keys)
{
	const struct profile_type *known = profile_type_find(name);
	struct scrape_job *job = r->job;
	struct profile_type *type = &job->types[job->ntypes];

	if (!profile_type_is_name(name))
		return tree_fail(at, r->e, "the name of a profile is a word, as cpu or heap");
	for (size_t i = 0; i < job->ntypes; i++)
		if (str_eq(str_of(job->types[i].name), name))
			return tree_fail(at, r->e, "%.*s is there twice", STR_ARG(name));
	*type = known ? *known : (struct profile_type){ 0 };
	type->name = str_dup(r->a, name);
	if (keys && !read_type_keys(r, keys, type))
		return false;
	if (!type->path)
		return tree_fail(at, r->e,
				 "kiln does not know where targets have %s: write it as {%s: "
				 "{path: %s}}",
				 type->name, type->name, type->name);
	known = exclusive_by_path(str_of(type->path));
	if (!type->exclusive && known)
		type->exclusive = known->exclusive;
	if (type->exclusive && !type->seconds)
		return tree_fail(at, r->e,
				 "%s is collected for some time: say for how long, as {%s: "
				 "{seconds: 10}}",
				 type->name, type->name);
	job->ntypes++;
	return true;
}

/* [cpu, heap], or {cpu: {seconds: 10}, heap: {}}. */
static bool read_profiles(struct reader *r, const struct tree *t)
{
	if (tree_is_empty(t) || t->kind == TREE_TEXT)
		return tree_fail(t, r->e, "profiles are a list, as [cpu, heap]");
	if (t->n > MAX_TYPES)
		return tree_fail(t, r->e, "more than %d profiles", MAX_TYPES);
	r->job->types = arena_many(r->a, t->n, struct profile_type);
	for (size_t i = 0; i < t->n; i++) {
		const struct tree *part = &t->at[i];
		bool ok;

		if (t->kind == TREE_MAP)
			ok = add_type(r, part, t->names[i], part);
		else if (part->kind == TREE_MAP && part->n == 1)
			ok = add_type(r, part, part->names[0], &part->at[0]);
		else
			ok = part->kind == TREE_TEXT
				     ? add_type(r, part, part->text, NULL)
				     : tree_fail(part, r->e, "profiles are a list of names");
		if (!ok)
			return false;
	}
	return true;
}

struct profile_type *profile_types_usual(struct arena *a, size_t *n)
{
	struct profile_type *types = arena_many(a, NKNOWN, struct profile_type);

	*n = 0;
	for (size_t i = 0; i < NKNOWN; i++)
		if (known_types[i].is_usual)
			types[(*n)++] = known_types[i].type;
	return types;
}

/* ---- the other keys */

static const char *below(struct reader *r, struct str name)
{
	struct buf path = { 0 };
	const char *copy;

	if (!name.n || name.p[0] == '/')
		return str_dup(r->a, name);
	path_join(&path, str_of(r->dir), name);
	copy = str_dup(r->a, buf_view(&path));
	buf_release(&path);
	return copy;
}

static bool read_files(struct reader *r, const struct tree *t)
{
	const char **to;

	if (t->kind != TREE_LIST || t->n > MAX_PATTERNS)
		return tree_fail(t, r->e,
				 "files are a list of up to %d patterns, as "
				 "[targets/*.yaml]",
				 MAX_PATTERNS);
	r->job->files = to = arena_many(r->a, t->n, const char *);
	for (size_t i = 0; i < t->n; i++) {
		if (t->at[i].kind != TREE_TEXT || !t->at[i].text.n ||
		    memchr(t->at[i].text.p, '\0', t->at[i].text.n))
			return tree_fail(&t->at[i], r->e, "this is no name of a file");
		to[r->job->nfiles++] = below(r, t->at[i].text);
	}
	return true;
}

static bool set_value(struct reader *r, const struct tree *t, struct str name)
{
	const struct option_def *d = option_find(&scrape_job_table, name);
	struct str value = t->text;
	struct err why;

	if (!d)
		return tree_fail(t, r->e, "a job has no \"%.*s\"; kiln-serve(5) lists what it has",
				 STR_ARG(name));
	if (t->kind != TREE_TEXT || (value.n && memchr(value.p, '\0', value.n)))
		return tree_fail(t, r->e, "%s is one value: %s", d->name, d->spelling);
	if (!value.n) /* as if it were not there */
		return true;
	if (r->is_set[d - rows]) /* tls-ca, and tls: {ca: ...} */
		return tree_fail(t, r->e, "%s is there twice", d->name);
	r->is_set[d - rows] = true;
	if (strcmp(d->spelling, "FILE") == 0)
		value = str_of(below(r, value));
	if (!option_set(&scrape_job_table, d, r->job, r->a, value, &why))
		return tree_fail(t, r->e, "%s: \"%.*s\": %s", d->name, STR_ARG(value), why.text);
	return true;
}

static bool read_keys(struct reader *r, const struct tree *map, struct buf *key);

static bool read_key(struct reader *r, const struct tree *t, struct buf *key)
{
	struct str name = buf_view(key);

	if (str_eq(name, STR("labels")))
		return labels_read(r->a, t, &r->job->labels, &r->job->nlabels, r->e);
	if (str_eq(name, STR("profiles")))
		return read_profiles(r, t);
	if (str_eq(name, STR("files")))
		return read_files(r, t);
	if (str_eq(name, STR("targets")))
		return targets_read(r->a, t, true, &r->job->targets, &r->job->ntargets, r->e);
	if (str_eq(name, STR("kubernetes")) && t->kind == TREE_LIST)
		return tree_fail(t, r->e, "kubernetes is written as {namespace: NAME}, or {}");
	if (str_has_prefix(name, STR("kubernetes-")) ||
	    (str_eq(name, STR("kubernetes")) && (t->kind == TREE_MAP || tree_is_empty(t)))) {
		r->job->kubernetes = true;
		r->kubernetes = t;
	}
	return t->kind == TREE_MAP ? read_keys(r, t, key) : set_value(r, t, name);
}

/* tls: {ca: x} is tls-ca: x, as in the rest of the file. */
static bool read_keys(struct reader *r, const struct tree *map, struct buf *key)
{
	size_t outer = key->n;

	for (size_t i = 0; i < map->n; i++) {
		if (outer)
			buf_char(key, '-');
		for (size_t k = 0; k < map->names[i].n; k++) {
			char c = map->names[i].p[k];

			buf_char(key, c == '_' ? '-' : c);
		}
		if (!read_key(r, &map->at[i], key))
			return false;
		key->n = outer;
	}
	return true;
}

/* ---- does it make sense? */

static bool check_file(struct reader *r, const struct tree *at, const char *key, const char *path)
{
	if (!*path || access(path, R_OK) == 0)
		return true;
	err_system(r->e, "open", path);
	err_wrap(r->e, "%s", key);
	return err_wrap(r->e, "line %zu", at->line);
}

static bool check_secrets(struct reader *r, const struct tree *at)
{
	const struct scrape_job *j = r->job;

	if (*j->user && *j->token_file)
		return tree_fail(at, r->e,
				 "basic-auth and bearer-token-file: only one can be sent");
	if (*j->password && *j->password_file)
		return tree_fail(at, r->e,
				 "basic-auth has password and password-file: one is enough");
	if (!*j->user && (*j->password || *j->password_file))
		return tree_fail(at, r->e, "basic-auth needs a username");
	if (!*j->tls_cert != !*j->tls_key)
		return tree_fail(at, r->e, "tls needs cert and key, or none of them");
	if (strcmp(j->scheme, "http") == 0 && !j->kubernetes &&
	    (*j->tls_ca || *j->tls_cert || j->tls_insecure))
		return tree_fail(at, r->e, "tls is for scheme: https");
	return check_file(r, at, "basic-auth-password-file", j->password_file) &&
	       check_file(r, at, "bearer-token-file", j->token_file) &&
	       check_file(r, at, "tls-ca", j->tls_ca) &&
	       check_file(r, at, "tls-cert", j->tls_cert) &&
	       check_file(r, at, "tls-key", j->tls_key);
}

/* A profile's own interval, and how much of it is spent on it. */
static bool check_types(struct reader *r, const struct tree *at)
{
	struct scrape_job *j = r->job;

	for (size_t i = 0; i < j->ntypes; i++) {
		struct profile_type *t = &j->types[i];
		const struct profile_type *known = profile_type_find(str_of(t->name));

		if (!t->interval)
			t->interval = j->interval;
		if (t->seconds * COLLECT_SECOND <= t->interval)
			continue;
		if (!known || t->seconds != known->seconds)
			return tree_fail(at, r->e,
					 "%s takes %llds, and its interval is %llds: make seconds "
					 "smaller or interval larger",
					 t->name, (long long)t->seconds,
					 (long long)(t->interval / COLLECT_SECOND));
		t->seconds = t->interval / COLLECT_SECOND; /* the default, of a short interval */
	}
	return true;
}

static bool is_namespace(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (!(s.p[i] >= 'a' && s.p[i] <= 'z') && !(s.p[i] >= '0' && s.p[i] <= '9') &&
		    s.p[i] != '-')
			return false;
	return s.n <= MAX_NAMESPACE;
}

static bool is_plain(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if ((unsigned char)s.p[i] < ' ' || s.p[i] > '~')
			return false;
	return s.n <= MAX_SELECTOR;
}

static bool check_kubernetes(struct reader *r, const struct tree *at)
{
	const struct scrape_job *j = r->job;
	struct err why;

	if (!j->kubernetes)
		return true;
	if (r->kubernetes)
		at = r->kubernetes;
	if (!is_namespace(str_of(j->kube_namespace)))
		return tree_fail(at, r->e,
				 "kubernetes-namespace is one name, of small letters, digits and "
				 "dashes; without it pods of all are taken");
	if (!is_plain(str_of(j->kube_selector)))
		return tree_fail(
			at, r->e,
			"kubernetes-selector is written as kubectl's, as app=shop,tier!=x");
	if (!pod_labels_check(str_of(j->kube_pod_labels), &why))
		return tree_fail(at, r->e, "kubernetes-pod-labels: %s", why.text);
	return source_kubernetes_check(j, &why) || tree_fail(at, r->e, "kubernetes: %s", why.text);
}

static bool check_job(struct reader *r, const struct tree *at)
{
	const struct scrape_job *j = r->job;
	struct str prefix = str_of(j->path_prefix);

	if (!*j->name)
		return tree_fail(at, r->e, "the job has no name: write  - job: NAME");
	if (strlen(j->name) > MAX_NAME)
		return tree_fail(at, r->e, "the name of a job has at most %d bytes", MAX_NAME);
	if (j->interval < MIN_INTERVAL || j->interval > MAX_INTERVAL)
		return tree_fail(at, r->e, "interval is between 1s and 1d");
	if (j->jitter > j->interval)
		return tree_fail(at, r->e, "jitter is longer than interval");
	if (j->timeout < COLLECT_SECOND / 10 || j->timeout > PROFILE_MAX_SECONDS * COLLECT_SECOND)
		return tree_fail(at, r->e, "timeout is between 100ms and 1h");
	if (j->replicas < 0)
		return tree_fail(at, r->e, "replicas is 0, or more");
	if (strcmp(j->scheme, "http") != 0 && strcmp(j->scheme, "https") != 0)
		return tree_fail(at, r->e, "scheme is http or https, not \"%s\"", j->scheme);
	if (!profile_type_is_path(prefix) || prefix.p[0] != '/')
		return tree_fail(at, r->e, "path-prefix begins with a slash, as /debug/pprof");
	return check_types(r, at) && check_secrets(r, at) && check_kubernetes(r, at);
}

/* ---- jobs */

/* A name that is too long would leave no room for what is wrong. */
static bool name_job(struct reader *r)
{
	return *r->job->name && strlen(r->job->name) <= MAX_NAME
		       ? err_wrap(r->e, "scrape job %s", r->job->name)
		       : false;
}

static bool read_job(struct reader *r, const struct tree *t)
{
	struct buf key = { 0 };
	bool ok;

	*r->job = defaults;
	if (t->kind != TREE_MAP)
		return tree_fail(t, r->e, "a job is written as  - job: NAME  with its keys below");
	ok = read_keys(r, t, &key);
	buf_release(&key);
	if (!ok)
		return name_job(r);
	if (!r->job->ntypes)
		r->job->types = profile_types_usual(r->a, &r->job->ntypes);
	if (!check_job(r, t))
		return name_job(r);
	return r->job->ntargets || r->job->nfiles || r->job->kubernetes ||
	       tree_fail(t, r->e, "job %s has neither targets nor files nor kubernetes",
			 r->job->name);
}

static bool check_name(const struct scrape_config *c, const struct tree *at, struct err *e)
{
	const char *name = c->jobs[c->njobs].name;

	for (size_t i = 0; i < c->njobs; i++)
		if (strcmp(c->jobs[i].name, name) == 0)
			return tree_fail(at, e, "there are two jobs %s", name);
	return true;
}

static bool read_jobs(struct scrape_config *c, const struct tree *list, const char *dir,
		      struct err *e)
{
	if (list->n > MAX_JOBS)
		return tree_fail(list, e, "more than %d jobs", MAX_JOBS);
	c->jobs = arena_many(&c->arena, list->n, struct scrape_job);
	for (; c->njobs < list->n; c->njobs++) {
		struct reader r = { .a = &c->arena, .dir = dir, .job = &c->jobs[c->njobs], .e = e };

		if (!read_job(&r, &list->at[c->njobs]) || !check_name(c, &list->at[c->njobs], e))
			return false;
	}
	return true;
}

bool scrape_config_read(struct scrape_config *out, struct str yaml, const char *dir, struct err *e)
{
	const struct tree *list;
	struct tree tree;

	*out = (struct scrape_config){ 0 };
	if (tree_read(&out->arena, yaml, &tree, e)) {
		list = tree_find(&tree, "scrape");
		if (!list || list->kind != TREE_LIST || read_jobs(out, list, dir, e))
			return true;
	}
	scrape_config_release(out);
	return false;
}

void scrape_config_release(struct scrape_config *c)
{
	arena_release(&c->arena);
	*c = (struct scrape_config){ 0 };
}
