#include "shell/history.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/path.h"

enum { CUT_LINES = 2 * HISTORY_LINES, FILE_MAX_BYTES = 16 << 20 };

/* mkdir -p. */
static void make_folders(char *path)
{
	for (char *p = path + 1; *p; p++) {
		if (*p == '/') {
			*p = '\0';
			mkdir(path, 0700);
			*p = '/';
		}
	}
	mkdir(path, 0700);
}

const char *history_path(struct arena *a)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	struct buf path = { 0 };
	char *folder, *file;

	if (state && *state == '/')
		path_join(&path, str_of(state), STR("kiln"));
	else if (home && *home == '/')
		path_join(&path, str_of(home), STR(".local/state/kiln"));
	else
		return NULL;
	folder = str_dup(a, buf_view(&path));
	make_folders(folder);
	path.n = 0;
	path_join(&path, str_of(folder), STR("history"));
	file = str_dup(a, buf_view(&path));
	buf_release(&path);
	return file;
}

/* Only a plain file, and not more of it than makes sense. */
static struct str read_file(struct arena *a, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct str text = { 0 };
	struct stat st;
	char *bytes;

	if (fd < 0)
		return text;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size <= FILE_MAX_BYTES) {
		ssize_t n;

		bytes = arena_raw(a, (size_t)st.st_size + 1);
		n = read(fd, bytes, (size_t)st.st_size);
		text = (struct str){ bytes, n > 0 ? (size_t)n : 0 };
	}
	close(fd);
	return text;
}

static void cut_file(const char *path, const struct str *lines, size_t n)
{
	struct buf name = { 0 }, text = { 0 };
	struct err e;
	int fd;

	buf_printf(&name, "%s.%ld", path, (long)getpid());
	buf_char(&name, '\0');
	fd = open(name.p, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
	if (fd >= 0) {
		for (size_t i = 0; i < n; i++) {
			buf_str(&text, lines[i]);
			buf_char(&text, '\n');
		}
		buf_to_fd(&text, fd);
		if (!buf_flush(&text, &e) || close(fd) != 0 || rename(name.p, path) != 0)
			unlink(name.p);
	}
	buf_release(&name);
	buf_release(&text);
}

size_t history_load(struct arena *a, const char *path, struct str lines[HISTORY_LINES])
{
	struct str rest = read_file(a, path);
	size_t nall = 0, skipped, n = 0;

	for (struct str all = rest; all.n; nall++)
		str_cut(&all, '\n');
	skipped = nall > HISTORY_LINES ? nall - HISTORY_LINES : 0;
	for (size_t i = 0; rest.n; i++) {
		struct str line = str_cut(&rest, '\n');

		if (i >= skipped && line.n)
			lines[n++] = line;
	}
	if (nall > CUT_LINES)
		cut_file(path, lines, n);
	return n;
}

void history_append(const char *path, struct str line)
{
	int fd =
		open(path, O_CREAT | O_APPEND | O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0600);
	struct buf text = { 0 };
	struct err e;

	if (fd < 0)
		return;
	buf_str(&text, line);
	buf_char(&text, '\n');
	buf_to_fd(&text, fd);
	buf_flush(&text, &e); /* for comfort only: let it fail */
	close(fd);
	buf_release(&text);
}
