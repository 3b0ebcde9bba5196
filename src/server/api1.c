#include "server/api1.h"

#include <assert.h>
#include <math.h>

#include "base/amount.h"
#include "base/number.h"
#include "http/target.h"
#include "server/routes.h"

/* ---- JSON */

void json_number(struct buf *out, double v)
{
	if (!isfinite(v))
		buf_puts(out, "null");
	else if (fabs(v) < 0x1p53 && v == floor(v))
		buf_int(out, (int64_t)v);
	else
		buf_printf(out, "%.17g", v);
}

void json_time(struct buf *out, const char *name, int64_t ns)
{
	buf_printf(out, ",\"%s\":", name);
	if (!ns) {
		buf_puts(out, "null");
		return;
	}
	buf_char(out, '"');
	time_print(out, ns);
	buf_char(out, '"');
}

/* ---- one value */

static bool read_number(const struct param *p, struct value *v, struct err *e)
{
	if (p->kind == PARAM_INT) {
		if (number_parse_int(v->text, 10, &v->number) != NUMBER_OK)
			return err_set(e, ERR_USAGE, "\"%.*s\" is no whole number",
				       STR_ARG(v->text));
		v->real = (double)v->number;
	} else if (number_parse_float(v->text, &v->real) != NUMBER_OK) {
		return err_set(e, ERR_USAGE, "\"%.*s\" is no number", STR_ARG(v->text));
	}
	if (!(v->real >= p->min && v->real <= p->max))
		return err_set(e, ERR_USAGE, "%.*s is not between %.15g and %.15g",
			       STR_ARG(v->text), p->min, p->max);
	return true;
}

static bool read_choice(const struct param *p, struct value *v, struct err *e)
{
	struct str rest = str_of(p->choices);

	for (v->number = 0; rest.n; v->number++)
		if (str_eq(str_cut(&rest, ' '), v->text))
			return true;
	return err_set(e, ERR_USAGE, "\"%.*s\" is none of: %s", STR_ARG(v->text), p->choices);
}

static bool read_flag(struct value *v, struct err *e)
{
	bool on = true;

	if (v->text.n && number_parse_bool(v->text, &on) != NUMBER_OK)
		return err_set(e, ERR_USAGE, "\"%.*s\" is neither true nor false",
			       STR_ARG(v->text));
	v->number = on;
	return true;
}

static bool read_duration(struct value *v, struct err *e)
{
	if (!amount_parse_time(v->text, &v->number, e))
		return false;
	return v->number > 0 ||
	       err_set(e, ERR_USAGE, "\"%.*s\" is no time at all", STR_ARG(v->text));
}

static bool read_text(struct request *q, const struct param *p, struct value *v, struct err *e)
{
	if (v->text.n && memchr(v->text.p, '\0', v->text.n))
		return err_set(e, ERR_USAGE, "there is a NUL in it");
	if ((p->flags & IS_LABEL) && v->is_set)
		selector_add_equal(&q->selector, str_of(p->name), v->text);
	return true;
}

static bool read_value(struct request *q, const struct param *p, struct value *v, struct err *e)
{
	switch (p->kind) {
	case PARAM_SELECTOR:
		return (p->flags & IS_APART) || selector_parse(&q->selector, q->a, v->text, e);
	case PARAM_TIME:
		return time_parse(v->text, q->now, &v->number, e);
	case PARAM_DURATION:
		return read_duration(v, e);
	case PARAM_INT:
	case PARAM_NUMBER:
		return read_number(p, v, e);
	case PARAM_FLAG:
		return read_flag(v, e);
	case PARAM_CHOICE:
		return read_choice(p, v, e);
	default:
		return read_text(q, p, v, e);
	}
}

/* ---- all of a request's */

static size_t find_param(const struct endpoint *endpoint, struct str name)
{
	size_t i = 0;

	while (i < endpoint->nparams && !str_eq(str_of(endpoint->params[i].name), name))
		i++;
	return i;
}

static bool unknown_param(const struct endpoint *endpoint, struct str name, struct err *e)
{
	struct buf known = { 0 };

	for (size_t i = 0; i < endpoint->nparams; i++)
		if (!(endpoint->params[i].flags & IS_PATH))
			buf_printf(&known, "%s%s", known.n ? ", " : "", endpoint->params[i].name);
	if (!known.n)
		buf_puts(&known, "none");
	err_set(e, ERR_USAGE, "there is no parameter \"%.*s\" here; %s takes %.*s", STR_ARG(name),
		endpoint->path, STR_ARG(buf_view(&known)));
	buf_release(&known);
	return false;
}

static bool take_params(struct request *q, const struct http_target *t, struct err *e)
{
	for (size_t i = 0; i < t->nparams; i++) {
		struct str name = t->params[i].name;
		size_t at = find_param(q->endpoint, name);

		bool is_known =
			at < q->endpoint->nparams && !(q->endpoint->params[at].flags & IS_PATH);

		if (q->endpoint->is_lax && (!is_known || q->values[at].is_set))
			continue;
		if (!is_known)
			return unknown_param(q->endpoint, name, e);
		if (q->values[at].is_set)
			return err_set(e, ERR_USAGE, "%.*s is given twice", STR_ARG(name));
		q->values[at] = (struct value){ .is_set = true, .text = t->params[i].value };
	}
	return true;
}

