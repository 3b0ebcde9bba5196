/* about.c - what pages say of a profile. */
#include "web/profiles.h"

#include <time.h>

#include "base/path.h"
#include "web/site.h"

static void put_text(struct buf *out, const char *name, struct str value)
{
	buf_printf(out, ",\"%s\":", name);
	json_put(out, value);
}

static void put_types(struct buf *out, const struct profile *p)
{
	buf_puts(out, ",\"types\":[");
	for (uint32_t i = 0; i < p->ntypes; i++) {
		buf_puts(out, i ? ",{\"type\":" : "{\"type\":");
		json_put(out, profile_str(p, p->types[i].type));
		put_text(out, "unit", profile_str(p, p->types[i].unit));
		buf_char(out, '}');
	}
	buf_char(out, ']');
}

/* The one that is shown unless asked for another. */
static struct str default_type(const struct profile *p, const struct analyze_options *o)
{
	uint32_t index;
	struct err ignored;

	if (!p->ntypes || !profile_sample_index(p, o->sample_index, &index, &ignored))
		return STR("");
	return profile_str(p, p->types[index].type);
}

static void put_times(struct buf *out, const struct profile *p)
{
	time_t seconds = (time_t)(p->time_nanos / 1000000000);
	char text[100] = "";
	struct tm tm;

	if (p->time_nanos && localtime_r(&seconds, &tm))
		strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S %Z", &tm);
	put_text(out, "time", str_of(text));
	buf_printf(out, ",\"time_nanos\":%lld,\"duration_nanos\":%lld,\"period\":%lld",
		   (long long)p->time_nanos, (long long)p->duration_nanos, (long long)p->period);
	put_text(out, "period_type", profile_str(p, p->period_type.type));
	put_text(out, "period_unit", profile_str(p, p->period_type.unit));
}

static void put_comments(struct buf *out, const struct profile *p)
{
	buf_puts(out, ",\"comments\":[");
	for (uint32_t i = 0; i < p->ncomments; i++) {
		buf_puts(out, i ? "," : "");
		json_put(out, profile_str(p, p->comments[i]));
	}
	buf_char(out, ']');
}

static void put_missing(struct buf *out, const struct loaded *l)
{
	struct str rest = buf_view(&l->missing);

	buf_puts(out, ",\"missing\":[");
	for (bool more = false; rest.n; more = true) {
		buf_puts(out, more ? "," : "");
		json_put(out, str_cut(&rest, '\n'));
	}
	buf_char(out, ']');
}

static bool has_labels(const struct profile *p)
{
	for (uint32_t i = 0; i < p->nlabel_sets; i++)
		if (p->label_sets[i].nstrings + p->label_sets[i].nnumbers)
			return true;
	return false;
}

/* Of samples with times: how many, and from the first to the last. */
static void put_ticks(struct buf *out, const struct profile_times *t)
{
	if (t)
		buf_printf(out, ",\"ticks\":%zu,\"span_nanos\":%lld", t->n,
			   (long long)int_distance(t->ticks[0].at, t->ticks[t->n - 1].at));
}

void loaded_describe(struct loaded *l, const struct analyze_options *o)
{
	struct buf *out = &l->about;
	const struct profile *p = &l->session.profile;
	struct str file = p->nmappings ? profile_str(p, p->mappings[0].file) : STR("");

	if (l->key) {
		buf_puts(out, "{\"id\":");
		json_put(out, str_of(l->key));
	} else {
		buf_printf(out, "{\"id\":%u", l->id);
	}
	put_text(out, "name", str_of(l->name));
	put_text(out, "file", file.n ? path_base(file) : file);
	put_text(out, "build_id", p->nmappings ? profile_str(p, p->mappings[0].build_id) : STR(""));
	put_types(out, p);
	put_text(out, "default_type", default_type(p, o));
	put_times(out, p);
	buf_printf(out, ",\"samples\":%u", p->nsamples);
	put_comments(out, p);
	put_text(out, "doc_url", profile_str(p, p->doc_url));
	put_missing(out, l);
	buf_printf(out, ",\"has_unnamed\":%s", l->named.threads ? "true" : "false");
	buf_printf(out, ",\"has_labels\":%s", has_labels(p) ? "true" : "false");
	put_ticks(out, p->times);
	buf_char(out, '}');
}
