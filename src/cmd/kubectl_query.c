/* kubectl_query.c - kubectl kiln get, top, diff and flame: questions to a server. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "analyze/views.h"
#include "base/number.h"
#include "base/unit.h"
#include "base/when.h"
#include "cmd/cmd.h"
#include "cmd/kubectl.h"
#include "cmd/table.h"
#include "http/target.h"

/* ---- requests */

static void put_param(struct buf *path, const char *name, struct str value)
{
	if (!value.n)
		return;
	buf_puts(path, memchr(path->p, '?', path->n) ? "&" : "?");
	buf_puts(path, name);
	buf_char(path, '=');
	http_put_escaped(path, value);
}

static void put_condition(struct buf *out, struct str text)
{
	text = str_trim(text);
	if (str_has_prefix(text, STR("{")) && str_has_suffix(text, STR("}")))
		text = str_trim((struct str){ text.p + 1, text.n - 2 });
	if (!text.n)
		return;
	if (out->n)
		buf_char(out, ',');
	buf_str(out, text);
}

/* --query, -l and -n are one selector. */
static void put_query(struct buf *path, const struct kubectl_options *o, const char *more)
{
	struct buf query = { 0 }, name = { 0 };

	put_condition(&query, str_of(o->query));
	put_condition(&query, str_of(o->kube.selector));
	if (*o->kube.namespace && !o->kube.all_namespaces) {
		buf_puts(&name, "namespace=");
		quote_go(&name, str_of(o->kube.namespace));
		put_condition(&query, buf_view(&name));
	}
	put_condition(&query, str_of(more));
	put_param(path, "query", buf_view(&query));
	buf_release(&query);
	buf_release(&name);
}

/* Times are the client's, and fixed: a page means the same tomorrow. */
static bool put_time(struct buf *path, const char *name, const char *option, const char *text,
		     struct err *e)
{
	struct buf value = { 0 };
	int64_t ns;

	if (!*text)
		return true;
	if (!time_parse_ago(str_of(text), time_now(), &ns, e))
		return err_wrap(e, "--%s", option);
	time_print(&value, ns);
	put_param(path, name, buf_view(&value));
	buf_release(&value);
	return true;
}

static bool put_times(struct buf *path, const char *from, const char *to, struct err *e)
{
	return put_time(path, "from", "from", from, e) && put_time(path, "to", "to", to, e);
}

static void put_limit(struct buf *path, int64_t limit)
{
	char text[32];

	snprintf(text, sizeof(text), "%lld", (long long)limit);
	put_param(path, "limit", str_of(limit == -1 ? "" : text));
}

/* Asks, and prints the answer as it is, or has it made into a table. */
static bool ask(struct kubectl *k, struct buf *path,
		void (*print)(struct buf *, const struct json *), struct err *e)
{
	struct buf out = { 0 };
	struct json json;
	struct str text;
	bool ok;

	buf_char(path, '\0');
	ok = api_get_json(&k->api, &k->arena, path->p, &json, &text, e);
	buf_release(path);
	if (ok && kubectl_is_json(k))
		buf_str(&out, text);
	else if (ok)
		print(&out, &json);
	print_and_exit(&out, STDOUT_FILENO, 0);
	return ok;
}

/* ---- answers */

static struct str text_of(const struct json *object, const char *name)
{
	const struct json *x = json_member(object, name);

	return x && x->type != JSON_NULL ? x->text : STR("");
}

static double number_of(const struct json *object, const char *name)
{
	double v;

	return number_parse_float(text_of(object, name), &v) == NUMBER_OK ? v : 0;
}

static void put_cells(struct table *t, const struct json *object, const char *names)
{
	struct str rest = str_of(names);

	while (rest.p) {
		struct str word = str_cut(&rest, ' ');
		char name[32];

		snprintf(name, sizeof(name), "%.*s", STR_ARG(word));
		table_cell(t, text_of(object, name));
	}
}

/* NULL: there are none, which is said. */
static const struct json *rows_of(const struct json *answer, const char *name)
{
	const struct json *rows = json_member(answer, name);

	if (rows && rows->type == JSON_ARRAY && rows->n)
		return rows;
	fputs("nothing found\n", stderr);
	return NULL;
}

static void print_names(struct buf *out, const struct json *answer, const char *member)
{
	const struct json *rows = rows_of(answer, member);
	struct table t;

	if (!rows)
		return;
	table_init(&t, "NAME SERIES# PROFILES# FIRST LAST");
	for (size_t i = 0; i < rows->n; i++)
		put_cells(&t, &rows->at[i], "name series profiles first last");
	table_print(out, &t);
}

