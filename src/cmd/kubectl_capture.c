/* kubectl_capture.c - kubectl kiln capture: profiles of pods now, through the API server. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/kubectl.h"
#include "cmd/round_report.h"
#include "fetch/save.h"

enum { MAX_SAME_NAME = 1000 };

/* How a pod is reached: a forwarded port, or the API server's proxy. One worker has it at a time.
 */
struct way {
	struct kube_forward *forward;
	uint16_t port;
	bool is_proxy;
	struct err why; /* there is no forwarding */
};

struct capturing {
	struct kubectl *k;
	struct round_params round;
	struct profile_type *types;
	size_t ntypes;
	struct cluster cluster;
	struct http_client *client;
	struct pods pods;
	struct way *ways; /* of each target */
	struct round_report report;
	pthread_mutex_t lock; /* of the report's files, and of what is printed */
};

/* ---- a way to a pod */

static bool get_forwarded(struct capturing *c, struct way *w, const struct round_request *q,
			  struct http_response *r, struct err *e)
{
	const struct pod_origin *origin = q->target->origin;
	struct round_target target = *q->target;
	struct round_request request = *q;
	struct buf url = { 0 };
	struct str prefix = str_of(origin->prefix);
	bool ok;

	while (str_has_suffix(prefix, STR("/")))
		prefix.n--;
	/* The certificate is of the pod, not of this machine. */
	buf_printf(&url, "%s://127.0.0.1:%u%.*s%c",
		   strcmp(origin->scheme, "http") == 0 ? "http" : "https+insecure", w->port,
		   STR_ARG(prefix), '\0');
	target.url = url.p;
	request.target = &target;
	ok = round_get(c->client, &request, r, e);
	buf_release(&url);
	return ok;
}

/* The answer of a pod that says something else than 2xx comes as an error. */
static bool get_proxied(struct capturing *c, const struct round_request *q, struct http_response *r,
			struct err *e)
{
	const struct pod_origin *origin = q->target->origin;
	struct kube_request request = { .max_bytes = q->max_bytes,
					.timeout_ms = q->timeout_ms,
					.canceled = q->canceled };
	struct buf path = { 0 }, below = { 0 };
	bool ok;

	if (q->target->authorization)
		return err_set(e, ERR_USAGE,
			       "it wants somebody to log in, which goes through a forwarded port "
			       "only");
	buf_printf(&below, "%s%s%s%c", origin->prefix,
		   str_has_suffix(str_of(origin->prefix), STR("/")) ? "" : "/", q->path, '\0');
	kube_proxy_path(&path, origin->namespace, origin->pod,
			strcmp(origin->scheme, "http") == 0 ? "http" : "https", origin->port,
			below.p);
	buf_char(&path, '\0');
	request.path = path.p;
	r->status = 0;
	r->body.n = 0;
	ok = kube_send(c->cluster.client, &request, &r->body, &r->status, e);
	if (!ok && r->status >= 400) {
		r->status_text.n = 0;
		buf_puts(&r->status_text, e->text);
		ok = true;
	}
	buf_release(&path);
	buf_release(&below);
	return ok;
}

static void drop_way(struct way *w)
{
	if (w->forward)
		kube_forward_free(w->forward);
	w->forward = NULL;
}

/* Did the connection through the API server come to nothing, rather than the pod? */
static bool is_broken(struct way *w)
{
	struct buf problem = { 0 };
	bool is = false;

	kube_forward_problem(w->forward, &problem);
	is = problem.n > 0;
	if (is)
		err_set(&w->why, ERR_IO, "%.*s", STR_ARG(buf_view(&problem)));
	buf_release(&problem);
	return is;
}

static bool get(void *ctx, const struct round_request *q, struct http_response *r, struct err *e)
{
	struct capturing *c = ctx;
	const struct pod_origin *origin = q->target->origin;
	struct way *w = &c->ways[q->target - c->pods.targets.at];

	if (!w->is_proxy && !w->forward) {
		w->forward = kube_forward_new(c->cluster.client, origin->namespace, origin->pod,
					      origin->port, &w->port, &w->why);
		w->is_proxy = !w->forward;
	}
	if (!w->is_proxy) {
		if (get_forwarded(c, w, q, r, e))
			return true;
		if (!is_broken(w))
			return false;
		drop_way(w);
		w->is_proxy = true;
	}
	return get_proxied(c, q, r, e) || err_wrap(e, "port-forward: %s; proxy", w->why.text);
}

/* ---- where profiles go */

/* profile-TYPE-POD-TIME.pb.gz; no file is ever written over. */
static bool create_file(const char *dir, const struct collected *p, struct str pod,
			struct buf *path, int *fd, struct err *e)
{
	long long now = (long long)time(NULL);

	for (int i = 0; i < MAX_SAME_NAME; i++) {
		path->n = 0;
		buf_printf(path, "%s/profile-%.*s-%.*s-%lld", dir, STR_ARG(p->type), STR_ARG(pod),
			   now);
		if (i)
			buf_printf(path, "-%d", i);
		buf_printf(path, ".pb.gz%c", '\0');
		*fd = open(path->p, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
		if (*fd >= 0 || errno != EEXIST)
			break;
	}
	return *fd >= 0 || err_system(e, "open", path->p);
}

static struct str label_of(const struct collected *p, const char *name)
{
	for (size_t i = 0; i < p->nlabels; i++)
		if (str_eq(p->labels[i].name, str_of(name)))
			return p->labels[i].value;
	return STR("pod");
}

static bool is_file_name(struct str s)
{
	return s.n && s.n < 254 && s.p[0] != '.' && str_find_char(s, '/') == STR_NONE;
}

static bool write_profile(struct capturing *c, const struct collected *p, struct buf *path,
			  struct err *e)
{
	struct str pod = label_of(p, "pod");
	struct buf bytes = { 0 };
	bool ok;
	int fd;

