/* stubs.c - what is not written yet. Weak: the real ones win. Gone when all of it is there. */
#include <errno.h>
#include <stdlib.h>

#include "agent/agent.h"
#include "agent/label.h"
#include "agent/local.h"
#include "agent/profiles.h"
#include "agent/signal.h"
#include "agent/thread.h"
#define WEAK __attribute__((weak))
#pragma GCC diagnostic ignored "-Wunused-parameter"

/* A */
WEAK bool samples_take(struct sample *s)
{
	return false;
}
WEAK uint64_t samples_lost(void)
{
	return 0;
}
WEAK bool dump_ask(struct dump_slot *slot, uint32_t tid)
{
	return false;
}
WEAK bool signal_install(void)
{
	return false;
}
WEAK void signal_set_program_action(const struct sigaction *action)
{
}
WEAK void signal_get_program_action(struct sigaction *action)
{
}
WEAK bool signal_is_installed(void)
{
	return false;
}
WEAK bool cpu_start(int hz)
{
	errno = ENOSYS;
	return false;
}
WEAK bool cpu_stop(struct record *r)
{
	errno = ENOSYS;
	return false;
}
WEAK bool cpu_is_on(void)
{
	return false;
}
WEAK const struct agent_profile profile_cpu = { .name = "profile" };
WEAK bool wall_start(int hz)
{
	errno = ENOSYS;
	return false;
}
WEAK bool wall_stop(struct record *r)
{
	errno = ENOSYS;
	return false;
}
WEAK void cpu_thread_starts(void)
{
}
WEAK void cpu_thread_ends(void)
{
}
WEAK bool signal_is_ours(const siginfo_t *info)
{
	return false;
}
static uint32_t none(void)
{
	return 0;
}
static bool nothing(struct record *r)
{
	return true;
}
#define PART(name)                                  \
	extern const struct agent_part part_##name; \
	WEAK const struct agent_part part_##name = { #name, NULL, NULL, NULL, NULL, NULL, NULL };
#include "agent/parts.def"
#define PROFILE(n)                                                         \
	extern const struct agent_profile profile_##n;                     \
	WEAK const struct agent_profile profile_##n = {                    \
		.name = #n, .about = "", .count = none, .collect = nothing \
	};
#include "agent/profiles.def"
