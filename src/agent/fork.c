/* fork.c - children. Each starts without timers, without the agent's thread and sockets, and writes
 * nothing, unless it is to be profiled as well: by KILN_FOLLOW_FORK, or as the daemon that goes on
 * in its parent's place. Children of vfork, posix_spawn and clone run through none of this; they
 * are told by their process id. */
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "agent/life.h"
#include "agent/local.h"
#include "agent/real.h"
#include "agent/taken.h"
#include "kiln.h"

enum child agent_child;

/* Large processes fork for longer than a tick lasts, and a signal makes the kernel start over. */
static __thread bool was_open;
static __thread bool is_daemon; /* daemon() is under way */

static void set_mask(int how)
{
	sigset_t ours, before;

	sigemptyset(&ours);
	sigaddset(&ours, (int)settings.signal);
	pthread_sigmask(how, &ours, &before);
	if (how == SIG_BLOCK)
		was_open = !sigismember(&before, (int)settings.signal);
}

static void before_fork(void)
{
	agent_enter();
	if (agent_is_on(ON_CPU | ON_WALL))
		set_mask(SIG_BLOCK);
	parts_before_fork();
}

static void end_fork(void)
{
	if (was_open)
		set_mask(SIG_UNBLOCK);
	was_open = false;
	agent_leave();
}

static void after_fork(void)
{
	parts_after_fork();
	end_fork();
}

static void in_child(void)
{
	bool goes_on = settings.follow_fork || is_daemon;

	local.tid = 0;
	agent_child = is_daemon ? agent_child : goes_on ? CHILD_FOLLOWED : CHILD_LEFT_ALONE;
	parts_in_child();
	signals_give_back();
	end_fork();
	if (goes_on)
		agent_restart();
}

/* What pthread_atfork is; libc's own brings a symbol that is not weak, see weak.h. */
extern void *__dso_handle;
int __register_atfork(void (*before)(void), void (*after)(void), void (*child)(void),
		      void *library);

void fork_init(void)
{
	__register_atfork(before_fork, after_fork, in_child, &__dso_handle);
}

/* The parent is left by _exit inside of it, so the files become the daemon's. */
KILN_API int daemon(int stay, int keep_open)
{
	int failed;

	is_daemon = !agent_is_inert;
	failed = REAL_CALL(daemon)(stay, keep_open);
	is_daemon = false;
	return failed;
}

/* A child that begins a session is a daemon made by hand. */
KILN_API pid_t setsid(void)
{
	pid_t session = REAL_CALL(setsid)();

	if (session > 0 && agent_child == CHILD_LEFT_ALONE && agent_is_ours()) {
		agent_child = CHILD_FOLLOWED;
		agent_restart();
	}
	return session;
}
