/* api.h - a server of kiln, as its clients see it. */
#ifndef CMD_API_H
#define CMD_API_H

#include "base/json.h"
#include "collect/collect.h"
#include "http/client.h"

#define API_DEFAULT_SERVER "http://localhost:10100"

/* Rows of a table of options are made by
 *
 *	#define API(type, field, name, key, value, help) ...
 *	#define API_SERVER API
 *	#include "cmd/api.def"
 */
struct api_options {
#define API(type, field, name, key, value, help) const char *field;
#define API_SERVER API
#include "cmd/api.def"
#undef API_SERVER
#undef API
};
#define API_DEFAULTS                                                                       \
	{                                                                                  \
		.to = API_DEFAULT_SERVER, .token_file = "", .tls_cert = "", .tls_key = "", \
		.tls_ca = ""                                                               \
	}

/* Threads: many may ask. */
struct api {
	struct http_client *client;
	struct str to;	  /* without a slash at its end */
	struct buf token; /* "Authorization: Bearer ...", or empty */
};

/* The strings of `o` must outlive it. */
bool api_open(struct api *api, const struct api_options *o, struct err *e);
void api_close(struct api *api);

struct api_request {
	const char *path;
	const char *method; /* NULL: GET, or POST if there is a body */
	struct str body;    /* p == NULL: none */
	int64_t timeout_ms;
	atomic_bool *canceled; /* or NULL */
};
/* True whenever there was an answer. */
bool api_send(struct api *api, const struct api_request *q, struct http_response *r, struct err *e);
/* The answer's status and its words as an error; returns false. */
bool api_fail(const struct http_response *r, struct err *e);
/* GET, whose answer must be JSON with the status 200; in `a`. `text` is what came. */
bool api_get_json(struct api *api, struct arena *a, const char *path, struct json *out,
		  struct str *text, struct err *e);

/* Stores a profile by profefe's API; as collect_sink's put. */
enum collect_result api_push(struct api *api, const struct collected *p, char id[COLLECT_ID_BYTES],
			     struct err *e);

/* Labels as an option has them: NAME=VALUE,NAME=VALUE; in `a`. */
bool api_labels_parse(struct arena *a, const char *option, const char *text,
		      struct target_label **labels, size_t *n, struct err *e);

#endif
