#include "analyze/views.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/child.h"

#define PROGRAMS(...) ((const char *const[]){ __VA_ARGS__, NULL })
/* $BROWSER goes before these, and the last is for those that have a $DISPLAY. */
#define DESKTOP_OPENER "xdg-open"
#define BROWSERS                                                                                   \
	PROGRAMS("$BROWSER", "chrome", "google-chrome", "chromium", "firefox", "sensible-browser", \
		 DESKTOP_OPENER)

/* clang-format off */
static const struct view views[] = {
	/* name         report       format zoomable extension shown by */
	{ "eog",         "",          "svg", false,   "svg",    PROGRAMS("eog") },
	{ "evince",      "",          "pdf", false,   "pdf",    PROGRAMS("evince") },
	{ "gif",         "",          "gif", false,   "gif",    NULL },
	{ "gv",          "",          "ps",  false,   "ps",     PROGRAMS("gv --noantialias") },
	{ "kcachegrind", "callgrind", "",    false,   "grind",  PROGRAMS("kcachegrind") },
	{ "pdf",         "",          "pdf", false,   "pdf",    NULL },
	{ "png",         "",          "png", false,   "png",    NULL },
	{ "ps",          "",          "ps",  false,   "ps",     NULL },
	{ "svg",         "",          "svg", true,    "svg",    NULL },
	{ "web",         "",          "svg", true,    "svg",    BROWSERS },
	{ "weblist",     "weblist",   "",    false,   "html",   BROWSERS },
};
/* clang-format on */

const struct view *view_find(const char *name)
{
	for (size_t i = 0; i < sizeof(views) / sizeof(*views); i++)
		if (strcmp(views[i].name, name) == 0)
			return &views[i];
	return NULL;
}

int create_numbered(const char *prefix, const char *suffix, char *name, size_t size, struct err *e)
{
	for (int i = 1; i < 10000; i++) {
		int fd;

		snprintf(name, size, "%s%03d%s", prefix, i, suffix);
		fd = open(name, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
		if (fd >= 0)
			return fd;
		if (errno != EEXIST) {
			err_system(e, "open", name);
			return -1;
		}
	}
	err_set(e, ERR_IO, "could not create file of the form %s001%s", prefix, suffix);
	return -1;
}

/* A file for the viewer, which is remembered. NULL: failed. */
static const char *write_file(struct viewed *all, const struct view *view, struct str bytes,
			      struct err *e)
{
	const char *dir = getenv("TMPDIR");
	char prefix[4096], suffix[16], name[sizeof(prefix) + 32];
	struct buf out = { 0 };
	bool ok;
	int fd;

	snprintf(prefix, sizeof(prefix), "%s/pprof", dir && *dir ? dir : "/tmp");
	snprintf(suffix, sizeof(suffix), ".%s", view->extension);
	fd = create_numbered(prefix, suffix, name, sizeof(name), e);
	if (fd < 0)
		return NULL;
	vec_push(&all->files, strcpy(xmalloc(strlen(name) + 1), name));
	buf_to_fd(&out, fd);
	buf_str(&out, bytes);
	ok = buf_flush(&out, e) || err_wrap(e, "%s", name);
	buf_release(&out);
	if (close(fd) != 0 && ok)
		ok = err_system(e, "close", name);
	return ok ? all->files.at[all->files.n - 1] : NULL;
}

/* "gv --noantialias" and a file's name. */
static bool start(const char *command, const char *file, pid_t *pid, struct err *e)
{
	struct arena a = { 0 };
	struct str rest = str_of(command);
	vec(const char *) argv = { 0 };
	bool ok;

	while (rest.p)
		vec_push(&argv, str_dup(&a, str_cut(&rest, ' ')));
	vec_push(&argv, file);
	vec_push(&argv, NULL);
	ok = child_start(argv.at, pid, e);
	vec_release(&argv);
	arena_release(&a);
	return ok;
}

/* The first of the view's programs that there is. */
static bool start_first(const struct view *view, const char *file, pid_t *pid, struct err *e)
{
	for (const char *const *command = view->shown; *command; command++) {
		const char *program = *command;

		if (*program == '$')
			program = getenv(program + 1);
		if (!program || !*program)
			continue;
		if (strcmp(program, DESKTOP_OPENER) == 0 && !getenv("DISPLAY"))
			continue;
		if (start(program, file, pid, e))
			return true;
	}
	return false;
}

static void reap(struct viewed *all)
{
	size_t n = 0;

	for (size_t i = 0; i < all->pids.n; i++)
		if (waitpid(all->pids.at[i], NULL, WNOHANG) == 0)
			all->pids.at[n++] = all->pids.at[i];
	all->pids.n = n;
}

bool view_show(struct viewed *all, const struct view *view, struct str bytes, bool is_interactive,
	       struct err *e)
{
	const char *file = write_file(all, view, bytes, e);
	struct timespec opened;
	bool ok = true;
	pid_t pid;

	reap(all);
	if (!file || !start_first(view, file, &pid, e))
		return false;
	clock_gettime(CLOCK_MONOTONIC, &opened);
	opened.tv_sec++;
	if (is_interactive)
		vec_push(&all->pids, pid);
	else
		ok = child_wait(pid, e);
	/* Many viewers just tell a running one what to open, which takes it a while. */
	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &opened, NULL) == EINTR)
		;
	return ok;
}

bool view_open_url(const char *url, struct err *e)
{
	pid_t ignored;

	return start_first(view_find("web"), url, &ignored, e);
}

void viewed_release(struct viewed *all)
{
	reap(all);
	for (size_t i = 0; i < all->files.n; i++) {
		unlink(all->files.at[i]);
		free(all->files.at[i]);
	}
	vec_release(&all->files);
	vec_release(&all->pids);
}