/* The reader of queries leaves out what is not well formed, and then a default would be taken. */
static bool check_query(const struct http_target *t, struct err *e)
{
	struct str rest = t->raw_query;
	size_t n = 0;

	while (rest.n) {
		struct str part = str_cut(&rest, '&');

		n += part.n && !str_eq(part, STR("="));
	}
	return n == t->nparams ||
	       err_set(e, ERR_USAGE,
		       "the query is not well formed: write %% as %%25, ; as %%3B and & as %%26 in "
		       "values");
}

/* What a form was sent with: long selectors do not fit into a URL. */
static bool take_form(struct request *q, struct err *e)
{
	const struct http_call *http = q->c->http;
	struct http_target form;
	struct buf text = { 0 };
	bool ok;

	if (!http->body.n || q->endpoint->takes_body)
		return true;
	if (!str_has_prefix(http_call_header(http, "Content-Type"),
			    STR("application/x-www-form-urlencoded")))
		return err_set(e, ERR_USAGE,
			       "the body has parameters of a form, if anything "
			       "(Content-Type: application/x-www-form-urlencoded)");
	buf_puts(&text, "/?");
	buf_str(&text, http->body);
	ok = http_target_parse(q->a, buf_view(&text), &form, e) && check_query(&form, e) &&
	     take_params(q, &form, e);
	buf_release(&text);
	return ok;
}

static bool read_values(struct request *q, struct err *e)
{
	const struct endpoint *endpoint = q->endpoint;

	for (size_t i = 0; i < endpoint->nparams; i++) {
		const struct param *p = &endpoint->params[i];
		struct value *v = &q->values[i];

		if (p->flags & IS_PATH)
			*v = (struct value){ .is_set = true, .text = q->c->rest };
		if (!v->is_set && p->initial)
			v->text = str_of(p->initial);
		if ((v->is_set || p->initial) && !read_value(q, p, v, e))
			return err_wrap(e, "%s", p->name);
	}
	return true;
}

bool request_read(struct request *q, const struct http_target *t, struct err *e)
{
	return check_query(t, e) && take_params(q, t, e) && read_values(q, e);
}

static bool read_params(struct request *q, struct err *e)
{
	const struct http_target *t = &q->c->http->target;

	return check_query(t, e) && take_params(q, t, e) && take_form(q, e) && read_values(q, e);
}

const struct value *request_param(const struct request *q, const char *name)
{
	size_t i = find_param(q->endpoint, str_of(name));

	assert(i < q->endpoint->nparams);
	return &q->values[i];
}

struct str request_text(const struct request *q, const char *name)
{
	return request_param(q, name)->text;
}

int64_t request_int(const struct request *q, const char *name)
{
	return request_param(q, name)->number;
}

bool request_query(const struct request *q, struct store_query *query, struct err *e)
{
	*query = (struct store_query){ .matchers = q->selector.matchers.at,
				       .nmatchers = q->selector.matchers.n,
				       .from = request_int(q, "from"),
				       .to = request_int(q, "to"),
				       .stop = q->stop };
	if (!request_text(q, "to").n)
		query->to = INT64_MAX;
	return query->from <= query->to || err_set(e, ERR_USAGE, "from is after to");
}

enum store_sum request_aggregate(const struct request *q)
{
	static const enum store_sum sums[] = { STORE_AS_TYPE, STORE_SUM, STORE_MEAN, STORE_LAST,
					       STORE_MAX };

	return sums[request_int(q, "aggregate")];
}

/* ---- serving */

static void serve(struct call *c, const struct endpoint *endpoint)
{
	struct request q = { .c = c,
			     .a = c->arena,
			     .endpoint = endpoint,
			     .values = arena_many(c->arena, endpoint->nparams + 1, struct value),
			     .now = time_now(),
			     .stop = c->http->abandoned };
	struct buf out = { 0 };
	struct err e = { 0 };
	bool ok;

	c->gives_profile = endpoint->types;
	ok = read_params(&q, &e) && endpoint->run(&q, &out, &e);
	if (!c->reply->status) { /* it may have answered by itself */
		if (ok)
			reply_json(c, 200, &out);
		else
			reply_failure(c, &e);
	}
	buf_release(&out);
	selector_release(&q.selector);
}

#define API1_HANDLER(name)                  \
	void api1_##name(struct call *c)    \
	{                                   \
		serve(c, &endpoint_##name); \
	}
API1_ENDPOINTS(API1_HANDLER)

const struct endpoint *api1_find(const char *path)
{
#define API1_ADDRESS(name) &endpoint_##name,
	static const struct endpoint *const all[] = { API1_ENDPOINTS(API1_ADDRESS)
							      PUSH_ENDPOINTS(API1_ADDRESS) };

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
		if (strcmp(all[i]->path, path) == 0)
			return all[i];
	return NULL;
}
