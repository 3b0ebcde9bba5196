/* Threads end in all ways that there are. Each must do the same with the agent and without, and
 * leave nothing behind. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 300 };

static pthread_key_t key;
static atomic_int destroyed, cleaned, ran;

#define CHECK(what)                                             \
	do {                                                    \
		if (!(what)) {                                  \
			fprintf(stderr, "not so: %s\n", #what); \
			_exit(1);                               \
		}                                               \
	} while (0)

static void clean_up(void *unused)
{
	(void)unused;
	cleaned++;
}

/* Sets its own value again three times, as POSIX allows, and allocates. */
static void destroy(void *value)
{
	long round = (long)value;

	free(malloc(1000));
	destroyed++;
	if (round < 4)
		pthread_setspecific(key, (void *)(round + 1));
}

static void *returns(void *value)
{
	ran++;
	return value;
}

static void *exits(void *value)
{
	pthread_cleanup_push(clean_up, NULL);
	ran++;
	pthread_exit(value);
	pthread_cleanup_pop(0);
}

static void *is_cancelled(void *unused)
{
	pthread_cleanup_push(clean_up, NULL);
	ran++;
	for (;;)
		pause();
	pthread_cleanup_pop(0);
	return unused;
}

static void *has_data(void *value)
{
	pthread_setspecific(key, (void *)1L);
	return value;
}

static void *looks_at_itself(void *expected)
{
	pthread_attr_t own;
	void *low;
	size_t size, want = *(size_t *)expected;
	char here;

	pthread_getattr_np(pthread_self(), &own);
	pthread_attr_getstack(&own, &low, &size);
	pthread_attr_destroy(&own);
	CHECK(size >= want && size < want + 64 * 1024);
	CHECK(&here > (char *)low && &here < (char *)low + size);
	return expected;
}

static void join_all(void *(*run)(void *), const pthread_attr_t *attributes, void *argument)
{
	for (int i = 0; i < ROUNDS; i++) {
		pthread_t t;
		void *result = NULL;

		errno = 77;
		CHECK(pthread_create(&t, attributes, run, argument) == 0);
		CHECK(errno == 77);
		if (run == is_cancelled)
			CHECK(pthread_cancel(t) == 0);
		CHECK(pthread_join(t, &result) == 0);
		CHECK(result == (run == is_cancelled ? PTHREAD_CANCELED : argument));
	}
}

static void test_attributes(void)
{
	static char memory[64 << 10] __attribute__((aligned(4096)));
	size_t small = 16 << 10, given = sizeof(memory);
	pthread_attr_t a;

	pthread_attr_init(&a);
	pthread_attr_setstacksize(&a, small);
	join_all(looks_at_itself, &a, &small);
	pthread_attr_setstack(&a, memory, given);
	join_all(looks_at_itself, &a, &given);
}

static void test_failure(void)
{
	pthread_attr_t a;
	pthread_t t;

	pthread_attr_init(&a);
	pthread_attr_setstacksize(&a, (size_t)1 << 46);
	for (int i = 0; i < 20000; i++)
		CHECK(pthread_create(&t, &a, returns, NULL) == EAGAIN);
	join_all(returns, NULL, &t);
	CHECK(ran == ROUNDS);
}

static void test_detached(void)
{
	pthread_attr_t a;
	pthread_t t;

	pthread_attr_init(&a);
	pthread_attr_setdetachstate(&a, PTHREAD_CREATE_DETACHED);
	for (int i = 0; i < ROUNDS; i++)
		while (pthread_create(&t, &a, returns, NULL) != 0)
			usleep(100);
	while (ran < ROUNDS)
		usleep(1000);
}

static void *forks(void *unused)
{
	int status = 1;
	pid_t child = fork();

	if (child == 0) {
		join_all(returns, NULL, &child);
		pthread_exit(NULL); /* the last thread: the process ends well */
	}
	CHECK(waitpid(child, &status, 0) == child);
	CHECK(status == 0);
	return unused;
}

static void *outlives_main(void *main_thread)
{
	pthread_join(*(pthread_t *)main_thread, NULL);
	usleep(10000);
	ran++;
	return NULL;
}

/* The process ends with its last thread, whatever the agent has. */
static void test_main_exits(void)
{
	static pthread_t self;
	pthread_t t;

	self = pthread_self();
	pthread_create(&t, NULL, outlives_main, &self);
	pthread_exit(NULL);
}

int main(int argc, char **argv)
{
	const char *kind = argc > 1 ? argv[1] : "return";
	int value;

	pthread_key_create(&key, destroy);
	if (strcmp(kind, "return") == 0) {
		join_all(returns, NULL, &value);
	} else if (strcmp(kind, "exit") == 0) {
		join_all(exits, NULL, &value);
		CHECK(cleaned == ROUNDS);
	} else if (strcmp(kind, "cancel") == 0) {
		join_all(is_cancelled, NULL, &value);
		CHECK(cleaned == ran); /* some are cancelled before they run */
	} else if (strcmp(kind, "destructor") == 0) {
		join_all(has_data, NULL, &value);
		CHECK(destroyed == 4 * ROUNDS);
	} else if (strcmp(kind, "attributes") == 0) {
		test_attributes();
	} else if (strcmp(kind, "failure") == 0) {
		test_failure();
	} else if (strcmp(kind, "detached") == 0) {
		test_detached();
	} else if (strcmp(kind, "main") == 0) {
		test_main_exits();
	} else if (strcmp(kind, "fork") == 0) {
		pthread_t t;

		for (int i = 0; i < 10; i++) {
			pthread_create(&t, NULL, forks, NULL);
			pthread_join(t, NULL);
		}
	} else {
		return 2;
	}
	return 0;
}
