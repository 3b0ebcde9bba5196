#include "server/gate.h"

#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>

#include "base/unit.h"
#include "base/version.h"
#include "base/when.h"
#include "server/auth.h"
#include "server/cors.h"
#include "server/limits.h"
#include "server/log.h"
#include "server/metrics.h"
#include "web/web.h"

enum {
	WAIT_MS = 2000,
	WAIT_TURN_MS = 10000,
	LATE_MS = 250,
	HANDLERS = 64, /* more than may wait for memory and turns */
	SMALL_BODY = 64 << 10,
	SYMBOLZ_BODY = 4 << 20,	  /* all addresses of a large profile that has no names */
	SPARE_FDS = 256,	  /* for files of the store */
	MEMORY_PER_BODY_BYTE = 2, /* as the buffer grows */
};

/* ---- start and end */

static void log_line(void *ctx, const char *line)
{
	(void)ctx;
	log_info("%s", line);
}

/* Each connection is a file. */
static void raise_file_limit(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) == 0) {
		r.rlim_cur = r.rlim_max;
		setrlimit(RLIMIT_NOFILE, &r);
	}
}

static unsigned max_connections(const struct server_options *o)
{
	struct rlimit r;
	uint64_t wanted = (uint64_t)o->max_connections;

	if (getrlimit(RLIMIT_NOFILE, &r) == 0 && r.rlim_cur != RLIM_INFINITY &&
	    wanted + SPARE_FDS > r.rlim_cur)
		wanted = r.rlim_cur > 2 * SPARE_FDS ? r.rlim_cur - SPARE_FDS : SPARE_FDS;
	return wanted < UINT16_MAX ? (unsigned)wanted : UINT16_MAX;
}

static bool check_options(const struct server_options *o, struct err *e)
{
	if (!*o->tls_cert != !*o->tls_key)
		return err_set(e, ERR_USAGE, "--tls-cert and --tls-key go together: %s is missing",
			       *o->tls_cert ? "--tls-key" : "--tls-cert");
	if (*o->tls_client_ca && !*o->tls_cert)
		return err_set(e, ERR_USAGE,
			       "--tls-client-ca needs --tls-cert and --tls-key: without TLS no "
			       "client shows a certificate");
	return true;
}

bool gate_open(struct server *s, const char *host, struct err *e)
{
	const struct server_options *o = s->options;
	struct auth_params params = { .tokens = o->tokens,
				      .users = o->users,
				      .wants_certificate = *o->tls_client_ca,
				      .is_insecure = o->insecure,
				      .host = host,
				      .log = log_line };
	struct str version = STR(KILN_VERSION);

	if (!check_options(o, e))
		return false;
	s->auth = auth_new(&params, e);
	if (!s->auth)
		return false;
	raise_file_limit();
	s->limits = limits_new(o, log_line, NULL);
	s->metrics = metrics_new();
	metrics_set(s->metrics, METRIC_BUILD_INFO, 1, &version);
	if (!auth_is_needed(s->auth) && !auth_is_loopback(str_of(host)))
		log_info("--insecure: whoever reaches %s may read and write profiles",
			 *host ? host : "any address of this machine");
	else if (!*o->tls_cert && !auth_is_loopback(str_of(host)))
		log_info("tokens and profiles go over the network as they are: give --tls-cert and "
			 "--tls-key, unless a proxy on this machine speaks TLS");
	return true;
}

void gate_close(struct server *s)
{
	auth_free(s->auth);
	limits_free(s->limits);
	metrics_free(s->metrics);
}

void gate_set_http(const struct server *s, struct http_server_params *p)
{
	const struct server_options *o = s->options;

	p->grow = gate_grow;
	p->handlers = HANDLERS;
	p->max_connections = max_connections(o);
	p->certificate = *o->tls_cert ? o->tls_cert : NULL;
	p->key = *o->tls_key ? o->tls_key : NULL;
	p->client_ca = *o->tls_client_ca ? o->tls_client_ca : NULL;
}

/* ---- refusals */

static struct visit *visit_of(const struct call *c)
{
	return c->http->user;
}

/* What a push is of: as its handler says, or its address. */
static struct str service_of(const struct call *c)
{
	const struct visit *v = visit_of(c);
	struct str name;

	if (c->service.n)
		return c->service;
	if (v->route->run == api0_put)
		return http_target_param(&c->http->target, "service");
	if (v->route->run != ingest_post)
		return STR("");
	name = http_target_param(&c->http->target, "name");
	return str_trim(str_cut(&name, '{'));
}

