/* exit.c - every way that a program ends. Parts do what they have to do before it, once: after the
 * program's own exit handlers where there are any. abort and crashes are not waited for.
 *
 * It is done by the agent's thread. If there is none, one is made that libc knows nothing of: it
 * uses the thread-local data of whoever ends the program, who waits. So it has a stack that is
 * large enough, and can be made in a signal handler too.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "agent/kernel.h"
#include "agent/life.h"
#include "agent/local.h"
#include "agent/memory.h"
#include "agent/real.h"
#include "agent/taken.h"
#include "kiln.h"

enum { SECOND = 1000000000, WAIT_SECONDS = 10, STACK_BYTES = 256 << 10 };

enum { NOT_ASKED, ASKED, UNDER_WAY, DONE };
static atomic_int finish;
static atomic_int finish_signal;
static bool is_watched;

bool finish_is_asked(void)
{
	return atomic_load(&finish);
}

void finish_forget(void)
{
	atomic_store(&finish, NOT_ASKED);
	atomic_store(&finish_signal, 0);
}

/* As the signal would have done without us: the exit status tells. */
static void die_by(int signal)
{
	struct sigaction action = { .sa_handler = SIG_DFL };
	sigset_t set;

	REAL_CALL(sigaction)(signal, &action, NULL);
	sigemptyset(&set);
	sigaddset(&set, signal);
	kernel_call(SYS_tgkill, getpid(), kernel_call(SYS_gettid, 0, 0, 0, 0), signal, 0);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

void finish_if_asked(void)
{
	int was = ASKED;

	if (atomic_compare_exchange_strong(&finish, &was, UNDER_WAY)) {
		parts_at_exit();
		atomic_store(&finish, DONE);
		futex_wake(&finish);
	}
	if (atomic_load(&finish_signal))
		die_by(atomic_load(&finish_signal));
}

/* ---- a thread for it */

enum { THREAD = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM };

static bool make_thread(int (*run)(void *), void *argument)
{
	char *stack = pages_map(STACK_BYTES);
	sigset_t all, kept;
	bool ok;

	if (!stack)
		return false;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &kept);
	ok = clone(run, stack + STACK_BYTES, THREAD, argument) > 0;
	pthread_sigmask(SIG_SETMASK, &kept, NULL);
	return ok;
}

static int run_finish(void *nothing)
{
	(void)nothing;
	finish_if_asked();
	return 0;
}

/* Has somebody else do it. False: it is the caller who must. */
static bool pass_on(void)
{
	int was = NOT_ASKED;
	bool is_first = atomic_compare_exchange_strong(&finish, &was, ASKED);

	if (agent_is_thread())
		return false;
	if (agent_has_thread())
		agent_wake();
	else if (is_first)
		return make_thread(run_finish, NULL);
	return true;
}

/* ---- exit, _exit and so on */

static void finish_now(void)
{
	int kept = errno, was;
	int64_t until;

	if (!agent_is_ours() || (!is_watched && !agent_has_thread()))
		return;
	/* Who interrupted the agent may hold a lock that is needed now. */
	until = now_ns() + (local.inside ? 1 : WAIT_SECONDS) * (int64_t)SECOND;
	agent_enter();
	if (!pass_on())
		finish_if_asked();
	while ((was = atomic_load(&finish)) != DONE && now_ns() < until)
		futex_sleep(&finish, was, until);
	agent_leave();
	errno = kept;
}

/* exit, and the return from main. */
__attribute__((destructor(101))) static void at_exit(void)
{
	finish_now();
}

KILN_API _Noreturn void _exit(int status)
{
	finish_now();
	REAL_CALL(_exit)(status);
	__builtin_unreachable();
}

KILN_API _Noreturn void _Exit(int status)
{
	finish_now();
	REAL_CALL(_Exit)(status);
	__builtin_unreachable();
}

/* What at_quick_exit is; libc's own brings a symbol that is not weak, see weak.h. */
extern void *__dso_handle;
int __cxa_at_quick_exit(void (*run)(void *), void *library);

static void finish_quickly(void *nothing)
{
	(void)nothing;
	finish_now();
}

void exit_init(void)
{
	__cxa_at_quick_exit(finish_quickly, &__dso_handle);
}

/* ---- signals that the program leaves at their default, which is death */

struct knock {
	int signal, process, thread;
};

/* Runs beside the thread whose thread-local data it has: it touches none. */
__attribute__((no_stack_protector)) static int knock_again(void *argument)
{
	const struct knock *k = argument;
	struct timespec soon = { 0, 1000000 };

	kernel_call(SYS_nanosleep, (long)&soon, 0, 0, 0);
	kernel_call(SYS_tgkill, k->process, k->thread, k->signal, 0);
	return 0;
}

/* Who was interrupted inside the agent must go on, or what we wait for would never be done. */
static bool let_it_go_on(int signal)
{
	static struct knock again;

	if (agent_has_thread()) {
		pass_on();
		return true;
	}
	again = (struct knock){ signal, getpid(), (int)local_tid() };
	return make_thread(knock_again, &again);
}

/* It dies as it would have done without us, a little later. */
static void on_deadly_signal(int signal)
{
	struct timespec nap = { 0, 10000000 };
	int kept = errno;
	bool is_inside = local.inside;

	if (agent_is_ours()) {
		atomic_store(&finish_signal, signal);
		if (is_inside && let_it_go_on(signal)) {
			errno = kept;
			return;
		}
		agent_enter();
		if (!is_inside && pass_on())
			for (int i = 0; i < WAIT_SECONDS * 100 && atomic_load(&finish) != DONE; i++)
				kernel_call(SYS_nanosleep, (long)&nap, 0, 0, 0);
	}
	die_by(signal);
}

void exit_watch(void)
{
	static const int deadly[] = { SIGTERM, SIGINT, SIGHUP };

	is_watched = true;
	for (size_t i = 0; i < sizeof(deadly) / sizeof(*deadly); i++)
		signal_take(deadly[i], on_deadly_signal);
}
