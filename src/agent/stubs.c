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
