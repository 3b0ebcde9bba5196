/* machine.h - which process runs what, and what it has mapped where. Private to perf/.
 *
 * It follows the records in order of time. Mappings go to the builder's table, each file once:
 * where two processes have the same part of a file, the addresses of the second are shifted to
 * those of the first.
 */
#ifndef PERF_MACHINE_H
#define PERF_MACHINE_H

#include "perf/data.h"
#include "perf/space.h"
#include "profile/build.h"

struct process {
	uint32_t pid;
	struct space space;
};

struct thread {
	uint32_t tid, comm; /* comm: a string; 0 if not known */
};

struct mapped {
	uint32_t file, build_id; /* strings */
	uint32_t pid;		 /* of memory that belongs to one process; else NONE */
	uint64_t offset, size;
};

struct machine {
	const struct perf_data *d;
	struct builder *b;
	struct spaces spaces;
	struct space kernel;
	vec(struct process) processes;
	vec(struct thread) threads;
	vec(struct mapped) mapped; /* beside b->mappings */
	vec(uint32_t) build_ids;   /* by file, as strings */
	struct map by_pid, by_tid, by_mapped;
	uint64_t seed;
	uint64_t nlost_records, nlost_samples; /* told in two ways; the first has more kinds */
};

void machine_init(struct machine *m, const struct perf_data *d, struct builder *b);
void machine_release(struct machine *m);
/* Takes in a record that is no sample. */
bool machine_update(struct machine *m, size_t at, struct err *e);
/* What lies at an address; NULL if that is not known. `mode` is MODE_KERNEL or MODE_USER. */
const struct range *machine_find(struct machine *m, uint32_t pid, uint8_t mode, uint64_t address);
/* Name of a thread, a string. */
uint32_t machine_comm(struct machine *m, uint32_t tid);

#endif
