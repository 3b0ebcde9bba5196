/* Threads meet at a lock while it is watched, while it is not, and while it is again: 3 meetings
 * each. `watch` and `ignore` are where the lock is taken meanwhile. */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

__attribute__((noinline, noclone)) static void *watch(void *unused)
{
	pthread_mutex_lock(&mutex);
	pthread_mutex_unlock(&mutex);
	__asm__ volatile("");
	return unused;
}

__attribute__((noinline, noclone)) static void *ignore(void *unused)
{
	pthread_mutex_lock(&mutex);
	pthread_mutex_unlock(&mutex);
	__asm__ volatile("");
	return unused;
}

/* By a pointer, too: some programs have other addresses for that. */
static int (*volatile lock)(pthread_mutex_t *m) = pthread_mutex_lock;

static void meet(void *(*run)(void *unused))
{
	pthread_t thread;

	for (int i = 0; i < 3; i++) {
		lock(&mutex);
		pthread_create(&thread, NULL, run, NULL);
		usleep(20000);
		pthread_mutex_unlock(&mutex);
		pthread_join(thread, NULL);
	}
}

/* Not all programs can name a function that may not be there. */
static void set(int is_on)
{
	void (*mutex_fraction)(int) = dlsym(RTLD_DEFAULT, "kiln_set_mutex_fraction");
	void (*block_rate)(int64_t) = dlsym(RTLD_DEFAULT, "kiln_set_block_rate");

	mutex_fraction(is_on);
	block_rate(is_on);
}

static void write_profile(const char *name, const char *file)
{
	int (*write_to)(const char *, int) = dlsym(RTLD_DEFAULT, "kiln_write_profile");
	int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	write_to(name, fd);
	close(fd);
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	meet(ignore);
	set(1);
	meet(watch);
	set(0);
	meet(ignore);
	set(1);
	meet(watch);
	set(0);
	write_profile("block", argv[1]);
	write_profile("mutex", argv[2]);
	return 0;
}
