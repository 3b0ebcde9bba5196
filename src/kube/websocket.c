/* websocket.c - a WebSocket to the API server: the handshake and frames of RFC 6455. */
#include <poll.h>
#include <sha1.h>
#include <stdlib.h>

#include "base/base64.h"
#include "base/wait.h"
#include "kube/inside.h"

enum {
	READ_BYTES = 16 << 10,
	MAX_HEAD_BYTES = 64 << 10,
	MAX_REFUSAL_BYTES = 64 << 10,
	POLL_MS = 100, /* how often `canceled` is looked at */
	OPCODE_MORE = 0,
	OPCODE_BINARY = 2,
	OPCODE_CLOSE = 8,
	OPCODE_PING = 9,
	OPCODE_PONG = 10,
};

struct websocket {
	struct kube_client *k;
	struct kube_link link;
	struct buf in, out, message;
};

/* ---- frames */

int frame_read(struct str in, struct frame *f, struct err *e)
{
	const unsigned char *p = (const unsigned char *)in.p;
	uint64_t n;

	if (in.n < 2)
		return 0;
	f->is_last = p[0] & 0x80;
	f->opcode = p[0] & 0x0f;
	n = p[1] & 0x7f;
	f->head_bytes = n == 127 ? 10 : n == 126 ? 4 : 2;
	if ((p[0] & 0x70) || (p[1] & 0x80))
		return err_set(e, ERR_FORMAT, "the server's WebSocket frame is none") - 1;
	if (in.n < f->head_bytes)
		return 0;
	if (n >= 126) {
		n = 0;
		for (size_t i = 2; i < f->head_bytes; i++)
			n = n << 8 | p[i];
	}
	if (n > MAX_MESSAGE_BYTES || (f->opcode >= OPCODE_CLOSE && (n > 125 || !f->is_last)))
		return err_set(e, ERR_LIMIT, "the server's WebSocket frame is too large") - 1;
	f->body_bytes = (size_t)n;
	return in.n - f->head_bytes >= n;
}

/* What clients send is masked, for the sake of proxies. */
static void put_frame(struct buf *out, unsigned opcode, struct str first, struct str rest)
{
	uint32_t random = arc4random();
	unsigned char mask[4];
	size_t n = first.n + rest.n, start;

	memcpy(mask, &random, sizeof(mask));
	buf_char(out, (char)(0x80 | opcode));
	if (n < 126) {
		buf_char(out, (char)(0x80 | n));
	} else if (n < 1 << 16) {
		buf_char(out, (char)(0x80 | 126));
		buf_char(out, (char)(n >> 8));
		buf_char(out, (char)(n & 0xff));
	} else {
		buf_char(out, (char)(0x80 | 127));
		for (int shift = 56; shift >= 0; shift -= 8)
			buf_char(out, (char)((uint64_t)n >> shift & 0xff));
	}
	buf_add(out, mask, sizeof(mask));
	start = out->n;
	buf_str(out, first);
	buf_str(out, rest);
	for (size_t i = 0; i < n; i++)
		out->p[start + i] = (char)(out->p[start + i] ^ mask[i % 4]);
}

void websocket_put(struct websocket *w, uint8_t channel, struct str bytes)
{
	put_frame(&w->out, OPCODE_BINARY, (struct str){ (const char *)&channel, 1 }, bytes);
}

/* ---- bytes in and out */

int websocket_fd(const struct websocket *w)
{
	return http_link_fd(w->link.http);
}

size_t websocket_queued(const struct websocket *w)
{
	return w->out.n;
}

static void drop_front(struct buf *b, size_t n)
{
	memmove(b->p, b->p + n, b->n - n);
	b->n -= n;
}

bool websocket_flush(struct websocket *w, struct err *e)
{
	while (w->out.n) {
		ptrdiff_t n = http_link_send(w->link.http, buf_view(&w->out), e);

		if (n < 0)
			return false;
		if (n == 0)
			break;
		drop_front(&w->out, (size_t)n);
	}
	return true;
}

/* 1: there are more bytes, 0: not now, -1: it failed, or has ended (ERR_NONE). */
static int receive(struct websocket *w, struct err *e)
{
	ptrdiff_t n = http_link_recv(w->link.http, buf_room(&w->in, READ_BYTES), READ_BYTES, e);

	if (n < 0 && e->kind == ERR_NOTFOUND)
		e->kind = ERR_NONE;
	if (n > 0)
		w->in.n += (size_t)n;
	return n > 0 ? 1 : (int)n;
}

