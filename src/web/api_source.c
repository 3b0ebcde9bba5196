/* api_source.c - source lines with their weights and instructions, by the rules of -weblist. */
#include "web/names.h"

#include <stdlib.h>

#include "base/path.h"
#include "report/annotate.h"
#include "report/sources.h"
#include "web/inlining.h"

enum { MOST_FUNCTIONS = 50 };

struct listing {
	struct api_call *q;
	struct buf *out;
	struct report_run *r;
	struct annotation annotation;
	struct sources sources;
	struct loaded *first;	   /* that of the command line */
	struct inline_sites sites; /* of the function that was asked for */
};

/* What a request is about. */
struct source_call {
	struct api_call *q;
	struct str function;	   /* its name; "": those that match */
	struct annotate_site site; /* of it */
	bool has_site;
	bool is_known; /* does some profile have the function? */
};

/* ---- the calls of one frame */

/* Does the stack begin with these functions? `frames` are of the profile. */
static bool begins_with(const struct report_run *r, const struct sample *s, const struct frames *f,
			const uint32_t *ids, const struct name_path *root, bool is_collapsed)
{
	size_t at = 0;

	for (uint32_t k = s->nstack; k-- > 0 && at < root->n;) {
		uint32_t loc = r->p->stacks[s->stack + k];

		for (uint32_t i = f->first[loc]; i < f->first[loc + 1] && at < root->n; i++) {
			uint32_t id = ids[f->lists[i] & FRAME_NODE];

			if (is_collapsed && at && (root->ids[at - 1] & FRAME_NODE) == id)
				continue;
			if ((root->ids[at++] & FRAME_NODE) != id)
				return false;
		}
	}
	return at == root->n;
}

/* Leaves the samples that go through the path `root`. */
static bool keep_calls(struct api_call *q, struct report_run *r, struct err *e)
{
	struct profile *p = arena_new(r->a, struct profile);
	struct sample *kept = arena_many(r->a, r->p->nsamples, struct sample);
	bool is_collapsed = api_flag(q, "rc");
	struct name_path root;
	struct frames f;
	uint32_t *ids, n = 0;

	if (!name_path_read(q, "root", &root, e))
		return false;
	if (!root.n)
		return true;
	frames_init(r->a, &f, r->p,
		    &(struct granularity){ .function = true, .inlines = !q->options.noinlines },
		    false);
	ids = name_frames(q->site, q->profile, r, &f);
	for (uint32_t i = 0; i < r->p->nsamples; i++)
		if (begins_with(r, &r->p->samples[i], &f, ids, &root, is_collapsed))
			kept[n++] = r->p->samples[i];
	*p = *r->p;
	p->samples = kept;
	p->nsamples = n;
	r->p = p;
	return true;
}

static void put_weights(struct buf *out, int64_t flat, int64_t cum)
{
	buf_printf(out, ",\"flat\":%lld,\"cum\":%lld", (long long)flat, (long long)cum);
}

/* ---- instructions */

static bool follows(const struct listing *x, const struct annotated_use *use,
		    const struct annotated_use *before)
{
	const struct annotated_instruction *all = x->annotation.instructions;

	return before && all[use->instruction].runtime ==
				 all[before->instruction].runtime + all[before->instruction].length;
}

static void put_calls(struct listing *x, const struct annotated_use *use)
{
	buf_puts(x->out, ",\"inlined\":[");
	for (uint32_t i = 0; i < use->ncalls; i++) {
		const struct source_place *call = &x->annotation.calls[use->first_call + i];

		x->r->text->n = 0;
		buf_str(x->r->text, call->function);
		buf_puts(x->r->text, " at ");
		buf_str(x->r->text, path_base(call->file));
		buf_char(x->r->text, ':');
		buf_int(x->r->text, call->line);
		buf_puts(x->out, i ? "," : "");
		json_put(x->out, buf_view(x->r->text));
	}
	buf_char(x->out, ']');
}

/* `block`: code that does not follow the one before it. */
static void put_instruction(struct listing *x, const struct annotated_use *use,
			    const struct annotated_use *before)
{
	const struct annotated_instruction *i = &x->annotation.instructions[use->instruction];

	buf_printf(x->out, "{\"address\":\"0x%llx\",\"text\":", (unsigned long long)i->address);
	json_put(x->out, i->text);
	put_weights(x->out, i->flat, i->cum);
	buf_puts(x->out, ",\"file\":");
	json_put(x->out, i->place.file.n ? path_base(i->place.file) : STR(""));
	buf_printf(x->out, ",\"line\":%lld", (long long)i->place.line);
	put_calls(x, use);
	buf_printf(x->out, ",\"block\":%s}", before && !follows(x, use, before) ? "true" : "false");
}

/* ---- lines */

