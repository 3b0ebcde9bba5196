/* api0_put.c - profefe's API: profiles come in. */
#include "server/api0.h"
#include "server/gate.h"
#include "server/intake.h"
#include "server/log.h"

static bool check_series(struct call *c, const struct store_new *new)
{
	struct err e;

	if (!intake_is_type(new->type))
		reply_error(c, 400, "bad request: unknown profile type");
	else if (!gate_labels_fit(c->server->options, new, &e))
		reply_failure(c, &e);
	return !c->reply->status;
}

static bool read_body(struct call *c, struct arena *a, struct strings *strings, struct profile *p)
{
	if (!gate_read_profile(c, c->http->body, a, strings, p))
		return false;
	if (!p->nsamples)
		reply_error(c, 400,
			    "malformed profile (could not parse pprof profile: the profile has no "
			    "samples)");
	return p->nsamples > 0;
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
	struct held_desk held = { .desks = &c->server->desks };

	if (!api0_read_series(c, &series))
		return;
	new.service = c->service = series.service;
	/* kube-profefe and kiln's agent say which process it is; profefe does not listen. */
	new.instance = http_target_param(&c->http->target, "instance_id");
	new.type = series.type;
	new.labels = series.labels;
	new.nlabels = series.nlabels;
	if (!check_series(c, &new) || !api0_read_created(c, &new.created))
		return;
	if (str_eq(series.type, STR("trace"))) {
		new.bytes = c->http->body;
		put(c, &new);
		return;
	}
	new.profile = &profile;
	new.let_go = desk_let_go;
	new.ctx = &held;
	held.desk = desk_take(held.desks);
	if (read_body(c, &held.desk->arena, &held.desk->strings, &profile))
		put(c, &new);
	desk_let_go(&held);
}
