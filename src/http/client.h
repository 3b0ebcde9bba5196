/* client.h - requests over HTTP and HTTPS: a thin face of libcurl.
 *
 * libcurl is loaded when the first request is made: together with the twenty libraries that it
 * needs it would cost every start of the program 10 ms. Errors are in the words of Go's net/http,
 * which scripts around pprof know: `Get "http://h:1/": dial tcp 127.0.0.1:1: connect: connection
 * refused`.
 *
 *	struct http_client *c = http_client_new(&(struct http_tls){ .ca = "ca.pem" });
 *	struct http_response r = { 0 };
 *	if (http_send(c, &(struct http_request){ .url = url, .timeout_ms = 5000 }, &r, &e)) ...
 *	http_response_release(&r);
 *	http_client_free(c);
 *
 * Up to 10 redirects are followed, proxies come from the environment (not with is_direct), gzip is
 * undone. Threads: many may send through one client, each with a response of its own; connections
 * are kept.
 */
#ifndef HTTP_CLIENT_H
#define HTTP_CLIENT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

/* Names of PEM files; NULL or "" if not given. A CA replaces those of the system. */
struct http_tls {
	const char *cert, *key, *ca;
	const char *const *names;	      /* of these settings, for errors; NULL: the flags' */
	struct str cert_pem, key_pem, ca_pem; /* in place of files; p == NULL: none */
	const char *server_name; /* who the server must be, if not the host of the URL; or NULL */
	bool is_insecure;	 /* does not ask who the server is */
};

struct http_request {
	/* https+insecure://... does not ask who the server is; unix:/path:/... is a server at a
	 * socket in the file system, unless others have named it (is_direct) */
	const char *url;
	const char *method;	    /* NULL: GET, or POST if there is a body */
	const char *const *headers; /* "Name: value" */
	size_t nheaders;
	struct str body;	    /* p == NULL: none */
	int64_t timeout_ms;	    /* of everything; 0: for ever */
	int64_t connect_timeout_ms; /* until it can be asked for; 0: as libcurl has it */
	size_t max_bytes;	    /* of the response's body, unpacked; 0: no limit */
	atomic_bool *canceled;	    /* or NULL; looked at once a second */
	/* Asked before more of the body is kept, or NULL; false refuses it as too large. */
	bool (*take)(void *ctx, size_t bytes);
	void *take_ctx;
	/* Gets the body of a 2xx as it comes, in place of the response; or NULL. First, when there
	 * are headers, without bytes. False ends the request, as if all had been sent. */
	bool (*stream)(void *ctx, struct str bytes);
	void *stream_ctx;
	const char *proxy; /* its URL; NULL: the environment's */
	/* Of servers that others have named: redirects are not followed, no proxy is asked, and
	 * whoever cancels does not wait for a name to be resolved. */
	bool is_direct;
	/* Redirects are answers like others, and whoever cancels does not wait for a name. */
	bool is_final;
};

struct http_response {
	int status;		/* 0: nobody has answered */
	bool was_sent;		/* somebody was there to be asked */
	struct buf status_text; /* "404 Not Found" */
	struct buf headers;	/* lines */
	struct buf body;
};

/* The strings in `tls` must live as long as the client. */
struct http_client *http_client_new(const struct http_tls *tls);
void http_client_free(struct http_client *c);

/* The socket of unix:/path:/...; empty if the URL is none such. */
struct str http_socket(struct str url);

/* True whenever the server has answered in full, whatever the status. `r` must be zeroed, or used
 * before; if only the body is missing or too large (ERR_LIMIT), it has the status all the same. */
bool http_send(struct http_client *c, const struct http_request *q, struct http_response *r,
	       struct err *e);
/* ---- a connection for other protocols than HTTP, once HTTP has agreed to them: for one thread */

struct http_link;
/* To the server of the URL, through proxies and TLS as a request would go; nothing is sent yet. Of
 * the request only url, timeout_ms, canceled, is_direct and proxy count. NULL: it failed. */
struct http_link *http_link_open(struct http_client *c, const struct http_request *q,
				 struct err *e);
void http_link_free(struct http_link *l);
/* To wait for with poll(). It is readable before there are bytes, and TLS may hold bytes when it is
 * not: read until there are none. */
int http_link_fd(const struct http_link *l);
/* How many bytes went; 0: none just now. -1: it is broken, or (recv) at its end, which is *e of
 * kind ERR_NOTFOUND. */
ptrdiff_t http_link_send(struct http_link *l, struct str bytes, struct err *e);
ptrdiff_t http_link_recv(struct http_link *l, char *to, size_t size, struct err *e);

/* Value of the header, whose name may be in any case; empty if it is not there. */
struct str http_header(const struct http_response *r, const char *name);
void http_response_release(struct http_response *r);

#endif
