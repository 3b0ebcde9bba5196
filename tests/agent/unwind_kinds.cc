// unwind_kinds.cc - spends its time at the end of call chains of all kinds, in turns.
#include <alloca.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>

#include <algorithm>
#include <string>
#include <vector>

#define NO_INLINE __attribute__((noinline, noclone))

static long long clock_ns()
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static volatile int sink;

NO_INLINE void burn()
{
	long long start = clock_ns();

	while (clock_ns() - start < 40000000)
		for (int i = 0; i < 20000; i++)
			sink = sink + i;
}

NO_INLINE int in_depth(int n)
{
	if (n == 0)
		burn();
	else
		in_depth(n - 1);
	return sink; // no tail call
}

NO_INLINE int with_alloca(int n)
{
	char *p = static_cast<char *>(alloca(static_cast<size_t>(n)));

	memset(p, n, static_cast<size_t>(n));
	burn();
	return p[n / 2];
}

// Vectors on the stack make the compiler align it in an unusual way.
typedef float wide __attribute__((vector_size(64)));
NO_INLINE int with_aligned_stack(int n)
{
	volatile wide v = { static_cast<float>(n) };
	char *p = static_cast<char *>(alloca(static_cast<size_t>(n)));

	memset(p, n, static_cast<size_t>(n));
	burn();
	return static_cast<int>(v[0]) + p[1];
}

static bool has_burnt;
static int compare(const void *a, const void *b)
{
	if (!has_burnt)
		burn();
	has_burnt = true;
	return *static_cast<const int *>(a) - *static_cast<const int *>(b);
}

NO_INLINE int in_qsort()
{
	int values[] = { 3, 1, 2, 5, 4 };

	has_burnt = false;
	qsort(values, 5, sizeof(int), compare);
	return values[0];
}

static void on_signal(int)
{
	burn();
	sink = 1; // no tail call
}

NO_INLINE int in_handler()
{
	signal(SIGUSR1, on_signal);
	raise(SIGUSR1);
	return sink;
}

// On a stack of its own: nobody called it.
static ucontext_t outside, inside;
static char coroutine_stack[1 << 16];

static void coroutine()
{
	burn();
	sink = 2;
}

NO_INLINE int in_coroutine()
{
	getcontext(&inside);
	inside.uc_stack.ss_sp = coroutine_stack;
	inside.uc_stack.ss_size = sizeof(coroutine_stack);
	inside.uc_link = &outside;
	makecontext(&inside, coroutine, 0);
	swapcontext(&outside, &inside);
	return sink;
}

// Code without any description, as from a compiler at run time, but with a frame pointer.
extern "C" int without_description(void (*function)());
__asm__(".text\n.globl without_description\n.type without_description,@function\n"
	"without_description:\n\tpush %rbp\n\tmov %rsp, %rbp\n\tcall *%rdi\n\tpop %rbp\n\tret\n"
	".size without_description, .-without_description\n");

NO_INLINE int through_unknown()
{
	return without_description(burn) + sink;
}

struct thrown {
	~thrown()
	{
		burn();
	}
};

NO_INLINE int while_thrown()
{
	try {
		thrown t;

		throw std::string("x");
	} catch (const std::string &) {
	}
	return sink;
}

int main()
{
	int n = 0;

	for (int i = 0; i < 4; i++) {
		n += in_depth(60) + with_alloca(1000 + i) + with_aligned_stack(100 + i);
		n += in_qsort() + in_handler() + in_coroutine() + through_unknown();
		n += while_thrown();
	}
	return n == 12345;
}
