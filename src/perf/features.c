/* features.c - what perf.data says about the machine, the command and the names of its events. */
#include "perf/data.h"

enum {
	FEATURE_BUILD_ID = 2,
	FEATURE_HOSTNAME = 3,
	FEATURE_OSRELEASE = 4,
	FEATURE_ARCH = 6,
	FEATURE_CMDLINE = 11,
	FEATURE_EVENT_DESC = 12,
	FEATURE_CLOCK_DATA = 29,
	BUILD_ID_BYTES = 20,
	MISC_BUILD_ID_SIZE = 1 << 15,
};

/* Takes n bytes off the front; false if there are not that many. */
static bool take(struct str *s, uint64_t n, struct str *out)
{
	if (n > s->n)
		return false;
	*out = (struct str){ s->p, n };
	*s = str_from(*s, n);
	return true;
}

static bool take_u32(const struct perf_data *d, struct str *s, uint32_t *out)
{
	struct str bytes;

	if (!take(s, 4, &bytes))
		return false;
	*out = perf_u32(d, bytes.p);
	return true;
}

/* A length, then the text, padded with NULs. */
static bool take_text(const struct perf_data *d, struct str *s, struct str *out)
{
	uint32_t n;

	if (!take_u32(d, s, &n) || !take(s, n, out))
		return false;
	*out = perf_text(*out);
	return true;
}

void perf_read_build_id(struct perf_data *d, struct str record)
{
	struct perf_build_id id;
	size_t n = BUILD_ID_BYTES;

	if (record.n < 36) /* header, pid, 20 bytes of id and 4 for its size */
		return;
	if (perf_u16(d, record.p + 4) & MISC_BUILD_ID_SIZE && (uint8_t)record.p[32] < n)
		n = (uint8_t)record.p[32];
	id.bytes = (struct str){ record.p + 12, n };
	id.file = perf_text(str_from(record, 36));
	vec_push(&d->build_ids, id);
}

static void read_build_ids(struct perf_data *d, struct str s)
{
	struct str record;

	while (s.n >= 8) {
		uint16_t size = perf_u16(d, s.p + 6);

		if (size < 8 || !take(&s, size, &record))
			return;
		perf_read_build_id(d, record);
	}
}

static void read_command(struct perf_data *d, struct str s)
{
	struct str word;
	uint32_t n;

	if (!take_u32(d, &s, &n))
		return;
	d->command.n = 0;
	while (n-- && take_text(d, &s, &word))
		vec_push(&d->command, word);
}

/* Names, by the ids of the events; in a file there is one for each event, in order, too. */
static void read_event_names(struct perf_data *d, struct str s)
{
	uint32_t n, attr_bytes, nids;
	struct str attr, name, ids;

	if (!take_u32(d, &s, &n) || !take_u32(d, &s, &attr_bytes))
		return;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t event = i;

		if (!take(&s, attr_bytes, &attr) || !take_u32(d, &s, &nids) ||
		    !take_text(d, &s, &name) || !take(&s, (uint64_t)nids * 8, &ids))
			return;
		if (nids && d->ids.n)
			event = perf_find_event(d, perf_u64(d, ids.p));
		if (event < d->events.n)
			d->events.at[event].name = name;
	}
}

static void read_clock(struct perf_data *d, struct str s)
{
	/* version, clock, time of day, the clock's time at that moment */
	if (s.n >= 24 && perf_u32(d, s.p) == 1)
		d->wall_clock_offset = (int64_t)(perf_u64(d, s.p + 8) - perf_u64(d, s.p + 16));
}

void perf_read_feature(struct perf_data *d, uint64_t feature, struct str bytes)
{
	switch (feature) {
	case FEATURE_BUILD_ID:
		read_build_ids(d, bytes);
		break;
	case FEATURE_HOSTNAME:
		take_text(d, &bytes, &d->host);
		break;
	case FEATURE_OSRELEASE:
		take_text(d, &bytes, &d->release);
		break;
	case FEATURE_ARCH:
		take_text(d, &bytes, &d->arch);
		break;
	case FEATURE_CMDLINE:
		read_command(d, bytes);
		break;
	case FEATURE_EVENT_DESC:
		read_event_names(d, bytes);
		break;
	case FEATURE_CLOCK_DATA:
		read_clock(d, bytes);
		break;
	default:
		break;
	}
}
