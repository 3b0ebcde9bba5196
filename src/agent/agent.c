#include "agent/agent.h"
#include "agent/real.h"

__attribute__((constructor(101))) static void init(void)
{
	real_init();
}
