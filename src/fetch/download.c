#include "fetch/download.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/unit.h"
#include "fetch/progress.h"
#include "fetch/remote.h"

enum {
	AT_ONCE = 128,
	STACK_BYTES = 256 << 10, /* enough for libcurl, and little for 128 of them */
};

struct download {
	struct downloads *all;
	struct http_response response;
	struct err failure;
	bool is_there, has_failed;
};

struct downloads {
	const struct fetch_params *params;
	const struct url_source *sources;
	pthread_mutex_t lock; /* of everything below */
	pthread_cond_t changed;
	struct download *at;
	size_t n, next;
	pthread_t threads[AT_ONCE];
	size_t nthreads;
	atomic_bool canceled;
};

static void tell(const struct fetch_params *params, const struct url_source *s)
{
	struct buf line = { 0 };

	if (!params->tell)
		return;
	buf_printf(&line, "Fetching profile over HTTP from %s\n", s->url);
	if (params->seconds > 0) {
		buf_puts(&line, "Please wait... (");
		duration_text(&line, s->seconds * 1000000000);
		buf_puts(&line, ")\n");
	}
	params->tell(params->tell_ctx, buf_view(&line));
	buf_release(&line);
}

static bool take_bytes(void *ctx, size_t bytes)
{
	struct download *one = ctx;
	const struct fetch_params *params = one->all->params;
	size_t held = atomic_fetch_add(&params->remote->held_bytes, bytes);

	if (held + bytes > params->max_bytes) {
		atomic_fetch_sub(&params->remote->held_bytes, bytes);
		return false;
	}
	fetch_progress_received(params->progress, bytes);
	return true;
}

static void fetch_one(struct downloads *d, size_t i)
{
	struct download *one = &d->at[i];
	const struct http_request q = { .url = d->sources[i].url,
					.timeout_ms = d->sources[i].timeout_ms,
					.max_bytes = d->params->max_bytes,
					.canceled = &d->canceled,
					.take = take_bytes,
					.take_ctx = one };

	fetch_progress_wait(d->params->progress, d->sources[i].seconds);
	if (!remote_send(d->params->remote, &q, &one->response, &one->failure)) {
		one->has_failed = true;
		fetch_progress_failed(d->params->progress);
	}
}

static void *run(void *arg)
{
	struct downloads *d = arg;

	pthread_mutex_lock(&d->lock);
	while (d->next < d->n && !atomic_load(&d->canceled)) {
		size_t i = d->next++;

		tell(d->params, &d->sources[i]);
		pthread_mutex_unlock(&d->lock);
		fetch_one(d, i);
		if (d->at[i].has_failed)
			download_drop(d, i);
		pthread_mutex_lock(&d->lock);
		d->at[i].is_there = true;
		pthread_cond_broadcast(&d->changed);
	}
	pthread_mutex_unlock(&d->lock);
	return NULL;
}

struct downloads *downloads_start(const struct fetch_params *params,
				  const struct url_source *sources, size_t n)
{
	struct downloads *d = xcalloc(1, sizeof(*d));
	pthread_attr_t attr;

	d->params = params;
	d->sources = sources;
	d->n = n;
	d->at = xcalloc(n ? n : 1, sizeof(*d->at));
	for (size_t i = 0; i < n; i++)
		d->at[i].all = d;
	pthread_mutex_init(&d->lock, NULL);
	pthread_cond_init(&d->changed, NULL);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	while (d->nthreads < n && d->nthreads < AT_ONCE &&
	       pthread_create(&d->threads[d->nthreads], &attr, run, d) == 0)
		d->nthreads++;
	pthread_attr_destroy(&attr);
	if (n && !d->nthreads)
		run(d); /* no thread to be had: one after the other, here */
	return d;
}

bool download_wait(struct downloads *d, size_t i, struct str *bytes, struct err *e)
{
	struct download *one = &d->at[i];

	pthread_mutex_lock(&d->lock);
	while (!one->is_there)
		pthread_cond_wait(&d->changed, &d->lock);
	pthread_mutex_unlock(&d->lock);
	if (one->has_failed) {
		*e = one->failure;
		return false;
	}
	*bytes = buf_view(&one->response.body);
	return true;
}

void download_drop(struct downloads *d, size_t i)
{
	atomic_fetch_sub(&d->params->remote->held_bytes, d->at[i].response.body.n);
	http_response_release(&d->at[i].response);
}

void downloads_free(struct downloads *d)
{
	atomic_store(&d->canceled, true);
	for (size_t i = 0; i < d->nthreads; i++)
		pthread_join(d->threads[i], NULL);
	for (size_t i = 0; i < d->n; i++)
		http_response_release(&d->at[i].response);
	pthread_cond_destroy(&d->changed);
	pthread_mutex_destroy(&d->lock);
	free(d->at);
	free(d);
}
