/* stop.h - tells work that nobody wants its result any more.
 *
 * A flag that another thread sets. Loops over all samples look at it every STOP_EVERY turns; what
 * they have made by then is of no use, and whoever asked for it finds that out by the flag.
 */
#ifndef BASE_STOP_H
#define BASE_STOP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

enum { STOP_EVERY = 1 << 13 };

/* `stop` may be NULL: never. */
static inline bool stop_asked(const atomic_bool *stop)
{
	return stop && atomic_load_explicit(stop, memory_order_relaxed);
}

/* For turn `i` of a loop. */
static inline bool stop_asked_at(const atomic_bool *stop, size_t i)
{
	return i % STOP_EVERY == 0 && stop_asked(stop);
}

#endif
