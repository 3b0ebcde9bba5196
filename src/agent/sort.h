/* sort.h - as qsort, which may call malloc. */
#ifndef AGENT_SORT_H
#define AGENT_SORT_H

#include <stddef.h>

/* In place, in no order among equals. */
void sort(void *items, size_t n, size_t size, int (*compare)(const void *, const void *));

#endif
