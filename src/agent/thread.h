/* thread.h - the program's threads. Those that start through pthread_create or thrd_create are
 * known at once, others when /proc/self/task is read. */
#ifndef AGENT_THREAD_H
#define AGENT_THREAD_H

#include <stdbool.h>
#include <stdint.h>

enum { NAME_MAX_THREAD = 16 };

/* Called in each thread that starts, when registering is on, and when it ends (also by pthread_exit
 * and pthread_cancel); for cpu.c's timers. The thread is inside the agent. */
void cpu_thread_starts(void);
void cpu_thread_ends(void);

/* The thread ids of the process now, but the agent's; in pages of `*cap` bytes that the caller
 * unmaps. Returns how many. */
uint32_t threads_list(uint32_t **tids, size_t *cap);
/* Is it the agent's own? */
bool thread_is_agent(uint32_t tid);
void thread_set_agent(uint32_t tid);

#endif
