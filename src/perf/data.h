/* data.h - perf.data taken apart: header, events, features, records. Private to perf/.
 *
 * The file is a header with a table of sections, or (written to a pipe) a header that is followed
 * by records only. Numbers are in the byte order of the machine that wrote it. Records that perf
 * has compressed are unpacked behind the file: an offset that is not below the file's size is one
 * into `unpacked`.
 */
#ifndef PERF_DATA_H
#define PERF_DATA_H

#include <byteswap.h>

#include "base/map.h"
#include "base/vec.h"
#include "perf/perf.h"

/* Record types: the kernel's, then those of the perf program. */
enum {
	RECORD_MMAP = 1,
	RECORD_LOST = 2,
	RECORD_COMM = 3,
	RECORD_FORK = 7,
	RECORD_SAMPLE = 9,
	RECORD_MMAP2 = 10,
	RECORD_LOST_SAMPLES = 13,
	RECORD_OWN = 64, /* from here on */
	RECORD_HEADER_ATTR = 64,
	RECORD_TRACING_DATA = 66,
	RECORD_BUILD_ID = 67,
	RECORD_AUXTRACE = 71,
	RECORD_EVENT_UPDATE = 78,
	RECORD_FEATURE = 80,
	RECORD_COMPRESSED = 81,
	RECORD_COMPRESSED2 = 83,
};

/* Bits of sample_type. */
enum {
	SAMPLE_IP = 1 << 0,
	SAMPLE_TID = 1 << 1,
	SAMPLE_TIME = 1 << 2,
	SAMPLE_ADDR = 1 << 3,
	SAMPLE_READ = 1 << 4,
	SAMPLE_CALLCHAIN = 1 << 5,
	SAMPLE_ID = 1 << 6,
	SAMPLE_CPU = 1 << 7,
	SAMPLE_PERIOD = 1 << 8,
	SAMPLE_STREAM_ID = 1 << 9,
	SAMPLE_RAW = 1 << 10,
	SAMPLE_BRANCH_STACK = 1 << 11,
	SAMPLE_REGS_USER = 1 << 12,
	SAMPLE_STACK_USER = 1 << 13,
	SAMPLE_IDENTIFIER = 1 << 16,
};

enum { MODE_UNKNOWN, MODE_KERNEL, MODE_USER, MODE_MASK = 7 };

struct perf_event {
	uint32_t type;
	uint64_t config, period, sample_type, read_format, branch_type, user_registers;
	bool is_frequency,
		has_sample_id; /* has_sample_id: records that are no samples end in one */
	struct str name;       /* "" if not known */
};

struct perf_id {
	uint64_t id;
	uint32_t event;
};

struct perf_build_id {
	struct str file, bytes;
};

struct perf_record {
	uint64_t time;
	size_t at;
};

struct perf_data {
	struct str file;
	struct buf unpacked;
	bool is_swapped, is_pipe;
	vec(struct perf_event) events;
	vec(struct perf_id) ids;
	struct map by_id;
	vec(struct perf_build_id) build_ids;
	vec(struct perf_record) records; /* those of use, by time */
	struct str host, release, arch;
	vec(struct str) command;
	int64_t wall_clock_offset; /* from the clock of samples to that of people; 0: not known */
};

static inline uint16_t perf_u16(const struct perf_data *d, const char *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return d->is_swapped ? bswap_16(v) : v;
}

static inline uint32_t perf_u32(const struct perf_data *d, const char *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return d->is_swapped ? bswap_32(v) : v;
}

static inline uint64_t perf_u64(const struct perf_data *d, const char *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return d->is_swapped ? bswap_64(v) : v;
}

/* Text up to a NUL, or to the end. */
static inline struct str perf_text(struct str s)
{
	return (struct str){ s.p, s.n ? strnlen(s.p, s.n) : 0 };
}

/* ---- header and features (data.c, features.c) */

/* Reads everything; the views in *d are of `file` and of d->unpacked. Release it also after a
 * failure. */
bool perf_data_open(struct perf_data *d, struct str file, size_t max_bytes, struct err *e);
void perf_data_release(struct perf_data *d);
/* Does the file start with perf's magic number, in either byte order? */
bool perf_data_recognizes(struct str file);

/* An event's description as it stands in the file; `bytes` may be cut short. */
bool perf_add_event(struct perf_data *d, struct str bytes, struct err *e);
void perf_add_id(struct perf_data *d, uint64_t id, uint32_t event);
/* Index of the event, or NONE. */
uint32_t perf_find_event(const struct perf_data *d, uint64_t id);

/* What a feature says; unknown and broken ones are left alone, they are only additions. */
void perf_read_feature(struct perf_data *d, uint64_t feature, struct str bytes);
/* An entry of the list of build ids, with its header. */
void perf_read_build_id(struct perf_data *d, struct str record);

/* ---- records (records.c) */

static inline const char *perf_at(const struct perf_data *d, size_t at)
{
	return at < d->file.n ? d->file.p + at : d->unpacked.p + (at - d->file.n);
}

/* The record's bytes, whose size has been checked. */
static inline struct str perf_record(const struct perf_data *d, size_t at)
{
	const char *p = perf_at(d, at);

	return (struct str){ p, perf_u16(d, p + 6) };
}

/* Fills d->records with those of file[start] .. file[end - 1], and takes in what records of perf's
 * own say about events. */
bool perf_read_records(struct perf_data *d, size_t start, size_t end, size_t max_bytes,
		       struct err *e);

/* ---- samples (sample.c) */

struct perf_sample {
	uint64_t ip, time, period;
	uint32_t pid, tid, event; /* event: NONE if its id is unknown */
	uint8_t mode;
	const char *chain; /* nchain numbers */
	size_t nchain;
	const char *registers; /* one for each bit of the event's user_registers, or NULL */
	struct str stack;
	bool is_64; /* the thread: its registers can be unwound from */
};

bool perf_read_sample(const struct perf_data *d, size_t at, struct perf_sample *s, struct err *e);
/* Time of a record that is no sample; 0 if it has none. */
uint64_t perf_record_time(const struct perf_data *d, struct str record);
/* "record at offset 1234"; for errors. */
bool perf_record_error(const struct perf_data *d, size_t at, const char *what, struct err *e);

#endif
