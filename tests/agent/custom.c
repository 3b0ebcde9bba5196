/* The program's own profiles: Go's rules, and many threads. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kiln.h"

enum { THREADS = 4, VALUES = 20000 };

static int ntests;
static kiln_profile *files;
static char values[THREADS][VALUES];

static void check(int is_good, const char *what)
{
	printf("%s %d - %s\n", is_good ? "ok" : "not ok", ++ntests, what);
}

__attribute__((noinline)) static int open_file(const void *value, int skip)
{
	int result = kiln_profile_add(files, value, skip);

	__asm__ volatile("");
	return result;
}

static void *opens_and_closes(void *number)
{
	char *own = values[(size_t)number];
	size_t failed = 0;

	for (int i = 0; i < VALUES; i++)
		failed += open_file(own + i, 0) != 0;
	for (int i = 0; i < VALUES; i++)
		failed += open_file(own + i, 0) != -EEXIST;
	for (int i = 0; i < VALUES; i += 2)
		kiln_profile_remove(files, own + i);
	return (void *)failed;
}

static void check_many_threads(void)
{
	pthread_t threads[THREADS];
	size_t failed = 0;

	for (size_t i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, opens_and_closes, (void *)i);
	for (size_t i = 0; i < THREADS; i++) {
		void *result;

		pthread_join(threads[i], &result);
		failed += (size_t)result;
	}
	check(failed == 0, "many threads add and remove");
	check(kiln_profile_count(files) == THREADS * VALUES / 2, "half of it is left");
	for (size_t i = 0; i < THREADS; i++)
		for (int k = 1; k < VALUES; k += 2)
			kiln_profile_remove(files, values[i] + k);
	check(kiln_profile_count(files) == 0, "all can be found to be removed");
}

/* When it happens another thread is likely to hold the lock. */
static void *removes_for_ever(void *is_over)
{
	while (!__atomic_load_n((int *)is_over, __ATOMIC_RELAXED))
		kiln_profile_remove(files, values);
	return NULL;
}

static void check_fork(void)
{
	int is_over = 0, failed = 0;
	pthread_t t;

	pthread_create(&t, NULL, removes_for_ever, &is_over);
	for (int i = 0; i < 100 && !failed; i++) {
		pid_t child = fork();
		int status = 1;

		if (child == 0) {
			alarm(5);
			_exit(kiln_profile_add(files, &child, 0) != 0);
		}
		failed += waitpid(child, &status, 0) != child || status != 0;
	}
	is_over = 1;
	pthread_join(t, NULL);
	check(failed == 0, "a child of fork can add too");
}

int main(int argc, char **argv)
{
	int a, b, c, fd = argc > 1 ? open(argv[1], O_CREAT | O_TRUNC | O_WRONLY, 0644) : -1;
	char name[20];
	int made = 0;

	files = kiln_profile_new("test.files");
	check(files && kiln_profile_find("test.files") == files, "a profile is made and found");
	check(!kiln_profile_new("test.files"), "its name is taken");
	check(!kiln_profile_new("heap") && !kiln_profile_new("profile"), "so are the agent's");
	check(!kiln_profile_new("") && !kiln_profile_new("a b") && !kiln_profile_new(NULL),
	      "these are no names");
	check(!kiln_profile_find("heap") && !kiln_profile_find("nothing"), "others are not found");
	check(open_file(&a, 0) == 0 && open_file(&b, 0) == 0 && open_file(&c, 1) == 0, "add");
	check(open_file(&a, 0) == -EEXIST, "not twice");
	kiln_profile_remove(files, &made);
	check(kiln_profile_count(files) == 3, "removing what is not there does nothing");
	check(kiln_write_profile("test.files", fd) == 0, "it is written");
	kiln_profile_remove(files, &a);
	kiln_profile_remove(files, &b);
	kiln_profile_remove(files, &c);
	check_many_threads();
	check_fork();
	for (int i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "more%d", i);
		made += kiln_profile_new(name) != NULL;
	}
	check(made > 20 && made < 1000, "there is a limit");
	printf("1..%d\n", ntests);
	return 0;
}