/* 1: go on, -1: the end, or an error. */
static int take_frame(struct websocket *w, const struct frame *f, take_message *take, void *ctx,
		      struct err *e)
{
	struct str body = { w->in.p + f->head_bytes, f->body_bytes };

	e->kind = ERR_NONE;
	switch (f->opcode) {
	case OPCODE_PING:
		if (w->out.n < MAX_MESSAGE_BYTES)
			put_frame(&w->out, OPCODE_PONG, body, STR(""));
		return 1;
	case OPCODE_PONG:
		return 1;
	case OPCODE_CLOSE:
		return -1;
	case OPCODE_MORE:
	case OPCODE_BINARY:
		break;
	default:
		return err_set(e, ERR_FORMAT,
			       "the server's WebSocket message is of no known kind") -
		       1;
	}
	if (w->message.n + body.n > MAX_MESSAGE_BYTES)
		return err_set(e, ERR_LIMIT, "the server's WebSocket message is too large") - 1;
	buf_str(&w->message, body);
	if (!f->is_last)
		return 1;
	if (!take(ctx, buf_view(&w->message)))
		return -1;
	w->message.n = 0;
	return 1;
}

static int take_frames(struct websocket *w, take_message *take, void *ctx, struct err *e)
{
	for (;;) {
		struct frame f;
		int there = frame_read(buf_view(&w->in), &f, e);

		if (there <= 0)
			return there;
		if (take_frame(w, &f, take, ctx, e) < 0)
			return -1;
		drop_front(&w->in, f.head_bytes + f.body_bytes);
	}
}

int websocket_read(struct websocket *w, take_message *take, void *ctx, struct err *e)
{
	int more;

	if (take_frames(w, take, ctx, e) < 0)
		return -1;
	more = receive(w, e);
	if (more > 0 && take_frames(w, take, ctx, e) < 0)
		return -1;
	return more;
}

/* ---- the handshake */

struct handshake {
	struct websocket *w;
	const char *path, *protocol;
	atomic_bool *canceled;
	int64_t end_ms;
	struct http_response r;
	char key[32]; /* base64 of 16 bytes */
};

/* For events on the link; false: time is up. */
static bool wait_for(struct handshake *h, short events, struct err *e)
{
	struct pollfd fd = { websocket_fd(h->w), events, 0 };
	int64_t left = h->end_ms - clock_now_ms();

	if (h->canceled && atomic_load(h->canceled))
		return err_set(e, ERR_IO, "context canceled");
	if (left <= 0)
		return err_set(e, ERR_IO, "no answer in time");
	poll(&fd, 1, left < POLL_MS ? (int)left : POLL_MS);
	return true;
}

static void make_key(struct handshake *h)
{
	unsigned char bytes[16];
	struct buf text = { 0 };

	arc4random_buf(bytes, sizeof(bytes));
	base64_put(&text, (struct str){ (const char *)bytes, sizeof(bytes) });
	memcpy(h->key, text.p, text.n < sizeof(h->key) ? text.n : sizeof(h->key) - 1);
	buf_release(&text);
}

static void put_request(struct handshake *h, struct str headers)
{
	struct str server = str_of(kube_client_config(h->w->k)->server);
	struct str host = str_from(server, str_find(server, STR("://")) + 3);
	struct str prefix = host;

	host = str_cut(&prefix, '/');
	buf_printf(&h->w->out,
		   "GET %s%.*s%s HTTP/1.1\r\nHost: %.*s\r\nUser-Agent: kiln\r\n"
		   "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
		   "Sec-WebSocket-Key: %s\r\nSec-WebSocket-Protocol: %s\r\n%.*s\r\n",
		   prefix.n ? "/" : "", STR_ARG(prefix), h->path, STR_ARG(host), h->key,
		   h->protocol, STR_ARG(headers));
}

/* The first line and the headers, out of h->w->in. */
static void split_head(struct handshake *h, size_t end)
{
	struct str head = { h->w->in.p, end }, line = str_trim(str_cut(&head, '\n'));
	struct http_response *r = &h->r;

	str_cut(&line, ' ');
	buf_str(&r->status_text, line);
	r->status = 0;
	for (size_t i = 0; i < 3 && i < line.n && line.p[i] >= '0' && line.p[i] <= '9'; i++)
		r->status = r->status * 10 + (line.p[i] - '0');
	while (head.n) {
		buf_str(&r->headers, str_trim(str_cut(&head, '\n')));
		buf_char(&r->headers, '\n');
	}
	drop_front(&h->w->in, end + 4);
}

