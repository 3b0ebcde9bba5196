/* server.c - starts and ends the server. */
#include "server/server.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/version.h"
#include "base/when.h"
#include "collect/collect.h"
#include "http/address.h"
#include "server/debuginfo.h"
#include "server/gate.h"
#include "server/limits.h"
#include "server/keep_rules.h"
#include "server/live.h"
#include "server/log.h"
#include "server/names.h"
#include "server/owners.h"
#include "server/regressions.h"
#include "server/routes.h"
#include "server/scrape.h"
#include "server/self.h"
#include "server/warmer.h"
#include "server/viewer.h"

enum {
	LOOK_S = 5,	 /* at files of TLS that may have changed */
	NAMES_SHARE = 8, /* of the store's memory */
	MIN_TIDY_MS = 1000,
	MAX_TIDY_MS = 3600 * 1000,
};

/* ---- systemd */

/* Tells the service manager, if there is one, as sd_notify(3) does. */
static void notify(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	size_t n = path ? strlen(path) : 0;
	int fd;

	if (n < 2 || n >= sizeof(to.sun_path) || !strchr("/@", path[0]))
		return;
	memcpy(to.sun_path, path, n);
	if (path[0] == '@') /* a name that is no file */
		to.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	if (sendto(fd, state, strlen(state), MSG_NOSIGNAL, (const struct sockaddr *)&to,
		   (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n)) < 0)
		log_error("systemd cannot be told %s: %s", state, strerror(errno));
	close(fd);
}

/* ---- running */

static void say_ready(const struct server *s, const char *host)
{
	struct buf address = { 0 };
	char state[300];

	buf_printf(&address, strchr(host, ':') ? "[%s]:%u" : "%s:%u", host,
		   http_server_port(s->http));
	log_info("kiln %s listens at %s://%.*s, data in %s", KILN_VERSION,
		 *s->options->tls_cert ? "https" : "http", STR_ARG(buf_view(&address)),
		 s->options->data);
	snprintf(state, sizeof(state), "READY=1\nSTATUS=Listening at %.*s",
		 STR_ARG(buf_view(&address)));
	notify(state);
	buf_release(&address);
}

/* Reads the files of TLS, tokens and users, and the jobs, again. What is wrong is said, and stays
 * as it was. */
static void reload(struct server *s, bool only_changed)
{
	bool is_new;
	struct err e;

	if (!http_server_reload(s->http, only_changed, &is_new, &e))
		log_error("the TLS certificate, key and client CA stay as they were: %s", e.text);
	else if (is_new)
		log_info("the TLS certificate, key and client CA have been read again");
	if (only_changed)
		return;
	auth_reload(s->auth); /* which looks at its files by itself, too */
	scrape_reload(s);
}

/* As systemd's Type=notify-reload wants to be told. */
static void reload_as_told(struct server *s)
{
	char state[80];
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	snprintf(state, sizeof(state), "RELOADING=1\nMONOTONIC_USEC=%lld",
		 (long long)now.tv_sec * 1000000 + now.tv_nsec / 1000);
	notify(state);
	log_info("reads its files again on %s", strsignal(SIGHUP));
	reload(s, false);
	notify("READY=1");
}

/* Until it is to end; returns the signal. */
static int wait_for_end(struct server *s, const sigset_t *signals)
{
	struct timespec look = { .tv_sec = LOOK_S };

	for (;;) {
		int signal = sigtimedwait(signals, NULL, &look);

		if (signal == SIGHUP)
			reload_as_told(s);
		else if (signal > 0)
			return signal;
		else if (errno == EAGAIN)
			reload(s, true);
	}
}

/* Until all that is under way has ended, or `exit_timeout`. */
static void stop(struct server *s)
{
	atomic_store(&s->is_stopping, true);
	collector_stop(s->collector);
	regressions_halt(s->regressions);
	live_stop(s->live);
	http_server_drain(s->http, s->options->exit_timeout / 1000000);
	collector_join(s->collector); /* what it delivers are calls of the server */
	http_server_stop(s->http);
}

static bool listen_and_wait(struct server *s, const char *host, uint16_t port,
			    const sigset_t *signals, struct scrape_config *jobs, struct err *e)
{
	struct http_server_params params = { .host = host,
					     .port = port,
					     .headers = web_headers,
					     .admit = routes_admit,
					     .handle = routes_handle,
					     .done = routes_done,
					     .ctx = s };
	int signal;

	gate_set_http(s, &params);
	s->http = http_server_start(&params, e);
	if (!s->http)
		return false;
	scrape_start(s, jobs);
	say_ready(s, host);
	signal = wait_for_end(s, signals);
	log_info("stops on %s", strsignal(signal));
	notify("STOPPING=1");
	stop(s);
	return true;
}

/* ---- the store */

static void log_store(void *ctx, const char *line)
{
	(void)ctx;
	log_info("%s", line);
}

static struct store *open_store(const struct server_options *o, struct arena *a, struct err *e)
{
	struct store_rule *rules;
	size_t nrules;

	if (!keep_rules_parse(a, str_of(o->keep_service), &rules, &nrules, e))
		return NULL;
	return store_open(
		&(struct store_params){ .dir = o->data,
					.max_memory = limits_store_memory(o),
					.max_series = (uint32_t)o->max_series,
					.max_service_series = (uint32_t)o->max_service_series,
					.keep = { .raw_ns = o->keep_raw,
						  .minute_ns = o->keep_minute,
						  .hour_ns = o->keep_hour,
						  .day_ns = o->keep_day,
						  .max_bytes = (uint64_t)o->max_disk,
						  .min_free_bytes = (uint64_t)o->min_free },
					.rules = rules,
					.nrules = nrules,
					.log = log_store },
		e);
}