static void put_line(struct listing *x, int64_t line, struct str text,
		     const struct annotated_use *uses, size_t n)
{
	const struct annotated_instruction *all = x->annotation.instructions;
	const struct annotated_use *before = NULL;
	int64_t flat = 0, cum = 0;

	for (size_t i = 0; i < n; i++) {
		flat = int_add(flat, all[uses[i].instruction].flat);
		cum = int_add(cum, all[uses[i].instruction].cum);
	}
	buf_printf(x->out, "{\"n\":%lld,\"text\":", (long long)line);
	json_put(x->out, text);
	put_weights(x->out, flat, cum);
	buf_puts(x->out, ",\"asm\":[");
	for (size_t i = 0; i < n; i++) {
		if (!all[uses[i].instruction].text.n)
			continue;
		buf_puts(x->out, before ? "," : "");
		put_instruction(x, &uses[i], before);
		before = &uses[i];
	}
	buf_puts(x->out, "]}");
}

static void put_lines(struct listing *x, const struct annotated_function *f,
		      const struct source *source)
{
	const struct annotated_use *uses = x->annotation.uses;
	size_t at = f->use, end;
	bool more = false;

	buf_puts(x->out, ",\"lines\":[");
	for (int64_t line = f->begin; line < f->end; line++, at = end) {
		bool has_text = line >= 1 && (uint64_t)line <= source->file.nlines;

		for (end = at; end < f->end_use && uses[end].line == line; end++)
			;
		if (!has_text && end == at)
			continue;
		buf_puts(x->out, more ? ",\n" : "");
		put_line(x, line, has_text ? source->file.lines[line - 1] : STR(""), uses + at,
			 end - at);
		more = true;
	}
	buf_char(x->out, ']');
}

/* ---- functions */

/* The function of that name; files and lines are as the listing has them. */
static void put_name(struct listing *x, const struct annotated_function *f)
{
	struct report_run *r = x->r;
	struct node_info info = { .name = strings_find(r->p->strings, f->name) };
	uint32_t id =
		info.name ? name_id(x->q->site, x->q->profile, r, &info)
			  : functions_add(&x->q->site->functions, x->q->profile->owner, f->name);

	buf_puts(x->out, "{\"function\":");
	if (info.name) {
		name_put(x->out, x->q->profile, r, id, &info);
		return;
	}
	buf_printf(x->out, "[%u,", functions_number(&x->q->site->functions, id));
	json_put(x->out, f->name);
	buf_puts(x->out, ",\"\",0,\"\",0]");
}

/* Which build the function is of: says where to look for its sources. */
static void put_build(struct listing *x, const struct annotated_function *f)
{
	const struct profile *p = x->r->p;
	uint32_t object = loaded_facts(x->q->profile, strings_find(p->strings, f->name))->object;
	uint32_t i = 0;

	while (i < p->nmappings && p->mappings[i].file != object)
		i++;
	if (!object || i == p->nmappings)
		return;
	buf_puts(x->out, ",\"binary\":");
	json_put(x->out, profile_str(p, object));
	buf_puts(x->out, ",\"build_id\":");
	json_put(x->out, profile_str(p, p->mappings[i].build_id));
}

static void put_function(struct listing *x, const struct annotated_function *f)
{
	const struct source *source = sources_find(&x->sources, f->file);
	bool is_named = !str_eq(f->file, STR(".")); /* which is a clean "" */

	put_name(x, f);
	put_weights(x->out, f->flat, f->cum);
	buf_puts(x->out, ",\"file\":");
	json_put(x->out, is_named ? f->file : STR(""));
	buf_printf(x->out, ",\"path_found\":%s,\"tried\":[", source->error.n ? "false" : "true");
	if (source->error.n && is_named)
		json_put(x->out, source->error);
	buf_char(x->out, ']');
	put_build(x, f);
	put_lines(x, f, source);
	buf_char(x->out, '}');
}

static int by_flat(const void *a, const void *b)
{
	const struct annotated_function *x = a, *y = b;
	int order;

	if (x->flat != y->flat)
		return x->flat > y->flat ? -1 : 1;
	if (x->cum != y->cum)
		return x->cum > y->cum ? -1 : 1;
	order = str_cmp(x->file, y->file);
	return order ? order : (x->begin > y->begin) - (x->begin < y->begin);
}

static void put_functions(struct listing *x)
{
	struct annotated_function *all = x->annotation.functions;
	size_t n = 0;

	for (size_t i = 0; i < x->annotation.nfunctions; i++)
		if (all[i].cum)
			all[n++] = all[i];
	if (n)
		qsort(all, n, sizeof(*all), by_flat);
	buf_char(x->out, '{');
	api_put_type(x->out, x->r);
	buf_printf(x->out, ",\"total\":%lld,\"functions\":[", (long long)x->r->params->total);
	for (size_t i = 0; i < n && i < MOST_FUNCTIONS; i++) {
		if (stop_asked(x->r->params->stop))
			break;
		buf_puts(x->out, i ? ",\n" : "");
		put_function(x, &all[i]);
	}
	buf_printf(x->out, "],\"more\":%zu", n > MOST_FUNCTIONS ? n - MOST_FUNCTIONS : 0);
	inlining_put(x->out, x->q, x->r, &x->sites);
}

