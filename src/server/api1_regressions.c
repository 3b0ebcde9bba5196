/* api1_regressions.c - what became slower, and what people say of it. */
#include "server/api1_params.h"

#include "server/log.h"
#include "server/regressions.h"

/* ---- one of them */

static void put_parameter(struct buf *out, const char *name, struct str value)
{
	buf_printf(out, "%s=", name);
	for (size_t i = 0; i < value.n; i++) {
		unsigned char c = (unsigned char)value.p[i];
		bool is_plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
				(c >= 'a' && c <= 'z') || strchr("-_.~", c);

		buf_printf(out, is_plain && c ? "%c" : "%%%02X", c);
	}
}

static void put_time_parameter(struct buf *out, const char *name, int64_t ns)
{
	buf_printf(out, "&%s=", name);
	time_print(out, ns);
}

static void put_side(struct buf *out, const char *name, struct str label, struct str version)
{
	struct selector s = { 0 };
	struct buf text = { 0 };

	if (!version.n)
		return;
	selector_add_equal(&s, label, version);
	selector_print(&text, &s);
	buf_char(out, '&');
	put_parameter(out, name, buf_view(&text));
	buf_release(&text);
	selector_release(&s);
}

/* The request that compares the two in full. */
static void put_diff(struct buf *out, const struct finding *x, struct str label)
{
	struct buf url = { 0 };

	buf_puts(&url, "/api/1/diff?");
	put_parameter(&url, "service", x->service);
	buf_char(&url, '&');
	put_parameter(&url, "type", x->type);
	put_side(&url, "old", label, x->old_version);
	put_side(&url, "new", label, x->new_version);
	put_time_parameter(&url, "old_from", x->old_from);
	put_time_parameter(&url, "old_to", x->old_to);
	put_time_parameter(&url, "new_from", x->new_from);
	put_time_parameter(&url, "new_to", x->new_to);
	json_put(out, buf_view(&url));
	buf_release(&url);
}

static void put_finding(struct request *q, struct buf *out, const struct finding *x)
{
	finding_json(out, x);
	out->n--; /* one field more */
	buf_puts(out, ",\"diff\":");
	put_diff(out, x, str_of(q->c->server->options->regression_version));
	buf_char(out, '}');
}

/* ---- the list */

static bool matches(const struct request *q, const struct finding *x)
{
	const struct {
		const char *param;
		struct str value;
	} texts[] = { { "service", x->service },
		      { "type", x->type },
		      { "kind", x->kind },
		      { "status", x->status } };

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		const struct value *v = request_param(q, texts[i].param);

		if (v->is_set && v->text.n && !str_eq(v->text, texts[i].value))
			return false;
	}
	return !request_int(q, "current") || x->current;
}

static void put_compared_side(struct buf *out, const char *name, const struct regress_side *s)
{
	buf_printf(out, ",\"%s\":{\"version\":", name);
	json_put(out, s->version);
	json_time(out, "from", s->from);
	json_time(out, "to", s->to);
	buf_printf(out,
		   ",\"profiles\":%llu,\"parts\":%u,\"samples\":", (unsigned long long)s->nprofiles,
		   s->nparts);
	json_number(out, s->samples);
	buf_puts(out, ",\"cores\":");
	json_number(out, s->cores);
	buf_char(out, '}');
}

static void put_compared(struct buf *out, const struct compared *c)
{
	buf_puts(out, "{\"service\":");
	json_put(out, c->service);
	buf_puts(out, ",\"type\":");
	json_put(out, c->type);
	buf_printf(out, ",\"kind\":\"%s\",\"result\":\"%s\",\"why\":", regress_kinds[c->kind],
		   regress_results[c->result]);
	json_put(out, c->why);
	json_time(out, "at", c->at);
	put_compared_side(out, "old", &c->old);
	put_compared_side(out, "new", &c->new);
	buf_printf(out,
		   ",\"functions\":%u,\"found\":%u,\"faster\":%u,\"dispersion\":", c->nfunctions,
		   c->nfound, c->nfaster);
	json_number(out, c->dispersion);
	buf_puts(out, ",\"detectable\":");
	json_number(out, c->detectable);
	buf_char(out, '}');
}

static bool is_meant(const struct request *q, const struct compared *c)
{
	struct str service = request_text(q, "service"), type = request_text(q, "type"),
		   kind = request_text(q, "kind");

	return (!service.n || str_eq(service, c->service)) && (!type.n || str_eq(type, c->type)) &&
	       (!kind.n || str_eq(kind, str_of(regress_kinds[c->kind])));
}

/* How many comparisons ended how, and if asked for each of them. */
static void put_comparisons(struct request *q, struct buf *out)
{
	struct compared *list;
	size_t n, nof[REGRESS_RESULTS] = { 0 }, nshown = 0;
	size_t max = request_int(q, "comparisons") ? (size_t)request_int(q, "limit") : 0;

	regressions_compared(q->c->server->regressions, q->a, &list, &n);
	for (size_t i = 0; i < n; i++)
		if (is_meant(q, &list[i]))
			nof[list[i].result]++;
	buf_puts(out, ",\"results\":{");
	for (int i = 0; i < REGRESS_RESULTS; i++)
		buf_printf(out, "%s\"%s\":%zu", i ? "," : "", regress_results[i], nof[i]);
	buf_puts(out, "},\"comparisons\":[");
	for (size_t i = 0; i < n && nshown < max; i++) {
		if (!is_meant(q, &list[i]))
			continue;
		buf_puts(out, nshown++ ? ",\n" : "\n");
		put_compared(out, &list[i]);
	}
	buf_char(out, ']');
}