/* ---- names */

/* Before a file is kept. */
static bool count_debuginfo(void *ctx, uint64_t bytes, struct err *e)
{
	struct server *s = ctx;

	return store_set_others(s->store, bytes + names_disk_bytes(s->names), e);
}

/* Debug info of binaries that no profile has any more goes. */
static void tidy_debuginfo(void *ctx, uint64_t names_bytes)
{
	struct server *s = ctx;
	int64_t before = time_now() - s->options->keep_debuginfo;
	struct debuginfo_stats stats;
	struct arena a = { 0 };
	struct str *needed;
	struct err e;
	size_t n;

	if (s->options->keep_debuginfo && debuginfo_has_old(s->debuginfo, before)) {
		if (store_build_ids(s->store, &s->is_stopping, &a, &needed, &n, &e))
			debuginfo_expire(s->debuginfo, before, needed, n);
		else if (!s->is_stopping)
			log_error("which debug info is needed cannot be told: %s", e.text);
	}
	debuginfo_stats(s->debuginfo, &stats);
	/* Also what was refused meanwhile. */
	store_set_others(s->store, stats.bytes + names_bytes, &e);
	arena_release(&a);
}

/* What is being shown has names of before. */
static void shed_views(void *ctx)
{
	struct server *s = ctx;

	while (web_site_shed(s->site))
		;
}

static bool open_names(struct server *s, struct arena *a, struct err *e)
{
	enum { DISK_SHARE = 32, MAX_DISK = 512 << 20 };
	const struct server_options *o = s->options;
	const char *urls = getenv("DEBUGINFOD_URLS");
	int64_t tidy_ms = o->keep_debuginfo / 4 / 1000000;
	struct debuginfo_stats stats;
	struct buf dir = { 0 };
	struct err ignored;

	s->debuginfo =
		debuginfo_open(&(struct debuginfo_params){ .data = o->data,
							   .max_file = (uint64_t)o->max_debuginfo,
							   .max_disk = (uint64_t)o->max_disk,
							   .min_free = (uint64_t)o->min_free,
							   .may_grow = count_debuginfo,
							   .ctx = s },
			       e);
	if (!s->debuginfo)
		return false;
	buf_printf(&dir, "%s/names%c", o->data, '\0');
	s->names = names_new(&(struct names_params){
		.files = s->debuginfo,
		.is_local = o->symbolize_local,
		.urls = o->debuginfod && urls ? urls : "",
		.max_bytes = limits_store_memory(o) / NAMES_SHARE,
		.dir = arena_adopt(a, dir.p),
		.max_disk = o->max_disk ? (uint64_t)o->max_disk / DISK_SHARE : MAX_DISK,
		.max_file = (uint64_t)o->max_debuginfo,
		.tidy = tidy_debuginfo,
		.changed = shed_views,
		.ctx = s,
		.tidy_ms = tidy_ms < MIN_TIDY_MS   ? MIN_TIDY_MS
			   : tidy_ms > MAX_TIDY_MS ? MAX_TIDY_MS
						   : tidy_ms,
	});
	store_set_namer(s->store, names_namer(s->names));
	debuginfo_stats(s->debuginfo, &stats);
	/* It is there already. */
	store_set_others(s->store, stats.bytes + names_disk_bytes(s->names), &ignored);
	return true;
}

bool server_run(const struct server_options *options, struct err *e)
{
	struct server s = { .options = options, .started = time_now() };
	struct scrape_config jobs = { 0 };
	struct arena a = { 0 };
	const char *host;
	uint16_t port;
	sigset_t signals;
	bool ok;

	/* Before there are threads, which all have it so. */
	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	signal(SIGPIPE, SIG_IGN);
	ok = http_address_parse(&a, options->listen, "", &host, &port, e) ||
	     err_wrap(e, "--listen %s", options->listen);
	desks_init(&s.desks);
	pthread_mutex_init(&s.scrape_lock, NULL);
	s.owners = owners_new(str_of(options->owners), ok ? e : &(struct err){ 0 });
	ok = ok && s.owners && scrape_read_config(options, &jobs, e) && gate_open(&s, host, e);
	if (ok)
		viewer_open(&s);
	s.store = ok ? open_store(options, &a, e) : NULL;
	ok = s.store && open_names(&s, &a, e);
	if (ok) {
		self_start(&s);
		scrape_open(&s);
		s.regressions = regressions_start(&s);
		s.warmer = warmer_start(&s);
		s.live = live_start(&s);
	}
	ok = ok && listen_and_wait(&s, host, port, &signals, &jobs, e);
	live_free(s.live);
	warmer_stop(s.warmer);
	regressions_stop(s.regressions);
	collector_free(s.collector);
	scrape_config_release(&jobs);
	names_free(s.names);
	if (s.store)
		store_close(s.store);
	web_site_free(s.site);
	debuginfo_close(s.debuginfo);
	gate_close(&s);
	owners_free(s.owners);
	desks_release(&s.desks);
	pthread_mutex_destroy(&s.scrape_lock);
	arena_release(&a);
	return ok;
}
