/* api1_format.c - a profile as whatever the request asks for: the analyzer's reports, and two of
 * our own in JSON. */
#include "server/api1.h"

#include "analyze/analyze.h"
#include "http/content.h"
#include "server/flame.h"
#include "server/gate.h"

enum { USUAL_FUNCTIONS = 100, USUAL_BOXES = 10000 };
/* A box that is no wider than this part of the whole cannot be seen. */
#define MIN_FRACTION 0.00005

static bool run_json_top(struct buf *out, struct report_run *r, struct err *e);
static bool run_json_flame(struct buf *out, struct report_run *r, struct err *e);

static const struct report json_top = {
	.name = "top",
	.flags = REPORT_GRAPH | REPORT_NO_EDGES,
	.run = run_json_top,
};
static const struct report json_flame = {
	.name = "flame",
	.flags = REPORT_ALL_NODES | REPORT_UNTRIMMED | REPORT_PATHS | REPORT_NO_STACKS,
	.run = run_json_flame,
};

static const struct format {
	const char *name;	   /* as in FORMAT_NAMES */
	const char *report;	   /* by name, or: */
	const struct report *json; /* our own */
	const char *type;
} formats[] = {
	{ "pprof", "proto", NULL, "application/octet-stream" },
	{ "folded", "folded", NULL, "text/plain; charset=utf-8" },
	{ "speedscope", "speedscope", NULL, "application/json" },
	{ "flame", NULL, &json_flame, "application/json" },
	{ "top", NULL, &json_top, "application/json" },
	{ "text", "top", NULL, "text/plain; charset=utf-8" },
	{ "tree", "tree", NULL, "text/plain; charset=utf-8" },
	{ "dot", "dot", NULL, "text/plain; charset=utf-8" },
	{ "flamegraph", "flamegraph", NULL, "image/svg+xml" },
	{ "raw", "raw", NULL, "text/plain; charset=utf-8" },
};

/* ---- reports */

bool format_options(const struct request *q, struct analyze_options *o, struct err *e)
{
	const struct option_table *table = analyze_option_table();

	*o = analyze_defaults;
	for (size_t i = 0; i < q->endpoint->nparams; i++) {
		const struct param *p = &q->endpoint->params[i];
		struct str value = q->values[i].text;

		if ((p->flags & IS_SETTING) && value.n &&
		    !option_set(table, option_find(table, str_of(p->name)), o, q->a, value, e))
			return err_wrap(e, "%s", p->name);
	}
	o->sample_index = str_dup(q->a, request_text(q, "sample_type"));
	return true;
}

/* What a report needs beside the profile: about as much as its stacks take once more, and nodes and
 * edges of its functions. */
static uint64_t report_memory(const struct profile *p)
{
	uint64_t nframes = 0;

	for (uint32_t i = 0; i < p->nsamples; i++)
		nframes += p->samples[i].nstack;
	return nframes * 16 + p->nsamples * UINT64_C(64) + p->nlocations * UINT64_C(128) +
	       p->nfunctions * UINT64_C(512);
}

bool format_report(struct call *c, const struct profile *p, const struct report *report,
		   const struct analyze_options *o, void *into, struct buf *out, struct err *e)
{
	const atomic_bool *stop = c->http->abandoned;
	struct session s = { .profile = *p, .threads = 1 };
	struct analyze_request request = {
		.report = report, .argument = "", .options = o, .into = into, .stop = stop
	};
	struct buf warnings = { 0 };
	bool ok = gate_take(c, report_memory(p)) && analyze_report(&s, &request, out, &warnings, e);

	buf_release(&warnings);
	if (stop_asked(stop))
		return err_set(e, ERR_IO, "nobody waits for the answer any more");
	return ok;
}

static void reply_bytes(struct request *q, struct buf *out, const char *type)
{
	q->c->reply->status = 200;
	q->c->reply->content = http_content_new(out, type);
}

static const struct format *find_format(const struct request *q)
{
	struct str name = request_text(q, "format");
	const struct format *f = formats;

	while (!str_eq(str_of(f->name), name)) /* the parameter's choices are these */
		f++;
	return f;
}

static bool has_settings(const struct request *q)
{
	for (size_t i = 0; i < q->endpoint->nparams; i++)
		if ((q->endpoint->params[i].flags & IS_SETTING) && q->values[i].is_set)
			return true;
	return false;
}

