/* inside.h - what the parts of kube/ know of each other. Private to kube/. */
#ifndef KUBE_INSIDE_H
#define KUBE_INSIDE_H

#include "base/json.h"
#include "http/client.h"
#include "kube/kube.h"

enum { MAX_PEM_BYTES = 1 << 20, MAX_TOKEN_BYTES = 64 << 10 };

static inline bool is_given(const char *s)
{
	return s && *s;
}

/* May it stand in a header of HTTP, or in a URL? */
bool kube_is_plain(struct str text);

/* ---- programs that print credentials (exec.c) */

struct kube_exec {
	const char *api_version, *command, *hint;
	const char *const *args; /* NULL at the end */
	const struct kube_pair *env;
	size_t nenv;
	bool wants_cluster;
};

struct exec_credential {
	struct arena arena;
	struct str token, cert, key; /* p == NULL: none */
	int64_t expires_ns;	     /* since 1970; 0: never */
};
/* Runs the program of `c`, for a minute at most. On failure there is nothing to release. */
bool kube_exec_run(const struct kube_config *c, struct exec_credential *out, struct err *e);
/* What such a program prints. */
bool kube_exec_read(struct str text, const char *api_version, struct exec_credential *out,
		    struct err *e);
void exec_credential_release(struct exec_credential *x);

/* ---- pods in JSON (pods_json.c) */

/* A pod, and the version of it that the server had. */
struct pod_item {
	struct kube_pod pod;
	struct str version;
};
/* False ends it, without an error. The item is good until it returns. */
typedef bool take_item(void *ctx, const struct pod_item *item);
struct pod_page {
	struct buf version, next; /* of the list; next is empty on the last page */
	bool is_ended;		  /* by whoever takes */
};
bool pods_read_page(struct str json, take_item *take, void *ctx, struct pod_page *page,
		    struct err *e);
/* One pod, in `a`. */
bool pods_read_one(struct arena *a, struct str json, struct kube_pod *pod, struct err *e);

enum pod_event_kind { POD_IS, POD_GONE, POD_BOOKMARK, POD_ERROR };
struct pod_event {
	enum pod_event_kind kind;
	struct pod_item item; /* of a bookmark only its version */
	int code;	      /* of an error, as of HTTP */
	struct str message;
};
/* One line of a watch, in `a`. */
bool pods_read_event(struct arena *a, struct str line, struct pod_event *event, struct err *e);

/* ---- lists (pods.c) */

/* Page by page. *status is 410 if it took longer than the server remembers. `version` is where a
 * watch goes on. */
bool pods_list(struct kube_client *k, const struct kube_query *q, take_item *take, void *ctx,
	       struct buf *version, int *status, struct err *e);
/* The path of a list or a watch, and a '?', and what the query says, each with an '&' after it. */
void pods_put_path(struct buf *out, const struct kube_query *q);
void pods_put_param(struct buf *out, const char *name, struct str value);

/* ---- requests (client.c) */

/* As kube_send; a 2xx body goes to `stream`, as of http_request. */
struct kube_watch {
	const char *path;
	int64_t timeout_ms;
	bool (*stream)(void *ctx, struct str bytes);
	void *ctx;
	atomic_bool *canceled;
};
bool kube_watch(struct kube_client *k, const struct kube_watch *w, int *status, struct err *e);
/* A connection to the server. `headers` gets lines that say who we are, as of now. */
struct kube_session;
struct kube_link {
	struct http_link *http;
	struct kube_session *session;
};
bool kube_link_open(struct kube_client *k, struct kube_link *l, struct buf *headers,
		    atomic_bool *canceled, struct err *e);
void kube_link_close(struct kube_client *k, struct kube_link *l);
const struct kube_config *kube_client_config(const struct kube_client *k);
/* After a 401: what comes next has fresh credentials. False: there is no way to get any. */
bool kube_renew(struct kube_client *k);
/* For a person's terminal, and not endless. */
void kube_put_plain(struct buf *out, struct str text);
/* What a server that refuses says in `body`: a Status, or text. Returns false. */
bool kube_refused(const struct kube_config *c, const char *method, const char *path,
		  struct str status_text, struct str body, struct err *e);

/* ---- WebSockets, RFC 6455 (websocket.c); for one thread */

enum { MAX_MESSAGE_BYTES = 1 << 20 };

/* The head of a frame that a server sent. */
struct frame {
	bool is_last;
	unsigned opcode;
	size_t head_bytes, body_bytes;
};
/* 1: it is there, 0: more bytes are needed, -1: this is no frame that we take. */
int frame_read(struct str in, struct frame *f, struct err *e);

struct websocket;
/* A 401 is tried once more with fresh credentials. NULL: it failed. */
struct websocket *websocket_open(struct kube_client *k, const char *path, const char *protocol,
				 atomic_bool *canceled, struct err *e);
void websocket_free(struct websocket *w);
int websocket_fd(const struct websocket *w);
/* Queues a message whose first byte is `channel`. */
void websocket_put(struct websocket *w, uint8_t channel, struct str bytes);
/* How many bytes are queued. */
size_t websocket_queued(const struct websocket *w);
/* Sends what can be sent now. */
bool websocket_flush(struct websocket *w, struct err *e);
/* Calls `take` for messages that have come. 1: there may be more, 0: not now; -1: it is at its end,
 * or `take` wants no more, which is e->kind ERR_NONE, or is broken. */
typedef bool take_message(void *ctx, struct str message);
int websocket_read(struct websocket *w, take_message *take, void *ctx, struct err *e);

#endif
