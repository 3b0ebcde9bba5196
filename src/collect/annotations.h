/* annotations.h - what a pod's annotations say about profiles of it.
 *
 * profefe.com/{enable,port,service,path} as kube-profefe documents them, the same and more under
 * kiln.dev/ (annotations.def), and Grafana's profiles.grafana.com/TYPE.{scrape,port,port_name,
 * scheme,path}. kiln.dev/ goes before profefe.com/, and Grafana's count only where neither enables
 * anything. A pod that says something wrong has no targets, and the error names the pod, the
 * annotation and what to write.
 */
#ifndef COLLECT_ANNOTATIONS_H
#define COLLECT_ANNOTATIONS_H

#include "collect/scrape_config.h"
#include "collect/secrets.h"
#include "kube/kube.h"

struct pod_target {
	struct str address; /* host:port */
	uint16_t port;
	const char *scheme; /* http, https or https+insecure */
	const char *prefix; /* begins with a slash; types' paths are below it */
	struct str service, instance;
	struct profile_type *types;
	size_t ntypes;
	/* namespace, pod, node, owner, container, image, version, and what was chosen */
	const struct target_label *labels;
	size_t nlabels;
	struct pod_secret secret;
};

struct pod_targets_params {
	/* Of pods that name none; who names one of these has it as it is here. */
	const struct profile_type *types;
	size_t ntypes;
	const char *pod_labels;	     /* of all pods, besides what annotations say: "a,b", or NULL */
	const char *scheme, *prefix; /* of pods that say none; NULL: http, and /debug/pprof */
	int64_t interval;	     /* of all that has none; 0: there are none */
};

/* Does it want to be profiled, rightly said or not? For kube_follow_params.wants. */
bool pod_is_annotated(const struct kube_pod *pod);
/* All in `a`, but for views of the pod's own strings. None of a pod that does not run, or that does
 * not want any. */
bool pod_targets_read(struct arena *a, const struct kube_pod *pod,
		      const struct pod_targets_params *params, struct pod_target **targets,
		      size_t *n, struct err *e);

/* Names of labels, separated by commas; the error is only the reason. */
bool pod_labels_check(struct str list, struct err *e);

/* The rows of annotations.def, for the manual. */
struct annotation_def {
	const char *name;
	bool is_profefe;
	const char *value, *help;
};
extern const struct annotation_def annotation_defs[];
extern const size_t nannotation_defs;

#endif
