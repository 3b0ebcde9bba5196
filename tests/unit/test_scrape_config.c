/* scrape: in the configuration file. */
#include "test.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/small_file.h"
#include "collect/scrape_config.h"

static struct scrape_config read_good(const char *text)
{
	struct scrape_config c;
	struct err e;

	if (!scrape_config_read(&c, str_of(text), "/etc/kiln", &e))
		fail_msg("%s", e.text);
	return c;
}

static void assert_fails(const char *text, const char *want)
{
	struct scrape_config c;
	struct err e;

	if (scrape_config_read(&c, str_of(text), ".", &e))
		fail_msg("%s: no error, want %s", text, want);
	if (!strstr(e.text, want))
		fail_msg("%s: got %s, want %s", text, e.text, want);
}

TEST(what_is_not_said_is_as_one_would_expect)
{
	struct scrape_config c = read_good("data: /x\nscrape:\n  - job: a\n    targets: [h:1]\n");
	const struct scrape_job *j = c.jobs;

	assert_int_equal(c.njobs, 1);
	assert_string_equal(j->name, "a");
	assert_string_equal(j->scheme, "http");
	assert_string_equal(j->path_prefix, "/debug/pprof");
	assert_int_equal(j->interval, 60 * COLLECT_SECOND);
	assert_int_equal(j->timeout, 10 * COLLECT_SECOND);
	assert_int_equal(j->ntargets, 1);
	assert_int_equal(j->ntypes, 5);
	assert_string_equal(j->types[0].name, "cpu");
	assert_string_equal(j->types[0].path, "profile");
	assert_int_equal(j->types[0].seconds, 10);
	assert_int_equal(j->types[0].interval, 60 * COLLECT_SECOND);
	assert_string_equal(j->types[0].exclusive, "cpu");
	assert_null(j->types[1].exclusive);
	scrape_config_release(&c);
}

TEST(all_can_be_said)
{
	struct scrape_config c = read_good(
		"scrape:\n"
		"- job: a\n  interval: 1m30s\n  jitter: 5s\n  timeout: 3s\n  max_backoff: 10m\n"
		"  replicas: 2\n  scheme: https\n  path_prefix: /x/\n"
		"  labels: {env: prod}\n  tls: {insecure: true}\n"
		"  basic_auth: {username: u, password: p}\n"
		"  profiles: {cpu: {seconds: 30, interval: 5m}, heap: , odd: {path: odd/one}}\n"
		"  targets: [h:1, {targets: [h:2, h:3], labels: {a: b}}]\n"
		"  files: [t/*.yaml, /abs/*.json]\n"
		"- {job: b, interval: 5s, files: [x], profiles: [cpu, {wall: {seconds: 2}}]}\n");
	const struct scrape_job *j = c.jobs;

	assert_int_equal(c.njobs, 2);
	assert_int_equal(j->interval, 90 * COLLECT_SECOND);
	assert_int_equal(j->jitter, 5 * COLLECT_SECOND);
	assert_int_equal(j->backoff, 600 * COLLECT_SECOND);
	assert_int_equal(j->replicas, 2);
	assert_true(j->tls_insecure);
	assert_string_equal(j->user, "u");
	assert_string_equal(j->password, "p");
	assert_int_equal(j->nlabels, 1);
	assert_int_equal(j->ntypes, 3);
	assert_int_equal(j->types[0].interval, 300 * COLLECT_SECOND);
	assert_string_equal(j->types[2].path, "odd/one");
	assert_int_equal(j->ntargets, 3);
	assert_int_equal(j->targets[2].nlabels, 1);
	assert_string_equal(j->files[0], "/etc/kiln/t/*.yaml");
	assert_string_equal(j->files[1], "/abs/*.json");
	/* A short interval has a short CPU profile, unless seconds are given. */
	assert_int_equal(c.jobs[1].types[0].seconds, 5);
	assert_int_equal(c.jobs[1].types[1].seconds, 2);
	scrape_config_release(&c);
}

