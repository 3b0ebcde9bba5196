#include "agent/taken.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "agent/real.h"

enum { SIGNALS = 65 };

static struct taken {
	void (*handler)(int);	 /* ours; NULL: never taken */
	struct sigaction action; /* what the program believes is set, while it is the default */
	atomic_bool is_ours;	 /* is our handler installed? */
} taken[SIGNALS];

static bool install(int signal, void (*handler)(int))
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = SA_RESTART | SA_ONSTACK };

	sigemptyset(&action.sa_mask);
	return REAL_CALL(sigaction)(signal, &action, NULL) == 0;
}

static bool is_default(const struct sigaction *action)
{
	return !(action->sa_flags & SA_SIGINFO) && action->sa_handler == SIG_DFL;
}

bool signal_take(int signal, void (*handler)(int))
{
	struct taken *t = signal > 0 && signal < SIGNALS ? &taken[signal] : NULL;
	struct sigaction now;

	if (!t || t->handler)
		return t && t->handler == handler;
	if (REAL_CALL(sigaction)(signal, NULL, &now) != 0 || !is_default(&now) ||
	    !install(signal, handler))
		return false;
	t->action = now;
	t->handler = handler;
	atomic_store(&t->is_ours, true);
	return true;
}

void signals_give_back(void)
{
	for (int i = 1; i < SIGNALS; i++) {
		if (atomic_exchange(&taken[i].is_ours, false))
			REAL_CALL(sigaction)(i, &taken[i].action, NULL);
		taken[i].handler = NULL;
	}
}

bool taken_sigaction(int signal, const struct sigaction *action, struct sigaction *old)
{
	struct taken *t = signal > 0 && signal < SIGNALS ? &taken[signal] : NULL;
	struct sigaction now;
	bool was_ours;

	if (!t || !t->handler)
		return false;
	was_ours = atomic_load(&t->is_ours);
	if (was_ours || REAL_CALL(sigaction)(signal, NULL, &now) != 0)
		now = t->action;
	if (action && is_default(action)) {
		t->action = *action;
		if (!atomic_exchange(&t->is_ours, true))
			install(signal, t->handler);
	} else if (action) {
		REAL_CALL(sigaction)(signal, action, NULL);
		atomic_store(&t->is_ours, false);
	}
	if (old)
		*old = now;
	return true;
}
