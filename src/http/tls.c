#include "http/tls.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

enum { MAX_FILE_BYTES = 1 << 20, MAX_NAME_BYTES = 256 };

#define LIBRARY "libgnutls.so.30"

struct gnutls_functions {
	__typeof__(gnutls_certificate_allocate_credentials) *new_credentials;
	__typeof__(gnutls_certificate_free_credentials) *free_credentials;
	__typeof__(gnutls_certificate_set_x509_key_mem) *set_key;
	__typeof__(gnutls_certificate_set_x509_trust_mem) *set_trust;
	__typeof__(gnutls_credentials_set) *use;
	__typeof__(gnutls_strerror) *error_text;
	__typeof__(gnutls_certificate_get_peers) *peers;
	__typeof__(gnutls_certificate_verify_peers) *verify;
	__typeof__(gnutls_x509_crt_init) *new_certificate;
	__typeof__(gnutls_x509_crt_import) *import;
	__typeof__(gnutls_x509_crt_get_dn_by_oid) *name;
	__typeof__(gnutls_x509_crt_get_subject_alt_name) *other_name;
	__typeof__(gnutls_x509_crt_deinit) *free_certificate;
};

static bool load_functions(struct gnutls_functions *f, struct err *e)
{
	const struct {
		const char *name;
		void *to;
	} functions[] = {
		{ "gnutls_certificate_allocate_credentials", &f->new_credentials },
		{ "gnutls_certificate_free_credentials", &f->free_credentials },
		{ "gnutls_certificate_set_x509_key_mem", &f->set_key },
		{ "gnutls_certificate_set_x509_trust_mem", &f->set_trust },
		{ "gnutls_credentials_set", &f->use },
		{ "gnutls_strerror", &f->error_text },
		{ "gnutls_certificate_get_peers", &f->peers },
		{ "gnutls_certificate_verify_peers", &f->verify },
		{ "gnutls_x509_crt_init", &f->new_certificate },
		{ "gnutls_x509_crt_import", &f->import },
		{ "gnutls_x509_crt_get_dn_by_oid", &f->name },
		{ "gnutls_x509_crt_get_subject_alt_name", &f->other_name },
		{ "gnutls_x509_crt_deinit", &f->free_certificate },
	};
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_NODELETE);

	if (!library)
		return err_set(e, ERR_IO, "TLS needs GnuTLS: %s; install the package libgnutls30",
			       dlerror());
	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
		void *found = dlsym(library, functions[i].name);

		if (!found)
			return err_set(e, ERR_IO, "%s has no %s; install libgnutls30 3.7", LIBRARY,
				       functions[i].name);
		memcpy(functions[i].to, &found, sizeof(found));
	}
	return true;
}

/* ---- files */

struct http_tls_keys {
	atomic_uint references;
	gnutls_certificate_credentials_t credentials;
	struct buf client_ca; /* to see whether the next is another */
};

static const char *path_of(const struct http_tls *t, enum http_tls_file f)
{
	return t->paths[f] ? t->paths[f] : "";
}

static void release_files(struct buf files[TLS_NFILES])
{
	for (size_t i = 0; i < TLS_NFILES; i++) {
		if (files[i].p)
			explicit_bzero(files[i].p, files[i].n);
		buf_release(&files[i]);
		files[i] = (struct buf){ 0 };
	}
}

static bool read_files(const struct http_tls *t, struct buf files[TLS_NFILES], struct err *e)
{
	bool ok = true;

	for (size_t i = 0; i < TLS_NFILES && ok; i++)
		ok = !t->paths[i] || small_file_read(&files[i], t->paths[i], MAX_FILE_BYTES, e);
	return ok;
}

static gnutls_datum_t datum(const struct buf *b)
{
	return (gnutls_datum_t){ (unsigned char *)b->p, (unsigned)b->n };
}

/* Do they belong together? */
static bool fill(const struct http_tls *t, gnutls_certificate_credentials_t c,
		 const struct buf files[TLS_NFILES], struct err *e)
{
	gnutls_datum_t chain = datum(&files[TLS_CERTIFICATE]), secret = datum(&files[TLS_KEY]), ca;
	int result = t->gnutls->set_key(c, &chain, &secret, GNUTLS_X509_FMT_PEM);

	if (result < 0)
		return err_set(e, ERR_FORMAT, "TLS certificate %s with key %s: %s",
			       path_of(t, TLS_CERTIFICATE), path_of(t, TLS_KEY),
			       t->gnutls->error_text(result));
	if (!t->paths[TLS_CLIENT_CA])
		return true;
	ca = datum(&files[TLS_CLIENT_CA]);
	result = t->gnutls->set_trust(c, &ca, GNUTLS_X509_FMT_PEM);
	return result > 0 ||
	       err_set(e, ERR_FORMAT, "TLS: certificates that sign those of clients, %s: %s",
		       path_of(t, TLS_CLIENT_CA),
		       result ? t->gnutls->error_text(result) : "there are none in it");
}

static struct http_tls_keys *make_keys(const struct http_tls *t, const struct buf files[TLS_NFILES],
				       struct err *e)
{
	struct http_tls_keys *k = xcalloc(1, sizeof(*k));
	int result = t->gnutls->new_credentials(&k->credentials);

