/* guest_limits.c - programs that live under limits, or take from themselves what others rely on. */
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "guest.h"

static char *self;

NOT_INLINED static void burn_here(int milliseconds)
{
	burn(milliseconds);
	STAYS;
}

static void *burn_in_thread(void *argument)
{
	burn_here(10);
	free(malloc(5000));
	return argument;
}

static void burn_in_threads(int n)
{
	pthread_t threads[200];

	for (int i = 0; i < n; i++)
		CHECK(pthread_create(&threads[i], NULL, burn_in_thread, NULL) == 0);
	for (int i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
}

static void set_limit(__rlimit_resource_t what, rlim_t to)
{
	struct rlimit limit = { to, to };

	CHECK(setrlimit(what, &limit) == 0);
}

static int changes_root(void)
{
	burn_here(100);
	CHECK(chdir("/") == 0 && chroot("/sys") == 0);
	burn_here(50);
	return 0;
}

static int changes_directory(void)
{
	burn_here(100);
	CHECK(chdir("/sys") == 0);
	return 0;
}

/* The files that follow get the numbers of the standard ones: nothing else may be written there. */
static int without_stdio(void)
{
	char path[] = "/tmp/guest.XXXXXX";
	struct stat found;
	int report = dup(1), fds[3];

	fcntl(report, F_SETFD, FD_CLOEXEC);
	close(0), close(1), close(2);
	fds[0] = mkstemp(path);
	fds[1] = dup(fds[0]), fds[2] = dup(fds[0]);
	unlink(path);
	burn_here(150);
	fstat(fds[0], &found);
	dprintf(report, "%d %d %d, %ld bytes\n", fds[0], fds[1], fds[2], (long)found.st_size);
	return 0;
}

static int starts_without_stdio(void)
{
	int fd = open("/dev/null", O_RDONLY);

	burn_here(100);
	return fd == 0 ? 0 : 40 + fd;
}

static int closes_all(void)
{
	int fd;

	burn_here(50);
	for (int i = 3; i < 1024; i++)
		close(i);
	burn_here(100);
	fd = open("/dev/null", O_RDONLY);
	printf("%d\n", fd);
	for (int i = 3; i < 1100; i++)
		(void)dup2(fd, i);
	burn_here(50);
	return 0;
}

static int few_files(void)
{
	set_limit(RLIMIT_NOFILE, 16);
	burn_in_threads(20);
	burn_here(100);
	return 0;
}

static int few_signals(void)
{
	set_limit(RLIMIT_SIGPENDING, 8);
	burn_in_threads(100);
	burn_here(100);
	return 0;
}

static int little_memory(void)
{
	static void *blocks[10000];
	int n = 0;

	set_limit(RLIMIT_AS, 300 << 20);
	errno = 0;
	while (n < 10000 && (blocks[n] = malloc(1 << 20)))
		n++;
	printf("%s\n", strerrorname_np(errno));
	CHECK(n > 50 && n < 300);
	CHECK(!malloc(1 << 20) && errno == ENOMEM);
	burn_here(50);
	while (n)
		free(blocks[--n]);
	burn_in_threads(4);
	return 0;
}

static int little_file_space(void)
{
	set_limit(RLIMIT_FSIZE, 0);
	burn_here(100);
	return 0;
}

static int run_again(const char *name)
{
	execl(self, self, name, NULL);
	return 1;
}

static int burn_only(void)
{
	burn_in_threads(4);
	burn_here(150);
	return 0;
}

static int small_main_stack(void)
{
	set_limit(RLIMIT_STACK, 128 << 10);
	return run_again("burn_only");
}

/* Denied what the agent needs, before it starts. */
static int denied(void)
{
	static const unsigned calls[] = { SYS_timer_create, SYS_perf_event_open, SYS_socket,
					  SYS_process_vm_readv };
	struct sock_filter filter[16] = { BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						   offsetof(struct seccomp_data, nr)) };
	struct sock_fprog program = { .filter = filter };
	unsigned n = 1;

	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
		filter[n++] =
			(struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i], 0, 1);
		filter[n++] =
			(struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
	}
	filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	program.len = (unsigned short)n;
	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
	return 0;
}

static int denied_before(void)
{
	denied();
	return run_again("burn_only");
}

static int denied_later(void)
{
	burn_here(50);
	denied();
	return burn_only();
}

static int without_proc(void)
{
	CHECK(unshare(CLONE_NEWNS) == 0);
	CHECK(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
	CHECK(mount("none", "/proc", "tmpfs", 0, NULL) == 0);
	return run_again("burn_only");
}

/* Its process ids are not those that /proc shows. */
static int other_ids(void)
{
	int status;

	CHECK(unshare(CLONE_NEWPID) == 0);
	if (!fork()) {
		printf("%d\n", getpid());
		run_again("burn_only");
	}
	wait(&status);
	return WEXITSTATUS(status);
}

static int removes_itself(void)
{
	burn_here(50);
	unlink(self);
	burn_here(100);
	return 0;
}

static int changes_user(void)
{
	burn_here(50);
	CHECK(setgid(65534) == 0 && setuid(65534) == 0);
	burn_in_threads(4);
	burn_here(100);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct guest_case cases[] = {
		{ "changes_root", changes_root },
		{ "changes_directory", changes_directory },
		{ "without_stdio", without_stdio },
		{ "starts_without_stdio", starts_without_stdio },
		{ "closes_all", closes_all },
		{ "few_files", few_files },
		{ "few_signals", few_signals },
		{ "little_memory", little_memory },
		{ "little_file_space", little_file_space },
		{ "burn_only", burn_only },
		{ "small_main_stack", small_main_stack },
		{ "denied_before", denied_before },
		{ "denied_later", denied_later },
		{ "without_proc", without_proc },
		{ "other_ids", other_ids },
		{ "removes_itself", removes_itself },
		{ "changes_user", changes_user },
		{ NULL, NULL },
	};

	self = argv[0];
	return run_case(argc, argv, cases);
}
