/* pyroscope.c - Pyroscope's older requests, of one URL each: what scripts, its CLI and older pages
 * use. */
#include <math.h>

#include "base/int.h"
#include "base/version.h"
#include "profile/wire.h"
#include "server/api1.h"
#include "server/ingest.h"
#include "server/querier.h"
#include "server/routes.h"

#define MS INT64_C(1000000)
#define SECOND (1000 * MS)
enum { MIN_STEP_S = 15, MAX_TIMELINE = 1500 };

static struct querier querier_of(const struct request *q, struct strings *strings)
{
	return (struct querier){ .c = q->c,
				 .a = q->a,
				 .store = q->c->server->store,
				 .stop = q->stop,
				 .strings = strings };
}

/* ---- parameters */

static bool read_time(const struct request *q, const char *name, int64_t *ms, struct err *e)
{
	int64_t ns;

	if (!ingest_parse_time(request_text(q, name), q->now, &ns, e))
		return err_wrap(e, "%s", name);
	*ms = ns / MS;
	return true;
}

/* process_cpu:cpu:nanoseconds:cpu:nanoseconds{service_name="x"} */
static bool read_query(const struct request *q, const char *name, struct ask_merge *ask,
		       struct err *e)
{
	struct str text = str_trim(request_text(q, name));
	size_t brace = str_find_char(text, '{');

	if (!text.n)
		return err_set(e, ERR_USAGE,
			       "%s is missing: process_cpu:cpu:nanoseconds:cpu:nanoseconds"
			       "{service_name=\"x\"}",
			       name);
	if (brace == STR_NONE)
		brace = text.n;
	ask->profile_typeID = str_trim((struct str){ text.p, brace });
	ask->label_selector = str_from(text, brace);
	return true;
}

static int64_t max_nodes(const struct request *q)
{
	const struct value *v = request_param(q, "maxNodes");

	return v->is_set ? v->number : request_int(q, "max-nodes");
}

static bool read_side(const struct request *q, const char *query, const char *from,
		      const char *until, struct ask_merge *ask, struct err *e)
{
	*ask = (struct ask_merge){ .max_nodes = max_nodes(q) };
	return read_query(q, query, ask, e) && read_time(q, from, &ask->start, e) &&
	       read_time(q, until, &ask->end, e);
}

/* ---- parts of answers */

static void put_metadata(struct buf *out, const struct ask_merge *ask, const char *format)
{
	struct profile_type_id id = { 0 };
	bool is_time;

	profile_type_parse_id(ask->profile_typeID, &id);
	is_time = str_eq(id.unit, STR("nanoseconds"));
	buf_printf(out,
		   ",\"metadata\":{\"format\":\"%s\",\"spyName\":\"\",\"sampleRate\":%d,\"units\":",
		   format, is_time ? 1000000000 : 100);
	/* What its pages know: time is samples of so many a second. */
	json_put(out, is_time			      ? STR("samples")
		      : str_eq(id.unit, STR("count")) ? STR("objects")
						      : id.unit);
	buf_puts(out, ",\"name\":");
	json_put(out, id.sample);
	buf_char(out, '}');
}

static bool put_flame(const struct querier *q, const struct merged *m, struct flame_made *made,
		      struct buf *out, struct err *e)
{
	made->form = FLAME_JSON;
	buf_puts(out, "{\"version\":1,\"flamebearer\":");
	if (m)
		return querier_flame(q, m, made, out, e);
	buf_puts(out, made->is_diff ? "{\"names\":[\"total\"],\"levels\":[[0,0,0,0,0,0,0]]"
				    : "{\"names\":[\"total\"],\"levels\":[[0,0,0,0]]");
	buf_puts(out, ",\"numTicks\":0,\"maxSelf\":0}");
	return true;
}

/* ---- values over time */

struct timeline {
	int64_t start, step; /* seconds */
	size_t n;
};

static struct timeline timeline_of(const struct ask_merge *ask)
{
	int64_t seconds = int_distance(ask->start, ask->end) / 1000;
	int64_t step = (seconds + MAX_TIMELINE - 1) / MAX_TIMELINE;
	struct timeline t = { .step = step > MIN_STEP_S ? step : MIN_STEP_S };

	t.start = ask->start / 1000 / t.step * t.step;
	t.n = (size_t)((ask->end / 1000 - t.start) / t.step) + 1;
	return t;
}

