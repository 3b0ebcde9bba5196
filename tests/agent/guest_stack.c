/* guest_stack.c - stacks that are small, foreign, deep, or not stacks at all. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "guest.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* A little of all that the agent looks at. */
static void live(int milliseconds)
{
	free(malloc(5000));
	pthread_mutex_lock(&lock);
	burn(milliseconds);
	pthread_mutex_unlock(&lock);
	free(malloc(50000));
}

static void *live_in_thread(void *argument)
{
	live(40);
	return argument;
}

static int small(void)
{
	pthread_attr_t attributes;
	pthread_t threads[4];

	pthread_attr_init(&attributes);
	CHECK(pthread_attr_setstacksize(&attributes, 16384) == 0);
	for (int i = 0; i < 4; i++)
		CHECK(pthread_create(&threads[i], &attributes, live_in_thread, NULL) == 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	return 0;
}

/* Memory with a page on each side that nothing may touch. */
static char *guarded(size_t bytes)
{
	char *p = mmap(NULL, bytes + 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	mprotect(p + 4096, bytes, PROT_READ | PROT_WRITE);
	return p + 4096;
}

static void set_alternate(size_t bytes)
{
	stack_t stack = { .ss_sp = guarded(bytes), .ss_size = bytes };

	CHECK(sigaltstack(&stack, NULL) == 0);
}

static int alternate_4k(void)
{
	set_alternate(4096);
	live(200);
	return 0;
}

NOT_INLINED static void burn_on_alternate(int signal)
{
	(void)signal;
	burn(20);
	STAYS;
}

/* Sampled while its own handler runs on it. */
static int alternate_8k(void)
{
	struct sigaction action = { .sa_handler = burn_on_alternate, .sa_flags = SA_ONSTACK };

	set_alternate(8192);
	sigaction(SIGUSR1, &action, NULL);
	live(50);
	for (int i = 0; i < 10; i++)
		raise(SIGUSR1);
	return 0;
}

static ucontext_t caller, coroutine;

NOT_INLINED static void burn_in_coroutine(void)
{
	live(5);
	STAYS;
}

static void run_coroutine(void)
{
	for (;;) {
		burn_in_coroutine();
		swapcontext(&coroutine, &caller);
	}
}

/* 16 KB that the agent has never heard of, with nothing behind. */
static int coroutines(void)
{
	getcontext(&coroutine);
	coroutine.uc_stack.ss_sp = guarded(16384);
	coroutine.uc_stack.ss_size = 16384;
	makecontext(&coroutine, run_coroutine, 0);
	for (int i = 0; i < 40; i++)
		swapcontext(&caller, &coroutine);
	return 0;
}

static jmp_buf target;

NOT_INLINED static void jump_from(int depth)
{
	if (depth == 0)
		longjmp(target, 1);
	jump_from(depth - 1);
	STAYS;
}

static int jumps(void)
{
	volatile int njumps = 0;
	int64_t end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + 300000000;

	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end) {
		if (!setjmp(target))
			jump_from(30);
		njumps++;
	}
	CHECK(njumps > 100);
	return 0;
}

NOT_INLINED static int descend(int depth)
{
	volatile char local[64];
	int deeper;

	local[0] = (char)depth;
	if (depth == 0) {
		live(150);
		return local[0];
	}
	deeper = descend(depth - 1);
	return deeper + local[0];
}

static int deep(void)
{
	printf("%d\n", descend(20000));
	return 0;
}

/* A loop of `n` rounds in a page of its own: with a frame pointer, or using that register. */
static void (*make_code(bool has_frame))(uint64_t n)
{
	static const unsigned char with[] = { 0x55, 0x48, 0x89, 0xe5, 0x48, 0xff,
					      0xcf, 0x75, 0xfb, 0x5d, 0xc3 };
	static const unsigned char without[] = { 0x55, 0x48, 0x89, 0xfd, 0x48, 0xff,
						 0xcd, 0x75, 0xfb, 0x5d, 0xc3 };
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memcpy(page, has_frame ? with : without, sizeof(with));
	return (void (*)(uint64_t))page;
}

NOT_INLINED static void calls_code(void (*code)(uint64_t))
{
	code(1000000);
	STAYS;
}

static int jit(void)
{
	void (*without)(uint64_t) = make_code(false), (*with)(uint64_t) = make_code(true);
	int64_t end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + 300000000;
	char path[50];
	FILE *names;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	names = fopen(path, "w");
	fprintf(names, "%lx 40 loop_without_frame\n%lx 40 loop_with_frame\n",
		(unsigned long)(uintptr_t)without, (unsigned long)(uintptr_t)with);
	fclose(names);
	for (int i = 0; clock_ns(CLOCK_THREAD_CPUTIME_ID) < end; i++)
		calls_code(i % 2 ? with : without);
	return 0;
}

/* Registers that lie, at an instruction for which the tables say otherwise. A stack pointer that is
 * none is only possible with a stack for signals, with the agent or without. */
NOT_INLINED static void spin_with(uint64_t frame_pointer, uint64_t stack_pointer)
{
	uint64_t left = 3000000;

	__asm__ volatile("push %%rbp\n\t"
			 "mov %%rsp, %%r12\n\t"
			 "mov %1, %%rbp\n\t"
			 "mov %2, %%rsp\n\t"
			 "1: dec %0\n\t"
			 "jnz 1b\n\t"
			 "mov %%r12, %%rsp\n\t"
			 "pop %%rbp\n\t"
			 : "+r"(left)
			 : "r"(frame_pointer), "r"(stack_pointer)
			 : "r12", "memory", "cc");
}

static int corrupted(void)
{
	char *hole = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t here = (uint64_t)(uintptr_t)&hole;
	const uint64_t odd[] = { 0,
				 1,
				 UINT64_MAX,
				 0x4141414141414141,
				 (uint64_t)(uintptr_t)hole,
				 (uint64_t)(uintptr_t)hole + 4090,
				 (uint64_t)(uintptr_t) "text",
				 here + 3,
				 here - 100000,
				 here + (1 << 24) };
	const int nodd = sizeof(odd) / sizeof(*odd);

	set_alternate(65536);
	for (int i = 0; i < nodd; i++) {
		spin_with(odd[i], odd[nodd - 1 - i]);
		spin_with(odd[i], odd[i]);
		spin_with(here, odd[i]);
	}
	return 0;
}

int main(int argc, char **argv)
{
	static const struct guest_case cases[] = {
		{ "small", small },
		{ "alternate_4k", alternate_4k },
		{ "alternate_8k", alternate_8k },
		{ "coroutines", coroutines },
		{ "jumps", jumps },
		{ "deep", deep },
		{ "jit", jit },
		{ "corrupted", corrupted },
		{ NULL, NULL },
	};

	return run_case(argc, argv, cases);
}
