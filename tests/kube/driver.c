/* driver.c - src/kube from the command line, for the tests beside it.
 *
 * driver [KEY=VALUE...] list|get PATH|pod NAME|follow|forward POD PORT
 * Keys are those of struct kube_access, and selector, fields, max. follow prints a line of JSON at
 * each change and ends with its stdin; forward prints its port, and for each line of stdin what
 * went wrong.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/escape.h"
#include "kube/kube.h"

struct options {
	struct kube_access access;
	const char *selector, *fields, *max, *insecure, *timeout, *pod_first;
};

static bool set_option(struct options *o, const char *arg)
{
	const struct {
		const char *name, **to;
	} keys[] = {
		{ "kubeconfig", &o->access.kubeconfig },
		{ "context", &o->access.context },
		{ "namespace", &o->access.namespace },
		{ "token", &o->access.token },
		{ "server", &o->access.server },
		{ "as", &o->access.as },
		{ "certificate_authority", &o->access.certificate_authority },
		{ "tls_server_name", &o->access.tls_server_name },
		{ "account_dir", &o->access.account_dir },
		{ "selector", &o->selector },
		{ "fields", &o->fields },
		{ "max", &o->max },
		{ "insecure", &o->insecure },
		{ "timeout", &o->timeout },
		{ "pod_first", &o->pod_first },
	};
	struct str value = str_of(arg), name = str_cut(&value, '=');

	for (size_t i = 0; value.p && i < sizeof(keys) / sizeof(*keys); i++)
		if (str_eq(name, str_of(keys[i].name))) {
			*keys[i].to = value.p;
			return true;
		}
	return false;
}

static void put_pairs(struct buf *out, const char *name, const struct kube_pair *pairs, size_t n)
{
	buf_printf(out, ",\"%s\":{", name);
	for (size_t i = 0; i < n; i++) {
		buf_puts(out, i ? "," : "");
		json_put(out, pairs[i].name);
		buf_char(out, ':');
		json_put(out, pairs[i].value);
	}
	buf_char(out, '}');
}

static bool put_pod(void *ctx, const struct kube_pod *p)
{
	const struct {
		const char *name;
		struct str value;
	} texts[] = { { "namespace", p->namespace },
		      { "name", p->name },
		      { "uid", p->uid },
		      { "ip", p->ip },
		      { "node", p->node },
		      { "host_ip", p->host_ip },
		      { "owner", p->owner },
		      { "owner_kind", p->owner_kind } };
	struct buf *out = ctx;

	buf_printf(out, "{\"running\":%s", p->is_running ? "true" : "false");
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		buf_printf(out, ",\"%s\":", texts[i].name);
		json_put(out, texts[i].value);
	}
	put_pairs(out, "annotations", p->annotations, p->nannotations);
	put_pairs(out, "labels", p->labels, p->nlabels);
	buf_puts(out, ",\"containers\":[");
	for (size_t i = 0; i < p->ncontainers; i++) {
		const struct kube_container *c = &p->containers[i];

		buf_printf(out, "%s{\"name\":", i ? "," : "");
		json_put(out, c->name);
		buf_puts(out, ",\"image\":");
		json_put(out, c->image);
		buf_printf(out, ",\"ready\":%s,\"ports\":[", c->is_ready ? "true" : "false");
		for (size_t k = 0; k < c->nports; k++)
			buf_printf(out, "%s%u", k ? "," : "", c->ports[k].number);
		buf_puts(out, "]}");
	}
	buf_puts(out, "]}\n");
	return true;
}

static bool print_pod(void *ctx, const struct kube_pod *p)
{
	struct buf line = { 0 };

	(void)ctx;
	put_pod(&line, p);
	fwrite(line.p, 1, line.n, stdout);
	buf_release(&line);
	return true;
}

/* ---- follow */

static bool put_name(void *ctx, const struct kube_pod *p)
{
	struct buf *out = ctx, name = { 0 };

	if (out->n > 4096)
		return false;
	buf_printf(&name, "%.*s/%.*s", STR_ARG(p->namespace), STR_ARG(p->name));
	for (size_t i = 0; i < p->nannotations; i++)
		buf_printf(&name, " %.*s=%.*s", STR_ARG(p->annotations[i].name),
			   STR_ARG(p->annotations[i].value));
	buf_puts(out, out->n ? "," : "");
	json_put(out, buf_view(&name));
	buf_release(&name);
	return true;
}

static bool wants(void *ctx, const struct kube_pod *p)
{
	(void)ctx;
	return p->is_running;
}

