#include "web/assets.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* An array for each file, and the table of them; the Makefile writes it. */
#include "web/assets.inc"

enum { MAX_FILE_BYTES = 4 << 20 };

static bool read_file(struct buf *out, const char *dir, struct str name)
{
	char path[4096];
	ssize_t n = 1;
	int fd;

	/* One level only: no way out of the directory. */
	if (!name.n || name.p[0] == '.' || memchr(name.p, '/', name.n) ||
	    memchr(name.p, '\0', name.n))
		return false;
	snprintf(path, sizeof(path), "%s/%.*s", dir, STR_ARG(name));
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return false;
	while (n && out->n < MAX_FILE_BYTES) {
		n = read(fd, buf_room(out, 1 << 16), 1 << 16);
		if (n < 0 && errno != EINTR)
			break;
		if (n > 0)
			out->n += (size_t)n;
	}
	close(fd);
	return n == 0;
}

bool asset_read(struct buf *out, const char *dir, struct str name)
{
	if (*dir)
		return read_file(out, dir, name);
	for (size_t i = 0; i < assets_n; i++) {
		if (str_eq(name, str_of(assets[i].name))) {
			buf_add(out, assets[i].bytes, assets[i].n);
			return true;
		}
	}
	return false;
}

const char *asset_type(struct str name)
{
	static const struct {
		struct str extension;
		const char *type;
	} types[] = {
		{ { ".html", 5 }, "text/html; charset=utf-8" },
		{ { ".css", 4 }, "text/css; charset=utf-8" },
		{ { ".js", 3 }, "text/javascript; charset=utf-8" },
		{ { ".svg", 4 }, "image/svg+xml" },
		{ { ".png", 4 }, "image/png" },
		{ { ".json", 5 }, "application/json" },
	};

	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
		if (str_has_suffix(name, types[i].extension))
			return types[i].type;
	return "application/octet-stream";
}
