#include "server/webhook.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/version.h"
#include "base/wait.h"
#include "http/client.h"
#include "server/log.h"

enum {
	TIMEOUT_MS = 10000,
	MAX_ANSWER = 64 << 10, /* nobody reads it */
	FIRST_MS = 1000,
	LONGEST_MS = 300000,
	GIVE_UP_MS = 3600000
};

/* What is told together. */
struct batch {
	char ids[WEBHOOK_MAX_IDS][17];
	size_t n;
	unsigned nfailures;
	int64_t due_ms; /* when it is tried next, by clock_now_ms() */
};

struct webhook {
	const char *url;
	struct findings *findings;
	struct metrics *metrics;
	struct http_client *client;
	pthread_t thread;
	bool has_thread;
	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t wake;
	struct batch *waiting[WEBHOOK_MAX_WAITING]; /* in the order in which they came */
	size_t nwaiting;
	bool is_sending; /* one more, which may have to wait again */
	atomic_bool is_stopping;
};

int64_t webhook_pause_ms(unsigned nfailures)
{
	int64_t pause = FIRST_MS, sum = 0;

	for (unsigned i = 0; i < nfailures; i++) {
		sum += pause;
		if (sum > GIVE_UP_MS)
			return -1;
		if (i + 1 < nfailures)
			pause = pause * 2 < LONGEST_MS ? pause * 2 : LONGEST_MS;
	}
	return nfailures ? pause : 0;
}

bool webhook_check_url(const char *url, struct err *e)
{
	struct str rest = str_of(url);

	if (!rest.n)
		return true;
	if (str_has_prefix(rest, STR("http://")))
		rest = str_from(rest, 7);
	else if (str_has_prefix(rest, STR("https://")))
		rest = str_from(rest, 8);
	else
		return err_set(e, ERR_USAGE,
			       "\"%s\" is no URL to call: it must begin with http:// or https://",
			       url);
	for (size_t i = 0; i < rest.n; i++)
		if ((unsigned char)rest.p[i] <= ' ')
			return err_set(e, ERR_USAGE, "\"%s\" has a blank in it", url);
	return (rest.n && rest.p[0] != '/') || err_set(e, ERR_USAGE, "\"%s\" names no server", url);
}

/* ---- states */

static void set_state(struct webhook *w, const struct batch *b, struct str state)
{
	struct err e;

	for (size_t i = 0; i < b->n; i++)
		findings_set_webhook(w->findings, str_of(b->ids[i]), state);
	if (!findings_save(w->findings, &e))
		log_error("regressions cannot be saved: %s", e.text);
}

static void count(struct webhook *w, enum metric which, double n)
{
	metrics_add(w->metrics, which, n, NULL);
}

static void give_up(struct webhook *w, const struct batch *b, const char *why)
{
	log_error("the webhook was not told of %zu regressions: %s", b->n, why);
	count(w, METRIC_WEBHOOK_GIVEN_UP, (double)b->n);
	set_state(w, b, STR("failed"));
}

/* ---- sending */

static void put_body(struct webhook *w, const struct batch *b, struct buf *body)
{
	struct arena a = { 0 };

	buf_puts(body, "{\"event\":\"regressions\",\"server\":\"kiln " KILN_VERSION
		       "\",\"regressions\":[");
	for (size_t i = 0, n = 0; i < b->n; i++) {
		struct finding x;

		if (!findings_get(w->findings, str_of(b->ids[i]), &a, &x))
			continue;
		buf_puts(body, n++ ? ",\n" : "\n");
		finding_json(body, &x);
	}
	buf_puts(body, "\n]}\n");
	arena_release(&a);
}

enum outcome { ARRIVED, TRY_AGAIN, REFUSED };

/* What an answer means; of none the status is 0, and `e` says why. Nobody reads its body: whether
 * all of it came does not matter. */
static enum outcome outcome_of(const struct http_response *r, struct err *e)
{
	static const char elsewhere[] =
		", and is not followed elsewhere: --webhook must be the URL "
		"that takes them";

	if (!r->status)
		return TRY_AGAIN;
	err_set(e, ERR_IO, "it answers %.*s%s", STR_ARG(buf_view(&r->status_text)),
		r->status / 100 == 3 ? elsewhere : "");
	switch (r->status / 100) {
	case 2:
		return ARRIVED;
	case 3:
		return REFUSED;
	case 4:
		return r->status == 408 || r->status == 429 ? TRY_AGAIN : REFUSED;
	default:
		return TRY_AGAIN;
	}
}

static enum outcome call(struct webhook *w, const struct batch *b, struct err *e)
{
	static const char *const headers[] = { "Content-Type: application/json",
					       "User-Agent: kiln/" KILN_VERSION };
	struct http_response r = { 0 };
	struct buf body = { 0 };
	enum outcome outcome;

	put_body(w, b, &body);
	http_send(w->client,
		  &(struct http_request){ .url = w->url,
					  .headers = headers,
					  .nheaders = 2,
					  .body = buf_view(&body),
					  .timeout_ms = TIMEOUT_MS,
					  .max_bytes = MAX_ANSWER,
					  .canceled = &w->is_stopping,
					  .is_final = true },
		  &r, e);
	outcome = outcome_of(&r, e);
	http_response_release(&r);
	buf_release(&body);
	return outcome;
}

