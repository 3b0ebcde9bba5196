#include "agent/samples.h"

#include <errno.h>

#include "agent/agent.h"
#include "agent/memory.h"
#include "agent/profiles.h"

static struct lock lock;

bool samples_prepare(void)
{
	if (!pages_once(&sample_memory, SAMPLE_RINGS * SAMPLE_RING_BYTES)) {
		errno = ENOMEM;
		return false;
	}
	return signal_install();
}

/* Code may have been met before its file was known. */
static void find_modules(struct sample *s)
{
	for (uint32_t i = 0; i < s->nframes; i++)
		if (!frame_module(s->frames[i]) && s->frames[i] > FRAME_LAST)
			s->frames[i] = frame_of((uintptr_t)s->frames[i]);
}

void samples_drain(void)
{
	static struct sample s; /* large; the lock is ours */

	lock_take(&lock);
	while (samples_take(&s)) {
		find_modules(&s);
		if (s.nframes && agent_is_on(ON_TRACE))
			trace_sample(&s);
		if (s.kind == SAMPLE_WALL)
			wall_count(&s);
		else
			cpu_count(&s);
	}
	cpu_count_lost(samples_lost());
	lock_give(&lock);
}

void samples_before_fork(void)
{
	lock_take(&lock);
	wall_before_fork();
}

void samples_after_fork(void)
{
	wall_after_fork();
	lock_give(&lock);
}

void samples_in_child(void)
{
	samples_reset();
	samples_after_fork();
}
