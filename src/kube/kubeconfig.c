/* kubeconfig.c - which cluster, and as whom: kubectl's files and flags, or a pod's own account. */
#include <stdlib.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/number.h"
#include "base/path.h"
#include "base/small_file.h"
#include "base/vec.h"
#include "base/yaml.h"
#include "kube/inside.h"

enum {
	MAX_FILES = 100,
	MAX_FILE_BYTES = 8 << 20,
	DEFAULT_TIMEOUT_MS = 30000,
};

#define ACCOUNT_DIR "/var/run/secrets/kubernetes.io/serviceaccount"

struct file {
	const char *path;
	struct tree tree;
};

struct loader {
	struct kube_config *c;
	const struct kube_access *access;
	vec(struct file) files;
};

/* An entry of clusters, users or contexts: first who has a name, as in kubectl. */
struct entry {
	const struct file *file; /* NULL: there is none */
	const struct tree *body;
};

bool kube_is_plain(struct str text)
{
	for (size_t i = 0; i < text.n; i++)
		if ((unsigned char)text.p[i] < 0x20 || text.p[i] == 0x7f)
			return false;
	return true;
}

/* ---- fields */

enum field_kind { FIELD_TEXT, FIELD_PATH, FIELD_BASE64, FIELD_BOOL };

struct field {
	const char *name;
	enum field_kind kind;
	size_t offset; /* in kube_config */
};

#define FIELD(name, kind, member)                                \
	{                                                        \
		name, kind, offsetof(struct kube_config, member) \
	}

static const struct field context_fields[] = {
	FIELD("namespace", FIELD_TEXT, namespace),
	{ NULL, FIELD_TEXT, 0 },
};

static const struct field cluster_fields[] = {
	FIELD("server", FIELD_TEXT, server),
	FIELD("certificate-authority", FIELD_PATH, ca_file),
	FIELD("certificate-authority-data", FIELD_BASE64, ca),
	FIELD("insecure-skip-tls-verify", FIELD_BOOL, insecure),
	FIELD("tls-server-name", FIELD_TEXT, tls_server_name),
	FIELD("proxy-url", FIELD_TEXT, proxy),
	{ NULL, FIELD_TEXT, 0 },
};

static const struct field user_fields[] = {
	FIELD("client-certificate", FIELD_PATH, cert_file),
	FIELD("client-certificate-data", FIELD_BASE64, cert),
	FIELD("client-key", FIELD_PATH, key_file),
	FIELD("client-key-data", FIELD_BASE64, key),
	FIELD("token", FIELD_TEXT, token),
	FIELD("tokenFile", FIELD_PATH, token_file),
	FIELD("username", FIELD_TEXT, user),
	FIELD("password", FIELD_TEXT, password),
	FIELD("as", FIELD_TEXT, as),
	FIELD("as-uid", FIELD_TEXT, as_uid),
	{ NULL, FIELD_TEXT, 0 },
};

static bool check_text(const struct tree *t, const char *name, struct err *e)
{
	if (t->kind != TREE_TEXT)
		return tree_fail(t, e, "%s is no text", name);
	return kube_is_plain(t->text) || tree_fail(t, e, "%s has a control character", name);
}

/* A file's name is relative to the file that names it. */
static const char *path_from(struct loader *l, const struct file *f, struct str name)
{
	struct buf dir = { 0 }, joined = { 0 };
	const char *path;

	if (!name.n || name.p[0] == '/')
		return str_dup(&l->c->arena, name);
	path_dir(&dir, str_of(f->path));
	path_join(&joined, buf_view(&dir), name);
	path = str_dup(&l->c->arena, buf_view(&joined));
	buf_release(&dir);
	buf_release(&joined);
	return path;
}

static bool read_base64(struct loader *l, const struct tree *t, const char *name, struct str *out,
			struct err *e)
{
	struct buf bytes = { 0 }, text = { 0 };
	bool ok;

