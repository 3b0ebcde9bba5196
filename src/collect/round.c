#include "collect/round.h"

#include <pthread.h>
#include <time.h>

#include "base/parallel.h"
#include "base/vec.h"
#include "base/wait.h"
#include "collect/answer.h"
#include "collect/schedule.h"
#include "http/client.h"

enum {
	FIRST_PAUSE_MS = 500,
	MAX_PAUSE_MS = 10000,
	TURN_MS = 100, /* how soon a pause ends after it is canceled */
	MAX_UNPACKED = 1 << 29,
	SERVER_ERROR = 500,
};

struct round {
	const struct round_params *params;
	pthread_mutex_t lock; /* of params->tell */
	vec(size_t) groups;   /* their first targets */
};

/* Targets of one name, by one worker. */
struct visit {
	struct round *round;
	const struct round_target *target;
	int64_t deadline_ms;
	bool is_unreachable; /* it did not answer the last time: one try is enough */
	uint64_t random;
};

bool round_get(struct http_client *client, const struct round_request *q, struct http_response *r,
	       struct err *e)
{
	const char *headers[] = { "Connection: close", q->target->authorization };
	struct http_request request = { .headers = headers,
					.nheaders = q->target->authorization ? 2 : 1,
					.timeout_ms = q->timeout_ms,
					.max_bytes = q->max_bytes,
					.canceled = q->canceled,
					.is_direct = true };
	struct buf url = { 0 };
	bool ok;

	buf_printf(&url, "%s/%s%c", q->target->url, q->path, '\0');
	request.url = url.p;
	ok = http_send(client, &request, r, e);
	buf_release(&url);
	return ok;
}

/* ---- one try */

static bool is_canceled(const struct visit *v)
{
	return atomic_load(v->round->params->canceled);
}

/* Is it what was asked for, and is there anything in it? */
static enum collect_result check_profile(struct str bytes, const struct profile_type *type,
					 struct err *e)
{
	enum collect_result result = COLLECT_OK;
	struct arena a = { 0 };
	struct strings strings;
	struct profile p;

	if (strcmp(type->name, "trace") == 0) /* is no profile, and is not read */
		return COLLECT_OK;
	strings_init(&strings);
	if (!profile_read(&p, &a, &strings, bytes, MAX_UNPACKED, e)) {
		err_wrap(e, "the target's answer is no profile");
		result = COLLECT_WRONG;
	} else if (!collect_check_type(&p, str_of(type->name), e)) {
		result = COLLECT_WRONG;
	} else if (!p.nsamples) {
		err_set(e, ERR_NOTFOUND, "it has no samples");
		result = COLLECT_EMPTY;
	}
	strings_release(&strings);
	arena_release(&a);
	return result;
}

static enum collect_result hand_over(struct visit *v, struct round_result *out, struct str bytes,
				     int64_t started)
{
	const struct round_params *params = v->round->params;
	const struct round_target *t = v->target;
	struct collected p = { .service = t->service,
			       .type = str_of(out->type->name),
			       .instance = t->instance,
			       .labels = t->labels,
			       .nlabels = t->nlabels,
			       .started = started,
			       .bytes = bytes,
			       .stop = params->canceled };

	out->nbytes = bytes.n;
	return params->put(params->ctx, &p, out->id, &out->e);
}

static enum collect_result fail_get(const struct visit *v, struct err *e)
{
	if (is_canceled(v))
		return COLLECT_CANCELED;
	return e->kind == ERR_LIMIT ? COLLECT_WRONG : COLLECT_UNREACHABLE;
}

static int64_t wall_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * COLLECT_SECOND + t.tv_nsec;
}

/* Sets *is_passing if another try may help. */
static enum collect_result try_once(struct visit *v, struct round_result *out,
				    struct http_response *r, bool *is_passing)
{
	const struct round_params *params = v->round->params;
	const struct profile_type *type = out->type;
	int64_t left = v->deadline_ms - clock_now_ms(), started = wall_ns();
	struct buf path = { 0 };
	struct round_request q = { .target = v->target,
				   .timeout_ms = type->seconds * 1000 + params->timeout_ms,
				   .max_bytes = params->max_bytes,
				   .canceled = params->canceled };
	bool ok;

