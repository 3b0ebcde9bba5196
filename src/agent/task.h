/* task.h - what the kernel tells about a thread of this process, in /proc/self/task. */
#ifndef AGENT_TASK_H
#define AGENT_TASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/thread.h"

/* False: it is gone, or there is no /proc; the name is "" then. */
bool task_name(uint32_t tid, char name[NAME_MAX_THREAD]);
/* The letter that ps shows; '?': not known. With `signal`: does it block that? */
char task_state(uint32_t tid, int signal, bool *blocks);
/* The function of the kernel that it waits in, or else the system call it is in; or "". */
void task_waits_in(uint32_t tid, char *text, size_t size);
/* Its CPU time in nanoseconds. */
int64_t task_cpu(uint32_t tid);

#endif