	/* Folded lines leave blanks. */
	for (size_t i = 0; i < t->text.n; i++)
		if (!strchr(" \t\r\n", t->text.p[i]))
			buf_char(&text, t->text.p[i]);
	ok = base64_decode(&bytes, buf_view(&text)) || tree_fail(t, e, "%s is no base64", name);
	if (ok && bytes.n > MAX_PEM_BYTES)
		ok = tree_fail(t, e, "%s is larger than a megabyte", name);
	if (ok && bytes.n)
		*out = (struct str){ arena_copy(&l->c->arena, bytes.p, bytes.n), bytes.n };
	buf_release(&bytes);
	buf_release(&text);
	return ok;
}

static bool read_field(struct loader *l, const struct file *f, const struct field *field,
		       const struct tree *t, struct err *e)
{
	void *to = (char *)l->c + field->offset;

	if (field->kind == FIELD_BASE64 && t->kind == TREE_TEXT)
		return read_base64(l, t, field->name, to, e);
	if (!check_text(t, field->name, e))
		return false;
	if (field->kind == FIELD_BOOL)
		return number_parse_bool(t->text, to) == NUMBER_OK ||
		       tree_fail(t, e, "%s is true or false", field->name);
	*(const char **)to = field->kind == FIELD_PATH ? path_from(l, f, t->text)
						       : str_dup(&l->c->arena, t->text);
	return true;
}

static bool read_fields(struct loader *l, const struct entry *from, const struct field *fields,
			struct err *e)
{
	for (; fields->name; fields++) {
		const struct tree *t = tree_find(from->body, fields->name);

		if (t && !tree_is_empty(t) && !read_field(l, from->file, fields, t, e))
			return err_wrap(e, "%s", from->file->path);
	}
	return true;
}

/* NULL at the end. */
static bool read_texts(struct loader *l, const struct tree *list, const char *name,
		       const char *const **out, struct err *e)
{
	const char **at;

	if (list->kind != TREE_LIST && !tree_is_empty(list))
		return tree_fail(list, e, "%s is no list", name);
	at = arena_many(&l->c->arena, list->n + 1, const char *);
	for (size_t i = 0; i < list->n; i++) {
		if (list->at[i].kind != TREE_TEXT ||
		    memchr(list->at[i].text.p, 0, list->at[i].text.n))
			return tree_fail(&list->at[i], e, "%s has something that is no text", name);
		at[i] = str_dup(&l->c->arena, list->at[i].text);
	}
	*out = at;
	return true;
}

/* ---- a user's program */

static bool read_env(struct loader *l, const struct tree *list, struct kube_exec *x, struct err *e)
{
	struct kube_pair *env = arena_many(&l->c->arena, list->n + 1, struct kube_pair);

	for (size_t i = 0; i < list->n; i++) {
		const struct tree *name = tree_find(&list->at[i], "name");
		const struct tree *value = tree_find(&list->at[i], "value");

		if (!name || !value || tree_is_empty(name) || value->kind != TREE_TEXT)
			return tree_fail(&list->at[i], e, "env is a list of name and value");
		if (!check_text(name, "name", e) || memchr(value->text.p, 0, value->text.n))
			return tree_fail(name, e, "env has a name or value that cannot be one");
		env[i] = (struct kube_pair){ name->text, value->text };
	}
	x->env = env;
	x->nenv = list->n;
	return true;
}

static bool read_exec_version(const struct tree *t, const struct tree *body, const char **out,
			      struct err *e)
{
	static const char *const known[] = { "client.authentication.k8s.io/v1",
					     "client.authentication.k8s.io/v1beta1" };

	for (size_t i = 0; t && i < sizeof(known) / sizeof(*known); i++)
		if (str_eq(t->text, str_of(known[i])))
			*out = known[i];
	return *out ||
	       tree_fail(t ? t : body, e, "apiVersion of exec must be %s or %s; update the program",
			 known[0], known[1]);
}

static bool read_exec_texts(struct loader *l, const struct file *f, const struct tree *t,
			    struct kube_exec *x, struct err *e)
{
	const struct tree *command = tree_find(t, "command"), *hint = tree_find(t, "installHint");

