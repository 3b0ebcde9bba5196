/* ingest.c - POST /ingest: profiles as Pyroscope's SDKs push them. */
#include "server/ingest.h"

#include <ctype.h>

#include "base/json.h"
#include "base/number.h"
#include "base/when.h"
#include "http/media.h"
#include "http/multipart.h"
#include "server/columns.h"
#include "server/gate.h"
#include "server/profile_types.h"
#include "server/routes.h"

#define SECOND_NS INT64_C(1000000000)

enum { MAX_PARTS = 8, MAX_CONFIG_BYTES = 64 << 10, MAX_TYPES = 64, USUAL_RATE = 100 };

/* ---- the name */

static bool parse_label(struct intake_series *s, struct str pair, struct err *e)
{
	struct str value = pair, key = str_trim(str_cut(&value, '='));

	pair = str_trim(pair);
	if (!pair.n)
		return true; /* as after the last ',' */
	if (!key.n || !value.p)
		return err_set(e, ERR_USAGE, "\"%.*s\" is no label: k=v", STR_ARG(pair));
	value = str_trim(value);
	if (str_eq(key, STR("service_name")) && value.n) {
		intake_label(s, STR("app_name"), s->service);
		s->service = value;
	} else {
		intake_label(s, key, value);
	}
	return true;
}

bool ingest_parse_name(struct str text, struct intake_series *s, struct err *e)
{
	struct str labels = str_trim(text);
	bool ok = true;

	s->service = str_trim(str_cut(&labels, '{'));
	if (!s->service.n)
		return err_set(e, ERR_USAGE, "it is empty: send name=app or name=app{k=v,k2=v2}");
	if (!labels.p)
		return true;
	if (!str_has_suffix(labels, STR("}")))
		return err_set(e, ERR_USAGE, "its labels do not end in a '}'");
	labels.n--;
	while (ok && labels.n)
		ok = parse_label(s, str_cut(&labels, ','), e);
	return ok;
}

bool ingest_cut_type(struct intake_series *s, struct str *type)
{
	size_t dot = str_rfind_char(s->service, '.');
	struct str last;

	if (dot == STR_NONE || !dot)
		return false;
	last = str_from(s->service, dot + 1);
	if (str_eq(last, STR("goroutines")))
		last = STR("goroutine");
	if (!profile_type_row(last))
		return false;
	*type = last;
	s->service.n = dot;
	return true;
}

/* ---- times */

static bool parse_day(int64_t digits, int64_t now, int64_t *ns, struct err *e)
{
	struct buf text = { 0 };
	bool ok;

	buf_printf(&text, "%04d-%02d-%02d", (int)(digits / 10000), (int)(digits / 100 % 100),
		   (int)(digits % 100));
	ok = time_parse(buf_view(&text), now, ns, e);
	buf_release(&text);
	return ok;
}

bool ingest_parse_time(struct str text, int64_t now, int64_t *ns, struct err *e)
{
	int64_t unit = text.n == 19 ? 1 : text.n == 16 ? 1000 : text.n == 13 ? 1000000 : SECOND_NS;
	int64_t digits;

	if (!text.n || !isdigit((unsigned char)text.p[0]) ||
	    number_parse_int(text, 10, &digits) != NUMBER_OK)
		return time_parse(text, now, ns, e);
	if (text.n == 8)
		return parse_day(digits, now, ns, e);
	return !__builtin_mul_overflow(digits, unit, ns) ||
	       err_set(e, ERR_USAGE, "it is beyond the year 2262");
}

/* ---- the request */

struct ingest {
	struct call *c;
	struct intake_series series;
	int64_t from, until;
	uint64_t sample_rate;
	struct str format, units;
	struct json config; /* sample types: what they are called, and in which units */
};

static struct str param(const struct call *c, const char *name)
{
	return http_target_param(&c->http->target, name);
}

static bool bad_param(struct call *c, const char *name, const struct err *e)
{
	struct buf value = { 0 };

	quote_go(&value, param(c, name));
	reply_error(c, 400, "bad \"%s\" %.*s: %s", name, STR_ARG(buf_view(&value)), e->text);
	buf_release(&value);
	return false;
}