static void print_services(struct buf *out, const struct json *answer)
{
	print_names(out, answer, "services");
}

static void print_types(struct buf *out, const struct json *answer)
{
	print_names(out, answer, "types");
}

static void put_labels(struct table *t, const struct json *labels)
{
	struct buf text = { 0 };

	for (size_t i = 0; labels && i < labels->n; i++) {
		if (i)
			buf_char(&text, ',');
		buf_str(&text, text_of(&labels->at[i], "key"));
		buf_char(&text, '=');
		buf_str(&text, text_of(&labels->at[i], "value"));
	}
	table_cell(t, buf_view(&text));
	buf_release(&text);
}

static void print_profiles(struct buf *out, const struct json *answer)
{
	const struct json *rows = rows_of(answer, "profiles"), *more = json_member(answer, "more");
	struct table t;

	if (!rows)
		return;
	table_init(&t, "ID TYPE SERVICE CREATED SAMPLES# LABELS");
	for (size_t i = 0; i < rows->n; i++) {
		put_cells(&t, &rows->at[i], "id type service created samples");
		put_labels(&t, json_member(&rows->at[i], "labels"));
	}
	table_print(out, &t);
	if (more && more->is_true)
		fputs("there are more, older ones: see --limit\n", stderr);
}

/* ---- get */

static const struct kind {
	const char *name, *path;
	bool is_timed;
	void (*print)(struct buf *out, const struct json *answer);
} kinds[] = {
	{ "profiles", "/api/1/profiles", true, print_profiles },
	{ "services", "/api/1/services", false, print_services },
	{ "types", "/api/1/types", false, print_types },
	{ "profile-types", "/api/1/types", false, print_types },
};

bool kubectl_get(struct kubectl *k, int *status, struct err *e)
{
	const struct kubectl_options *o = &k->options;
	const struct kind *kind = NULL;
	struct buf path = { 0 };

	(void)status;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (k->argc == 1 && strcmp(kinds[i].name, k->argv[0]) == 0)
			kind = &kinds[i];
	if (!kind)
		return err_set(e, ERR_USAGE, "get what? profiles, services or types");
	buf_puts(&path, kind->path);
	put_param(&path, "service", str_of(o->service));
	put_param(&path, "type", str_of(o->type));
	put_query(&path, o, "");
	put_limit(&path, o->limit);
	/* Of names there is no default: what there is, is told whenever it was. */
	if ((kind->is_timed || *o->from) &&
	    !put_times(&path, *o->from ? o->from : "24h", o->to, e)) {
		buf_release(&path);
		return false;
	}
	return ask(k, &path, kind->print, e);
}

/* ---- top */

static void put_value(struct table *t, double value, struct str unit)
{
	struct buf text = { 0 };

	unit_label(&text, (int64_t)value, unit, STR("auto"));
	table_cell(t, buf_view(&text));
	buf_release(&text);
}

static void print_top(struct buf *out, const struct json *answer)
{
	const struct json *rows = rows_of(answer, "rows");
	struct str unit = text_of(answer, "unit");
	bool has_by;
	struct table t;

	if (!rows)
		return;
	has_by = json_member(&rows->at[0], "by");
	table_init(&t, has_by ? "FLAT# SHARE# CUM# CORES# SERVICES# BY FUNCTION"
			      : "FLAT# SHARE# CUM# CORES# SERVICES# FUNCTION");
	for (size_t i = 0; i < rows->n; i++) {
		const struct json *row = &rows->at[i];

		put_value(&t, number_of(row, "flat"), unit);
		table_cell_printf(&t, "%.2f%%", 100 * number_of(row, "share"));
		put_value(&t, number_of(row, "cum"), unit);
		table_cell_printf(&t, "%.3g", number_of(row, "cores"));
		put_cells(&t, row, has_by ? "services by function" : "services function");
	}
	table_print(out, &t);
}

static bool no_arguments(const struct kubectl *k, struct err *e)
{
	return !k->argc ||
	       err_set(e, ERR_USAGE, "what is \"%s\"? Options begin with --", k->argv[0]);
}

static struct str type_or_cpu(const struct kubectl_options *o)
{
	return *o->type ? str_of(o->type) : STR("cpu");
}

static const char *from_or_hour(const struct kubectl_options *o)
{
	return *o->from ? o->from : "1h";
}