/* Whoever may not push says nothing about a service. */
void gate_count_service(struct call *c, const char *reason, const char *why)
{
	const struct visit *v = visit_of(c);
	struct str service;

	if (!v || !v->route || v->route->role != ROLE_WRITE || !role_has(v->role, ROLE_WRITE))
		return;
	service = service_of(c);
	if (service.n)
		refusals_add_service(c->server->limits->refusals, service, str_of(reason),
				     str_of(why), time_now());
}

void gate_count(struct call *c, int status, const char *limit, const char *why)
{
	struct buf what = { 0 };
	struct str name = str_of(limit);

	buf_str(&what, c->http->method);
	buf_char(&what, ' ');
	buf_str(&what, c->http->target.path);
	metrics_add(c->server->metrics, METRIC_REFUSALS, 1, &name);
	refusals_add(c->server->limits->refusals,
		     &(struct refusal){ name, status, str_of(c->http->peer), visit_of(c)->who,
					buf_view(&what), str_of(why) },
		     time_now());
	gate_count_service(c, limit, why);
	buf_release(&what);
}

void gate_refuse(struct call *c, int status, const char *limit, const char *fmt, ...)
{
	char why[900], text[1000];
	va_list args;

	va_start(args, fmt);
	vsnprintf(why, sizeof(why), fmt, args);
	va_end(args);
	gate_count(c, status, limit, why);
	http_reply_header(c->reply, "X-Kiln-Limit", str_dup(c->arena, str_of(limit)));
	if (status == 503)
		http_reply_header(c->reply, "Retry-After", "2");
	c->gives_profile = true; /* so that pprof shows why */
	snprintf(text, sizeof(text), "%.90s: %s", limit, why);
	reply_refused(c, status, text);
}

const char *gate_bytes_text(const struct call *c, uint64_t n)
{
	struct buf text = { 0 };
	const char *copy;

	/* Rounded: 604305476 says little, 576.31MB does. */
	unit_label(&text, n < INT64_MAX ? (int64_t)n : INT64_MAX, STR("bytes"), STR("auto"));
	copy = str_dup(c->arena, buf_view(&text));
	buf_release(&text);
	return copy;
}

/* ---- memory */

static bool is_ingest(const struct visit *v)
{
	return v->route->role == ROLE_WRITE;
}

static bool is_symbolz(const struct visit *v)
{
	return str_has_suffix(str_of(v->route->path), STR("/symbolz"));
}

static bool is_debuginfo(const struct visit *v)
{
	return strcmp(v->route->path, "/api/1/debuginfo/*") == 0;
}

/* Words of a form. */
static bool is_annotation(const struct visit *v)
{
	return strcmp(v->route->path, "/api/1/annotations") == 0;
}

static size_t max_body(const struct call *c)
{
	const struct visit *v = visit_of(c);

	if (is_ingest(v) && is_debuginfo(v))
		return (size_t)c->server->options->max_debuginfo;
	if (is_ingest(v) && !is_annotation(v))
		return (size_t)c->server->options->max_body;
	return is_symbolz(v) ? SYMBOLZ_BODY : SMALL_BODY;
}

static const char *body_limit(const struct call *c)
{
	return is_debuginfo(visit_of(c)) ? "max-debuginfo" : "max-body";
}

/* Of `bytes` more than it has. */
static void refuse_memory(struct call *c, uint64_t more)
{
	uint64_t total = c->server->limits->memory.total, bytes = visit_of(c)->memory + more;

	if (bytes > total)
		gate_refuse(c, 413, "max-memory",
			    "this takes some %s of memory, and --max-memory leaves %s to requests",
			    gate_bytes_text(c, bytes), gate_bytes_text(c, total));
	else
		gate_refuse(c, 503, "max-memory",
			    "other requests have all of the %s that --max-memory leaves to them; "
			    "try again",
			    gate_bytes_text(c, total));
}

/* Who has had it for long, and does nothing with it, has to go before somebody waits. */
static bool take_memory(struct call *c, uint64_t bytes, int wait_ms)
{
	struct budget *b = &c->server->limits->memory;

	while (!budget_take(b, bytes, 0, NULL)) {
		/* Profiles that nobody looks at now. */
		if (bytes <= b->total && web_site_shed(c->server->site))
			continue;
		http_server_shed(http_call_server(c->http));
		if (!wait_ms || !budget_take(b, bytes, wait_ms, c->http->abandoned)) {
			refuse_memory(c, bytes);
			return false;
		}
		break;
	}
	visit_of(c)->memory += bytes;
	return true;
}

