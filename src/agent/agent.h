/* agent.h - the agent's life: settings, its thread, what it has to say.
 *
 * Loaded into a program, it does nothing but read its settings; each hook then costs one test. The
 * thread is started by the first part that has work for it, and no earlier: libc's locks are faster
 * in programs with one thread.
 */
#ifndef AGENT_AGENT_H
#define AGENT_AGENT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* What is switched on, as bits: hooks look at this word first. */
enum {
	ON_HEAP = 1,
	ON_MUTEX = 2,
	ON_BLOCK = 4,
	ON_CPU = 8,
	ON_WALL = 16,
	ON_TRACE = 32,
	ON_THREADS = 64 /* threads are registered as they start */
};
extern atomic_uint agent_on __attribute__((visibility("hidden")));
static inline unsigned agent_is_on(unsigned what)
{
	return atomic_load_explicit(&agent_on, memory_order_relaxed) & what;
}
/* Tables for unwinding, for whoever needs them, are made before this returns. */
bool agent_switch_on(unsigned what);
void agent_switch_off(unsigned what);

/* Every variable of the environment is one line in settings.def. */
struct settings {
#define SETTING_TEXT(field, variable, about) const char *field; /* NULL: not set */
#define SETTING_FILE(field, variable, about) const char *field;
#define SETTING_NUMBER(field, variable, standard, about) int64_t field;
#include "agent/settings.def"
#undef SETTING_TEXT
#undef SETTING_FILE
#undef SETTING_NUMBER
};
extern struct settings settings;

/* Is this process to be left alone (setuid, another program than KILN_EXE names, a sanitizer)? Set
 * before anything else runs. */
extern bool agent_is_inert;

/* Starts the agent thread if it does not run. Anything may call it, but signal handlers. */
bool agent_start_thread(void);
/* A further thread of the agent's, which begins with agent_thread_begins. False: agent_say told. */
bool agent_create_thread(void *(*run)(void *));
void agent_thread_begins(void);
/* Wakes it up before its time. Any context. */
void agent_wake(void);

/* A part of the agent with work of its own; one line in parts.def. Any may be NULL. */
struct agent_part {
	const char *name;
	void (*init)(void);	      /* when the library is loaded, before main */
	int64_t (*work)(int64_t now); /* by the agent thread; returns when to call it next, in ns
					 of CLOCK_MONOTONIC, INT64_MAX: not until woken */
	void (*before_fork)(void), (*after_fork)(void), (*in_child)(void);
	void (*at_exit)(void);
};

/* "kiln: ..." on standard error as it was at start, if it is still that. Never twice the same. */
void agent_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
int64_t now_ns(void); /* CLOCK_MONOTONIC; any context */
int64_t wall_ns(void);

#endif
