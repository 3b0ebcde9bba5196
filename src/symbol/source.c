#include "symbol/symbol.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/path.h"
#include "base/vec.h"

/* No source file has so many bytes; what comes after is not read. */
#define FILE_MAX_BYTES (64 << 20)
/* pprof reads lines through a buffer of this size and stops at one that does not fit. */
#define LINE_MAX_BYTES (64 << 10)

/* The next element of a ':'-separated list. An empty list has none, but may have empty elements. */
static bool next_dir(struct str *list, struct str *dir)
{
	if (!list->p || (list->n == 0 && !dir->p))
		return false;
	*dir = str_cut(list, ':');
	if (!dir->p)
		dir->p = "";
	return true;
}

static bool trim_after_dir(struct str *path, struct str dir)
{
	struct str base = path_base(dir);

	for (size_t i = 0; i + base.n + 2 <= path->n; i++) {
		struct str rest = str_from(*path, i + 1);

		if (path->p[i] == '/' && str_has_prefix(rest, base) && rest.p[base.n] == '/') {
			*path = str_from(rest, base.n + 1);
			return true;
		}
	}
	return false;
}

static bool trim_prefix(struct str *path, struct str prefix)
{
	bool has_slash = prefix.n && prefix.p[prefix.n - 1] == '/';
	size_t n = prefix.n + !has_slash;

	if (path->n < n || !str_has_prefix(*path, prefix) || path->p[n - 1] != '/')
		return false;
	*path = str_from(*path, n);
	return true;
}

struct str source_trim(struct str path, const char *trim_path, const char *source_path)
{
	struct str list = str_of(source_path), dir = { 0 };

	while (!trim_path[0] && next_dir(&list, &dir))
		if (trim_after_dir(&path, dir))
			return path;
	list = str_of(trim_path);
	dir = (struct str){ 0 };
	while (next_dir(&list, &dir))
		if (trim_prefix(&path, dir))
			return path;
	if (!trim_prefix(&path, STR("/proc/self/cwd/./")))
		trim_prefix(&path, STR("/proc/self/cwd/"));
	return path;
}

/* A search for a file. */
struct search {
	bool is_confined;
	struct buf name;     /* that is tried */
	const char *refused; /* why one that is there is not shown, or NULL */
};

/* Both without links. */
static bool is_below(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	while (n && dir[n - 1] == '/')
		n--;
	return strncmp(path, dir, n) == 0 && path[n] == '/';
}

/* What is wrong with an open file for those who are confined, or NULL. `dir` is where it was looked
 * for; NULL if its name told that. */
