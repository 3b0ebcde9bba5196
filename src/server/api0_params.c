#include "server/api0.h"

#include <ctype.h>
#include <time.h>

#include "base/number.h"
#include "base/vec.h"
#include "base/when.h"

#define SECOND_NS INT64_C(1000000000)

static struct str param(const struct call *c, const char *name)
{
	return http_target_param(&c->http->target, name);
}

/* bad request: bad "NAME" "VALUE": WHY */
static bool refuse(struct call *c, const char *name, struct str value, const char *why)
{
	struct buf quoted = { 0 };

	quote_go(&quoted, value);
	reply_error(c, 400, "bad request: bad %s %.*s: %s", name, STR_ARG(buf_view(&quoted)), why);
	buf_release(&quoted);
	return false;
}

static bool missing(struct call *c, const char *name)
{
	reply_error(c, 400, "bad request: missing \"%s\"", name);
	return false;
}

/* ---- labels */

/* Go's url.QueryUnescape. */
static bool unescape(struct arena *a, struct str s, struct str *out, struct err *e)
{
	struct buf quoted = { 0 };
	size_t bad;

	if (http_unescape(a, s, out, &bad))
		return true;
	s = str_from(s, bad);
	quote_go(&quoted, (struct str){ s.p, s.n < 3 ? s.n : 3 });
	err_set(e, ERR_USAGE, "invalid URL escape %.*s", STR_ARG(buf_view(&quoted)));
	buf_release(&quoted);
	return false;
}

bool api0_parse_labels(struct arena *a, struct str text, struct store_label **labels, size_t *n,
		       struct err *e)
{
	vec(struct store_label) all = { 0 };
	bool ok = true;

	while (ok && text.n) {
		struct str value = str_cut(&text, ','), key = str_trim(str_cut(&value, '='));
		struct store_label label = { 0 };

		if (!key.n)
			continue;
		ok = unescape(a, key, &label.key, e) &&
		     unescape(a, str_trim(value), &label.value, e);
		if (ok)
			vec_push(&all, label);
	}
	*n = all.n;
	*labels = vec_adopt(a, &all);
	return ok;
}

/* ---- times */

static bool take_number(struct str *s, size_t digits, char end, int *out)
{
	*out = 0;
	if (s->n < digits + (end != 0))
		return false;
	for (size_t i = 0; i < digits; i++) {
		if (!isdigit((unsigned char)s->p[i]))
			return false;
		*out = *out * 10 + (s->p[i] - '0');
	}
	if (end && s->p[digits] != end)
		return false;
	*s = str_from(*s, digits + (end != 0));
	return true;
}

bool api0_parse_time(struct str s, int64_t *ns)
{
	struct tm t = { 0 }, again;
	int64_t seconds;

	if (!take_number(&s, 4, '-', &t.tm_year) || !take_number(&s, 2, '-', &t.tm_mon) ||
	    !take_number(&s, 2, 'T', &t.tm_mday) || !take_number(&s, 2, ':', &t.tm_hour) ||
	    !take_number(&s, 2, ':', &t.tm_min) || !take_number(&s, 2, 0, &t.tm_sec) || s.n)
		return false;
	t.tm_year -= 1900;
	t.tm_mon--;
	again = t;
	seconds = timegm(&again);
	/* timegm makes February 30th a day of March. */
	if (again.tm_mon != t.tm_mon || again.tm_mday != t.tm_mday || again.tm_hour != t.tm_hour ||
	    again.tm_min != t.tm_min || again.tm_sec != t.tm_sec)
		return false;
	if (__builtin_mul_overflow(seconds, SECOND_NS, ns))
		*ns = seconds < 0 ? INT64_MIN : INT64_MAX;
	return true;
}

static bool read_time(struct call *c, const char *name, const char *what, int64_t *ns)
{
	struct str text = param(c, name);
	struct buf why = { 0 };

	if (api0_parse_time(text, ns))
		return true;
	buf_puts(&why, "time in unsupported format ");
	quote_go(&why, text);
	refuse(c, what, text, str_dup(c->arena, buf_view(&why)));
	buf_release(&why);
	return false;
}

