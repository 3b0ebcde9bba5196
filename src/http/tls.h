/* tls.h - a server's certificate, and who its clients are by theirs.
 *
 * GnuTLS, which libmicrohttpd brings along, is loaded when a certificate is. Files may be read
 * again: sessions that begin afterwards have the new ones, others go on with what they began with.
 * Threads: any number may ask; one may load. */
#ifndef HTTP_TLS_H
#define HTTP_TLS_H

#include <pthread.h>

#include "base/arena.h"
#include "base/small_file.h"

enum http_tls_file { TLS_CERTIFICATE, TLS_KEY, TLS_CLIENT_CA, TLS_NFILES };

struct http_tls_keys; /* of sessions, as the files had them at some time; counted references */

struct http_tls {
	const char *paths[TLS_NFILES]; /* NULL: none; the first two are there, or nothing is */
	struct buf first[TLS_NFILES];  /* what was in them at first, with NULs at their ends */
	struct gnutls_functions *gnutls;
	struct file_version versions[TLS_NFILES]; /* of what was tried last */
	pthread_mutex_t lock;			  /* of what follows */
	struct http_tls_keys *now;
};

/* Files of PEM text; client_ca, which signs the certificates of clients, may be NULL. What does not
 * fit together is found here, as libmicrohttpd would not say what is wrong. Paths must live until
 * http_tls_release. */
bool http_tls_load(struct http_tls *t, const char *certificate, const char *key,
		   const char *client_ca, struct err *e);
/* Reads them again; if that fails, everything stays as it is. */
bool http_tls_reload(struct http_tls *t, struct err *e);
/* Since they were read, or tried to. */
bool http_tls_has_changed(const struct http_tls *t);
/* All keys must have been dropped. */
void http_tls_release(struct http_tls *t);

static inline bool http_tls_is_on(const struct http_tls *t)
{
	return t->paths[TLS_CERTIFICATE];
}

/* Before its handshake: has a session use the newest. What is returned must be dropped after the
 * session; NULL: it cannot be done. */
struct http_tls_keys *http_tls_begin(struct http_tls *t, void *session);
void http_tls_drop(const struct http_tls *t, struct http_tls_keys *k);
/* Would clients still be known by what these keys have? */
bool http_tls_is_trusted(struct http_tls *t, const struct http_tls_keys *k);
/* The common name, else the first DNS name, else "unnamed", in the certificate of a session's
 * client. p == NULL: it has shown none, or one that is out of date or that client_ca has not signed
 * for clients. */
struct str http_tls_client(const struct http_tls *t, struct arena *a, void *session);

#endif
