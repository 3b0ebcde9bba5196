#include "agent/heap_text.h"

#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/sort.h"

#pragma weak mallinfo2 /* see weak.h */

/* In the order of the profile's values. */
enum { ALLOC_OBJECTS, ALLOC_BYTES, IN_USE_OBJECTS, IN_USE_BYTES };

/* In Go's text values are as they were sampled, and pprof multiplies by what the size of a row's
 * average object asks for. Ours are true sizes already: we divide by the same, and it comes out
 * right, but for what is lost by counts being whole numbers. */
static void scale_down(int64_t *objects, int64_t *bytes, int64_t rate)
{
	double share;

	if (!*objects || !*bytes)
		return;
	share = heap_share_sampled((double)*bytes / (double)*objects, (double)rate);
	*bytes = (int64_t)((double)*bytes * share + 0.5);
	*objects = (int64_t)((double)*objects * share + 0.5);
	if (!*objects)
		*objects = 1;
	if (!*bytes)
		*bytes = 1;
}

struct printed {
	const struct record_row *row;
	int64_t values[VALUES_MAX];
};

/* Most bytes in use first; what was allocated, and the order of stacks, decide among equals. */
static int compare(const void *a, const void *b)
{
	const struct printed *x = a, *y = b;

	for (int i = IN_USE_BYTES; i >= 0; i -= 2)
		if (x->values[i] != y->values[i])
			return x->values[i] > y->values[i] ? -1 : 1;
	for (uint32_t i = 0; i < x->row->nframes && i < y->row->nframes; i++)
		if (x->row->frames[i] != y->row->frames[i])
			return x->row->frames[i] < y->row->frames[i] ? -1 : 1;
	return 0;
}

static struct printed *take_rows(struct region *memory, const struct record *r, int64_t *total)
{
	struct printed *rows = region_alloc(memory, (r->n + 1) * sizeof(*rows));

	for (size_t i = 0; rows && i < r->n; i++) {
		rows[i].row = &r->rows[i];
		memcpy(rows[i].values, r->rows[i].values, sizeof(rows[i].values));
		scale_down(&rows[i].values[ALLOC_OBJECTS], &rows[i].values[ALLOC_BYTES], r->period);
		scale_down(&rows[i].values[IN_USE_OBJECTS], &rows[i].values[IN_USE_BYTES],
			   r->period);
		for (int v = 0; v < VALUES_MAX; v++)
			total[v] += rows[i].values[v];
	}
	if (rows)
		sort(rows, r->n, sizeof(*rows), compare);
	return rows;
}

static void write_counts(struct out *o, const int64_t *v)
{
	out_format(o, "%lld: %lld [%lld: %lld] ", (long long)v[IN_USE_OBJECTS],
		   (long long)v[IN_USE_BYTES], (long long)v[ALLOC_OBJECTS],
		   (long long)v[ALLOC_BYTES]);
}

static void write_rows(struct out *o, const struct printed *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		write_counts(o, rows[i].values);
		record_write_addresses(o, rows[i].row);
		record_write_stack(o, rows[i].row->frames, rows[i].row->nframes);
		out_text(o, "\n");
	}
}

/* ---- what the allocator and the kernel have to say */

static void write_mallinfo(struct out *o)
{
	struct mallinfo2 m;

	if (!mallinfo2)
		return;
	m = mallinfo2();
	out_text(o, "# mallinfo2\n");
	out_format(o, "# Alloc = %zu\n", m.uordblks + m.hblkhd);
	out_format(o, "# Sys = %zu\n", m.arena + m.hblkhd);
	out_format(o, "# HeapIdle = %zu\n", m.fordblks);
	out_format(o, "# HeapReleasable = %zu\n", m.keepcost);
	out_format(o, "# FreeChunks = %zu\n", m.ordblks);
	out_format(o, "# FastbinBytes = %zu\n", m.fsmblks);
	out_format(o, "# Mapped = %zu / %zu\n", m.hblks, m.hblkhd);
}

static unsigned long long status_kilobytes(const char *status, const char *key)
{
	const char *at = strstr(status, key);
	unsigned long long n = 0;

	if (!at)
		return 0;
	for (at += strlen(key); *at == ' ' || *at == '\t'; at++)
		;
	for (; *at >= '0' && *at <= '9'; at++)
		n = n * 10 + (unsigned)(*at - '0');
	return n;
}

static void write_process(struct out *o)
{
	char status[4096];
	int fd = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, status, sizeof(status) - 1);

	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return;
	status[n] = '\0';
	out_format(o, "# VmRSS = %llu\n", status_kilobytes(status, "\nVmRSS:") << 10);
	out_format(o, "# VmHWM = %llu\n", status_kilobytes(status, "\nVmHWM:") << 10);
	out_format(o, "# MaxRSS = %llu\n", status_kilobytes(status, "\nVmHWM:") << 10);
}

void heap_write_text(struct out *o, const struct agent_profile *p, struct record *r, int debug)
{
	int64_t total[VALUES_MAX] = { 0 };
	struct region memory = { 0 };
	struct printed *rows = take_rows(&memory, r, total);

	(void)p, (void)debug;
	if (!rows) {
		o->has_failed = true;
		return;
	}
	/* pprof takes equal columns for a profile that has just one of them. */
	if (total[ALLOC_BYTES] == total[IN_USE_BYTES])
		total[ALLOC_BYTES]++;
	out_text(o, "heap profile: ");
	write_counts(o, total);
	out_format(o, "@ heap/%lld\n", 2 * (long long)r->period);
	write_rows(o, rows, r->n);
	out_text(o, "\n");
	write_mallinfo(o);
	write_process(o);
	region_release(&memory);
}

/* As gperftools writes it: what grew was in use, and allocated. */
void growth_write_text(struct out *o, const struct agent_profile *p, struct record *r, int debug)
{
	int64_t objects = 0, bytes = 0;

	(void)p, (void)debug;
	for (size_t i = 0; i < r->n; i++) {
		objects += r->rows[i].values[0];
		bytes += r->rows[i].values[1];
	}
	out_format(o, "heap profile: %6lld: %8lld [%6lld: %8lld] @ growthz\n", (long long)objects,
		   (long long)bytes, (long long)objects, (long long)bytes);
	for (size_t i = 0; i < r->n; i++) {
		const int64_t *v = r->rows[i].values;

		out_format(o, "%6lld: %8lld [%6lld: %8lld] ", (long long)v[0], (long long)v[1],
			   (long long)v[0], (long long)v[1]);
		record_write_addresses(o, &r->rows[i]);
	}
}
