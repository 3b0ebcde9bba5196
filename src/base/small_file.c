#include "base/small_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* All the room is there at once, as a buffer that grows leaves copies behind. */
static bool read_all(struct buf *out, int fd, size_t size, const char *path, struct err *e)
{
	char *to = buf_room(out, size + 1);
	size_t done = 0;
	ssize_t n;

	do {
		n = read(fd, to + done, size + 1 - done);
		done += n > 0 ? (size_t)n : 0;
	} while (n > 0 && done <= size);
	if (n < 0)
		return err_system(e, "read", path);
	if (done > size)
		return err_set(e, ERR_IO, "%s grows while it is read; try again", path);
	to[done] = '\0';
	out->n += done;
	return true;
}

bool small_file_read(struct buf *out, const char *path, size_t max_bytes, struct err *e)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe would keep us waiting */
	struct stat st;
	bool ok;

	if (fd < 0)
		return err_system(e, "open", path);
	if (fstat(fd, &st) != 0)
		ok = err_system(e, "stat", path);
	else if (!S_ISREG(st.st_mode))
		ok = err_set(e, ERR_FORMAT, "%s is no regular file", path);
	else if ((uint64_t)st.st_size > max_bytes)
		ok = err_set(e, ERR_LIMIT, "%s has more than %zu bytes", path, max_bytes);
	else
		ok = read_all(out, fd, (size_t)st.st_size, path, e);
	close(fd);
	return ok;
}

struct file_version file_version(const char *path)
{
	struct stat st;

	if (stat(path, &st) != 0)
		return (struct file_version){ 0 };
	return (struct file_version){ st.st_mtim, st.st_size, st.st_ino };
}

bool file_version_same(const struct file_version *a, const struct file_version *b)
{
	return a->changed.tv_sec == b->changed.tv_sec && a->changed.tv_nsec == b->changed.tv_nsec &&
	       a->size == b->size && a->inode == b->inode;
}
