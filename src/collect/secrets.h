/* secrets.h - what pods want to be shown before they give profiles, as secrets of the cluster have
 * it. It is never logged, and kept for half a minute at most. */
#ifndef COLLECT_SECRETS_H
#define COLLECT_SECRETS_H

#include "kube/kube.h"

/* In the pod's namespace; its name is "" if nobody has to log in. */
struct pod_secret {
	const char *name, *key;
	const char *user; /* "": the secret is a bearer token */
};

/* A header, in `a`. The error names the secret, and nothing that is in it. */
bool pod_secret_read(struct arena *a, struct kube_client *k, const char *namespace,
		     const struct pod_secret *s, atomic_bool *canceled, const char **header,
		     struct err *e);

/* The same for thousands of pods: what was read is good for half a minute. Threads: any. */
struct secrets;
struct secrets *secrets_new(struct kube_client *k);
void secrets_free(struct secrets *s);
bool secrets_get(struct secrets *s, struct arena *a, const char *namespace,
		 const struct pod_secret *secret, atomic_bool *canceled, const char **header,
		 struct err *e);

#endif
