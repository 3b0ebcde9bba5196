/* api1_targets.c - what is scraped and how that goes, and profiles at somebody's wish. */
#include "server/api1.h"

#include "collect/collect.h"
#include "server/gate.h"
#include "server/log.h"

enum { VIEW_FACTOR = 3 }; /* memory for a view, and the text of it as it grows */

/* ---- targets */

static void put_text(struct buf *out, const char *name, const char *text)
{
	buf_printf(out, ",\"%s\":", name);
	json_put(out, str_of(text));
}

static void put_type(struct buf *out, const struct type_view *t)
{
	buf_puts(out, "{\"type\":");
	json_put(out, str_of(t->type));
	put_text(out, "state", t->state);
	put_text(out, "problem", t->problem);
	json_time(out, "last", t->last);
	json_time(out, "next", t->next);
	buf_puts(out, ",\"duration\":");
	json_number(out, t->duration_s);
	buf_printf(out, ",\"ok\":%llu,\"failed\":%llu}", (unsigned long long)t->nok,
		   (unsigned long long)t->nfailed);
}

static void put_labels(struct buf *out, const struct target_label *labels, size_t n)
{
	buf_puts(out, ",\"labels\":[");
	for (size_t i = 0; i < n; i++) {
		buf_puts(out, i ? ",{\"key\":" : "{\"key\":");
		json_put(out, labels[i].name);
		buf_puts(out, ",\"value\":");
		json_put(out, labels[i].value);
		buf_char(out, '}');
	}
	buf_char(out, ']');
}

static void put_target(struct buf *out, const struct target_view *t)
{
	buf_puts(out, "{\"target\":");
	json_put(out, t->address);
	buf_puts(out, ",\"service\":");
	json_put(out, t->service);
	put_labels(out, t->labels, t->nlabels);
	put_text(out, "state", t->state);
	put_text(out, "problem", t->problem);
	json_time(out, "since", t->since);
	json_time(out, "last", t->last);
	buf_puts(out, ",\"profiles\":[");
	for (size_t i = 0; i < t->ntypes; i++) {
		if (i)
			buf_char(out, ',');
		put_type(out, &t->types[i]);
	}
	buf_puts(out, "]}");
}

static void put_faults(struct buf *out, const struct job_view *j)
{
	buf_puts(out, ",\"left_out\":[");
	for (size_t i = 0; i < j->nfaults; i++) {
		if (i)
			buf_char(out, ',');
		json_put(out, str_of(j->faults[i]));
	}
	buf_printf(out, "],\"more_left_out\":%zu", j->nmore_faults);
}

static void put_job(struct request *q, struct buf *out, const struct job_view *j)
{
	buf_puts(out, "{\"job\":");
	json_put(out, str_of(j->name));
	put_text(out, "problem", j->problem);
	put_faults(out, j);
	buf_puts(out, ",\"interval\":");
	json_number(out, (double)j->interval / 1e9);
	buf_printf(out, ",\"replicas\":%lld,\"up\":%zu,\"down\":%zu,\"new\":%zu,\"targets\":[",
		   (long long)j->replicas, j->nup, j->ndown, j->nnew);
	for (size_t i = 0; i < j->ntargets && !stop_asked_at(q->stop, i); i++) {
		buf_puts(out, i ? ",\n" : "\n");
		put_target(out, &j->targets[i]);
	}
	buf_puts(out, "]}");
}

static struct str wanted(const struct request *q, const char *name)
{
	return request_param(q, name)->is_set ? request_text(q, name) : (struct str){ 0 };
}

static bool run_targets(struct request *q, struct buf *out, struct err *e)
{
	struct collector *c = q->c->server->collector;
	struct target_filter filter = { .job = wanted(q, "job"),
					.service = wanted(q, "service"),
					.state = wanted(q, "state") };
	struct job_view *jobs;
	size_t n;

	(void)e;
	if (!gate_take(q->c, collector_view_bytes(c, &filter) * VIEW_FACTOR))
		return false;
	collector_view(c, &filter, q->a, &jobs, &n);
	buf_puts(out, "{\"jobs\":[");
	for (size_t i = 0; i < n; i++) {
		if (i)
			buf_char(out, ',');
		put_job(q, out, &jobs[i]);
	}
	buf_puts(out, "]}\n");
	return true;
}

/* ---- profile now */

