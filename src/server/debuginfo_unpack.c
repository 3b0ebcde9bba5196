/* debuginfo_unpack.c - what was uploaded becomes a file, a piece at a time. */
#include <errno.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "server/debuginfo.h"

enum {
	PIECE = 256 << 10,
	LOOK_BYTES = 4 << 20, /* until it is looked again how full the disk is */
	MAX_WINDOW_LOG = 27,  /* of zstd: 128 MB of memory, as its own program allows */
};

struct target {
	int fd;
	uint64_t nbytes, max_bytes, min_free, next_look;
};

/* Others write to it, too. */
static bool has_room(struct target *t, struct err *e)
{
	struct statvfs disk;

	if (t->nbytes < t->next_look || fstatvfs(t->fd, &disk) != 0)
		return true;
	t->next_look = t->nbytes + LOOK_BYTES;
	return (uint64_t)disk.f_bavail * disk.f_frsize >= t->min_free ||
	       err_set(e, ERR_LIMIT, "min-free: the disk has no room for it");
}

static bool write_piece(struct target *t, const void *bytes, size_t n, struct err *e)
{
	const char *p = bytes;

	if (t->nbytes + n > t->max_bytes)
		return err_set(e, ERR_LIMIT, "max-debuginfo: it is larger than %llu bytes",
			       (unsigned long long)t->max_bytes);
	while (n) {
		ssize_t done;

		if (!has_room(t, e))
			return false;
		done = write(t->fd, p, n < LOOK_BYTES ? n : LOOK_BYTES);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0 && (errno == ENOSPC || errno == EDQUOT))
			return err_set(e, ERR_IO, "the disk is full");
		if (done < 0)
			return err_system(e, "write", "debuginfo");
		p += done;
		n -= (size_t)done;
		t->nbytes += (size_t)done;
	}
	return true;
}

static bool unpack_zstd(struct target *t, struct str body, struct err *e)
{
	ZSTD_DStream *z = ZSTD_createDStream();
	ZSTD_inBuffer in = { body.p, body.n, 0 };
	char *piece = xmalloc(PIECE);
	size_t left = 1;
	bool ok = true;

	ZSTD_DCtx_setParameter(z, ZSTD_d_windowLogMax, MAX_WINDOW_LOG);
	while (ok && (in.pos < in.size || left)) {
		ZSTD_outBuffer out = { piece, PIECE, 0 };
		size_t before = in.pos;

		left = ZSTD_decompressStream(z, &out, &in);
		if (ZSTD_isError(left))
			ok = err_set(e, ERR_FORMAT, "zstd: %s", ZSTD_getErrorName(left));
		else if (!out.pos && in.pos == before)
			ok = !left || err_set(e, ERR_FORMAT, "zstd: it is cut off");
		ok = ok && write_piece(t, piece, out.pos, e);
		if (ok && in.pos == in.size && !out.pos && !left)
			break;
	}
	free(piece);
	ZSTD_freeDStream(z);
	return ok;
}

static bool unpack_gzip(struct target *t, struct str body, struct err *e)
{
	z_stream z = { 0 };
	char *piece = xmalloc(PIECE);
	int code = Z_OK;
	bool ok = inflateInit2(&z, 15 + 16) == Z_OK || err_set(e, ERR_IO, "gzip: no memory");

	while (ok && code != Z_STREAM_END) {
		size_t n = body.n < PIECE ? body.n : PIECE;

		if (!z.avail_in) {
			z.next_in = (Bytef *)(uintptr_t)body.p;
			z.avail_in = (uInt)n;
			body = str_from(body, n);
		}
		z.next_out = (Bytef *)piece;
		z.avail_out = PIECE;
		code = inflate(&z, Z_NO_FLUSH);
		if (code == Z_BUF_ERROR ||
		    (code == Z_OK && !z.avail_in && !body.n && z.avail_out == PIECE))
			ok = err_set(e, ERR_FORMAT, "gzip: it is cut off");
		else if (code != Z_OK && code != Z_STREAM_END)
			ok = err_set(e, ERR_FORMAT, "gzip: %s", z.msg ? z.msg : "it is damaged");
		ok = ok && write_piece(t, piece, PIECE - z.avail_out, e);
	}
	inflateEnd(&z);
	free(piece);
	return ok;
}

bool debuginfo_unpack(struct str body, int fd, uint64_t max_bytes, uint64_t min_free, struct err *e)
{
	struct target t = { .fd = fd, .max_bytes = max_bytes, .min_free = min_free };

	if (str_has_prefix(body, STR("\x28\xb5\x2f\xfd")))
		return unpack_zstd(&t, body, e);
	if (str_has_prefix(body, STR("\x1f\x8b")))
		return unpack_gzip(&t, body, e);
	if (str_has_prefix(body, STR("\x7f"
				     "ELF")))
		return write_piece(&t, body.p, body.n, e);
	return err_set(e, ERR_FORMAT, "it is no ELF file, nor one that was packed by zstd or gzip");
}
