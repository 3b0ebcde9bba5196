#include "server/scrape.h"

#include <stdio.h>

#include "base/json.h"
#include "base/path.h"
#include "base/small_file.h"
#include "collect/collect.h"
#include "server/gate.h"
#include "server/limits.h"
#include "server/log.h"
#include "server/metrics.h"

enum {
	MAX_FILE_BYTES = 1 << 20,
	MEMORY_PER_BODY_BYTE = 2, /* as the buffer grows */
	WAIT_MS = 2000,		  /* for memory */
	MEMORY_PARTS = 16,	  /* of which a profile has one at most, as it is sent */
};

/* ---- what comes */

/* Waits, so that a target that sends a great deal at once costs others no more than time. Those
 * that send slowly hold what they have for long, and all of them together have to leave most of the
 * memory to requests. */
static bool take(void *ctx, size_t bytes, const atomic_bool *stop)
{
	struct limits *l = ((struct server *)ctx)->limits;
	uint64_t amount = (uint64_t)bytes * MEMORY_PER_BODY_BYTE;

	if (limits_is_short(l) || !budget_take(&l->scrapes, amount, WAIT_MS, stop))
		return false;
	if (budget_take(&l->memory, amount, WAIT_MS, stop))
		return true;
	budget_give(&l->scrapes, amount);
	return false;
}

static void give(void *ctx, size_t bytes)
{
	struct limits *l = ((struct server *)ctx)->limits;
	uint64_t amount = (uint64_t)bytes * MEMORY_PER_BODY_BYTE;

	budget_give(&l->memory, amount);
	budget_give(&l->scrapes, amount);
}

/* One that came without a request, on its way through the gate that requests go through. Refusals
 * are listed with those of clients, by the target's address. */
struct delivery {
	const struct collected *p;
	struct call call;
	struct http_reply reply;
	struct visit visit;
	struct held_desk held;
	struct store_meta meta;
	bool is_empty;
};

static const struct route scrape_route = { "scrape", "", ROLE_WRITE, NULL, "" };

static void begin(struct delivery *d, struct server *s, const struct collected *p)
{
	struct http_call *http = http_call_new(s->http);
	struct buf what = { 0 };

	*d = (struct delivery){ .p = p,
				.call = { .server = s, .http = http, .arena = &http->arena },
				.visit = { .route = &scrape_route,
					   .role = ROLE_WRITE,
					   .is_checked = true,
					   .who = STR(""),
					   .rest = STR("") },
				.held = { .desks = &s->desks } };
	d->call.reply = &d->reply;
	d->call.who = STR("");
	buf_printf(&what, "%.*s %.*s", STR_ARG(p->job), STR_ARG(p->type));
	http->user = &d->visit;
	http->method = str_of(scrape_route.method);
	http->target.path = str_of(str_dup(&http->arena, buf_view(&what)));
	http->peer = str_dup(&http->arena, p->instance);
	http->abandoned = p->stop;
	buf_release(&what);
}

static void end(struct delivery *d)
{
	desk_let_go(&d->held);
	http_content_drop(d->reply.content);
	budget_give(&d->call.server->limits->memory, d->visit.memory);
	http_call_free(d->call.http);
}

static bool read_profile(struct delivery *d, struct profile *profile)
{
	struct call *c = &d->call;
	struct err e;

	d->held.desk = desk_take(d->held.desks);
	if (!gate_read_profile(c, d->p->bytes, &d->held.desk->arena, &d->held.desk->strings,
			       profile))
		return false;
	if (!collect_check_type(profile, d->p->type, &e)) {
		reply_failure(c, &e);
		return false;
	}
	d->is_empty = !profile->nsamples;
	return !d->is_empty;
}

/* A trace is no profile: it is kept as it came, as if it had been pushed. */
static bool read_bytes(struct delivery *d, struct store_new *new, struct profile *profile)
{
	if (!str_eq(new->type, STR("trace"))) {
		new->profile = profile;
		return read_profile(d, profile);
	}
	new->bytes = d->p->bytes;
	d->is_empty = !new->bytes.n;
	return !d->is_empty;
}

/* False: it has been answered, or is empty. Which process it is of is left to its [vdso]: a target
 * that began anew is another one at the same address. */
static bool deliver(struct delivery *d)
{
	const struct collected *p = d->p;
	struct call *c = &d->call;
	struct store_label *labels = arena_many(c->arena, p->nlabels, struct store_label);
	struct profile profile;
	struct store_new new = { .service = p->service,
				 .type = p->type,
				 .labels = labels,
				 .nlabels = p->nlabels,
				 .created = p->started,
				 .let_go = desk_let_go,
				 .ctx = &d->held };
	struct err e;

	c->service = p->service;
	for (size_t i = 0; i < p->nlabels; i++)
		labels[i] = (struct store_label){ p->labels[i].name, p->labels[i].value };
	if (!gate_labels_fit(c->server->options, &new, &e)) {
		reply_failure(c, &e);
		return false;
	}
	if (!read_bytes(d, &new, &profile))
		return false;
	if (store_put(c->server->store, &new, c->arena, &d->meta, &e))
		return true;
	if (e.kind == ERR_IO)
		log_error("a profile of %.*s is not stored: %s", STR_ARG(p->service), e.text);
	reply_failure(c, &e);
	return false;
}

/* What the answer would have said to a client. Limits of one profile are the target's matter, those
 * of all of them are not. */
