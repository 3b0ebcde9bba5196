/* hooks_signal.c - the program may do with our signal what it likes: it gets its own action back,
 * its handler gets the signals that are not ours, and ours still come. */
#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>

#include "agent/agent.h"
#include "agent/local.h"
#include "agent/memory.h"
#include "agent/real.h"
#include "agent/signal.h"
#include "agent/taken.h"
#include "kiln.h"

typedef void (*handler_t)(int);

static struct lock lock;
static atomic_bool is_installed;

bool signal_is_installed(void)
{
	return atomic_load_explicit(&is_installed, memory_order_relaxed);
}

static bool install(void)
{
	struct sigaction ours = { .sa_sigaction = signal_handler,
				  .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK },
			 before;
	int number = (int)settings.signal;

	sigfillset(&ours.sa_mask);
	if (REAL_CALL(sigaction)(number, NULL, &before) != 0)
		return false;
	signal_set_program_action(&before);
	if (REAL_CALL(sigaction)(number, &ours, NULL) != 0)
		return false;
	atomic_store(&is_installed, true);
	return true;
}

bool signal_install(void)
{
	bool is_done;

	if (signal_is_installed())
		return true;
	lock_take(&lock);
	is_done = signal_is_installed() || install();
	lock_give(&lock);
	return is_done;
}

/* For our signal, and for those of taken.h. False: the real function is to be called. */
static bool change_action(int number, const struct sigaction *action, struct sigaction *old)
{
	struct sigaction before;

	if (!signal_is_installed() || number != (int)settings.signal)
		return taken_sigaction(number, action, old);
	signal_get_program_action(&before);
	if (action)
		signal_set_program_action(action);
	if (old)
		*old = before;
	return true;
}

KILN_API int sigaction(int number, const struct sigaction *action, struct sigaction *old)
{
	struct sigaction copy; /* both may be the same */

	if (action)
		copy = *action;
	if (change_action(number, action ? &copy : NULL, old))
		return 0;
	return REAL_CALL(sigaction)(number, action, old);
}

/* signal and its likes differ in the flags. */
static bool change_handler(int number, handler_t handler, int flags, handler_t *old)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = flags }, before;

	sigemptyset(&action.sa_mask);
	if (!(flags & SA_NODEFER) && number > 0 && number < NSIG)
		sigaddset(&action.sa_mask, number);
	if (handler == SIG_ERR || !change_action(number, &action, &before))
		return false;
	*old = before.sa_handler;
	return true;
}

#define HOOK_HANDLER(name, flags)                                   \
	KILN_API handler_t name(int number, handler_t handler)      \
	{                                                           \
		handler_t old;                                      \
                                                                    \
		if (change_handler(number, handler, (flags), &old)) \
			return old;                                 \
		return REAL_CALL(name)(number, handler);            \
	}

handler_t bsd_signal(int number, handler_t handler);
handler_t __sysv_signal(int number, handler_t handler);

HOOK_HANDLER(signal, SA_RESTART)
HOOK_HANDLER(ssignal, SA_RESTART)
HOOK_HANDLER(bsd_signal, SA_RESTART)
HOOK_HANDLER(sysv_signal, (int)SA_RESETHAND | SA_NODEFER)
HOOK_HANDLER(__sysv_signal, (int)SA_RESETHAND | SA_NODEFER)

/* Is it one whose action only we know? */
static bool is_hidden(int number)
{
	struct sigaction now;

	return change_action(number, NULL, &now);
}

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

KILN_API handler_t sigset(int number, handler_t handler)
{
	sigset_t set, before;
	struct sigaction now = { .sa_handler = SIG_DFL };
	handler_t old;

	if (!is_hidden(number))
		return REAL_CALL(sigset)(number, handler);
	sigemptyset(&set);
	sigaddset(&set, number);
	change_action(number, NULL, &now);
	old = now.sa_handler;
	if (handler != SIG_HOLD)
		change_handler(number, handler, 0, &old);
	pthread_sigmask(handler == SIG_HOLD ? SIG_BLOCK : SIG_UNBLOCK, &set, &before);
	return sigismember(&before, number) ? SIG_HOLD : old;
}

KILN_API int sigignore(int number)
{
	handler_t old;

	return change_handler(number, SIG_IGN, 0, &old) ? 0 : REAL_CALL(sigignore)(number);
}

KILN_API int siginterrupt(int number, int interrupts)
{
	struct sigaction action;

	if (!change_action(number, NULL, &action))
		return REAL_CALL(siginterrupt)(number, interrupts);
	if (interrupts)
		action.sa_flags &= ~SA_RESTART;
	else
		action.sa_flags |= SA_RESTART;
	change_action(number, &action, NULL);
	return 0;
}

static bool has_all(const sigset_t *mask)
{
	for (int i = 1; i < 32; i++)
		if (i != SIGKILL && i != SIGSTOP && !sigismember(mask, i))
			return false;
	return true;
}

/* Who reads all signals from a descriptor does not mean ours, which would wake it up all the time.
 */
KILN_API int signalfd(int fd, const sigset_t *mask, int flags)
{
	sigset_t others;

	if (!signal_is_installed() || !has_all(mask))
		return REAL_CALL(signalfd)(fd, mask, flags);
	others = *mask;
	sigdelset(&others, (int)settings.signal);
	return REAL_CALL(signalfd)(fd, &others, flags);
}
