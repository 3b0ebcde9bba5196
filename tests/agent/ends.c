/* Ends in the way that its first argument names, after what the others name. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

/* A second of work is enough for any profile to have something. */
static void *work(void *milliseconds)
{
	double seconds = (double)(size_t)milliseconds / 1000;
	volatile double x = 1;

	for (clock_t begin = clock(); (double)(clock() - begin) < seconds * CLOCKS_PER_SEC;)
		for (int i = 0; i < 10000; i++)
			x = x * 1.0000001 + 1e-9;
	for (int i = 0; i < 100; i++) {
		void *volatile leaked = malloc(100000);

		memset(leaked, 1, 100000);
	}
	return NULL;
}

static void end_child(int status)
{
	pid_t child = fork();

	if (child == 0)
		exit(status);
	waitpid(child, &status, 0);
	child = fork();
	if (child == 0)
		_exit(status);
	waitpid(child, &status, 0);
	child = vfork();
	if (child == 0)
		_exit(status);
	waitpid(child, &status, 0);
}

static void spawn(void)
{
	char *args[] = { "/bin/true", NULL };
	pid_t child;
	int status = 0;

	if (posix_spawn(&child, args[0], NULL, NULL, args, environ) == 0)
		waitpid(child, &status, 0);
	if (system("true") != 0)
		printf("system failed\n");
}

static void close_all(int lowest)
{
	for (int i = lowest; i < 2048; i++)
		close(i);
}

static void on_term(int signal)
{
	(void)signal;
	_exit(7);
}

static void on_term_again(int s)
{
	signal(s, SIG_DFL);
	raise(s);
}

static void before(const char *what)
{
	if (strcmp(what, "fork") == 0)
		end_child(5);
	else if (strcmp(what, "spawn") == 0)
		spawn();
	else if (strcmp(what, "chdir") == 0 && chdir("/") != 0)
		exit(90);
	else if (strcmp(what, "chroot") == 0 && (chroot("/proc") != 0 || chdir("/") != 0))
		exit(91);
	else if (strcmp(what, "closefds") == 0)
		close_all(3);
	else if (strcmp(what, "closeall") == 0)
		close_all(0);
	else if (strcmp(what, "daemon") == 0 && daemon(1, 1) != 0)
		exit(92);
	else if (strcmp(what, "session") == 0) {
		if (fork() > 0)
			_exit(0);
		setsid();
	} else if (strcmp(what, "handler") == 0)
		signal(SIGTERM, on_term);
	else if (strcmp(what, "again") == 0)
		signal(SIGTERM, on_term_again);
	else if (strcmp(what, "ignore") == 0)
		signal(SIGTERM, SIG_IGN);
	else if (strcmp(what, "default") == 0) {
		if (signal(SIGTERM, SIG_DFL) != SIG_DFL || signal(SIGINT, SIG_IGN) != SIG_DFL)
			exit(93);
	} else if (strcmp(what, "inherited") == 0) {
		struct sigaction now;

		if (sigaction(SIGTERM, NULL, &now) != 0 || now.sa_handler != SIG_DFL)
			exit(94);
	} else if (strcmp(what, "pid") == 0) {
		printf("%d\n", (int)getpid());
		fflush(stdout);
	}
}

static void *exit_here(void *status)
{
	work((void *)50);
	exit((int)(size_t)status);
}

static void end(const char *how)
{
	pthread_t thread;

	if (strcmp(how, "exit") == 0)
		exit(3);
	if (strcmp(how, "_exit") == 0)
		_exit(3);
	if (strcmp(how, "_Exit") == 0)
		_Exit(3);
	if (strcmp(how, "quick_exit") == 0)
		quick_exit(3);
	if (strcmp(how, "pthread_exit") == 0) {
		pthread_create(&thread, NULL, work, (void *)100);
		pthread_exit(NULL);
	}
	if (strcmp(how, "thread") == 0) {
		pthread_create(&thread, NULL, exit_here, (void *)3);
		pause();
	}
	if (strcmp(how, "term") == 0)
		raise(SIGTERM);
	if (strcmp(how, "int") == 0)
		kill(getpid(), SIGINT);
	if (strcmp(how, "abort") == 0)
		abort();
	if (strcmp(how, "pause") == 0)
		for (;;)
			pause();
}

int main(int argc, char **argv)
{
	work((void *)100);
	for (int i = 2; i < argc; i++)
		before(argv[i]);
	work((void *)100);
	end(argc > 1 ? argv[1] : "return");
	return 3;
}
