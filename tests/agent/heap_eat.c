/* heap_eat.c - more and more memory, until there is no more. With "all" not a byte is left of it,
 * at once; with "stays" it stays there for a while. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((noinline, noclone)) static void *eating_place(size_t size)
{
	void *p = malloc(size);

	if (p)
		memset(p, 1, size);
	return p;
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "all") == 0) {
		for (size_t size = 1 << 20; size >= 16;)
			size /= eating_place(size) ? 1 : 2;
		return 0;
	}
	for (int i = 0; i < 1000 && eating_place(1 << 20); i++)
		usleep(4000);
	if (argc > 1)
		sleep(10);
	return 0;
}
