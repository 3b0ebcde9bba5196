#include "http/client.h"

#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

#include "base/number.h"
#include "base/vec.h"

enum {
	MAX_REDIRECTS = 10, /* as in Go */
	MAX_HEADER_BYTES = 256 << 10,
};

#define LIBRARY "libcurl.so.4"
#define INSECURE "https+insecure://"

struct http_client {
	struct http_tls tls;
	pthread_mutex_t lock;
	vec(CURL *) idle; /* each keeps its connections */
	bool is_loaded;
	__typeof__(curl_global_init) *global_init;
	__typeof__(curl_global_cleanup) *global_cleanup;
	__typeof__(curl_easy_init) *init;
	__typeof__(curl_easy_setopt) *set;
	__typeof__(curl_easy_perform) *perform;
	__typeof__(curl_easy_getinfo) *info;
	__typeof__(curl_easy_reset) *reset;
	__typeof__(curl_easy_cleanup) *cleanup;
	__typeof__(curl_easy_strerror) *text;
	__typeof__(curl_easy_send) *send;
	__typeof__(curl_easy_recv) *recv;
	__typeof__(curl_slist_append) *list_append;
	__typeof__(curl_slist_free_all) *list_free;
};

/* One request on its way. */
struct call {
	struct http_client *c;
	const struct http_request *q;
	struct http_response *r;
	CURL *curl;
	struct curl_slist *headers, *connect_to;
	char address[NI_MAXHOST + 16]; /* the first that was tried, as ip:port, or a socket */
	char reason[CURL_ERROR_SIZE];  /* what libcurl says */
	bool has_headers;	       /* of the response that counts */
	bool is_body_large, are_headers_large, is_enough;
};

/* In the order of struct http_tls. */
enum { CERT, KEY, CA };
static const char *const tls_flags[] = { "-tls_cert", "-tls_key", "-tls_ca" };

struct http_client *http_client_new(const struct http_tls *tls)
{
	struct http_client *c = xcalloc(1, sizeof(*c));

	c->tls = *tls;
	if (!tls->names)
		c->tls.names = tls_flags;
	pthread_mutex_init(&c->lock, NULL);
	return c;
}

void http_client_free(struct http_client *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->idle.n; i++)
		c->cleanup(c->idle.at[i]);
	vec_release(&c->idle);
	if (c->is_loaded)
		c->global_cleanup();
	pthread_mutex_destroy(&c->lock);
	free(c);
}

static bool is_given(const char *s)
{
	return s && *s;
}

/* ---- loading */

static bool load_functions(struct http_client *c, struct err *e)
{
	const struct {
		const char *name;
		void *to;
	} functions[] = {
		{ "curl_global_init", &c->global_init },
		{ "curl_global_cleanup", &c->global_cleanup },
		{ "curl_easy_init", &c->init },
		{ "curl_easy_setopt", &c->set },
		{ "curl_easy_perform", &c->perform },
		{ "curl_easy_getinfo", &c->info },
		{ "curl_easy_reset", &c->reset },
		{ "curl_easy_cleanup", &c->cleanup },
		{ "curl_easy_strerror", &c->text },
		{ "curl_easy_send", &c->send },
		{ "curl_easy_recv", &c->recv },
		{ "curl_slist_append", &c->list_append },
		{ "curl_slist_free_all", &c->list_free },
	};
	/* Never unloaded: the TLS library beneath it does not like that. */
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_NODELETE);

	if (!library)
		return err_set(e, ERR_IO,
			       "fetching needs libcurl: %s; install the package libcurl4",
			       dlerror());
	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
		void *f = dlsym(library, functions[i].name);

		if (!f)
			return err_set(e, ERR_IO, "%s has no %s; install the package libcurl4",
				       LIBRARY, functions[i].name);
		memcpy(functions[i].to, &f, sizeof(f));
	}
	if (c->global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return err_set(e, ERR_IO, "%s cannot be used", LIBRARY);
	c->is_loaded = true;
	return true;
}

static bool can_read(const char *path, struct err *e)
{
	return access(path, R_OK) == 0 || err_system(e, "open", path);
}

