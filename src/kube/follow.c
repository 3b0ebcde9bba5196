/* follow.c - pods as they come and go: a list, then a watch from where the list was. */
#include <pthread.h>
#include <stdlib.h>

#include "base/vec.h"
#include "base/wait.h"
#include "kube/inside.h"

enum {
	WATCH_SECONDS = 240, /* and up to half as much again, so that not all watches end at once */
	GRACE_MS = 30000,    /* that the server has to end it */
	SHORT_WATCH_MS = 5000,
	FIRST_PAUSE_MS = 250,
	LONGEST_PAUSE_MS = 30000,
	FAILURES_UNTIL_LIST = 3,
	MAX_EVENT_BYTES = 8 << 20,
	MAX_KEPT_BYTES = 64 << 20,
};

/* A pod that is kept, in one piece of memory. */
struct kept {
	struct pod_item item;
	size_t bytes;
	uint64_t round; /* of the list that had it last */
};

struct kube_follow {
	struct kube_client *k;
	struct kube_follow_params params;
	struct arena arena; /* of the query */
	pthread_t thread;
	bool has_thread;
	atomic_bool is_stopping;
	atomic_uint_fast64_t version;

	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t stopping;
	vec(struct kept *) pods; /* by namespace and name */
	size_t bytes, ndropped;
	bool is_synced;
	struct err problem;

	/* Of the thread alone. */
	struct buf since; /* the version to watch from; empty: list first */
	struct buf line;  /* of an event, as far as it has come */
	uint64_t round;
	size_t nrefused; /* in this round */
	unsigned nfailures;
	bool has_events;
	struct err wrong; /* with the watch */
};

/* ---- keeping a pod */

static size_t item_bytes(const struct pod_item *item)
{
	const struct kube_pod *p = &item->pod;
	size_t n = sizeof(struct kept) + item->version.n + p->namespace.n + p->name.n + p->uid.n +
		   p->ip.n + p->node.n + p->host_ip.n + p->owner_kind.n + p->owner.n;

	n += (p->nannotations + p->nlabels) * sizeof(struct kube_pair) +
	     p->ncontainers * sizeof(struct kube_container);
	for (size_t i = 0; i < p->nannotations; i++)
		n += p->annotations[i].name.n + p->annotations[i].value.n;
	for (size_t i = 0; i < p->nlabels; i++)
		n += p->labels[i].name.n + p->labels[i].value.n;
	for (size_t i = 0; i < p->ncontainers; i++) {
		const struct kube_container *c = &p->containers[i];

		n += c->name.n + c->image.n + c->nports * sizeof(struct kube_port);
		for (size_t k = 0; k < c->nports; k++)
			n += c->ports[k].name.n;
	}
	return n;
}

/* Where the next array and the next bytes go. */
struct packer {
	char *arrays, *bytes;
};

static void pack_str(struct packer *p, struct str *s)
{
	if (s->n)
		memcpy(p->bytes, s->p, s->n);
	s->p = p->bytes;
	p->bytes += s->n;
}

static void *pack_array(struct packer *p, const void *from, size_t bytes)
{
	void *to = p->arrays;

	if (bytes)
		memcpy(to, from, bytes);
	p->arrays += bytes;
	return to;
}

static const struct kube_pair *pack_pairs(struct packer *p, const struct kube_pair *from, size_t n)
{
	struct kube_pair *to = pack_array(p, from, n * sizeof(*to));

	for (size_t i = 0; i < n; i++) {
		pack_str(p, &to[i].name);
		pack_str(p, &to[i].value);
	}
	return to;
}

static void pack_containers(struct packer *p, struct kube_pod *pod)
{
	struct kube_container *to = pack_array(p, pod->containers, pod->ncontainers * sizeof(*to));

	for (size_t i = 0; i < pod->ncontainers; i++) {
		struct kube_port *ports = pack_array(p, to[i].ports, to[i].nports * sizeof(*ports));

		pack_str(p, &to[i].name);
		pack_str(p, &to[i].image);
		for (size_t k = 0; k < to[i].nports; k++)
			pack_str(p, &ports[k].name);
		to[i].ports = ports;
	}
	pod->containers = to;
}

