#include "kube/inside.h"

#include "test.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/small_file.h"

static char dir[64];

static const char *at(const char *name)
{
	static char path[4][200];
	static unsigned turn;
	char *to = path[turn++ % 4];

	snprintf(to, sizeof(path[0]), "%s/%s", dir, name);
	return to;
}

static const char *put(const char *name, const char *text)
{
	const char *path = at(name);
	struct err e;

	if (!small_file_write(path, str_of(text), &e))
		fail_msg("%s", e.text);
	return path;
}

/* No file of whoever runs this counts. */
static void begin(void)
{
	strcpy(dir, "/tmp/kiln-kubeconfig-XXXXXX");
	assert_non_null(mkdtemp(dir));
	setenv("HOME", dir, 1);
	unsetenv("KUBECONFIG");
	unsetenv("KUBERNETES_SERVICE_HOST");
	unsetenv("KUBERNETES_SERVICE_PORT");
}

static const char two_contexts[] =
	"apiVersion: v1\nkind: Config\ncurrent-context: one\n"
	"clusters:\n"
	"- name: c1\n  cluster: {server: 'https://h1:6443/', certificate-authority-data: Q0E=}\n"
	"- name: c2\n  cluster:\n    server: https://h2/k8s/clusters/x\n"
	"    insecure-skip-tls-verify: true\n    tls-server-name: kubernetes\n"
	"    proxy-url: http://proxy:1\n"
	"users:\n"
	"- {name: u1, user: {token: t1}}\n"
	"- {name: u2, user: {client-certificate: sub/c.pem, client-key-data: S0VZ,\n"
	"    as: jane, as-groups: [dev, ops], as-uid: '7'}}\n"
	"contexts:\n"
	"- {name: one, context: {cluster: c1, user: u1, namespace: shop}}\n"
	"- {name: two, context: {cluster: c2, user: u2}}\n";

TEST(a_context_is_a_cluster_and_a_user)
{
	struct kube_config c;
	struct err e;

	begin();
	mkdir(at("sub"), 0700);
	put("sub/c.pem", "CERT");
	put("k", two_contexts);
	assert_true(kube_config_load(&c, &(struct kube_access){ .kubeconfig = at("k") }, &e));
	assert_string_equal(c.server, "https://h1:6443");
	assert_string_equal(c.token, "t1");
	assert_string_equal(c.namespace, "shop");
	assert_true(str_eq(c.ca, STR("CA")));
	assert_false(c.insecure);
	assert_int_equal(c.request_timeout_ms, 30000);
	assert_non_null(strstr(c.origin, "context one"));
	kube_config_release(&c);

	setenv("KUBECONFIG", at("k"), 1);
	assert_true(kube_config_load(&c, &(struct kube_access){ .context = "two" }, &e));
	assert_string_equal(c.server, "https://h2/k8s/clusters/x");
	assert_string_equal(c.cert_file, at("sub/c.pem"));
	assert_true(str_eq(c.key, STR("KEY")));
	assert_true(c.insecure);
	assert_string_equal(c.tls_server_name, "kubernetes");
	assert_string_equal(c.proxy, "http://proxy:1");
	assert_string_equal(c.namespace, "default");
	assert_string_equal(c.as, "jane");
	assert_string_equal(c.as_uid, "7");
	assert_string_equal(c.as_group[1], "ops");
	assert_null(c.as_group[2]);
	kube_config_release(&c);
}

TEST(flags_count_before_files)
{
	struct kube_access a = { .user = "u2",
				 .server = "http://127.0.0.1:8001",
				 .token = "mine",
				 .namespace = "n",
				 .as = "joe",
				 .insecure = true,
				 .request_timeout_ms = 5 };
	struct kube_config c;
	struct err e;

	begin();
	mkdir(at("sub"), 0700);
	put("sub/c.pem", "CERT");
	a.kubeconfig = put("k", two_contexts);
	assert_true(kube_config_load(&c, &a, &e));
	assert_string_equal(c.server, "http://127.0.0.1:8001");
	assert_string_equal(c.token, "mine");
	assert_string_equal(c.namespace, "n");
	assert_string_equal(c.as, "joe");
	assert_string_equal(c.cert_file, at("sub/c.pem"));
	assert_null(c.ca.p); /* of no use then */
	assert_int_equal(c.request_timeout_ms, 5);
	kube_config_release(&c);
}

TEST(files_are_joined_and_the_first_counts)
{
	char list[500];
	struct kube_config c;
	struct err e;

	begin();
	put("a", "current-context: x\nusers: [{name: u, user: {token: from-a}}]\n");
	put("b", "current-context: y\nusers: [{name: u, user: {token: from-b}}]\n"
		 "clusters: [{name: c, cluster: {server: https://b}}]\n"
		 "contexts: [{name: x, context: {cluster: c, user: u}}]\n");
	snprintf(list, sizeof(list), ":%s/missing:%s/a:%s/b", dir, dir, dir);
	setenv("KUBECONFIG", list, 1);
	assert_true(kube_config_load(&c, &(struct kube_access){ 0 }, &e));
	assert_string_equal(c.server, "https://b");
	assert_string_equal(c.token, "from-a");
	kube_config_release(&c);
}

