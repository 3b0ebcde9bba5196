/* walk.h - from a sample to the addresses of its stack. Private to perf/. */
#ifndef PERF_WALK_H
#define PERF_WALK_H

#include "perf/machine.h"
#include "symbol/symbol.h"

struct unwind_file {
	uint32_t file, build_id;
	struct unwind_table *table; /* NULL: none to be had */
};

/* An address of a stack, and what it belongs to. */
struct walk_frame {
	uint64_t address;
	uint8_t mode;
	bool is_return;
};

struct walker {
	struct machine *machine;
	const struct locate_params *locate;
	bool is_foreign;
	enum unwind_machine cpu;
	bool can_unwind; /* the processor is one that we know */
	vec(struct unwind_file) files;
	struct map by_file;
	vec(struct walk_frame) unwound, frames; /* of the last sample, leaf first */
};

void walker_init(struct walker *w, struct machine *m, const struct locate_params *locate);
void walker_release(struct walker *w);
/* Fills w->frames: the kernel's as they were recorded, then the user's, which are unwound if their
 * stack was saved. */
void walker_walk(struct walker *w, const struct perf_sample *s);

#endif
