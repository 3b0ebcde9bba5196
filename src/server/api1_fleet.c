/* api1_fleet.c - over all services: the heaviest functions, and values over time. */
#include "server/api1_params.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>

#include "base/int.h"
#include "base/regex.h"
#include "base/unit.h"
#include "server/groups.h"
#include "server/owners.h"

#define SECOND INT64_C(1000000000)
enum { MAX_POINTS = 11000, USUAL_POINTS = 100, MAX_OTHERS = 10 };

/* ---- functions */

/* Cores, if it is time; else units in a second, or, of gauges, units. */
static double cores_of(const struct store_top *top, double rate)
{
	struct str name;

	return !top->is_gauge && unit_is_time(top->unit) ? rate * unit_to_default(top->unit, &name)
							 : rate;
}

/* Nothing, if nothing was. */
static void put_left_out(struct buf *out, const struct store_left_out *x)
{
	if (!x->why.n)
		return;
	buf_printf(out, ",\"left_out\":{\"profiles\":%llu,\"services\":%llu,\"why\":",
		   (unsigned long long)x->nprofiles, (unsigned long long)x->nservices);
	json_put(out, x->why);
	buf_char(out, '}');
}

/* Of services whose functions others own, the heaviest counts. */
static void put_owners(struct buf *out, struct arena *a, const struct store_top_row *row)
{
	size_t n;
	const struct str *owners = owners_of_parts(a, row->function, row->parts, row->nparts, &n);

	if (!n)
		return;
	buf_puts(out, ",\"owner\":");
	json_put(out, owners[0]);
	buf_printf(out, ",\"owners\":%zu", n);
	if (n == 1)
		return;
	buf_puts(out, ",\"other_owners\":[");
	for (size_t i = 1; i < n && i <= MAX_OTHERS; i++) {
		buf_puts(out, i > 1 ? "," : "");
		json_put(out, owners[i]);
	}
	buf_char(out, ']');
}

static void put_row(struct buf *out, struct arena *a, const struct store_top *top,
		    const struct store_top_row *row, bool has_by)
{
	buf_puts(out, "{\"function\":");
	json_put(out, row->function);
	buf_puts(out, ",\"file\":");
	json_put(out, row->file);
	buf_puts(out, ",\"module\":");
	json_put(out, row->module);
	if (has_by) {
		buf_puts(out, ",\"by\":");
		json_put(out, row->by);
	}
	put_owners(out, a, row);
	buf_printf(out,
		   ",\"flat\":%lld,\"cum\":%lld,\"services\":%llu,\"cores\":", (long long)row->flat,
		   (long long)row->cum, (unsigned long long)row->nservices);
	json_number(out, cores_of(top, row->rate));
	buf_puts(out, ",\"share\":");
	json_number(out,
		    top->rate > 0 ? row->rate / top->rate : (double)row->flat / (double)top->total);
	buf_puts(out, ",\"trend\":");
	json_number(out, cores_of(top, row->trend));
	buf_char(out, '}');
}

static void put_top(struct request *q, struct buf *out, const struct store_top *top, size_t nfound)
{
	bool has_by = request_text(q, "by").n;

	buf_puts(out, "{\"unit\":");
	json_put(out, top->unit);
	buf_printf(out,
		   ",\"per_second\":%s,\"total\":%lld,\"profiles\":%llu,\"services\":%llu,"
		   "\"functions\":%zu,"
		   "\"found\":%zu,"
		   "\"cores\":",
		   top->is_gauge ? "false" : "true", (long long)top->total,
		   (unsigned long long)top->nprofiles, (unsigned long long)top->nservices,
		   top->nall, nfound);
	json_number(out, cores_of(top, top->rate));
	json_time(out, "from", top->from);
	json_time(out, "to", top->to);
	put_left_out(out, &top->left_out);
	buf_puts(out, ",\"rows\":[");
	for (size_t i = 0; i < top->n && !stop_asked(q->stop); i++) {
		buf_puts(out, i ? ",\n" : "\n");
		put_row(out, q->a, top, &top->rows[i], has_by);
	}
	buf_puts(out, "]}\n");
}

/* The text itself, whatever its case. */
static struct regex *text_regex(struct str text, struct err *e)
{
	struct buf pattern = { 0 };
	struct regex *re;

	buf_puts(&pattern, "(?i)");
	for (size_t i = 0; i < text.n; i++)
		buf_printf(&pattern, ispunct((unsigned char)text.p[i]) ? "\\%c" : "%c", text.p[i]);
	re = regex_compile(buf_view(&pattern), e);
	buf_release(&pattern);
	return re;
}

/* Leaves the first `limit` of the rows that have the text. */
static bool search_rows(struct store_top *top, struct str text, size_t limit, size_t *nfound,
			struct err *e)
{
	struct regex *re = text_regex(text, e);

	if (!re)
		return false;
	*nfound = 0;
	for (size_t i = 0; i < top->n; i++)
		if (regex_match(re, top->rows[i].function) && (*nfound)++ < limit)
			top->rows[*nfound - 1] = top->rows[i];
	top->n = *nfound < limit ? *nfound : limit;
	regex_free(re);
	return true;
}

