/* Work that must not keep others from the processor. */
#include "base/aside.h"

#include "test.h"

#include <sched.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

struct seen {
	int nice, policy, late_policy;
	unsigned sleep_ms;
};

static void look(void *ctx)
{
	struct seen *s = ctx;

	s->nice = getpriority(PRIO_PROCESS, (id_t)gettid());
	s->policy = sched_getscheduler(0);
	usleep(s->sleep_ms * 1000);
	s->late_policy = sched_getscheduler(0);
}

/* Does the system let it? */
static bool may_come_back(void)
{
	struct sched_param none = { 0 };
	pid_t child = fork();
	int status = 1;

	if (child == 0) {
		setpriority(PRIO_PROCESS, 0, 10);
		sched_setscheduler(0, SCHED_IDLE, &none);
		_exit(sched_setscheduler(0, SCHED_OTHER, &none) != 0);
	}
	waitpid(child, &status, 0);
	return status == 0;
}

TEST(others_go_first)
{
	int nice = getpriority(PRIO_PROCESS, (id_t)gettid());
	struct seen s = { 0 };

	run_aside(look, &s);
	assert_true(s.nice == 10 || s.nice == 11);
	assert_int_equal(s.policy, may_come_back() ? SCHED_IDLE : SCHED_OTHER);
	assert_int_equal(getpriority(PRIO_PROCESS, (id_t)gettid()), nice);
	assert_int_equal(sched_getscheduler(0), SCHED_OTHER);
}

TEST(what_takes_long_is_not_put_off_for_ever)
{
	struct seen s = { .sleep_ms = 400 };

	run_aside(look, &s);
	assert_int_equal(s.late_policy, SCHED_OTHER);
}
