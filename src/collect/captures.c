/* captures.c - profile now: a profile of a target as soon as it can be had, at somebody's wish. */
#include <stdio.h>
#include <stdlib.h>

#include "collect/inside.h"

enum { MAX_CAPTURES = 200, MAX_UNDER_WAY = 16, MAX_SECONDS = 600 };

static struct capture *find(struct collector *c, struct str id)
{
	for (size_t i = 0; i < c->captures.n; i++)
		if (str_eq(str_of(c->captures.at[i].id), id))
			return &c->captures.at[i];
	return NULL;
}

/* ---- of what */

static const struct profile_type *type_of(const struct target *t, struct str name)
{
	for (size_t i = 0; i < t->tasks.n; i++)
		if (str_eq(str_of(t->tasks.at[i]->type.name), name))
			return &t->tasks.at[i]->type;
	return profile_type_find(name);
}

static bool is_wanted(const struct target *t, const struct capture_request *r)
{
	return (!r->service.n || str_eq(t->service, r->service)) &&
	       (!r->target.n || str_eq(t->address, r->target));
}

/* One by chance, of those that are up if there are any. */
static struct target *choose(struct collector *c, const struct capture_request *r)
{
	struct target *chosen = NULL;
	uint64_t n = 0;

	for (size_t i = 0; i < c->jobs.n; i++) {
		const struct job *j = c->jobs.at[i];

		for (size_t k = 0; k < j->targets.n; k++) {
			struct target *t = j->targets.at[k];
			bool is_up = t->state == TARGET_UP,
			     was_up = chosen && chosen->state == TARGET_UP;

			if (!is_wanted(t, r) || (was_up && !is_up))
				continue;
			if (is_up && !was_up)
				n = 0;
			if (random_next(&c->random) % ++n == 0)
				chosen = t;
		}
	}
	return chosen;
}

static bool check(const struct capture_request *r, const struct target *t,
		  struct profile_type *type, struct err *e)
{
	const struct profile_type *known = t ? type_of(t, r->type) : NULL;

	if (!t)
		return err_set(e, ERR_NOTFOUND,
			       "there is no such target among those that are scraped; "
			       "/api/1/targets lists them");
	if (!known || strlen(known->name) >= sizeof(((struct capture *)0)->type))
		return err_set(e, ERR_USAGE,
			       "type: neither its job nor kiln knows a profile \"%.*s\"",
			       STR_ARG(r->type));
	*type = *known;
	if (r->seconds && known->seconds) /* others are there at once */
		type->seconds = r->seconds;
	return type->seconds <= MAX_SECONDS ||
	       err_set(e, ERR_USAGE, "seconds: more than %d", MAX_SECONDS);
}

/* ---- the list */

static size_t count_under_way(const struct collector *c)
{
	size_t n = 0;

	for (size_t i = 0; i < c->captures.n; i++)
		n += c->captures.at[i].state <= CAPTURE_RUNNING;
	return n;
}

/* The oldest that is over makes room. */
static void make_room(struct collector *c)
{
	size_t i = 0;

	if (c->captures.n < MAX_CAPTURES)
		return;
	while (c->captures.at[i].state <= CAPTURE_RUNNING)
		i++;
	c->captures.n--;
	memmove(&c->captures.at[i], &c->captures.at[i + 1],
		(c->captures.n - i) * sizeof(*c->captures.at));
}

static void copy(char *to, size_t size, struct str from)
{
	snprintf(to, size, "%.*s", STR_ARG(from));
}

static void add(struct collector *c, const struct target *t, const struct profile_type *type,
		struct capture *x)
{
	*x = (struct capture){ .seconds = type->seconds, .created = wall_now() };
	snprintf(x->id, sizeof(x->id), "%016llx", (unsigned long long)random_next(&c->random));
	copy(x->service, sizeof(x->service), t->service);
	copy(x->target, sizeof(x->target), t->address);
	copy(x->type, sizeof(x->type), str_of(type->name));
	make_room(c);
	vec_push(&c->captures, *x);
}

/* ---- how far it is */

/* Does a capture wait for that one to end? */
static bool is_in_its_way(const struct shot *s, const struct capture *x)
{
	const struct profile_type *known = profile_type_find(str_of(x->type));

	return s->type.exclusive && str_eq(s->address, str_of(x->target)) &&
	       (strcmp(s->type.name, x->type) == 0 ||
		(known && known->exclusive && strcmp(s->type.exclusive, known->exclusive) == 0));
}

