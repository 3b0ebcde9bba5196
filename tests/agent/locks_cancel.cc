// Threads that are cancelled while they wait: what they have on their stacks is destroyed.
#include <cstdio>
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static sem_t sem;
static pthread_t sleeper;
static int ndestroyed;

struct guard {
	~guard()
	{
		__atomic_add_fetch(&ndestroyed, 1, __ATOMIC_SEQ_CST);
	}
};

static void *wait_for_cond(void *)
{
	guard g;

	pthread_mutex_lock(&mutex);
	pthread_cleanup_push([](void *m) { pthread_mutex_unlock((pthread_mutex_t *)m); }, &mutex);
	for (;;)
		pthread_cond_wait(&cond, &mutex);
	pthread_cleanup_pop(1);
}

static void *wait_for_semaphore(void *)
{
	guard g;

	for (;;)
		sem_wait(&sem);
}

static void *wait_for_semaphore_timed(void *)
{
	guard g;
	timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += 60;
	for (;;)
		sem_timedwait(&sem, &until);
}

static void *sleep_long(void *)
{
	sleep(60);
	return nullptr;
}

static void *wait_for_thread(void *)
{
	guard g;

	pthread_join(sleeper, nullptr);
	return nullptr;
}

int main()
{
	void *(*const all[])(void *) = { wait_for_cond, wait_for_semaphore,
					 wait_for_semaphore_timed, wait_for_thread };
	int nthreads = 0;

	sem_init(&sem, 0, 0);
	pthread_create(&sleeper, nullptr, sleep_long, nullptr);
	for (int round = 0; round < 5; round++)
		for (auto wait : all) {
			pthread_t thread;
			void *result;

			pthread_create(&thread, nullptr, wait, nullptr);
			usleep(round * 1000);
			pthread_cancel(thread);
			pthread_join(thread, &result);
			nthreads++;
			if (result != PTHREAD_CANCELED)
				return printf("it was not cancelled\n"), 1;
		}
	if (pthread_mutex_trylock(&mutex) != 0)
		return printf("the mutex was not given back\n"), 1;
	// Some are cancelled before they have begun.
	if (ndestroyed < nthreads * 3 / 5)
		return printf("%d of %d destroyed\n", ndestroyed, nthreads), 1;
	return 0;
}
