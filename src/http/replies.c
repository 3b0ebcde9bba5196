/* replies.c - what a handler has said goes out. */
#include "http/inside.h"

static void drop_content(void *content)
{
	http_content_drop(content);
}

/* Does the peer have these bytes already? */
static bool is_known(const struct exchange *x)
{
	struct str have = http_call_header(&x->call, "If-None-Match");

	return x->reply.status == 200 && have.n &&
	       str_contains(have, str_of(http_content_tag(x->reply.content)));
}

static struct MHD_Response *make_response(struct exchange *x, unsigned *status)
{
	struct http_server *s = x->server;
	struct http_reply *r = &x->reply;
	struct str bytes = { 0 }, packed = { 0 };
	struct MHD_Response *response;
	bool is_repeated = r->content && is_known(x);

	*status = (unsigned)(is_repeated ? 304 : r->status);
	if (r->content && !is_repeated) {
		bytes = http_content_bytes(r->content);
		if (x->accepts_gzip)
			packed = http_content_packed(r->content);
		if (packed.n)
			bytes = packed;
	}
	x->sent = (struct http_sent){ .status = (int)*status, .body_bytes = bytes.n };
	response = s->mhd.response(bytes.n, (char *)(uintptr_t)bytes.p, drop_content,
				   r->content ? http_content_hold(r->content) : NULL);
	if (!response)
		return NULL;
	if (r->content) {
		s->mhd.header(response, "Content-Type", http_content_type(r->content));
		s->mhd.header(response, "ETag", http_content_tag(r->content));
		s->mhd.header(response, "Vary", "Accept-Encoding");
	}
	if (packed.n)
		s->mhd.header(response, "Content-Encoding", "gzip");
	return response;
}

static struct MHD_Response *make_stream(struct exchange *x, unsigned *status)
{
	*status = (unsigned)x->reply.status;
	x->sent = (struct http_sent){ .status = x->reply.status };
	return stream_response(x);
}

/* Whom we know by a certificate that may not be good any more comes again to show it. */
static bool is_outdated(struct http_server *s, const struct peer *peer)
{
	return peer->keys && !http_tls_is_trusted(&s->tls, peer->keys);
}

enum MHD_Result exchange_send(struct exchange *x)
{
	struct http_server *s = x->server;
	enum MHD_Result result;
	unsigned status;
	struct MHD_Response *response =
		x->reply.stream ? make_stream(x, &status) : make_response(x, &status);

	if (!response)
		return MHD_NO;
	peer_set_deadline(s, x->peer, clock_now_ms(), x->sent.body_bytes, x->sent.body_bytes);
	for (size_t i = 0; i < x->reply.nheaders; i++)
		s->mhd.header(response, x->reply.headers[i][0], x->reply.headers[i][1]);
	for (const char *const(*h)[2] = s->params.headers; h && (*h)[0]; h++)
		s->mhd.header(response, (*h)[0], (*h)[1]);
	if (atomic_load(&s->is_draining) || is_outdated(s, x->peer))
		s->mhd.header(response, "Connection", "close");
	result = s->mhd.queue(x->connection, status, response);
	s->mhd.forget(response);
	return result;
}

void exchange_say(struct http_reply *r, int status, const char *text)
{
	struct buf bytes = { 0 };

	buf_puts(&bytes, text);
	r->status = status;
	r->content = http_content_new(&bytes, "text/plain; charset=utf-8");
}
