#include "server/intake.h"

#include "server/gate.h"
#include "server/log.h"
#include "server/metrics.h"

/* Small profiles take more memory here than in the request. */
enum { MAX_PROFILES = 10000 };

void intake_series_release(struct intake_series *s)
{
	vec_release(&s->labels);
}

void intake_label(struct intake_series *s, struct str key, struct str value)
{
	bool is_private = str_has_prefix(key, STR("__")) && str_has_suffix(key, STR("__"));

	if (str_eq(key, STR("__session_id__")))
		s->instance = value;
	if (key.n && !is_private)
		vec_push(&s->labels, (struct store_label){ key, value });
}

struct str intake_find_label(const struct intake_series *s, struct str key)
{
	for (size_t i = 0; i < s->labels.n; i++)
		if (str_eq(s->labels.at[i].key, key))
			return s->labels.at[i].value;
	return STR("");
}

bool intake_is_type(struct str type)
{
	for (size_t i = 0; i < type.n; i++)
		if ((unsigned char)type.p[i] < ' ')
			return false;
	return type.n && !str_eq(type, STR("unknown"));
}

bool intake_from_json(struct call *c, const struct wire_message *m, struct str *message)
{
	struct buf wire = { 0 };
	struct err e;
	bool ok;

	if (!gate_take(c, 2 * (uint64_t)message->n)) /* a buffer that grows */
		return false;
	ok = wire_from_json(&wire, m, *message, &e);
	if (!ok)
		reply_error(c, 400, "%s", e.text);
	*message = buf_view(&wire);
	arena_adopt(c->arena, wire.p);
	return ok;
}

void intake_begin(struct intake *in, struct call *c)
{
	*in = (struct intake){ .c = c,
			       .batch = store_batch_new(c->server->store),
			       .held = gate_held(c) };
	intake_clear_desk(in);
}

void intake_clear_desk(struct intake *in)
{
	struct desks *desks = &in->c->server->desks;

	if (in->desk)
		desk_put_back(desks, in->desk);
	gate_give_to(in->c, in->held);
	in->desk = desk_take(desks);
}

bool intake_read(struct intake *in, struct str bytes, struct profile *p)
{
	intake_clear_desk(in);
	return gate_read_profile(in->c, bytes, &in->desk->arena, &in->desk->strings, p);
}

bool intake_offer(struct intake *in, const struct intake_series *s, const struct profile *p,
		  struct err *e)
{
	struct store_new new = { .service = s->service,
				 .type = s->type,
				 .labels = s->labels.at,
				 .nlabels = s->labels.n,
				 .instance = s->instance,
				 .profile = p };

	if (!s->service.n)
		return err_set(e, ERR_USAGE, "it names no service");
	if (!intake_is_type(s->type))
		return err_set(e, ERR_USAGE, "it names no type of profile");
	if (!gate_labels_fit(in->c->server->options, &new, e))
		return false;
	if (!p->nsamples) {
		in->nempty++;
		return true;
	}
	if (in->nprofiles == MAX_PROFILES)
		return err_set(e, ERR_LIMIT,
			       "request-profiles: more than %d profiles in one request; send fewer",
			       MAX_PROFILES);
	if (!store_batch_add(in->batch, &new, e))
		return false;
	in->nprofiles++;
	return true;
}

static bool fail(struct intake *in, const struct err *e)
{
	if (e->kind == ERR_IO)
		log_error("profiles are not stored: %s", e->text);
	reply_failure(in->c, e);
	return false;
}

bool intake_add(struct intake *in, const struct intake_series *s, const struct profile *p)
{
	struct err e;

	return intake_offer(in, s, p, &e) || fail(in, &e);
}

static void count(const struct intake *in)
{
	const struct visit *v = in->c->http->user;
	struct str path = str_of(v->route->path);

	if (in->nprofiles)
		metrics_add(in->c->server->metrics, METRIC_PUSHED, (double)in->nprofiles, &path);
	if (in->nempty)
		metrics_add(in->c->server->metrics, METRIC_EMPTY, (double)in->nempty, &path);
	if (in->nprofiles > 1)
		gate_take_profiles(in->c, in->nprofiles - 1);
}

bool intake_end(struct intake *in, bool ok)
{
	struct err e;

	desk_put_back(&in->c->server->desks, in->desk);
	in->c->part = NULL;
	if (in->nprofiles > 1)
		in->c->service = STR(""); /* all of them are stored, or none */
	ok = ok && (store_batch_commit(in->batch, &e) || fail(in, &e));
	store_batch_free(in->batch);
	if (ok)
		count(in);
	return ok;
}
