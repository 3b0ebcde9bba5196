/* agent.c - the agent comes to life when the library is loaded, and works in a thread of its own
 * from the moment something is switched on. */
#include "agent/agent.h"

#include <dlfcn.h>
#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "agent/kernel.h"
#include "agent/heap.h"
#include "agent/life.h"
#include "agent/local.h"
#include "agent/locks.h"
#include "agent/memory.h"
#include "agent/module.h"
#include "agent/real.h"
#include "agent/thread.h"
#include "agent/ticks.h"

#pragma weak dlvsym /* see weak.h */

enum { SECOND = 1000000000, STACK_BYTES = 256 << 10 };

#define PART(name) extern const struct agent_part part_##name;
#include "agent/parts.def"
#undef PART

static const struct agent_part *const parts[] = {
#define PART(name) &part_##name,
#include "agent/parts.def"
#undef PART
};
enum { NPARTS = sizeof(parts) / sizeof(*parts) };

atomic_uint agent_on;
bool agent_is_inert = true; /* until settings are read */
static atomic_int owner;    /* process id */

bool agent_is_ours(void)
{
	return !agent_is_inert && atomic_load(&owner) == getpid();
}

/* ---- switches: several may want the same thing */

static struct {
	struct lock lock;
	unsigned users[32];
} switches;

bool agent_switch_on(unsigned what)
{
	unsigned on = 0;

	if (agent_is_inert)
		return false;
	agent_enter();
	if (what & ~(unsigned)ON_TRACE) /* which walks no stacks */
		modules_update(false);
	lock_take(&switches.lock);
	if (what & (ON_MUTEX | ON_BLOCK | ON_TRACE))
		ticks_prepare();
	for (unsigned i = 0; i < 32; i++)
		if (what & 1u << i && switches.users[i]++ == 0)
			on |= 1u << i;
	atomic_fetch_or(&agent_on, on);
	lock_hooks_choose();
	lock_give(&switches.lock);
	agent_leave();
	return true;
}

void agent_switch_off(unsigned what)
{
	unsigned off = 0;

	lock_take(&switches.lock);
	for (unsigned i = 0; i < 32; i++)
		if (what & 1u << i && switches.users[i] && --switches.users[i] == 0)
			off |= 1u << i;
	atomic_fetch_and(&agent_on, ~off);
	lock_hooks_choose();
	lock_give(&switches.lock);
}

/* ---- the thread */

static struct {
	atomic_int state; /* 0: there is none */
	atomic_uint tid;
	atomic_bool is_main_gone;
	atomic_int wakes; /* changes with each agent_wake */
	int64_t due[NPARTS];
} thread;

void futex_sleep(atomic_int *word, int while_it_is, int64_t until)
{
	int64_t left = until - now_ns();
	struct timespec t = { left / SECOND, left % SECOND };

	if (left > 0)
		kernel_call(SYS_futex, (long)word, FUTEX_WAIT_PRIVATE, while_it_is,
			    until == INT64_MAX ? 0 : (long)&t);
}

void futex_wake(atomic_int *word)
{
	kernel_call(SYS_futex, (long)word, FUTEX_WAKE_PRIVATE, INT_MAX, 0);
}

void agent_wake(void)
{
	atomic_fetch_add(&thread.wakes, 1);
	futex_wake(&thread.wakes);
}

static int64_t run_work(bool is_woken)
{
	int64_t now = now_ns(), next = INT64_MAX;

	for (unsigned i = 0; i < NPARTS; i++) {
		if (!parts[i]->work)
			continue;
		if (is_woken || thread.due[i] <= now)
			thread.due[i] = parts[i]->work(now);
		if (thread.due[i] < next)
			next = thread.due[i];
	}
	return next;
}

void agent_main_ends(void)
{
	atomic_store(&thread.is_main_gone, true);
	if (atomic_load(&thread.state))
		agent_wake();
}

/* Without us the process would have ended with its last thread. The main one is still listed. */
static int64_t end_if_alone(int64_t next)
{
	int64_t soon = now_ns() + SECOND / 20;
	bool is_alone = threads_count() == 1;

	if (is_alone) {
		local.inside = 0; /* the program's exit handlers are not ours */
		exit(0);
	}
	return next < soon ? next : soon;
}

void agent_thread_begins(void)
{
	agent_enter(); /* for ever */
	thread_set_agent(local_tid());
	pages_keep();
	prctl(PR_SET_NAME, "kiln");
}

static void *run_parts(void *nothing)
{
	int seen = 0;

	agent_thread_begins();
	atomic_store(&thread.tid, local_tid());
	for (bool is_woken = true;;) {
		int64_t next = finish_is_asked() ? INT64_MAX : run_work(is_woken);

		finish_if_asked();
		if (atomic_load(&thread.is_main_gone))
			next = end_if_alone(next);
		futex_sleep(&thread.wakes, seen, next);
		is_woken = atomic_load(&thread.wakes) != seen;
		seen = atomic_load(&thread.wakes);
	}
	return nothing;
}

