/* heap_errors.c - what a program may rely on when memory is short, and when it is not. */
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(what)                                    \
	do {                                           \
		if (!(what)) {                         \
			printf("not so: %s\n", #what); \
			return 1;                      \
		}                                      \
	} while (0)

static volatile size_t huge = (size_t)1 << 60, half = SIZE_MAX / 2 + 2;

__attribute__((noinline, noclone)) static void *kept_place(void)
{
	void *p = malloc(5000);

	__asm__ volatile("" : "+r"(p)::"memory");
	return p;
}

static int check_failures(void)
{
	void *p = NULL;

	errno = 0;
	CHECK(!malloc(huge) && errno == ENOMEM);
	errno = 0;
	CHECK(!malloc(SIZE_MAX) && errno == ENOMEM);
	errno = 0;
	CHECK(!calloc(half, 2) && errno == ENOMEM);
	errno = 0;
	CHECK(!reallocarray(NULL, half, 2) && errno == ENOMEM);
	errno = 0;
	CHECK(!memalign(64, huge) && errno == ENOMEM);
	errno = 7;
	CHECK(posix_memalign(&p, 64, huge) == ENOMEM && !p && errno == 7);
	CHECK(posix_memalign(&p, 3, 8) == EINVAL && !p && errno == 7);
	return 0;
}

static int check_success(void)
{
	char *p;

	errno = 7;
	for (int i = 0; i < 1000; i++) {
		p = malloc((size_t)i);
		p = realloc(p, (size_t)i * 2 + 1);
		p[i * 2] = 1;
		free(p);
		free(calloc(3, (size_t)i));
		free(aligned_alloc(64, 640));
	}
	free(NULL);
	CHECK(malloc_usable_size(NULL) == 0);
	CHECK(errno == 7);
	p = malloc(0);
	CHECK(p);
	free(p);
	return 0;
}

/* After it failed the old block is there as before, in the profile too. */
static int check_realloc(void)
{
	char *p = kept_place(), *same;

	strcpy(p, "kept");
	same = p;
	errno = 0;
	p = realloc(p, huge);
	CHECK(!p && errno == ENOMEM && strcmp(same, "kept") == 0);
	printf("kept_place 1 5000 1 5000\n");
	return 0;
}

int main(void)
{
	return check_success() || check_failures() || check_realloc();
}
