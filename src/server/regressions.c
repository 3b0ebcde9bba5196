#include "server/regressions.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "base/map.h"
#include "base/vec.h"
#include "base/wait.h"
#include "base/when.h"
#include "server/limits.h"
#include "server/log.h"
#include "server/metrics.h"
#include "server/webhook.h"

#define SECOND INT64_C(1000000000)
#define HOUR (3600 * SECOND)
enum {
	NICE = 10,
	FIRST_PASS_S = 20, /* after the start, when there is other work */
	REST = 1,	   /* times what it worked */
	MAX_NAME = 4096,
	SHORT_S = 5,   /* memory is short: look again */
	STOP_MS = 100, /* whoever waits looks this often whether it is to end */
};

/* What there was when it was compared. */
struct seen {
	uint64_t nprofiles;
	int64_t last, end;
};

/* A service and type. */
struct subject {
	struct str service, type;
	char *text;
	struct seen seen[REGRESS_KINDS];
	uint32_t nusers; /* passes that are at it: it does not go */
	struct compared compared[REGRESS_KINDS];
	char *texts[REGRESS_KINDS]; /* strings of these */
	uint64_t pass;		    /* that saw it last */
};

struct regressions {
	struct server *server;
	struct findings *findings;
	struct webhook *webhook;
	pthread_t thread;
	bool has_thread;
	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t wake;
	bool is_comparing; /* one after the other */
	atomic_bool is_stopping;
	vec(struct subject *) subjects;
	struct map map;
	uint64_t seed, npasses;
	int64_t looked;
};

/* ---- subjects */

struct subject_key {
	const struct regressions *r;
	struct str service, type;
};

static bool same_subject(const void *ctx, uint32_t index)
{
	const struct subject_key *k = ctx;
	const struct subject *s = k->r->subjects.at[index];

	return str_eq(s->service, k->service) && str_eq(s->type, k->type);
}

/* Under the lock. */
static struct subject *subject_of(struct regressions *r, struct str service, struct str type)
{
	struct subject_key key = { r, service, type };
	uint64_t hash = hash_bytes(hash_bytes(r->seed, service.p, service.n), type.p, type.n);
	uint32_t i = map_put(&r->map, hash, r->subjects.n, same_subject, &key);

	if (i == r->subjects.n) {
		struct subject *s = xcalloc(1, sizeof(*s));

		s->text = xmalloc(service.n + type.n + 1);
		memcpy(s->text, service.p, service.n);
		memcpy(s->text + service.n, type.p, type.n);
		s->service = (struct str){ s->text, service.n };
		s->type = (struct str){ s->text + service.n, type.n };
		vec_push(&r->subjects, s);
	}
	return r->subjects.at[i];
}

static void subject_free(struct subject *s)
{
	for (int i = 0; i < REGRESS_KINDS; i++)
		free(s->texts[i]);
	free(s->text);
	free(s);
}

/* Services that are not there any more go. Under the lock. */
static void forget_gone(struct regressions *r)
{
	size_t left = 0;

	for (size_t i = 0; i < r->subjects.n; i++)
		if (r->subjects.at[i]->pass == r->npasses || r->subjects.at[i]->nusers)
			r->subjects.at[left++] = r->subjects.at[i];
		else
			subject_free(r->subjects.at[i]);
	if (left == r->subjects.n)
		return;
	r->subjects.n = 0;
	map_release(&r->map);
	r->map = (struct map){ 0 };
	for (size_t i = 0; i < left; i++) {
		struct subject *s = r->subjects.at[i];
		uint64_t hash = hash_bytes(hash_bytes(r->seed, s->service.p, s->service.n),
					   s->type.p, s->type.n);

		map_add(&r->map, hash, r->subjects.n++);
	}
}

/* ---- results */

static char *copy_texts(struct compared *c)
{
	struct str *texts[] = { &c->why, &c->old.version, &c->new.version };
	char *to = xmalloc(c->why.n + c->old.version.n + c->new.version.n + 1), *block = to;

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		if (texts[i]->n)
			memcpy(to, texts[i]->p, texts[i]->n);
		texts[i]->p = to;
		to += texts[i]->n;
	}
	return block;
}

