/* guest_thread.c - threads that come, go and are cancelled, in great numbers. */
#include <fcntl.h>
#include <poll.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <threads.h>

#include "guest.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t nobody_signals = PTHREAD_COND_INITIALIZER;
static sem_t nobody_posts;
static int pipe_fds[2];
static atomic_int ncleanups;

static void cleanup(void *what)
{
	ncleanups++;
	if (what)
		pthread_mutex_unlock(what);
	free(malloc(5000));
}

static void *in_cond(void *argument)
{
	pthread_mutex_lock(&lock);
	pthread_cleanup_push(cleanup, &lock);
	for (;;)
		pthread_cond_wait(&nobody_signals, &lock);
	pthread_cleanup_pop(1);
	return argument;
}
static void *in_sem(void *argument)
{
	pthread_cleanup_push(cleanup, NULL);
	sem_wait(&nobody_posts);
	pthread_cleanup_pop(1);
	return argument;
}
static void *in_read(void *argument)
{
	char c;

	pthread_cleanup_push(cleanup, NULL);
	(void)!read(pipe_fds[0], &c, 1);
	pthread_cleanup_pop(1);
	return argument;
}
static void *in_poll(void *argument)
{
	struct pollfd p = { pipe_fds[0], POLLIN, 0 };

	pthread_cleanup_push(cleanup, NULL);
	poll(&p, 1, -1);
	pthread_cleanup_pop(1);
	return argument;
}
static void *in_sleep(void *argument)
{
	pthread_cleanup_push(cleanup, NULL);
	for (;;)
		nap(100);
	pthread_cleanup_pop(1);
	return argument;
}
static void *in_join(void *other)
{
	pthread_cleanup_push(cleanup, NULL);
	pthread_join(*(pthread_t *)other, NULL);
	pthread_cleanup_pop(1);
	return NULL;
}
static void *in_work(void *argument)
{
	pthread_cleanup_push(cleanup, NULL);
	for (;;) {
		free(malloc(5000));
		burn(1);
		pthread_testcancel();
	}
	pthread_cleanup_pop(1);
	return argument;
}
/* At any instruction. */
static void *in_loop(void *argument)
{
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
	for (;;)
		STAYS;
	return argument;
}

static int cancelled(void)
{
	static void *(*const where[])(void *) = { in_cond,  in_sem,  in_read, in_poll,
						  in_sleep, in_work, in_loop };

	CHECK(pipe(pipe_fds) == 0);
	sem_init(&nobody_posts, 0, 0);
	for (int round = 0; round < 10; round++)
		for (size_t i = 0; i < sizeof(where) / sizeof(*where); i++) {
			pthread_t thread, joins;
			void *result = NULL;

			pthread_create(&thread, NULL, where[i], NULL);
			pthread_create(&joins, NULL, in_join, &thread);
			nap(3);
			pthread_cancel(joins);
			pthread_join(joins, &result);
			CHECK(result == PTHREAD_CANCELED);
			pthread_cancel(thread);
			CHECK(pthread_join(thread, &result) == 0);
			CHECK(result == PTHREAD_CANCELED);
			CHECK(pthread_mutex_trylock(&lock) == 0);
			pthread_mutex_unlock(&lock);
		}
	printf("%d cleanups\n", ncleanups);
	return 0;
}

static void *exits(void *argument)
{
	burn(2);
	pthread_exit((char *)argument + 5);
}

static int exit_threads(void)
{
	for (int i = 0; i < 50; i++) {
		pthread_t thread;
		void *result;

		pthread_create(&thread, NULL, exits, NULL);
		pthread_join(thread, &result);
		CHECK(result == (void *)5);
	}
	return 0;
}

static pthread_key_t key;
static atomic_int ndestroyed;

/* Runs again for what it sets, up to four times. */
static void destroy(void *value)
{
	int round = *(int *)value;
	int *next = malloc(sizeof(*next));

	free(value);
	*next = round + 1;
	ndestroyed++;
	burn(1);
	if (round < 3)
		pthread_setspecific(key, next);
	else
		free(next);
}

static void *set_key(void *argument)
{
	int *value = malloc(sizeof(*value));

	*value = 0;
	pthread_setspecific(key, value);
	return argument;
}

static int destructors(void)
{
	pthread_key_create(&key, destroy);
	for (int i = 0; i < 50; i++) {
		pthread_t thread;

		pthread_create(&thread, NULL, set_key, NULL);
		pthread_join(thread, NULL);
	}
	printf("%d\n", ndestroyed);
	return 0;
}