/* now-1d: nobody means the second. */
static bool is_relative(struct str time)
{
	return str_has_prefix(time, STR("now"));
}

static bool run_top(struct request *q, struct buf *out, struct err *e)
{
	static struct str (*const groups[])(void *, struct str, struct str, struct str) = {
		group_package, group_module, group_category, group_owner /* as in GROUP_NAMES */
	};
	const struct value *group = request_param(q, "group");
	struct owners *owners = q->c->server->owners;
	struct str search = request_text(q, "search");
	uint32_t limit = (uint32_t)request_int(q, "limit");
	struct store_top_params params = { .sample_type = request_text(q, "sample_type"),
					   .by = request_text(q, "by"),
					   .order = (enum store_top_order)request_int(q, "sort"),
					   .group = group->is_set ? groups[group->number] : NULL,
					   .is_rough = is_relative(request_text(q, "from")),
					   .is_settled = !request_int(q, "fresh"),
					   .function = request_text(q, "function"),
					   .limit = search.n ? 0 : limit };
	struct store_top top = { 0 };
	size_t nfound;

	/* Functions have owners; of groups only those that are owners need to know services. */
	if (params.group ? params.group == group_owner : owners_nrules(owners) > 0) {
		params.group_ctx = owners;
		params.group_ctx_of = owners_of_service;
	}
	if (!request_query(q, &params.query, e) ||
	    !store_top(q->c->server->store, &params, q->a, &top, e))
		return false;
	nfound = top.nall;
	if (search.n && !search_rows(&top, search, limit, &nfound, e))
		return err_wrap(e, "search");
	put_top(q, out, &top, nfound);
	return true;
}

/* ---- time */

/* One that makes about USUAL_POINTS of the window, and that people would choose. */
static int64_t usual_step(int64_t window)
{
	static const int64_t steps[] = { 1,    5,    10,    15,	   30,	  60,	 300,	900,
					 1800, 3600, 10800, 21600, 43200, 86400, 604800 };
	size_t i = 0, n = sizeof(steps) / sizeof(*steps);

	while (i + 1 < n && steps[i] * SECOND < window / USUAL_POINTS)
		i++;
	return steps[i] * SECOND;
}

static bool choose_step(const struct request *q, const struct store_query *query, int64_t *step,
			struct err *e)
{
	int64_t window = int_distance(query->from, query->to);

	*step = request_param(q, "step")->is_set ? request_int(q, "step") : usual_step(window);
	return window / *step <= MAX_POINTS ||
	       err_set(e, ERR_USAGE,
		       "step: that would be %lld points of each line, and at most %d are made; "
		       "use a longer step",
		       (long long)(window / *step), MAX_POINTS);
}

static double height(const struct store_line *line)
{
	double sum = 0;

	for (size_t i = 0; i < line->n; i++)
		sum += line->points[i].value;
	return line->n ? sum / (double)line->n : 0;
}

static int higher_first(const void *a, const void *b)
{
	double x = height(a), y = height(b);

	if (x != y)
		return x < y ? 1 : -1;
	return str_cmp(((const struct store_line *)a)->name, ((const struct store_line *)b)->name);
}

static void put_line(struct buf *out, const struct store_line *line, bool has_levels)
{
	buf_puts(out, "{\"name\":");
	json_put(out, line->name);
	buf_puts(out, ",\"unit\":");
	json_put(out, line->unit);
	if (has_levels)
		buf_printf(out, ",\"per_second\":%s", line->is_gauge ? "false" : "true");
	buf_puts(out, ",\"points\":[");
	for (size_t i = 0; i < line->n; i++) {
		buf_puts(out, i ? ",[" : "[");
		json_number(out, (double)line->points[i].time / 1e9);
		buf_char(out, ',');
		json_number(out, line->points[i].value);
		buf_printf(out, ",%llu", (unsigned long long)line->points[i].nprofiles);
		if (has_levels && isfinite(line->points[i].level))
			buf_printf(out, ",%.6g", line->points[i].level);
		buf_char(out, ']');
	}
	buf_puts(out, "]}");
}

static bool run_series(struct request *q, struct buf *out, struct err *e)
{
	struct store_series_params params = { .by = request_text(q, "by"),
					      .sample_type = request_text(q, "sample_type"),
					      .function = request_text(q, "function"),
					      .is_flat = request_int(q, "flat"),
					      .has_levels = request_int(q, "levels"),
					      .how = request_aggregate(q) };
	struct store_left_out left_out = { 0 };
	struct store_line *lines = NULL;
	size_t n = 0, limit = (size_t)request_int(q, "limit");

	params.left_out = &left_out;
	if (!request_query(q, &params.query, e) ||
	    !choose_step(q, &params.query, &params.step, e) ||
	    (!store_series(q->c->server->store, &params, q->a, &lines, &n, e) &&
	     e->kind != ERR_NOTFOUND))
		return false;
	if (n > 1)
		qsort(lines, n, sizeof(*lines), higher_first);
	buf_puts(out, "{\"step\":");
	json_number(out, (double)params.step / 1e9);
	put_left_out(out, &left_out);
	buf_printf(out, ",\"total\":%zu,\"lines\":[", n);
	for (size_t i = 0; i < n && i < limit && !stop_asked(q->stop); i++) {
		buf_puts(out, i ? ",\n" : "\n");
		put_line(out, &lines[i], request_int(q, "levels"));
	}
	buf_puts(out, "]}\n");
	return true;
}