static void note_compared(struct regressions *r, struct subject *s, const struct regress_params *p,
			  const struct regress *x)
{
	struct compared c = { .service = s->service,
			      .type = s->type,
			      .kind = p->kind,
			      .result = x->result,
			      .why = x->why,
			      .old = x->old,
			      .new = x->new,
			      .dispersion = x->dispersion,
			      .detectable = x->detectable,
			      .nfunctions = x->nfunctions,
			      .nfound = (uint32_t)x->n,
			      .nfaster = x->nfaster,
			      .at = p->now };
	const struct str result = str_of(regress_results[x->result]);
	bool has_failed;

	pthread_mutex_lock(&r->lock);
	has_failed = s->compared[p->kind].at && s->compared[p->kind].result == REGRESS_FAILED;
	free(s->texts[p->kind]);
	s->texts[p->kind] = copy_texts(&c);
	s->compared[p->kind] = c;
	pthread_mutex_unlock(&r->lock);
	if (x->result == REGRESS_FAILED && !has_failed)
		log_error("%.*s of %.*s cannot be compared: %.*s", STR_ARG(p->type),
			  STR_ARG(p->service), STR_ARG(x->why));
	metrics_add(r->server->metrics, METRIC_REGRESSION_COMPARISONS, 1, &result);
}

static struct finding finding_of(const struct regress_params *p, const struct regress *x,
				 const struct regress_finding *f)
{
	struct str name = f->function;

	if (name.n > MAX_NAME)
		name.n = MAX_NAME;
	return (struct finding){ .kind = str_of(regress_kinds[p->kind]),
				 .service = p->service,
				 .type = p->type,
				 .sample_type = x->sample_type,
				 .unit = x->unit,
				 .function = name,
				 .old_version = x->old.version,
				 .new_version = x->new.version,
				 .old_from = x->old.from,
				 .old_to = x->old.to,
				 .new_from = x->new.from,
				 .new_to = x->new.to,
				 .old_samples = f->old_samples,
				 .new_samples = f->new_samples,
				 .old_total = x->old.samples,
				 .new_total = x->new.samples,
				 .gauge = x->is_gauge,
				 .old_cores = f->old_cores,
				 .new_cores = f->new_cores,
				 .old_share = f->old_share,
				 .new_share = f->new_share,
				 .change = f->change,
				 .change_low = f->low,
				 .change_high = f->high,
				 .q = f->q,
				 .changed = f->changed };
}

/* A window that has the change from one version to the next finds what that comparison did. */
static bool is_known(struct regressions *r, const struct regress_params *p, const struct finding *x)
{
	return p->kind == REGRESS_WINDOWS &&
	       findings_has_version(r->findings, x->service, x->type, x->function, x->old_from);
}

static void tell(struct regressions *r, const struct regress_params *p, const struct finding *f,
		 const char *id)
{
	metrics_add(r->server->metrics, METRIC_REGRESSIONS_FOUND, 1, NULL);
	log_info("regression %s: %.*s of %.*s takes %.2f%% more of %.*s", id, STR_ARG(f->function),
		 STR_ARG(p->service), 100 * f->change, STR_ARG(p->type));
}

static void note_findings(struct regressions *r, const struct regress_params *p,
			  const struct regress *x)
{
	char ids[REGRESS_MAX_FINDINGS][17], new[WEBHOOK_MAX_IDS][17];
	size_t n = 0, nnew = 0;
	struct err e;

	for (size_t i = 0; i < x->n; i++) {
		struct finding f = finding_of(p, x, &x->findings[i]);

		if (is_known(r, p, &f))
			continue;
		if (findings_note(r->findings, &f, time_now(), p->now - p->window, ids[n])) {
			tell(r, p, &f, ids[n]);
			if (nnew < WEBHOOK_MAX_IDS)
				memcpy(new[nnew++], ids[n], sizeof(ids[n]));
		}
		n++;
	}
	if (x->result == REGRESS_COMPARED)
		findings_settle(r->findings, p->service, p->type, str_of(regress_kinds[p->kind]),
				ids, n);
	/* A pass may take long: what is new is kept at once. */
	if (nnew && !findings_save(r->findings, &e))
		log_error("regressions cannot be saved: %s", e.text);
	webhook_send(r->webhook, new, nnew);
}

/* ---- a pass */

struct pass {
	struct regressions *r;
	const atomic_bool *stop;
	bool is_asked; /* by somebody who waits */
	struct regress_params params;
	struct arena arena;
};

static int64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * SECOND + t.tv_nsec;
}

/* False: it is to end. */
static bool pause_for(struct regressions *r, int64_t ns)
{
	return wait_unless(&r->wake, &r->lock, &r->is_stopping, ns);
}

/* Waits for a comparison that is under way. */
static bool begin_comparing(struct pass *p, struct err *e)
{
	struct regressions *r = p->r;
	bool may;

	pthread_mutex_lock(&r->lock);
	while (r->is_comparing && !stop_asked(p->stop))
		wait_for_ms(&r->wake, &r->lock, STOP_MS);
	may = !stop_asked(p->stop);
	if (may)
		r->is_comparing = true;
	pthread_mutex_unlock(&r->lock);
	return may || err_set(e, ERR_IO, "nobody waits for it any more");
}

