/* kernel.h - names of the running kernel's functions, from /proc/kallsyms. Private to perf/. */
#ifndef PERF_KERNEL_H
#define PERF_KERNEL_H

#include "perf/data.h"
#include "profile/build.h"

/* Names the locations whose mapping is the kernel's or a module's. Does nothing if the records are
 * of another kernel than the one that runs here, or if this one does not tell its addresses. */
void perf_name_kernel(const struct perf_data *d, struct builder *b);

#endif
