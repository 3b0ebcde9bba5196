#include "collect/annotations.h"

#include "test.h"

enum { MAX_PAIRS = 12 };

struct row {
	const char *annotations[MAX_PAIRS]; /* name, value, ... */
	const char *want;
};

/* For what is there before the program runs. */
#define TEXT(s)                  \
	{                        \
		s, sizeof(s) - 1 \
	}

static const struct kube_port web_ports[] = { { TEXT("http"), 8080 }, { TEXT("pprof"), 7070 } };
static const struct kube_port side_ports[] = { { TEXT("admin"), 9901 } };
static const struct kube_container containers[] = {
	{ .name = TEXT("web"),
	  .image = TEXT("registry:5000/shop/web:1.4.2@sha256:abc"),
	  .ports = web_ports,
	  .nports = 2 },
	{ .name = TEXT("side"), .image = TEXT("side"), .ports = side_ports, .nports = 1 },
};
static const struct kube_pair pod_labels[] = { { TEXT("app"), TEXT("web") },
					       { TEXT("team"), TEXT("a,b=c") } };

static const struct kube_pod plain = {
	.namespace = TEXT("ops"),
	.name = TEXT("web-1"),
	.uid = TEXT("u-1"),
	.ip = TEXT("10.0.0.7"),
	.node = TEXT("n1"),
	.owner = TEXT("web"),
	.is_running = true,
	.labels = pod_labels,
	.nlabels = 2,
	.containers = containers,
	.ncontainers = 2,
};

static const struct profile_type usual[] = { { .name = "cpu", .path = "profile", .seconds = 30 },
					     { .name = "heap", .path = "heap" } };
static const struct pod_targets_params params = { .types = usual, .ntypes = 2 };

static size_t take_pairs(const struct row *row, struct kube_pair *out)
{
	size_t n = 0;

	for (; n < MAX_PAIRS / 2 && row->annotations[2 * n]; n++)
		out[n] = (struct kube_pair){ str_of(row->annotations[2 * n]),
					     str_of(row->annotations[2 * n + 1]) };
	return n;
}

static void put_target(struct buf *out, const struct pod_target *t)
{
	buf_printf(out, "%s://%.*s%s %.*s", t->scheme, STR_ARG(t->address), t->prefix,
		   STR_ARG(t->service));
	for (size_t i = 0; i < t->ntypes; i++) {
		const struct profile_type *type = &t->types[i];

		buf_printf(out, "%s%s=%s", i ? "," : " ", type->name, type->path);
		if (type->seconds)
			buf_printf(out, ":%llds", (long long)type->seconds);
		if (type->interval)
			buf_printf(out, "/%llds", (long long)(type->interval / COLLECT_SECOND));
	}
	if (*t->secret.name)
		buf_printf(out, " %s@%s/%s", t->secret.user, t->secret.name, t->secret.key);
	buf_char(out, '\n');
}

/* What is read of a pod, as text: its targets, or what is wrong. */
static void read_pod(struct buf *out, const struct kube_pod *pod,
		     const struct pod_targets_params *p, bool with_labels)
{
	struct arena a = { 0 };
	struct pod_target *targets;
	struct err e;
	size_t n;

	if (!pod_targets_read(&a, pod, p, &targets, &n, &e)) {
		buf_puts(out, e.text);
		assert_int_equal(n, 0);
	}
	for (size_t i = 0; i < n; i++) {
		if (!with_labels)
			put_target(out, &targets[i]);
		for (size_t k = 0; with_labels && k < targets[i].nlabels; k++)
			buf_printf(out, "%s%.*s=%.*s", k ? " " : "",
				   STR_ARG(targets[i].labels[k].name),
				   STR_ARG(targets[i].labels[k].value));
	}
	buf_char(out, '\0');
	arena_release(&a);
}

static void check_rows(const struct row *rows, size_t n, bool with_labels)
{
	for (size_t i = 0; i < n; i++) {
		struct kube_pair pairs[MAX_PAIRS / 2];
		struct kube_pod pod = plain;
		struct buf out = { 0 };

		pod.annotations = pairs;
		pod.nannotations = take_pairs(&rows[i], pairs);
		read_pod(&out, &pod, &params, with_labels);
		if (with_labels || rows[i].want[0] != '~')
			assert_string_equal(out.p, rows[i].want);
		else if (!strstr(out.p, rows[i].want + 1))
			fail_msg("\"%s\" is not in \"%s\"", rows[i].want + 1, out.p);
		buf_release(&out);
	}
}