	k->references = 1;
	if (result < 0) {
		err_set(e, ERR_IO, "TLS: %s", t->gnutls->error_text(result));
		free(k);
		return NULL;
	}
	if (fill(t, k->credentials, files, e)) {
		buf_str(&k->client_ca, buf_view(&files[TLS_CLIENT_CA]));
		return k;
	}
	http_tls_drop(t, k);
	return NULL;
}

void http_tls_drop(const struct http_tls *t, struct http_tls_keys *k)
{
	if (!k || atomic_fetch_sub(&k->references, 1) > 1)
		return;
	t->gnutls->free_credentials(k->credentials);
	buf_release(&k->client_ca);
	free(k);
}

static void look_at_versions(const struct http_tls *t, struct file_version versions[TLS_NFILES])
{
	for (size_t i = 0; i < TLS_NFILES; i++)
		versions[i] = t->paths[i] ? file_version(t->paths[i]) : (struct file_version){ 0 };
}

bool http_tls_has_changed(const struct http_tls *t)
{
	struct file_version now[TLS_NFILES];
	bool is_same = true;

	look_at_versions(t, now);
	for (size_t i = 0; i < TLS_NFILES; i++)
		is_same &= file_version_same(&now[i], &t->versions[i]);
	return !is_same;
}

bool http_tls_load(struct http_tls *t, const char *certificate, const char *key,
		   const char *client_ca, struct err *e)
{
	bool ok;

	*t = (struct http_tls){ .paths = { certificate, key, client_ca },
				.gnutls = xcalloc(1, sizeof(*t->gnutls)) };
	pthread_mutex_init(&t->lock, NULL);
	look_at_versions(t, t->versions);
	ok = load_functions(t->gnutls, e) && read_files(t, t->first, e) &&
	     (t->now = make_keys(t, t->first, e));
	if (!ok)
		http_tls_release(t);
	return ok;
}

bool http_tls_reload(struct http_tls *t, struct err *e)
{
	struct buf files[TLS_NFILES] = { 0 };
	struct http_tls_keys *fresh = NULL, *old;

	look_at_versions(t, t->versions); /* before reading: what changes meanwhile is read again */
	if (read_files(t, files, e))
		fresh = make_keys(t, files, e);
	release_files(files);
	if (!fresh)
		return false;
	pthread_mutex_lock(&t->lock);
	old = t->now;
	t->now = fresh;
	pthread_mutex_unlock(&t->lock);
	http_tls_drop(t, old);
	return true;
}

void http_tls_release(struct http_tls *t)
{
	if (!http_tls_is_on(t))
		return;
	http_tls_drop(t, t->now);
	release_files(t->first);
	pthread_mutex_destroy(&t->lock);
	free(t->gnutls);
	*t = (struct http_tls){ 0 };
}

/* ---- sessions */

struct http_tls_keys *http_tls_begin(struct http_tls *t, void *session)
{
	struct http_tls_keys *k;

	pthread_mutex_lock(&t->lock);
	k = t->now;
	atomic_fetch_add(&k->references, 1);
	pthread_mutex_unlock(&t->lock);
	if (session && t->gnutls->use(session, GNUTLS_CRD_CERTIFICATE, k->credentials) >= 0)
		return k;
	http_tls_drop(t, k);
	return NULL;
}

bool http_tls_is_trusted(struct http_tls *t, const struct http_tls_keys *k)
{
	bool is_same;

	pthread_mutex_lock(&t->lock);
	is_same = k == t->now || str_eq(buf_view(&k->client_ca), buf_view(&t->now->client_ca));
	pthread_mutex_unlock(&t->lock);
	return is_same;
}

/* ---- clients */

static struct str name_in(const struct gnutls_functions *f, struct arena *a,
			  const gnutls_datum_t *bytes)
{
	gnutls_x509_crt_t certificate;
	struct str found = STR("unnamed");
	char name[MAX_NAME_BYTES];
	size_t n = sizeof(name);

	if (f->new_certificate(&certificate) < 0)
		return found;
	if (f->import(certificate, bytes, GNUTLS_X509_FMT_DER) >= 0) {
		int result = f->name(certificate, GNUTLS_OID_X520_COMMON_NAME, 0, 0, name, &n);

		if (result < 0) {
			n = sizeof(name);
			result = f->other_name(certificate, 0, name, &n, NULL);
			result = result == GNUTLS_SAN_DNSNAME ? 0 : -1;
		}
		if (result >= 0)
			found = (struct str){ str_dup(a, (struct str){ name, n }), n };
	}
	f->free_certificate(certificate);
	return found;
}

struct str http_tls_client(const struct http_tls *t, struct arena *a, void *session)
{
	gnutls_typed_vdata_st purpose = { GNUTLS_DT_KEY_PURPOSE_OID,
					  (unsigned char *)(uintptr_t)GNUTLS_KP_TLS_WWW_CLIENT, 0 };
	const gnutls_datum_t *chain;
	unsigned n = 0, wrong = 1;

	if (!t->paths[TLS_CLIENT_CA] || !session)
		return (struct str){ 0 };
	chain = t->gnutls->peers(session, &n);
	if (!chain || !n || t->gnutls->verify(session, &purpose, 1, &wrong) < 0 || wrong)
		return (struct str){ 0 };
	return name_in(t->gnutls, a, &chain[0]);
}
