#include "perf/data.h"

enum {
	HEADER_BYTES = 104,
	PIPE_HEADER_BYTES = 16,
	SECTION_BYTES = 16, /* offset and size */
	FEATURES_AT = 72,
	FEATURES_MAX = 256,
	EVENT_MIN_BYTES = 64,
	EVENTS_MAX = 256, /* each is a column of the profile */
};

struct section {
	uint64_t offset, size;
};

bool perf_data_recognizes(struct str file)
{
	return str_has_prefix(file, STR("PERFILE2")) || str_has_prefix(file, STR("2ELIFREP"));
}

/* Checks that the section lies in the file. */
static bool read_section(const struct perf_data *d, size_t at, const char *what, struct section *s,
			 struct err *e)
{
	s->offset = perf_u64(d, d->file.p + at);
	s->size = perf_u64(d, d->file.p + at + 8);
	if (s->offset > d->file.n || s->size > d->file.n - s->offset)
		return err_set(e, ERR_FORMAT,
			       "perf.data: %s of %ju bytes at offset %ju, but the file has %zu",
			       what, (uintmax_t)s->size, (uintmax_t)s->offset, d->file.n);
	return true;
}

/* ---- events */

/* Bit fields are numbered from the other end on machines of the other byte order. */
static bool flag(uint64_t flags, unsigned bit, bool is_big_endian)
{
	return flags >> (is_big_endian ? 63 - bit : bit) & 1;
}

static bool is_big_endian(const struct perf_data *d)
{
	return d->is_swapped == (__BYTE_ORDER == __LITTLE_ENDIAN);
}

bool perf_add_event(struct perf_data *d, struct str bytes, struct err *e)
{
	struct perf_event event = { 0 };
	const char *p = bytes.p;
	uint64_t flags;

	if (bytes.n < EVENT_MIN_BYTES)
		return err_set(e, ERR_FORMAT, "perf.data: event description of %zu bytes", bytes.n);
	if (d->events.n == EVENTS_MAX)
		return err_set(e, ERR_LIMIT, "perf.data: more than %d events", EVENTS_MAX);
	flags = perf_u64(d, p + 40);
	event.type = perf_u32(d, p);
	event.config = perf_u64(d, p + 8);
	event.period = perf_u64(d, p + 16);
	event.sample_type = perf_u64(d, p + 24);
	event.read_format = perf_u64(d, p + 32);
	event.is_frequency = flag(flags, 10, is_big_endian(d));
	event.has_sample_id = flag(flags, 18, is_big_endian(d));
	if (bytes.n >= 80)
		event.branch_type = perf_u64(d, p + 72);
	if (bytes.n >= 88)
		event.user_registers = perf_u64(d, p + 80);
	vec_push(&d->events, event);
	return true;
}

struct id_key {
	const struct perf_data *d;
	uint64_t id;
};

static bool same_id(const void *ctx, uint32_t index)
{
	const struct id_key *key = ctx;

	return key->d->ids.at[index].id == key->id;
}

void perf_add_id(struct perf_data *d, uint64_t id, uint32_t event)
{
	struct id_key key = { d, id };
	uint32_t i = map_put(&d->by_id, hash_mix(map_seed(), id), d->ids.n, same_id, &key);

	if (i == d->ids.n)
		vec_push(&d->ids, (struct perf_id){ id, event });
}

uint32_t perf_find_event(const struct perf_data *d, uint64_t id)
{
	struct id_key key = { d, id };
	uint32_t i;

	/* Of a single event, ids need not be written. */
	if (d->events.n == 1)
		return 0;
	i = map_get(&d->by_id, hash_mix(map_seed(), id), same_id, &key);
	return i == MAP_NONE ? NONE : d->ids.at[i].event;
}

/* The table of events: each a description, and a section with its ids. */
static bool read_events(struct perf_data *d, struct err *e)
{
	uint64_t size = perf_u64(d, d->file.p + 16);
	struct section table, ids;

	if (!read_section(d, 24, "table of events", &table, e))
		return false;
	if (size < EVENT_MIN_BYTES + SECTION_BYTES || table.size % size)
		return err_set(e, ERR_FORMAT,
			       "perf.data: table of events has %ju bytes, each event %ju",
			       (uintmax_t)table.size, (uintmax_t)size);
	for (uint64_t i = 0; i < table.size / size; i++) {
		size_t at = table.offset + i * size;
		struct str bytes = { d->file.p + at, size - SECTION_BYTES };

		if (!read_section(d, at + size - SECTION_BYTES, "ids of an event", &ids, e) ||
		    !perf_add_event(d, bytes, e))
			return false;
		for (uint64_t k = 0; k < ids.size / 8; k++)
			perf_add_id(d, perf_u64(d, d->file.p + ids.offset + 8 * k), (uint32_t)i);
	}
	return true;
}

/* ---- the file */

/* Behind the records there is a section for each feature whose bit is set. */
static bool read_features(struct perf_data *d, size_t at, struct err *e)
{
	for (uint64_t i = 0; i < FEATURES_MAX; i++) {
		uint64_t word = perf_u64(d, d->file.p + FEATURES_AT + i / 64 * 8);
		struct section s;

		if (!(word >> i % 64 & 1))
			continue;
		if (d->file.n - at < SECTION_BYTES)
			return err_set(e, ERR_FORMAT,
				       "perf.data: the list of features ends at offset %zu", at);
		if (!read_section(d, at, "feature", &s, e))
			return false;
		perf_read_feature(d, i, (struct str){ d->file.p + s.offset, s.size });
		at += SECTION_BYTES;
	}
	return true;
}

static bool read_file(struct perf_data *d, size_t max_bytes, struct err *e)
{
	struct section data;

	if (d->file.n < HEADER_BYTES)
		return err_set(e, ERR_FORMAT, "perf.data: the file ends in its header");
	if (!read_section(d, 40, "records", &data, e) || !read_events(d, e))
		return false;
	/* A recorder that was killed did not come to write sizes and features. */
	if (data.size == 0)
		data.size = d->file.n - data.offset;
	else if (!read_features(d, data.offset + data.size, e))
		return false;
	return perf_read_records(d, data.offset, data.offset + data.size, max_bytes, e);
}

bool perf_data_open(struct perf_data *d, struct str file, size_t max_bytes, struct err *e)
{
	bool is_little = str_has_prefix(file, STR("PERFILE2"));
	uint64_t header_bytes;

	*d = (struct perf_data){ .file = file,
				 .is_swapped = is_little != (__BYTE_ORDER == __LITTLE_ENDIAN) };
	if (file.n < PIPE_HEADER_BYTES)
		return err_set(e, ERR_FORMAT, "perf.data: the file ends in its header");
	header_bytes = perf_u64(d, file.p + 8);
	d->is_pipe = header_bytes == PIPE_HEADER_BYTES;
	if (!d->is_pipe && header_bytes != HEADER_BYTES)
		return err_set(e, ERR_FORMAT, "perf.data: header of %ju bytes, not %d",
			       (uintmax_t)header_bytes, HEADER_BYTES);
	if (!d->is_pipe)
		return read_file(d, max_bytes, e);
	return perf_read_records(d, PIPE_HEADER_BYTES, file.n, max_bytes, e);
}

void perf_data_release(struct perf_data *d)
{
	buf_release(&d->unpacked);
	vec_release(&d->events);
	vec_release(&d->ids);
	map_release(&d->by_id);
	vec_release(&d->build_ids);
	vec_release(&d->records);
	vec_release(&d->command);
}