bool api0_read_created(struct call *c, int64_t *created)
{
	*created = 0;
	return !param(c, "created_at").n || read_time(c, "created_at", "\"created_at\"", created);
}

/* ---- all of a request */

bool api0_read_series(struct call *c, struct api0_series *series)
{
	struct str labels = param(c, "labels");
	struct err e;

	*series = (struct api0_series){ .service = param(c, "service"),
					.type = str_trim(param(c, "type")) };
	if (!series->service.n)
		return missing(c, "service");
	return api0_parse_labels(c->arena, labels, &series->labels, &series->nlabels, &e) ||
	       refuse(c, "\"labels\"", labels, e.text);
}

static bool read_limit(struct call *c, uint64_t *limit)
{
	struct str text = param(c, "limit");
	enum number_result result;
	int64_t number = 0;
	struct err e;

	if (!text.n)
		return true;
	result = number_parse_int(text, 10, &number);
	if (result != NUMBER_OK) {
		number_error(&e, result, "Atoi", text);
		return refuse(c, "\"limit\"", text, e.text);
	}
	if (number < 0)
		return refuse(c, "\"limit\"", text, "it must not be negative");
	*limit = (uint64_t)number;
	return true;
}

static bool read_range(struct call *c, struct store_query *query)
{
	struct buf times = { 0 };

	if (!param(c, "from").n)
		return missing(c, "from");
	if (!param(c, "to").n)
		return missing(c, "to");
	if (!read_time(c, "from", "\"from\" timestamp", &query->from) ||
	    !read_time(c, "to", "\"to\" timestamp", &query->to))
		return false;
	if (query->from > query->to) {
		time_print(&times, query->from);
		buf_puts(&times, " > ");
		time_print(&times, query->to);
		reply_error(c, 400, "bad request: CreatedAtMin after CreatedAtMax: %.*s",
			    STR_ARG(buf_view(&times)));
		buf_release(&times);
		return false;
	}
	/* Times are shown without their fractions: what is shown must be found. */
	if (__builtin_add_overflow(query->to, SECOND_NS - 1, &query->to))
		query->to = INT64_MAX;
	return true;
}

bool api0_read_query(struct call *c, const struct api0_series *series, struct store_query *query)
{
	struct store_matcher *matchers =
		arena_many(c->arena, series->nlabels + 2, struct store_matcher);
	size_t n = 0;

	*query = (struct store_query){ .matchers = matchers, .stop = c->http->abandoned };
	matchers[n++] = (struct store_matcher){ .name = STR("service"), .value = series->service };
	if (series->type.n)
		matchers[n++] =
			(struct store_matcher){ .name = STR("type"), .value = series->type };
	for (size_t i = 0; i < series->nlabels; i++)
		matchers[n++] =
			(struct store_matcher){ .name = store_query_name(series->labels[i].key),
						.value = series->labels[i].value };
	query->nmatchers = n;
	return read_range(c, query) && read_limit(c, &query->limit);
}

/* ---- replies */

void api0_put_meta(struct buf *out, const struct store_meta *meta)
{
	int64_t fraction = meta->created % SECOND_NS;

	buf_puts(out, "{\"id\":\"");
	store_id_print(out, &meta->id);
	buf_puts(out, "\",\"type\":");
	json_put(out, meta->type);
	buf_puts(out, ",\"service\":");
	json_put(out, meta->service);
	for (size_t i = 0; i < meta->nlabels; i++) {
		buf_puts(out, i ? ",{\"key\":" : ",\"labels\":[{\"key\":");
		json_put(out, meta->labels[i].key);
		buf_puts(out, ",\"value\":");
		json_put(out, meta->labels[i].value);
		buf_char(out, '}');
	}
	buf_puts(out, meta->nlabels ? "],\"created_at\":\"" : ",\"created_at\":\"");
	time_print(out, meta->created - fraction - (fraction < 0 ? SECOND_NS : 0));
	buf_puts(out, "\"}");
}
