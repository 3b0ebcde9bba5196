/* serve_load.c - pushes profiles to a server as many agents do, over connections that are kept.
 *
 *	serve_load PORT puts=20000 connections=16 service=NAME first=1700000000 step=60 series=1 \
 *		FILE...
 *
 * The files (pprof without a time, gzip'd) are sent again and again; those of a series are `step`
 * seconds apart, beginning with `first`. A time goes before a file's own data as a block that is
 * not compressed. Prints "seconds puts-per-second p99-milliseconds", or what the server said
 * against it.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <libdeflate.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>

#include "base/str.h"

enum {
	CONNECTIONS_MAX = 1024,
	ANSWER_MAX = 8192,
	PLAIN_MAX = 64 << 20,
	GZIP_HEAD = 10,
	GZIP_TAIL = 8,
	AGAIN_US = 50000,
};

static struct {
	long puts, connections, first, step, series;
} params = { .puts = 20000, .connections = 16, .first = 1700000000, .step = 60, .series = 1 };
static const struct {
	const char *name;
	long *value;
} param_table[] = {
	{ "puts", &params.puts },     { "connections", &params.connections },
	{ "first", &params.first },   { "step", &params.step },
	{ "series", &params.series },
};

static const char *service = "bench";
static int port;
static struct file {
	struct iovec packed;
	size_t plain_bytes;
	uint32_t plain_crc;
} * files;
static long nfiles;
static _Atomic long next_put;
static float *waits; /* of each put, in seconds */

static void die(const char *what)
{
	perror(what);
	exit(1);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void set_param(const char *arg)
{
	const char *equals = strchr(arg, '=');

	for (size_t i = 0; i < sizeof(param_table) / sizeof(*param_table); i++)
		if (!strncmp(arg, param_table[i].name, (size_t)(equals - arg)))
			*param_table[i].value = atol(equals + 1);
	if (!strncmp(arg, "service=", 8))
		service = equals + 1;
}

/* Packed without what is round the deflate stream. */
static void read_file(const char *path, struct file *f)
{
	struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
	int fd = open(path, O_RDONLY);
	char *packed, *plain = malloc(PLAIN_MAX);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) || !plain || !d)
		die(path);
	packed = malloc((size_t)st.st_size);
	if (!packed || read(fd, packed, (size_t)st.st_size) != st.st_size)
		die(path);
	close(fd);
	if (libdeflate_gzip_decompress(d, packed, (size_t)st.st_size, plain, PLAIN_MAX,
				       &f->plain_bytes) != LIBDEFLATE_SUCCESS)
		die(path);
	libdeflate_free_decompressor(d);
	f->plain_crc = libdeflate_crc32(0, plain, f->plain_bytes);
	free(plain);
	f->packed =
		(struct iovec){ packed + GZIP_HEAD, (size_t)st.st_size - GZIP_HEAD - GZIP_TAIL };
}

static unsigned char *put_u32(unsigned char *p, uint64_t n)
{
	for (int i = 0; i < 4; i++)
		*p++ = (unsigned char)(n >> (8 * i));
	return p;
}

/* A gzip file with the field time_nanos and the profile, but for its deflate stream. */
static size_t make_ends(const struct file *f, uint64_t nanos, unsigned char *head,
			unsigned char *tail)
{
	static const unsigned char start[] = { 0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, 0 };
	unsigned char field[11] = { 9 << 3 }, *p = head;
	uint32_t n = 1;
	uLong crc;

	for (; nanos > 127; nanos >>= 7)
		field[n++] = (unsigned char)(nanos | 128);
	field[n++] = (unsigned char)nanos;
	memcpy(p, start, sizeof(start));
	p = put_u32(p + sizeof(start), n | ~n << 16);
	memcpy(p, field, n);
	crc = crc32_combine(libdeflate_crc32(0, field, n), f->plain_crc, (z_off_t)f->plain_bytes);
	put_u32(put_u32(tail, crc), f->plain_bytes + n);
	return (size_t)(p + n - head);
}