static bool wrap_pair(const struct http_tls *tls, struct err *e)
{
	if (tls->cert_pem.p)
		return err_wrap(e, "could not load certificate/key pair");
	return err_wrap(e, "could not load certificate/key pair specified by %s and %s",
			tls->names[CERT], tls->names[KEY]);
}

static bool wrap_ca(const struct http_tls *tls, struct err *e)
{
	if (tls->ca_pem.p)
		return err_wrap(e, "could not load CA");
	return err_wrap(e, "could not load CA specified by %s", tls->names[CA]);
}

static bool check_tls(const struct http_tls *tls, struct err *e)
{
	if (is_given(tls->cert) != is_given(tls->key))
		return err_set(e, ERR_USAGE, "%s is specified, so %s must also be specified",
			       tls->names[is_given(tls->cert) ? CERT : KEY],
			       tls->names[is_given(tls->cert) ? KEY : CERT]);
	if (is_given(tls->cert) && (!can_read(tls->cert, e) || !can_read(tls->key, e)))
		return wrap_pair(tls, e);
	return !is_given(tls->ca) || can_read(tls->ca, e) || wrap_ca(tls, e);
}

static CURL *take_handle(struct http_client *c, struct err *e)
{
	CURL *curl = NULL;

	pthread_mutex_lock(&c->lock);
	if (c->is_loaded || load_functions(c, e)) {
		curl = c->idle.n ? c->idle.at[--c->idle.n] : c->init();
		if (!curl)
			err_set(e, ERR_IO, "%s: out of memory", LIBRARY);
	}
	pthread_mutex_unlock(&c->lock);
	return curl;
}

static void give_handle(struct http_client *c, CURL *curl)
{
	c->reset(curl);
	pthread_mutex_lock(&c->lock);
	vec_push(&c->idle, curl);
	pthread_mutex_unlock(&c->lock);
}

/* ---- what libcurl calls */

static bool is_redirect(const struct http_response *r)
{
	return r->status >= 301 && r->status <= 308 && r->status != 304 &&
	       http_header(r, "Location").n;
}

static bool is_streamed(const struct call *call)
{
	return call->q->stream && call->r->status / 100 == 2;
}

static bool give_stream(struct call *call, struct str bytes)
{
	call->is_enough = !call->q->stream(call->q->stream_ctx, bytes);
	return !call->is_enough;
}

static size_t on_header(char *data, size_t size, size_t n, void *ctx)
{
	struct call *call = ctx;
	struct http_response *r = call->r;
	struct str line = str_trim((struct str){ data, n * size });

	if (r->headers.n + n * size > MAX_HEADER_BYTES) {
		call->are_headers_large = true;
		return 0;
	}
	if (str_has_prefix(line, STR("HTTP/"))) {
		call->has_headers = false;
		r->headers.n = r->status_text.n = 0;
		str_cut(&line, ' ');
		buf_str(&r->status_text, line);
		r->status = 0;
		for (size_t i = 0; i < 3 && i < line.n && isdigit((unsigned char)line.p[i]); i++)
			r->status = r->status * 10 + (line.p[i] - '0');
	} else if (line.n) {
		buf_str(&r->headers, line);
		buf_char(&r->headers, '\n');
	} else {
		call->has_headers = r->status >= 200 && !is_redirect(r);
		if (is_streamed(call) && !give_stream(call, STR("")))
			return 0;
	}
	return n * size;
}

static size_t on_body(char *data, size_t size, size_t n, void *ctx)
{
	struct call *call = ctx;
	const struct http_request *q = call->q;
	struct buf *body = &call->r->body;

	n *= size;
	if (is_streamed(call))
		return give_stream(call, (struct str){ data, n }) ? n : 0;
	if ((q->max_bytes && n > q->max_bytes - body->n) || (q->take && !q->take(q->take_ctx, n))) {
		call->is_body_large = true;
		return 0;
	}
	buf_add(body, data, n);
	return n;
}

static int on_progress(void *ctx, curl_off_t total, curl_off_t now, curl_off_t up_total,
		       curl_off_t up_now)
{
	struct call *call = ctx;

	(void)total, (void)now, (void)up_total, (void)up_now;
	return call->q->canceled && atomic_load(call->q->canceled);
}

