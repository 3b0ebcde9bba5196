/* heap_text.h - debug=1 of heap profiles, which pprof reads too. */
#ifndef AGENT_HEAP_TEXT_H
#define AGENT_HEAP_TEXT_H

#include "agent/record.h"

/* The share of allocations of this size that is sampled, if every `mean`-th byte is (heap.c). */
double heap_share_sampled(double size, double mean);

void heap_write_text(struct out *o, const struct agent_profile *p, struct record *r, int debug);
void growth_write_text(struct out *o, const struct agent_profile *p, struct record *r, int debug);

#endif
