/* parallel.h - the same work on many pieces, on all cores. */
#ifndef BASE_PARALLEL_H
#define BASE_PARALLEL_H

#include <stddef.h>

/* Number of cores that this process may use. */
int parallel_cores(void);
/* Calls work(ctx, i) once for each i < n, in any order, on up to `threads` threads, and waits. */
void parallel_for(int threads, size_t n, void (*work)(void *ctx, size_t i), void *ctx);

#endif