static struct kept *keep(const struct pod_item *item, size_t bytes)
{
	struct kept *kept = xmalloc(bytes);
	struct kube_pod *pod = &kept->item.pod;
	struct str *const texts[] = { &pod->namespace, &pod->name,	 &pod->uid,
				      &pod->ip,	       &pod->node,	 &pod->host_ip,
				      &pod->owner,     &pod->owner_kind, &kept->item.version };
	struct packer p = { (char *)(kept + 1), NULL };
	size_t nports = 0;

	*kept = (struct kept){ .item = *item, .bytes = bytes };
	for (size_t i = 0; i < pod->ncontainers; i++)
		nports += pod->containers[i].nports;
	p.bytes = p.arrays + (pod->nannotations + pod->nlabels) * sizeof(struct kube_pair) +
		  pod->ncontainers * sizeof(struct kube_container) +
		  nports * sizeof(struct kube_port);
	pod->annotations = pack_pairs(&p, pod->annotations, pod->nannotations);
	pod->labels = pack_pairs(&p, pod->labels, pod->nlabels);
	pack_containers(&p, pod);
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		pack_str(&p, texts[i]);
	return kept;
}

/* ---- the pods that are kept; all with the lock */

static void changed(struct kube_follow *f)
{
	atomic_fetch_add(&f->version, 1);
}

