/* api.c - what the handlers of the API have in common. */
#include "web/site.h"

#include <math.h>

#include "base/escape.h"
#include "base/number.h"
#include "base/utf8.h"

/* Expressions have a limit; of longer names the first bytes do. */
enum { MAX_QUOTED = 1000 };

struct str api_param(const struct api_call *q, const char *name)
{
	return http_target_param(&q->http->target, name);
}

bool api_flag(const struct api_call *q, const char *name)
{
	bool value = false;

	return number_parse_bool(api_param(q, name), &value) == NUMBER_OK && value;
}

static bool run_within(const struct report_run *outer, struct session *s,
		       const struct report *report, void *into, struct buf *out, struct err *e)
{
	struct report_params params = *outer->params;

	params.into = into;
	params.memo = NULL;
	return report_print(out, report, outer->a, &s->profile, &params, e);
}

static bool run_report(struct api_call *q, struct session *s, struct analyze_request *request,
		       struct buf *out, struct err *e)
{
	bool ok;

	request->options = &q->options;
	request->stop = q->http->abandoned;
	if (q->run)
		return run_within(q->run, s, request->report, request->into, out, e);
	ok = analyze_report(s, request, out, &q->warnings, e);
	if (stop_asked(q->http->abandoned))
		return err_set(e, ERR_IO, "nobody waits for the answer any more");
	return ok;
}

bool api_report(struct api_call *q, struct session *s, const struct report *report,
		const char *argument, void *into, struct buf *out, struct err *e)
{
	return run_report(
		q, s,
		&(struct analyze_request){ .report = report,
					   .argument = argument,
					   .into = into,
					   .time = q->base_time.to ? q->base_time : q->time },
		out, e);
}

bool api_report_other(struct api_call *q, const struct report *report, void *into, struct buf *out,
		      struct err *e)
{
	struct session *s = loaded_session(q->other);
	/* Without what the session keeps: it may be at work on that for side a. */
	struct session apart = { .profile = s->profile, .threads = s->threads };

	return run_report(q, q->other == q->profile ? &apart : s,
			  &(struct analyze_request){
				  .report = report, .argument = "", .into = into, .time = q->time },
			  out, e);
}

void api_put_warnings(struct api_call *q, struct buf *out)
{
	struct str rest = buf_view(&q->warnings);

	buf_puts(out, ",\"warnings\":[");
	for (bool more = false; rest.n; more = true) {
		if (more)
			buf_char(out, ',');
		json_put(out, str_cut(&rest, '\n'));
	}
	buf_char(out, ']');
}

void api_put_type(struct buf *out, const struct report_run *r)
{
	const struct profile *p = r->p;
	struct value_type type = { 0 };

	if (p->ntypes)
		type = p->types[r->params->value];
	buf_puts(out, "\"type\":");
	json_put(out, profile_str(p, type.type));
	buf_puts(out, ",\"unit\":");
	json_put(out, profile_str(p, type.unit));
}

const char *api_quoted(struct arena *a, struct str text)
{
	struct buf out = { 0 };
	const char *pattern;
	bool is_cut = text.n > MAX_QUOTED;

	if (is_cut)
		text.n = MAX_QUOTED;

	buf_char(&out, '^');
	while (text.n) {
		uint32_t rune;
		size_t n = utf8_decode(text, &rune);

		if (rune == 0 || (rune == UTF8_INVALID && n == 1)) { /* patterns have neither */
			buf_printf(&out, "\\x{%x}", rune);
		} else {
			if (n == 1 && strchr("\\.+*?()|[]{}^$", text.p[0]))
				buf_char(&out, '\\');
			buf_add(&out, text.p, n);
		}
		text = str_from(text, n);
	}
	if (!is_cut)
		buf_char(&out, '$');
	pattern = str_dup(a, buf_view(&out));
	buf_release(&out);
	return pattern;
}

void json_put_number(struct buf *out, double v)
{
	if (isfinite(v))
		buf_printf(out, "%.17g", v);
	else
		buf_puts(out, "null");
}
