#include "fetch/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MIN_ROOM = 1 << 16 };

static bool looks_like_url(struct str s)
{
	struct str host = s;

	if (str_contains(s, STR("://")))
		return true;
	host = str_cut(&s, '/');
	return str_find_char(host, ':') != STR_NONE;
}

static bool fail_missing(const char *path, struct err *e)
{
	if (errno == ENOENT && looks_like_url(str_of(path)))
		return err_set(e, ERR_NOTFOUND,
			       "http fetch: this kiln reads files only; save it first, e.g. with "
			       "curl -o profile.pb.gz '%s'",
			       path);
	return err_system(e, "stat", path);
}

/* The size that a file claims is only where to start: it may grow, or be a pipe. */
static bool read_all(struct arena *a, int fd, const char *path, size_t room, size_t max_bytes,
		     struct str *out, struct err *e)
{
	char *to = arena_alloc(a, room);
	size_t n = 0;

	for (;;) {
		ssize_t got = read(fd, to + n, room - n);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_system(e, "read", path);
		n += (size_t)got;
		if (got == 0)
			break;
		if (n > max_bytes)
			return err_set(e, ERR_LIMIT,
				       "file is larger than %zu bytes; raise -max_profile_size",
				       max_bytes);
		if (n == room) {
			char *more = arena_alloc(a, room * 2);

			memcpy(more, to, n);
			to = more;
			room *= 2;
		}
	}
	*out = (struct str){ to, n };
	return true;
}

bool file_read(struct arena *a, const char *path, size_t max_bytes, struct str *out, struct err *e)
{
	struct stat st;
	size_t room = MIN_ROOM;
	bool ok;
	int fd;

	if (stat(path, &st) != 0)
		return fail_missing(path, e);
	if (S_ISREG(st.st_mode) && st.st_size > 0 && (size_t)st.st_size <= max_bytes)
		room = (size_t)st.st_size + 1;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return err_system(e, "open", path);
	ok = read_all(a, fd, path, room, max_bytes, out, e);
	close(fd);
	return ok;
}