static long memory_kb(const char *what)
{
	char line[200];
	FILE *f = fopen("/proc/self/status", "r");
	long kb = 0;

	while (f && fgets(line, sizeof(line), f))
		if (str_has_prefix(str_of(line), str_of(what)))
			kb = atol(line + strlen(what) + 1);
	if (f)
		fclose(f);
	return kb;
}

static void print_state(struct kube_follow *f)
{
	struct buf pods = { 0 }, problem = { 0 };
	struct kube_follow_state s;

	kube_follow_pods(f, put_name, &pods, &s);
	json_put(&problem, str_of(s.problem.kind ? s.problem.text : ""));
	printf("{\"synced\":%s,\"npods\":%zu,\"ndropped\":%zu,\"rss_kb\":%ld,\"peak_kb\":%ld,"
	       "\"problem\":%.*s,\"pods\":[%.*s]}\n",
	       s.is_synced ? "true" : "false", s.npods, s.ndropped, memory_kb("VmRSS:"),
	       memory_kb("VmHWM:"), STR_ARG(buf_view(&problem)), STR_ARG(buf_view(&pods)));
	fflush(stdout);
	buf_release(&pods);
	buf_release(&problem);
}

static void follow(struct kube_client *k, const struct kube_query *q, const char *max)
{
	struct kube_follow *f = kube_follow_new(
		k, &(struct kube_follow_params){ .query = *q,
						 .wants = wants,
						 .max_pods = max ? (size_t)atol(max) : 10000 });
	struct pollfd in = { STDIN_FILENO, POLLIN, 0 };
	uint64_t seen = 0;

	while (poll(&in, 1, 20) == 0) {
		uint64_t now = kube_follow_version(f);

		if (now == seen)
			continue;
		seen = now;
		print_state(f);
	}
	kube_follow_free(f);
}

/* ---- forward */

static bool forward(struct kube_client *k, const char *namespace, char **argv, struct err *e)
{
	uint16_t port;
	struct kube_forward *f =
		kube_forward_new(k, namespace, argv[0], (uint16_t)atoi(argv[1]), &port, e);
	char line[100];

	if (!f)
		return false;
	printf("%u\n", port);
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		struct buf text = { 0 };

		kube_forward_problem(f, &text);
		printf("%.*s\n", STR_ARG(buf_view(&text)));
		fflush(stdout);
		buf_release(&text);
	}
	kube_forward_free(f);
	return true;
}

static bool get(struct kube_client *k, const char *path, struct err *e)
{
	struct buf answer = { 0 };
	int status;
	bool ok = kube_send(k, &(struct kube_request){ .path = path }, &answer, &status, e);

	fwrite(answer.p, 1, answer.n, stdout);
	buf_release(&answer);
	return ok;
}

static bool get_pod(struct kube_client *k, const char *namespace, const char *name, struct err *e)
{
	struct arena a = { 0 };
	struct kube_pod pod;
	bool ok = kube_get_pod(k, &a, namespace, name, &pod, e);

	if (ok)
		print_pod(NULL, &pod);
	arena_release(&a);
	return ok;
}

static bool run(struct kube_client *k, const struct kube_query *q, const char *namespace,
		const char *max, char **argv, struct err *e)
{
	if (strcmp(argv[0], "list") == 0)
		return kube_list_pods(k, q, print_pod, NULL, e);
	if (strcmp(argv[0], "get") == 0)
		return get(k, argv[1], e);
	if (strcmp(argv[0], "pod") == 0)
		return get_pod(k, namespace, argv[1], e);
	if (strcmp(argv[0], "forward") == 0)
		return forward(k, namespace, argv + 1, e);
	follow(k, q, max);
	return true;
}

int main(int argc, char **argv)
{
	struct options o = { 0 };
	struct kube_config config;
	struct kube_client *k;
	struct err e = { 0 };
	bool ok;

	for (argv++; argc > 1 && *argv && set_option(&o, *argv);)
		argv++;
	o.access.insecure = o.insecure;
	o.access.in_cluster_first = o.pod_first;
	o.access.request_timeout_ms = o.timeout ? atol(o.timeout) : 0;
	if (!*argv || !kube_config_load(&config, &o.access, &e)) {
		fprintf(stderr, "%d %s\n", e.kind, e.text);
		return 2;
	}
	k = kube_client_new(&config);
	ok = run(k,
		 &(struct kube_query){ .namespace = o.access.namespace,
				       .selector = o.selector,
				       .fields = o.fields },
		 config.namespace, o.max, argv, &e);
	kube_client_free(k);
	kube_config_release(&config);
	if (!ok)
		fprintf(stderr, "%d %s\n", e.kind, e.text);
	return !ok;
}
