#include "fetch/remote.h"

#include <ctype.h>
#include <stdlib.h>

struct fetch_remote *fetch_remote_new(const struct http_tls *tls)
{
	struct fetch_remote *r = xcalloc(1, sizeof(*r));

	r->client = http_client_new(tls);
	return r;
}

void fetch_remote_free(struct fetch_remote *r)
{
	if (!r)
		return;
	http_client_free(r->client);
	vec_release(&r->origins);
	arena_release(&r->arena);
	free(r);
}

bool fetch_remote_is_used(const struct fetch_remote *r)
{
	return r->is_used;
}

/* A server's words go to a terminal: nothing in them may steer it. */
static void put_harmless(struct buf *out, struct str s)
{
	s = str_trim(s);
	for (size_t i = 0; i < s.n; i++)
		buf_char(out, iscntrl((unsigned char)s.p[i]) && s.p[i] != '\n' ? '?' : s.p[i]);
}

static bool fail_status(const struct http_response *r, struct err *e)
{
	struct buf text = { 0 };

	put_harmless(&text, buf_view(&r->status_text));
	/* What comes from net/http/pprof itself is meant to be read. */
	if (http_header(r, "X-Go-Pprof").n &&
	    str_contains(http_header(r, "Content-Type"), STR("text/plain"))) {
		buf_puts(&text, " - ");
		put_harmless(&text, buf_view(&r->body));
	}
	err_set(e, ERR_IO, "server response: %.*s", STR_ARG(buf_view(&text)));
	buf_release(&text);
	return false;
}

bool remote_send(struct fetch_remote *r, const struct http_request *q, struct http_response *out,
		 struct err *e)
{
	if (!http_send(r->client, q, out, e)) {
		if (e->kind == ERR_LIMIT)
			strncat(e->text, "; raise -max_profile_size",
				sizeof(e->text) - strlen(e->text) - 1);
		return q->body.p ? err_wrap(e, "http post %s", q->url) : err_wrap(e, "http fetch");
	}
	if (out->status == 200)
		return true;
	fail_status(out, e);
	return q->body.p ? err_wrap(e, "http post %s", q->url) : false;
}

void remote_origins(struct fetch_remote *r, const struct profile *p, const char *url)
{
	const char *kept = str_dup(&r->arena, str_of(url));

	for (uint32_t i = 0; i < p->nmappings; i++) {
		const struct mapping *m = &p->mappings[i];
		struct str key = profile_str(p, m->build_id ? m->build_id : m->file);

		vec_push(&r->origins,
			 (struct origin){ str_of(str_dup(&r->arena, key)), kept, m->start });
	}
	r->is_used = true;
}
