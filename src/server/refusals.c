#include "server/refusals.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/arena.h"
#include "base/escape.h"
#include "base/number.h"

enum {
	NLATEST = 200,
	NTOTALS = 64,
	NSERVICES = 500,
	NREASONS = 8, /* of a service */
	LOG_EVERY_NS = 1000000000
};

/* Cut to size, as clients may have chosen it. */
struct text {
	char at[160];
	unsigned char n;
};

struct latest {
	int64_t time;
	int status;
	struct text limit, client, who, what, why;
};

struct total {
	struct text limit;
	uint64_t n, nlogged;
	int64_t first, last, logged;
};

struct reason {
	struct text name; /* the last one has all that find no room */
	uint64_t n;
};

struct of_service {
	struct text name, why;
	uint64_t n;
	int64_t first, last;
	struct reason reasons[NREASONS];
	size_t nreasons;
};

struct refusals {
	pthread_mutex_t lock;
	void (*log)(void *ctx, const char *line);
	void *ctx;
	struct latest latest[NLATEST]; /* a ring */
	uint64_t n;
	struct total totals[NTOTALS]; /* the last one has all that find no room */
	size_t ntotals;
	struct of_service services[NSERVICES]; /* the first one has all that find no room */
	size_t nservices;
};

struct refusals *refusals_new(void (*log)(void *ctx, const char *line), void *ctx)
{
	struct refusals *r = xcalloc(1, sizeof(*r));

	pthread_mutex_init(&r->lock, NULL);
	r->log = log;
	r->ctx = ctx;
	return r;
}

void refusals_free(struct refusals *r)
{
	if (!r)
		return;
	pthread_mutex_destroy(&r->lock);
	free(r);
}

static struct text text_of(struct str s)
{
	struct text t = { .n = (unsigned char)(s.n < sizeof(t.at) ? s.n : sizeof(t.at)) };

	if (t.n)
		memcpy(t.at, s.p, t.n);
	return t;
}

static struct str view(const struct text *t)
{
	return (struct str){ t->at, t->n };
}

static struct total *find_total(struct refusals *r, struct str limit, int64_t now)
{
	struct total *t = r->totals;

	for (size_t i = 0; i < r->ntotals; i++)
		if (str_eq(view(&r->totals[i].limit), limit))
			return &r->totals[i];
	if (r->ntotals == NTOTALS)
		return &r->totals[NTOTALS - 1];
	t += r->ntotals++;
	t->limit = text_of(r->ntotals == NTOTALS ? STR("other") : limit);
	t->first = now;
	return t;
}

static void log_refusal(struct refusals *r, struct total *t, const struct refusal *x, int64_t now)
{
	struct buf line = { 0 };

	if (!r->log || (t->nlogged && now - t->logged < LOG_EVERY_NS))
		return;
	buf_printf(&line, "refused limit=%.*s status=%d client=%.*s", STR_ARG(x->limit), x->status,
		   STR_ARG(x->client));
	if (x->who.n) {
		buf_puts(&line, " who=");
		quote_go(&line, x->who);
	}
	buf_puts(&line, " what=");
	quote_go(&line, x->what);
	buf_puts(&line, " why=");
	quote_go(&line, x->why);
	if (t->n - t->nlogged > 1)
		buf_printf(&line, " not_logged=%llu", (unsigned long long)(t->n - t->nlogged - 1));
	buf_char(&line, '\0');
	r->log(r->ctx, line.p);
	buf_release(&line);
	t->nlogged = t->n;
	t->logged = now;
}

void refusals_add(struct refusals *r, const struct refusal *x, int64_t now)
{
	struct total *t;

	pthread_mutex_lock(&r->lock);
	t = find_total(r, x->limit, now);
	t->n++;
	t->last = now;
	r->latest[r->n++ % NLATEST] = (struct latest){ now,
						       x->status,
						       text_of(x->limit),
						       text_of(x->client),
						       text_of(x->who),
						       text_of(x->what),
						       text_of(x->why) };
	log_refusal(r, t, x, now);
	pthread_mutex_unlock(&r->lock);
}

/* ---- of services */

static struct of_service *find_service(struct refusals *r, struct str name)
{
	if (!r->nservices)
		r->nservices = 1;
	/* A name that is cut would be another's. */
	if (name.n > sizeof(r->services[0].name.at))
		return &r->services[0];
	for (size_t i = 1; i < r->nservices; i++)
		if (str_eq(view(&r->services[i].name), name))
			return &r->services[i];
	if (r->nservices == NSERVICES)
		return &r->services[0];
	r->services[r->nservices].name = text_of(name);
	return &r->services[r->nservices++];
}