	if (!command || tree_is_empty(command))
		return tree_fail(t, e, "exec has no command");
	if (!check_text(command, "command", e))
		return false;
	x->hint = hint && hint->kind == TREE_TEXT ? str_dup(&l->c->arena, hint->text) : "";
	x->command = str_find_char(command->text, '/') == STR_NONE
			     ? str_dup(&l->c->arena, command->text)
			     : path_from(l, f, command->text);
	return true;
}

static bool read_exec(struct loader *l, const struct file *f, const struct tree *t, struct err *e)
{
	static const char *const none[] = { NULL };
	struct kube_exec *x = arena_new(&l->c->arena, struct kube_exec);
	const struct tree *args = tree_find(t, "args"), *env = tree_find(t, "env");
	const struct tree *info = tree_find(t, "provideClusterInfo");
	const struct tree *mode = tree_find(t, "interactiveMode");

	x->args = none;
	if (!read_exec_version(tree_find(t, "apiVersion"), t, &x->api_version, e) ||
	    !read_exec_texts(l, f, t, x, e) ||
	    (args && !read_texts(l, args, "args", &x->args, e)) || (env && !read_env(l, env, x, e)))
		return false;
	if (info && !tree_is_empty(info) &&
	    number_parse_bool(info->text, &x->wants_cluster) != NUMBER_OK)
		return tree_fail(info, e, "provideClusterInfo is true or false");
	if (mode && str_eq(mode->text, STR("Always")))
		return tree_fail(mode, e,
				 "%s wants to talk with a person (interactiveMode: Always); "
				 "kiln asks nobody",
				 x->command);
	l->c->exec = x;
	return true;
}

static bool read_user(struct loader *l, const struct entry *user, struct err *e)
{
	const struct tree *groups = tree_find(user->body, "as-groups");
	const struct tree *exec = tree_find(user->body, "exec");
	const struct tree *provider = tree_find(user->body, "auth-provider");
	const struct tree *extra = tree_find(user->body, "as-user-extra");
	bool ok = read_fields(l, user, user_fields, e);

	if (!ok)
		return false;
	if (groups)
		ok = read_texts(l, groups, "as-groups", &l->c->as_group, e);
	if (ok && exec && !tree_is_empty(exec))
		ok = read_exec(l, user->file, exec, e);
	if (ok && provider && !tree_is_empty(provider))
		ok = tree_fail(provider, e,
			       "auth-provider is gone from Kubernetes; use an exec plugin");
	if (ok && extra && !tree_is_empty(extra))
		ok = tree_fail(extra, e, "as-user-extra is not understood");
	return ok || err_wrap(e, "%s", user->file->path);
}

/* ---- files */

/* Not given by name, it may be missing. */
static bool add_file(struct loader *l, struct str name, bool may_miss, struct err *e)
{
	const char *path = str_dup(&l->c->arena, name);
	struct file f = { .path = path };
	struct buf text = { 0 };
	const struct tree *kind;
	bool ok;

	if (!name.n || (may_miss && access(path, F_OK) != 0))
		return true;
	if (l->files.n >= MAX_FILES)
		return err_set(e, ERR_USAGE, "$KUBECONFIG has more than %d files", MAX_FILES);
	if (!small_file_read(&text, path, MAX_FILE_BYTES, e)) {
		buf_release(&text);
		return err_wrap(e, "kubeconfig");
	}
	ok = tree_read(&l->c->arena, buf_view(&text), &f.tree, e);
	buf_release(&text);
	if (ok && f.tree.kind != TREE_MAP && !tree_is_empty(&f.tree))
		ok = tree_fail(&f.tree, e, "this is no kubeconfig");
	kind = ok ? tree_find(&f.tree, "kind") : NULL;
	if (kind && !tree_is_empty(kind) && !str_eq(kind->text, STR("Config")))
		ok = tree_fail(kind, e, "this is no kubeconfig: its kind is %.*s, not Config",
			       STR_ARG(kind->text));
	vec_push(&l->files, f);
	return ok || err_wrap(e, "%s", path);
}

