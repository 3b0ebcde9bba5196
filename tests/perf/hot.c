/* hot.c - a program that spends its time in known functions, without a C library: perf records of
 * it and the program itself are small enough to keep. hot takes three parts of four, warm one; both
 * are called by way of middle, and warm from deep, too.
 */
static volatile unsigned sink;

__attribute__((noinline)) static unsigned hot(unsigned n)
{
	unsigned x = 1;

	for (unsigned i = 0; i < n; i++)
		x = x * 33 + i;
	return x;
}

__attribute__((noinline)) static unsigned warm(unsigned n)
{
	unsigned x = 1;

	for (unsigned i = 0; i < n; i++)
		x = x * 33 - i;
	return x;
}

/* Calls itself, and keeps an array, so that frames differ in size. */
__attribute__((noinline)) static unsigned deep(unsigned depth, unsigned n)
{
	volatile unsigned room[8];

	room[depth % 8] = depth;
	if (depth)
		return deep(depth - 1, n) + room[depth % 8];
	return warm(n) + room[0];
}

__attribute__((noinline)) static unsigned middle(unsigned n)
{
	sink += hot(6 * n);
	sink += warm(n);
	return sink + deep(5, n);
}

__attribute__((noinline)) static int run(unsigned rounds)
{
	for (unsigned i = 0; i < rounds; i++)
		sink += middle(100000);
	return sink == 1;
}

__attribute__((noreturn, used)) void start(void)
{
	long status = run(ROUNDS);

	__asm__ volatile("syscall" : : "a"(231L), "D"(status) : "rcx", "r11", "memory");
	__builtin_unreachable();
}

/* The outermost frame says that it is. */
__asm__(".globl _start\n"
	"_start:\n"
	".cfi_startproc\n"
	".cfi_undefined rip\n"
	"xor %ebp, %ebp\n"
	"and $-16, %rsp\n"
	"call start\n"
	".cfi_endproc\n");
