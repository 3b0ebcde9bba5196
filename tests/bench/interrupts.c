/* interrupts.c - runs a program with a perf event that interrupts it HZ times a second of its CPU
 * time, and does nothing else: what a profiler costs at that rate before it has taken a sample.
 *
 *   interrupts HZ PROGRAM [ARGUMENT ...]
 */
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct perf_event_attr a = { .size = sizeof(a),
				     .type = PERF_TYPE_SOFTWARE,
				     .config = PERF_COUNT_SW_TASK_CLOCK,
				     .exclude_kernel = 1,
				     .exclude_hv = 1,
				     .inherit = 1 };
	long hz = argc > 2 ? atol(argv[1]) : 0;

	if (hz < 1) {
		fprintf(stderr, "usage: interrupts HZ PROGRAM [ARGUMENT ...]\n");
		return 2;
	}
	a.sample_period = (uint64_t)(1000000000 / hz);
	if (syscall(SYS_perf_event_open, &a, 0L, -1L, -1L, 0L) < 0) {
		perror("interrupts: perf_event_open");
		return 1;
	}
	execvp(argv[2], argv + 2);
	perror(argv[2]);
	return 127;
}