bool gate_take(struct call *c, uint64_t bytes)
{
	return take_memory(c, bytes, WAIT_MS);
}

uint64_t gate_held(const struct call *c)
{
	return visit_of(c)->memory;
}

void gate_give_to(struct call *c, uint64_t held)
{
	struct visit *v = visit_of(c);

	if (v->memory > held) {
		budget_give(&c->server->limits->memory, v->memory - held);
		v->memory = held;
	}
}

void gate_grow(void *server, struct http_call *http, size_t nbytes, struct http_reply *reply)
{
	struct call c = { .server = server, .http = http, .reply = reply, .arena = &http->arena };
	struct visit *v = http->user;
	uint64_t need = (uint64_t)nbytes * MEMORY_PER_BODY_BYTE;

	if (is_ingest(v) && !is_debuginfo(v))
		gate_look_at_body(&c);
	if (reply->status)
		return;
	if (nbytes > max_body(&c))
		gate_refuse(&c, 413, body_limit(&c), "a body of more than %s",
			    gate_bytes_text(&c, max_body(&c)));
	else if (need > v->memory)
		take_memory(&c, need - v->memory, 0);
}

/* ---- who asks */

static void refuse_claim(struct call *c, enum auth_result why)
{
	switch (why) {
	case AUTH_NO_CERTIFICATE:
		gate_refuse(c, 403, "tls-client-ca",
			    "a certificate is needed that the server's --tls-client-ca has signed");
		return;
	case AUTH_WRONG_HOST:
		gate_refuse(c, 403, "host",
			    "the server does not go by the name in the request's Host header; with "
			    "--tokens, --users or --insecure any name will do");
		return;
	case AUTH_OK:
	case AUTH_WRONG:
	case AUTH_SLOW:
		break;
	}
	http_reply_header(c->reply, "WWW-Authenticate", "Basic realm=\"kiln\", charset=\"UTF-8\"");
	gate_refuse(c, 401, "authentication", "the token, or the user and password, are wrong");
}

static const char *role_name(enum role r)
{
	return r == ROLE_READ ? "read" : r == ROLE_WRITE ? "write" : "admin";
}

static bool check_role(struct call *c)
{
	const struct visit *v = visit_of(c);

	if (role_has(v->role, v->route->role))
		return true;
	if (v->who.n || !auth_is_needed(c->server->auth)) {
		gate_refuse(c, 403, "role", "this takes the role %s", role_name(v->route->role));
		return false;
	}
	http_reply_header(c->reply, "WWW-Authenticate", "Basic realm=\"kiln\", charset=\"UTF-8\"");
	gate_refuse(c, 401, "authentication",
		    "this takes the role %s: send a token (Authorization: Bearer TOKEN), or a user "
		    "and password",
		    role_name(v->route->role));
	return false;
}

static bool check_claim(struct call *c, bool may_be_slow)
{
	struct visit *v = visit_of(c);
	struct auth_claim claim = {
		.authorization = http_call_header(c->http, "Authorization"),
		.certificate = c->http->client,
		.host = http_call_header(c->http, "Host"),
		.is_local = c->http->is_local,
	};
	enum auth_result result =
		auth_check(c->server->auth, &claim, may_be_slow, c->arena, &v->role, &v->who);

	c->role = v->role;
	c->who = v->who;
	if (result == AUTH_SLOW)
		return true;
	v->is_checked = true;
	if (result != AUTH_OK && v->route->role != ROLE_NONE)
		refuse_claim(c, result);
	else
		check_role(c);
	return !c->reply->status;
}

/* Does a browser say that one of our pages asks? Over plain HTTP it tells only the Origin; behind a
 * proxy that may not be our Host, but a proxy that others reach has TLS. */
static bool is_our_page(const struct http_call *http)
{
	struct str site = http_call_header(http, "Sec-Fetch-Site");
	struct str origin = http_call_header(http, "Origin");
	size_t at = str_find(origin, STR("://"));

	if (site.p)
		return str_eq(site, STR("same-origin")) || str_eq(site, STR("none"));
	return !origin.p ||
	       (at != STR_NONE && str_eq(str_from(origin, at + 3), http_call_header(http, "Host")));
}

/* A page of another site may have a browser send forms here, with the password that it knows. */
static bool check_site(struct call *c)
{
	bool is_read = str_eq(c->http->method, STR("GET")) || str_eq(c->http->method, STR("HEAD"));

	if (is_read || is_our_page(c->http) || cors_is_allowed(c, str_of(visit_of(c)->route->path)))
		return true;
	gate_refuse(c, 403, "site", "pages of other sites may not do this");
	return false;
}

