/* live.c - a program for recording by hand of perf: a library calls back, functions call
 * themselves, and the time that each takes is far from that of the others. */
#include <stdlib.h>

enum { NUMBERS = 500 };

static volatile unsigned sink;

__attribute__((noinline)) static unsigned spin(unsigned n)
{
	unsigned x = 1;

	for (unsigned i = 0; i < n; i++)
		x = x * 33 + i;
	return x;
}

__attribute__((noinline)) static unsigned turn(unsigned n)
{
	unsigned x = 1;

	for (unsigned i = 0; i < n; i++)
		x = x * 31 ^ i;
	return x;
}

__attribute__((noinline)) static int compare(const void *a, const void *b)
{
	sink += turn(200);
	return *(const int *)a < *(const int *)b ? -1 : 1;
}

__attribute__((noinline)) static void sort(void)
{
	int numbers[NUMBERS];

	for (int i = 0; i < NUMBERS; i++)
		numbers[i] = (i * 7919) % NUMBERS;
	qsort(numbers, NUMBERS, sizeof(*numbers), compare);
	sink += (unsigned)numbers[0];
}

__attribute__((noinline)) static unsigned descend(unsigned depth)
{
	volatile unsigned room[16];

	room[depth % 16] = depth;
	if (depth)
		return descend(depth - 1) + room[depth % 16];
	return spin(3000000) + room[0];
}

int main(void)
{
	for (int i = 0; i < 30; i++) {
		sink += descend(20);
		sort();
	}
	return 0;
}