static bool read_time(struct call *c, const char *name, int64_t usual, int64_t *ns)
{
	struct err e;

	*ns = usual;
	return !param(c, name).n || ingest_parse_time(param(c, name), time_now(), ns, &e) ||
	       bad_param(c, name, &e);
}

static bool read_rate(struct call *c, uint64_t *rate)
{
	struct str text = param(c, "sampleRate");
	struct err e;

	*rate = USUAL_RATE;
	if (!text.n || (number_parse_uint(text, 10, rate) == NUMBER_OK && *rate &&
			*rate <= (uint64_t)SECOND_NS))
		return true;
	err_set(&e, ERR_USAGE, "it must be a number of samples in a second, 1 to 1000000000");
	return bad_param(c, "sampleRate", &e);
}

static bool read_params(struct ingest *g)
{
	struct call *c = g->c;
	int64_t now = time_now();
	struct err e;

	g->format = param(c, "format");
	g->units = param(c, "units");
	if (!ingest_parse_name(param(c, "name"), &g->series, &e))
		return bad_param(c, "name", &e);
	c->service = g->series.service;
	return read_time(c, "until", now, &g->until) && read_time(c, "from", g->until, &g->from) &&
	       read_rate(c, &g->sample_rate);
}

/* ---- pprof */

static struct str shown_name(const struct ingest *g, struct str sample_type)
{
	const struct json *of = json_member(&g->config, str_dup(g->c->arena, sample_type));
	const struct json *name = of ? json_member(of, "display-name") : NULL;

	return name && name->type == JSON_STRING && name->text.n ? name->text : sample_type;
}

/* By what its sample types are called; else by the name's last part; else by the first of them. */
static struct str type_of(struct ingest *g, const struct profile *p)
{
	struct str names[MAX_TYPES], type;
	size_t n = p->ntypes < MAX_TYPES ? p->ntypes : MAX_TYPES;

	for (size_t i = 0; i < n; i++)
		names[i] = shown_name(g, profile_str(p, p->types[i].type));
	type = profile_type_of_samples(names, n);
	if (!type.n && !ingest_cut_type(&g->series, &type))
		type = n ? names[0] : STR("");
	return type.n ? type : STR("other");
}

/* Some agents leave the time out, or count it from their own start. What they push is of the time
 * between two pushes, so a duration says that values are not counted from the process's start. */
static void set_times(const struct ingest *g, struct profile *p)
{
	const int64_t year = 365 * 24 * 3600 * SECOND_NS;

	if (p->time_nanos < year)
		p->time_nanos = g->from;
	if (p->duration_nanos <= 0 && g->until > g->from)
		p->duration_nanos = g->until - g->from;
}

static bool add_pprof(struct ingest *g, struct intake *in, struct str bytes)
{
	struct profile p;

	if (!intake_read(in, bytes, &p))
		return false;
	set_times(g, &p);
	g->series.type = type_of(g, &p);
	return intake_add(in, &g->series, &p);
}

static bool read_config(struct ingest *g, struct str text)
{
	struct err e;

	if (text.n > MAX_CONFIG_BYTES)
		reply_error(g->c, 422, "sample_type_config: more than %d bytes", MAX_CONFIG_BYTES);
	else if (!json_parse(g->c->arena, text, &g->config, &e))
		reply_error(g->c, 422, "sample_type_config: %s", e.text);
	else if (g->config.type != JSON_OBJECT)
		reply_error(g->c, 422, "sample_type_config: it is no object");
	return !g->c->reply->status;
}

static bool add_parts(struct ingest *g, struct intake *in, struct str type, struct str body)
{
	struct http_part parts[MAX_PARTS];
	const struct http_part *profile = NULL;
	struct err e;
	size_t n;

	if (!http_multipart_parse(g->c->arena, type, body, parts, MAX_PARTS, &n, &e)) {
		reply_error(g->c, 422, "%s", e.text);
		return false;
	}
	for (size_t i = 0; i < n; i++) {
		if (str_eq(parts[i].name, STR("profile")))
			profile = &parts[i];
		else if (str_eq(parts[i].name, STR("prev_profile")) && parts[i].body.n)
			reply_error(
				g->c, 422,
				"prev_profile: profiles that count from the process's start are "
				"not taken here; an SDK of this year pushes none");
		else if (str_eq(parts[i].name, STR("jfr")))
			reply_error(g->c, 422,
				    "jfr: Java's recordings are not read; have the "
				    "agent push pprof, or OTLP");
		else if (str_eq(parts[i].name, STR("sample_type_config")) && parts[i].body.n)
			read_config(g, parts[i].body);
		if (g->c->reply->status)
			return false;
	}
	if (profile)
		return add_pprof(g, in, profile->body);
	reply_error(g->c, 422, "multipart: no part is called \"profile\"");
	return false;
}

