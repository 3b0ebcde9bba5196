/* plt.h - where the program itself keeps the addresses of functions that it calls. */
#ifndef AGENT_PLT_H
#define AGENT_PLT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Where the program has the address of `name`, which it calls by way of its table of such (PLT), if
 * that is `hook` or will be when it is called first. What is there may be replaced at any time.
 * NULL: it has none, or it cannot be written to. */
atomic_uintptr_t *plt_find(const char *name, uintptr_t hook);

/* False: the program has protected it meanwhile, and what was there still is. */
bool plt_replace(atomic_uintptr_t *slot, uintptr_t to);

#endif
