/* local.h - what the agent keeps for each thread of the program. */
#ifndef AGENT_LOCAL_H
#define AGENT_LOCAL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct thread;

/* All zero in a thread that the agent has not met yet. Signal handlers read and write it. */
struct local {
	int64_t heap_left;   /* bytes until an allocation is sampled; see heap.c */
	uint32_t heap_epoch; /* what it was drawn for */
	uint32_t inside;     /* above 0 the agent itself runs: hooks just pass calls on */
	uint32_t tid;	     /* 0: not asked yet */
	uint64_t random;     /* 0: not seeded yet */
	uintptr_t stack_top; /* where its stack ends; 0: not known */
	uintptr_t stack_low; /* and where it begins: all in between can be read. 0: not known */
	uint32_t labels;     /* a set of labels, see label.h; 0: none */
	uint32_t nsignals;   /* of ours that broke a system call: who waits goes on, see wait.h */
	int error;	     /* errno before the last of these calls */
	struct thread *self; /* see thread.h; or NULL */
	bool is_between;     /* its first or last act, which is ours: no tick stands for it */
};

/* Fast to reach, and never allocated late. */
extern __thread struct local local __attribute__((tls_model("initial-exec")));

static inline void agent_enter(void)
{
	local.inside++;
	__asm__ volatile("" ::: "memory");
}

static inline void agent_leave(void)
{
	__asm__ volatile("" ::: "memory");
	local.inside--;
}

/* xorshift64*: good enough to sample by. Any context. */
uint64_t local_random(void);
uint32_t local_tid(void);
/* The same in a thread that libc has just started, without a system call. */
uint32_t local_tid_at_start(void);
/* Of another that has not ended: libc knows it, and tells by the number of its CPU clock. 0: it
 * does not. */
uint32_t tid_of_thread(pthread_t thread);

#endif
