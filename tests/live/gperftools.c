/* gperftools.c - a program to run under gperftools: one function works, another keeps memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *kept[1000];

__attribute__((noinline)) static void keep_memory(void)
{
	for (size_t i = 0; i < sizeof(kept) / sizeof(*kept); i++) {
		kept[i] = malloc(10000);
		if (kept[i])
			memset(kept[i], 1, 10000);
	}
}

__attribute__((noinline)) static unsigned work(unsigned n)
{
	volatile unsigned sum = 0;

	for (unsigned i = 0; i < n; i++)
		sum += i * i;
	return sum;
}

int main(void)
{
	keep_memory();
	printf("%u\n", work(400000000));
	return 0;
}