static const char *why_not(int fd, const char *link, const char *dir)
{
	static const char *const systems[] = { "/dev", "/proc", "/sys" };
	char path[PATH_MAX], *base;
	ssize_t n = readlink(link, path, sizeof(path) - 1);
	struct stat st;
	bool is_inside;

	if (n <= 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
		return "it is not a regular file";
	path[n] = '\0';
	for (size_t i = 0; i < sizeof(systems) / sizeof(*systems); i++)
		if (is_below(path, systems[i]))
			return "it is one of the system's own";
	if (!dir)
		return NULL;
	base = realpath(*dir ? dir : ".", NULL);
	is_inside = base && is_below(path, base);
	free(base);
	return is_inside ? NULL : "it is outside of the directories to look in";
}

/* Looks at the file before it is opened for reading, which may do something to what is none. */
static int open_confined(struct search *s, const char *dir)
{
	int at = open(s->name.p, O_PATH | O_CLOEXEC), fd = -1;
	char link[64];
	const char *why;

	if (at < 0)
		return -1;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", at);
	why = why_not(at, link, dir);
	if (why)
		s->refused = why;
	else
		fd = open(link, O_RDONLY | O_CLOEXEC);
	close(at);
	return fd;
}

/* O_NONBLOCK: a FIFO must not make us wait. -1 with errno if it cannot be opened. */
static int open_file(struct search *s, const char *dir)
{
	int fd;

	if (s->name.n && memchr(s->name.p, '\0', s->name.n)) {
		errno = EINVAL;
		return -1;
	}
	buf_char(&s->name, '\0');
	s->name.n--;
	do
		fd = s->is_confined ? open_confined(s, dir)
				    : open(s->name.p, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	while (fd < 0 && errno == EINTR);
	return fd;
}

/* Looks in `dir` and in all directories above it; for the confined these do not go up to "/", below
 * which everything is. */
static int open_above(struct search *s, struct str dir, struct str path)
{
	struct buf above = { 0 }, parent = { 0 };
	int fd = -1;

	buf_str(&above, dir);
	for (;;) {
		bool is_top;

		s->name.n = parent.n = 0;
		path_join(&s->name, buf_view(&above), path);
		path_dir(&parent, buf_view(&above));
		is_top = str_eq(buf_view(&parent), buf_view(&above));
		buf_char(&above, '\0');
		fd = open_file(s, above.p);
		if (fd >= 0 || is_top || (s->is_confined && str_eq(buf_view(&parent), STR("/"))))
			break;
		above.n = 0;
		buf_str(&above, buf_view(&parent));
	}
	buf_release(&above);
	buf_release(&parent);
	return fd;
}

static int find_file(struct str path, const struct source_params *params, struct err *e)
{
	struct str list = str_of(params->source_path), dir = { 0 };
	struct search s = { .is_confined = params->is_confined };
	bool is_absolute;
	int fd = -1;

	path = source_trim(path, params->trim_path, params->source_path);
	is_absolute = path.n && path.p[0] == '/';
	if (is_absolute) {
		buf_str(&s.name, path);
		fd = open_file(&s, NULL);
	} else {
		while (fd < 0 && next_dir(&list, &dir))
			fd = open_above(&s, dir, path);
	}
	if (fd < 0 && s.refused)
		err_set(e, ERR_NOTFOUND, "%.*s is not shown: %s", STR_ARG(path), s.refused);
	else if (fd < 0 && is_absolute)
		err_system(e, "open", s.name.p);
	else if (fd < 0)
		err_set(e, ERR_NOTFOUND, "could not find file %.*s on path %s", STR_ARG(path),
			params->source_path);
	buf_release(&s.name);
	return fd;
}

/* ---- below directories only */

/* "DIR" or "FROM=DIR" */
struct place {
	struct str from, dir; /* from.p == NULL: there is none */
};

static struct place parse_place(struct str text)
{
	size_t at = str_rfind_char(text, '=');

	if (at == STR_NONE)
		return (struct place){ .dir = text };
	return (struct place){ { text.p, at }, str_from(text, at + 1) };
}

bool source_beneath_check(const char *list, struct err *e)
{
	struct str rest = str_of(list), text = { 0 };

	while (next_dir(&rest, &text)) {
		struct place place = parse_place(text);

		if (!place.dir.n || place.dir.p[0] != '/' || (place.from.p && !place.from.n))
			return err_set(e, ERR_USAGE,
				       "\"%.*s\" is neither a directory from / on, nor FROM=DIR "
				       "with one",
				       STR_ARG(text));
	}
	return true;
}

/* The name below the place's directory; false if it cannot be there. */
static bool name_at(const struct place *place, struct str *path)
{
	struct buf dir = { 0 };

	if (place->from.p)
		return trim_prefix(path, place->from);
	if (trim_prefix(path, place->dir))
		return true;
	buf_str(&dir, place->dir);
	buf_char(&dir, '\0');
	*path = source_trim(*path, "", dir.p);
	buf_release(&dir);
	return path->n && path->p[0] != '/';
}

/* The kernel sees to it that neither "..", nor a link, nor a name that is changed meanwhile leads
 * out of the directory. */
static int open_below(const char *dir, const char *name)
{
	struct open_how how = { .flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
				.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS };
	int at = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC), saved;
	long fd;

	if (at < 0)
		return -1;
	do
		fd = syscall(SYS_openat2, at, name, &how, sizeof(how));
	while (fd < 0 && errno == EINTR);
	saved = errno;
	close(at);
	errno = saved;
	return (int)fd;
}

static const char *why_not_below(int error)
{
	switch (error) {
	case EXDEV:
	case ELOOP:
		return "it leads out of the directories to look in";
	case EAGAIN:
		return "it is being moved; try again";
	case ENOSYS:
	case EPERM:
		return "the kernel cannot keep names within a directory (Linux 5.6 can)";
	case EACCES:
		return "permission denied";
	default:
		return NULL;
	}
}

/* -1: it is not there, or `s` knows why it is not shown. */
static int open_at_place(struct search *s, struct str text, struct str path)
{
	struct place place = parse_place(text);
	struct buf dir = { 0 };
	struct stat st;
	int fd;

	if (memchr(path.p, '\0', path.n) || !name_at(&place, &path))
		return -1;
	s->name.n = 0;
	buf_str(&dir, place.dir);
	buf_char(&dir, '\0');
	buf_str(&s->name, path);
	buf_char(&s->name, '\0');
	fd = open_below(dir.p, s->name.p);
	buf_release(&dir);
	if (fd < 0) {
		const char *why = why_not_below(errno);

		s->refused = why ? why : s->refused;
	} else if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
		s->refused = "it is not a regular file";
		close(fd);
		fd = -1;
	}
	return fd;
}

static int find_beneath(struct str path, const char *places, struct err *e)
{
	struct str list = str_of(places), text = { 0 };
	struct search s = { 0 };
	int fd = -1;

	while (fd < 0 && path.n && next_dir(&list, &text))
		fd = open_at_place(&s, text, path);
	if (fd < 0 && s.refused)
		err_set(e, ERR_NOTFOUND, "%.*s is not shown: %s", STR_ARG(path), s.refused);
	else if (fd < 0 && !*places)
		err_set(e, ERR_NOTFOUND, "no directories are given to look in");
	else if (fd < 0)
		err_set(e, ERR_NOTFOUND, "%.*s is not below %s", STR_ARG(path), places);
	buf_release(&s.name);
	return fd;
}

/* ---- reading */

/* All of a regular file, as far as it can be read. */
static struct str read_all(struct arena *a, int fd, size_t max_bytes)
{
	struct stat st;
	size_t n = 0, size;
	char *bytes;

	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size <= 0)
		return (struct str){ 0 };
	size = (uint64_t)st.st_size < max_bytes ? (size_t)st.st_size : max_bytes;
	bytes = arena_alloc(a, size);
	while (n < size) {
		ssize_t got = read(fd, bytes + n, size - n);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		n += (size_t)got;
	}
	return (struct str){ bytes, n };
}

static void split_lines(struct arena *a, struct source_file *f, struct str text)
{
	vec(struct str) lines = { 0 };

	while (text.n) {
		struct str line = str_cut(&text, '\n');

		if (line.n >= LINE_MAX_BYTES)
			break;
		if (line.n && line.p[line.n - 1] == '\r')
			line.n--;
		vec_push(&lines, line);
	}
	f->nlines = lines.n;
	f->lines = vec_adopt(a, &lines);
}

bool source_read(struct arena *a, struct source_file *f, struct str path,
		 const struct source_params *params, struct err *e)
{
	int fd = params->beneath ? find_beneath(path, params->beneath, e)
				 : find_file(path, params, e);

	*f = (struct source_file){ 0 };
	if (fd < 0)
		return false;
	split_lines(a, f, read_all(a, fd, params->max_bytes ? params->max_bytes : FILE_MAX_BYTES));
	close(fd);
	return true;
}
