/* push.c - POST /push.v1.PusherService/Push: profiles as Grafana Alloy and profilecli push them. */
#include <stdio.h>

#include "profile/wire.h"
#include "server/connect.h"
#include "server/intake.h"
#include "server/profile_types.h"
#include "server/routes.h"

/* Profiles whose values are of the time since the last one, but do not say how long that was: Alloy
 * asks so often. */
#define USUAL_DELTA_NS INT64_C(15000000000)

enum { SERIES = 1, LABELS = 1, SAMPLES = 2, NAME = 1, VALUE = 2, RAW_PROFILE = 1 };

static const struct wire_field label_fields[] = { WIRE_FIELD("name", NAME, WIRE_KIND_STRING),
						  WIRE_FIELD("value", VALUE, WIRE_KIND_STRING),
						  { 0 } };
static const struct wire_message label_message = { .name = "LabelPair", .fields = label_fields };
static const struct wire_field sample_fields[] = {
	WIRE_FIELD("raw_profile", RAW_PROFILE, WIRE_KIND_BYTES), { 0 }
};
static const struct wire_message sample_message = { .name = "RawSample", .fields = sample_fields };
static const struct wire_field series_fields[] = {
	WIRE_FIELD("labels", LABELS, WIRE_KIND_MESSAGE, .message = &label_message),
	WIRE_FIELD("samples", SAMPLES, WIRE_KIND_MESSAGE, .message = &sample_message),
	{ 0 }
};
static const struct wire_message series_message = { .name = "RawProfileSeries",
						    .fields = series_fields };
static const struct wire_field request_fields[] = {
	WIRE_FIELD("series", SERIES, WIRE_KIND_MESSAGE, .message = &series_message), { 0 }
};
static const struct wire_message request_message = { .name = "PushRequest",
						     .fields = request_fields };

struct push {
	struct call *c;
	struct intake in;
	struct intake_series series;
	bool is_delta; /* values are of the time since the last profile */
	char part[60];
};

static bool malformed(struct call *c)
{
	reply_error(c, 400, "the body is no PushRequest in protobuf");
	return false;
}

static bool read_label(struct wire w, struct store_label *l)
{
	struct field f = { 0 };

	*l = (struct store_label){ STR(""), STR("") };
	while (w.p < w.end) {
		if (!wire_next(&w, &f))
			return false;
		if (f.type == WIRE_BYTES && f.number == NAME)
			l->key = wire_view(f.bytes);
		if (f.type == WIRE_BYTES && f.number == VALUE)
			l->value = wire_view(f.bytes);
	}
	return true;
}

static void take_label(struct push *p, const struct store_label *l)
{
	if (str_eq(l->key, STR("service_name"))) {
		p->series.service = l->value;
	} else if (str_eq(l->key, STR("__name__"))) {
		p->series.type = profile_type_of_name(l->value);
		p->is_delta |= str_has_prefix(l->value, STR("godeltaprof_"));
	} else if (str_eq(l->key, STR("__delta__"))) {
		p->is_delta |= str_eq(l->value, STR("false"));
	} else {
		intake_label(&p->series, l->key, l->value);
	}
}

/* In a profile that has a duration, values are those of that time (store/meaning.h). */
static bool add_profile(struct push *p, struct str bytes)
{
	struct profile profile;

	if (!intake_read(&p->in, bytes, &profile))
		return false;
	if (p->is_delta && profile.duration_nanos <= 0)
		profile.duration_nanos = USUAL_DELTA_NS;
	return intake_add(&p->in, &p->series, &profile);
}

static bool read_sample(struct push *p, struct wire w)
{
	struct field f = { 0 };

	while (w.p < w.end) {
		if (!wire_next(&w, &f))
			return malformed(p->c);
		if (f.type == WIRE_BYTES && f.number == RAW_PROFILE &&
		    !add_profile(p, wire_view(f.bytes)))
			return false;
	}
	return true;
}

/* Labels may come after samples. */
static bool read_labels(struct push *p, struct wire w)
{
	struct store_label label;
	struct field f = { 0 };

	p->series.labels.n = 0;
	p->series.service = p->series.type = p->series.instance = STR("");
	p->is_delta = false;
	while (w.p < w.end) {
		if (!wire_next(&w, &f))
			return malformed(p->c);
		if (f.type != WIRE_BYTES || f.number != LABELS)
			continue;
		if (!read_label(f.bytes, &label))
			return malformed(p->c);
		take_label(p, &label);
	}
	if (!p->series.service.n)
		p->series.service = intake_find_label(&p->series, STR("app_name"));
	if (!p->series.service.n)
		reply_error(p->c, 400, "there is no label service_name");
	else if (!p->series.type.n)
		reply_error(p->c, 400, "there is no label __name__, as process_cpu or memory");
	return !p->c->reply->status;
}

static bool read_series(struct push *p, size_t number, struct wire w)
{
	struct field f = { 0 };
	size_t nsamples = 0;

	snprintf(p->part, sizeof(p->part), "series %zu", number);
	p->c->part = p->part;
	if (!read_labels(p, w))
		return false;
	while (w.p < w.end) {
		if (!wire_next(&w, &f))
			return malformed(p->c);
		if (f.type != WIRE_BYTES || f.number != SAMPLES)
			continue;
		snprintf(p->part, sizeof(p->part), "series %zu, sample %zu", number, nsamples++);
		if (!read_sample(p, f.bytes))
			return false;
	}
	return true;
}

static bool read_request(struct push *p, struct str bytes)
{
	struct wire w = wire_of(bytes);
	struct field f = { 0 };
	size_t nseries = 0;

	while (w.p < w.end) {
		p->c->part = NULL;
		if (!wire_next(&w, &f))
			return malformed(p->c);
		if (f.type == WIRE_BYTES && f.number == SERIES &&
		    !read_series(p, nseries++, f.bytes))
			return false;
	}
	return true;
}

void push_post(struct call *c)
{
	struct push p = { .c = c };
	struct connect_body body;
	struct buf answer = { 0 };

	if (!connect_read(c, &body) ||
	    (body.is_json && !intake_from_json(c, &request_message, &body.bytes)))
		return;
	intake_begin(&p.in, c);
	if (intake_end(&p.in, read_request(&p, body.bytes))) {
		buf_puts(&answer, body.is_json ? "{}" : "");
		connect_reply(c, &body, &answer);
	}
	intake_series_release(&p.series);
}
