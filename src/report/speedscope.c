/* speedscope.c - stacks in the JSON file format of speedscope.app: one "sampled" profile for each
 * sample type, or, where there are very many, only for the one that is asked for, since each
 * repeats all stacks. The format knows no negative weights, so of a comparison only the new side is
 * there. */
#include "report/report.h"

#include "base/escape.h"
#include "base/path.h"
#include "base/unit.h"

enum { MAX_TYPES = 20 };

struct scope_writer {
	struct buf *out;
	struct report_run *r;
	struct frames frames;
};

static void put_text(struct buf *out, const char *key, struct str value)
{
	buf_printf(out, "\"%s\":\"", key);
	escape_json(out, value);
	buf_char(out, '"');
}

static void put_frame(struct scope_writer *w, const struct node_info *i)
{
	const struct profile *p = w->r->p;
	struct str name = profile_str(p, i->name);

	w->r->text->n = 0;
	if (!i->name) {
		node_info_text(w->r->text, p, i);
		name = buf_view(w->r->text);
	}
	buf_char(w->out, '{');
	put_text(w->out, "name", name);
	if (i->file) {
		buf_char(w->out, ',');
		put_text(w->out, "file", profile_str(p, i->file));
	}
	if (i->line > 0)
		buf_printf(w->out, ",\"line\":%lld", (long long)i->line);
	if (i->line > 0 && i->column > 0)
		buf_printf(w->out, ",\"col\":%lld", (long long)i->column);
	buf_char(w->out, '}');
}

/* The name that speedscope has for the unit, and into *factor how many of it one of ours is. */
static struct str scope_unit(struct str unit, double *factor)
{
	const struct unit_family *family = unit_family_of(unit);
	const int64_t many = 1 << 30;
	struct str name, to = STR("none");

	*factor = 1;
	if (unit_is_time(unit))
		to = STR("nanoseconds");
	else if (family && unit_same_family(unit, STR("bytes")))
		to = STR("bytes");
	else
		return to;
	*factor = unit_scale(many, unit, to, &name) / (double)many;
	return to;
}

static void put_stack(struct scope_writer *w, const struct sample *s)
{
	const uint32_t *stack = w->r->p->stacks + s->stack;
	const struct frames *f = &w->frames;
	char separator = '[';

	if (!s->nstack)
		buf_char(w->out, '[');
	for (uint32_t i = s->nstack; i-- > 0;) {
		for (uint32_t k = f->first[stack[i]]; k < f->first[stack[i] + 1]; k++) {
			buf_char(w->out, separator);
			buf_uint(w->out, f->lists[k] & FRAME_NODE);
			separator = ',';
		}
	}
	buf_char(w->out, ']');
}

static int64_t weight(const struct scope_writer *w, const struct sample *s, uint32_t value)
{
	const int64_t *values = sample_values(w->r->p, s);

	return report_divided(w->r, divided(values[value], w->r->params->mean ? values[0] : 0));
}

static void put_profile(struct scope_writer *w, uint32_t value)
{
	const struct profile *p = w->r->p;
	double factor, sum = 0;
	struct str unit = scope_unit(profile_str(p, p->types[value].unit), &factor);
	const char *separator = "";

	buf_puts(w->out, "{\"type\":\"sampled\",");
	put_text(w->out, "name", profile_str(p, p->types[value].type));
	buf_char(w->out, ',');
	put_text(w->out, "unit", unit);
	buf_puts(w->out, ",\"samples\":[");
	for (uint32_t i = 0; i < p->nsamples && !stop_asked_at(w->r->params->stop, i); i++) {
		if (weight(w, &p->samples[i], value) <= 0)
			continue;
		buf_puts(w->out, separator);
		put_stack(w, &p->samples[i]);
		separator = ",\n";
	}
	buf_puts(w->out, "],\n\"weights\":[");
	separator = "";
	for (uint32_t i = 0; i < p->nsamples && !stop_asked_at(w->r->params->stop, i); i++) {
		int64_t v = weight(w, &p->samples[i], value);

		if (v <= 0)
			continue;
		buf_puts(w->out, separator);
		if (factor == 1)
			buf_int(w->out, v);
		else
			buf_printf(w->out, "%.17g", (double)v * factor);
		sum += (double)v * factor;
		separator = ",";
	}
	buf_printf(w->out, "],\"startValue\":0,\"endValue\":%.17g}", sum);
}

static void put_frames(struct scope_writer *w)
{
	buf_puts(w->out, "\"shared\":{\"frames\":[");
	for (uint32_t i = 0; i < w->frames.nnodes; i++) {
		struct node_info info;

		buf_puts(w->out, i ? ",\n" : "");
		frames_info(&w->frames, w->r->p, i, &info);
		put_frame(w, &info);
	}
	buf_puts(w->out, "]},\n");
}

static void put_profiles(struct scope_writer *w)
{
	uint32_t n = w->r->p->ntypes, value = w->r->params->value;

	if (n > MAX_TYPES) {
		buf_puts(w->out, "\"activeProfileIndex\":0,\n\"profiles\":[");
		put_profile(w, value);
	} else {
		buf_printf(w->out, "\"activeProfileIndex\":%u,\n\"profiles\":[", value);
		for (uint32_t i = 0; i < n; i++) {
			buf_puts(w->out, i ? ",\n" : "");
			put_profile(w, i);
		}
	}
	buf_puts(w->out, "]}\n");
}

static bool run(struct buf *out, struct report_run *r, struct err *e)
{
	const struct profile *p = r->p;
	struct scope_writer w = { .out = out, .r = r };

	(void)e;
	frames_init(r->a, &w.frames, p, &r->params->keep, false);
	buf_puts(out, "{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\n"
		      "\"exporter\":\"kiln\",");
	if (p->nmappings && p->mappings[0].file) {
		put_text(out, "name", path_base(profile_str(p, p->mappings[0].file)));
		buf_char(out, ',');
	}
	buf_char(out, '\n');
	put_frames(&w);
	put_profiles(&w);
	return true;
}

const struct report report_speedscope = {
	.name = "speedscope",
	.flags = REPORT_BINARY | REPORT_FILES | REPORT_PATHS,
	.extension = "speedscope.json",
	.run = run,
};
