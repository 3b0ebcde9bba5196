#include "agent/thread.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/dump.h"
#include "agent/kernel.h"
#include "agent/local.h"
#include "agent/memory.h"

enum { AGENTS_MAX = 8, DIRECTORY_BYTES = 4 << 10, FIRST_BYTES = 4 << 10 };

/* ---- the agent's own */

static struct lock agents_lock;
static atomic_uint agents[AGENTS_MAX];

void thread_set_agent(uint32_t tid)
{
	unsigned i = 0;

	lock_take(&agents_lock);
	while (i < AGENTS_MAX && agents[i] && agents[i] != tid)
		i++;
	if (i < AGENTS_MAX)
		agents[i] = tid;
	lock_give(&agents_lock);
}

bool thread_is_agent(uint32_t tid)
{
	for (unsigned i = 0; i < AGENTS_MAX; i++)
		if (atomic_load_explicit(&agents[i], memory_order_relaxed) == tid)
			return true;
	return false;
}

uint32_t threads_of_agent(void)
{
	uint32_t n = 0;

	for (unsigned i = 0; i < AGENTS_MAX; i++) {
		uint32_t tid = atomic_load_explicit(&agents[i], memory_order_relaxed);

		n += tid && kernel_call(SYS_tgkill, getpid(), tid, 0, 0) == 0;
	}
	return n;
}

/* ---- places: those given back are a stack, whose top has a count above it that makes a top that
 * came back differ from the one that was looked at */

static _Atomic(void *) places;
static atomic_uint nplaces;
static _Atomic uint64_t free_top;

struct thread *thread_place(uint32_t i)
{
	return (struct thread *)atomic_load_explicit(&places, memory_order_acquire) + i;
}

uint32_t threads_places(void)
{
	uint32_t n = atomic_load_explicit(&nplaces, memory_order_acquire);

	return n < PLACES_MAX ? n : PLACES_MAX;
}

static struct thread *take_free(void)
{
	uint64_t top = atomic_load_explicit(&free_top, memory_order_acquire);

	while ((uint32_t)top) {
		struct thread *t = thread_place((uint32_t)top - 1);
		uint64_t next = ((top >> 32) + 1) << 32 | t->next;

		if (atomic_compare_exchange_weak(&free_top, &top, next))
			return t;
	}
	return NULL;
}

struct thread *thread_take(void)
{
	struct thread *all = pages_once(&places, PLACES_MAX * sizeof(struct thread)), *t;
	uint32_t n;

	if (!all)
		return NULL;
	t = take_free();
	if (t || atomic_load(&nplaces) >= PLACES_MAX)
		return t;
	n = atomic_fetch_add(&nplaces, 1);
	if (n >= PLACES_MAX)
		return NULL;
	all[n].number = n + 1;
	return &all[n];
}

void thread_give(struct thread *t)
{
	uint64_t top = atomic_load(&free_top), next;

	atomic_store_explicit(&t->tid, 0, memory_order_relaxed);
	t->is_ending = false;
	do {
		t->next = (uint32_t)top;
		next = ((top >> 32) + 1) << 32 | t->number;
	} while (!atomic_compare_exchange_weak(&free_top, &top, next));
}

/* ---- all of them */

static void add_tid(struct tids *t, uint32_t tid)
{
	size_t bytes = t->bytes ? t->bytes * 2 : FIRST_BYTES;

	if (!tid || thread_is_agent(tid))
		return;
	if ((t->n + 1) * sizeof(*t->at) > t->bytes) {
		uint32_t *grown = pages_grow(t->at, t->bytes, bytes);

		if (!grown)
			return;
		t->at = grown;
		t->bytes = bytes;
	}
	t->at[t->n++] = tid;
}

static uint32_t number_of(const char *name)
{
	uint32_t n = 0;

	for (; *name >= '0' && *name <= '9'; name++)
		n = n * 10 + (uint32_t)(*name - '0');
	return *name ? 0 : n;
}

/* Elsewhere, in a container without a /proc of its own, it shows numbers that are not ours. */
static bool is_of_us(const struct tids *t)
{
	uint32_t pid = (uint32_t)getpid();

	for (uint32_t i = 0; i < t->n; i++)
		if (t->at[i] == pid)
			return true;
	return false;
}

static bool read_tasks(struct tids *t)
{
	_Alignas(8) char buffer[DIRECTORY_BYTES];
	int fd = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ssize_t got = 0;

	while (fd >= 0 && (got = getdents64(fd, buffer, sizeof(buffer))) > 0)
		for (ssize_t at = 0; at < got;) {
			const struct dirent64 *d = (const struct dirent64 *)(buffer + at);

			add_tid(t, number_of(d->d_name));
			at += d->d_reclen;
		}
	if (fd >= 0)
		close(fd);
	if (!is_of_us(t))
		t->n = 0;
	return t->n > 0;
}

/* Where there is no /proc: those that we saw. */
static void list_registered(struct tids *t)
{
	uint32_t pid = (uint32_t)getpid(), n = threads_places();

	add_tid(t, pid);
	for (uint32_t i = 0; i < n; i++)
		if (thread_place(i)->tid != pid)
			add_tid(t, thread_place(i)->tid);
}

uint32_t threads_count(void)
{
	struct tids tids = { 0 };
	uint32_t n = threads_list(&tids);

	tids_release(&tids);
	return n;
}

uint32_t threads_list(struct tids *tids)
{
	agent_enter();
	tids->n = 0;
	if (!read_tasks(tids))
		list_registered(tids);
	agent_leave();
	return tids->n;
}

void tids_release(struct tids *tids)
{
	pages_unmap(tids->at, tids->bytes);
	*tids = (struct tids){ 0 };
}

/* ---- the part */

extern void *__libc_stack_end;

enum { MAIN_STACK_MAX = 8 << 20 };

/* Nothing but the stack is mapped as far below its end as it may grow. */
static void find_main_stack(void)
{
	struct rlimit limit;
	uintptr_t bytes = MAIN_STACK_MAX;

	if (getrlimit(RLIMIT_STACK, &limit) == 0 && limit.rlim_cur < bytes)
		bytes = limit.rlim_cur;
	local.stack_top = (uintptr_t)__libc_stack_end;
	local.stack_low = local.stack_top - bytes;
}

static atomic_bool is_watching;

void threads_watch(void)
{
	if (!atomic_exchange(&is_watching, true))
		agent_switch_on(ON_THREADS);
}

static void init(void)
{
	if (local_tid() == (uint32_t)getpid()) {
		find_main_stack();
		if (!agent_is_inert)
			thread_watch_main();
	}
	if (settings.pprof_addr || settings.push_url)
		threads_watch();
}

/* Only the thread that forked is left. */
static void in_child(void)
{
	uint32_t n = threads_places();

	is_watching = false;
	dump_forget();
	for (unsigned i = 0; i < AGENTS_MAX; i++)
		atomic_store(&agents[i], 0);
	atomic_store(&agents_lock.state, 0);
	atomic_store(&free_top, 0);
	local.tid = 0;
	for (uint32_t i = 0; i < n; i++) {
		struct thread *t = thread_place(i);

		if (t == local.self)
			atomic_store(&t->tid, local_tid());
		else
			thread_give(t);
	}
}

const struct agent_part part_threads = { .name = "threads", .init = init, .in_child = in_child };