static void tell_reason(const struct collector *c, bool is_in_use, struct capture *x)
{
	if (is_in_use)
		snprintf(x->why, sizeof(x->why), "another %s profile of the target is being taken",
			 x->type);
	else
		copy(x->why, sizeof(x->why),
		     c->running.n >= c->params.max_at_once
			     ? STR("as many profiles are being taken as max-scrapes allows")
			     : STR("it is about to begin"));
}

/* What it has still to wait, and for what. */
static void tell_progress(const struct collector *c, struct capture *x)
{
	bool is_running = x->state == CAPTURE_RUNNING, is_found = false;
	int64_t end_ms = 0, now = clock_now_ms();

	if (x->state > CAPTURE_RUNNING)
		return;
	for (size_t i = 0; i < c->running.n; i++) {
		const struct shot *s = c->running.at[i];

		if (is_running ? !str_eq(s->capture, str_of(x->id)) : !is_in_its_way(s, x))
			continue;
		is_found = true;
		end_ms = s->started_ms + s->type.seconds * 1000;
	}
	x->left_ns = is_running ? 0 : x->seconds * COLLECT_SECOND;
	if (!is_running)
		tell_reason(c, is_found, x);
	if (end_ms > now)
		x->left_ns += (end_ms - now) * 1000000;
}

/* ---- starting and ending */

static void fail(struct capture *x, const char *why)
{
	x->state = CAPTURE_FAILED;
	x->ended = wall_now();
	copy(x->why, sizeof(x->why), str_of(why));
}

static void start(struct collector *c, struct capture *x)
{
	struct capture_request r = { .service = str_of(x->service),
				     .target = str_of(x->target),
				     .type = str_of(x->type) };
	struct target *t = choose(c, &r);
	const struct profile_type *known = t ? type_of(t, r.type) : NULL;
	struct profile_type type;
	struct shot *s;

	if (!known) {
		fail(x, "it is no target any more");
		return;
	}
	type = *known;
	type.seconds = x->seconds;
	if (!may_start(c, t, &type))
		return;
	s = shot_new(c, t, &type);
	s->capture = str_of(str_dup(&s->arena, str_of(x->id)));
	start_shot(c, s);
	x->state = CAPTURE_RUNNING;
	x->started = s->started;
}

void captures_start(struct collector *c)
{
	for (size_t i = 0; i < c->captures.n; i++)
		if (c->captures.at[i].state == CAPTURE_WAITING)
			start(c, &c->captures.at[i]);
}

void capture_done(struct collector *c, const struct shot *s)
{
	struct capture *x = find(c, s->capture);

	if (!x)
		return;
	if (s->result == COLLECT_OK || s->result == COLLECT_EMPTY) {
		x->state = s->result == COLLECT_OK ? CAPTURE_DONE : CAPTURE_EMPTY;
		x->ended = wall_now();
		memcpy(x->profile, s->id, sizeof(x->profile));
		copy(x->why, sizeof(x->why), s->result == COLLECT_OK ? STR("") : str_of(s->e.text));
	} else {
		fail(x, s->result == COLLECT_CANCELED ? "it was canceled" : s->e.text);
	}
}

bool collector_capture(struct collector *c, const struct capture_request *r, struct capture *out,
		       struct err *e)
{
	struct profile_type type = { 0 };
	const struct target *t;
	bool ok;

	pthread_mutex_lock(&c->lock);
	t = choose(c, r);
	ok = check(r, t, &type, e);
	if (ok && count_under_way(c) >= MAX_UNDER_WAY)
		ok = err_set(e, ERR_LIMIT,
			     "captures: %d are under way, and that is all there may be; try again",
			     MAX_UNDER_WAY);
	if (ok) {
		add(c, t, &type, out);
		tell_progress(c, out);
		pthread_cond_signal(&c->changed);
	}
	pthread_mutex_unlock(&c->lock);
	return ok;
}

bool collector_find_capture(struct collector *c, struct str id, struct capture *out)
{
	const struct capture *x;

	pthread_mutex_lock(&c->lock);
	x = find(c, id);
	if (x) {
		*out = *x;
		tell_progress(c, out);
	}
	pthread_mutex_unlock(&c->lock);
	return x;
}