static enum collect_result judge(const struct delivery *d, struct err *e)
{
	struct json answer = { 0 };
	const struct json *text;
	struct err ignored;

	if (d->is_empty) {
		err_set(e, ERR_NOTFOUND, "the profile has no samples, and is not stored");
		return COLLECT_EMPTY;
	}
	text = d->reply.content && json_parse(d->call.arena, http_content_bytes(d->reply.content),
					      &answer, &ignored)
		       ? json_member(&answer, "error")
		       : NULL;
	err_set(e, ERR_FORMAT, "%.*s", STR_ARG(text ? text->text : STR("it is refused")));
	return d->reply.status == 429 || d->reply.status >= 500 ? COLLECT_REFUSED : COLLECT_WRONG;
}

static enum collect_result put(void *ctx, const struct collected *p, char id[COLLECT_ID_BYTES],
			       struct err *e)
{
	enum collect_result result = COLLECT_OK;
	struct buf text = { 0 };
	struct delivery d;

	begin(&d, ctx, p);
	if (deliver(&d)) {
		store_id_print(&text, &d.meta.id);
		snprintf(id, COLLECT_ID_BYTES, "%.*s", STR_ARG(buf_view(&text)));
		buf_release(&text);
	} else {
		result = judge(&d, e);
	}
	end(&d);
	return result;
}

static void count(void *ctx, struct str job, enum collect_result r, double late_s)
{
	struct server *s = ctx;
	struct str labels[] = { job, str_of(collect_result_name(r)) };

	metrics_add(s->metrics, METRIC_SCRAPES, 1, labels);
	metrics_add(s->metrics, METRIC_SCRAPE_DURATION, late_s, labels);
}

static void log_collected(void *ctx, const char *line)
{
	(void)ctx;
	log_info("%s", line);
}

/* ---- jobs */

bool scrape_read_config(const struct server_options *o, struct scrape_config *out, struct err *e)
{
	struct buf text = { 0 }, dir = { 0 };
	bool ok;

	*out = (struct scrape_config){ 0 };
	if (!*o->config)
		return true;
	path_dir(&dir, str_of(o->config));
	buf_char(&dir, '\0');
	ok = small_file_read(&text, o->config, MAX_FILE_BYTES, e) &&
	     (scrape_config_read(out, buf_view(&text), dir.p, e) || err_wrap(e, "%s", o->config));
	buf_release(&text);
	buf_release(&dir);
	return ok;
}

/* Nobody has announced how large a profile will be: those that send without an end must leave
 * memory to others. */
static size_t max_bytes(const struct server *s)
{
	uint64_t part = s->limits->memory.total / MEMORY_PARTS;
	uint64_t max_body = (uint64_t)s->options->max_body;

	return (size_t)(part < max_body ? part : max_body);
}

void scrape_open(struct server *s)
{
	struct collector_params params = { .sink = { .ctx = s,
						     .take = take,
						     .give = give,
						     .put = put,
						     .count = count,
						     .log = log_collected },
					   .max_bytes = max_bytes(s),
					   .max_at_once = (unsigned)s->options->max_scrapes };

	s->collector = collector_new(&params);
}

void scrape_start(struct server *s, struct scrape_config *config)
{
	if (config->njobs)
		log_info("scrapes targets of %zu job%s", config->njobs,
			 config->njobs == 1 ? "" : "s");
	collector_set_jobs(s->collector, config);
}

static void set_targets(struct server *s, const struct job_view *j, bool is_there)
{
	const struct {
		struct str state;
		size_t n;
	} states[] = { { STR("up"), j->nup }, { STR("down"), j->ndown }, { STR("new"), j->nnew } };

	for (size_t i = 0; i < sizeof(states) / sizeof(*states); i++) {
		struct str labels[] = { str_of(j->name), states[i].state };

		metrics_set(s->metrics, METRIC_SCRAPE_TARGETS, is_there ? (double)states[i].n : 0,
			    labels);
	}
}

void scrape_measure(struct server *s)
{
	struct arena a = { 0 };
	struct job_view *jobs;
	size_t n;

	pthread_mutex_lock(&s->scrape_lock);
	collector_view(s->collector, NULL, &a, &jobs, &n);
	for (size_t i = 0; i < n; i++)
		set_targets(s, &jobs[i], true);
	pthread_mutex_unlock(&s->scrape_lock);
	arena_release(&a);
}

/* Whoever measures does so before, and is overruled, or after, and knows nothing of them. */
static void forget_jobs(struct server *s, const struct job_view *jobs, size_t n)
{
	pthread_mutex_lock(&s->scrape_lock);
	for (size_t i = 0; i < n; i++)
		set_targets(s, &jobs[i], false);
	pthread_mutex_unlock(&s->scrape_lock);
}

void scrape_reload(struct server *s)
{
	struct scrape_config config;
	struct arena a = { 0 };
	struct job_view *old;
	struct err e;
	size_t nold;

	if (!*s->options->config)
		return;
	if (!scrape_read_config(s->options, &config, &e)) {
		log_error("the scrape jobs stay as they were: %s", e.text);
		return;
	}
	log_info("the scrape jobs have been read again: %zu", config.njobs);
	collector_view(s->collector, NULL, &a, &old, &nold);
	collector_set_jobs(s->collector, &config);
	forget_jobs(s, old, nold);
	scrape_measure(s); /* of those that stay */
	arena_release(&a);
}