#define CHECK(rows, with_labels) check_rows(rows, sizeof(rows) / sizeof(*(rows)), with_labels)
#define USUAL " cpu=profile:30s,heap=heap\n"

TEST(what_profefe_documents)
{
	static const struct row rows[] = {
		{ { 0 }, "" },
		{ { "profefe.com/port", "1" }, "" },
		{ { "profefe.com/enable", "false" }, "" },
		{ { "profefe.com/enable", "true" },
		  "http://10.0.0.7:6060/debug/pprof web-1" USUAL },
		{ { "profefe.com/enable", "true", "profefe.com/port", "8080", "profefe.com/path",
		    "/x/pprof/", "profefe.com/service", "shop" },
		  "http://10.0.0.7:8080/x/pprof shop" USUAL },
	};

	CHECK(rows, false);
}

TEST(the_same_and_more_of_kiln)
{
	static const struct row rows[] = {
		{ { "kiln.dev/enable", "true" }, "http://10.0.0.7:6060/debug/pprof web-1" USUAL },
		{ { "kiln.dev/enable", "true", "kiln.dev/port", "pprof" },
		  "http://10.0.0.7:7070/debug/pprof web-1" USUAL },
		{ { "kiln.dev/enable", "true", "profefe.com/port", "1", "kiln.dev/port", "2" },
		  "http://10.0.0.7:2/debug/pprof web-1" USUAL },
		{ { "kiln.dev/enable", "false", "profefe.com/enable", "true" }, "" },
		{ { "kiln.dev/enable", "true", "kiln.dev/scheme", "https", "kiln.dev/profiles",
		    "cpu, goroutine,rpc=rpc/z" },
		  "https://10.0.0.7:6060/debug/pprof web-1 "
		  "cpu=profile:30s,goroutine=goroutine,rpc=rpc/z\n" },
		{ { "kiln.dev/enable", "true", "kiln.dev/seconds", "5", "kiln.dev/interval", "2m" },
		  "http://10.0.0.7:6060/debug/pprof web-1 cpu=profile:5s/120s,heap=heap/120s\n" },
		{ { "kiln.dev/enable", "true", "kiln.dev/interval", "20s" },
		  "http://10.0.0.7:6060/debug/pprof web-1 cpu=profile:20s/20s,heap=heap/20s\n" },
		{ { "kiln.dev/enable", "true", "kiln.dev/auth-secret", "s" },
		  "http://10.0.0.7:6060/debug/pprof web-1 cpu=profile:30s,heap=heap @s/token\n" },
		{ { "kiln.dev/enable", "true", "kiln.dev/auth-secret", "s/k", "kiln.dev/auth-user",
		    "u" },
		  "http://10.0.0.7:6060/debug/pprof web-1 cpu=profile:30s,heap=heap u@s/k\n" },
		{ { "kiln.dev/enable", "true", "kiln.dev/port.web", "1", "kiln.dev/port.side",
		    "admin", "kiln.dev/service", "shop", "kiln.dev/service.side", "envoy" },
		  "http://10.0.0.7:1/debug/pprof shop" USUAL
		  "http://10.0.0.7:9901/debug/pprof envoy" USUAL },
	};

	CHECK(rows, false);
}

/* As a server's job has it: what a pod does not say is the job's. */
TEST(settings_of_whoever_collects)
{
	static const struct profile_type types[] = {
		{ "cpu", "profile", 20, 60 * COLLECT_SECOND, "cpu" },
		{ "heap", "heap", 0, 300 * COLLECT_SECOND, NULL },
		{ "rpc", "rpc", 0, 30 * COLLECT_SECOND, NULL },
	};
	const struct pod_targets_params job = { .types = types,
						.ntypes = 3,
						.scheme = "https",
						.prefix = "/x",
						.interval = 60 * COLLECT_SECOND };
	struct kube_pair pairs[] = { { STR("kiln.dev/enable"), STR("true") },
				     { STR("kiln.dev/profiles"),
				       STR("heap,cpu,rpc=y,z=a/profile") },
				     { STR("kiln.dev/seconds"), STR("70") } };
	struct kube_pod pod = plain;
	struct pod_target *t;
	struct arena a = { 0 };
	struct err e;
	size_t n;

	pod.annotations = pairs;
	pod.nannotations = 2;
	assert_true(pod_targets_read(&a, &pod, &job, &t, &n, &e));
	assert_int_equal(n, 1);
	assert_string_equal(t->scheme, "https");
	assert_string_equal(t->prefix, "/x");
	assert_int_equal(t->ntypes, 4);
	assert_int_equal(t->types[0].interval, 300 * COLLECT_SECOND);
	assert_int_equal(t->types[1].seconds, 20);
	assert_string_equal(t->types[2].path, "y");
	assert_int_equal(t->types[2].interval, 60 * COLLECT_SECOND);
	assert_string_equal(t->types[3].exclusive, "cpu"); /* by its path */
	assert_int_equal(t->types[3].seconds, 10);
	pod.nannotations = 3;
	assert_false(pod_targets_read(&a, &pod, &job, &t, &n, &e));
	assert_non_null(
		strstr(e.text, "kiln.dev/seconds is \"70\": that is longer than the interval"));
	arena_release(&a);
}