TEST(a_pod_has_an_account)
{
	struct kube_access a = { 0 };
	struct kube_config c;
	struct err e;

	begin();
	put("token", "secret\n");
	put("ca.crt", "CA");
	put("namespace", "shop\n");
	setenv("KUBERNETES_SERVICE_HOST", "fd00::1", 1);
	setenv("KUBERNETES_SERVICE_PORT", "443", 1);
	a.account_dir = dir;
	assert_true(kube_config_load(&c, &a, &e));
	assert_string_equal(c.server, "https://[fd00::1]:443");
	assert_string_equal(c.token_file, at("token"));
	assert_string_equal(c.ca_file, at("ca.crt"));
	assert_string_equal(c.namespace, "shop");
	kube_config_release(&c);

	/* A file counts first, unless somebody says so. */
	setenv("KUBECONFIG", put("k", two_contexts), 1);
	assert_true(kube_config_load(&c, &a, &e));
	assert_string_equal(c.server, "https://h1:6443");
	kube_config_release(&c);
	a.in_cluster_first = true;
	assert_true(kube_config_load(&c, &a, &e));
	assert_string_equal(c.server, "https://[fd00::1]:443");
	kube_config_release(&c);
}

/* The error of a kubeconfig, without the file's name. */
static const char *error_of(const char *text)
{
	static struct err e;
	struct kube_config c;
	const char *colon;

	if (kube_config_load(&c, &(struct kube_access){ .kubeconfig = put("bad", text) }, &e)) {
		kube_config_release(&c);
		return "none";
	}
	assert_int_equal(e.kind, ERR_USAGE);
	colon = strstr(e.text, "/bad");
	return colon ? colon + 4 : e.text;
}

#define CLUSTER "clusters: [{name: c, cluster: {server: 'https://h'}}]\n"
#define CONTEXT "current-context: x\ncontexts: [{name: x, context: {cluster: c, user: u}}]\n"
#define USER(fields) CLUSTER CONTEXT "users: [{name: u, user: {" fields "}}]\n"

TEST(errors_name_the_line_and_the_field)
{
	static const struct {
		const char *text, *error;
	} cases[] = {
		{ "[", ": line 2: did not find expected node content" },
		{ "- a\n", ": line 1: this is no kubeconfig" },
		{ "kind: Pod\n", ": line 1: this is no kubeconfig: its kind is Pod, not Config" },
		{ "",
		  ": no context is chosen, by current-context or by --context; there are: none" },
		{ "contexts: [{name: a}, {name: b}]\n",
		  ": no context is chosen, by current-context or by --context; there are: a, b" },
		{ "current-context: z\ncontexts: [{name: a}]\n",
		  ": there is no \"z\" in contexts; there are: a" },
		{ "clusters: {}\n" CONTEXT, ": there is no \"c\" in clusters; there are: none" },
		{ "clusters: {a: b}\n" CONTEXT, ": line 1: clusters is no list" },
		{ CLUSTER CONTEXT, ": there is no \"u\" in users; there are: none" },
		{ USER("token: [1]"), ": line 4: token is no text" },
		{ USER("token: \"a\\nb\""), ": line 4: token has a control character" },
		{ USER("client-key-data: '%'"), ": line 4: client-key-data is no base64" },
		{ USER("client-certificate-data: QQ=="),
		  ", context x: a client certificate and its key come together" },
		{ USER("auth-provider: {name: gcp}"),
		  ": line 4: auth-provider is gone from Kubernetes; use an exec plugin" },
		{ USER("as-user-extra: {a: [b]}"), ": line 4: as-user-extra is not understood" },
		{ USER("as-groups: [a]"),
		  ", context x: who is impersonated needs a name, too (--as)" },
		{ USER("exec: {command: p}"),
		  ": line 4: apiVersion of exec must be client.authentication.k8s.io/v1 or "
		  "client.authentication.k8s.io/v1beta1; update the program" },
		{ USER("exec: {apiVersion: client.authentication.k8s.io/v1}"),
		  ": line 4: exec has no command" },
		{ USER("exec: {apiVersion: client.authentication.k8s.io/v1, command: p, env: [a]}"),
		  ": line 4: env is a list of name and value" },
		{ USER("exec: {apiVersion: client.authentication.k8s.io/v1, command: p, "
		       "interactiveMode: Always}"),
		  ": line 4: p wants to talk with a person (interactiveMode: Always); kiln asks "
		  "nobody" },
		{ USER("tokenFile: /nowhere/t"),
		  ", context x: token: open /nowhere/t: no such file or directory" },
		{ "clusters: [{name: c, cluster: {server: 'h:6443'}}]\ncurrent-context: x\n"
		  "contexts: [{name: x, context: {cluster: c}}]\n",
		  ", context x: server \"h:6443\" is no URL such as https://10.0.0.1:6443" },
		{ "clusters: [{name: c}]\ncurrent-context: x\n"
		  "contexts: [{name: x, context: {cluster: c}}]\n",
		  ", context x: the cluster has no server" },
		{ "clusters: [{name: c, cluster: {server: 'https://h', "
		  "insecure-skip-tls-verify: maybe}}]\n" CONTEXT,
		  ": line 1: insecure-skip-tls-verify is true or false" },
	};

	begin();
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_string_equal(error_of(cases[i].text), cases[i].error);
}

