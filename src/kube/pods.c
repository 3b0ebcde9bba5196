/* pods.c - which pods there are, asked for once. */
#include "http/target.h"
#include "kube/inside.h"

enum { PAGE = 500, MAX_PAGES = 5000, MAX_PAGE_BYTES = 16 << 20 };

static struct str find_pair(const struct kube_pair *pairs, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(pairs[i].name, str_of(name)))
			return pairs[i].value;
	return STR("");
}

struct str kube_pod_annotation(const struct kube_pod *p, const char *name)
{
	return find_pair(p->annotations, p->nannotations, name);
}

struct str kube_pod_label(const struct kube_pod *p, const char *name)
{
	return find_pair(p->labels, p->nlabels, name);
}

/* ---- paths */

void pods_put_param(struct buf *out, const char *name, struct str value)
{
	buf_printf(out, "%s=", name);
	http_put_escaped(out, value);
	buf_char(out, '&');
}

static void put_namespace(struct buf *out, const char *namespace)
{
	buf_puts(out, "/api/v1");
	if (is_given(namespace)) {
		buf_puts(out, "/namespaces/");
		http_put_escaped(out, str_of(namespace));
	}
	buf_puts(out, "/pods");
}

void pods_put_path(struct buf *out, const struct kube_query *q)
{
	put_namespace(out, q->namespace);
	buf_char(out, '?');
	if (is_given(q->selector))
		pods_put_param(out, "labelSelector", str_of(q->selector));
	if (is_given(q->fields))
		pods_put_param(out, "fieldSelector", str_of(q->fields));
}

void kube_proxy_path(struct buf *out, const char *namespace, const char *pod, const char *scheme,
		     uint16_t port, const char *path)
{
	put_namespace(out, namespace);
	buf_char(out, '/');
	if (is_given(scheme))
		buf_printf(out, "%s:", scheme);
	http_put_escaped(out, str_of(pod));
	buf_printf(out, ":%u/proxy%s%s", port, path[0] == '/' ? "" : "/", path);
}

/* ---- lists */

struct listing {
	struct kube_client *k;
	const struct kube_query *q;
	struct pod_page page;
	unsigned limit; /* of pods on a page */
	take_item *take;
	void *ctx;
};

static bool get_page(struct listing *l, struct buf *answer, int *status, struct err *e)
{
	struct buf path = { 0 };
	bool ok;

	pods_put_path(&path, l->q);
	buf_printf(&path, "limit=%u", l->limit);
	if (l->page.next.n) {
		buf_char(&path, '&');
		pods_put_param(&path, "continue", buf_view(&l->page.next));
		path.n--;
	}
	buf_char(&path, '\0');
	answer->n = 0;
	ok = kube_send(l->k,
		       &(struct kube_request){ .path = path.p,
					       .max_bytes = MAX_PAGE_BYTES,
					       .canceled = l->q->canceled },
		       answer, status, e);
	buf_release(&path);
	return ok;
}

/* Pods that are too large together come in smaller pages. */
static bool get_page_that_fits(struct listing *l, struct buf *answer, int *status, struct err *e)
{
	while (!get_page(l, answer, status, e)) {
		if (e->kind != ERR_LIMIT || l->limit == 1)
			return false;
		l->limit = (l->limit + 3) / 4;
	}
	return true;
}

static bool list_all(struct listing *l, struct buf *version, int *status, struct err *e)
{
	const char *server = kube_client_config(l->k)->server;
	struct buf answer = { 0 };
	unsigned npages = 0;
	bool ok;

	do {
		ok = get_page_that_fits(l, &answer, status, e) &&
		     (pods_read_page(buf_view(&answer), l->take, l->ctx, &l->page, e) ||
		      err_wrap(e, "%s", server));
		if (ok && ++npages > MAX_PAGES)
			ok = err_set(e, ERR_LIMIT, "%s: its list of pods does not end", server);
		if (ok && version && !version->n)
			buf_str(version, buf_view(&l->page.version));
	} while (ok && l->page.next.n && !l->page.is_ended);
	buf_release(&answer);
	return ok;
}

bool pods_list(struct kube_client *k, const struct kube_query *q, take_item *take, void *ctx,
	       struct buf *version, int *status, struct err *e)
{
	struct listing l = { .k = k, .q = q, .limit = PAGE, .take = take, .ctx = ctx };
	bool ok = list_all(&l, version, status, e);

	buf_release(&l.page.version);
	buf_release(&l.page.next);
	return ok;
}

struct taker {
	kube_take_pod *take;
	void *ctx;
};

static bool take_pod(void *ctx, const struct pod_item *item)
{
	const struct taker *t = ctx;

	return t->take(t->ctx, &item->pod);
}

bool kube_list_pods(struct kube_client *k, const struct kube_query *q, kube_take_pod *take,
		    void *ctx, struct err *e)
{
	struct taker t = { take, ctx };
	int status;

	return pods_list(k, q, take_pod, &t, NULL, &status, e);
}

bool kube_get_pod(struct kube_client *k, struct arena *a, const char *namespace, const char *name,
		  struct kube_pod *pod, struct err *e)
{
	struct buf path = { 0 }, answer = { 0 };
	int status;
	bool ok;

	put_namespace(&path, namespace);
	buf_char(&path, '/');
	http_put_escaped(&path, str_of(name));
	buf_char(&path, '\0');
	ok = kube_send(k, &(struct kube_request){ .path = path.p, .max_bytes = MAX_PAGE_BYTES },
		       &answer, &status, e) &&
	     (pods_read_one(a, buf_view(&answer), pod, e) ||
	      err_wrap(e, "%s", kube_client_config(k)->server));
	buf_release(&path);
	buf_release(&answer);
	return ok;
}