/* Only to learn the address, for the error text. */
static curl_socket_t on_socket(void *ctx, curlsocktype purpose, struct curl_sockaddr *to)
{
	struct call *call = ctx;
	char host[NI_MAXHOST], port[NI_MAXSERV];
	bool is_v6 = to->family == AF_INET6;

	(void)purpose;
	if (to->family == AF_UNIX)
		snprintf(call->address, sizeof(call->address), "%s",
			 ((const struct sockaddr_un *)(const void *)&to->addr)->sun_path);
	else if (!*call->address &&
		 getnameinfo(&to->addr, (socklen_t)to->addrlen, host, sizeof(host), port,
			     sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV) == 0)
		snprintf(call->address, sizeof(call->address), "%s%.*s%s:%.*s", is_v6 ? "[" : "",
			 NI_MAXHOST - 4, host, is_v6 ? "]" : "", 8, port);
	return socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
}

/* ---- a request */

static struct str scheme_of(const char *url)
{
	struct str s = str_of(url);
	size_t colon = str_find(s, STR("://"));

	return (struct str){ s.p, colon == STR_NONE ? 0 : colon };
}

struct str http_socket(struct str url)
{
	struct str rest = str_has_prefix(url, STR("unix:/")) ? str_from(url, 5) : STR("");
	size_t end = str_find(rest, STR(":/"));

	return end == STR_NONE ? STR("") : (struct str){ rest.p, end };
}

/* The host, without user and port. */
static struct str host_of(const char *url)
{
	struct str s = str_of(url), host;
	size_t at;

	s = str_from(s, scheme_of(url).n + 3);
	s.n = strcspn(s.p, "/?#");
	at = str_rfind_char(s, '@');
	host = at == STR_NONE ? s : str_from(s, at + 1);
	if (host.n && host.p[0] == '[') {
		host = str_from(host, 1);
		return str_cut(&host, ']');
	}
	return str_cut(&host, ':');
}

/* Go never asks a proxy for this machine, and knows HTTP_PROXY in capitals too; libcurl does the
 * rest. */
static void set_proxy(struct call *call, const char *url)
{
	struct str host = host_of(url);
	const char *proxy = getenv("HTTP_PROXY");

	if (call->q->proxy) {
		call->c->set(call->curl, CURLOPT_PROXY, call->q->proxy);
		call->c->set(call->curl, CURLOPT_NOPROXY, ""); /* whatever NO_PROXY says */
	} else if (call->q->is_direct || str_eq(host, STR("localhost")) ||
		   str_has_prefix(host, STR("127.")) || str_eq(host, STR("::1")))
		call->c->set(call->curl, CURLOPT_PROXY, "");
	else if (str_eq(scheme_of(url), STR("http")) && is_given(proxy) && !getenv("http_proxy") &&
		 !getenv("REQUEST_METHOD"))
		call->c->set(call->curl, CURLOPT_PROXY, proxy);
}

/* The bytes are not copied: they live as long as the client. */
static void set_pem(struct call *call, CURLoption option, struct str pem)
{
	struct curl_blob blob = { (void *)(uintptr_t)pem.p, pem.n, CURL_BLOB_NOCOPY };

	if (pem.p)
		call->c->set(call->curl, option, &blob);
}

static void set_tls(struct call *call, bool is_insecure)
{
	const struct http_tls *tls = &call->c->tls;
	__typeof__(curl_easy_setopt) *set = call->c->set;

	if (is_given(tls->cert)) {
		set(call->curl, CURLOPT_SSLCERT, tls->cert);
		set(call->curl, CURLOPT_SSLKEY, tls->key);
	}
	if (is_given(tls->ca)) {
		set(call->curl, CURLOPT_CAINFO, tls->ca);
		set(call->curl, CURLOPT_CAPATH, NULL);
	}
	set_pem(call, CURLOPT_SSLCERT_BLOB, tls->cert_pem);
	set_pem(call, CURLOPT_SSLKEY_BLOB, tls->key_pem);
	set_pem(call, CURLOPT_CAINFO_BLOB, tls->ca_pem);
	if (tls->ca_pem.p)
		set(call->curl, CURLOPT_CAPATH, NULL);
	if (is_insecure) {
		set(call->curl, CURLOPT_SSL_VERIFYPEER, 0L);
		set(call->curl, CURLOPT_SSL_VERIFYHOST, 0L);
	}
}