static const struct param top_params[] = {
	PARAM_SELECT,
	PARAM_WINDOW("now-1h"),
	PARAM_SAMPLE_TYPE,
	{ .name = "by",
	  .kind = PARAM_TEXT,
	  .help = "One row for each function and value of this: service, type, a label such as "
		  "version, or week (as 2026-W46). If it is not given, one for each function." },
	{ .name = "sort",
	  .kind = PARAM_CHOICE,
	  .initial = "flat",
	  /* In the order of enum store_top_order. */
	  .choices = "flat cum cores services trend",
	  .help = "By what functions take themselves (flat), by what all that they call takes too "
		  "(cum), by cores, by the number of services, or by how much more they take in "
		  "the second half of the time than in the first (trend)." },
	{ .name = "group",
	  .kind = PARAM_CHOICE,
	  .choices = GROUP_NAMES,
	  .help = "Rows are of packages, of modules, or of what functions do, told by their "
		  "names: malloc, memcpy, compression, hashing, serialisation, locks, GC, kernel "
		  "and other; or of who owns them, by the rules of --owners. If it is not given, "
		  "of functions, which have their owner, if there are such rules. Of those that "
		  "are of several, by rules for services, it is the owner of those services "
		  "that take most of it." },
	{ .name = "function",
	  .kind = PARAM_TEXT,
	  .help = "Only this function, by its whole name, or this group; with by=service, which "
		  "services have it." },
	{ .name = "search",
	  .kind = PARAM_TEXT,
	  .help = "Only functions, or groups, that have this text in their name, whatever its "
		  "case." },
	{ .name = "fresh",
	  .kind = PARAM_FLAG,
	  .initial = "true",
	  .help = "If it is false, the last minutes, of which profiles may still come, are left "
		  "out, unless what is asked for, or all there is, is of the last hour. Times of "
		  "more than six hours then begin at a whole hour, and others at whole five "
		  "minutes; with fresh they do so if from is relative, as now-1d, and they are of "
		  "an hour or more." },
	PARAM_LIMIT(20, 10000, "rows"),
};
static const struct param series_params[] = {
	PARAM_SELECT,
	PARAM_WINDOW("now-1h"),
	PARAM_SAMPLE_TYPE,
	{ .name = "by",
	  .kind = PARAM_TEXT,
	  .help = "One line for each value of this: service, type or a label. If it is not given, "
		  "one line." },
	{ .name = "function",
	  .kind = PARAM_TEXT,
	  .help = "Only samples that have this function, by its whole name." },
	{ .name = "flat",
	  .kind = PARAM_FLAG,
	  .initial = "false",
	  .help = "Of the function: only what it takes itself." },
	{ .name = "levels",
	  .kind = PARAM_FLAG,
	  .initial = "false",
	  .help = "Points have a fourth number: how much it is at a time, all series together. Of "
		  "what is counted that is so much per second, as nanoseconds of CPU per second of "
		  "its profiles' durations; of memory in use and numbers of threads it is the sum "
		  "of all instances, of which the value is the average." },
	{ .name = "step",
	  .kind = PARAM_DURATION,
	  .help = "Time between points, such as 1m. If it is not given, one that makes about 100 "
		  "of them." },
	PARAM_AGGREGATE,
	PARAM_LIMIT(20, 1000, "lines: the highest"),
};

const struct endpoint endpoint_top = {
	.path = "/api/1/top",
	.details =
		"The functions that weigh most in all that the query finds, which may be of many "
		"services. cores are CPU seconds in a second of all that ran, in which what is "
		"profiled for a part of its time counts for all of it (of other types, units in a "
		"second), share is the part that is of all, and trend is how many cores more it "
		"takes in the second half of the time than in the first. Of memory in use and of "
		"numbers of threads, cores, flat and cum are how much there is at a time: each "
		"instance is averaged over time, and all of them are added, those of a service by "
		"how much of its time they were there. Profiles that have other sample types than "
		"most services, or than sample_type asks for, are left out, and left_out says so; "
		"times and bytes in different units are converted.",
	ENDPOINT_PARAMS(top_params),
	.answer = "Top",
	.run = run_top,
};
const struct endpoint endpoint_series = {
	.path = "/api/1/series",
	.details =
		"Values over time: of whole profiles, or of one function. Points are at multiples "
		"of the step, and where there are no profiles there is none. What is left out is "
		"told as by /api/1/top.",
	ENDPOINT_PARAMS(series_params),
	.answer = "Series",
	.run = run_series,
};
