/* tls.h - a server's certificate, and who its clients are by theirs.
 *
 * GnuTLS, which libmicrohttpd brings along, is loaded when a certificate is. Threads: after
 * http_tls_load any number may ask. */
#ifndef HTTP_TLS_H
#define HTTP_TLS_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"

struct http_tls {
	/* The files, each with a NUL at its end; empty: none. */
	struct buf certificate, key, client_ca;
	struct gnutls_functions *gnutls;
};

/* Files of PEM text; client_ca, which signs the certificates of clients, may be NULL. What does not
 * fit together is found here, as libmicrohttpd would not say what is wrong. */
bool http_tls_load(struct http_tls *t, const char *certificate, const char *key,
		   const char *client_ca, struct err *e);
void http_tls_release(struct http_tls *t);
/* The common name, else the first DNS name, else "unnamed", in the certificate of a session's
 * client. p == NULL: it has shown none, or one that is out of date or that client_ca has not signed
 * for clients. */
struct str http_tls_client(const struct http_tls *t, struct arena *a, void *session);

#endif