/* The URL then names the server as its certificate does, for TLS; all else goes by its host. */
static void set_server_name(struct call *call, struct buf *url)
{
	const char *name = call->c->tls.server_name;
	struct str host = host_of(url->p), port;
	struct buf line = { 0 }, named = { 0 };

	if (!is_given(name))
		return;
	if (host.p > url->p && host.p[-1] == '[')
		host = (struct str){ host.p - 1, host.n + 2 };
	port = str_of(host.p + host.n);
	port.n = strcspn(port.p, "/?#");
	buf_printf(&line, "Host: %.*s%.*s%c", STR_ARG(host), STR_ARG(port), '\0');
	call->headers = call->c->list_append(call->headers, line.p);
	line.n = 0;
	buf_printf(&line, "::%.*s:%.*s%c", STR_ARG(host),
		   STR_ARG(port.n ? str_from(port, 1) : port), '\0');
	call->connect_to = call->c->list_append(NULL, line.p);
	call->c->set(call->curl, CURLOPT_CONNECT_TO, call->connect_to);
	buf_printf(&named, "%.*s%s%s%c", (int)(host.p - url->p), url->p, name, port.p, '\0');
	buf_release(&line);
	buf_release(url);
	*url = named;
}

static void set_headers(struct call *call)
{
	for (size_t i = 0; i < call->q->nheaders; i++)
		call->headers = call->c->list_append(call->headers, call->q->headers[i]);
	if (call->q->body.p) /* do not wait for "100 Continue" */
		call->headers = call->c->list_append(call->headers, "Expect:");
	call->c->set(call->curl, CURLOPT_HTTPHEADER, call->headers);
}

static void set_callbacks(struct call *call)
{
	__typeof__(curl_easy_setopt) *set = call->c->set;

	set(call->curl, CURLOPT_HEADERFUNCTION, on_header);
	set(call->curl, CURLOPT_HEADERDATA, call);
	set(call->curl, CURLOPT_WRITEFUNCTION, on_body);
	set(call->curl, CURLOPT_WRITEDATA, call);
	set(call->curl, CURLOPT_XFERINFOFUNCTION, on_progress);
	set(call->curl, CURLOPT_XFERINFODATA, call);
	set(call->curl, CURLOPT_NOPROGRESS, 0L);
	set(call->curl, CURLOPT_OPENSOCKETFUNCTION, on_socket);
	set(call->curl, CURLOPT_OPENSOCKETDATA, call);
	set(call->curl, CURLOPT_ERRORBUFFER, call->reason);
}