TEST(without_any_configuration_it_says_what_to_do)
{
	struct kube_config c;
	struct err e;

	begin();
	assert_false(kube_config_load(&c, &(struct kube_access){ 0 }, &e));
	assert_int_equal(e.kind, ERR_USAGE);
	assert_non_null(strstr(e.text, "--kubeconfig"));
	assert_false(kube_config_load(&c, &(struct kube_access){ .kubeconfig = at("none") }, &e));
	assert_non_null(strstr(e.text, "no such file"));
	assert_true(kube_config_load(&c, &(struct kube_access){ .server = "https://h" }, &e));
	assert_string_equal(c.server, "https://h");
	kube_config_release(&c);
}

/* ---- programs */

#define V1 "client.authentication.k8s.io/v1"
#define CREDENTIAL(status) \
	"{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1 "\",\"status\":" status "}"

TEST(credentials_are_read)
{
	struct exec_credential x;
	struct err e;

	assert_true(kube_exec_read(
		STR(CREDENTIAL(
			"{\"token\":\"t\",\"expirationTimestamp\":\"2026-11-16T14:00:00Z\"}")),
		V1, &x, &e));
	assert_true(str_eq(x.token, STR("t")));
	assert_int_equal(x.expires_ns / 1000000000, 1794837600);
	exec_credential_release(&x);
	assert_true(kube_exec_read(STR(CREDENTIAL("{\"clientCertificateData\":\"c\","
						  "\"clientKeyData\":\"k\"}")),
				   V1, &x, &e));
	assert_null(x.token.p);
	assert_true(str_eq(x.key, STR("k")));
	exec_credential_release(&x);
}

TEST(credentials_that_are_none_are_refused)
{
	static const struct {
		const char *text, *error;
	} cases[] = {
		{ "", "unexpected character" },
		{ "{}", "its kind is not ExecCredential" },
		{ "{\"kind\":\"ExecCredential\",\"apiVersion\":\"v2\"}",
		  "its apiVersion is \"v2\"" },
		{ CREDENTIAL("null"), "it has no status" },
		{ CREDENTIAL("{}"), "neither a token nor a certificate" },
		{ CREDENTIAL("{\"token\":\"a\\nb\"}"), "the token is no token" },
		{ CREDENTIAL("{\"clientKeyData\":\"k\"}"), "come together" },
		{ CREDENTIAL("{\"token\":\"t\",\"expirationTimestamp\":\"soon\"}"),
		  "expirationTimestamp" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct exec_credential x;
		struct err e;

		assert_false(kube_exec_read(str_of(cases[i].text), V1, &x, &e));
		assert_non_null(strstr(e.text, cases[i].error));
	}
}

static bool run_program(const char *script, const char *more, struct exec_credential *x,
			struct err *e)
{
	char text[2000];
	struct kube_config c;
	bool ok;

	put("plugin", script);
	chmod(at("plugin"), 0700);
	snprintf(text, sizeof(text),
		 USER("exec: {apiVersion: " V1 ", command: ./plugin, args: [-x, two words], "
		      "env: [{name: GREETING, value: 'hello world'}], installHint: get it%s}"),
		 more);
	assert_true(kube_config_load(&c, &(struct kube_access){ .kubeconfig = put("k", text) }, e));
	ok = kube_exec_run(&c, x, e);
	kube_config_release(&c);
	return ok;
}

TEST(a_program_gets_arguments_and_environment)
{
	struct exec_credential x;
	struct err e;

	begin();
	if (!run_program("#!/bin/sh\n"
			 "info=$(printf %s \"$KUBERNETES_EXEC_INFO\" | tr -d '\"')\n"
			 "echo '{\"kind\":\"ExecCredential\",\"apiVersion\":\"" V1 "\",\"status\":"
			 "{\"token\":\"'\"$1|$2|$GREETING|$info\"'\"}}'\n",
			 ", provideClusterInfo: true", &x, &e))
		fail_msg("%s", e.text);
	assert_true(
		str_eq(x.token, STR("-x|two words|hello world|{kind:ExecCredential,apiVersion:" V1
				    ",spec:{interactive:false,cluster:{server:https://h}}}")));
	exec_credential_release(&x);
}

TEST(a_program_that_fails_is_named)
{
	struct exec_credential x;
	struct err e;

	begin();
	assert_false(run_program("#!/bin/sh\nexit 3\n", "", &x, &e));
	assert_int_equal(e.kind, ERR_IO);
	assert_non_null(strstr(e.text, "/plugin: exit status 3"));
	assert_false(run_program("#!/bin/sh\necho '{}'\n", "", &x, &e));
	assert_non_null(strstr(e.text, "what it printed: its kind is not ExecCredential"));
	assert_false(run_program("#!/bin/sh\nhead -c 2000000 /dev/zero\n", "", &x, &e));
	assert_non_null(strstr(e.text, "it printed more than"));
}