static bool run_regressions(struct request *q, struct buf *out, struct err *e)
{
	struct server *s = q->c->server;
	size_t n, nmatching = 0, max = (size_t)request_int(q, "limit");
	struct finding *list;

	if (str_eq(q->c->http->method, STR("POST")) &&
	    !regressions_look(s->regressions, request_text(q, "service"), q->stop, e))
		return false;
	findings_list(regressions_findings(s->regressions), q->a, &list, &n);
	buf_puts(out, "{\"regressions\":[");
	for (size_t i = 0; i < n; i++) {
		if (!matches(q, &list[i]) || nmatching++ >= max)
			continue;
		buf_puts(out, nmatching > 1 ? ",\n" : "\n");
		put_finding(q, out, &list[i]);
	}
	buf_printf(out, "],\"total\":%zu", nmatching);
	json_time(out, "looked", regressions_looked(s->regressions));
	put_comparisons(q, out);
	buf_puts(out, "}\n");
	return true;
}

static bool run_regression(struct request *q, struct buf *out, struct err *e)
{
	struct server *s = q->c->server;
	struct findings *findings = regressions_findings(s->regressions);
	const struct value *note = request_param(q, "note");
	struct str id = request_text(q, "id"), status = request_text(q, "status"),
		   who = q->c->who.n ? q->c->who : STR("somebody");
	struct finding x;

	if (str_eq(q->c->http->method, STR("PUT"))) {
		if (!status.n)
			return err_set(e, ERR_USAGE, "status is missing: " FINDING_STATES);
		if (note->text.n > 1000)
			return err_set(e, ERR_USAGE, "note has more than 1000 bytes");
		if (!findings_say(findings, id, status, who, note->is_set ? &note->text : NULL,
				  q->now, e) ||
		    !findings_save(findings, e))
			return false;
		log_info("%.*s calls regression %.*s %.*s", STR_ARG(who), STR_ARG(id),
			 STR_ARG(status));
	}
	if (!findings_get(findings, id, q->a, &x))
		return err_set(e, ERR_NOTFOUND, "there is no regression \"%.*s\"", STR_ARG(id));
	put_finding(q, out, &x);
	buf_char(out, '\n');
	return true;
}

#define PARAM_ONLY(field, text)                                 \
	{                                                       \
		.name = field, .kind = PARAM_TEXT, .help = text \
	}

static const struct param list_params[] = {
	PARAM_ONLY("service", "Only of this service."),
	PARAM_ONLY("type", "Only of this type, such as cpu."),
	{ .name = "kind",
	  .kind = PARAM_CHOICE,
	  .choices = "version window",
	  .help = "Only those of a version against the one before, or of a window of time." },
	{ .name = "status",
	  .kind = PARAM_CHOICE,
	  .choices = FINDING_STATES,
	  .help = "Only those of which that was said." },
	{ .name = "current",
	  .kind = PARAM_FLAG,
	  .initial = "false",
	  .help = "Only those that the latest comparison still has." },
	{ .name = "comparisons",
	  .kind = PARAM_FLAG,
	  .initial = "false",
	  .help = "Also what was compared, and where there are not enough samples." },
	PARAM_LIMIT(100, 5000, "regressions, and comparisons"),
};
static const struct param one_params[] = {
	{ .name = "id",
	  .kind = PARAM_TEXT,
	  .flags = IS_PATH,
	  .help = "The regression's id, as /api/1/regressions tells it." },
	{ .name = "status", .kind = PARAM_CHOICE, .choices = FINDING_STATES, .help = "To be set." },
	PARAM_ONLY("note",
		   "To be set: a few words on why. If it is not given, those that are there "
		   "stay."),
};

const struct endpoint endpoint_regressions = {
	.path = "/api/1/regressions",
	.details =
		"Functions that take more of their service than before, those found last first: in "
		"the newest version against the one before, and in this window of time against the "
		"last one (--regression-window). A change is listed if it is more than chance, "
		"with "
		"a false discovery rate of 5%, and at least --regression-share of the service or "
		"--regression-cores. change is that of the share, with its 95% interval; cores are "
		"CPU seconds in a second of the whole service, of other types units in a second, "
		"and "
		"of memory in use and numbers of threads units; changed is "
		"the time of the change, as far as can be told. If functions became faster, shares "
		"are of all others. results counts the latest "
		"comparisons, some of which have not enough samples to tell. POST compares now "
		"what has changed since it was compared, of all services or one, and answers then.",
	ENDPOINT_PARAMS(list_params),
	.answer = "Regressions",
	.run = run_regressions,
};
const struct endpoint endpoint_regression = {
	.path = "/api/1/regressions/*",
	.details =
		"One regression. PUT says what it is: new, acknowledged, expected or fixed; that "
		"is kept, with who said it and when.",
	ENDPOINT_PARAMS(one_params),
	.answer = "Regression",
	.run = run_regression,
};