static bool find_files(struct loader *l, struct err *e)
{
	const char *list = getenv("KUBECONFIG"), *home = getenv("HOME");
	struct str rest = str_of(list ? list : "");
	struct buf path = { 0 };
	bool ok = true;

	if (is_given(l->access->kubeconfig))
		return add_file(l, str_of(l->access->kubeconfig), false, e);
	if (rest.n) {
		while (ok && rest.p)
			ok = add_file(l, str_cut(&rest, ':'), true, e);
		return ok;
	}
	if (!is_given(home))
		return true;
	buf_printf(&path, "%s/.kube/config", home);
	ok = add_file(l, buf_view(&path), true, e);
	buf_release(&path);
	return ok;
}

/* The names there are, for who gave another. */
static void put_names(struct buf *out, const struct loader *l, const char *list)
{
	enum { MOST = 20 };
	size_t shown = 0;

	for (size_t i = 0; i < l->files.n; i++) {
		const struct tree *t = tree_find(&l->files.at[i].tree, list);

		for (size_t k = 0; t && k < t->n && shown < MOST; k++) {
			const struct tree *name = tree_find(&t->at[k], "name");

			if (name && name->text.n)
				buf_printf(out, "%s%.*s", shown++ ? ", " : "", STR_ARG(name->text));
		}
	}
	if (!shown)
		buf_puts(out, "none");
	buf_char(out, '\0');
}

static bool fail_missing(const struct loader *l, const char *list, struct str name, struct err *e)
{
	struct buf names = { 0 };

	put_names(&names, l, list);
	err_set(e, ERR_USAGE, "%s: there is no \"%.*s\" in %s; there are: %s", l->files.at[0].path,
		STR_ARG(name), list, names.p);
	buf_release(&names);
	return false;
}

/* `list` holds entries such as { name: prod, cluster: {...} }. */
static bool find_entry(const struct loader *l, const char *list, const char *body, struct str name,
		       struct entry *out, struct err *e)
{
	for (size_t i = 0; i < l->files.n; i++) {
		const struct file *f = &l->files.at[i];
		const struct tree *t = tree_find(&f->tree, list);

		if (t && t->kind != TREE_LIST && !tree_is_empty(t))
			return tree_fail(t, e, "%s is no list", list) || err_wrap(e, "%s", f->path);
		for (size_t k = 0; t && k < t->n; k++) {
			const struct tree *n = tree_find(&t->at[k], "name");

			if (!n || n->kind != TREE_TEXT || !str_eq(n->text, name))
				continue;
			*out = (struct entry){ f, tree_find(&t->at[k], body) };
			if (!out->body)
				out->body = &t->at[k];
			return true;
		}
	}
	return fail_missing(l, list, name, e);
}

static struct str current_context(const struct loader *l)
{
	if (is_given(l->access->context))
		return str_of(l->access->context);
	for (size_t i = 0; i < l->files.n; i++) {
		const struct tree *t = tree_find(&l->files.at[i].tree, "current-context");

		if (t && t->kind == TREE_TEXT && t->text.n)
			return t->text;
	}
	return STR("");
}

/* What a flag says, else the context. */
static struct str chosen(const char *flag, const struct entry *context, const char *name)
{
	const struct tree *t = context->file ? tree_find(context->body, name) : NULL;

	if (is_given(flag))
		return str_of(flag);
	return t && t->kind == TREE_TEXT ? t->text : STR("");
}

