/* hooks_thread.c - stands between pthread_create or thrd_create and a thread's start routine: a
 * thread's first and last act are ours.
 *
 * The last is a destructor of thread-specific data: it runs however the thread ends, after the
 * destructors of C++, and needs no frame of ours below the program's. */
#include <errno.h>
#include <pthread.h>
#include <threads.h>

#include "kiln.h"
#include "agent/agent.h"
#include "agent/life.h"
#include "agent/local.h"
#include "agent/profiles.h"
#include "agent/real.h"
#include "agent/signal.h"
#include "agent/stack.h"
#include "agent/thread.h"
#include "agent/timers.h"

/* A thread's descriptor lies above its first frame and ends its stack, so that so much may be read
 * there: the frames of libc that called us. */
enum { ABOVE_FIRST_FRAME = 512, DESCRIPTOR_MAX = 4096 };

static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool has_key;
static size_t standard_stack_bytes;

static void thread_ends(void *place)
{
	struct thread *t = place;
	int kept = errno;

	/* Once more, to come after the program's destructors. */
	if (!t->is_ending) {
		t->is_ending = true;
		if (pthread_setspecific(key, t) == 0)
			return;
	}
	agent_enter();
	local.is_between = true;
	timers_thread_ends();
	if (agent_is_on(ON_TRACE))
		trace_thread_ends();
	local.self = NULL;
	thread_give(t);
	agent_leave();
	errno = kept;
}

static void prepare_all(void)
{
	pthread_attr_t standard;

	has_key = pthread_key_create(&key, thread_ends) == 0;
	if (pthread_getattr_default_np(&standard) == 0) {
		pthread_attr_getstacksize(&standard, &standard_stack_bytes);
		pthread_attr_destroy(&standard);
	}
}

/* The main thread has no place; it needs a key of its own. */
static void main_ends(void *nothing)
{
	(void)nothing;
	agent_enter();
	agent_main_ends();
	agent_leave();
}

void thread_watch_main(void)
{
	static pthread_key_t main_key;
	static bool is_made;

	if (!is_made)
		is_made = pthread_key_create(&main_key, main_ends) == 0;
	if (is_made)
		pthread_setspecific(main_key, &main_key);
}

/* Of one with key and place. */
static void thread_begins(struct thread *t, void *frame)
{
	agent_enter();
	local.stack_top = (uintptr_t)frame + ABOVE_FIRST_FRAME;
	if (t->stack_bytes > DESCRIPTOR_MAX)
		local.stack_low = (uintptr_t)pthread_self() + DESCRIPTOR_MAX - t->stack_bytes;
	local.labels = t->labels;
	local.self = t;
	atomic_store_explicit(&t->tid, local_tid_at_start(), memory_order_release);
	pthread_setspecific(key, t);
	if (agent_is_on(ON_TRACE))
		trace_thread_begins();
	local.is_between = true;
	timers_thread_starts();
	local.is_between = false;
	agent_leave();
}

static void *begin(void *place)
{
	struct thread *t = place;

	thread_begins(t, __builtin_frame_address(0));
	return t->routine.posix(t->argument);
}

static int begin_c11(void *place)
{
	struct thread *t = place;

	thread_begins(t, __builtin_frame_address(0));
	return t->routine.c11(t->argument);
}

static uint32_t creator_stack(void)
{
	frame_t frames[STACK_MAX];
	struct walk_start here = walk_here();

	return stack_add(frames, walk_stack(&here, frames, STACK_MAX));
}

/* NULL: it is not to be, or cannot be registered. */
static struct thread *prepare(const pthread_attr_t *attributes, void *argument)
{
	struct thread *t = NULL;
	int kept = errno;

	agent_enter();
	pthread_once(&once, prepare_all);
	if (has_key)
		t = thread_take();
	if (t) {
		t->created_by = agent_is_on(ON_THREADS) ? creator_stack() : 0;
		t->labels = local.labels;
		t->argument = argument;
		t->scan = timers_scan();
		t->stack_bytes = standard_stack_bytes;
		if (attributes)
			pthread_attr_getstacksize(attributes, &t->stack_bytes);
	}
	agent_leave();
	errno = kept;
	return t;
}

static inline bool is_wanted(void)
{
	return !local.inside && (agent_is_on(~0u) || local.labels);
}

KILN_API int pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
			    void *(*routine)(void *), void *argument)
{
	struct thread *t = is_wanted() ? prepare(attributes, argument) : NULL;
	int result;

	if (!t)
		return REAL_CALL(pthread_create)(thread, attributes, routine, argument);
	t->routine.posix = routine;
	result = REAL_CALL(pthread_create)(thread, attributes, begin, t);
	if (result)
		thread_give(t);
	return result;
}

KILN_API int thrd_create(thrd_t *thread, thrd_start_t routine, void *argument)
{
	struct thread *t = is_wanted() ? prepare(NULL, argument) : NULL;
	int result;

	if (!t)
		return REAL_CALL(thrd_create)(thread, routine, argument);
	t->routine.c11 = routine;
	result = REAL_CALL(thrd_create)(thread, begin_c11, t);
	if (result != thrd_success)
		thread_give(t);
	return result;
}