	if (!is_file_name(pod))
		return err_set(e, ERR_FORMAT, "the pod's name cannot be part of a file's");
	if (!create_file(c->k->options.output_dir, p, pod, path, &fd, e))
		return false;
	buf_to_fd(&bytes, fd);
	buf_str(&bytes, p->bytes);
	ok = buf_flush(&bytes, e);
	buf_release(&bytes);
	if (close(fd) != 0 && ok)
		ok = err_system(e, "close", path->p);
	if (!ok)
		unlink(path->p);
	return ok;
}

static void print_line(struct capturing *c, const char *line)
{
	if (kubectl_is_json(c->k))
		return;
	round_report_clear_progress(&c->report);
	puts(line);
	fflush(stdout);
}

static enum collect_result put(void *ctx, const struct collected *p, char id[COLLECT_ID_BYTES],
			       struct err *e)
{
	struct capturing *c = ctx;
	enum collect_result result = COLLECT_OK;
	struct buf line = { 0 };

	if (*c->k->options.api.to) {
		result = api_push(&c->k->api, p, id, e);
		buf_printf(&line, "%.*s/api/0/profiles/%s type=%.*s%c", STR_ARG(c->k->api.to), id,
			   STR_ARG(p->type), '\0');
	} else if (!write_profile(c, p, &line, e)) {
		result = COLLECT_REFUSED;
	}
	pthread_mutex_lock(&c->lock);
	if (result == COLLECT_OK && !*c->k->options.api.to)
		round_report_add_file(&c->report, line.p);
	if (result == COLLECT_OK)
		print_line(c, line.p);
	pthread_mutex_unlock(&c->lock);
	buf_release(&line);
	return result;
}

static void tell(void *ctx, const struct round_result *r)
{
	struct capturing *c = ctx;
	const struct round_target *t = r->target;

	if (r->type == &t->types[t->ntypes - 1])
		drop_way(&c->ways[t - c->pods.targets.at]);
	pthread_mutex_lock(&c->lock);
	round_report_add(&c->report, r);
	pthread_mutex_unlock(&c->lock);
}

/* ---- the command */

static bool check_options(struct capturing *c, struct err *e)
{
	const struct kubectl_options *o = &c->k->options;

	if (!round_options_read(&o->round, &c->k->arena, &c->round, &c->types, &c->ntypes, e))
		return false;
	return *o->api.to || save_make_directory(o->output_dir, e);
}

static int run_round(struct capturing *c)
{
	struct buf out = { 0 };
	bool ok;

	c->round.targets = c->pods.targets.at;
	c->round.ntargets = c->pods.targets.n;
	c->round.canceled = c->k->canceled;
	c->round.get = get;
	c->round.put = put;
	c->round.tell = tell;
	c->round.ctx = c;
	c->ways = arena_many(&c->k->arena, c->pods.targets.n, struct way);
	round_report_init(&c->report, c->pods.targets.at, c->pods.targets.n, c->pods.problems.at,
			  c->pods.problems.n);
	if (!kubectl_is_json(c->k))
		fprintf(stderr, "selected %zu of %zu pods\n", c->pods.targets.n, c->pods.nseen);
	round_run(&c->round);
	for (size_t i = 0; i < c->pods.targets.n; i++)
		drop_way(&c->ways[i]);
	round_report_clear_progress(&c->report);
	(kubectl_is_json(c->k) ? round_report_json : round_report_table)(&out, &c->report);
	ok = round_report_is_good(&c->report) && !atomic_load(c->k->canceled);
	round_report_release(&c->report);
	/* Addresses of profiles are for programs, what became of all is for people. */
	return print_and_exit(&out, kubectl_is_json(c->k) ? STDOUT_FILENO : STDERR_FILENO,
			      ok ? 0 : KUBECTL_FAILED);
}

bool kubectl_capture(struct kubectl *k, int *status, struct err *e)
{
	const struct http_tls none = { 0 };
	struct capturing c = { .k = k };
	struct pods_params params = { .cluster = &c.cluster,
				      .flags = &k->options.kube,
				      .names = k->argv,
				      .nnames = (size_t)k->argc,
				      .canceled = k->canceled };
	bool ok;

	if (!check_options(&c, e) ||
	    !cluster_open(&c.cluster, &k->options.kube, false, &k->arena, e))
		return false;
	pthread_mutex_init(&c.lock, NULL);
	c.client = http_client_new(&none);
	params.types = (struct pod_targets_params){ .types = c.types, .ntypes = c.ntypes };
	ok = pods_find(&c.pods, &params, e);
	if (ok)
		*status = run_round(&c);
	pods_release(&c.pods);
	http_client_free(c.client);
	pthread_mutex_destroy(&c.lock);
	cluster_close(&c.cluster);
	return ok;
}