static void put_timeline(struct buf *out, const struct timeline *t, const struct store_line *line)
{
	size_t at = 0;

	buf_printf(out, "{\"startTime\":%lld,\"samples\":[", (long long)t->start);
	for (size_t i = 0; i < t->n; i++) {
		int64_t time = (t->start + (int64_t)i * t->step) * SECOND;
		double value = 0;

		while (line && at < line->n && line->points[at].time <= time)
			value = line->points[at].time == time ? line->points[at].value : 0, at++;
		buf_puts(out, i ? "," : "");
		json_number(out, round(value));
	}
	buf_printf(out, "],\"durationDelta\":%lld,\"watermarks\":null}", (long long)t->step);
}

static bool find_series(const struct querier *q, const struct request *r,
			const struct ask_merge *ask, const struct timeline *t, struct str *group,
			struct series_made *made, struct err *e)
{
	struct ask_series series = {
		.profile_typeID = ask->profile_typeID,
		.label_selector = ask->label_selector,
		.start = ask->start,
		.end = ask->end,
		.group_by = { group, group != NULL },
		.step = (double)t->step,
		.aggregation = str_eq(request_text(r, "aggregation"), STR("avg"))
				       ? AGGREGATION_AVERAGE
				       : AGGREGATION_SUM,
	};

	return querier_series(q, &series, made, e);
}

static bool put_timelines(const struct querier *q, const struct request *r,
			  const struct ask_merge *ask, struct buf *out, struct err *e)
{
	struct str group = request_text(r, "groupBy");
	struct timeline t = timeline_of(ask);
	struct series_made all, groups = { 0 };

	if (!find_series(q, r, ask, &t, NULL, &all, e) ||
	    (group.n && !find_series(q, r, ask, &t, &group, &groups, e)))
		return false;
	buf_puts(out, ",\n\"timeline\":");
	put_timeline(out, &t, all.n ? all.lines : NULL);
	buf_puts(out, ",\n\"groups\":{");
	for (size_t i = 0; i < groups.n; i++) {
		buf_puts(out, i ? ",\n" : "\n");
		json_put(out, groups.lines[i].name);
		buf_char(out, ':');
		put_timeline(out, &t, &groups.lines[i]);
	}
	buf_puts(out, "},\"heatmap\":null}\n");
	return true;
}

/* ---- requests */

static bool render_json(const struct querier *q, const struct request *r,
			const struct ask_merge *ask, const struct merged *m, struct buf *out,
			struct err *e)
{
	struct flame_made made = { .max_nodes = ask->max_nodes };

	if (!put_flame(q, m, &made, out, e))
		return false;
	put_metadata(out, ask, "single");
	return put_timelines(q, r, ask, out, e);
}

static bool render(const struct querier *q, const struct request *r, struct buf *out, struct err *e)
{
	struct str format = request_text(r, "format");
	bool is_json = str_eq(format, STR("json")), has;
	struct ask_merge ask;
	struct merged m;
	struct profile p;

	if (!read_side(r, "query", "from", "until", &ask, e))
		return false;
	has = querier_merge(q, &ask, &m, e);
	if (!has && (e->kind != ERR_NOTFOUND || !is_json))
		return false;
	if (is_json)
		return render_json(q, r, &ask, has ? &m : NULL, out, e);
	if (str_eq(format, STR("pprof"))) {
		p = merged_profile(q->a, &m);
		reply_profile(q->c, &p, "profile.pb.gz");
		return true;
	}
	if (!querier_dot(q, &m, ask.max_nodes, out, e))
		return false;
	reply_as(q->c, 200, out, "text/plain; charset=utf-8");
	return true;
}

static bool run_render(struct request *r, struct buf *out, struct err *e)
{
	struct strings strings;
	struct querier q = querier_of(r, &strings);
	bool ok;

	strings_init(&strings);
	ok = render(&q, r, out, e);
	strings_release(&strings);
	return ok;
}

static bool render_diff(const struct querier *q, const struct request *r, struct buf *out,
			struct err *e)
{
	struct flame_made made = { .is_diff = true, .max_nodes = max_nodes(r) };
	struct ask_merge left, right;
	struct merged m;
	bool has;

	if (!read_side(r, "leftQuery", "leftFrom", "leftUntil", &left, e) ||
	    !read_side(r, "rightQuery", "rightFrom", "rightUntil", &right, e))
		return false;
	has = querier_compare(q, &left, &right, &m, e);
	if ((!has && e->kind != ERR_NOTFOUND) || !put_flame(q, has ? &m : NULL, &made, out, e))
		return false;
	put_metadata(out, &left, "double");
	buf_printf(out, ",\"leftTicks\":%lld,\"rightTicks\":%lld}\n", (long long)made.left,
		   (long long)made.right);
	return true;
}

static bool run_render_diff(struct request *r, struct buf *out, struct err *e)
{
	struct strings strings;
	struct querier q = querier_of(r, &strings);
	bool ok;

	strings_init(&strings);
	ok = render_diff(&q, r, out, e);
	strings_release(&strings);
	return ok;
}