	*is_passing = true;
	if (left <= 0) {
		*is_passing = false;
		err_set(&out->e, ERR_LIMIT, "there was no time left for it");
		return COLLECT_UNREACHABLE;
	}
	if (q.timeout_ms > left)
		q.timeout_ms = left;
	buf_puts(&path, type->path);
	if (type->seconds)
		buf_printf(&path, "?seconds=%lld", (long long)type->seconds);
	buf_char(&path, '\0');
	q.path = path.p;
	ok = params->get ? params->get(params->ctx, &q, r, &out->e)
			 : round_get(params->client, &q, r, &out->e);
	buf_release(&path);
	if (!ok)
		return fail_get(v, &out->e);
	*is_passing = r->status >= SERVER_ERROR;
	if (r->status != 200)
		return answer_judge(r, &out->e);
	out->result = check_profile(buf_view(&r->body), type, &out->e);
	return out->result == COLLECT_OK ? hand_over(v, out, buf_view(&r->body), started)
					 : out->result;
}

/* ---- until it is there */

static void pause_for(struct visit *v, int64_t ms)
{
	int64_t until = clock_now_ms() + ms;

	while (!is_canceled(v) && clock_now_ms() < until && clock_now_ms() < v->deadline_ms)
		nanosleep(&(struct timespec){ .tv_nsec = TURN_MS * 1000000L }, NULL);
}

/* Of a profile that has come only the handing over is tried again, not the taking. */
static void take(struct visit *v, struct round_result *out)
{
	const struct round_params *params = v->round->params;
	unsigned max_tries = v->is_unreachable ? 1 : params->max_tries;
	struct http_response r = { 0 };
	bool is_passing = true;

	for (;;) {
		bool has_come = out->nbytes > 0;

		out->ntries++;
		out->result = has_come ? hand_over(v, out, buf_view(&r.body), wall_ns())
				       : try_once(v, out, &r, &is_passing);
		if (out->nbytes)
			is_passing = out->result == COLLECT_UNREACHABLE;
		if (!is_passing || is_canceled(v) || out->ntries >= max_tries)
			break;
		pause_for(v, schedule_backoff(FIRST_PAUSE_MS, out->ntries, MAX_PAUSE_MS,
					      random_next(&v->random)));
	}
	v->is_unreachable = out->result == COLLECT_UNREACHABLE && !out->nbytes;
	http_response_release(&r);
}

static void take_all(struct visit *v, const struct round_target *t)
{
	const struct round_params *params = v->round->params;

	v->target = t;
	v->is_unreachable = false;
	for (size_t i = 0; i < t->ntypes && !is_canceled(v); i++) {
		struct round_result result = { .target = t, .type = &t->types[i] };
		int64_t start = clock_now_ms();

		take(v, &result);
		result.took_ms = clock_now_ms() - start;
		pthread_mutex_lock(&v->round->lock);
		params->tell(params->ctx, &result);
		pthread_mutex_unlock(&v->round->lock);
	}
}

static void visit_group(void *ctx, size_t index)
{
	struct round *round = ctx;
	const struct round_params *params = round->params;
	size_t first = round->groups.at[index],
	       end = index + 1 < round->groups.n ? round->groups.at[index + 1] : params->ntargets;
	struct visit v = { .round = round,
			   .deadline_ms = clock_now_ms() + params->timeout_ms,
			   .random = (uint64_t)clock_now_ns() + index };

	for (size_t i = first; i < end; i++)
		for (size_t k = 0; k < params->targets[i].ntypes; k++)
			v.deadline_ms += params->targets[i].types[k].seconds * 1000;
	for (size_t i = first; i < end; i++)
		take_all(&v, &params->targets[i]);
}

void round_run(const struct round_params *params)
{
	const struct round_target *t = params->targets;
	struct round round = { .params = params };

	for (size_t i = 0; i < params->ntargets; i++)
		if (!i || strcmp(t[i].name, t[i - 1].name) != 0)
			vec_push(&round.groups, i);
	pthread_mutex_init(&round.lock, NULL);
	parallel_for((int)params->nworkers, round.groups.n, visit_group, &round);
	pthread_mutex_destroy(&round.lock);
	vec_release(&round.groups);
}
