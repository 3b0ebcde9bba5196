/* signal.h - what runs in signal handlers, and what hooks share with them: walking a stack, and
 * storing samples. All of it is in signal.c, which allocates nothing, takes no lock and calls only
 * what tools/signal_calls.txt allows. */
#ifndef AGENT_SIGNAL_H
#define AGENT_SIGNAL_H

#include <signal.h>
#include <stdbool.h>

#include "agent/module.h"

enum { STACK_MAX = 128 };

struct walk_start {
	uintptr_t pc, sp, bp; /* bp: the frame pointer's register */
};

/* Where the caller of this is. */
#define walk_here()                                                                  \
	__extension__({                                                              \
		struct walk_start here_;                                             \
		__asm__ volatile("lea (%%rip), %0\n\tmov %%rsp, %1\n\tmov %%rbp, %2" \
				 : "=r"(here_.pc), "=r"(here_.sp), "=r"(here_.bp));  \
		here_;                                                               \
	})

/* The stack from `start` to the thread's root, at most `max` frames, innermost first; frames of the
 * agent itself are left out. Returns how many; the last may be FRAME_TRUNCATED or
 * FRAME_NO_UNWIND. Never faults, whatever the registers are. Any context. */
uint32_t walk_stack(const struct walk_start *start, frame_t *frames, uint32_t max);

/* ---- samples: written by handlers, read by the agent thread */

enum sample_kind {
	SAMPLE_CPU,
	SAMPLE_WALL,
	/* CPU time that no sample was taken of, without frames, see cpu.c: of a thread that had a
	 * timer, and of one whose timer was put off to its end. */
	SAMPLE_REST,
	SAMPLE_REST_UNTIMED,
};

struct sample {
	int64_t time; /* nanoseconds, CLOCK_MONOTONIC */
	uint32_t tid, labels;
	uint32_t weight; /* ticks that it stands for */
	uint32_t source; /* CPU: the timer's number. Wall: 1 if it waits for the kernel */
	uint16_t kind, nframes;
	frame_t origin; /* CPU: where the thread started; 0: not known */
	uint64_t kin;	/* CPU: the same for threads that started with the same argument too. Wall:
			   the   thread's CPU clock */
	frame_t frames[STACK_MAX];
};

/* Where samples go: pages, there before any is written. */
enum { SAMPLE_RINGS = 16, SAMPLE_RING_BYTES = 128 << 10 };
extern _Atomic(void *) sample_memory;
/* Takes one sample out; false if there is none. One thread at a time. */
bool samples_take(struct sample *s);
/* Ticks that there was no room for since the last call. */
uint64_t samples_lost(void);
/* Forgets all of them: in a child after fork. */
void samples_reset(void);
/* Writes one of the last two. Any context. */
void sample_rest(enum sample_kind kind, uint32_t timer, uint32_t tid, uint32_t weight);

/* ---- timers of threads (timers.c) */

enum { TIMERS_MAX = 1 << 15 };

#define TIMER_ENDING (~0u) /* in place of the thread's id */
struct cpu_timer {
	_Alignas(64) atomic_uint tid; /* 0: free */
	atomic_int id;		      /* the kernel's; below 0: there is none, see timers.c */
	uint64_t first;		      /* the thread's clock at its first tick, in ns */
	atomic_ullong ticks;	      /* that signals stood for */
	atomic_ullong event;	      /* its perf event, see below; 0: none */
	uint64_t credit; /* ns that samples beside it stood for, and that are no whole tick */
	frame_t origin;	 /* where the thread started; 0: not known */
	uint64_t kin;	 /* see struct sample */
	uint32_t chance; /* of when its ticks are */
	uint16_t round;	 /* in which it was put off */
	bool is_steady;	 /* the event had its first tick, and has its period now */
};
/* In ns, the same for all threads, from a profile's start to the next one's. */
struct cpu_pace {
	uint64_t period; /* between ticks, in the mean */
	bool is_uneven;	 /* else they go on evenly from the first one */
	/* Of threads with a perf event: between its signals, and what each stands for. If timers
	 * tick between them these count as well. */
	uint64_t event_period, stands_for;
	bool timers_count;
};
extern struct cpu_pace cpu_pace;
/* How late in period number `n` its tick is: a little later in each than in the one before, until
 * it is early again. A program that does the same again and again, in a time that fits into our
 * period, would be seen at the same places each time if ticks were even. The step is the golden
 * ratio to the power of -4: with it few such times are left, and less chance is in it than in
 * chance. */
