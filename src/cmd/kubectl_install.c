/* kubectl_install.c - kubectl kiln install: the manifests of packaging/kubernetes. */
#include <stdio.h>
#include <unistd.h>

#include "base/child.h"
#include "cmd/cmd.h"
#include "cmd/kubectl.h"

static const unsigned char manifests[] = {
#include "cmd/manifests.inc"
};

static const unsigned char scrape_manifests[] = {
#include "cmd/scrape.inc"
};

/* Lines of manifests that begin with the first count only with --scrape, those that end with the
 * second only without. */
#define ONLY_WITH_SCRAPE "#scrape "
#define ONLY_WITHOUT_SCRAPE " # not with --scrape"

#define IMAGE "image: "
#define CRON_JOB "apiVersion: batch/v1\nkind: CronJob"
#define OLD_CRON_JOB "apiVersion: batch/v1beta1\nkind: CronJob"

enum { MAX_OUTPUT = 1 << 20, APPLY_SECONDS = 300, ASK_MS = 3000 };

/* Kubernetes before 1.21 has cron jobs under an older name only, and that is gone since 1.25.
 * Nobody has to be there to be asked: then it is as in new ones. */
static bool has_old_cron_jobs(struct kubectl *k)
{
	struct kube_request q = { .path = "/apis/batch/v1", .timeout_ms = ASK_MS };
	struct buf answer = { 0 };
	struct cluster cluster;
	struct err ignored;
	bool is_old;
	int status;

	if (!cluster_open(&cluster, &k->options.kube, false, &k->arena, &ignored))
		return false;
	is_old = kube_send(cluster.client, &q, &answer, &status, &ignored) &&
		 str_find(buf_view(&answer), STR("\"cronjobs\"")) == STR_NONE;
	buf_release(&answer);
	cluster_close(&cluster);
	return is_old;
}

static void replace_all(struct buf *text, struct str old, struct str new)
{
	struct buf out = { 0 };
	struct str rest = buf_view(text);
	size_t at;

	while ((at = str_find(rest, old)) != STR_NONE) {
		buf_add(&out, rest.p, at);
		buf_str(&out, new);
		rest = str_from(rest, at + old.n);
	}
	buf_str(&out, rest);
	buf_release(text);
	*text = out;
}

static void put_line_for_scrape(struct buf *out, struct str line)
{
	size_t at = str_find(line, STR(ONLY_WITH_SCRAPE));

	if (str_has_suffix(line, STR(ONLY_WITHOUT_SCRAPE)))
		return;
	if (at != STR_NONE) {
		buf_add(out, line.p, at);
		line = str_from(line, at + strlen(ONLY_WITH_SCRAPE));
	}
	buf_str(out, line);
	buf_char(out, '\n');
}

static void make_scrape(struct buf *text)
{
	struct buf out = { 0 };
	struct str rest = buf_view(text);

	while (rest.n)
		put_line_for_scrape(&out, str_cut(&rest, '\n'));
	buf_add(&out, scrape_manifests, sizeof(scrape_manifests));
	buf_release(text);
	*text = out;
}

/* With another image, if one is given, and as the cluster has it. */
static void put_manifests(struct kubectl *k, struct buf *out)
{
	struct buf image = { 0 };

	buf_add(out, manifests, sizeof(manifests));
	if (k->options.scrape)
		make_scrape(out);
	buf_printf(&image, IMAGE "%s", k->options.image);
	if (*k->options.image)
		replace_all(out, STR(IMAGE "kiln:latest"), buf_view(&image));
	if (has_old_cron_jobs(k))
		replace_all(out, STR(CRON_JOB), STR(OLD_CRON_JOB));
	buf_release(&image);
}

static bool is_image(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] <= ' ' || s.p[i] > '~' || strchr("\"'#{}[]&*!|>%`,", s.p[i]))
			return false;
	return true;
}

/* kubectl knows how to bring a cluster to what is said here, whatever there was before. */
static bool apply(const struct kubectl *k, struct str text, struct err *e)
{
	const struct kube_flags *f = &k->options.kube;
	const struct {
		const char *name, *value;
	} passed[] = { { "--kubeconfig", f->kubeconfig },
		       { "--context", f->context },
		       { "--cluster", f->cluster },
		       { "--user", f->user },
		       { "--server", f->server },
		       { "--token", f->token },
		       { "--as", f->as } };
	const char *argv[4 + 2 * sizeof(passed) / sizeof(*passed) + 2] = { "kubectl", "apply", "-f",
									   "-" };
	struct child_params params = {
		.argv = argv, .input = text, .max_seconds = APPLY_SECONDS, .max_output = MAX_OUTPUT
	};
	struct buf out = { 0 };
	size_t n = 4;
	bool ok;

	for (size_t i = 0; i < sizeof(passed) / sizeof(*passed); i++)
		if (*passed[i].value) {
			argv[n++] = passed[i].name;
			argv[n++] = passed[i].value;
		}
	if (f->insecure)
		argv[n++] = "--insecure-skip-tls-verify";
	ok = child_run(&params, &out, e) || err_wrap(e, "kubectl apply");
	print_and_exit(&out, STDOUT_FILENO, 0);
	return ok;
}

bool kubectl_install(struct kubectl *k, int *status, struct err *e)
{
	const char *image = k->options.image;
	struct buf text = { 0 };
	bool ok = true;

	(void)status;
	if (k->argc)
		return err_set(e, ERR_USAGE, "what is \"%s\"? Options begin with --", k->argv[0]);
	if (!is_image(str_of(image)))
		return err_set(e, ERR_USAGE, "--image %s: that is no name of an image", image);
	put_manifests(k, &text);
	if (k->options.dry_run) {
		print_and_exit(&text, STDOUT_FILENO, 0);
		return true;
	}
	ok = apply(k, buf_view(&text), e);
	buf_release(&text);
	return ok;
}