static bool use_files(struct loader *l, struct err *e)
{
	struct str name = current_context(l), cluster, user;
	struct entry context = { 0 }, found;
	struct buf origin = { 0 };

	if (name.n && (!find_entry(l, "contexts", "context", name, &context, e) ||
		       !read_fields(l, &context, context_fields, e)))
		return false;
	cluster = chosen(l->access->cluster, &context, "cluster");
	user = chosen(l->access->user, &context, "user");
	if (!cluster.n && !is_given(l->access->server)) {
		put_names(&origin, l, "contexts");
		err_set(e, ERR_USAGE,
			"%s: no context is chosen, by current-context or by --context; "
			"there are: %s",
			l->files.at[0].path, origin.p);
		buf_release(&origin);
		return false;
	}
	if (cluster.n && (!find_entry(l, "clusters", "cluster", cluster, &found, e) ||
			  !read_fields(l, &found, cluster_fields, e)))
		return false;
	if (user.n &&
	    (!find_entry(l, "users", "user", user, &found, e) || !read_user(l, &found, e)))
		return false;
	buf_puts(&origin, context.file ? context.file->path : l->files.at[0].path);
	if (name.n)
		buf_printf(&origin, ", context %.*s", STR_ARG(name));
	l->c->origin = str_dup(&l->c->arena, buf_view(&origin));
	buf_release(&origin);
	return true;
}

/* ---- a pod's own account */

static const char *account_file(struct loader *l, const char *name)
{
	struct buf path = { 0 };
	const char *dir = l->access->account_dir, *copy;

	buf_printf(&path, "%s/%s", is_given(dir) ? dir : ACCOUNT_DIR, name);
	copy = str_dup(&l->c->arena, buf_view(&path));
	buf_release(&path);
	return copy;
}

static bool is_in_cluster(struct loader *l)
{
	return is_given(getenv("KUBERNETES_SERVICE_HOST")) &&
	       is_given(getenv("KUBERNETES_SERVICE_PORT")) &&
	       access(account_file(l, "token"), R_OK) == 0;
}

static void use_account(struct loader *l)
{
	const char *host = getenv("KUBERNETES_SERVICE_HOST");
	bool is_v6 = strchr(host, ':') != NULL;
	struct buf text = { 0 };
	struct err ignored;

	buf_printf(&text, "https://%s%s%s:%s", is_v6 ? "[" : "", host, is_v6 ? "]" : "",
		   getenv("KUBERNETES_SERVICE_PORT"));
	l->c->server = str_dup(&l->c->arena, buf_view(&text));
	l->c->token_file = account_file(l, "token");
	l->c->ca_file = account_file(l, "ca.crt");
	text.n = 0;
	if (small_file_read(&text, account_file(l, "namespace"), MAX_TOKEN_BYTES, &ignored))
		l->c->namespace = str_dup(&l->c->arena, str_trim(buf_view(&text)));
	l->c->origin = "the pod's service account";
	buf_release(&text);
}

/* ---- flags, and what must hold */