bool format_reply(struct request *q, const struct profile *p, const char *filename, struct buf *out,
		  struct err *e)
{
	const struct format *f = find_format(q);
	const struct value *limit = request_param(q, "limit");
	struct analyze_options o;

	if (!format_options(q, &o, e))
		return false;
	if (f == formats && !has_settings(q)) { /* as it is, to the last field */
		reply_profile(q->c, p, filename);
		return true;
	}
	if (f->json != &json_flame)
		o.nodecount = limit->is_set ? limit->number : USUAL_FUNCTIONS;
	if (!format_report(q->c, p, f->json ? f->json : report_find(f->report), &o, q, out, e))
		return false;
	if (f == formats)
		reply_file(q->c, out, filename);
	else
		reply_bytes(q, out, f->type);
	return true;
}

/* ---- JSON of functions */

static void put_head(struct buf *out, const struct report_run *r)
{
	struct value_type type =
		r->p->ntypes ? r->p->types[r->params->value] : (struct value_type){ 0 };

	buf_puts(out, "{\"type\":");
	json_put(out, profile_str(r->p, type.type));
	buf_puts(out, ",\"unit\":");
	json_put(out, profile_str(r->p, type.unit));
	buf_printf(out, ",\"total\":%lld", (long long)r->params->total);
}

/* What has no name is told by its binary, as in all other reports. */
static struct str function_name(const struct report_run *r, const struct node *n)
{
	return n->info.name || n->info.file ? profile_str(r->p, n->info.name) : n->text;
}

static bool run_json_top(struct buf *out, struct report_run *r, struct err *e)
{
	(void)e;
	put_head(out, r);
	buf_printf(out, ",\"functions\":%u,\"rows\":[", r->g.original_count);
	for (uint32_t i = 0; i < r->g.norder; i++) {
		const struct node *n = &r->g.nodes[r->g.order[i]];

		buf_puts(out, i ? ",\n{\"function\":" : "\n{\"function\":");
		json_put(out, function_name(r, n));
		buf_puts(out, ",\"file\":");
		json_put(out, profile_str(r->p, n->info.file));
		if (n->info.line)
			buf_printf(out, ",\"line\":%lld", (long long)n->info.line);
		buf_printf(out, ",\"flat\":%lld,\"cum\":%lld}", (long long)node_flat(n),
			   (long long)node_cum(n));
	}
	buf_puts(out, "]}\n");
	return true;
}

/* ---- JSON of a flame graph */

static void put_functions(struct flame *f, struct buf *out)
{
	buf_puts(out, ",\"functions\":[");
	for (uint32_t i = 0; i < f->nnames; i++) {
		buf_puts(out, i ? ",\n" : "\n");
		json_put(out, f->names[i]);
	}
	buf_char(out, ']');
}

/* The sum of what the boxes that were left out weigh. */
static void put_cut(const struct flame *f, struct buf *out)
{
	int64_t lost = 0;

	for (uint32_t i = 0; i < f->tree.npaths; i++)
		lost = int_add(lost, f->tree.paths[i].lost_now);
	buf_printf(out, ",\"cut\":{\"boxes\":%u,\"value\":%lld}", f->tree.ncut, (long long)lost);
}

static void put_boxes(const struct flame *f, struct buf *out)
{
	buf_puts(out, ",\"boxes\":[");
	for (uint32_t i = 0; i < f->tree.npaths; i++) {
		const struct path *p = &f->tree.paths[i];

		buf_printf(out, "%s[%lld,%lld,%lld,%lld", i ? ",\n" : "\n",
			   i ? (long long)p->parent : -1, i ? (long long)f->name_of[i] : -1,
			   (long long)p->now, (long long)f->own_now[i]);
		if (f->tree.has_base)
			buf_printf(out, ",%lld,%lld", (long long)p->before,
				   (long long)f->own_before[i]);
		buf_char(out, ']');
	}
	buf_puts(out, "]");
}

static bool run_json_flame(struct buf *out, struct report_run *r, struct err *e)
{
	const struct request *q = r->params->into;
	const struct value *limit = request_param(q, "limit");
	struct flame f;

	(void)e;
	flame_grow(&f, r, limit->is_set ? (uint32_t)limit->number : USUAL_BOXES, MIN_FRACTION);
	if (stop_asked(r->params->stop))
		return true;
	put_head(out, r);
	put_cut(&f, out);
	put_functions(&f, out);
	put_boxes(&f, out);
	buf_puts(out, "}\n");
	return true;
}
