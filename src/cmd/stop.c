#include <signal.h>

#include "cmd/cmd.h"

static atomic_bool is_stopped;

static void on_signal(int signal)
{
	(void)signal;
	atomic_store(&is_stopped, true);
}

atomic_bool *stop_on_signals(void)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND };

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	return &is_stopped;
}
