/* kubectl.h - what the commands of kubectl kiln share. */
#ifndef CMD_KUBECTL_H
#define CMD_KUBECTL_H

#include "cmd/api.h"
#include "cmd/pods.h"
#include "cmd/round_report.h"

struct kubectl_options {
	struct kube_flags kube;
	struct api_options api;
	struct round_options round;
	const char *service, *type, *query, *from, *to, *by, *sort, *group;
	const char *old, *new, *old_from, *old_to;
	const char *output_dir, *labels, *image, *output;
	int64_t limit;
	bool no_browser, dry_run, scrape, help;
};

/* One call of a command. */
struct kubectl {
	const char *program; /* what it is called by: "kubectl kiln" */
	struct kubectl_options options;
	struct arena arena;
	struct api api; /* of commands that ask a server */
	int argc;
	char **argv; /* its arguments, without options */
	atomic_bool *canceled;
};

static inline bool kubectl_is_json(const struct kubectl *k)
{
	return *k->options.output == 'j';
}

/* Each returns the status. ERR_USAGE: it was called wrongly. */
bool kubectl_capture(struct kubectl *k, int *status, struct err *e);
bool kubectl_get(struct kubectl *k, int *status, struct err *e);
bool kubectl_load(struct kubectl *k, int *status, struct err *e);
bool kubectl_top(struct kubectl *k, int *status, struct err *e);
bool kubectl_diff(struct kubectl *k, int *status, struct err *e);
bool kubectl_flame(struct kubectl *k, int *status, struct err *e);
bool kubectl_install(struct kubectl *k, int *status, struct err *e);

/* Some went wrong, though not all of it. */
enum { KUBECTL_FAILED = 1 };

#endif