/* ---- how much, how fast */

void gate_keep_waiting(struct call *c)
{
	c->reply->late_ms = LATE_MS;
}

/* Whoever has an IPv6 address has 2^64 of them. */
struct str gate_client(const struct http_call *http, char text[INET6_ADDRSTRLEN])
{
	const struct visit *v = http->user;
	struct in6_addr v6;

	if (v->who.n)
		return v->who;
	if (inet_pton(AF_INET6, http->peer, &v6) != 1)
		return str_of(http->peer);
	memset(v6.s6_addr + 8, 0, 8);
	inet_ntop(AF_INET6, &v6, text, INET6_ADDRSTRLEN);
	return str_of(text);
}

static bool check_rate(struct call *c)
{
	char text[INET6_ADDRSTRLEN], seconds[32];
	const char *limit = "";
	double wait = rates_take(c->server->limits->rates, gate_client(c->http, text),
				 c->http->start_ns, &limit);

	if (wait <= 0)
		return true;
	snprintf(seconds, sizeof(seconds), "%d", wait < 3600 ? (int)wait + 1 : 3600);
	http_reply_header(c->reply, "Retry-After", str_dup(c->arena, str_of(seconds)));
	gate_keep_waiting(c);
	gate_refuse(c, 429, limit, "this client is faster than --%s allows; try again in %s s",
		    limit, seconds);
	return false;
}

static bool check_body(struct call *c)
{
	size_t max_bytes = max_body(c);

	if (c->http->announced_bytes <= max_bytes)
		return true;
	gate_refuse(c, 413, body_limit(c), "a body of %s, and --%s is %s",
		    gate_bytes_text(c, c->http->announced_bytes), body_limit(c),
		    gate_bytes_text(c, max_bytes));
	return false;
}

static bool is_query(const struct visit *v)
{
	static const char *const prefixes[] = { "/api/", "/querier.v1.", "/pyroscope/" };

	if (v->route->role == ROLE_NONE || is_ingest(v))
		return false;
	for (size_t i = 0; i < sizeof(prefixes) / sizeof(*prefixes); i++)
		if (str_has_prefix(str_of(v->route->path), str_of(prefixes[i])))
			return true;
	return is_symbolz(v) ||
	       (v->route->run == page_viewer && str_has_prefix(v->rest, STR("api/")));
}

/* Those that are answered without reading many profiles need not wait for those that are not. */
static bool is_heavy(const struct visit *v)
{
	static const char *const light[] = {
		"/api/0/version",	   "/api/0/services",	 "/api/1/stats",
		"/api/1/openapi.json",	   "/api/1/refusals",	 "/api/1/profiles/*",
		"/api/1/targets",	   "/api/1/capture/*",	 "/api/1/debuginfo",
		"/api/1/debuginfo/*",	   "/api/1/annotations", "/api/1/live",
		"/api/v1/status/buildinfo"
	};

	if (!is_query(v))
		return false;
	if (strcmp(v->route->path, "/api/0/profiles/*") == 0)
		return str_find_char(v->rest, '+') != STR_NONE;
	for (size_t i = 0; i < sizeof(light) / sizeof(*light); i++)
		if (strcmp(v->route->path, light[i]) == 0)
			return false;
	return true;
}

static bool check_memory(struct call *c)
{
	const struct visit *v = visit_of(c);

	if ((!is_ingest(v) && !is_query(v)) || !limits_is_short(c->server->limits))
		return true;
	while (web_site_shed(c->server->site))
		;
	http_server_shed(http_call_server(c->http));
	gate_refuse(c, 503, "max-memory",
		    "the server has as much memory as --max-memory allows; "
		    "try again");
	return false;
}

size_t gate_admit(struct call *c)
{
	const struct visit *v = visit_of(c);

	if (check_site(c) && check_claim(c, false) && check_body(c) && check_memory(c) &&
	    (!is_ingest(v) || check_rate(c)) && c->http->has_body)
		take_memory(c, SMALL_BODY * MEMORY_PER_BODY_BYTE, 0);
	return max_body(c);
}

static bool check_password(struct call *c)
{
	struct turns *hashing = c->server->limits->hashing;
	char text[INET6_ADDRSTRLEN];
	struct str client = gate_client(c->http, text); /* by its address: it may be anybody */

	if (!turns_take(hashing, client, WAIT_MS, c->http->abandoned)) {
		gate_refuse(c, 503, "authentication",
			    "too many passwords are being checked; try again");
		return false;
	}
	check_claim(c, true);
	turns_give(hashing, client);
	return !c->reply->status;
}

