/* urls.c - the analyzer's options as parameters of a URL, by their table. */
#include "web/site.h"

#include "base/number.h"

bool url_options(const struct http_target *t, struct arena *a, struct analyze_options *o,
		 struct err *e)
{
	const struct option_table *table = analyze_option_table();

	for (size_t i = 0; i < table->n; i++) {
		const struct option_def *d = &table->at[i];
		struct str value = *d->key ? http_target_param(t, d->key) : STR("");

		if (memchr(value.p, '\0', value.n))
			return err_set(e, ERR_USAGE, "error setting config field %s: NUL in it",
				       d->name);
		if (value.n && !option_set(table, d, o, a, value, e))
			return err_wrap(e, "error setting config field %s", d->name);
	}
	return true;
}

void url_put_options(struct buf *out, const struct analyze_options *o, unsigned flags)
{
	const struct option_table *table = analyze_option_table();
	struct buf value = { 0 };
	size_t start = out->n;

	for (size_t i = 0; i < table->n; i++) {
		const struct option_def *d = &table->at[i];
		bool is_set = !option_is_default(table, d, o);

		if (!*d->key || !is_set || (d->flags & flags) != flags)
			continue;
		value.n = 0;
		option_print(&value, table, d, o);
		if (out->n > start)
			buf_char(out, '&');
		buf_puts(out, d->key);
		buf_char(out, '=');
		if (d->type == OPTION_BOOL)
			buf_char(out, value.p[0]); /* as pprof spells them: t and f */
		else
			http_put_escaped(out, buf_view(&value));
	}
	buf_release(&value);
}

static bool parse_seconds(struct str text, int64_t *ns)
{
	const double most = 1e9; /* seconds: thirty years */
	double seconds;

	if (number_parse_float(text, &seconds) != NUMBER_OK || !(seconds >= 0 && seconds <= most))
		return false;
	*ns = (int64_t)(seconds * 1e9 + 0.5);
	return true;
}

bool url_time(const struct http_target *t, const char *name, struct time_range *out, struct err *e)
{
	struct str all = http_target_param(t, name), rest = all, from = str_cut(&rest, '-');

	*out = (struct time_range){ 0 };
	return !all.n ||
	       (parse_seconds(from, &out->from) && parse_seconds(rest, &out->to) &&
		out->from < out->to) ||
	       err_set(e, ERR_USAGE,
		       "%s=%.*s: not two times such as 1.25-3.5, in seconds after the first sample",
		       name, STR_ARG(all));
}