/* A profile that came over the network may name any file of this machine. Of those, only what the
 * one of the command line names as well is shown. */
static bool is_named_here(const void *ctx, struct str path)
{
	const struct loaded *first = ctx;

	return strings_find(&first->files, path);
}

static void restrict_sources(struct listing *x)
{
	const struct web_source *part = &x->q->site->source;

	x->sources.params.is_confined = true;
	if (part->load) {
		x->sources.params.beneath = part->source_path;
		x->sources.params.max_bytes = x->sources.max_bytes = part->source_bytes;
		return;
	}
	x->first = profiles_hold(&x->q->site->profiles, 0);
	if (x->first == x->q->profile)
		return;
	x->sources.allows = is_named_here;
	x->sources.allows_ctx = x->first;
}

static bool annotate_any(struct listing *x, const struct source_call *call, struct err *e)
{
	const struct web_source *part = &x->q->site->source;
	struct annotate_params params = { .only = call->has_site ? &call->site : NULL,
					  .code = part->load ? &part->code : NULL,
					  .warnings = &x->q->warnings };
	bool ok = annotate(x->r, &params, &x->annotation, e);

	/* Of Go's generic functions the profile has shorter names than the binary. */
	if (ok && !x->annotation.nfunctions) {
		annotation_release(&x->annotation);
		params.is_by_samples = true;
		ok = annotate(x->r, &params, &x->annotation, e);
	}
	/* That a function has no lines, or is not called by one of its callers, is an answer. */
	return ok || ((call->is_known || api_param(x->q, "root").n) && e->kind == ERR_NOTFOUND);
}

static bool run_source(struct buf *out, struct report_run *r, struct err *e)
{
	const struct source_call *call = r->params->into;
	struct listing x = { .q = call->q, .out = out, .r = r };
	bool ok = keep_calls(x.q, r, e) && annotate_any(&x, call, e);

	if (ok && call->function.n && !x.q->options.noinlines)
		inlining_find(r, call->function, &x.sites);
	if (ok && (ok = sources_open(&x.sources, r, e))) {
		restrict_sources(&x);
		put_functions(&x);
		sources_close(&x.sources);
		profiles_drop(&x.q->site->profiles, x.first);
	}
	annotation_release(&x.annotation);
	return ok;
}

static const struct report report_source_lines = {
	.name = "source",
	.flags = REPORT_UNTRIMMED | REPORT_ADDRESSES | REPORT_OWN_UNITS,
	.run = run_source,
};

/* Where to look for sources may be said for one request, as on the command line; not by other
 * machines. */
static bool take_paths(struct api_call *q, struct err *e)
{
	static const char *const names[] = { "source_path", "trim_path" };
	const struct option_table *table = analyze_option_table();

	if (!q->site->is_loopback_only || q->site->source.load)
		return true;
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		struct str value = api_param(q, names[i]);

		if (value.n && !option_set(table, option_find(table, str_of(names[i])), &q->options,
					   q->a, value, e))
			return err_wrap(e, "error setting config field %s", names[i]);
	}
	return true;
}

static bool take_memory(struct api_call *q, struct err *e)
{
	const struct web_source *part = &q->site->source;

	return !part->load || part->take_listing(part->ctx, q->http, q->reply) ||
	       err_set(e, ERR_LIMIT, "max-memory");
}

bool api_source(struct api_call *q, struct buf *out, struct err *e)
{
	struct str fn = api_param(q, "fn"), f = api_param(q, "f"), site = api_param(q, "site");
	const char *pattern = "."; /* as pprof: everything */
	struct source_call call = { .q = q, .has_site = site.n };
	/* Paths go through frames that only pages have names for. */
	struct session *s =
		api_param(q, "root").n ? loaded_session(q->profile) : &q->profile->session;

	if (site.n && !inlining_read(q, site, &call.site, e))
		return false;
	if (fn.n) {
		call.is_known = functions_find(&q->site->functions, fn);
		call.function = functions_text(&q->site->functions, q->a, fn);
		pattern = api_quoted(q->a, call.function);
	} else if (f.n) {
		pattern = str_dup(q->a, f);
	}
	if (!take_paths(q, e) || !take_memory(q, e) ||
	    !api_report(q, s, &report_source_lines, pattern, &call, out, e))
		return false;
	api_put_warnings(q, out);
	buf_puts(out, "}\n");
	return true;
}