static inline uint64_t timer_delay(const struct cpu_timer *t, uint64_t n)
{
	uint32_t part = t->chance + (uint32_t)n * 0x255992d3u;

	return part * cpu_pace.period >> 32;
}
/* The thread's clock when it began to count. */
static inline uint64_t timer_begin(const struct cpu_timer *t)
{
	return t->first - timer_delay(t, 0);
}
/* Ticks of a thread whose clock is at `used`. */
static inline uint64_t timer_due(const struct cpu_timer *t, uint64_t used)
{
	uint64_t n;

	if (used < t->first)
		return 0;
	if (!cpu_pace.is_uneven)
		return (used - t->first) / cpu_pace.period + 1;
	used -= timer_begin(t);
	n = used / cpu_pace.period;
	return n + (used % cpu_pace.period >= timer_delay(t, n));
}
/* Sets the kernel's timer of that number for a thread whose clock is at `at` then. Any context. */
void cpu_timer_arm(int id, uint64_t at);
/* NULL before the first profile. Signals of a timer point to it. */
extern _Atomic(struct cpu_timer *) cpu_timers;
/* The process has, or had, a timer as well: for threads that have none. */
extern atomic_bool cpu_has_common_timer;
/* The calling thread's own; NULL: it has none. Any context. */
struct cpu_timer *cpu_timer_of(uint32_t tid);

/* A perf event (perf.h) is the number that the kernel knows it by, and its file. */
enum { EVENT_FD_BITS = 16, EVENT_FD_MAX = (1 << EVENT_FD_BITS) - 1 };
#define EVENT_FD(event) ((int)((event)&EVENT_FD_MAX))
enum { EVENT_WANTED = 1, EVENT_GONE }; /* not yet; no more, or there cannot be one */
/* Before an event of that number may send its first signal. */
void event_fds_note(int fd);

/* ---- stacks of other threads */

/* A piece of memory that may not be there, as the kernel could read it. */
struct window {
	uintptr_t at;
	size_t bytes;
	uint64_t words[64];
};

/* Whoever asked may take the question back as long as the thread has not begun to write. */
enum dump_state { DUMP_FREE, DUMP_ASKED, DUMP_ANSWERED, DUMP_WRITING };

/* What a thread writes when it is asked where it is. */
struct dump_slot {
	atomic_uint state; /* enum dump_state */
	uint32_t tid, labels, nframes;
	bool is_waiting; /* it was in a system call that has not ended */
	char name[16];
	frame_t frames[STACK_MAX];
	struct window window; /* for its handler */
};
/* Asks a thread of this process; it answers in `slot`, soon or never. */
bool dump_ask(struct dump_slot *slot, uint32_t tid);
/* Asks it for a sample, SAMPLE_WALL. */
bool wall_ask(uint32_t tid);

/* ---- the signal (hooks_signal.c) */

/* Installs the handler (settings.signal), once; what was there before gets what is not ours. */
bool signal_install(void);
bool signal_is_installed(void);
/* What the program believes is installed. Any context. */
void signal_set_program_action(const struct sigaction *action);
void signal_get_program_action(struct sigaction *action);
void signal_handler(int number, siginfo_t *info, void *context);
/* Was it sent by the agent? For whoever takes signals with sigwait. */
bool signal_is_ours(const siginfo_t *info);

#endif
