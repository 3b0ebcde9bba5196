/* limit.c - the least that any reader of these profiles must do: inflate, and look at every byte
 * once.
 *
 *	limit FILE...		wall seconds of it, for all files one after the other
 */
#include <fcntl.h>
#include <libdeflate.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* The size that the last four bytes of a gzip file tell. */
static size_t unpacked_bytes(const unsigned char *data, size_t n)
{
	uint32_t size = 0;

	if (n >= 18)
		memcpy(&size, data + n - 4, 4);
	return size;
}

static uint64_t read_once(const unsigned char *p, size_t n)
{
	uint64_t sum = 0, word;

	for (; n >= 8; n -= 8, p += 8) {
		memcpy(&word, p, 8);
		sum += word;
	}
	return sum;
}

int main(int argc, char **argv)
{
	struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
	uint64_t sum = 0;
	double start = now();

	for (int i = 1; i < argc; i++) {
		int fd = open(argv[i], O_RDONLY);
		struct stat st;
		unsigned char *data, *raw;
		size_t n;

		if (fd < 0 || fstat(fd, &st) != 0 || st.st_size == 0) {
			perror(argv[i]);
			return 1;
		}
		data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (data == MAP_FAILED)
			return 1;
		n = unpacked_bytes(data, (size_t)st.st_size);
		raw = malloc(n + 1);
		if (!raw || libdeflate_gzip_decompress(d, data, (size_t)st.st_size, raw, n, NULL)) {
			fprintf(stderr, "limit: cannot inflate %s\n", argv[i]);
			return 1;
		}
		sum += read_once(raw, n);
		free(raw);
		munmap(data, (size_t)st.st_size);
		close(fd);
	}
	printf("%.6f %llx\n", now() - start, (unsigned long long)sum);
	libdeflate_free_decompressor(d);
	return 0;
}
