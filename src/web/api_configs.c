/* api_configs.c - saved settings: what there is, and changes to it. */
#include "web/settings.h"
#include "web/site.h"

static void put_config(struct buf *out, const struct setting *s)
{
	struct analyze_options o = s->options;
	struct buf query = { 0 };

	buf_puts(out, "{\"name\":");
	json_put(out, str_of(s->name));
	url_put_options(&query, &o, ANALYZE_SAVED);
	buf_puts(out, ",\"query\":");
	json_put(out, buf_view(&query));
	buf_char(out, '}');
	buf_release(&query);
}

void api_put_configs(struct buf *out, struct api_call *q)
{
	struct settings s = { 0 };
	struct err e;
	bool ok = true;

	if (q->site->settings_path) {
		pthread_mutex_lock(&q->site->settings);
		ok = settings_read(&s, q->site->settings_path, &e);
		pthread_mutex_unlock(&q->site->settings);
	}
	buf_puts(out, "\"configs\":[");
	for (size_t i = 0; i < s.all.n; i++) {
		buf_puts(out, i ? "," : "");
		put_config(out, &s.all.at[i]);
	}
	buf_puts(out, "],\"configs_error\":");
	json_put(out, ok ? STR("") : str_of(e.text));
	settings_release(&s);
}

bool api_configs(struct api_call *q, struct buf *out, struct err *e)
{
	(void)e;
	buf_char(out, '{');
	api_put_configs(out, q);
	buf_puts(out, "}\n");
	return true;
}

/* Reads, changes and writes. */
static bool change(struct api_call *q,
		   bool (*apply)(struct settings *s, struct api_call *q, struct str name,
				 struct err *e),
		   struct err *e)
{
	struct str name = api_param(q, "config");
	struct settings s = { 0 };
	bool ok;

	if (!name.n || memchr(name.p, '\0', name.n))
		return err_set(e, ERR_USAGE, "invalid config name");
	pthread_mutex_lock(&q->site->settings);
	ok = settings_read(&s, q->site->settings_path, e) && apply(&s, q, name, e) &&
	     settings_write(&s, q->site->settings_path, e);
	pthread_mutex_unlock(&q->site->settings);
	settings_release(&s);
	return ok;
}

static bool put(struct settings *s, struct api_call *q, struct str name, struct err *e)
{
	(void)e;
	settings_put(s, name, &q->options);
	return true;
}

static bool take_out(struct settings *s, struct api_call *q, struct str name, struct err *e)
{
	(void)q;
	return settings_remove(s, name) ||
	       err_set(e, ERR_NOTFOUND, "config %.*s not found", STR_ARG(name));
}

bool api_save_config(struct api_call *q, struct buf *out, struct err *e)
{
	return change(q, put, e) && api_configs(q, out, e);
}

bool api_delete_config(struct api_call *q, struct buf *out, struct err *e)
{
	return change(q, take_out, e) && api_configs(q, out, e);
}
