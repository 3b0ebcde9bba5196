/* heap_eat.c - more and more memory, until there is no more. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((noinline, noclone)) static void *eating_place(void)
{
	void *p = malloc(1 << 20);

	if (p)
		memset(p, 1, 1 << 20);
	return p;
}

int main(void)
{
	for (int i = 0; i < 1000 && eating_place(); i++)
		usleep(4000);
	return 0;
}
