#include "base/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { READ_BYTES = 1 << 16, MAX_SECONDS = 1000000000, STOP_MS = 50 };

/* ---- finding and starting */

static bool is_program(const char *path)
{
	struct stat st;

	if (stat(path, &st) != 0)
		return false;
	errno = EACCES;
	return S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

/* The file that $PATH has under this name. */
static bool find_program(const char *name, struct buf *path, struct err *e)
{
	const char *list = getenv("PATH");
	struct str dirs = str_of(list ? list : "");

	if (strchr(name, '/')) {
		buf_add(path, name, strlen(name) + 1);
		return is_program(name) || err_system(e, "stat", name) ||
		       err_wrap(e, "exec: \"%s\"", name);
	}
	while (dirs.p) {
		struct str dir = str_cut(&dirs, ':');

		path->n = 0;
		buf_printf(path, "%.*s/%s", STR_ARG(dir.n ? dir : STR(".")), name);
		buf_char(path, '\0');
		if (is_program(path->p))
			return true;
	}
	return err_set(e, ERR_NOTFOUND, "exec: \"%s\": executable file not found in $PATH", name);
}

/* Runs in the child, between fork and exec: only what is safe there. Returns if exec fails. */
static void become(const char *path, const char *const *argv, const char *const *environment,
		   int in, int out, pid_t parent)
{
	sigset_t none;

	signal(SIGPIPE, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (parent) {
		setpgid(0, 0);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != parent) /* it died before that */
			_exit(1);
	}
	if (dup2(in, STDIN_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0)
		execve(path, (char *const *)(uintptr_t)argv,
		       environment ? (char *const *)(uintptr_t)environment : environ);
}

/* `with_us`: in a group of its own, which does not outlive us. The child's ends of the pipes are
 * closed on exec, and by the caller. */
static bool spawn(const struct child_params *params, int in, int out, bool with_us, pid_t *pid,
		  struct err *e)
{
	const char *const *argv = params->argv;
	struct buf path = { 0 };
	int report[2], failure = 0;
	pid_t parent = getpid();
	bool ok = find_program(params->path ? params->path : argv[0], &path, e);

	if (ok && pipe2(report, O_CLOEXEC) != 0)
		ok = err_system(e, "pipe", argv[0]);
	if (!ok) {
		buf_release(&path);
		return false;
	}
	*pid = fork();
	if (*pid == 0) {
		become(path.p, argv, params->environment, in, out, with_us ? parent : 0);
		failure = errno;
		if (write(report[1], &failure, sizeof(failure)) < 0)
			_exit(2);
		_exit(1);
	}
	failure = *pid < 0 ? errno : 0;
	close(report[1]);
	if (*pid > 0 && read(report[0], &failure, sizeof(failure)) > 0)
		waitpid(*pid, NULL, 0);
	close(report[0]);
	errno = failure;
	ok = !failure || err_system(e, "fork/exec", path.p);
	buf_release(&path);
	return ok;
}

/* ---- waiting */

static bool judge(int status, struct err *e)
{
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return true;
	if (WIFEXITED(status))
		return err_set(e, ERR_IO, "exit status %d", WEXITSTATUS(status));
	return err_set(e, ERR_IO, "signal: %s", sigdescr_np(WTERMSIG(status)));
}

bool child_wait(pid_t pid, struct err *e)
{
	int status = 0;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return err_system(e, "wait for", "the child");
	return judge(status, e);
}

bool child_start(const char *const *argv, pid_t *pid, struct err *e)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	bool ok;

	if (null < 0)
		return err_system(e, "open", "/dev/null");
	ok = spawn(&(struct child_params){ .argv = argv }, null, null, false, pid, e);
	close(null);
	return ok;
}

/* ---- running with input and output */

struct run {
	const struct child_params *params;
	struct buf *out;
	pid_t pid;
	int pidfd;
	int in, from; /* our ends: what it reads and what it prints; -1 when closed */
	size_t written, nread;
	int64_t deadline_ms;
};

static int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void close_end(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* The child's input is a socket, since a write to a pipe that nobody reads kills. */
static void feed(struct run *r)
{
	struct str left = str_from(r->params->input, r->written);
	ssize_t n = left.n ? send(r->in, left.p, left.n, MSG_NOSIGNAL | MSG_DONTWAIT) : 0;

	if (n > 0)
		r->written += (size_t)n;
	if (r->written == r->params->input.n || (n < 0 && errno != EAGAIN && errno != EINTR))
		close_end(&r->in);
}

/* Reads what there is. */
static bool drain(struct run *r, struct err *e)
{
	while (r->from >= 0) {
		ssize_t n = read(r->from, buf_room(r->out, READ_BYTES), READ_BYTES);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		if (n <= 0) {
			close_end(&r->from);
			break;
		}
		r->out->n += (size_t)n;
		r->nread += (size_t)n;
		if (r->nread > r->params->max_output)
			return err_set(e, ERR_LIMIT, "it printed more than %zu bytes",
				       r->params->max_output);
	}
	return true;
}

/* Until the child has ended. What its own children print after that is not waited for. */
static bool converse(struct run *r, struct err *e)
{
	for (;;) {
		struct pollfd fds[3] = { { r->pidfd, POLLIN, 0 },
					 { r->from, POLLIN, 0 },
					 { r->in, POLLOUT, 0 } };
		int64_t left = r->deadline_ms - now_ms();

		if (r->params->max_seconds && left <= 0)
			return err_set(e, ERR_LIMIT, "it did not finish within %lld seconds",
				       (long long)r->params->max_seconds);
		if (stop_asked(r->params->stop))
			return err_set(e, ERR_IO, "it was stopped");
		if (!r->params->max_seconds || left > 60000)
			left = 60000;
		if (r->params->stop && left > STOP_MS)
			left = STOP_MS;
		if (poll(fds, 3, (int)left) < 0 && errno != EINTR)
			return err_system(e, "poll", r->params->argv[0]);
		if (fds[2].revents)
			feed(r);
		if (!drain(r, e))
			return false;
		if (fds[0].revents)
			return drain(r, e);
	}
}

static bool run_spawned(struct run *r, struct err *e)
{
	bool ok;
	int status = 0;

	r->pidfd = pidfd_open(r->pid, 0);
	r->deadline_ms =
		now_ms() + 1000 * (r->params->max_seconds < MAX_SECONDS ? r->params->max_seconds
									: MAX_SECONDS);
	ok = r->pidfd >= 0 ? converse(r, e) : err_system(e, "pidfd_open", r->params->argv[0]);
	/* Before it is waited for: until then its number cannot be another's. */
	kill(-r->pid, SIGKILL);
	kill(r->pid, SIGKILL);
	while (waitpid(r->pid, &status, 0) < 0 && errno == EINTR)
		;
	close_end(&r->pidfd);
	return ok && judge(status, e);
}

static bool open_pipes(int in[2], int from[2], const char *name, struct err *e)
{
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, in) != 0)
		return err_system(e, "socketpair", name);
	if (pipe2(from, O_CLOEXEC) == 0)
		return fcntl(from[0], F_SETFL, O_NONBLOCK) == 0 || err_system(e, "fcntl", name);
	return err_system(e, "pipe", name);
}

bool child_run(const struct child_params *params, struct buf *out, struct err *e)
{
	int in[2] = { -1, -1 }, from[2] = { -1, -1 };
	struct run r = { .params = params, .out = out };
	bool ok = open_pipes(in, from, params->argv[0], e) &&
		  spawn(params, in[1], from[1], true, &r.pid, e);

	close_end(&in[1]);
	close_end(&from[1]);
	r.in = in[0];
	r.from = from[0];
	if (ok)
		ok = run_spawned(&r, e);
	close_end(&r.in);
	close_end(&r.from);
	return ok;
}
