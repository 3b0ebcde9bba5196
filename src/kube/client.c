/* client.c - requests to the API server, with credentials that are as fresh as can be. */
#include <pthread.h>
#include <stdlib.h>

#include "base/base64.h"
#include "base/small_file.h"
#include "base/vec.h"
#include "base/when.h"
#include "kube/inside.h"

enum { MAX_ANSWER_BYTES = 64 << 20, MAX_REFUSAL_BYTES = 64 << 10, MAX_REASON_BYTES = 600 };

#define EARLY_NS INT64_C(10000000000) /* before a credential expires */

/* Who we are, at some time. When that changes there is another, and requests that have begun keep
 * theirs. */
struct kube_session {
	unsigned references;
	bool is_refused;
	struct http_client *http;
	struct arena arena;
	struct exec_credential credential;
	vec(const char *) headers;
	struct file_version files[4]; /* in the order of files_of */
};

struct kube_client {
	const struct kube_config *config;
	pthread_mutex_t lock;
	struct kube_session *now; /* or NULL */
};

struct kube_client *kube_client_new(const struct kube_config *config)
{
	struct kube_client *k = xcalloc(1, sizeof(*k));

	k->config = config;
	pthread_mutex_init(&k->lock, NULL);
	return k;
}

const struct kube_config *kube_client_config(const struct kube_client *k)
{
	return k->config;
}

/* ---- sessions */

static void session_free(struct kube_session *s)
{
	http_client_free(s->http);
	exec_credential_release(&s->credential);
	arena_release(&s->arena);
	vec_release(&s->headers);
	free(s);
}

/* With the lock. */
static void drop(struct kube_session *s)
{
	if (s && --s->references == 0)
		session_free(s);
}

void kube_client_free(struct kube_client *k)
{
	if (!k)
		return;
	drop(k->now);
	pthread_mutex_destroy(&k->lock);
	free(k);
}

static void files_of(const struct kube_config *c, const char *files[4])
{
	files[0] = c->ca_file;
	files[1] = c->cert_file;
	files[2] = c->key_file;
	files[3] = c->token_file;
}

static void add_header(struct kube_session *s, const char *name, struct str value)
{
	struct buf line = { 0 };

	buf_printf(&line, "%s: %.*s", name, STR_ARG(value));
	vec_push(&s->headers, str_dup(&s->arena, buf_view(&line)));
	buf_release(&line);
}

static void add_bearer(struct kube_session *s, struct str token)
{
	struct buf value = { 0 };

	buf_printf(&value, "Bearer %.*s", STR_ARG(token));
	add_header(s, "Authorization", buf_view(&value));
	buf_release(&value);
}

static void add_basic(struct kube_session *s, const struct kube_config *c)
{
	struct buf pair = { 0 }, value = { 0 };

	buf_printf(&pair, "%s:%s", c->user, c->password);
	buf_puts(&value, "Basic ");
	base64_put(&value, buf_view(&pair));
	add_header(s, "Authorization", buf_view(&value));
	buf_release(&pair);
	buf_release(&value);
}

/* A file with a token counts before the token. */
static bool add_authorization(struct kube_session *s, const struct kube_config *c, struct err *e)
{
	struct buf text = { 0 };
	struct str token = s->credential.token.p ? s->credential.token : str_of(c->token);
	bool ok = true;

	if (*c->token_file) {
		ok = small_file_read(&text, c->token_file, MAX_TOKEN_BYTES, e) ||
		     err_wrap(e, "%s: token", c->origin);
		token = str_trim(buf_view(&text));
		if (ok && (!token.n || !kube_is_plain(token)))
			ok = err_set(e, ERR_IO, "%s: %s holds no token", c->origin, c->token_file);
	}
	if (ok && token.n)
		add_bearer(s, token);
	else if (ok && *c->user)
		add_basic(s, c);
	buf_release(&text);
	return ok;
}

static void add_impersonation(struct kube_session *s, const struct kube_config *c)
{
	if (!*c->as)
		return;
	add_header(s, "Impersonate-User", str_of(c->as));
	if (*c->as_uid)
		add_header(s, "Impersonate-Uid", str_of(c->as_uid));
	for (const char *const *g = c->as_group; g && *g; g++)
		add_header(s, "Impersonate-Group", str_of(*g));
}

/* What the file has, or the bytes there are. */
static bool read_pem(struct kube_session *s, const char *file, struct str bytes, struct str *out,
		     struct err *e)
{
	struct buf text = { 0 };

