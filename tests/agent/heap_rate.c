/* heap_rate.c - the rate is changed while the program runs, in a thread that has allocated before.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "kiln.h"

#define PLACE(name)                                                       \
	__attribute__((noinline, noclone)) static void name(int times)    \
	{                                                                 \
		for (int i = 0; i < times; i++) {                         \
			void *p = malloc(1000);                           \
                                                                          \
			__asm__ volatile("# " #name : "+r"(p)::"memory"); \
			free(p);                                          \
		}                                                         \
	}

PLACE(rare_place)
PLACE(all_place)
PLACE(none_place)

static pthread_barrier_t barrier;

static void *run(void *nothing)
{
	rare_place(100);
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier); /* the rate is 1 */
	all_place(500);
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier); /* the rate is 0 */
	none_place(100000);
	return nothing;
}

int main(void)
{
	pthread_t thread;

	pthread_barrier_init(&barrier, NULL, 2);
	kiln_set_heap_rate(1 << 30);
	pthread_create(&thread, NULL, run, NULL);
	pthread_barrier_wait(&barrier);
	kiln_set_heap_rate(1);
	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	kiln_set_heap_rate(0);
	pthread_barrier_wait(&barrier);
	pthread_join(thread, NULL);
	printf("all_place 500 500000 0 0\n");
	return 0;
}