static void end_comparing(struct regressions *r)
{
	pthread_mutex_lock(&r->lock);
	r->is_comparing = false;
	pthread_cond_broadcast(&r->wake);
	pthread_mutex_unlock(&r->lock);
}

/* Of long windows the end is a whole hour: sums of hours are there, and nothing is done again
 * before another one is. */
static int64_t window_end(int64_t window, int64_t now)
{
	int64_t unit = window >= 24 * HOUR ? HOUR : window >= HOUR ? 60 * SECOND : SECOND;

	return now - now % unit;
}

/* Nothing new since it was compared: it would be the same. */
static bool is_new(const struct seen *s, const struct store_name *type,
		   const struct regress_params *p)
{
	/* Somebody asked since the whole hour that this would be of. */
	if (p->now < s->end && s->end <= time_now())
		return false;
	return s->nprofiles != type->nprofiles || s->last != type->last ||
	       window_end(p->window, s->end) != window_end(p->window, p->now);
}

/* While nothing else is compared. */
static bool compare_now(struct pass *p, struct subject *s, const struct store_name *type,
			struct err *e)
{
	struct seen *seen = &s->seen[p->params.kind];
	struct arena a = { 0 };
	struct regress x;
	bool ok;

	if (!is_new(seen, type, &p->params))
		return true;
	ok = regress_run(&a, &p->params, &x, e);
	if (ok) {
		note_findings(p->r, &p->params, &x);
		note_compared(p->r, s, &p->params, &x);
		*seen = (struct seen){ type->nprofiles, type->last, p->params.now };
	}
	arena_release(&a);
	return ok;
}

static bool compare_kind(struct pass *p, struct subject *s, const struct store_name *type,
			 struct err *e)
{
	int64_t began = cpu_ns();
	bool ok;

	while (!p->is_asked && limits_is_short(p->r->server->limits))
		if (!pause_for(p->r, SHORT_S * SECOND))
			break;
	if (!begin_comparing(p, e))
		return false;
	ok = compare_now(p, s, type, e);
	end_comparing(p->r);
	if (!p->is_asked)
		pause_for(p->r, (cpu_ns() - began) * REST);
	return ok;
}

static bool look_at(struct pass *p, struct str service, const struct store_name *type,
		    struct err *e)
{
	struct regressions *r = p->r;
	struct subject *s;
	bool ok = true;

	pthread_mutex_lock(&r->lock);
	s = subject_of(r, service, type->name);
	s->pass = r->npasses;
	s->nusers++;
	pthread_mutex_unlock(&r->lock);
	p->params.service = service;
	p->params.type = type->name;
	for (int kind = 0; ok && kind < REGRESS_KINDS; kind++) {
		p->params.kind = (enum regress_kind)kind;
		ok = compare_kind(p, s, type, e);
	}
	pthread_mutex_lock(&r->lock);
	s->nusers--;
	pthread_mutex_unlock(&r->lock);
	return ok;
}

static bool look_at_service(struct pass *p, struct str service, struct err *e)
{
	struct store_matcher matcher = { .name = STR("service"), .value = service };
	struct store_query q = { .matchers = &matcher,
				 .nmatchers = 1,
				 .from = p->params.now - p->params.window,
				 .to = p->params.now,
				 .stop = p->stop };
	struct store_name *types;
	size_t n;

	if (!store_names(p->params.store, &q, STR("type"), &p->arena, &types, &n, e))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!look_at(p, service, &types[i], e))
			return false;
	return true;
}

/* One that fails keeps no other from being compared. */
static bool look_at_all(struct pass *p, const struct store_name *services, size_t n, struct err *e)
{
	for (size_t i = 0; i < n; i++) {
		if (look_at_service(p, services[i].name, e))
			continue;
		if (stop_asked(p->stop))
			return false;
		log_error("%.*s cannot be compared: %s", STR_ARG(services[i].name), e->text);
	}
	return true;
}

static bool look(struct pass *p, struct str service, struct err *e)
{
	struct store_query all = { .from = p->params.now - p->params.window,
				   .to = p->params.now,
				   .stop = p->stop };
	struct store_name *services;
	size_t n;

	if (service.n)
		return look_at_service(p, service, e);
	pthread_mutex_lock(&p->r->lock);
	p->r->npasses++;
	pthread_mutex_unlock(&p->r->lock);
	if (!store_names(p->params.store, &all, STR("service"), &p->arena, &services, &n, e) ||
	    !look_at_all(p, services, n, e))
		return false;
	pthread_mutex_lock(&p->r->lock);
	forget_gone(p->r);
	p->r->looked = time_now();
	pthread_mutex_unlock(&p->r->lock);
	return true;
}

