/* kube.h - a Kubernetes cluster as kiln needs it: who to talk to and as whom, which pods there are,
 * and a way to a pod's port.
 *
 *	struct kube_config config;
 *	if (!kube_config_load(&config, &(struct kube_access){ .context = "prod" }, &e)) ...
 *	struct kube_client *k = kube_client_new(&config);
 *	kube_list_pods(k, &(struct kube_query){ .namespace = "ops" }, take_pod, ctx, &e);
 *	kube_client_free(k);
 *	kube_config_release(&config);
 *
 * What the API server says is not trusted: replies are bounded, read piece by piece, and only the
 * fields below are kept. Errors name the cluster, the request, and the server's own reason: `pods
 * is forbidden: User "x" cannot list resource "pods"`. ERR_USAGE: the configuration is wrong;
 * ERR_NOTFOUND: 404; ERR_LIMIT: a reply that is too large; ERR_IO: all else, worth another try.
 * Threads: many may use one client.
 */
#ifndef KUBE_KUBE_H
#define KUBE_KUBE_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"

/* ---- which cluster, and as whom (kubeconfig.c, exec.c) */

/* What kubectl's flags say; NULL or "" if not given. */
struct kube_access {
	const char *kubeconfig; /* else the files of $KUBECONFIG, joined as kubectl does, else
				   ~/.kube/config, else a pod's own account */
	const char *context, *cluster, *user, *namespace;
	const char *server, *token, *certificate_authority, *client_certificate, *client_key;
	const char *tls_server_name;
	const char *as;		     /* impersonate */
	const char *const *as_group; /* NULL at the end; or NULL */
	bool insecure;
	int64_t request_timeout_ms; /* 0: 30 s */
	bool in_cluster_first;	    /* as kprofefe does */
	const char *account_dir;    /* of a pod's own account; NULL: where all pods have it */
};

/* Who to talk to: all that a request needs. Strings are in `arena`, or ""; PEM text is given by a
 * file or as bytes. */
struct kube_config {
	struct arena arena;
	const char *origin; /* where it is from, for people: "~/.kube/config, context prod" */
	const char *server; /* https://host:port/prefix, without a slash at the end */
	const char *namespace;
	const char *ca_file, *cert_file, *key_file;
	struct str ca, cert, key;
	const char *tls_server_name, *proxy;
	bool insecure;
	const char *token, *token_file; /* the file is read again, as tokens change */
	const char *user, *password;
	const char *as, *as_uid;
	const char *const *as_group;  /* NULL at the end; or NULL */
	const struct kube_exec *exec; /* a program that prints credentials; NULL: none */
	int64_t request_timeout_ms;
};

/* The error names the file, the line, the field and what to do. On failure there is nothing to
 * release. */
bool kube_config_load(struct kube_config *c, const struct kube_access *access, struct err *e);
void kube_config_release(struct kube_config *c);

/* ---- requests (client.c) */

struct kube_client;
/* `config` must outlive it. */
struct kube_client *kube_client_new(const struct kube_config *config);
void kube_client_free(struct kube_client *k);

/* A request for `path`, below the server's URL. False: there was no answer, or none of 2xx. A 401
 * is tried once more with fresh credentials. */
struct kube_request {
	const char *path;
	const char *method;	  /* NULL: GET */
	struct str body;	  /* JSON; p == NULL: none */
	const char *content_type; /* NULL: application/json */
	size_t max_bytes;	  /* of the answer; 0: 64 MiB */
	int64_t timeout_ms;	  /* 0: the configuration's */
	atomic_bool *canceled;	  /* or NULL */
};
bool kube_send(struct kube_client *k, const struct kube_request *q, struct buf *answer, int *status,
	       struct err *e);

/* ---- pods (pods.c) */

struct kube_pair {
	struct str name, value;
};

struct kube_port {
	struct str name;
	uint16_t number;
};

struct kube_container {
	struct str name, image;
	const struct kube_port *ports;
	size_t nports;
	bool is_ready;
};

/* Views, good as long as whoever gave it says. Annotations and labels of more than 4 KiB, and more
 * than 64 KiB of them, are left out; so are more than 100 containers, and their ports beyond 100.
 */
struct kube_pod {
	struct str namespace, name, uid, ip, node, host_ip;
	/* The controller: a ReplicaSet's Deployment, where its name tells. */
	struct str owner_kind, owner;
	bool is_running; /* phase Running, and not about to be deleted */
	const struct kube_pair *annotations, *labels;
	size_t nannotations, nlabels;
	const struct kube_container *containers;
	size_t ncontainers;
};
/* "" if there is none. */
struct str kube_pod_annotation(const struct kube_pod *p, const char *name);
struct str kube_pod_label(const struct kube_pod *p, const char *name);

struct kube_query {
	const char *namespace; /* NULL or "": all */
	const char *selector;  /* of labels; NULL or "": any */
	const char *fields;    /* field selector; NULL or "": any */
	atomic_bool *canceled; /* or NULL */
};
/* Calls `take` for each pod, a page at a time; false from it ends the list. */
typedef bool kube_take_pod(void *ctx, const struct kube_pod *pod);
bool kube_list_pods(struct kube_client *k, const struct kube_query *q, kube_take_pod *take,
		    void *ctx, struct err *e);
/* One pod, in `a`. */
bool kube_get_pod(struct kube_client *k, struct arena *a, const char *namespace, const char *name,
		  struct kube_pod *pod, struct err *e);

/* ---- pods as they come and go (follow.c) */

/* Lists, then watches, on a thread of its own: with bookmarks, again from where it was when the
 * watch ends, anew after 410, less and less often while the server fails. Keeps only the pods that
 * `wants` says, and of them what a pod has above. */
struct kube_follow_params {
	struct kube_query query;
	bool (*wants)(void *ctx, const struct kube_pod *pod);
	void *ctx;
	size_t max_pods; /* more are not kept, nor more than 64 MB of them; counted */
};
struct kube_follow;
struct kube_follow *kube_follow_new(struct kube_client *k, const struct kube_follow_params *params);
void kube_follow_free(struct kube_follow *f);
/* Rises with every change of the pods or of the problem. */
uint64_t kube_follow_version(struct kube_follow *f);
struct kube_follow_state {
	bool is_synced; /* a first list is complete */
	size_t npods, ndropped;
	struct err problem; /* kind ERR_NONE: all is well */
};
/* Calls `take` for each pod that is kept, ordered by namespace and name, with the lock held. */
void kube_follow_pods(struct kube_follow *f, kube_take_pod *take, void *ctx,
		      struct kube_follow_state *state);

/* ---- a way to a port (forward.c, websocket.c) */

/* Connections to 127.0.0.1:*port go to the pod's port, through the API server, until it is freed.
 * Each is a WebSocket of the portforward subresource, which has no half-closed connections. NULL:
 * the server refuses a first one, e.g. as the account may not `get` pods/portforward; a pod may
 * still be reached by kube_proxy_path, with pods/proxy. */
struct kube_forward;
struct kube_forward *kube_forward_new(struct kube_client *k, const char *namespace, const char *pod,
				      uint16_t to, uint16_t *port, struct err *e);
void kube_forward_free(struct kube_forward *f);
/* Why the last connection came to nothing; "" if none did. */
void kube_forward_problem(struct kube_forward *f, struct buf *out);
/* The path of the API server's proxy to a pod, for kube_send: where the cluster has no WebSockets.
 */
void kube_proxy_path(struct buf *out, const char *namespace, const char *pod, const char *scheme,
		     uint16_t port, const char *path);

#endif
