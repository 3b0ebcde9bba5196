#include "shell/pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/str.h"

/* The command gets signals as any program does, whatever the shell does about them. */
static int spawn(pid_t *pid, char **argv, int in)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	sigset_t signals;
	int failure;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGPIPE);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, in, STDIN_FILENO);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigdefault(&attributes, &signals);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
	failure = posix_spawn(pid, argv[0], &files, &attributes, argv, environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&files);
	return failure;
}

bool shell_pipe_open(struct shell_pipe *p, const char *command, struct err *e)
{
	struct arena a = { 0 };
	char *argv[] = { str_dup(&a, STR("/bin/sh")), str_dup(&a, STR("-c")),
			 str_dup(&a, str_of(command)), NULL };
	struct sigaction ignore = { .sa_handler = SIG_IGN };
	int ends[2], failure;

	if (pipe2(ends, O_CLOEXEC) != 0) {
		arena_release(&a);
		return err_system(e, "pipe", command);
	}
	*p = (struct shell_pipe){ .fd = ends[1] };
	p->has_terminal = tcgetattr(STDIN_FILENO, &p->terminal) == 0;
	failure = spawn(&p->pid, argv, ends[0]);
	close(ends[0]);
	arena_release(&a);
	if (failure) {
		close(ends[1]);
		errno = failure;
		return err_system(e, "exec", "/bin/sh");
	}
	sigaction(SIGPIPE, &ignore, &p->sigpipe);
	return true;
}

void shell_pipe_close(struct shell_pipe *p)
{
	close(p->fd);
	while (waitpid(p->pid, NULL, 0) < 0 && errno == EINTR)
		;
	sigaction(SIGPIPE, &p->sigpipe, NULL);
	if (p->has_terminal)
		tcsetattr(STDIN_FILENO, TCSADRAIN, &p->terminal);
}
