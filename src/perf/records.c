#include "perf/data.h"

#include <stdlib.h>
#include <zstd.h>

enum {
	RECORD_HEADER_BYTES = 8,
	ROOM_BYTES = 1 << 20, /* that unpacking asks for at a time */
};

/* perf has compressed all that comes from the kernel as one stream, cut into records anywhere. */
struct unpacker {
	ZSTD_DStream *stream;
	size_t max_bytes;
};

bool perf_record_error(const struct perf_data *d, size_t at, const char *what, struct err *e)
{
	if (at < d->file.n || !d->unpacked.n)
		return err_set(e, ERR_FORMAT, "perf.data: record at offset %zu %s", at, what);
	return err_set(e, ERR_FORMAT, "perf.data: record at offset %zu of compressed data %s",
		       at - d->file.n, what);
}

static bool unpack(struct perf_data *d, struct unpacker *u, size_t at, struct str packed,
		   struct err *e)
{
	ZSTD_inBuffer in = { packed.p, packed.n, 0 };
	bool is_full = false;

	if (!u->stream)
		u->stream = ZSTD_createDStream();
	while (in.pos < in.size || is_full) {
		ZSTD_outBuffer out = { buf_room(&d->unpacked, ROOM_BYTES), ROOM_BYTES, 0 };
		size_t before = in.pos, result = ZSTD_decompressStream(u->stream, &out, &in);

		if (ZSTD_isError(result))
			return perf_record_error(d, at, ZSTD_getErrorName(result), e);
		d->unpacked.n += out.pos;
		is_full = out.pos == out.size;
		if (d->unpacked.n > u->max_bytes)
			return err_set(e, ERR_LIMIT,
				       "perf.data: more than %zu bytes when unpacked; raise "
				       "-max_profile_size",
				       u->max_bytes);
		if (!out.pos && in.pos == before)
			break;
	}
	return true;
}

/* In a pipe, events come as records: the description, then its ids. */
static bool read_event(struct perf_data *d, size_t at, struct str record, struct err *e)
{
	struct str body = str_from(record, RECORD_HEADER_BYTES);
	uint32_t bytes = body.n >= 8 ? perf_u32(d, body.p + 4) : 0;

	if (!d->is_pipe)
		return true;
	if (bytes < 64 || bytes > body.n)
		return perf_record_error(d, at, "is an event of wrong size", e);
	if (!perf_add_event(d, (struct str){ body.p, bytes }, e))
		return false;
	for (size_t i = bytes; body.n - i >= 8; i += 8)
		perf_add_id(d, perf_u64(d, body.p + i), (uint32_t)d->events.n - 1);
	return true;
}

/* The name of an event that came before. */
static void read_update(struct perf_data *d, struct str record)
{
	enum { UPDATE_NAME = 2 };
	uint32_t event;

	if (record.n < 24 || perf_u64(d, record.p + 8) != UPDATE_NAME)
		return;
	event = perf_find_event(d, perf_u64(d, record.p + 16));
	if (event < d->events.n)
		d->events.at[event].name = perf_text(str_from(record, 24));
}

/* Some records are followed by bytes that are no records. */
static uint64_t trailing_bytes(const struct perf_data *d, uint32_t type, struct str record)
{
	if (type == RECORD_TRACING_DATA && record.n >= 12)
		return ((uint64_t)perf_u32(d, record.p + 8) + 7) & ~UINT64_C(7);
	if (type == RECORD_AUXTRACE && record.n >= 16)
		return perf_u64(d, record.p + 8);
	return 0;
}

static bool read_own_record(struct perf_data *d, struct unpacker *u, size_t at, struct str record,
			    struct err *e)
{
	struct str body = str_from(record, RECORD_HEADER_BYTES);

	switch (perf_u32(d, record.p)) {
	case RECORD_HEADER_ATTR:
		return read_event(d, at, record, e);
	case RECORD_EVENT_UPDATE:
		read_update(d, record);
		return true;
	case RECORD_BUILD_ID:
		perf_read_build_id(d, record);
		return true;
	case RECORD_FEATURE:
		if (body.n >= 8)
			perf_read_feature(d, perf_u64(d, body.p), str_from(body, 8));
		return true;
	case RECORD_COMPRESSED:
		return unpack(d, u, at, body, e);
	case RECORD_COMPRESSED2:
		if (body.n < 8 || perf_u64(d, body.p) > body.n - 8)
			return perf_record_error(d, at, "has less data than it says", e);
		body = (struct str){ body.p + 8, perf_u64(d, body.p) };
		return unpack(d, u, at, body, e);
	default:
		return true;
	}
}

/* Of the kernel's records, those that are kept for later. */
static bool is_of_use(uint32_t type)
{
	return type == RECORD_SAMPLE || type == RECORD_MMAP || type == RECORD_MMAP2 ||
	       type == RECORD_COMM || type == RECORD_FORK || type == RECORD_LOST ||
	       type == RECORD_LOST_SAMPLES;
}

/* `u` is NULL for what has been unpacked, where nothing of perf's own is. */
static bool scan(struct perf_data *d, size_t start, size_t end, struct unpacker *u, struct err *e)
{
	for (size_t at = start; at < end;) {
		size_t left = end - at;
		struct str record;
		uint64_t more;
		uint32_t type;

		if (left < RECORD_HEADER_BYTES)
			return perf_record_error(d, at, "is cut short", e);
		record = perf_record(d, at);
		type = perf_u32(d, record.p);
		if (record.n < RECORD_HEADER_BYTES)
			return perf_record_error(d, at, "has a size below that of its header", e);
		if (record.n > left)
			return perf_record_error(d, at, "is larger than what is left", e);
		if (is_of_use(type))
			vec_push(&d->records, (struct perf_record){ .at = at });
		else if (u && type >= RECORD_OWN && !read_own_record(d, u, at, record, e))
			return false;
		more = trailing_bytes(d, type, record);
		if (more > left - record.n)
			return perf_record_error(d, at, "has more data than the file", e);
		at += record.n + more;
	}
	return true;
}

static int by_time(const void *x, const void *y)
{
	const struct perf_record *a = x, *b = y;

	if (a->time != b->time)
		return a->time < b->time ? -1 : 1;
	return a->at < b->at ? -1 : 1;
}

/* Each processor has a buffer of its own, so records come in no order. What perf has made up at the
 * start has the time 0. */
static bool sort_records(struct perf_data *d, struct err *e)
{
	bool is_sorted = true;

	for (size_t i = 0; i < d->records.n; i++) {
		struct perf_record *r = &d->records.at[i];
		struct str record = perf_record(d, r->at);
		struct perf_sample s;

		if (perf_u32(d, record.p) == RECORD_SAMPLE) {
			if (!perf_read_sample(d, r->at, &s, e))
				return false;
			r->time = s.time;
		} else {
			r->time = perf_record_time(d, record);
		}
		is_sorted = is_sorted && (!i || r[-1].time <= r->time);
	}
	if (!is_sorted)
		qsort(d->records.at, d->records.n, sizeof(*d->records.at), by_time);
	return true;
}

bool perf_read_records(struct perf_data *d, size_t start, size_t end, size_t max_bytes,
		       struct err *e)
{
	struct unpacker u = { .max_bytes = max_bytes };
	bool ok = scan(d, start, end, &u, e);

	ZSTD_freeDStream(u.stream);
	if (!ok || !scan(d, d->file.n, d->file.n + d->unpacked.n, NULL, e))
		return false;
	if (!d->events.n && d->records.n)
		return err_set(e, ERR_FORMAT, "perf.data: there are records, but no events");
	return sort_records(d, e);
}
