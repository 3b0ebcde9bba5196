/* measure.c - runs a command with its output thrown away and tells what it took.
 *
 *	measure RUNS COMMAND [ARGUMENT ...]
 *
 * prints "wall-seconds cpu-seconds peak-rss-kilobytes status", the medians of all runs. A program
 * of its own because a child's peak RSS starts with that of the parent which spawned it.
 */
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#define RUNS_MAX 1000

struct figures {
	double wall, cpu;
	long rss;
};

extern char **environ;

static double seconds(struct timeval t)
{
	return (double)t.tv_sec + (double)t.tv_usec / 1e6;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int by_wall(const void *a, const void *b)
{
	double x = ((const struct figures *)a)->wall, y = ((const struct figures *)b)->wall;

	return (x > y) - (x < y);
}

static int run(char **argv, struct figures *f)
{
	posix_spawn_file_actions_t actions;
	struct rusage usage;
	double start;
	pid_t pid;
	int status;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
	start = now();
	if (posix_spawn(&pid, argv[0], &actions, NULL, argv, environ) != 0)
		return 127;
	if (wait4(pid, &status, 0, &usage) != pid)
		return 127;
	*f = (struct figures){ now() - start, seconds(usage.ru_utime) + seconds(usage.ru_stime),
			       usage.ru_maxrss };
	posix_spawn_file_actions_destroy(&actions);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

int main(int argc, char **argv)
{
	static struct figures all[RUNS_MAX];
	int runs = argc > 2 ? atoi(argv[1]) : 0, status = 0;
	struct figures *median = &all[runs / 2];

	if (runs < 1 || runs > RUNS_MAX) {
		fprintf(stderr, "usage: measure RUNS COMMAND [ARGUMENT ...]\n");
		return 2;
	}
	for (int i = 0; i < runs && !status; i++)
		status = run(argv + 2, &all[i]);
	qsort(all, (size_t)runs, sizeof(all[0]), by_wall);
	printf("%.6f %.6f %ld %d\n", median->wall, median->cpu, median->rss, status);
	return 0;
}