static void count_reason(struct of_service *s, struct str reason)
{
	size_t i = 0;

	while (i < s->nreasons && !str_eq(view(&s->reasons[i].name), reason))
		i++;
	if (i == NREASONS)
		i--;
	else if (i == s->nreasons)
		s->reasons[s->nreasons++].name = text_of(i + 1 == NREASONS ? STR("other") : reason);
	s->reasons[i].n++;
}

void refusals_add_service(struct refusals *r, struct str service, struct str reason, struct str why,
			  int64_t now)
{
	struct of_service *s;

	pthread_mutex_lock(&r->lock);
	s = find_service(r, service);
	if (!s->n++)
		s->first = now;
	s->last = now;
	s->why = text_of(why);
	count_reason(s, reason);
	pthread_mutex_unlock(&r->lock);
}

/* ---- JSON */

static void put_time(struct buf *out, const char *name, int64_t ns)
{
	time_t seconds = (time_t)(ns / 1000000000);
	struct tm tm;
	char text[40];

	gmtime_r(&seconds, &tm);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
	buf_printf(out, "\"%s\":\"%s\"", name, text);
}

static void put_text(struct buf *out, const char *name, const struct text *t)
{
	buf_printf(out, ",\"%s\":\"", name);
	escape_json(out, view(t));
	buf_char(out, '"');
}

static void put_total(struct buf *out, const struct total *t)
{
	buf_puts(out, "{\"limit\":\"");
	escape_json(out, view(&t->limit));
	buf_printf(out, "\",\"count\":%llu,", (unsigned long long)t->n);
	put_time(out, "first", t->first);
	buf_char(out, ',');
	put_time(out, "last", t->last);
	buf_char(out, '}');
}

static void put_latest(struct buf *out, const struct latest *l)
{
	buf_char(out, '{');
	put_time(out, "time", l->time);
	put_text(out, "limit", &l->limit);
	buf_printf(out, ",\"status\":%d", l->status);
	put_text(out, "client", &l->client);
	put_text(out, "who", &l->who);
	put_text(out, "what", &l->what);
	put_text(out, "why", &l->why);
	buf_char(out, '}');
}

static void put_service(struct buf *out, const struct of_service *s, bool is_rest)
{
	buf_puts(out, "{\"service\":");
	if (is_rest)
		buf_puts(out, "null");
	else
		json_put(out, view(&s->name));
	buf_printf(out, ",\"count\":%llu,", (unsigned long long)s->n);
	put_time(out, "first", s->first);
	buf_char(out, ',');
	put_time(out, "last", s->last);
	put_text(out, "why", &s->why);
	buf_puts(out, ",\"reasons\":[");
	for (size_t i = 0; i < s->nreasons; i++) {
		buf_puts(out, i ? ",{\"reason\":" : "{\"reason\":");
		json_put(out, view(&s->reasons[i].name));
		buf_printf(out, ",\"count\":%llu}", (unsigned long long)s->reasons[i].n);
	}
	buf_puts(out, "]}");
}

static void put_services(struct buf *out, const struct refusals *r)
{
	bool more = false;

	buf_puts(out, ",\"services\":[");
	for (size_t i = 0; i < r->nservices; i++) {
		if (!r->services[i].n)
			continue;
		buf_puts(out, more ? ",\n" : "\n");
		put_service(out, &r->services[i], i == 0);
		more = true;
	}
	buf_char(out, ']');
}

void refusals_json(struct buf *out, struct refusals *r)
{
	uint64_t n;

	pthread_mutex_lock(&r->lock);
	n = r->n < NLATEST ? r->n : NLATEST;
	buf_puts(out, "{\"totals\":[");
	for (size_t i = 0; i < r->ntotals; i++) {
		if (i)
			buf_char(out, ',');
		put_total(out, &r->totals[i]);
	}
	buf_puts(out, "],\"latest\":[");
	for (uint64_t i = 0; i < n; i++) {
		if (i)
			buf_char(out, ',');
		put_latest(out, &r->latest[(r->n - 1 - i) % NLATEST]);
	}
	buf_char(out, ']');
	put_services(out, r);
	buf_char(out, '}');
	pthread_mutex_unlock(&r->lock);
}
