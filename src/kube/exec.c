/* exec.c - programs that print credentials: client.authentication.k8s.io. */
#include <unistd.h>

#include "base/base64.h"
#include "base/child.h"
#include "base/escape.h"
#include "base/small_file.h"
#include "base/vec.h"
#include "base/when.h"
#include "kube/inside.h"

enum { MAX_SECONDS = 60, MAX_OUTPUT = 1 << 20 };

/* ---- what it is told */

static void put_member(struct buf *out, const char *name, const char *value)
{
	if (!*value)
		return;
	buf_printf(out, ",\"%s\":", name);
	json_put(out, str_of(value));
}

static bool put_cluster(struct buf *out, const struct kube_config *c, struct err *e)
{
	struct buf pem = { 0 };

	buf_puts(out, ",\"cluster\":{\"server\":");
	json_put(out, str_of(c->server));
	put_member(out, "tls-server-name", c->tls_server_name);
	put_member(out, "proxy-url", c->proxy);
	if (c->insecure)
		buf_puts(out, ",\"insecure-skip-tls-verify\":true");
	if (*c->ca_file && !small_file_read(&pem, c->ca_file, MAX_PEM_BYTES, e)) {
		buf_release(&pem);
		return false;
	}
	buf_str(&pem, c->ca);
	if (pem.n) {
		buf_puts(out, ",\"certificate-authority-data\":\"");
		base64_put(out, buf_view(&pem));
		buf_char(out, '"');
	}
	buf_char(out, '}');
	buf_release(&pem);
	return true;
}

static bool put_info(struct buf *out, const struct kube_config *c, struct err *e)
{
	buf_printf(out,
		   "KUBERNETES_EXEC_INFO={\"kind\":\"ExecCredential\",\"apiVersion\":\"%s\","
		   "\"spec\":{\"interactive\":false",
		   c->exec->api_version);
	if (c->exec->wants_cluster && !put_cluster(out, c, e))
		return false;
	buf_puts(out, "}}");
	return true;
}

/* ---- what it prints */

static bool read_token(struct exec_credential *x, const struct json *status, struct err *e)
{
	const struct json *token = json_member(status, "token");

	if (!token || token->type != JSON_STRING || !token->text.n)
		return true;
	if (token->text.n > MAX_TOKEN_BYTES || !kube_is_plain(token->text))
		return err_set(e, ERR_FORMAT, "the token is no token");
	x->token = token->text;
	return true;
}

static struct str text_member(const struct json *object, const char *name)
{
	const struct json *t = json_member(object, name);

	return t && t->type == JSON_STRING && t->text.n ? t->text : (struct str){ 0 };
}

static bool read_status(struct exec_credential *x, const struct json *status, struct err *e)
{
	struct str expires = text_member(status, "expirationTimestamp");

	x->cert = text_member(status, "clientCertificateData");
	x->key = text_member(status, "clientKeyData");
	if (!read_token(x, status, e))
		return false;
	if (!x->cert.p != !x->key.p)
		return err_set(e, ERR_FORMAT,
			       "clientCertificateData and clientKeyData come together");
	if (!x->token.p && !x->cert.p)
		return err_set(e, ERR_FORMAT, "there is neither a token nor a certificate");
	if (expires.p && !time_parse(expires, time_now(), &x->expires_ns, e)) {
		e->kind = ERR_FORMAT;
		return err_wrap(e, "expirationTimestamp");
	}
	return true;
}

bool kube_exec_read(struct str text, const char *api_version, struct exec_credential *x,
		    struct err *e)
{
	struct json root;
	const struct json *status;
	struct str version;
	bool ok;

	*x = (struct exec_credential){ 0 };
	ok = json_parse(&x->arena, text, &root, e);
	if (ok && !str_eq(text_member(&root, "kind"), STR("ExecCredential")))
		ok = err_set(e, ERR_FORMAT, "its kind is not ExecCredential");
	version = ok ? text_member(&root, "apiVersion") : STR("");
	if (ok && !str_eq(version, str_of(api_version)))
		ok = err_set(e, ERR_FORMAT,
			     "its apiVersion is \"%.*s\", not %s as in the kubeconfig",
			     STR_ARG(version), api_version);
	status = ok ? json_member(&root, "status") : NULL;
	if (ok && (!status || status->type != JSON_OBJECT))
		ok = err_set(e, ERR_FORMAT, "it has no status");
	ok = ok && read_status(x, status, e);
	if (!ok)
		exec_credential_release(x);
	return ok;
}

void exec_credential_release(struct exec_credential *x)
{
	arena_release(&x->arena);
}

/* ---- running it */

static bool is_replaced(const struct kube_exec *x, struct str line)
{
	struct str name = str_cut(&line, '=');

	if (str_eq(name, STR("KUBERNETES_EXEC_INFO")))
		return true;
	for (size_t i = 0; i < x->nenv; i++)
		if (str_eq(x->env[i].name, name))
			return true;
	return false;
}

static const char *const *make_env(struct arena *a, const struct kube_exec *x, struct str info)
{
	vec(const char *) lines = { 0 };
	struct buf line = { 0 };

	for (char **at = environ; *at; at++)
		if (!is_replaced(x, str_of(*at)))
			vec_push(&lines, *at);
	for (size_t i = 0; i < x->nenv; i++) {
		line.n = 0;
		buf_printf(&line, "%.*s=%.*s", STR_ARG(x->env[i].name), STR_ARG(x->env[i].value));
		vec_push(&lines, str_dup(a, buf_view(&line)));
	}
	vec_push(&lines, str_dup(a, info));
	vec_push(&lines, NULL);
	buf_release(&line);
	return vec_adopt(a, &lines);
}

static const char *const *make_argv(struct arena *a, const struct kube_exec *x)
{
	vec(const char *) argv = { 0 };

	vec_push(&argv, x->command);
	for (const char *const *arg = x->args; *arg; arg++)
		vec_push(&argv, *arg);
	vec_push(&argv, NULL);
	return vec_adopt(a, &argv);
}

bool kube_exec_run(const struct kube_config *c, struct exec_credential *out, struct err *e)
{
	const struct kube_exec *x = c->exec;
	struct buf info = { 0 }, text = { 0 };
	struct arena a = { 0 };
	bool ok = put_info(&info, c, e);

	ok = ok &&
	     child_run(&(struct child_params){ .argv = make_argv(&a, x),
					       .max_seconds = MAX_SECONDS,
					       .max_output = MAX_OUTPUT,
					       .environment = make_env(&a, x, buf_view(&info)) },
		       &text, e);
	if (!ok && e->kind == ERR_NOTFOUND && *x->hint)
		err_wrap(e, "%.300s", x->hint);
	ok = ok && (kube_exec_read(buf_view(&text), x->api_version, out, e) ||
		    err_wrap(e, "what it printed"));
	arena_release(&a);
	buf_release(&info);
	buf_release(&text);
	if (!ok) {
		e->kind = ERR_IO;
		return err_wrap(e, "%s: exec plugin %s", c->origin, x->command);
	}
	return true;
}
