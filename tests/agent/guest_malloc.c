/* guest_malloc.c - allocates in threads, with whichever allocator it is run. */
#include <malloc.h>
#include <stdatomic.h>

#include "guest.h"

NOT_INLINED static char *keep(size_t bytes)
{
	char *p = malloc(bytes);

	memset(p, 1, bytes);
	STAYS;
	return p;
}

static void *churn(void *argument)
{
	unsigned seed = 1;
	char *kept[64] = { 0 };

	for (int i = 0; i < 30000; i++) {
		char **slot = &kept[rand_r(&seed) % 64];
		size_t bytes = (size_t)rand_r(&seed) % 3000 + 1;

		switch (rand_r(&seed) % 5) {
		case 0:
			*slot = realloc(*slot, bytes);
			break;
		case 1:
			free(*slot);
			*slot = calloc(1, bytes);
			break;
		case 2:
			free(*slot);
			*slot = aligned_alloc(64, (bytes + 63) / 64 * 64);
			break;
		default:
			free(*slot);
			*slot = malloc(bytes);
		}
		if (!*slot)
			printf("no memory\n");
		else
			memset(*slot, 7, bytes);
	}
	for (int i = 0; i < 64; i++)
		free(kept[i]);
	return argument;
}

int main(void)
{
	pthread_t threads[3];
	char *line = NULL;
	size_t room = 0;
	FILE *f = fopen("/proc/self/status", "r");

	setvbuf(stdout, NULL, _IONBF, 0);
	for (int i = 0; i < 50; i++)
		keep(20000);
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, churn, NULL);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	while (getline(&line, &room, f) > 0)
		;
	fclose(f);
	free(line);
	free(strdup("memory that libc allocates"));
	burn(100);
	printf("done\n");
	return 0;
}
