#include "agent/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/memory.h"

/* Programs expect their first file to be number 3, and close all that are below some number. */
static int move_up(int fd)
{
	static const int lowest[] = { 1000, 200, 50, 10 };

	for (size_t i = 0; fd >= 0 && i < sizeof(lowest) / sizeof(*lowest); i++) {
		int moved = fcntl(fd, F_DUPFD_CLOEXEC, lowest[i]);

		if (moved >= 0) {
			close(fd);
			return moved;
		}
	}
	return fd;
}

static bool is_directory(const struct outfile *f, int fd)
{
	struct stat s;

	return fd >= 0 && fstat(fd, &s) == 0 && s.st_dev == f->device && s.st_ino == f->inode;
}

/* %p becomes the process id, %% a per cent sign. */
static bool expand(char *to, size_t size, const char *pattern)
{
	size_t n = 0;

	for (const char *p = pattern; *p && n < size; p++) {
		if (p[0] == '%' && p[1] == 'p') {
			n += (size_t)snprintf(to + n, size - n, "%d", (int)getpid());
			p++;
		} else {
			to[n++] = *p;
			p += p[0] == '%' && p[1] == '%';
		}
	}
	if (n < size)
		to[n] = '\0';
	else
		errno = ENAMETOOLONG;
	return n < size;
}

/* The directory's path, absolute: to find it again if the descriptor is lost. */
static bool split(struct outfile *f, char *path)
{
	char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	size_t n;

	if (!*name || strlen(name) > NAME_MAX) {
		errno = *name ? ENAMETOOLONG : EISDIR;
		return false;
	}
	strcpy(f->name, name);
	if (path[0] == '/') {
		slash[slash == path] = '\0';
		strcpy(f->path, path);
		return true;
	}
	if (!getcwd(f->path, sizeof(f->path)))
		strcpy(f->path, ".");
	if (!slash)
		return true;
	*slash = '\0';
	n = strlen(f->path);
	if (snprintf(f->path + n, sizeof(f->path) - n, "/%s", path) < (int)(sizeof(f->path) - n))
		return true;
	errno = ENAMETOOLONG;
	return false;
}

static int open_directory(const char *path)
{
	return move_up(open(path, O_PATH | O_DIRECTORY | O_CLOEXEC));
}

bool outfile_open(struct outfile *f, const char *pattern, bool must_have_pid)
{
	char *path = pages_map(PATH_MAX);
	struct stat s;
	bool ok;

	*f = (struct outfile){ .directory = -1 };
	ok = path && expand(path, PATH_MAX, pattern);
	if (ok && must_have_pid && !strstr(pattern, "%p"))
		ok = expand(path + strlen(path), PATH_MAX - strlen(path), ".%p");
	ok = ok && split(f, path);
	pages_unmap(path, PATH_MAX);
	if (!ok)
		return false;
	f->directory = open_directory(f->path);
	if (f->directory < 0 || fstat(f->directory, &s) != 0)
		return false;
	f->device = s.st_dev;
	f->inode = s.st_ino;
	/* Where it can be told early that it will not work, it is. */
	return faccessat(f->directory, ".", W_OK, AT_EACCESS) == 0;
}

void outfile_close(struct outfile *f)
{
	if (is_directory(f, f->directory))
		close(f->directory);
	f->directory = -1;
}

static bool find_directory(struct outfile *f)
{
	if (is_directory(f, f->directory))
		return true;
	f->directory = open_directory(f->path);
	if (is_directory(f, f->directory))
		return true;
	if (f->directory >= 0)
		close(f->directory);
	f->directory = -1;
	errno = ENOENT;
	return false;
}

static bool write_and_close(int fd, const struct out *content)
{
	bool ok = fd >= 0 && out_to_fd(content, fd);
	int kept = errno;

	if (fd >= 0 && close(fd) != 0 && ok)
		return false;
	errno = kept;
	return ok;
}

/* A file of that name is replaced; a device or a pipe is written to. */
static bool write_special(const struct outfile *f, const char *name, const struct out *content)
{
	return write_and_close(
		openat(f->directory, name, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC), content);
}

static bool write_file(const struct outfile *f, const char *name, const struct out *content)
{
	enum { FLAGS = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC };
	char temporary[NAME_MAX + 1];
	int fd, kept;

	snprintf(temporary, sizeof(temporary), ".kiln.%d.%.200s", (int)getpid(), name);
	fd = openat(f->directory, temporary, FLAGS, 0666);
	if (fd < 0 && errno == EEXIST && unlinkat(f->directory, temporary, 0) == 0)
		fd = openat(f->directory, temporary, FLAGS, 0666);
	if (fd < 0)
		return false;
	if (write_and_close(fd, content) &&
	    renameat(f->directory, temporary, f->directory, name) == 0)
		return true;
	kept = errno;
	unlinkat(f->directory, temporary, 0);
	errno = kept;
	return false;
}

bool outfile_write(struct outfile *f, const char *suffix, const struct out *content)
{
	char name[NAME_MAX + 1];
	struct stat s;

	if (snprintf(name, sizeof(name), "%s%s", f->name, suffix) >= (int)sizeof(name)) {
		errno = ENAMETOOLONG;
		return false;
	}
	if (!find_directory(f))
		return false;
	if (fstatat(f->directory, name, &s, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISREG(s.st_mode))
		return write_special(f, name, content);
	return write_file(f, name, content);
}
