/* decode.c - how long reading profiles takes, without any report.
 *
 *	decode FILE...		wall seconds, for all files one after the other
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/parallel.h"
#include "profile/profile.h"

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static bool decode(const char *path, struct err *e)
{
	struct arena arena = { 0 }, plain = { 0 };
	struct str bytes;
	struct strings strings;
	struct profile profile;
	struct stat st;
	int fd = open(path, O_RDONLY);
	void *data;
	bool ok;

	if (fd < 0 || fstat(fd, &st) != 0)
		return err_set(e, ERR_IO, "%s: %s", path, strerror(errno));
	data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (data == MAP_FAILED)
		return err_set(e, ERR_IO, "%s: %s", path, strerror(errno));
	strings_init(&strings);
	ok = profile_unpack(&plain, (struct str){ data, (size_t)st.st_size }, SIZE_MAX, &bytes,
			    e) &&
	     profile_parse(
		     &profile, &arena, &strings, bytes,
		     &(struct parse_params){ .threads = parallel_cores(), .may_discard = true }, e);
	arena_release(&plain);
	strings_release(&strings);
	arena_release(&arena);
	munmap(data, (size_t)st.st_size);
	close(fd);
	return ok;
}

int main(int argc, char **argv)
{
	struct err e;
	double start = now();

	for (int i = 1; i < argc; i++)
		if (!decode(argv[i], &e)) {
			fprintf(stderr, "decode: %s\n", e.text);
			return 1;
		}
	printf("%.6f\n", now() - start);
	return 0;
}