	*out = bytes;
	if (!*file)
		return true;
	if (!small_file_read(&text, file, MAX_PEM_BYTES, e)) {
		buf_release(&text);
		return false;
	}
	*out = (struct str){ arena_adopt(&s->arena, text.p), text.n };
	return true;
}

static bool fill_session(struct kube_session *s, const struct kube_config *c, struct err *e)
{
	struct http_tls tls = { .server_name = c->tls_server_name, .is_insecure = c->insecure };
	const char *files[4];

	files_of(c, files);
	for (size_t i = 0; i < 4; i++)
		if (*files[i])
			s->files[i] = file_version(files[i]);
	if (c->exec && !kube_exec_run(c, &s->credential, e))
		return false;
	if (!read_pem(s, c->ca_file, c->ca, &tls.ca_pem, e) ||
	    !read_pem(s, c->cert_file, c->cert, &tls.cert_pem, e) ||
	    !read_pem(s, c->key_file, c->key, &tls.key_pem, e))
		return err_wrap(e, "%s", c->origin);
	if (s->credential.cert.p) {
		tls.cert_pem = s->credential.cert;
		tls.key_pem = s->credential.key;
	}
	if (!add_authorization(s, c, e))
		return false;
	add_impersonation(s, c);
	s->http = http_client_new(&tls);
	return true;
}

static bool is_old(const struct kube_session *s, const struct kube_config *c)
{
	int64_t expires = s->credential.expires_ns;
	const char *files[4];

	if (s->is_refused || (expires && time_now() > expires - EARLY_NS))
		return true;
	files_of(c, files);
	for (size_t i = 0; i < 4; i++) {
		struct file_version now;

		if (!*files[i])
			continue;
		now = file_version(files[i]);
		if (!file_version_same(&now, &s->files[i]))
			return true;
	}
	return false;
}

/* Others wait while a program prints credentials: they need them, too. */
static struct kube_session *take_session(struct kube_client *k, struct err *e)
{
	struct kube_session *s;

	pthread_mutex_lock(&k->lock);
	s = k->now;
	if (!s || is_old(s, k->config)) {
		s = xcalloc(1, sizeof(*s));
		s->references = 1;
		if (fill_session(s, k->config, e)) {
			drop(k->now);
			k->now = s;
		} else {
			session_free(s);
			s = NULL;
		}
	}
	if (s)
		s->references++;
	pthread_mutex_unlock(&k->lock);
	return s;
}

static void give_session(struct kube_client *k, struct kube_session *s)
{
	pthread_mutex_lock(&k->lock);
	drop(s);
	pthread_mutex_unlock(&k->lock);
}

bool kube_renew(struct kube_client *k)
{
	if (!k->config->exec && !*k->config->token_file && !*k->config->cert_file)
		return false;
	pthread_mutex_lock(&k->lock);
	if (k->now)
		k->now->is_refused = true;
	pthread_mutex_unlock(&k->lock);
	return true;
}

/* ---- refusals */

void kube_put_plain(struct buf *out, struct str text)
{
	for (size_t i = 0; i < text.n && i < MAX_REASON_BYTES; i++)
		buf_char(out,
			 (unsigned char)text.p[i] < 0x20 || text.p[i] == 0x7f ? ' ' : text.p[i]);
}

/* The message of a Status, else the text itself. */
static void put_reason(struct buf *out, struct str body)
{
	struct arena a = { 0 };
	struct err ignored;
	const struct json *message = NULL;
	struct json root;

	if (json_parse(&a, body, &root, &ignored))
		message = json_member(&root, "message");
	if (message && message->type == JSON_STRING)
		body = message->text;
	kube_put_plain(out, str_trim(body));
	arena_release(&a);
}

bool kube_refused(const struct kube_config *c, const char *method, const char *path,
		  struct str status_text, struct str body, struct err *e)
{
	struct str where = str_of(path), what = str_cut(&where, '?');
	struct buf status = { 0 }, reason = { 0 };
	bool is_unknown = str_has_prefix(status_text, STR("401"));
	enum err_kind kind = str_has_prefix(status_text, STR("404")) ? ERR_NOTFOUND : ERR_IO;

	kube_put_plain(&status, status_text);
	put_reason(&reason, body);
	err_set(e, kind, "%s: %s %.*s: %.*s%s%.*s%s%s", c->server, method, STR_ARG(what),
		STR_ARG(buf_view(&status)), reason.n ? ": " : "", STR_ARG(buf_view(&reason)),
		is_unknown ? "; it does not take the credentials of " : "",
		is_unknown ? c->origin : "");
	buf_release(&status);
	buf_release(&reason);
	return false;
}

