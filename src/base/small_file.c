#include "base/small_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"

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

static bool write_all(const char *path, struct str text, struct err *e)
{
	int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);
	struct buf out = { 0 };
	bool ok;

	if (fd < 0)
		return err_system(e, "open", path);
	buf_to_fd(&out, fd);
	buf_str(&out, text);
	ok = buf_flush(&out, e) && (fsync(fd) == 0 || err_system(e, "write", path));
	buf_release(&out);
	close(fd);
	return ok;
}

/* A name is durable when its folder is. */
static bool sync_dir(const char *path, struct err *e)
{
	struct buf dir = { 0 };
	int fd;
	bool ok;

	path_dir(&dir, str_of(path));
	buf_char(&dir, '\0');
	fd = open(dir.p, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ok = (fd >= 0 && fsync(fd) == 0) || err_system(e, "sync", dir.p);
	if (fd >= 0)
		close(fd);
	buf_release(&dir);
	return ok;
}

bool small_file_write(const char *path, struct str text, struct err *e)
{
	struct buf name = { 0 };
	bool ok;

	buf_printf(&name, "%s.new", path);
	buf_char(&name, '\0');
	ok = write_all(name.p, text, e) &&
	     (rename(name.p, path) == 0 || err_system(e, "rename", name.p));
	if (!ok)
		unlink(name.p);
	buf_release(&name);
	return ok && sync_dir(path, e);
}

struct file_version file_version(const char *path)
{
	struct stat st;

	if (stat(path, &st) != 0)
		return (struct file_version){ 0 };
	return (struct file_version){ st.st_mtim, st.st_ctim, st.st_size, st.st_ino };
}

static bool same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

bool file_version_same(const struct file_version *a, const struct file_version *b)
{
	return same_time(&a->written, &b->written) && same_time(&a->changed, &b->changed) &&
	       a->size == b->size && a->inode == b->inode;
}