/* The thread has all signals blocked from its first instruction on. Programs with much thread-local
 * data need a larger stack than ours. */
bool agent_create_thread(void *(*run)(void *))
{
	sigset_t all, kept;
	pthread_attr_t attributes;
	pthread_t id;
	int failed = EINVAL;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &kept);
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	for (size_t bytes = STACK_BYTES; failed == EINVAL && bytes <= 64 * STACK_BYTES;
	     bytes *= 8) {
		pthread_attr_setstacksize(&attributes, bytes);
		failed = REAL_CALL(pthread_create)(&id, &attributes, run, NULL);
	}
	pthread_attr_destroy(&attributes);
	pthread_sigmask(SIG_SETMASK, &kept, NULL);
	if (!failed)
		thread_set_agent(tid_of_thread(id)); /* which never ends; it may not have begun */
	if (failed)
		agent_say("cannot start the agent's thread: %s", strerrordesc_np(failed));
	return !failed;
}

bool agent_start_thread(void)
{
	int kept = errno, was = 0;

	if (agent_is_inert)
		return false;
	if (atomic_load(&thread.state) || !atomic_compare_exchange_strong(&thread.state, &was, 1))
		return true;
	agent_enter();
	if (!agent_create_thread(run_parts))
		atomic_store(&thread.state, 0);
	agent_leave();
	errno = kept;
	return atomic_load(&thread.state);
}

bool agent_has_thread(void)
{
	return atomic_load(&thread.state);
}

bool agent_is_thread(void)
{
	return agent_has_thread() && atomic_load(&thread.tid) == local_tid();
}

/* Files first: whoever ends us may not wait for long. */
void parts_at_exit(void)
{
	for (unsigned i = NPARTS; i-- > 0;)
		if (parts[i]->at_exit)
			parts[i]->at_exit();
}

/* ---- forks */

void parts_before_fork(void)
{
	for (unsigned i = NPARTS; i-- > 0;)
		if (parts[i]->before_fork)
			parts[i]->before_fork();
	lock_take(&switches.lock);
}

void parts_after_fork(void)
{
	lock_give(&switches.lock);
	for (unsigned i = 0; i < NPARTS; i++)
		if (parts[i]->after_fork)
			parts[i]->after_fork();
}

void parts_in_child(void)
{
	atomic_store(&agent_on, 0);
	lock_hooks_choose();
	memset(switches.users, 0, sizeof(switches.users));
	atomic_store(&thread.state, 0);
	finish_forget();
	atomic_store(&owner, getpid());
	lock_give(&switches.lock);
	for (unsigned i = 0; i < NPARTS; i++)
		if (parts[i]->in_child)
			parts[i]->in_child();
}

/* ---- the beginning */

/* As KILN_EXE has it: a pattern with a slash is for the whole path. */
static bool is_wanted_program(void)
{
	char path[PATH_MAX] = "";
	const char *base, *shown = program_invocation_short_name;
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	if (!settings.exe)
		return true;
	path[n > 0 ? n : 0] = '\0';
	base = strrchr(path, '/');
	if (strchr(settings.exe, '/'))
		return fnmatch(settings.exe, path, 0) == 0;
	return fnmatch(settings.exe, base ? base + 1 : path, 0) == 0 ||
	       (shown && fnmatch(settings.exe, shown, 0) == 0);
}

static bool must_be_inert(void)
{
	const char *sanitizer;

	if (getauxval(AT_SECURE))
		return true; /* nor is the environment to be trusted */
	if (!dlvsym)
		return true; /* another libc than we know */
	if (real_other_copy())
		return true;
	say_init();
	settings_read();
	if (!is_wanted_program())
		return true;
	sanitizer = real_is_static() ? NULL : find_sanitizer();
	if (sanitizer)
		agent_say("this program is built with %s, so nothing is profiled", sanitizer);
	return sanitizer;
}

static void init_parts(void)
{
	for (unsigned i = 0; i < NPARTS; i++)
		if (parts[i]->init)
			parts[i]->init();
}

void agent_restart(void)
{
	agent_enter();
	init_parts();
	agent_leave();
}

__attribute__((constructor(101))) static void init(void)
{
	int kept = errno;

	agent_enter();
	hooks_malloc_find();
	real_init();
	lock_hooks_choose();
	agent_is_inert = must_be_inert();
	if (!agent_is_inert) {
		atomic_store(&owner, getpid());
		lock_hooks_find_calls();
		lock_hooks_choose();
		settings_claim();
		fork_init();
		exit_init();
		init_parts();
	}
	agent_leave();
	errno = kept;
}
