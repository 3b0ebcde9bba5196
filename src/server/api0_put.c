/* api0_put.c - profefe's API: profiles come in. */
#include "server/api0.h"
#include "server/log.h"
#include "server/routes.h"

#define MAX_UNPACKED_BYTES ((size_t)512 << 20)

/* Any name will do; without one nobody could tell what it is. */
static bool check_type(struct call *c, struct str type)
{
	bool ok = type.n && !str_eq(type, STR("unknown"));

	for (size_t i = 0; i < type.n; i++)
		ok = ok && (unsigned char)type.p[i] >= ' ';
	if (!ok)
		reply_error(c, 400, "bad request: unknown profile type");
	return ok;
}

static bool read_body(struct call *c, struct arena *a, struct strings *strings, struct profile *p)
{
	struct err e;

	if (profile_read(p, a, strings, c->http->body, MAX_UNPACKED_BYTES, &e) &&
	    (p->nsamples || err_set(&e, ERR_FORMAT, "the profile has no samples")))
		return true;
	reply_error(c, e.kind == ERR_LIMIT ? 413 : 400,
		    "malformed profile (could not parse pprof profile: %s)", e.text);
	return false;
}

static void put(struct call *c, const struct store_new *new)
{
	struct store_meta meta;
	struct buf out = { 0 };
	struct err e;

	if (!store_put(c->server->store, new, c->arena, &meta, &e)) {
		if (e.kind == ERR_IO) {
			log_error("a profile of %.*s is not stored: %s", STR_ARG(new->service),
				  e.text);
			err_wrap(&e, "failed to collect profile");
		}
		reply_failure(c, &e);
		return;
	}
	buf_puts(&out, "{\"code\":200,\"body\":");
	api0_put_meta(&out, &meta);
	buf_puts(&out, "}\n");
	reply_json(c, 200, &out);
}

void api0_put(struct call *c)
{
	struct api0_series series;
	struct store_new new = { 0 };
	struct profile profile;
	struct strings strings;
	struct arena a = { 0 };

	if (!api0_read_series(c, &series) || !check_type(c, series.type) ||
	    !api0_read_created(c, &new.created))
		return;
	new.service = series.service;
	new.type = series.type;
	new.labels = series.labels;
	new.nlabels = series.nlabels;
	if (str_eq(series.type, STR("trace"))) {
		new.bytes = c->http->body;
		put(c, &new);
		return;
	}
	new.profile = &profile;
	strings_init(&strings);
	if (read_body(c, &a, &strings, &profile))
		put(c, &new);
	strings_release(&strings);
	arena_release(&a);
}