static void use_flags(struct loader *l)
{
	const struct kube_access *f = l->access;
	struct kube_config *c = l->c;
	const struct {
		const char *value, **to;
	} texts[] = {
		{ f->server, &c->server },
		{ f->namespace, &c->namespace },
		{ f->token, &c->token },
		{ f->certificate_authority, &c->ca_file },
		{ f->client_certificate, &c->cert_file },
		{ f->client_key, &c->key_file },
		{ f->tls_server_name, &c->tls_server_name },
		{ f->as, &c->as },
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		if (is_given(texts[i].value))
			*texts[i].to = str_dup(&c->arena, str_of(texts[i].value));
	if (is_given(f->token)) {
		c->token_file = c->user = c->password = "";
		c->exec = NULL;
	}
	if (is_given(f->certificate_authority))
		c->ca = (struct str){ 0 };
	if (is_given(f->client_certificate))
		c->cert = (struct str){ 0 };
	if (is_given(f->client_key))
		c->key = (struct str){ 0 };
	if (f->as_group)
		c->as_group = f->as_group;
	c->insecure = c->insecure || f->insecure;
	c->request_timeout_ms =
		f->request_timeout_ms > 0 ? f->request_timeout_ms : DEFAULT_TIMEOUT_MS;
}

static bool check_server(struct kube_config *c, struct err *e)
{
	struct str s = str_of(c->server), rest = s;

	if (!s.n)
		return err_set(e, ERR_USAGE, "%s: the cluster has no server", c->origin);
	if (str_has_prefix(s, STR("https://")))
		rest = str_from(s, 8);
	else if (str_has_prefix(s, STR("http://")))
		rest = str_from(s, 7);
	if (rest.n == s.n || !rest.n || rest.p[0] == '/' || !kube_is_plain(s) ||
	    strpbrk(c->server, "?#@ \"<>\\"))
		return err_set(e, ERR_USAGE,
			       "%s: server \"%s\" is no URL such as https://10.0.0.1:6443",
			       c->origin, c->server);
	while (s.n && s.p[s.n - 1] == '/')
		s.n--;
	c->server = str_dup(&c->arena, s);
	return true;
}

static bool check_headers(const struct kube_config *c, struct err *e)
{
	const char *const texts[] = { c->token, c->as, c->as_uid, c->user, c->password };
	const char *const *group = c->as_group;

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		if (!kube_is_plain(str_of(texts[i])))
			return err_set(e, ERR_USAGE, "%s: a token or name has a control character",
				       c->origin);
	for (; group && *group; group++)
		if (!kube_is_plain(str_of(*group)))
			return err_set(e, ERR_USAGE, "%s: a group has a control character",
				       c->origin);
	if ((*c->as_uid || (c->as_group && *c->as_group)) && !*c->as)
		return err_set(e, ERR_USAGE, "%s: who is impersonated needs a name, too (--as)",
			       c->origin);
	return true;
}

static bool check_files(const struct kube_config *c, struct err *e)
{
	const struct {
		const char *name, *path;
	} files[] = {
		{ "certificate authority", c->ca_file },
		{ "client certificate", c->cert_file },
		{ "client key", c->key_file },
		{ "token", c->token_file },
	};

	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
		if (*files[i].path && access(files[i].path, R_OK) != 0) {
			err_system(e, "open", files[i].path);
			return err_wrap(e, "%s: %s", c->origin, files[i].name);
		}
	return true;
}

/* Bytes count before files. */
static bool settle(struct kube_config *c, struct err *e)
{
	if (c->ca.p || c->insecure)
		c->ca_file = "";
	if (c->insecure)
		c->ca = (struct str){ 0 };
	if (c->cert.p)
		c->cert_file = "";
	if (c->key.p)
		c->key_file = "";
	if ((c->cert.p || *c->cert_file) != (c->key.p || *c->key_file))
		return err_set(e, ERR_USAGE, "%s: a client certificate and its key come together",
			       c->origin);
	if (!*c->namespace)
		c->namespace = "default";
	return check_server(c, e) && check_headers(c, e) && check_files(c, e);
}

static bool fail_unknown(struct err *e)
{
	return err_set(e, ERR_USAGE,
		       "no cluster is known: there is no ~/.kube/config, $KUBECONFIG names no file "
		       "that is there, and this is no pod; say which with --kubeconfig");
}

static bool load(struct loader *l, struct err *e)
{
	bool is_pod_first = l->access->in_cluster_first && !is_given(l->access->kubeconfig) &&
			    !is_given(l->access->context);

	if (is_pod_first && is_in_cluster(l))
		use_account(l);
	else if (!find_files(l, e))
		return false;
	else if (l->files.n)
		return use_files(l, e);
	else if (is_in_cluster(l))
		use_account(l);
	else if (!is_given(l->access->server))
		return fail_unknown(e);
	return true;
}

bool kube_config_load(struct kube_config *c, const struct kube_access *access, struct err *e)
{
	struct loader l = { .c = c, .access = access };
	bool ok;

	*c = (struct kube_config){ .origin = "the command line",
				   .server = "",
				   .namespace = "",
				   .ca_file = "",
				   .cert_file = "",
				   .key_file = "",
				   .tls_server_name = "",
				   .proxy = "",
				   .token = "",
				   .token_file = "",
				   .user = "",
				   .password = "",
				   .as = "",
				   .as_uid = "" };
	ok = load(&l, e);
	if (ok) {
		use_flags(&l);
		ok = settle(c, e);
	}
	vec_release(&l.files);
	if (!ok) {
		kube_config_release(c);
		e->kind = ERR_USAGE;
	}
	return ok;
}

void kube_config_release(struct kube_config *c)
{
	arena_release(&c->arena);
}
