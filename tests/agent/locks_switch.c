/* Threads meet at a lock while it is watched, while it is not, and while it is again: 3 meetings
 * each. `watch` and `ignore` are where the lock is taken meanwhile. With a third argument nobody
 * may write to the program's table of functions when it is to be watched first. */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096 };

/* Three words of the loader's, maybe at the end of a page, before the functions. */
extern uintptr_t _GLOBAL_OFFSET_TABLE_[];

/* Not in the table's page. */
static _Alignas(PAGE) pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

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

static void allow(int what)
{
	uintptr_t page = (uintptr_t)&_GLOBAL_OFFSET_TABLE_[3] & ~(uintptr_t)(PAGE - 1);

	mprotect((void *)page, PAGE, what);
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	meet(ignore);
	if (argc > 3)
		allow(PROT_READ);
	set(1);
	if (argc > 3)
		allow(PROT_READ | PROT_WRITE);
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
