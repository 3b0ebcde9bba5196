/* kubectl_install.c - kubectl kiln install: the manifests of packaging/kubernetes. */
#include <stdio.h>
#include <unistd.h>

#include "base/child.h"
#include "cmd/cmd.h"
#include "cmd/kubectl.h"

static const unsigned char manifests[] = {
#include "cmd/manifests.inc"
};

#define IMAGE "image: kiln:latest"

enum { MAX_OUTPUT = 1 << 20, APPLY_SECONDS = 300 };

/* As they are, or with another image. */
static void put_manifests(struct buf *out, const char *image)
{
	struct str rest = { (const char *)manifests, sizeof(manifests) };

	while (rest.n) {
		size_t at = *image ? str_find(rest, STR(IMAGE)) : STR_NONE;

		buf_add(out, rest.p, at == STR_NONE ? rest.n : at);
		if (at == STR_NONE)
			return;
		buf_printf(out, "image: %s", image);
		rest = str_from(rest, at + sizeof(IMAGE) - 1);
	}
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
	put_manifests(&text, image);
	if (k->options.dry_run) {
		print_and_exit(&text, STDOUT_FILENO, 0);
		return true;
	}
	ok = apply(k, buf_view(&text), e);
	buf_release(&text);
	return ok;
}