bool kubectl_top(struct kubectl *k, int *status, struct err *e)
{
	const struct kubectl_options *o = &k->options;
	struct buf path = { 0 };

	(void)status;
	buf_puts(&path, "/api/1/top");
	put_param(&path, "service", str_of(o->service));
	put_param(&path, "type", type_or_cpu(o));
	put_query(&path, o, "");
	put_param(&path, "by", str_of(o->by));
	put_param(&path, "sort", str_of(o->sort));
	put_param(&path, "group", str_of(o->group));
	put_limit(&path, o->limit);
	if (no_arguments(k, e) && put_times(&path, from_or_hour(o), o->to, e))
		return ask(k, &path, print_top, e);
	buf_release(&path);
	return false;
}

/* ---- diff */

static void print_diff(struct buf *out, const struct json *answer)
{
	const struct json *comparison = json_member(answer, "comparison"),
			  *rows = rows_of(comparison ? comparison : answer, "functions");
	struct str unit = text_of(comparison ? comparison : answer, "unit");
	struct table t;

	if (!rows)
		return;
	table_init(&t, "OLD# OLD%# NEW# NEW%# CHANGE# VERDICT FUNCTION");
	for (size_t i = 0; i < rows->n; i++) {
		const struct json *row = &rows->at[i];

		put_value(&t, number_of(row, "old"), unit);
		table_cell_printf(&t, "%.2f%%", 100 * number_of(row, "old_share"));
		put_value(&t, number_of(row, "new"), unit);
		table_cell_printf(&t, "%.2f%%", 100 * number_of(row, "new_share"));
		table_cell_printf(&t, "%+.2f%%", 100 * number_of(row, "change"));
		put_cells(&t, row, "verdict name");
	}
	table_print(out, &t);
}

static bool check_sides(const struct kubectl_options *o, struct err *e)
{
	return (*o->old && *o->new) || *o->old_from || *o->old_to ||
	       err_set(e, ERR_USAGE,
		       "say what is compared, as --old version=1.0 --new version=1.1, or with "
		       "--old-from 2d --old-to 1d");
}

bool kubectl_diff(struct kubectl *k, int *status, struct err *e)
{
	const struct kubectl_options *o = &k->options;
	struct buf path = { 0 };

	(void)status;
	buf_puts(&path, "/api/1/diff");
	put_param(&path, "service", str_of(o->service));
	put_param(&path, "type", type_or_cpu(o));
	put_query(&path, o, "");
	put_param(&path, "old", str_of(o->old));
	put_param(&path, "new", str_of(o->new));
	put_limit(&path, o->limit);
	if (no_arguments(k, e) && check_sides(o, e) &&
	    put_times(&path, from_or_hour(o), o->to, e) &&
	    put_time(&path, "old_from", "old-from", o->old_from, e) &&
	    put_time(&path, "old_to", "old-to", o->old_to, e))
		return ask(k, &path, print_diff, e);
	buf_release(&path);
	return false;
}

/* ---- flame */

/* A selection as the viewer takes it: a query's parameters, escaped once more. */
static bool put_selection(struct buf *url, const char *side, const struct kubectl_options *o,
			  const char *more, const char *from, const char *to, struct err *e)
{
	struct buf selection = { 0 };
	bool ok;

	buf_char(&selection, '?');
	put_param(&selection, "service", str_of(o->service));
	put_param(&selection, "type", type_or_cpu(o));
	put_query(&selection, o, more);
	ok = put_times(&selection, from, to, e);
	if (ok)
		put_param(url, side, str_from(buf_view(&selection), 2));
	buf_release(&selection);
	return ok;
}

static bool make_url(struct kubectl *k, struct buf *url, struct err *e)
{
	const struct kubectl_options *o = &k->options;
	const char *from = from_or_hour(o);

	buf_printf(url, "%.*s/ui/flamegraph", STR_ARG(k->api.to));
	if (!*o->old && !*o->new && !*o->old_from && !*o->old_to)
		return put_selection(url, "a", o, "", from, o->to, e);
	return check_sides(o, e) &&
	       put_selection(url, "a", o, o->old, *o->old_from ? o->old_from : from,
			     *o->old_to ? o->old_to : o->to, e) &&
	       put_selection(url, "b", o, o->new, from, o->to, e);
}

bool kubectl_flame(struct kubectl *k, int *status, struct err *e)
{
	struct buf url = { 0 };
	struct err no_browser;
	bool ok = no_arguments(k, e) && make_url(k, &url, e);

	(void)status;
	buf_char(&url, '\0');
	if (ok) {
		printf("%s\n", url.p);
		fflush(stdout);
		/* The address is there; without a browser it is for somebody else. */
		if (!k->options.no_browser && isatty(STDOUT_FILENO))
			view_open_url(url.p, &no_browser);
	}
	buf_release(&url);
	return ok;
}
