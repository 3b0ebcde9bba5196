/* push.c - POST /push.v1.PusherService/Push: profiles as Grafana Alloy and profilecli push them. */
#include "server/push.h"

#include <stdio.h>

#include "server/connect.h"
#include "server/profile_types.h"
#include "server/routes.h"

/* Profiles whose values are of the time since the last one, but do not say how long that was: Alloy
 * asks so often. */
#define USUAL_DELTA_NS INT64_C(15000000000)
#define BROKEN "the body is no PushRequest in protobuf"

enum { LABELS = 1, SAMPLES = 2, NAME = 1, VALUE = 2, RAW_PROFILE = 1 };

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
	WIRE_FIELD("series", PUSH_SERIES, WIRE_KIND_MESSAGE, .message = &series_message), { 0 }
};
const struct wire_message push_request_message = { .name = "PushRequest",
						   .fields = request_fields };

/* ---- labels */

static bool malformed(struct err *e)
{
	return err_set(e, ERR_FORMAT, BROKEN);
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

static void take_label(const struct store_label *l, struct intake_series *s, bool *is_delta)
{
	if (str_eq(l->key, STR("service_name"))) {
		s->service = l->value;
	} else if (str_eq(l->key, STR("__name__"))) {
		s->type = profile_type_of_name(l->value);
		*is_delta |= str_has_prefix(l->value, STR("godeltaprof_"));
	} else if (str_eq(l->key, STR("__delta__"))) {
		*is_delta |= str_eq(l->value, STR("false"));
	} else {
		intake_label(s, l->key, l->value);
	}
}

bool push_read_labels(struct wire w, struct intake_series *s, bool *is_delta, struct err *e)
{
	struct store_label label;
	struct field f = { 0 };

	s->labels.n = 0;
	s->service = s->type = s->instance = STR("");
	*is_delta = false;
	while (w.p < w.end) {
		if (!wire_next(&w, &f))
			return malformed(e);
		if (f.type != WIRE_BYTES || f.number != LABELS)
			continue;
		if (!read_label(f.bytes, &label))
			return malformed(e);
		take_label(&label, s, is_delta);
	}
	if (!s->service.n)
		s->service = intake_find_label(s, STR("app_name"));
	if (!s->service.n)
		s->service = STR("unspecified"); /* as Pyroscope has it */
	return s->type.n ||
	       err_set(e, ERR_USAGE, "there is no label __name__, as process_cpu or memory");
}

/* ---- requests */

struct push {
	struct call *c;
	struct intake in;
	struct intake_series series;
	bool is_delta; /* values are of the time since the last profile */
	char part[60];
	struct http_reply none;	   /* before there was one */
	struct http_reply refused; /* to the first that is wrong */
};

/* What is wrong with a profile is wrong however often it comes, and others need not wait for it.
 * False: it is not the profile's fault, and all may come again. */
static bool pass_over(struct push *p)
{
	struct http_reply *reply = p->c->reply;

	if (reply->status != 400 && reply->status != 413 && reply->status != 422)
		return false;
	if (p->refused.status)
		http_content_drop(reply->content);
	else
		p->refused = *reply;
	*reply = p->none;
	return true;
}

static void answer(struct push *p, const struct connect_body *body)
{
	struct buf bytes = { 0 };

	if (p->refused.status) {
		*p->c->reply = p->refused;
		return;
	}
	buf_puts(&bytes, body->is_json ? "{}" : "");
	connect_reply(p->c, body, &bytes);
}

static bool broken(struct push *p)
{
	reply_error(p->c, 400, BROKEN);
	return false;
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
			return broken(p);
		if (f.type == WIRE_BYTES && f.number == RAW_PROFILE &&
		    !add_profile(p, wire_view(f.bytes)))
			return false;
	}
	return true;
}

static bool read_series(struct push *p, size_t number, struct wire w)
{
	struct field f = { 0 };
	size_t nsamples = 0;
	struct err e;

	snprintf(p->part, sizeof(p->part), "series %zu", number);
	p->c->part = p->part;
	p->c->service = STR("");
	if (!push_read_labels(w, &p->series, &p->is_delta, &e)) {
		reply_failure(p->c, &e);
		return pass_over(p);
	}
	p->c->service = p->series.service;
	while (w.p < w.end) {
		if (!wire_next(&w, &f))
			return broken(p);
		if (f.type != WIRE_BYTES || f.number != SAMPLES)
			continue;
		snprintf(p->part, sizeof(p->part), "series %zu, sample %zu", number, nsamples++);
		if (!read_sample(p, f.bytes) && !pass_over(p))
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
			return broken(p);
		if (f.type == WIRE_BYTES && f.number == PUSH_SERIES &&
		    !read_series(p, nseries++, f.bytes))
			return false;
	}
	return true;
}

void push_post(struct call *c)
{
	struct push p = { .c = c, .none = *c->reply };
	struct connect_body body;

	if (!connect_read(c, &body) ||
	    (body.is_json && !intake_from_json(c, &push_request_message, &body.bytes)))
		return;
	intake_begin(&p.in, c);
	if (intake_end(&p.in, read_request(&p, body.bytes)))
		answer(&p, &body);
	else if (p.refused.status)
		http_content_drop(p.refused.content);
	intake_series_release(&p.series);
}