/* Whoever asks for much and does not read it gets no more. */
static bool check_unread(struct call *c)
{
	struct limits *l = c->server->limits;
	char text[INET6_ADDRSTRLEN];
	uint64_t unread;

	if (!is_query(visit_of(c)))
		return true;
	unread = holds_of(l->unread, gate_client(c->http, text));
	if (unread < l->max_unread)
		return true;
	http_server_shed(http_call_server(c->http));
	gate_refuse(c, 503, "unread",
		    "this client has not read %s of answers, and no client may leave more than an "
		    "eighth of the memory that --max-memory leaves to requests, %s, unread; try "
		    "again",
		    gate_bytes_text(c, unread), gate_bytes_text(c, l->max_unread));
	return false;
}

bool gate_enter(struct call *c)
{
	char text[INET6_ADDRSTRLEN];
	struct visit *v = visit_of(c);

	c->role = v->role;
	c->who = v->who;
	if (!v->is_checked && !check_password(c))
		return false;
	if (!check_unread(c))
		return false;
	if (!is_heavy(v))
		return true;
	v->has_turn = turns_take(c->server->limits->turns, gate_client(c->http, text), WAIT_TURN_MS,
				 c->http->abandoned);
	if (!v->has_turn)
		gate_refuse(c, 503, "max-queries",
			    "%u queries are being worked on, and others wait; try again",
			    limits_queries(c->server->options));
	return v->has_turn;
}

static void give_turn(struct server *s, const struct http_call *http)
{
	struct visit *v = http->user;
	char text[INET6_ADDRSTRLEN];

	if (v->has_turn)
		turns_give(s->limits->turns, gate_client(http, text));
	v->has_turn = false;
}

static uint64_t reply_bytes(const struct call *c)
{
	return c->reply->content ? http_content_size(c->reply->content) : 0;
}

/* Until it has been read, the answer takes memory. */
void gate_leave(struct call *c)
{
	struct limits *l = c->server->limits;
	struct visit *v = visit_of(c);
	char text[INET6_ADDRSTRLEN];
	uint64_t need = reply_bytes(c);

	give_turn(c->server, c->http);
	if (need > SMALL_BODY && need > v->memory) {
		size_t nheaders = c->reply->nheaders;

		c->reply->nheaders = 0; /* a refusal has its own */
		if (take_memory(c, need - v->memory, WAIT_MS))
			c->reply->nheaders = nheaders;
		need = reply_bytes(c);
	}
	gate_give_to(c, need);
	if (need > SMALL_BODY) {
		v->unread = need;
		holds_add(l->unread, gate_client(c->http, text), need);
	}
}

/* ---- the end */

static struct str known_method(struct str method)
{
	static const char *const known[] = { "GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS" };

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (str_eq(method, str_of(known[i])))
			return method;
	return STR("other");
}

/* As profefe has it. */
static struct str path_label(const struct visit *v)
{
	if (!v || !v->route)
		return STR("other");
	if (strcmp(v->route->path, "/api/0/profiles/*") == 0)
		return STR("/api/0/profiles/__pid__");
	return str_of(v->route->path);
}

static void count(struct server *s, const struct http_call *http, const struct http_sent *sent)
{
	char code[16];
	struct str labels[] = { known_method(http->method), path_label(http->user), { code, 0 } };
	struct timespec t;
	int64_t now;

	clock_gettime(CLOCK_MONOTONIC, &t);
	now = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
	labels[2].n = (size_t)snprintf(code, sizeof(code), "%d", sent->status);
	metrics_add(s->metrics, METRIC_API_REQUESTS, 1, labels);
	metrics_add(s->metrics, METRIC_API_DURATION, (double)(now - http->start_ns) / 1e9, labels);
	metrics_add(s->metrics, METRIC_API_REQUEST_BYTES,
		    (double)(http->body.n ? http->body.n : http->announced_bytes), labels);
	metrics_add(s->metrics, METRIC_API_RESPONSE_BYTES, (double)sent->body_bytes, labels);
}

void gate_done(struct server *s, struct http_call *http, const struct http_sent *sent)
{
	struct visit *v = http->user;
	char text[INET6_ADDRSTRLEN];

	if (v) {
		budget_give(&s->limits->memory, v->memory);
		give_turn(s, http);
		if (v->unread)
			holds_remove(s->limits->unread, gate_client(http, text), v->unread);
		rates_take_bytes(s->limits->rates, gate_client(http, text), http->body.n,
				 http->start_ns);
	}
	if (http->method.n)
		count(s, http, sent);
}
