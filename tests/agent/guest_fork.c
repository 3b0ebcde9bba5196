/* guest_fork.c - processes that make others. */
#include <fcntl.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "guest.h"

static atomic_bool is_over;

NOT_INLINED static void burn_in_parent(int milliseconds)
{
	burn(milliseconds);
	STAYS;
}

NOT_INLINED static void burn_in_child(int milliseconds)
{
	burn(milliseconds);
	STAYS;
}

static int wait_for(pid_t child)
{
	int status;

	if (waitpid(child, &status, 0) != child)
		return -1000;
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void *nothing(void *argument)
{
	free(malloc(10));
	return argument;
}

/* A child can do all that it could without us. */
static void live_in_child(void)
{
	pthread_t thread;
	char *memory = malloc(100000);

	alarm(20); /* instead of a hang */
	CHECK(memory != NULL);
	memset(memory, 1, 100000);
	memory = realloc(memory, 200000);
	CHECK(pthread_create(&thread, NULL, nothing, NULL) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
	free(memory);
}

static int child_exits(void)
{
	for (int i = 0; i < 4; i++) {
		pid_t child = fork();

		if (!child) {
			live_in_child();
			burn_in_child(40);
			exit(3);
		}
		printf("%d\n", wait_for(child));
	}
	burn_in_parent(150);
	return 0;
}

static int child_leaves(void)
{
	for (int i = 0; i < 4; i++) {
		pid_t child = fork();

		if (!child) {
			live_in_child();
			burn_in_child(40);
			_exit(4);
		}
		printf("%d\n", wait_for(child));
	}
	burn_in_parent(150);
	return 0;
}

static int grandchild(void)
{
	pid_t child = fork();

	if (!child) {
		pid_t next = fork();

		if (!next) {
			live_in_child();
			exit(6);
		}
		exit(wait_for(next));
	}
	printf("%d\n", wait_for(child));
	burn_in_parent(100);
	return 0;
}

static void *allocate_for_ever(void *lock)
{
	while (!is_over) {
		void *kept[32];

		for (int i = 0; i < 32; i++)
			kept[i] = malloc((size_t)i * 100 + 1);
		pthread_mutex_lock(lock);
		pthread_mutex_unlock(lock);
		for (int i = 0; i < 32; i++)
			free(kept[i]);
	}
	return NULL;
}

static void *fork_often(void *bad)
{
	for (int i = 0; i < 15; i++) {
		pid_t child = fork();

		if (!child) {
			live_in_child();
			_exit(0);
		}
		if (wait_for(child) != 0)
			atomic_fetch_add((atomic_int *)bad, 1);
	}
	return NULL;
}

static int from_threads(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static atomic_int bad;
	pthread_t busy[3], forking[3];

	for (int i = 0; i < 3; i++)
		pthread_create(&busy[i], NULL, allocate_for_ever, &lock);
	for (int i = 0; i < 3; i++)
		pthread_create(&forking[i], NULL, fork_often, &bad);
	for (int i = 0; i < 3; i++)
		pthread_join(forking[i], NULL);
	is_over = true;
	for (int i = 0; i < 3; i++)
		pthread_join(busy[i], NULL);
	burn_in_parent(100);
	printf("%d bad\n", bad);
	return 0;
}

/* What the others exec. */
static int leaf(void)
{
	burn(5);
	return 7;
}

static int with_vfork(void)
{
	for (int i = 0; i < 5; i++) {
		pid_t child = vfork();

		if (!child) {
			execl("/proc/self/exe", "guest_fork", "leaf", NULL);
			_exit(9);
		}
		printf("%d\n", wait_for(child));
		child = vfork();
		if (!child)
			_exit(5);
		printf("%d\n", wait_for(child));
		child = vfork();
		if (!child) {
			execl("/no/such/file", "x", NULL);
			_exit(errno == ENOENT ? 11 : 12);
		}
		printf("%d\n", wait_for(child));
	}
	burn_in_parent(150);
	return 0;
}

static int with_spawn(void)
{
	char *arguments[] = { "guest_fork", "leaf", NULL };
	FILE *pipe;
	char line[10] = "";

	for (int i = 0; i < 5; i++) {
		pid_t child;

		CHECK(posix_spawn(&child, "/proc/self/exe", NULL, NULL, arguments, environ) == 0);
		printf("%d\n", wait_for(child));
	}
	printf("%d\n", WEXITSTATUS(system("exit 3")));
	pipe = popen("echo hi", "r");
	CHECK(fgets(line, sizeof(line), pipe) && strcmp(line, "hi\n") == 0);
	CHECK(pclose(pipe) == 0);
	burn_in_parent(150);
	return 0;
}

/* Nothing of ours hears of this child. */
static int with_clone(void)
{
	for (int i = 0; i < 3; i++) {
		pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, 0);

		if (!child) {
			free(malloc(5000));
			burn_in_child(30);
			_exit(5);
		}
		printf("%d\n", wait_for(child));
	}
	burn_in_parent(150);
	return 0;
}

static int as_daemon(void)
{
	CHECK(daemon(1, 1) == 0);
	burn_in_child(200);
	live_in_child();
	printf("done\n");
	return 0;
}

/* The same as daemons do it by hand. */
static int as_daemon_by_hand(void)
{
	if (fork())
		_exit(0);
	setsid();
	burn_in_child(200);
	printf("done\n");
	return 0;
}

static int with_exec(void)
{
	burn_in_parent(30);
	execl("/proc/self/exe", "guest_fork", "after_exec", NULL);
	return 1;
}

static int after_exec(void)
{
	burn_in_child(150);
	return 7;
}

/* The number of what is open must not change: programs count on it. */
static int descriptors(void)
{
	int fds[2], fd = open("/dev/null", O_RDONLY);

	printf("%d\n", fd);
	CHECK(pipe(fds) == 0);
	printf("%d %d\n", fds[0], fds[1]);
	for (fd = 3; fd < 20; fd++)
		close(fd);
	fflush(stdout);
	burn_in_parent(100);
	return system("ls /proc/self/fd | wc -l");
}

int main(int argc, char **argv)
{
	static const struct guest_case cases[] = {
		{ "child_exits", child_exits },
		{ "child_leaves", child_leaves },
		{ "grandchild", grandchild },
		{ "from_threads", from_threads },
		{ "vfork", with_vfork },
		{ "spawn", with_spawn },
		{ "clone", with_clone },
		{ "daemon", as_daemon },
		{ "daemon_by_hand", as_daemon_by_hand },
		{ "exec", with_exec },
		{ "after_exec", after_exec },
		{ "descriptors", descriptors },
		{ "leaf", leaf },
		{ NULL, NULL },
	};

	return run_case(argc, argv, cases);
}