TEST(there_may_be_no_jobs)
{
	static const char *const texts[] = { "", "data: /x\n", "scrape: []\n", "scrape:\n",
					     "max: {scrapes: 5}\n" };

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		struct scrape_config c = read_good(texts[i]);

		assert_int_equal(c.njobs, 0);
		scrape_config_release(&c);
	}
}

#define JOB "scrape:\n- job: j\n  targets: ['h:1']\n"

TEST(mistakes_are_named)
{
	static const char *const cases[][2] = {
		{ "scrape: [x]", "line 1: a job is written as" },
		{ "scrape:\n- {}", "line 2: the job has no name" },
		{ "scrape:\n- job: j",
		  "line 2: job j has neither targets nor files nor kubernetes" },
		{ JOB "  interval: [1]", "scrape job j: line 4: interval is one value: TIME" },
		{ JOB "  interval: 2x", "line 4: interval: \"2x\"" },
		{ JOB "  interval: 2d", "interval is between 1s and 1d" },
		{ JOB "  jitter: 2m", "jitter is longer than interval" },
		{ JOB "  timeout: 1ms", "timeout is between" },
		{ JOB "  replicas: -1", "replicas is 0, or more" },
		{ JOB "  path_prefix: x", "path-prefix begins with a slash" },
		{ JOB "  path_prefix: /a?b", "path-prefix begins with a slash" },
		{ JOB "  path_prefix: /a/../b", "path-prefix begins with a slash" },
		{ JOB "  nope: 1", "line 4: a job has no \"nope\"; kiln-serve(5)" },
		{ JOB "  tls: {nope: 1}", "line 4: a job has no \"tls-nope\"" },
		{ JOB "  profiles: cpu", "line 4: profiles are a list" },
		{ JOB "  profiles: []", "line 4: profiles are a list" },
		{ JOB "  profiles: [cpu, cpu]", "line 4: cpu is there twice" },
		{ JOB "  profiles: ['a b']", "line 4: the name of a profile" },
		{ JOB "  profiles: [[a]]", "line 4: profiles are a list of names" },
		{ JOB "  profiles: {cpu: 5}", "line 4: what is said of cpu" },
		{ JOB "  profiles: {cpu: {seconds: 1.5}}", "line 4: seconds is a whole number" },
		{ JOB "  profiles: {cpu: {seconds: 4000}}", "line 4: seconds is a whole number" },
		{ JOB "  profiles: {cpu: {interval: x}}", "line 4: interval: " },
		{ JOB "  profiles: {cpu: {path: 'a?b'}}", "line 4: path is what stands after" },
		{ JOB "  profiles: {cpu: {seconds: 61}}",
		  "cpu takes 61s, and its interval is 60s" },
		{ JOB "  profiles: {cpu: {seconds: 0}}", "cpu is collected for some time" },
		{ JOB "  profiles: {x: {path: a/profile}}", "x is collected for some time" },
		{ JOB "  scheme: https\n  tls-ca: /dev/null\n  tls: {ca: /dev/zero}",
		  "line 6: tls-ca is there twice" },
		{ JOB "  max_backoff: 1m\n  max-backoff: 2m", "max-backoff is there twice" },
		{ JOB "  files: x", "line 4: files are a list" },
		{ JOB "  files: ['']", "line 4: this is no name of a file" },
		{ JOB "  labels: {1: {}}", "line 4: the value of the label 1" },
		{ JOB "  basic_auth: {password: x}", "basic-auth needs a username" },
		{ JOB "  scheme: https\n  tls: {cert: x}", "tls needs cert and key" },
		{ JOB "  bearer_token_file: /nope/x", "bearer-token-file: open /nope/x" },
		{ JOB "- job: j\n  targets: [h:1]", "line 4: there are two jobs j" },
		{ JOB "  kubernetes: [x]", "line 4: kubernetes is written as" },
		{ JOB "  kubernetes: {nope: x}", "line 4: a job has no \"kubernetes-nope\"" },
		{ JOB "  kubernetes: {namespace: [a, b]}",
		  "line 4: kubernetes-namespace is one value" },
		{ JOB "  kubernetes: {namespace: a/b}",
		  "line 4: kubernetes-namespace is one name" },
		{ JOB "  kubernetes: {selector: \"a\\nb\"}", "kubernetes-selector is written as" },
		{ JOB "  kubernetes: {pod-labels: 'a,pod'}",
		  "kubernetes-pod-labels: \"pod\" cannot" },
		{ JOB "  kubernetes: {namespace: a}\n  kubernetes-namespace: b",
		  "line 5: kubernetes-namespace is there twice" },
		{ JOB "  kubernetes: {kubeconfig: /nope/x}",
		  "line 4: kubernetes: kubeconfig: open /nope/x: no such file" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_fails(cases[i][0], cases[i][1]);
}

/* A kubeconfig that is enough to be told which cluster it is. */
static const char *make_kubeconfig(void)
{
	static const char path[] = "test_scrape_config.kubeconfig";
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs("apiVersion: v1\nkind: Config\ncurrent-context: a\n"
	      "clusters: [{name: c, cluster: {server: 'http://127.0.0.1:1'}}]\n"
	      "contexts: [{name: a, context: {cluster: c}}]\n",
	      f);
	fclose(f);
	return path;
}

TEST(pods_of_a_cluster)
{
	const char *kubeconfig = make_kubeconfig();
	struct scrape_config c;
	struct err e;

	if (!scrape_config_read(
		    &c,
		    STR("scrape:\n"
			"- {job: a, kubernetes: {kubeconfig: test_scrape_config.kubeconfig, "
			"namespace: ops, selector: 'a=b,c', context: a, pod_labels: 'x,y'}}\n"
			"- {job: b, kubernetes-kubeconfig: test_scrape_config.kubeconfig, "
			"tls: {insecure: true}}\n"
			"- {job: c, kubernetes: false, targets: ['h:1']}\n"),
		    ".", &e))
		fail_msg("%s", e.text);
	assert_true(c.jobs[0].kubernetes && c.jobs[1].kubernetes && !c.jobs[2].kubernetes);
	assert_string_equal(c.jobs[0].kube_namespace, "ops");
	assert_string_equal(c.jobs[0].kube_selector, "a=b,c");
	assert_string_equal(c.jobs[0].kube_context, "a");
	assert_string_equal(c.jobs[0].kube_pod_labels, "x,y");
	assert_string_equal(c.jobs[1].kube_namespace, "");
	scrape_config_release(&c);
	assert_fails("scrape: [{job: a, kubernetes: {kubeconfig: test_scrape_config.kubeconfig, "
		     "context: b}}]",
		     "line 1: kubernetes: ");
	remove(kubeconfig);
}

/* Whoever kiln is, it is in no cluster here. */
TEST(a_cluster_must_be_there_to_be_asked)
{
	setenv("KUBECONFIG", "", 1);
	setenv("HOME", "/nope", 1);
	unsetenv("KUBERNETES_SERVICE_HOST");
	assert_fails("scrape:\n- {job: a, kubernetes: {}}", "scrape job a: line 2: kubernetes: ");
	assert_fails("scrape:\n- job: a\n  kubernetes:", "scrape job a: line 3: kubernetes: ");
}

TEST(a_long_name_of_a_job_is_told_as_such)
{
	struct buf text = { 0 };

	buf_printf(&text, "scrape:\n- {targets: ['h:1'], job: %0201d}%c", 7, '\0');
	assert_fails(text.p, "line 2: the name of a job has at most 200 bytes");
	text.n = 0;
	buf_printf(&text, "scrape:\n- {targets: ['h:1'], job: %02000d}%c", 7, '\0');
	assert_fails(text.p, "line 2: the name of a job has at most 200 bytes");
	buf_release(&text);
}

TEST(the_example_is_right)
{
	struct buf text = { 0 };
	struct scrape_config c;
	struct err e;

	assert_true(small_file_read(&text, "examples/kiln.yaml", 1 << 20, &e));
	if (!scrape_config_read(&c, buf_view(&text), "examples", &e))
		fail_msg("%s", e.text);
	assert_int_equal(c.njobs, 3);
	scrape_config_release(&c);
	buf_release(&text);
}

TEST(what_kinds_of_profiles_there_are)
{
	assert_non_null(profile_type_find(STR("heap")));
	assert_null(profile_type_find(STR("nope")));
}
