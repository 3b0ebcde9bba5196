/* api_meta.c - what a page must know before it asks for anything else. */
#include "web/site.h"

#include <time.h>

#include "base/path.h"

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

void api_put_profile(struct buf *out, struct api_call *q, struct loaded *l)
{
	const struct profile *p = &l->session.profile;
	struct str file = p->nmappings ? profile_str(p, p->mappings[0].file) : STR("");

	buf_printf(out, "{\"id\":%u", l->id);
	put_text(out, "name", str_of(l->name));
	put_text(out, "file", file.n ? path_base(file) : file);
	put_types(out, p);
	put_text(out, "default_type", default_type(p, &q->site->params.c->options));
	put_times(out, p);
	buf_printf(out, ",\"samples\":%u", p->nsamples);
	put_comments(out, p);
	put_text(out, "doc_url", profile_str(p, p->doc_url));
	put_missing(out, l);
	buf_printf(out, ",\"has_labels\":%s}", has_labels(p) ? "true" : "false");
}

void api_put_profiles(struct buf *out, struct api_call *q)
{
	uint32_t ids[PROFILES_MAX];
	size_t n = profiles_list(&q->site->profiles, ids), written = 0;

	buf_puts(out, "\"profiles\":[");
	for (size_t i = 0; i < n; i++) {
		struct loaded *l = profiles_hold(&q->site->profiles, ids[i]);

		if (!l) /* closed since */
			continue;
		buf_puts(out, written++ ? "," : "");
		pthread_mutex_lock(&l->lock); /* reports add to its strings */
		api_put_profile(out, q, l);
		pthread_mutex_unlock(&l->lock);
		profiles_drop(&q->site->profiles, l);
	}
	buf_char(out, ']');
}

static const char *type_name(const struct option_def *d)
{
	static const char *const names[] = { [OPTION_BOOL] = "bool",
					     [OPTION_INT] = "int",
					     [OPTION_FLOAT] = "float",
					     [OPTION_STRING] = "string",
					     [OPTION_CHOICE] = "choice" };

	return names[d->type];
}

static void put_choices(struct buf *out, const struct option_table *t, const struct option_def *d)
{
	bool more = false;

	if (d->type != OPTION_CHOICE)
		return;
	buf_puts(out, ",\"choices\":[");
	for (size_t i = 0; i < t->nchoices; i++) {
		if (option_of_choice(t, &t->choices[i]) != d)
			continue;
		buf_puts(out, more ? "," : "");
		json_put(out, str_of(t->choices[i].name));
		more = true;
	}
	buf_char(out, ']');
}

static void put_options(struct buf *out, const struct site *site)
{
	const struct option_table *t = analyze_option_table();
	struct buf value = { 0 };
	bool more = false;

	buf_puts(out, ",\"options\":[");
	for (size_t i = 0; i < t->n; i++) {
		const struct option_def *d = &t->at[i];

		if (!*d->key)
			continue;
		buf_puts(out, more ? ",\n{\"name\":" : "{\"name\":");
		json_put(out, str_of(d->name));
		put_text(out, "key", str_of(d->key));
		put_text(out, "type", str_of(type_name(d)));
		value.n = 0;
		option_print(&value, t, d, &site->params.c->options);
		put_text(out, "initial", buf_view(&value));
		put_choices(out, t, d);
		put_text(out, "help", str_trim(str_of(d->help)));
		buf_char(out, '}');
		more = true;
	}
	buf_char(out, ']');
	buf_release(&value);
}

static void put_title(struct buf *out, struct api_call *q)
{
	struct loaded *l = profiles_hold(&q->site->profiles, 0);

	put_text(out, "title", str_of(l ? l->name : ""));
	profiles_drop(&q->site->profiles, l);
}

bool api_meta(struct api_call *q, struct buf *out, struct err *e)
{
	(void)e;
	buf_puts(out, "{\"version\":");
	json_put(out, str_of(q->site->params.version));
	put_text(out, "token", str_of(q->site->token));
	put_title(out, q);
	buf_char(out, ',');
	api_put_profiles(out, q);
	put_options(out, q->site);
	buf_char(out, ',');
	api_put_configs(out, q);
	buf_puts(out, "}\n");
	return true;
}
