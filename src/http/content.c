#include "http/content.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/packer.h"

/* A packet holds as few anyway; what is larger is a file to keep, and nobody could stop the
 * packing. */
enum { MIN_PACKED_BYTES = 1000, MAX_PACKED_BYTES = 8 << 20 };

struct http_content {
	atomic_uint references;
	const char *type;
	struct buf bytes;
	pthread_mutex_t packing;
	bool is_packed;
	struct buf packed;
	char tag[40];
};

struct http_content *http_content_new(struct buf *bytes, const char *type)
{
	struct http_content *c = xcalloc(1, sizeof(*c));

	c->references = 1;
	c->type = type;
	c->bytes = *bytes;
	*bytes = (struct buf){ 0 };
	pthread_mutex_init(&c->packing, NULL);
	snprintf(c->tag, sizeof(c->tag), "\"%016llx%016llx\"",
		 (unsigned long long)hash_bytes(1, c->bytes.p, c->bytes.n),
		 (unsigned long long)hash_bytes(2, c->bytes.p, c->bytes.n));
	return c;
}

struct http_content *http_content_hold(struct http_content *c)
{
	atomic_fetch_add(&c->references, 1);
	return c;
}

void http_content_drop(struct http_content *c)
{
	if (!c || atomic_fetch_sub(&c->references, 1) > 1)
		return;
	buf_release(&c->bytes);
	buf_release(&c->packed);
	pthread_mutex_destroy(&c->packing);
	free(c);
}

struct str http_content_bytes(const struct http_content *c)
{
	return buf_view(&c->bytes);
}

static void pack(struct http_content *c)
{
	struct libdeflate_compressor *packer;

	if (c->bytes.n < MIN_PACKED_BYTES || c->bytes.n > MAX_PACKED_BYTES ||
	    str_has_suffix(str_of(c->type), STR("gzip")) ||
	    str_has_prefix(buf_view(&c->bytes), STR("\x1f\x8b"))) /* gzip's own mark */
		return;
	packer = packer_take(PACKER_SMALL);
	/* Not worth it if it does not get smaller, so that is all the room there is. */
	c->packed.n = libdeflate_gzip_compress(packer, c->bytes.p, c->bytes.n,
					       buf_room(&c->packed, c->bytes.n), c->bytes.n);
	packer_give(packer, PACKER_SMALL);
	if (c->packed.n) {
		c->packed.p = xrealloc(c->packed.p, c->packed.n);
		c->packed.cap = c->packed.n;
	} else {
		buf_release(&c->packed);
	}
}

struct str http_content_packed(struct http_content *c)
{
	pthread_mutex_lock(&c->packing);
	if (!c->is_packed)
		pack(c);
	c->is_packed = true;
	pthread_mutex_unlock(&c->packing);
	return buf_view(&c->packed);
}

const char *http_content_type(const struct http_content *c)
{
	return c->type;
}

const char *http_content_tag(const struct http_content *c)
{
	return c->tag;
}

size_t http_content_size(const struct http_content *c)
{
	return sizeof(*c) + c->bytes.cap + c->bytes.n / 4;
}
