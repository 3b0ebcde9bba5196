/* api_meta.c - what a page must know before it asks for anything else. */
#include "web/site.h"

static void put_text(struct buf *out, const char *name, struct str value)
{
	buf_printf(out, ",\"%s\":", name);
	json_put(out, value);
}

/* Of a source that has many: those that are asked for. */
static void put_named(struct buf *out, const struct api_call *q)
{
	buf_puts(out, "\"profiles\":[");
	buf_str(out, buf_view(&q->profile->about));
	if (q->other) {
		buf_char(out, ',');
		buf_str(out, buf_view(&q->other->about));
	}
	buf_char(out, ']');
}

void api_put_profiles(struct buf *out, struct api_call *q)
{
	uint32_t ids[PROFILES_MAX];
	size_t n = profiles_list(&q->site->profiles, ids), written = 0;

	if (q->site->source.load) {
		put_named(out, q);
		return;
	}
	buf_puts(out, "\"profiles\":[");
	for (size_t i = 0; i < n; i++) {
		struct loaded *l = profiles_hold(&q->site->profiles, ids[i]);

		if (!l) /* closed since */
			continue;
		buf_puts(out, written++ ? "," : "");
		buf_str(out, buf_view(&l->about));
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

/* Addresses that open a page or an editor. Others could run what a profile says. */
#define SCHEMES                                                                                 \
	"http https vscode vscode-insiders vscodium cursor idea jetbrains zed subl txmt emacs " \
	"file"

bool source_url_check(const char *url, struct err *e)
{
	struct str rest = str_of(SCHEMES), after = str_of(url), scheme = str_cut(&after, ':');

	if (!*url)
		return true;
	while (rest.n)
		if (str_eq(str_cut(&rest, ' '), scheme) && after.n)
			return true;
	return err_set(e, ERR_USAGE,
		       "-source_url=%s: must begin with one of " SCHEMES " and a colon", url);
}

static void put_title(struct buf *out, struct api_call *q)
{
	struct loaded *l = profiles_hold(&q->site->profiles, 0);

	if (q->site->source.load)
		put_text(out, "title", str_of(q->profile->name));
	else
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
	put_text(out, "source_url", str_of(q->site->params.c->options.source_url));
	if (q->site->source.load) /* where profiles are chosen */
		put_text(out, "home", STR("../"));
	buf_char(out, ',');
	api_put_profiles(out, q);
	put_options(out, q->site);
	buf_puts(out, ",\"divide_by\":");
	json_put_number(out, q->site->params.c->options.divide_by);
	buf_char(out, ',');
	api_put_configs(out, q);
	buf_puts(out, "}\n");
	return true;
}
