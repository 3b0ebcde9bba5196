#include "http/tls.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

enum { MAX_FILE_BYTES = 1 << 20, MAX_NAME_BYTES = 256 };

#define LIBRARY "libgnutls.so.30"

struct gnutls_functions {
	__typeof__(gnutls_certificate_allocate_credentials) *new_credentials;
	__typeof__(gnutls_certificate_free_credentials) *free_credentials;
	__typeof__(gnutls_certificate_set_x509_key_mem) *set_key;
	__typeof__(gnutls_certificate_set_x509_trust_mem) *set_trust;
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

static bool read_file(struct buf *out, const char *path, struct err *e)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat st;
	ssize_t n;

	if (fd < 0)
		return err_system(e, "open", path);
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size > MAX_FILE_BYTES) {
		close(fd);
		return err_set(e, ERR_FORMAT, "%s is no file of at most 1 MiB", path);
	}
	while ((n = read(fd, buf_room(out, 4096), 4096)) > 0 && out->n <= MAX_FILE_BYTES)
		out->n += (size_t)n;
	close(fd);
	if (n < 0)
		return err_system(e, "read", path);
	buf_char(out, '\0');
	return true;
}

static gnutls_datum_t datum(const struct buf *b)
{
	return (gnutls_datum_t){ (unsigned char *)b->p, (unsigned)(b->n - 1) };
}

/* Do they belong together? */
static bool check(const struct http_tls *t, const char *certificate, const char *key,
		  const char *client_ca, struct err *e)
{
	gnutls_certificate_credentials_t c;
	gnutls_datum_t chain = datum(&t->certificate), secret = datum(&t->key), ca;
	int result = t->gnutls->new_credentials(&c);
	bool ok;

	if (result < 0)
		return err_set(e, ERR_IO, "TLS: %s", t->gnutls->error_text(result));
	result = t->gnutls->set_key(c, &chain, &secret, GNUTLS_X509_FMT_PEM);
	ok = result >= 0 || err_set(e, ERR_FORMAT, "TLS certificate %s with key %s: %s",
				    certificate, key, t->gnutls->error_text(result));
	if (ok && client_ca) {
		ca = datum(&t->client_ca);
		result = t->gnutls->set_trust(c, &ca, GNUTLS_X509_FMT_PEM);
		ok = result > 0 ||
		     err_set(e, ERR_FORMAT, "TLS: certificates that sign those of clients, %s: %s",
			     client_ca,
			     result ? t->gnutls->error_text(result) : "there are none in it");
	}
	t->gnutls->free_credentials(c);
	return ok;
}

bool http_tls_load(struct http_tls *t, const char *certificate, const char *key,
		   const char *client_ca, struct err *e)
{
	bool ok;

	*t = (struct http_tls){ .gnutls = xcalloc(1, sizeof(*t->gnutls)) };
	ok = load_functions(t->gnutls, e) && read_file(&t->certificate, certificate, e) &&
	     read_file(&t->key, key, e) && (!client_ca || read_file(&t->client_ca, client_ca, e)) &&
	     check(t, certificate, key, client_ca, e);
	if (!ok)
		http_tls_release(t);
	return ok;
}

void http_tls_release(struct http_tls *t)
{
	if (t->key.p)
		explicit_bzero(t->key.p, t->key.n);
	buf_release(&t->certificate);
	buf_release(&t->key);
	buf_release(&t->client_ca);
	free(t->gnutls);
	*t = (struct http_tls){ 0 };
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

	if (!t->client_ca.n || !session)
		return (struct str){ 0 };
	chain = t->gnutls->peers(session, &n);
	if (!chain || !n || t->gnutls->verify(session, &purpose, 1, &wrong) < 0 || wrong)
		return (struct str){ 0 };
	return name_in(t->gnutls, a, &chain[0]);
}
