/* heap_early.c - memory from before the agent's constructor ran. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static char *first, *second;
static void *volatile third;

static void too_early(int argc, char **argv, char **environment)
{
	(void)argc, (void)argv, (void)environment;
	first = malloc(100);
	strcpy(first, "early");
	second = calloc(10, 10);
	free(malloc(5));
	/* Leaves an allocated message behind. */
	third = dlsym(RTLD_DEFAULT, "there_is_no_such_function");
}

__attribute__((section(".preinit_array"), used)) static void (*const start)(int, char **,
									    char **) = too_early;

int main(void)
{
	first = realloc(first, 5000);
	if (strcmp(first, "early") != 0 || second[99])
		return 1;
	free(first);
	free(second);
	dlerror();
	return 0;
}