/* False: it is to be tried again. */
static bool send_batch(struct webhook *w, struct batch *b)
{
	int64_t pause = webhook_pause_ms(++b->nfailures);
	enum outcome outcome;
	struct err e;

	set_state(w, b, STR("sending"));
	outcome = call(w, b, &e);
	if (outcome == ARRIVED) {
		count(w, METRIC_WEBHOOK_SENT, (double)b->n);
		set_state(w, b, STR("sent"));
		return true;
	}
	count(w, METRIC_WEBHOOK_FAILURES, 1);
	if (outcome == REFUSED || pause < 0) {
		give_up(w, b, e.text);
		return true;
	}
	/* What was not answered may have arrived; whoever stops now tries it again. */
	set_state(w, b, STR("queued"));
	if (b->nfailures == 1)
		log_error("the webhook cannot be told of %zu regressions, and is tried again: %s",
			  b->n, e.text);
	b->due_ms = clock_now_ms() + pause;
	return false;
}

/* ---- the queue */

/* The one to be tried first, which may be later. Under the lock. */
static size_t first_due(const struct webhook *w)
{
	size_t first = 0;

	for (size_t i = 1; i < w->nwaiting; i++)
		if (w->waiting[i]->due_ms < w->waiting[first]->due_ms)
			first = i;
	return first;
}

/* NULL: it is to end. */
static struct batch *next(struct webhook *w)
{
	struct batch *b = NULL;

	pthread_mutex_lock(&w->lock);
	while (!b && !atomic_load(&w->is_stopping)) {
		size_t first = first_due(w);
		int64_t wait = LONGEST_MS;

		if (w->nwaiting)
			wait = w->waiting[first]->due_ms - clock_now_ms();
		if (wait > 0) {
			wait_for_ms(&w->wake, &w->lock, (int)wait);
			continue;
		}
		b = w->waiting[first];
		memmove(&w->waiting[first], &w->waiting[first + 1],
			(--w->nwaiting - first) * sizeof(struct batch *));
		w->is_sending = true;
	}
	pthread_mutex_unlock(&w->lock);
	return b;
}

/* One that fails waits, and keeps no other from being sent. */
static void *run(void *ctx)
{
	struct webhook *w = ctx;
	struct batch *b;

	while ((b = next(w))) {
		bool is_done = send_batch(w, b);

		pthread_mutex_lock(&w->lock);
		w->is_sending = false;
		if (!is_done)
			w->waiting[w->nwaiting++] = b;
		pthread_mutex_unlock(&w->lock);
		if (is_done)
			free(b);
	}
	return NULL;
}

void webhook_send(struct webhook *w, char (*ids)[17], size_t n)
{
	struct batch *b;
	bool has_room;

	if (!w || !n)
		return;
	b = xcalloc(1, sizeof(*b));
	b->n = n < WEBHOOK_MAX_IDS ? n : WEBHOOK_MAX_IDS;
	memcpy(b->ids, ids, b->n * sizeof(*ids));
	set_state(w, b, STR("queued"));
	pthread_mutex_lock(&w->lock);
	has_room = w->nwaiting + w->is_sending < WEBHOOK_MAX_WAITING;
	if (has_room && w->has_thread)
		w->waiting[w->nwaiting++] = b;
	pthread_cond_signal(&w->wake);
	pthread_mutex_unlock(&w->lock);
	if (!has_room)
		give_up(w, b, "too many wait to be sent");
	if (!has_room || !w->has_thread)
		free(b);
}

/* ---- starting */

/* What waited when the server stopped. */
static void send_left(struct webhook *w)
{
	struct arena a = { 0 };
	struct finding *list;
	struct batch b = { .n = 0 };
	size_t n;

	findings_list(w->findings, &a, &list, &n);
	for (size_t i = 0; i < n; i++) {
		if (!str_eq(list[i].webhook, STR("queued")) || list[i].id.n != 16)
			continue;
		memcpy(b.ids[b.n++], list[i].id.p, 16);
		if (b.n == WEBHOOK_MAX_IDS) {
			webhook_send(w, b.ids, b.n);
			b.n = 0;
		}
	}
	webhook_send(w, b.ids, b.n);
	arena_release(&a);
}

struct webhook *webhook_start(const char *url, struct findings *findings, struct metrics *metrics)
{
	static const struct http_tls tls;
	struct webhook *w;

	if (!*url)
		return NULL;
	w = xcalloc(1, sizeof(*w));
	w->url = url;
	w->findings = findings;
	w->metrics = metrics;
	w->client = http_client_new(&tls);
	pthread_mutex_init(&w->lock, NULL);
	pthread_cond_init(&w->wake, NULL);
	w->has_thread = pthread_create(&w->thread, NULL, run, w) == 0;
	if (!w->has_thread)
		log_error("there is no thread for the webhook: it is told after the next start");
	send_left(w);
	return w;
}

void webhook_stop(struct webhook *w)
{
	if (!w)
		return;
	pthread_mutex_lock(&w->lock);
	atomic_store(&w->is_stopping, true);
	pthread_cond_signal(&w->wake);
	pthread_mutex_unlock(&w->lock);
	if (w->has_thread)
		pthread_join(w->thread, NULL);
	for (size_t i = 0; i < w->nwaiting; i++)
		free(w->waiting[i]);
	pthread_mutex_destroy(&w->lock);
	pthread_cond_destroy(&w->wake);
	http_client_free(w->client);
	free(w);
}