static void *pass_gate(void *gate)
{
	pthread_mutex_lock(gate);
	pthread_mutex_unlock(gate);
	return NULL;
}

/* Waits for a byte on standard input while all of them are there. */
static int live(void)
{
	enum { MANY = 10000 };
	static pthread_t threads[MANY];
	pthread_attr_t attributes;
	int n;

	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 32768);
	pthread_mutex_lock(&lock);
	for (n = 0; n < MANY; n++)
		if (pthread_create(&threads[n], &attributes, pass_gate, &lock) != 0)
			break;
	printf("ready\n");
	getchar();
	burn(100);
	pthread_mutex_unlock(&lock);
	for (int i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	printf("%d\n", n);
	return 0;
}

static void *burn_little(void *argument)
{
	free(malloc(5000));
	burn(0);
	return argument;
}

static int storm(void)
{
	pthread_t threads[50];

	for (int wave = 0; wave < 60; wave++) {
		for (int i = 0; i < 50; i++)
			pthread_create(&threads[i], NULL, burn_little, NULL);
		for (int i = 0; i < 50; i++)
			pthread_join(threads[i], NULL);
	}
	return 0;
}

NOT_INLINED static int burn_c11(void *argument)
{
	burn(100);
	STAYS;
	return argument != NULL;
}

static int c11(void)
{
	thrd_t thread;
	int result = 0;

	CHECK(thrd_create(&thread, burn_c11, &result) == thrd_success);
	CHECK(thrd_join(thread, &result) == thrd_success);
	printf("%d\n", result);
	return 0;
}

static void *outlive(void *argument)
{
	nap(50);
	burn(100);
	printf("last\n");
	return argument;
}

static int main_exits(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, outlive, NULL);
	pthread_detach(thread);
	burn(50);
	pthread_exit(NULL);
}

static void *work_for_ever(void *argument)
{
	for (;;) {
		free(malloc(5000));
		pthread_mutex_lock(&lock);
		pthread_mutex_unlock(&lock);
	}
	return argument;
}

/* exit while all others go on. */
static int others_work(void)
{
	for (int i = 0; i < 4; i++) {
		pthread_t thread;

		pthread_create(&thread, NULL, work_for_ever, NULL);
		pthread_detach(thread);
	}
	nap(150);
	return 6;
}

static void *exit_all(void *argument)
{
	burn(50);
	exit(8);
	return argument;
}

static int exit_from_thread(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, exit_all, NULL);
	for (;;)
		pause();
}

/* As what makes a sandbox does, which must have one thread. */
static void print_threads(const char *when)
{
	struct stat by_path, by_folder;
	struct stat64 by_path64, by_folder64;
	int folder = open("/proc/", O_RDONLY | O_DIRECTORY);

	CHECK(stat("/proc/self/task", &by_path) == 0 &&
	      stat64("/proc/self/task/", &by_path64) == 0);
	CHECK(fstatat(folder, "self/task/", &by_folder, 0) == 0);
	CHECK(fstatat64(folder, "self/task", &by_folder64, 0) == 0);
	printf("%s: %d %d %d %d\n", when, (int)by_path.st_nlink, (int)by_path64.st_nlink,
	       (int)by_folder.st_nlink, (int)by_folder64.st_nlink);
	CHECK(stat("/proc/nobody/self/task", &by_path) == -1 && errno == ENOENT);
	close(folder);
}

static void *meet_twice(void *barrier)
{
	pthread_barrier_wait(barrier);
	pthread_barrier_wait(barrier);
	return barrier;
}

static int counted(void)
{
	pthread_barrier_t barrier;
	pthread_t thread;
	pid_t child;

	print_threads("alone");
	pthread_barrier_init(&barrier, NULL, 2);
	pthread_create(&thread, NULL, meet_twice, &barrier);
	pthread_barrier_wait(&barrier);
	print_threads("two");
	child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0); /* nobody sees it start */
	if (child == 0) {
		print_threads("in a child");
		_exit(0);
	}
	waitpid(child, NULL, 0);
	pthread_barrier_wait(&barrier);
	pthread_join(thread, NULL);
	burn(50);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct guest_case cases[] = {
		{ "counted", counted },
		{ "cancelled", cancelled },
		{ "exit_threads", exit_threads },
		{ "destructors", destructors },
		{ "live", live },
		{ "storm", storm },
		{ "c11", c11 },
		{ "main_exits", main_exits },
		{ "others_work", others_work },
		{ "exit_from_thread", exit_from_thread },
		{ NULL, NULL },
	};

	return run_case(argc, argv, cases);
}