static bool run_pass(struct regressions *r, struct str service, const atomic_bool *stop,
		     bool is_asked, struct err *e)
{
	const struct server_options *o = r->server->options;
	struct pass p = { .r = r, .stop = stop, .is_asked = is_asked };
	int64_t began = time_now();
	bool ok;

	p.params = (struct regress_params){
		.store = r->server->store,
		.version_label = str_of(o->regression_version),
		.window = o->regression_window,
		.now = is_asked ? began : window_end(o->regression_window, began),
		.limits = { o->regression_share / 100, o->regression_cores },
		.stop = stop
	};
	ok = look(&p, service, e);
	ok = findings_save(r->findings, ok ? e : &(struct err){ 0 }) && ok;
	arena_release(&p.arena);
	metrics_add(r->server->metrics, METRIC_REGRESSION_PASS, (double)(time_now() - began) / 1e9,
		    NULL);
	return ok;
}

bool regressions_look(struct regressions *r, struct str service, const atomic_bool *stop,
		      struct err *e)
{
	return run_pass(r, service, stop, true, e);
}

static void *run(void *ctx)
{
	struct regressions *r = ctx;
	int64_t interval = r->server->options->regression_interval;
	struct err e;

	/* Of this thread alone, on Linux. */
	setpriority(PRIO_PROCESS, 0, NICE);
	if (!pause_for(r, interval < FIRST_PASS_S * SECOND ? interval : FIRST_PASS_S * SECOND))
		return NULL;
	do {
		if (!run_pass(r, STR(""), &r->is_stopping, false, &e) &&
		    !atomic_load(&r->is_stopping))
			log_error("looking for regressions has failed: %s", e.text);
	} while (pause_for(r, interval));
	return NULL;
}

/* ---- for others */

struct regressions *regressions_start(struct server *s)
{
	struct regressions *r = xcalloc(1, sizeof(*r));
	struct buf why = { 0 };

	r->server = s;
	r->seed = map_seed();
	r->findings = findings_open(s->options->data, &why);
	if (why.n)
		log_error("%.*s", STR_ARG(buf_view(&why)));
	buf_release(&why);
	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->wake, NULL);
	r->webhook = webhook_start(s->options->webhook, r->findings, s->metrics);
	if (s->options->regression_interval)
		r->has_thread = pthread_create(&r->thread, NULL, run, r) == 0;
	if (s->options->regression_interval && !r->has_thread)
		log_error("there is no thread to look for regressions");
	return r;
}

void regressions_halt(struct regressions *r)
{
	pthread_mutex_lock(&r->lock);
	atomic_store(&r->is_stopping, true);
	pthread_cond_broadcast(&r->wake);
	pthread_mutex_unlock(&r->lock);
}

void regressions_stop(struct regressions *r)
{
	struct err e;

	if (!r)
		return;
	regressions_halt(r);
	if (r->has_thread)
		pthread_join(r->thread, NULL);
	webhook_stop(r->webhook);
	if (!findings_save(r->findings, &e))
		log_error("regressions cannot be saved: %s", e.text);
	for (size_t i = 0; i < r->subjects.n; i++)
		subject_free(r->subjects.at[i]);
	vec_release(&r->subjects);
	map_release(&r->map);
	pthread_mutex_destroy(&r->lock);
	pthread_cond_destroy(&r->wake);
	findings_free(r->findings);
	free(r);
}

struct findings *regressions_findings(struct regressions *r)
{
	return r->findings;
}

int64_t regressions_looked(struct regressions *r)
{
	int64_t looked;

	pthread_mutex_lock(&r->lock);
	looked = r->looked;
	pthread_mutex_unlock(&r->lock);
	return looked;
}

static int by_name(const void *a, const void *b)
{
	const struct compared *x = a, *y = b;
	int c = str_cmp(x->service, y->service);

	c = c ? c : str_cmp(x->type, y->type);
	return c ? c : (int)x->kind - (int)y->kind;
}

static struct str copy(struct arena *a, struct str s)
{
	return (struct str){ str_dup(a, s), s.n };
}

void regressions_compared(struct regressions *r, struct arena *a, struct compared **list, size_t *n)
{
	vec(struct compared) all = { 0 };

	pthread_mutex_lock(&r->lock);
	for (size_t i = 0; i < r->subjects.n; i++)
		for (int kind = 0; kind < REGRESS_KINDS; kind++) {
			struct compared c = r->subjects.at[i]->compared[kind];

			if (!c.at)
				continue;
			c.service = copy(a, c.service);
			c.type = copy(a, c.type);
			c.why = copy(a, c.why);
			c.old.version = copy(a, c.old.version);
			c.new.version = copy(a, c.new.version);
			vec_push(&all, c);
		}
	pthread_mutex_unlock(&r->lock);
	*n = all.n;
	if (all.n)
		qsort(all.at, all.n, sizeof(*all.at), by_name);
	*list = vec_adopt(a, &all);
}
