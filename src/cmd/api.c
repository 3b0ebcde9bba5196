#include "cmd/api.h"

#include <stdlib.h>

#include "base/small_file.h"
#include "base/vec.h"
#include "http/target.h"

enum {
	MAX_TOKEN = 64 << 10,
	MAX_ANSWER = 64 << 20,
	ASK_MS = 60000,
	TOO_MANY = 429,
	SERVER_ERROR = 500,
};

static bool read_token(struct api *api, const char *file, struct err *e)
{
	const char *known = getenv("KILN_TOKEN");
	struct buf text = { 0 };
	bool ok = true;

	if (*file)
		ok = small_file_read(&text, file, MAX_TOKEN, e) || err_wrap(e, "--token-file");
	else if (known)
		buf_puts(&text, known);
	if (ok && str_trim(buf_view(&text)).n) {
		struct str token = str_trim(buf_view(&text));

		buf_printf(&api->token, "Authorization: Bearer %.*s%c", STR_ARG(token), '\0');
	}
	buf_release(&text);
	return ok;
}

bool api_open(struct api *api, const struct api_options *o, struct err *e)
{
	struct http_tls tls = { .cert = o->tls_cert, .key = o->tls_key, .ca = o->tls_ca };

	*api = (struct api){ .to = str_of(o->to) };
	while (str_has_suffix(api->to, STR("/")))
		api->to.n--;
	if (!read_token(api, o->token_file, e))
		return false;
	api->client = http_client_new(&tls);
	return true;
}

void api_close(struct api *api)
{
	http_client_free(api->client);
	buf_release(&api->token);
}

bool api_send(struct api *api, const struct api_request *q, struct http_response *r, struct err *e)
{
	struct buf url = { 0 };
	const char *headers[] = { "User-Agent: kiln", "Content-Type: application/octet-stream",
				  api->token.p };
	struct http_request request = { .method = q->method,
					.headers = headers,
					.nheaders = api->token.n ? 3 : 2,
					.body = q->body,
					.timeout_ms = q->timeout_ms ? q->timeout_ms : ASK_MS,
					.max_bytes = MAX_ANSWER,
					.canceled = q->canceled };
	bool ok;

	buf_printf(&url, "%.*s%s%c", STR_ARG(api->to), q->path, '\0');
	request.url = url.p;
	ok = http_send(api->client, &request, r, e);
	buf_release(&url);
	return ok;
}

/* The server's JSON has an "error". */
bool api_fail(const struct http_response *r, struct err *e)
{
	struct arena a = { 0 };
	struct json json;
	const struct json *why = NULL;

	if (json_parse(&a, buf_view(&r->body), &json, e))
		why = json_member(&json, "error");
	err_set(e, ERR_IO, "the server answers %.*s%s%.*s", STR_ARG(buf_view(&r->status_text)),
		why ? ": " : "", STR_ARG(why ? why->text : STR("")));
	arena_release(&a);
	return false;
}

bool api_get_json(struct api *api, struct arena *a, const char *path, struct json *out,
		  struct str *text, struct err *e)
{
	struct http_response r = { 0 };
	bool ok = api_send(api, &(struct api_request){ .path = path }, &r, e) &&
		  (r.status == 200 || api_fail(&r, e));

	/* What is parsed points into it. */
	if (ok)
		*text = (struct str){ str_dup(a, buf_view(&r.body)), r.body.n };
	http_response_release(&r);
	return ok && (json_parse(a, *text, out, e) ||
		      err_wrap(e, "%.*s%s: is this a server of kiln?", STR_ARG(api->to), path));
}

/* ---- storing */

static void put_param(struct buf *out, const char *name, struct str value)
{
	buf_printf(out, "%s=", name);
	http_put_escaped(out, value);
}

/* Each name and value is escaped for the list, and the list for the URL. */
static void put_labels(struct buf *out, const struct target_label *labels, size_t n)
{
	struct buf list = { 0 };

	for (size_t i = 0; i < n; i++) {
		if (i)
			buf_char(&list, ',');
		http_put_escaped(&list, labels[i].name);
		buf_char(&list, '=');
		http_put_escaped(&list, labels[i].value);
	}
	if (n)
		put_param(out, "&labels", buf_view(&list));
	buf_release(&list);
}

static void read_id(const struct http_response *r, char id[COLLECT_ID_BYTES])
{
	const struct json *body, *found = NULL;
	struct arena a = { 0 };
	struct json json;
	struct err e;

	*id = '\0';
	body = json_parse(&a, buf_view(&r->body), &json, &e) ? json_member(&json, "body") : NULL;
	if (body)
		found = json_member(body, "id");
	if (found && found->text.n < COLLECT_ID_BYTES) {
		memcpy(id, found->text.p, found->text.n);
		id[found->text.n] = '\0';
	}
	arena_release(&a);
}

enum collect_result api_push(struct api *api, const struct collected *p, char id[COLLECT_ID_BYTES],
			     struct err *e)
{
	enum collect_result result = COLLECT_OK;
	struct http_response r = { 0 };
	struct buf path = { 0 };

	put_param(&path, "/api/0/profiles?service", p->service);
	put_param(&path, "&type", p->type);
	if (p->instance.n)
		put_param(&path, "&instance_id", p->instance);
	put_labels(&path, p->labels, p->nlabels);
	buf_char(&path, '\0');
	if (!api_send(api, &(struct api_request){ .path = path.p, .body = p->bytes }, &r, e)) {
		result = COLLECT_UNREACHABLE;
	} else if (r.status == 200) {
		read_id(&r, id);
	} else {
		api_fail(&r, e);
		result = r.status == TOO_MANY || r.status >= SERVER_ERROR ? COLLECT_UNREACHABLE
									  : COLLECT_REFUSED;
	}
	buf_release(&path);
	http_response_release(&r);
	return result;
}

bool api_labels_parse(struct arena *a, const char *option, const char *text,
		      struct target_label **labels, size_t *n, struct err *e)
{
	struct str rest = str_of(text);
	vec(struct target_label) found = { 0 };
	bool ok = true;

	while (rest.n && ok) {
		struct str value = str_cut(&rest, ','), name = str_trim(str_cut(&value, '='));

		ok = (label_is_name(name) && value.p && found.n < MAX_LABELS) ||
		     err_set(e, ERR_USAGE, "--%s %s: write NAME=VALUE,NAME=VALUE", option, text);
		vec_push(&found, (struct target_label){ name, str_trim(value) });
	}
	*n = found.n;
	*labels = vec_adopt(a, &found);
	return ok;
}
