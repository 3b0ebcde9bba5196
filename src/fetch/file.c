#include "fetch/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MIN_ROOM = 1 << 16 };

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

/* "-" is stdin, unless there is a file of that name. */
static int open_source(const char *path, struct stat *st, struct err *e)
{
	int fd;

	if (stat(path, st) != 0) {
		if (strcmp(path, "-") != 0) {
			err_system(e, "stat", path);
			return -1;
		}
		path = "/dev/stdin";
		*st = (struct stat){ 0 };
	}
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		err_system(e, "open", path);
	return fd;
}

bool file_read(struct arena *a, const char *path, size_t max_bytes, struct str *out, struct err *e)
{
	struct stat st;
	size_t room = MIN_ROOM;
	int fd = open_source(path, &st, e);
	bool ok;

	if (fd < 0)
		return false;
	if (S_ISREG(st.st_mode) && st.st_size > 0 && (size_t)st.st_size <= max_bytes)
		room = (size_t)st.st_size + 1;
	ok = read_all(a, fd, path, room, max_bytes, out, e);
	close(fd);
	return ok;
}