static int dial(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof(at)))
		die("connect");
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return fd;
}

static void send_all(int fd, struct iovec *parts, int n)
{
	while (n) {
		ssize_t sent = writev(fd, parts, n);

		if (sent < 0)
			die("write");
		for (; n && (size_t)sent >= parts->iov_len; parts++, n--)
			sent -= (ssize_t)parts->iov_len;
		if (n) {
			parts->iov_base = (char *)parts->iov_base + sent;
			parts->iov_len -= (size_t)sent;
		}
	}
}

/* The answers are short, and end with a line. False: it is to be tried again. */
static bool read_answer(int fd)
{
	char answer[ANSWER_MAX];
	size_t n = 0;
	ssize_t got;

	do {
		got = read(fd, answer + n, sizeof(answer) - 1 - n);
		if (got <= 0)
			die("read");
		n += (size_t)got;
		answer[n] = '\0';
	} while (n < sizeof(answer) - 1 &&
		 (!strstr(answer, "\r\n\r\n") || answer[n - 1] != '\n' || answer[n - 2] == '\r'));
	if (!strncmp(answer, "HTTP/1.1 5", 10))
		return false;
	if (strncmp(answer, "HTTP/1.1 200", 12)) {
		fprintf(stderr, "serve_load: %s\n", answer);
		exit(1);
	}
	return true;
}

static bool put(int fd, long i)
{
	const struct file *f = &files[i % nfiles];
	uint64_t seconds = (uint64_t)(params.first + i / params.series * params.step);
	unsigned char start[64], end[GZIP_TAIL];
	size_t nstart = make_ends(f, seconds * 1000000000, start, end);
	char head[512];
	int nhead =
		snprintf(head, sizeof(head),
			 "POST /api/0/profiles?service=%s&type=cpu&labels=pod%%3D%ld HTTP/1.1\r\n"
			 "Host: localhost\r\nUser-Agent: Go-http-client/1.1\r\n"
			 "Content-Length: %zu\r\nAccept-Encoding: gzip\r\n\r\n",
			 service, i % params.series, nstart + f->packed.iov_len + sizeof(end));
	struct iovec parts[] = {
		{ head, (size_t)nhead }, { start, nstart }, f->packed, { end, sizeof(end) }
	};
	double began = now();

	send_all(fd, parts, 4);
	if (!read_answer(fd))
		return false;
	waits[i] = (float)(now() - began);
	return true;
}

static void *agent(void *arg)
{
	int fd = dial();
	long i;

	(void)arg;
	while ((i = next_put++) < params.puts)
		while (!put(fd, i))
			usleep(AGAIN_US);
	close(fd);
	return NULL;
}

static int by_size(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	pthread_t threads[CONNECTIONS_MAX];
	double start, took;

	if (argc < 3)
		return 2;
	port = atoi(argv[1]);
	files = calloc((size_t)argc, sizeof(*files));
	for (int i = 2; files && i < argc; i++) {
		if (strchr(argv[i], '='))
			set_param(argv[i]);
		else
			read_file(argv[i], &files[nfiles++]);
	}
	waits = calloc((size_t)params.puts, sizeof(*waits));
	if (!nfiles || !waits || params.connections > CONNECTIONS_MAX)
		return 2;
	start = now();
	for (long i = 0; i < params.connections; i++)
		if (pthread_create(&threads[i], NULL, agent, NULL))
			die("pthread_create");
	for (long i = 0; i < params.connections; i++)
		pthread_join(threads[i], NULL);
	took = now() - start;
	qsort(waits, (size_t)params.puts, sizeof(*waits), by_size);
	printf("%.3f %.0f %.2f\n", took, (double)params.puts / took,
	       (double)waits[params.puts * 99 / 100] * 1000);
	return 0;
}