/* ---- requests */

/* One try. `q` has all but the URL and the headers. */
static bool try_once(struct kube_client *k, struct http_request q, const char *path,
		     const char *content_type, struct http_response *r, struct err *e)
{
	struct kube_session *s = take_session(k, e);
	vec(const char *) headers = { 0 };
	struct buf url = { 0 };
	bool ok;

	if (!s)
		return false;
	buf_printf(&url, "%s%s%c", k->config->server, path, '\0');
	for (size_t i = 0; i < s->headers.n; i++)
		vec_push(&headers, s->headers.at[i]);
	vec_push(&headers, "Accept: application/json, */*");
	if (content_type)
		vec_push(&headers, content_type);
	q.url = url.p;
	q.headers = headers.at;
	q.nheaders = headers.n;
	q.is_final = true; /* nobody is to lead us, and who we are, elsewhere: not a pod, either */
	q.proxy = *k->config->proxy ? k->config->proxy : NULL;
	ok = http_send(s->http, &q, r, e);
	if (!ok && e->kind == ERR_NOTFOUND) /* of a host; it may come back */
		e->kind = ERR_IO;
	buf_release(&url);
	vec_release(&headers);
	give_session(k, s);
	return ok;
}

static bool exchange(struct kube_client *k, const struct http_request *q, const char *path,
		     const char *content_type, struct http_response *r, struct err *e)
{
	bool ok = try_once(k, *q, path, content_type, r, e);

	if (ok && r->status == 401 && kube_renew(k))
		ok = try_once(k, *q, path, content_type, r, e);
	if (!ok || r->status / 100 == 2)
		return ok;
	return kube_refused(k->config, q->method, path, buf_view(&r->status_text),
			    buf_view(&r->body), e);
}

bool kube_send(struct kube_client *k, const struct kube_request *q, struct buf *answer, int *status,
	       struct err *e)
{
	struct http_request http = {
		.method = q->method ? q->method : "GET",
		.body = q->body,
		.max_bytes = q->max_bytes ? q->max_bytes : MAX_ANSWER_BYTES,
		.timeout_ms = q->timeout_ms ? q->timeout_ms : k->config->request_timeout_ms,
		.canceled = q->canceled,
	};
	struct http_response r = { 0 };
	struct buf type = { 0 };
	bool ok;

	if (q->body.p)
		buf_printf(&type, "Content-Type: %s%c",
			   q->content_type ? q->content_type : "application/json", '\0');
	ok = exchange(k, &http, q->path, type.p, &r, e);
	*status = r.status;
	if (ok && !answer->n) {
		buf_release(answer);
		*answer = r.body;
		r.body = (struct buf){ 0 };
	} else if (ok) {
		buf_str(answer, buf_view(&r.body));
	}
	buf_release(&type);
	http_response_release(&r);
	return ok;
}

bool kube_watch(struct kube_client *k, const struct kube_watch *w, int *status, struct err *e)
{
	struct http_request http = {
		.method = "GET",
		.max_bytes = MAX_REFUSAL_BYTES,
		.timeout_ms = w->timeout_ms,
		.connect_timeout_ms = k->config->request_timeout_ms,
		.canceled = w->canceled,
		.stream = w->stream,
		.stream_ctx = w->ctx,
	};
	struct http_response r = { 0 };
	bool ok = exchange(k, &http, w->path, NULL, &r, e);

	*status = r.status;
	http_response_release(&r);
	return ok;
}

/* ---- links */

bool kube_link_open(struct kube_client *k, struct kube_link *l, struct buf *headers,
		    atomic_bool *canceled, struct err *e)
{
	struct http_request q = {
		.url = k->config->server,
		.timeout_ms = k->config->request_timeout_ms,
		.canceled = canceled,
		.proxy = *k->config->proxy ? k->config->proxy : NULL,
	};

	l->http = NULL;
	l->session = take_session(k, e);
	if (!l->session)
		return false;
	for (size_t i = 0; i < l->session->headers.n; i++)
		buf_printf(headers, "%s\r\n", l->session->headers.at[i]);
	l->http = http_link_open(l->session->http, &q, e);
	if (!l->http)
		kube_link_close(k, l);
	return l->http;
}

void kube_link_close(struct kube_client *k, struct kube_link *l)
{
	http_link_free(l->http);
	if (l->session)
		give_session(k, l->session);
	*l = (struct kube_link){ 0 };
}