TEST(grafanas_annotations)
{
#define G "profiles.grafana.com/"
	static const struct row rows[] = {
		{ { G "cpu.scrape", "false" }, "" },
		{ { G "cpu.scrape", "true", G "cpu.port", "8080", G "memory.scrape", "true",
		    G "memory.port_name", "http" },
		  "http://10.0.0.7:8080/ ops/web "
		  "cpu=debug/pprof/profile:10s,heap=debug/pprof/allocs\n" },
		{ { G "goroutine.scrape", "true", G "goroutine.port_name", "admin",
		    G "goroutine.scheme", "https", G "goroutine.path", "/g" },
		  "https://10.0.0.7:9901/ ops/side goroutine=g\n" },
		{ { G "x.scrape", "true", G "x.port", "1", G "x.path", "/y", G "service_name",
		    "s" },
		  "http://10.0.0.7:1/ s x=y\n" },
		{ { G "cpu.scrape", "true", G "cpu.port", "1", "profefe.com/enable", "true" },
		  "http://10.0.0.7:6060/debug/pprof web-1" USUAL },
		{ { G "cpu.scrape", "true", G "cpu.port", "1", "kiln.dev/enable", "false" }, "" },
		{ { G "cpu.scrape", "true" }, "~" G "cpu.scrape is \"true\": which port" },
		{ { G "cpu.scrape", "true", G "cpu.port_name", "no" },
		  "~" G "cpu.port_name is \"no\": no container" },
		{ { G "x.scrape", "true", G "x.port", "1" }, "~write .path beside it" },
		{ { G "cpu.scrape", "true", G "cpu.port", "1", G "cpu.path", "y" },
		  "~begins with a slash" },
		{ { G "cpu.scrape", "true", G "cpu.port", "1", G "process_cpu.scrape", "true",
		    G "process_cpu.port", "1" },
		  "~there are two of that type" },
	};

	CHECK(rows, false);
}