/* ---- stacks as text */

/* Each line is one sample: they are given a count, as folded stacks have it. */
static struct str count_lines(struct arena *a, struct str text)
{
	struct buf out = { 0 };
	struct str copy;

	while (text.n) {
		struct str line = str_trim(str_cut(&text, '\n'));

		if (line.n) {
			buf_str(&out, line);
			buf_puts(&out, " 1\n");
		}
	}
	copy = buf_view(&out);
	arena_adopt(a, out.p);
	return copy;
}

static bool is_time(const struct ingest *g, const struct profile_type *t)
{
	return strcmp(t->unit, "nanoseconds") == 0 &&
	       (!g->units.n || str_eq(g->units, STR("samples")));
}

/* Values are counts of samples, or what the type's unit says. */
static void set_type(const struct ingest *g, struct intake *in, const struct profile_type *t,
		     struct profile *p)
{
	int64_t period = is_time(g, t) ? SECOND_NS / (int64_t)g->sample_rate : 1;

	columns_name(p, t);
	p->period = period;
	if (strcmp(t->type, "cpu") == 0)
		columns_add_cpu(&in->desk->arena, p, !is_time(g, t));
	else
		columns_scale(p, period);
}

static bool add_text(struct ingest *g, struct intake *in, struct str text)
{
	struct profile p;
	struct str type = STR("cpu");

	if (!intake_read(in, text, &p))
		return false;
	ingest_cut_type(&g->series, &type);
	if (p.ntypes == 1)
		set_type(g, in, profile_type_row(type), &p);
	set_times(g, &p);
	g->series.type = type;
	return intake_add(in, &g->series, &p);
}

/* ---- */

/* Protobuf has small numbers from its first bytes on. */
static bool is_text(struct str body)
{
	for (size_t i = 0; i < body.n; i++)
		if ((unsigned char)body.p[i] < ' ' && !isspace((unsigned char)body.p[i]))
			return false;
	return true;
}

static bool add_body(struct ingest *g, struct intake *in)
{
	struct str type = http_call_header(g->c->http, "Content-Type"), body;

	if (!gate_unpack_body(g->c, &body))
		return false;
	if (http_media_is(type, "multipart/form-data"))
		return add_parts(g, in, type, body);
	if (http_media_is(type, "binary/octet-stream+trie") ||
	    http_media_is(type, "binary/octet-stream+tree") || str_eq(g->format, STR("trie")) ||
	    str_eq(g->format, STR("tree")) || str_eq(g->format, STR("jfr")) ||
	    str_eq(g->format, STR("speedscope"))) {
		reply_error(g->c, 422,
			    "this format is not read here: send pprof, folded stacks "
			    "(format=folded) or lines (format=lines)");
		return false;
	}
	if (str_eq(g->format, STR("lines"))) /* each may get three bytes, in a buffer that grows */
		return gate_take(g->c, 4 * (uint64_t)body.n) &&
		       add_text(g, in, count_lines(g->c->arena, body));
	if (str_eq(g->format, STR("pprof")) || !is_text(body))
		return add_pprof(g, in, body);
	if (!g->format.n || str_eq(g->format, STR("folded")) || str_eq(g->format, STR("groups")))
		return add_text(g, in, body);
	reply_error(g->c, 422, "unknown format \"%.*s\": pprof, folded, groups or lines",
		    STR_ARG(g->format));
	return false;
}

void ingest_post(struct call *c)
{
	struct ingest g = { .c = c };
	struct intake in;

	if (read_params(&g)) {
		intake_begin(&in, c);
		if (intake_end(&in, add_body(&g, &in)))
			c->reply->status = 200;
		/* What the name says is fine, so what is wrong is the profile. */
		else if (c->reply->status == 400)
			c->reply->status = 422;
	}
	intake_series_release(&g.series);
}