/* Where the pod is, or would be. */
static size_t find(const struct kube_follow *f, const struct kube_pod *pod, bool *is_there)
{
	size_t low = 0, high = f->pods.n;

	*is_there = false;
	while (low < high) {
		size_t middle = (low + high) / 2;
		const struct kube_pod *p = &f->pods.at[middle]->item.pod;
		int order = str_cmp(p->namespace, pod->namespace);

		if (!order)
			order = str_cmp(p->name, pod->name);
		if (!order) {
			*is_there = true;
			return middle;
		}
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void forget(struct kube_follow *f, size_t at)
{
	f->bytes -= f->pods.at[at]->bytes;
	free(f->pods.at[at]);
	memmove(&f->pods.at[at], &f->pods.at[at + 1], (f->pods.n - at - 1) * sizeof(*f->pods.at));
	f->pods.n--;
	changed(f);
}

static void insert(struct kube_follow *f, size_t at, const struct pod_item *item)
{
	size_t bytes = item_bytes(item);
	struct kept *kept;

	if (f->pods.n >= f->params.max_pods || f->bytes + bytes > MAX_KEPT_BYTES) {
		f->nrefused++;
		f->ndropped = f->nrefused > f->ndropped ? f->nrefused : f->ndropped;
		return;
	}
	kept = keep(item, bytes);
	kept->round = f->round;
	vec_push(&f->pods, kept);
	memmove(&f->pods.at[at + 1], &f->pods.at[at], (f->pods.n - at - 1) * sizeof(*f->pods.at));
	f->pods.at[at] = kept;
	f->bytes += bytes;
	changed(f);
}

static void put(struct kube_follow *f, const struct pod_item *item, bool is_wanted)
{
	bool is_there;
	size_t at = find(f, &item->pod, &is_there);

	if (is_there && is_wanted && str_eq(f->pods.at[at]->item.version, item->version)) {
		f->pods.at[at]->round = f->round;
		return;
	}
	if (is_there)
		forget(f, at);
	if (is_wanted)
		insert(f, at, item);
}

static void take(struct kube_follow *f, const struct pod_item *item, bool is_gone)
{
	bool is_wanted = !is_gone && f->params.wants(f->params.ctx, &item->pod);

	pthread_mutex_lock(&f->lock);
	put(f, item, is_wanted);
	pthread_mutex_unlock(&f->lock);
}

/* ---- lists */

static bool take_listed(void *ctx, const struct pod_item *item)
{
	struct kube_follow *f = ctx;

	take(f, item, false);
	return !atomic_load(&f->is_stopping);
}

/* Those that the list did not have are gone. */
static void finish_list(struct kube_follow *f)
{
	size_t n = 0;

	pthread_mutex_lock(&f->lock);
	for (size_t i = 0; i < f->pods.n; i++) {
		struct kept *kept = f->pods.at[i];

		if (kept->round == f->round) {
			f->pods.at[n++] = kept;
			continue;
		}
		f->bytes -= kept->bytes;
		free(kept);
		changed(f);
	}
	f->pods.n = n;
	if (!f->is_synced || f->ndropped != f->nrefused || f->problem.kind)
		changed(f);
	f->ndropped = f->nrefused;
	f->is_synced = true;
	f->problem.kind = ERR_NONE;
	pthread_mutex_unlock(&f->lock);
}

static bool list(struct kube_follow *f, struct err *e)
{
	struct buf since = { 0 };
	int status;
	bool ok;

	f->round++;
	f->nrefused = 0;
	ok = pods_list(f->k, &f->params.query, take_listed, f, &since, &status, e);
	if (ok && !atomic_load(&f->is_stopping)) {
		finish_list(f);
		buf_release(&f->since);
		f->since = since;
	} else {
		buf_release(&since);
	}
	return ok;
}

/* ---- watches */

static void solved(struct kube_follow *f)
{
	pthread_mutex_lock(&f->lock);
	if (f->problem.kind)
		changed(f);
	f->problem.kind = ERR_NONE;
	pthread_mutex_unlock(&f->lock);
}

/* Whatever it is, it is about where the watch began. */
static void take_end(struct kube_follow *f, const struct pod_event *event)
{
	struct buf text = { 0 };

	f->since.n = 0;
	if (event->code == 410)
		return;
	kube_put_plain(&text, event->message);
	err_set(&f->wrong, ERR_IO, "the watch was ended: %.*s", STR_ARG(buf_view(&text)));
	buf_release(&text);
}

static void take_change(struct kube_follow *f, const struct pod_event *event)
{
	f->has_events = true;
	if (event->kind != POD_BOOKMARK)
		take(f, &event->item, event->kind == POD_GONE);
	f->since.n = 0;
	buf_str(&f->since, event->item.version);
}

/* False: the watch is over. */
static bool take_event(struct kube_follow *f, struct str line)
{
	struct arena a = { 0 };
	struct pod_event event;
	bool ok = pods_read_event(&a, line, &event, &f->wrong);

	if (!ok)
		f->since.n = 0;
	else if (event.kind == POD_ERROR)
		take_end(f, &event);
	else
		take_change(f, &event);
	arena_release(&a);
	return ok && event.kind != POD_ERROR;
}

static bool take_bytes(void *ctx, struct str bytes)
{
	struct kube_follow *f = ctx;

	if (!bytes.n)
		solved(f);
	while (bytes.n) {
		size_t end = str_find_char(bytes, '\n');
		size_t n = end == STR_NONE ? bytes.n : end;

		if (f->line.n + n > MAX_EVENT_BYTES)
			return err_set(&f->wrong, ERR_LIMIT, "an event has more than %d bytes",
				       MAX_EVENT_BYTES);
		buf_add(&f->line, bytes.p, n);
		if (end == STR_NONE)
			break;
		bytes = str_from(bytes, end + 1);
		if (str_trim(buf_view(&f->line)).n && !take_event(f, buf_view(&f->line)))
			return false;
		f->line.n = 0;
	}
	return !atomic_load(&f->is_stopping);
}

static bool watch(struct kube_follow *f, struct err *e)
{
	unsigned seconds = WATCH_SECONDS + arc4random_uniform(WATCH_SECONDS / 2);
	struct buf path = { 0 };
	int status = 0;
	bool ok;

	f->wrong.kind = ERR_NONE;
	f->line.n = 0;
	pods_put_path(&path, &f->params.query);
	pods_put_param(&path, "resourceVersion", buf_view(&f->since));
	buf_printf(&path, "watch=true&allowWatchBookmarks=true&timeoutSeconds=%u%c", seconds, '\0');
	ok = kube_watch(f->k,
			&(struct kube_watch){ .path = path.p,
					      .timeout_ms = (int64_t)seconds * 1000 + GRACE_MS,
					      .stream = take_bytes,
					      .ctx = f,
					      .canceled = &f->is_stopping },
			&status, e);
	buf_release(&path);
	buf_release(&f->line);
	if (!ok && status == 410) {
		f->since.n = 0;
		return true;
	}
	if (ok && f->wrong.kind) {
		*e = f->wrong;
		ok = err_wrap(e, "%s: pods", kube_client_config(f->k)->server);
	}
	return ok;
}

/* ---- the thread */

static void tell(struct kube_follow *f, const struct err *e)
{
	pthread_mutex_lock(&f->lock);
	if (!f->problem.kind || strcmp(f->problem.text, e->text) != 0)
		changed(f);
	f->problem = *e;
	pthread_mutex_unlock(&f->lock);
}

/* Twice as long each time, and never just as long as others wait. */
static void pause_after(struct kube_follow *f, unsigned nfailures)
{
	int64_t ms = FIRST_PAUSE_MS, end;

	while (--nfailures && ms < LONGEST_PAUSE_MS)
		ms *= 2;
	ms = (ms < LONGEST_PAUSE_MS ? ms : LONGEST_PAUSE_MS) * 4 / 5;
	end = clock_now_ms() + ms + arc4random_uniform((uint32_t)ms / 2);
	pthread_mutex_lock(&f->lock);
	while (!atomic_load(&f->is_stopping) && (ms = end - clock_now_ms()) > 0)
		wait_for_ms(&f->stopping, &f->lock, (int)ms);
	pthread_mutex_unlock(&f->lock);
}

static void *run(void *ctx)
{
	struct kube_follow *f = ctx;

	while (!atomic_load(&f->is_stopping)) {
		int64_t start = clock_now_ms();
		struct err e = { 0 };
		bool ok = f->since.n || list(f, &e);

		f->has_events = false;
		ok = ok && (!f->since.n || watch(f, &e));
		if (!ok && !atomic_load(&f->is_stopping))
			tell(f, &e);
		/* One that ends at once is no watch; without this it would be begun for ever. */
		if (f->has_events || clock_now_ms() - start > SHORT_WATCH_MS)
			f->nfailures = ok ? 0 : 1;
		else
			f->nfailures++;
		if (f->ndropped || f->nfailures >= FAILURES_UNTIL_LIST)
			f->since.n = 0;
		if (f->nfailures)
			pause_after(f, f->nfailures);
	}
	return NULL;
}

static const char *copy(struct kube_follow *f, const char *text)
{
	return is_given(text) ? str_dup(&f->arena, str_of(text)) : NULL;
}

struct kube_follow *kube_follow_new(struct kube_client *k, const struct kube_follow_params *params)
{
	struct kube_follow *f = xcalloc(1, sizeof(*f));

	f->k = k;
	f->params = *params;
	f->params.query = (struct kube_query){
		.namespace = copy(f, params->query.namespace),
		.selector = copy(f, params->query.selector),
		.fields = copy(f, params->query.fields),
		.canceled = &f->is_stopping,
	};
	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->stopping, NULL);
	f->has_thread = pthread_create(&f->thread, NULL, run, f) == 0;
	if (!f->has_thread)
		err_set(&f->problem, ERR_IO, "there can be no thread to follow pods");
	return f;
}

void kube_follow_free(struct kube_follow *f)
{
	if (!f)
		return;
	pthread_mutex_lock(&f->lock);
	atomic_store(&f->is_stopping, true);
	pthread_cond_signal(&f->stopping);
	pthread_mutex_unlock(&f->lock);
	if (f->has_thread)
		pthread_join(f->thread, NULL);
	for (size_t i = 0; i < f->pods.n; i++)
		free(f->pods.at[i]);
	vec_release(&f->pods);
	buf_release(&f->since);
	buf_release(&f->line);
	arena_release(&f->arena);
	pthread_mutex_destroy(&f->lock);
	pthread_cond_destroy(&f->stopping);
	free(f);
}

uint64_t kube_follow_version(struct kube_follow *f)
{
	return atomic_load(&f->version);
}

void kube_follow_pods(struct kube_follow *f, kube_take_pod *take_pod, void *ctx,
		      struct kube_follow_state *state)
{
	pthread_mutex_lock(&f->lock);
	*state = (struct kube_follow_state){ .is_synced = f->is_synced,
					     .npods = f->pods.n,
					     .ndropped = f->ndropped,
					     .problem = f->problem };
	for (size_t i = 0; i < f->pods.n; i++)
		if (!take_pod(ctx, &f->pods.at[i]->item.pod))
			break;
	pthread_mutex_unlock(&f->lock);
}
