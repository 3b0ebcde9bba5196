#include "collect/secrets.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/base64.h"
#include "base/json.h"
#include "base/wait.h"
#include "http/target.h"

enum {
	MAX_ANSWER = 4 << 20,
	MAX_SECRET = 64 << 10,
	MAX_KEPT = 256,
	KEPT_MS = 30000,
};

/* ---- one, as the API server has it */

static bool decode(struct str answer, const struct pod_secret *s, struct buf *out, struct err *e)
{
	struct arena a = { 0 };
	const struct json *data, *value = NULL;
	struct json json;
	bool ok = json_parse(&a, answer, &json, e);

	data = ok ? json_member(&json, "data") : NULL;
	if (data)
		value = json_member(data, s->key);
	if (ok && !value)
		ok = err_set(e, ERR_NOTFOUND, "it has no key %s", s->key);
	ok = ok && ((value->type == JSON_STRING && base64_decode(out, value->text) &&
		     out->n <= MAX_SECRET) ||
		    err_set(e, ERR_FORMAT, "its key %s is no text", s->key));
	arena_release(&a);
	return ok;
}

/* It becomes a header: nothing that would begin another. */
static bool is_one_line(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if ((unsigned char)s.p[i] < ' ')
			return false;
	return s.n;
}

static bool make_header(struct arena *a, const struct pod_secret *s, struct str secret,
			const char **header, struct err *e)
{
	struct buf text = { 0 }, pair = { 0 };

	secret = str_trim(secret);
	if (!is_one_line(secret))
		return err_set(e, ERR_FORMAT, "its key %s is not one line of text", s->key);
	if (*s->user) {
		buf_printf(&pair, "%s:%.*s", s->user, STR_ARG(secret));
		buf_puts(&text, "Authorization: Basic ");
		base64_put(&text, buf_view(&pair));
	} else {
		buf_printf(&text, "Authorization: Bearer %.*s", STR_ARG(secret));
	}
	*header = str_dup(a, buf_view(&text));
	buf_release(&text);
	buf_release(&pair);
	return true;
}

bool pod_secret_read(struct arena *a, struct kube_client *k, const char *namespace,
		     const struct pod_secret *s, atomic_bool *canceled, const char **header,
		     struct err *e)
{
	struct buf path = { 0 }, answer = { 0 }, value = { 0 };
	struct kube_request q = { .max_bytes = MAX_ANSWER, .canceled = canceled };
	int status;
	bool ok;

	buf_puts(&path, "/api/v1/namespaces/");
	http_put_escaped(&path, str_of(namespace));
	buf_puts(&path, "/secrets/");
	http_put_escaped(&path, str_of(s->name));
	buf_char(&path, '\0');
	q.path = path.p;
	ok = (kube_send(k, &q, &answer, &status, e) && decode(buf_view(&answer), s, &value, e) &&
	      make_header(a, s, buf_view(&value), header, e)) ||
	     err_wrap(e, "secret %s", s->name);
	buf_release(&path);
	buf_release(&answer);
	buf_release(&value);
	return ok;
}

/* ---- many */

struct kept {
	struct arena arena; /* of all of it */
	const char *namespace, *header;
	struct pod_secret secret;
	int64_t until_ms; /* monotonic; 0: there is nothing here */
};

struct secrets {
	struct kube_client *k;
	pthread_mutex_t lock; /* of what follows */
	struct kept at[MAX_KEPT];
};

struct secrets *secrets_new(struct kube_client *k)
{
	struct secrets *s = xcalloc(1, sizeof(*s));

	s->k = k;
	pthread_mutex_init(&s->lock, NULL);
	return s;
}

void secrets_free(struct secrets *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < MAX_KEPT; i++)
		arena_release(&s->at[i].arena);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

static bool is_it(const struct kept *x, const char *namespace, const struct pod_secret *secret)
{
	return strcmp(x->namespace, namespace) == 0 && strcmp(x->secret.name, secret->name) == 0 &&
	       strcmp(x->secret.key, secret->key) == 0 && strcmp(x->secret.user, secret->user) == 0;
}

/* In `a`, or NULL. */
static const char *find(struct secrets *s, struct arena *a, const char *namespace,
			const struct pod_secret *secret)
{
	int64_t now = clock_now_ms();
	const char *header = NULL;

	pthread_mutex_lock(&s->lock);
	for (size_t i = 0; i < MAX_KEPT && !header; i++)
		if (s->at[i].until_ms > now && is_it(&s->at[i], namespace, secret))
			header = str_dup(a, str_of(s->at[i].header));
	pthread_mutex_unlock(&s->lock);
	return header;
}

/* In the place of the one that ends first. */
static void keep(struct secrets *s, const char *namespace, const struct pod_secret *secret,
		 const char *header)
{
	struct kept fresh = { .until_ms = clock_now_ms() + KEPT_MS };
	struct arena *a = &fresh.arena;
	size_t oldest = 0;

	fresh.namespace = str_dup(a, str_of(namespace));
	fresh.header = str_dup(a, str_of(header));
	fresh.secret = (struct pod_secret){ str_dup(a, str_of(secret->name)),
					    str_dup(a, str_of(secret->key)),
					    str_dup(a, str_of(secret->user)) };
	pthread_mutex_lock(&s->lock);
	for (size_t i = 1; i < MAX_KEPT; i++)
		if (s->at[i].until_ms < s->at[oldest].until_ms)
			oldest = i;
	arena_release(&s->at[oldest].arena);
	s->at[oldest] = fresh;
	pthread_mutex_unlock(&s->lock);
}

bool secrets_get(struct secrets *s, struct arena *a, const char *namespace,
		 const struct pod_secret *secret, atomic_bool *canceled, const char **header,
		 struct err *e)
{
	*header = find(s, a, namespace, secret);
	if (*header)
		return true;
	if (!pod_secret_read(a, s->k, namespace, secret, canceled, header, e))
		return false;
	keep(s, namespace, secret, *header);
	return true;
}