static void set_request(struct call *call)
{
	const struct http_request *q = call->q;
	__typeof__(curl_easy_setopt) *set = call->c->set;
	bool is_insecure = str_has_prefix(str_of(q->url), STR(INSECURE));
	bool is_final = q->is_direct || q->is_final;
	struct str unix_socket = http_socket(str_of(q->url));
	struct buf url = { 0 };

	if (unix_socket.n)
		buf_printf(&url, "http://localhost%s%c", unix_socket.p + unix_socket.n + 1, '\0');
	else
		buf_printf(&url, "%s%s%c", is_insecure ? "https://" : "",
			   q->url + (is_insecure ? strlen(INSECURE) : 0), '\0');
	set_proxy(call, url.p);
	set_server_name(call, &url);
	set(call->curl, CURLOPT_URL, url.p);
	if (unix_socket.n) {
		url.n = 0;
		buf_printf(&url, "%.*s%c", STR_ARG(unix_socket), '\0');
		set(call->curl, CURLOPT_UNIX_SOCKET_PATH, url.p);
	}
	buf_release(&url);
	set(call->curl, CURLOPT_PATH_AS_IS, 1L);
	set(call->curl, CURLOPT_PROTOCOLS_STR, "http,https");
	set(call->curl, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
	set(call->curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	set(call->curl, CURLOPT_FOLLOWLOCATION, is_final ? 0L : 1L);
	set(call->curl, CURLOPT_QUICK_EXIT, is_final ? 1L : 0L);
	set(call->curl, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L); /* a proxy's status is not ours */
	set(call->curl, CURLOPT_MAXREDIRS, (long)MAX_REDIRECTS);
	set(call->curl, CURLOPT_ACCEPT_ENCODING, "gzip");
	set(call->curl, CURLOPT_USERAGENT, "kiln");
	set(call->curl, CURLOPT_NOSIGNAL, 1L);
	set(call->curl, CURLOPT_TIMEOUT_MS, (long)q->timeout_ms);
	set(call->curl, CURLOPT_CONNECTTIMEOUT_MS, (long)q->connect_timeout_ms);
	if (q->body.p) {
		set(call->curl, CURLOPT_POST, 1L);
		set(call->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)q->body.n);
		set(call->curl, CURLOPT_POSTFIELDS, q->body.p);
	}
	if (q->method)
		set(call->curl, CURLOPT_CUSTOMREQUEST, q->method);
	if (q->stream) /* may be silent for long */
		set(call->curl, CURLOPT_TCP_KEEPALIVE, 1L);
	set_tls(call, is_insecure || call->c->tls.is_insecure);
	set_headers(call);
	set_callbacks(call);
}

/* ---- errors, in Go's words */

/* The URL without its password, quoted. */
static void put_url(struct buf *out, struct str url)
{
	struct buf safe = { 0 };
	size_t start = str_find(url, STR("://"));
	struct str rest = start == STR_NONE ? url : str_from(url, start + 3), user;
	size_t end = 0, at, colon;

	while (end < rest.n && !strchr("/?#", rest.p[end]))
		end++;
	user = (struct str){ rest.p, end };
	at = str_rfind_char(user, '@');
	user.n = at == STR_NONE ? 0 : at;
	colon = str_find_char(user, ':');
	if (colon == STR_NONE) {
		buf_str(&safe, url);
	} else {
		buf_add(&safe, url.p, (size_t)(rest.p - url.p) + colon);
		buf_puts(&safe, ":***");
		buf_str(&safe, str_from(rest, at));
	}
	quote_go(out, buf_view(&safe));
	buf_release(&safe);
}

/* Get "URL": */
static bool wrap(const struct call *call, struct err *e)
{
	const char *url = call->q->url, *last = NULL;
	struct buf text = { 0 };
	const char *method = call->q->method ? call->q->method : call->q->body.p ? "POST" : "GET";
	long redirects = 0;

	if (call->curl) {
		call->c->info(call->curl, CURLINFO_REDIRECT_COUNT, &redirects);
		call->c->info(call->curl, CURLINFO_EFFECTIVE_URL, &last);
	}
	buf_char(&text, method[0]);
	for (const char *m = method + !!*method; *m; m++)
		buf_char(&text, (char)tolower((unsigned char)*m));
	buf_char(&text, ' ');
	put_url(&text, str_of(redirects && last ? last : url));
	err_wrap(e, "%.*s", STR_ARG(buf_view(&text)));
	buf_release(&text);
	return false;
}

static bool fail_connect(const struct call *call, struct err *e)
{
	const char *network = http_socket(str_of(call->q->url)).n ? "unix" : "tcp", *why;
	long number = 0;

	call->c->info(call->curl, CURLINFO_OS_ERRNO, &number);
	why = number ? strerrordesc_np((int)number) : NULL;
	if (!why || !*call->address)
		return err_set(e, ERR_IO, "dial %s: %s", network, call->reason);
	return err_set(e, ERR_IO, "dial %s %s: connect: %c%s", network, call->address,
		       tolower((unsigned char)why[0]), why + 1);
}

static bool fail_timeout(const struct call *call, struct err *e)
{
	double connected = 0;

	if (call->has_headers)
		return err_set(e, ERR_IO,
			       "context deadline exceeded (Client.Timeout or context cancellation "
			       "while reading body)");
	call->c->info(call->curl, CURLINFO_CONNECT_TIME, &connected);
	if (connected <= 0 && *call->address)
		return err_set(e, ERR_IO,
			       "dial tcp %s: i/o timeout (Client.Timeout exceeded while awaiting "
			       "headers)",
			       call->address);
	return err_set(e, ERR_IO,
		       "context deadline exceeded (Client.Timeout exceeded while awaiting "
		       "headers)");
}

/* Numbers are X509_V_ERR_* of OpenSSL. */
static bool fail_certificate(const struct call *call, struct err *e)
{
	long result = 0;
	const char *why = call->reason;

	call->c->info(call->curl, CURLINFO_SSL_VERIFYRESULT, &result);
	if (result == 2 || (result >= 18 && result <= 21))
		why = "x509: certificate signed by unknown authority";
	else if (result == 9 || result == 10)
		why = "x509: certificate has expired or is not yet valid";
	return err_set(e, ERR_IO, "tls: failed to verify certificate: %s", why);
}

static bool fail_large(const struct call *call, struct err *e)
{
	if (call->are_headers_large)
		return err_set(e, ERR_LIMIT, "the server's headers are larger than %d bytes",
			       MAX_HEADER_BYTES);
	return err_set(e, ERR_LIMIT, "the server sends more than %zu bytes",
		       call->r->body.n < call->q->max_bytes ? call->q->max_bytes : call->r->body.n);
}

static bool fail(const struct call *call, CURLcode code, struct err *e)
{
	struct str host = host_of(call->q->url);

	switch (code) {
	case CURLE_COULDNT_RESOLVE_HOST:
		return err_set(e, ERR_NOTFOUND, "dial tcp: lookup %.*s: no such host",
			       STR_ARG(host));
	case CURLE_COULDNT_CONNECT:
		return fail_connect(call, e);
	case CURLE_OPERATION_TIMEDOUT:
		return fail_timeout(call, e);
	case CURLE_TOO_MANY_REDIRECTS:
		return err_set(e, ERR_IO, "stopped after %d redirects", MAX_REDIRECTS);
	case CURLE_GOT_NOTHING:
		return err_set(e, ERR_IO, "EOF");
	case CURLE_PARTIAL_FILE:
		return err_set(e, ERR_IO, "unexpected EOF");
	case CURLE_PEER_FAILED_VERIFICATION:
		return fail_certificate(call, e);
	case CURLE_SSL_CERTPROBLEM:
		err_set(e, ERR_USAGE, "%s", call->reason);
		return wrap_pair(&call->c->tls, e);
	case CURLE_SSL_CACERT_BADFILE:
		err_set(e, ERR_USAGE, "%s", call->reason);
		return wrap_ca(&call->c->tls, e);
	case CURLE_ABORTED_BY_CALLBACK:
		return err_set(e, ERR_IO, "context canceled");
	case CURLE_WRITE_ERROR:
		return fail_large(call, e);
	default:
		return err_set(e, ERR_IO, "%s", *call->reason ? call->reason : call->c->text(code));
	}
}

/* What was received of the body is of no use then, and Go does not name the request. */
static bool fails_in_body(const struct call *call, CURLcode code)
{
	return call->has_headers && code != CURLE_TOO_MANY_REDIRECTS;
}

static bool perform(struct call *call, struct err *e)
{
	double connected = 0;
	CURLcode code;

	call->curl = take_handle(call->c, e);
	if (!call->curl)
		return false;
	set_request(call);
	code = call->c->perform(call->curl);
	call->c->info(call->curl, CURLINFO_PRETRANSFER_TIME, &connected);
	call->r->was_sent = connected > 0;
	if (code == CURLE_WRITE_ERROR && call->is_enough)
		code = CURLE_OK;
	if (code != CURLE_OK) {
		fail(call, code, e);
		if (!fails_in_body(call, code))
			wrap(call, e);
	}
	give_handle(call->c, call->curl);
	call->c->list_free(call->headers);
	call->c->list_free(call->connect_to);
	return code == CURLE_OK;
}

static bool check(const struct call *call, struct err *e)
{
	struct str scheme = scheme_of(call->q->url);

	if (!check_tls(&call->c->tls, e))
		return wrap(call, e);
	if (http_socket(str_of(call->q->url)).n && !call->q->is_direct)
		return true;
	if (!str_eq(scheme, STR("http")) && !str_eq(scheme, STR("https")) &&
	    !str_eq(scheme, STR("https+insecure"))) {
		err_set(e, ERR_USAGE, "unsupported protocol scheme \"%.*s\"", STR_ARG(scheme));
		return wrap(call, e);
	}
	return true;
}

bool http_send(struct http_client *c, const struct http_request *q, struct http_response *r,
	       struct err *e)
{
	struct call call = { .c = c, .q = q, .r = r };

	r->status = 0;
	r->was_sent = false;
	r->status_text.n = r->headers.n = r->body.n = 0;
	return check(&call, e) && perform(&call, e);
}

/* ---- links */

/* libcurl writes to the call for as long as it has the handle. */
struct http_link {
	struct http_request q;
	struct http_response r;
	struct call call;
	curl_socket_t fd;
};

static bool connect_link(struct http_link *l, struct err *e)
{
	struct call *call = &l->call;
	CURLcode code;

	call->curl = take_handle(call->c, e);
	if (!call->curl)
		return false;
	set_request(call);
	call->c->set(call->curl, CURLOPT_CONNECT_ONLY, 1L);
	call->c->set(call->curl, CURLOPT_HTTPPROXYTUNNEL, 1L);
	code = call->c->perform(call->curl);
	if (code != CURLE_OK) {
		fail(call, code, e);
		return wrap(call, e);
	}
	call->c->info(call->curl, CURLINFO_ACTIVESOCKET, &l->fd);
	return l->fd != CURL_SOCKET_BAD || err_set(e, ERR_IO, "the connection is gone");
}

struct http_link *http_link_open(struct http_client *c, const struct http_request *q, struct err *e)
{
	struct http_link *l = xcalloc(1, sizeof(*l));

	l->q = (struct http_request){ .url = q->url,
				      .timeout_ms = q->timeout_ms,
				      .canceled = q->canceled,
				      .is_direct = q->is_direct,
				      .proxy = q->proxy };
	l->call = (struct call){ .c = c, .q = &l->q, .r = &l->r };
	l->fd = CURL_SOCKET_BAD;
	if (check(&l->call, e) && connect_link(l, e))
		return l;
	http_link_free(l);
	return NULL;
}

void http_link_free(struct http_link *l)
{
	if (!l)
		return;
	if (l->call.curl) {
		l->call.c->cleanup(l->call.curl);
		l->call.c->list_free(l->call.headers);
		l->call.c->list_free(l->call.connect_to);
	}
	http_response_release(&l->r);
	free(l);
}

int http_link_fd(const struct http_link *l)
{
	return l->fd;
}

static ptrdiff_t moved(const struct http_link *l, CURLcode code, size_t n, struct err *e)
{
	if (code == CURLE_OK)
		return (ptrdiff_t)n;
	if (code == CURLE_AGAIN)
		return 0;
	fail(&l->call, code, e);
	return -1;
}

ptrdiff_t http_link_send(struct http_link *l, struct str bytes, struct err *e)
{
	size_t n = 0;
	CURLcode code = l->call.c->send(l->call.curl, bytes.p, bytes.n, &n);

	return moved(l, code, n, e);
}

ptrdiff_t http_link_recv(struct http_link *l, char *to, size_t size, struct err *e)
{
	size_t n = 0;
	CURLcode code = l->call.c->recv(l->call.curl, to, size, &n);

	if (code == CURLE_OK && !n) {
		err_set(e, ERR_NOTFOUND, "EOF");
		return -1;
	}
	return moved(l, code, n, e);
}

struct str http_header(const struct http_response *r, const char *name)
{
	struct str rest = buf_view(&r->headers);
	size_t n = strlen(name);

	while (rest.n) {
		struct str line = str_cut(&rest, '\n');

		if (line.n > n && line.p[n] == ':' && strncasecmp(line.p, name, n) == 0)
			return str_trim(str_from(line, n + 1));
	}
	return STR("");
}

void http_response_release(struct http_response *r)
{
	buf_release(&r->status_text);
	buf_release(&r->headers);
	buf_release(&r->body);
}
