/* heap_threads.c - threads that allocate and free each other's memory in no order, and signal
 * handlers that do the same in between; what is left at the end is known. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

enum { THREADS = 4, SLOTS = 20000, STEPS = 200000, KEPT = 1000 };

static _Atomic(void *) slots[SLOTS];
static void *kept[KEPT];
static atomic_ulong total;

__attribute__((noinline, noclone)) static void *passing_place(size_t n)
{
	void *p = malloc(n);

	__asm__ volatile("" : "+r"(p)::"memory");
	return p;
}

__attribute__((noinline, noclone)) static void *kept_place(void)
{
	void *p = malloc(48);

	__asm__ volatile("" : "+r"(p)::"memory");
	return p;
}

static void *run(void *argument)
{
	uint64_t x = (uintptr_t)argument * 7919 + 1;

	for (int i = 0; i < STEPS; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		free(atomic_exchange(&slots[x % SLOTS], passing_place(x >> 40 & 255)));
		atomic_fetch_add(&total, 1);
	}
	return NULL;
}

/* Not allowed, and done. glibc survives it as long as both sizes come out of its caches for
 * threads, so what is in danger is the agent. */
static volatile sig_atomic_t nhandled;

__attribute__((noinline, noclone)) static void *handler_place(void)
{
	void *p = malloc(500);

	__asm__ volatile("" : "+r"(p)::"memory");
	return p;
}

static void on_signal(int signal)
{
	(void)signal;
	free(handler_place());
	nhandled++;
}

static void run_signals(void)
{
	struct itimerval often = { { 0, 200 }, { 0, 200 } }, never = { { 0, 0 }, { 0, 0 } };

	free(handler_place());
	free(passing_place(24));
	signal(SIGALRM, on_signal);
	setitimer(ITIMER_REAL, &often, NULL);
	while (nhandled < 1000)
		free(passing_place(24));
	setitimer(ITIMER_REAL, &never, NULL);
}

int main(void)
{
	pthread_t threads[THREADS];

	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, run, (void *)(i + 1));
	for (int i = 0; i < KEPT; i++)
		kept[i] = kept_place();
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < SLOTS; i++)
		free(atomic_load(&slots[i]));
	run_signals();
	printf("kept_place %d %d %d %d\n", KEPT, KEPT * 48, KEPT, KEPT * 48);
	return 0;
}