static bool run_render_values(struct request *r, struct buf *out, struct err *e)
{
	struct querier q = querier_of(r, NULL);
	struct str selector = request_text(r, "query");
	struct ask_labels ask = { .name = request_text(r, "label"), .matchers = { &selector, 1 } };
	struct buf names = { 0 };
	struct field f = { 0 };
	bool ok = querier_label_values(&q, &ask, &names, e);
	struct wire w = wire_of(buf_view(&names));

	buf_char(out, '[');
	for (size_t i = 0; ok && w.p < w.end && wire_next(&w, &f); i++) {
		buf_puts(out, i ? "," : "");
		json_put(out, wire_view(f.bytes));
	}
	buf_puts(out, "]\n");
	buf_release(&names);
	return ok;
}

void pyroscope_buildinfo(struct call *c)
{
	struct buf out = { 0 };

	buf_puts(&out, "{\"status\":\"success\",\"data\":{\"version\":\"" KILN_VERSION
		       "\",\"revision\":\"\",\"branch\":\"\",\"buildDate\":\"\",\"buildUser\":\"\","
		       "\"goVersion\":\"\"}}\n");
	reply_json(c, 200, &out);
}

/* ---- their parameters */

#define TIMES(from_, until_)                                                                      \
	{ .name = (from_),                                                                        \
	  .kind = PARAM_TEXT,                                                                     \
	  .initial = "now-1h",                                                                    \
	  .help = "Time of the first profiles: seconds since 1970, or milliseconds (13 digits), " \
		  "or now-1h, or as elsewhere." },                                                \
	{                                                                                         \
		.name = (until_), .kind = PARAM_TEXT, .initial = "now",                           \
		.help = "Time of the last profiles, written as that of the first."                \
	}
#define QUERY(name_)                                                                       \
	{                                                                                  \
		.name = (name_), .kind = PARAM_TEXT,                                       \
		.help = "A profile type and a selector: "                                  \
			"process_cpu:cpu:nanoseconds:cpu:nanoseconds{service_name=\"x\"}." \
	}
#define NODES(name_)                                                                       \
	{                                                                                  \
		.name = (name_), .kind = PARAM_INT, .initial = "0", .max = MAX_NODES,      \
		.help = "At most so many boxes; the rest is \"other\". 0 is 8192 of them." \
	}

static const struct param render_params[] = {
	QUERY("query"),
	TIMES("from", "until"),
	{ .name = "format",
	  .kind = PARAM_CHOICE,
	  .initial = "json",
	  .choices = "json dot pprof",
	  .help = "What the answer is: a flame graph and values over time, a graph for Graphviz, "
		  "or a "
		  "profile." },
	NODES("maxNodes"),
	NODES("max-nodes"),
	{ .name = "groupBy",
	  .kind = PARAM_TEXT,
	  .help = "Values over time for each value of this label, too." },
	{ .name = "aggregation",
	  .kind = PARAM_CHOICE,
	  .initial = "sum",
	  .choices = "sum avg",
	  .help = "Of values over time." },
};
static const struct param render_diff_params[] = {
	QUERY("leftQuery"),  TIMES("leftFrom", "leftUntil"),
	QUERY("rightQuery"), TIMES("rightFrom", "rightUntil"),
	NODES("maxNodes"),   NODES("max-nodes"),
};
static const struct param render_values_params[] = {
	{ .name = "label", .kind = PARAM_TEXT, .help = "The label, such as service_name." },
	{ .name = "query", .kind = PARAM_TEXT, .help = "A selector. If it is not given, all." },
};

const struct endpoint endpoint_render = {
	.path = "/pyroscope/render",
	.details = "A flame graph as Pyroscope has it: numbers of boxes by levels, and values over "
		   "time.",
	ENDPOINT_PARAMS(render_params),
	.is_lax = true,
	.answer = "Flamebearer",
	.types = "text/plain application/octet-stream",
	.run = run_render,
};
const struct endpoint endpoint_render_diff = {
	.path = "/pyroscope/render-diff",
	.details = "A flame graph of two sets of profiles, as Pyroscope has it.",
	ENDPOINT_PARAMS(render_diff_params),
	.is_lax = true,
	.answer = "Flamebearer",
	.run = run_render_diff,
};
const struct endpoint endpoint_render_values = {
	.path = "/pyroscope/label-values",
	.details = "Values of a label, as Pyroscope has them.",
	ENDPOINT_PARAMS(render_values_params),
	.is_lax = true,
	.answer = "Texts",
	.run = run_render_values,
};