TEST(what_is_wrong_is_told_with_its_place_and_fix)
{
#define WRONG(key, value, fix)                                             \
	{                                                                  \
		{ "kiln.dev/enable", "true", "kiln.dev/" key, value }, fix \
	}
	static const struct row rows[] = {
		{ { "profefe.com/enable", "yes" },
		  "pod ops/web-1: annotation profefe.com/enable is \"yes\": write \"true\", or "
		  "\"false\"" },
		{ { "profefe.com/enable", "true", "profefe.com/port", "http2" },
		  "pod ops/web-1: annotation profefe.com/port is \"http2\": write a number from 1 "
		  "to 65535, or the name of a port of its containers" },
		WRONG("port", "0", "~kiln.dev/port is \"0\": write a number"),
		WRONG("port", "65536", "~write a number"),
		WRONG("port", "", "~write a number"),
		WRONG("port.side", "x", "~kiln.dev/port.side is \"x\""),
		WRONG("port.none", "1", "~there is no such annotation, or no such container"),
		WRONG("prot", "1", "~kiln.dev/prot is \"1\": there is no such annotation"),
		WRONG("path", "debug", "~begins with a slash"),
		WRONG("path", "/a?b", "~begins with a slash"),
		WRONG("path", "/a/../b", "~begins with a slash"),
		WRONG("service", "", "~write a name"),
		WRONG("scheme", "ftp", "~write http, https or https+insecure"),
		WRONG("container", "no", "~the pod has no such container"),
		WRONG("profiles", "", "~write names of profiles"),
		WRONG("profiles", "cpu,,heap", "~write names of profiles"),
		WRONG("profiles", "cpu,cpu", "~there twice"),
		WRONG("profiles", "rpc", "~write rpc=PATH"),
		WRONG("profiles", "rpc=../x", "~write names"),
		WRONG("seconds", "0", "~whole number from 1 to 3600"),
		WRONG("seconds", "1.5", "~whole number"),
		WRONG("interval", "10ms", "~between 1s and 1d"),
		WRONG("interval", "often", "~between 1s and 1d"),
		{ { "kiln.dev/enable", "true", "kiln.dev/seconds", "30", "kiln.dev/interval",
		    "10s" },
		  "~make kiln.dev/seconds less" },
		WRONG("auth-secret", "a/b/c", "~NAME/KEY"),
		WRONG("auth-secret", "../x", "~NAME/KEY"),
		WRONG("auth-user", "u", "~kiln.dev/auth-secret"),
		WRONG("labels", "a", "~write NAME=VALUE"),
		WRONG("labels", "pod=x", "~are taken"),
		WRONG("labels", "a b=x", "~write NAME=VALUE"),
		WRONG("pod-labels", "app,type", "~\"type\" cannot be"),
		WRONG("scheme", "\033[31m\n", "~\"\\x1b[31m\\n\""),
	};

	CHECK(rows, false);
}

#define LABELS "namespace=ops pod=web-1 node=n1 owner=web container="

TEST(labels_of_profiles)
{
	static const struct row rows[] = {
		{ { "profefe.com/enable", "true" },
		  LABELS "web image=registry:5000/shop/web:1.4.2@sha256:abc version=1.4.2" },
		{ { "profefe.com/enable", "true", "profefe.com/port", "9901" },
		  LABELS "side image=side version=latest" },
		{ { "kiln.dev/enable", "true", "kiln.dev/container", "side" },
		  LABELS "side image=side version=latest" },
		{ { "kiln.dev/enable", "true", "kiln.dev/container", "side", "kiln.dev/labels",
		    "region=eu, version=7", "kiln.dev/pod-labels", "team,none" },
		  LABELS "side image=side version=7 team=a,b=c region=eu" },
	};

	CHECK(rows, true);
}

static void check_pod(const struct kube_pod *pod, const char *want, bool with_labels)
{
	static const struct pod_targets_params with_app = { .types = usual,
							    .ntypes = 2,
							    .pod_labels = "app" };
	static const struct kube_pair on = { TEXT("profefe.com/enable"), TEXT("true") };
	struct kube_pod p = *pod;
	struct buf out = { 0 };

	p.annotations = &on;
	p.nannotations = 1;
	assert_true(pod_is_annotated(&p));
	read_pod(&out, &p, &with_app, with_labels);
	assert_string_equal(out.p, want);
	buf_release(&out);
}

TEST(pods_of_all_kinds)
{
	static const struct kube_container digest = { .name = TEXT("c"),
						      .image = TEXT("a/b@sha256:12") };
	struct kube_pod pod = plain;

	pod.is_running = false;
	check_pod(&pod, "", false);
	pod = plain;
	pod.ip = STR("fd00::7");
	check_pod(&pod, "http://[fd00::7]:6060/debug/pprof web-1" USUAL, false);
	pod.ip = STR("evil/../x");
	check_pod(&pod, "pod ops/web-1: it has no address that could be asked", false);
	pod = plain;
	pod.containers = &digest;
	pod.ncontainers = 1;
	pod.owner = STR("");
	check_pod(&pod,
		  "namespace=ops pod=web-1 node=n1 container=c image=a/b@sha256:12 "
		  "version=sha256:12 app=web",
		  true);
	pod.ncontainers = 0;
	pod.name = STR("");
	check_pod(&pod, "pod ops/: it has no name that could be the service's", false);
	pod.nannotations = 0;
	assert_false(pod_is_annotated(&pod));
}

TEST(names_of_labels_are_checked)
{
	struct err e;

	assert_true(pod_labels_check(STR("app, app.kubernetes.io/name"), &e));
	assert_true(pod_labels_check(STR(""), &e));
	assert_false(pod_labels_check(STR("app,service"), &e));
	assert_false(pod_labels_check(STR("a b"), &e));
}