static void put_capture(struct buf *out, const struct capture *x)
{
	static const char *const states[] = { "waiting", "running", "done", "empty", "failed" };

	buf_printf(out, "{\"id\":\"%s\"", x->id);
	put_text(out, "state", states[x->state]);
	put_text(out, "service", x->service);
	put_text(out, "target", x->target);
	put_text(out, "type", x->type);
	buf_printf(out, ",\"seconds\":%lld,\"left\":", (long long)x->seconds);
	json_number(out, (double)(x->left_ns / 1000000) / 1e3);
	json_time(out, "created", x->created);
	json_time(out, "started", x->started);
	json_time(out, "ended", x->ended);
	buf_puts(out, ",\"profile\":");
	if (*x->profile)
		json_put(out, str_of(x->profile));
	else
		buf_puts(out, "null");
	put_text(out, "problem", x->why);
	buf_puts(out, "}\n");
}

static bool run_capture(struct request *q, struct buf *out, struct err *e)
{
	struct capture_request r = { .service = request_text(q, "service"),
				     .target = request_text(q, "target"),
				     .type = request_text(q, "type"),
				     .seconds = request_int(q, "seconds") };
	struct capture x;

	if (!r.service.n && !r.target.n)
		return err_set(e, ERR_USAGE, "service or target is missing");
	if (!collector_capture(q->c->server->collector, &r, &x, e))
		return false;
	log_info("%.*s takes a profile: %s of %s at %s",
		 STR_ARG(q->c->who.n ? q->c->who : STR("somebody")), x.type, x.service, x.target);
	put_capture(out, &x);
	return true;
}

static bool run_capture_state(struct request *q, struct buf *out, struct err *e)
{
	struct str id = request_text(q, "id");
	struct capture x;

	if (!collector_find_capture(q->c->server->collector, id, &x))
		return err_set(e, ERR_NOTFOUND, "there is no capture \"%.*s\", or it was long ago",
			       STR_ARG(id));
	put_capture(out, &x);
	return true;
}

static const struct param targets_params[] = {
	{ .name = "job", .kind = PARAM_TEXT, .help = "Only this job." },
	{ .name = "service", .kind = PARAM_TEXT, .help = "Only targets of this service." },
	{ .name = "state",
	  .kind = PARAM_CHOICE,
	  .choices = "new up down",
	  .help = "Only targets in this state." },
};
static const struct param capture_params[] = {
	{ .name = "service",
	  .kind = PARAM_TEXT,
	  .help = "Of any target of this service that is up." },
	{ .name = "target", .kind = PARAM_TEXT, .help = "Of this target: host:port." },
	{ .name = "type",
	  .kind = PARAM_TEXT,
	  .initial = "cpu",
	  .help = "Which profile: one of its job, or cpu, heap, goroutine, mutex, block, allocs, "
		  "threads, threadcreate or wall." },
	{ .name = "seconds",
	  .kind = PARAM_INT,
	  .min = 1,
	  .max = 600,
	  .help = "For how long, of cpu and wall; others are there at once. If it is not given, as "
		  "its "
		  "job has it, or 10." },
};
static const struct param capture_state_params[] = {
	{ .name = "id",
	  .kind = PARAM_TEXT,
	  .flags = IS_PATH,
	  .help = "As the answer to POST /api/1/capture has it." },
};

const struct endpoint endpoint_targets = {
	.path = "/api/1/targets",
	.details = "The jobs of scrape: in the configuration file, and all of their targets. A "
		   "target is up if any of its profiles could be had the last time, down if none "
		   "could, and new until that is known. A profile is running, resting (another "
		   "replica is taken in this interval), absent (the target has no such profile; "
		   "it is asked again later), ok or failing.",
	ENDPOINT_PARAMS(targets_params),
	.answer = "Targets",
	.run = run_targets,
};
const struct endpoint endpoint_capture = {
	.path = "/api/1/capture",
	.details = "Profile now: takes a profile of a target, which must be one of those that are "
		   "scraped, and stores it like any other. Answers at once; GET "
		   "/api/1/capture/ID tells how far it is. A CPU profile waits for one of the "
		   "same process that is under way. Parameters may also be sent as a form.",
	ENDPOINT_PARAMS(capture_params),
	.answer = "Capture",
	.run = run_capture,
};
const struct endpoint endpoint_capture_state = {
	.path = "/api/1/capture/*",
	.details = "How far a capture is: waiting, running, done (profile is its id), empty (it "
		   "had no samples, so nothing was stored) or failed (problem says why). The last "
		   "200 are known.",
	ENDPOINT_PARAMS(capture_state_params),
	.answer = "Capture",
	.run = run_capture_state,
};