static bool read_head(struct handshake *h, struct err *e)
{
	struct buf *in = &h->w->in;

	for (;;) {
		size_t end = str_find(buf_view(in), STR("\r\n\r\n"));
		int more;

		if (end != STR_NONE) {
			split_head(h, end);
			return true;
		}
		if (in->n > MAX_HEAD_BYTES)
			return err_set(e, ERR_LIMIT, "the server's headers are too large");
		more = receive(h->w, e);
		if (more < 0)
			return e->kind || err_set(e, ERR_IO, "EOF");
		if (!more && !wait_for(h, POLLIN, e))
			return false;
	}
}

/* What the server says of its refusal, as far as it comes soon. */
static void read_refusal(struct handshake *h)
{
	int64_t soon = clock_now_ms() + 2000;
	uint64_t length = MAX_REFUSAL_BYTES;
	struct str text = http_header(&h->r, "Content-Length");
	struct err ignored;
	int more = 1;

	for (size_t i = 0; i < text.n && i < 6; i++)
		length = (i ? length * 10 : 0) + (uint64_t)(text.p[i] - '0') % 10;
	h->end_ms = soon < h->end_ms ? soon : h->end_ms;
	while (more >= 0 && h->w->in.n < length && h->w->in.n < MAX_REFUSAL_BYTES) {
		more = receive(h->w, &ignored);
		if (!more && !wait_for(h, POLLIN, &ignored))
			break;
	}
}

static bool is_accepted(const struct handshake *h)
{
	static const char id[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
	uint8_t digest[SHA1_DIGEST_LENGTH];
	struct buf want = { 0 };
	SHA1_CTX c;
	bool ok;

	SHA1Init(&c);
	SHA1Update(&c, (const uint8_t *)h->key, strlen(h->key));
	SHA1Update(&c, (const uint8_t *)id, sizeof(id) - 1);
	SHA1Final(digest, &c);
	base64_put(&want, (struct str){ (const char *)digest, sizeof(digest) });
	ok = str_eq(buf_view(&want), http_header(&h->r, "Sec-WebSocket-Accept"));
	buf_release(&want);
	return ok;
}

static bool judge(struct handshake *h, struct err *e)
{
	const struct kube_config *c = kube_client_config(h->w->k);
	struct str protocol = http_header(&h->r, "Sec-WebSocket-Protocol");

	if (h->r.status != 101) {
		read_refusal(h);
		return kube_refused(c, "GET", h->path, buf_view(&h->r.status_text),
				    buf_view(&h->w->in), e);
	}
	if (!is_accepted(h))
		return err_set(e, ERR_IO, "%s: it agrees to a WebSocket, but not to ours",
			       c->server);
	return str_eq(protocol, str_of(h->protocol)) ||
	       err_set(e, ERR_IO, "%s: the WebSocket's protocol is \"%.*s\", not %s", c->server,
		       STR_ARG(protocol), h->protocol);
}

static bool shake_hands(struct handshake *h, struct err *e)
{
	struct buf headers = { 0 };
	bool ok = kube_link_open(h->w->k, &h->w->link, &headers, h->canceled, e);

	if (ok) {
		make_key(h);
		put_request(h, buf_view(&headers));
	}
	buf_release(&headers);
	while (ok && h->w->out.n) {
		ok = websocket_flush(h->w, e);
		if (ok && h->w->out.n)
			ok = wait_for(h, POLLOUT, e);
	}
	ok = ok && read_head(h, e);
	if (!ok && e->kind == ERR_NOTFOUND)
		e->kind = ERR_IO;
	return ok && judge(h, e);
}

static struct websocket *open_once(struct kube_client *k, struct handshake *h, struct err *e)
{
	struct websocket *w = xcalloc(1, sizeof(*w));

	w->k = k;
	h->w = w;
	h->r = (struct http_response){ 0 };
	h->end_ms = clock_now_ms() + kube_client_config(k)->request_timeout_ms;
	if (!shake_hands(h, e)) {
		websocket_free(w);
		w = NULL;
	}
	http_response_release(&h->r);
	return w;
}

struct websocket *websocket_open(struct kube_client *k, const char *path, const char *protocol,
				 atomic_bool *canceled, struct err *e)
{
	struct handshake h = { .path = path, .protocol = protocol, .canceled = canceled };
	struct websocket *w = open_once(k, &h, e);

	return !w && h.r.status == 401 && kube_renew(k) ? open_once(k, &h, e) : w;
}

void websocket_free(struct websocket *w)
{
	if (!w)
		return;
	kube_link_close(w->k, &w->link);
	buf_release(&w->in);
	buf_release(&w->out);
	buf_release(&w->message);
	free(w);
}
