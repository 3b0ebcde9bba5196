/* pods.h - pods of a cluster that want to be profiled, chosen as kubectl's flags say. */
#ifndef CMD_PODS_H
#define CMD_PODS_H

#include "base/vec.h"
#include "collect/annotations.h"
#include "collect/round.h"

#define KUBE_FIELD_BOOL bool
#define KUBE_FIELD_STRING const char *
#define KUBE_FIELD_LIST const char *
#define KUBE_FIELD_TIME int64_t

/* Rows of a table of options are made by
 *
 *	#define KUBE(type, field, flags, name, key, value, help) ...
 *	#include "cmd/kube.def"
 */
struct kube_flags {
#define KUBE(type, field, flags, name, key, value, help) KUBE_FIELD_##type field;
#include "cmd/kube.def"
#undef KUBE
};
/* For their defaults: .field = KUBE_NONE_##type */
#define KUBE_NONE_BOOL false
#define KUBE_NONE_STRING ""
#define KUBE_NONE_LIST ""
#define KUBE_NONE_TIME 30 * COLLECT_SECOND

/* A cluster, while it is asked. */
struct cluster {
	struct kube_config config;
	struct kube_client *client;
};
bool cluster_open(struct cluster *c, const struct kube_flags *flags, bool in_cluster_first,
		  struct arena *a, struct err *e);
void cluster_close(struct cluster *c);

/* Where a target of a round is from. */
struct pod_origin {
	const char *namespace, *pod, *scheme, *prefix;
	uint16_t port;
};

struct pods_params {
	struct cluster *cluster;
	const struct kube_flags *flags;
	char *const *names; /* of pods; none: all that there are */
	size_t nnames;
	struct pod_targets_params types;
	atomic_bool *canceled;
};

struct pods {
	struct arena arena;		  /* of all of it */
	vec(struct round_target) targets; /* origin is a struct pod_origin */
	vec(char *) problems;		  /* a line for each pod that costs a profile */
	size_t nseen;			  /* pods that were looked at */
};
/* `out` must be zeroed, and is to be released in any case. False: the cluster did not answer as it
 * should. */
bool pods_find(struct pods *out, const struct pods_params *params, struct err *e);
void pods_release(struct pods *p);

#endif
