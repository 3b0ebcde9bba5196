/* kernel.h - system calls that touch neither errno nor what stands in front of libc's functions.
 * Any context. */
#ifndef AGENT_KERNEL_H
#define AGENT_KERNEL_H

#include <sys/syscall.h>

/* Returns what the kernel does: errors are negative. */
static inline long kernel_call6(long number, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
}

static inline long kernel_call(long number, long a, long b, long c, long d)
{
	return kernel_call6(number, a, b, c, d, 0, 0);
}

#endif
