/* exit.c - every way that a program ends. Parts do what they have to do before it, once: after the
 * program's own exit handlers where there are any. abort and crashes are not waited for. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "agent/life.h"
#include "agent/local.h"
#include "agent/real.h"
#include "agent/taken.h"
#include "kiln.h"

enum { WAIT_SECONDS = 10 };

/* exit, and the return from main. */
__attribute__((destructor(101))) static void at_exit(void)
{
	agent_finish();
}

KILN_API _Noreturn void _exit(int status)
{
	agent_finish();
	REAL_CALL(_exit)(status);
	__builtin_unreachable();
}

KILN_API _Noreturn void _Exit(int status)
{
	agent_finish();
	REAL_CALL(_Exit)(status);
	__builtin_unreachable();
}

/* The program has no handler for it, or this would not be called: it dies as it would have done,
 * later. Who was interrupted inside the agent must go on, or it would never be done. */
static void on_deadly_signal(int signal)
{
	struct timespec nap = { 0, 100000000 };
	int kept = errno;

	if (agent_is_ours()) {
		agent_finish_by_signal(signal);
		for (int i = 0; i < WAIT_SECONDS * 10 && !local.inside; i++)
			syscall(SYS_nanosleep, &nap, NULL);
	}
	if (!agent_is_ours() || !local.inside)
		die_by(signal);
	errno = kept;
}

void exit_init(void)
{
	at_quick_exit(agent_finish);
}

void exit_watch_signals(void)
{
	static const int deadly[] = { SIGTERM, SIGINT, SIGHUP };

	for (size_t i = 0; i < sizeof(deadly) / sizeof(*deadly); i++)
		signal_take(deadly[i], on_deadly_signal);
}
