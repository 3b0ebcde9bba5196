/* serve.c - from -http=host:port to a running server, and its end. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/path.h"
#include "http/address.h"
#include "web/ahead.h"
#include "web/assets.h"
#include "web/names.h"

enum { BROWSER_WAIT_MS = 500, MAX_ANSWER_BYTES = 64 << 20 };

/* ---- settings */

/* Go's os.UserConfigDir. */
static bool find_settings(struct arena *a, const char **path, struct err *e)
{
	const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	struct buf text = { 0 };

	if (config && *config) {
		if (config[0] != '/')
			return err_set(e, ERR_USAGE, "path in $XDG_CONFIG_HOME is relative");
		path_join(&text, str_of(config), STR("pprof/settings.json"));
	} else if (home && *home) {
		path_join(&text, str_of(home), STR(".config/pprof/settings.json"));
	} else {
		return err_set(e, ERR_USAGE, "neither $XDG_CONFIG_HOME nor $HOME are defined");
	}
	*path = str_dup(a, buf_view(&text));
	buf_release(&text);
	return true;
}

/* ---- the page's files */

static bool check_ui_dir(const char *dir, struct err *e)
{
	struct buf index = { 0 };
	bool ok =
		!*dir || asset_read(&index, dir, STR("index.html")) ||
		err_set(e, ERR_USAGE, "-ui_dir=%s: there is no index.html that could be read", dir);

	buf_release(&index);
	return ok;
}

/* ---- the browser */

static void open_browser(struct site *site, const char *url)
{
	struct timespec pause = { 0, BROWSER_WAIT_MS * 1000000L };
	struct err e;

	nanosleep(&pause, NULL); /* as pprof does; a signal may cut it short */
	if (!view_open_url(url, &e))
		site->params.tell(url);
}

/* The page with the options that were given on the command line. */
static void start_browser(struct site *site, const char *address)
{
	struct buf url = { 0 };
	size_t start;

	if (!isatty(STDOUT_FILENO) || site->params.c->options.no_browser)
		return;
	buf_printf(&url, "http://%s?", address);
	start = url.n;
	url_put_options(&url, &site->params.c->options, 0);
	if (url.n == start)
		url.n--;
	buf_char(&url, '\0');
	open_browser(site, url.p);
	buf_release(&url);
}

/* ---- running */

void site_init(struct site *site)
{
	profiles_init(&site->profiles, &site->functions);
	functions_init(&site->functions, site->source.load);
	answers_init(&site->answers,
		     site->source.load ? site->source.answer_bytes : (size_t)MAX_ANSWER_BYTES);
	pthread_mutex_init(&site->settings, NULL);
	guard_make_token(site->token);
}

void site_release(struct site *site)
{
	answers_release(&site->answers);
	profiles_release(&site->profiles);
	functions_release(&site->functions);
	pthread_mutex_destroy(&site->settings);
}

static const char *first_name(const struct command_line *c)
{
	/* Of a program and its profile, the profile. */
	return path_base(str_of(c->sources[c->nsources - 1])).p;
}

static bool is_loopback_host(const char *host)
{
	return strcmp(host, "localhost") == 0 || strcmp(host, "127.0.0.1") == 0 ||
	       strcmp(host, "::1") == 0 || strcmp(host, "[::1]") == 0;
}

static bool serve(struct site *site, uint16_t port, struct err *e)
{
	struct http_server_params params = { .host = site->host,
					     .port = port,
					     .headers = web_headers,
					     .admit = site_admit,
					     .handle = site_handle,
					     .ctx = site };
	struct http_server *server;
	struct ahead *ahead;
	char address[300], line[400];
	sigset_t ends;
	int signal;

	/* Before there are threads, which all have it so. */
	sigemptyset(&ends);
	sigaddset(&ends, SIGINT);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &ends, NULL);
	server = http_server_start(&params, e);
	if (!server)
		return false;
	snprintf(address, sizeof(address), strchr(site->host, ':') ? "[%.250s]:%u" : "%.250s:%u",
		 site->host, http_server_port(server));
	snprintf(line, sizeof(line), "Serving web UI on http://%s", address);
	site->params.tell(line);
	ahead = ahead_start(site);
	start_browser(site, address);
	sigwait(&ends, &signal);
	ahead_stop(ahead);
	http_server_stop(server);
	return true;
}

bool web_serve(const struct web_params *params, struct err *e)
{
	struct site site = { .params = *params };
	struct arena a = { 0 };
	struct buf warnings = { 0 };
	struct loaded *first;
	uint16_t port = 0;
	bool ok;

	site_init(&site);
	first = check_ui_dir(params->c->options.ui_dir, e)
			? profiles_load(&site.profiles, params->c, first_name(params->c), &warnings,
					e)
			: NULL;
	if (first)
		name_functions(&site, first);
	profiles_drop(&site.profiles, first);
	params->warn(&warnings);
	ok = first && source_url_check(params->c->options.source_url, e) &&
	     http_address_parse(&a, params->c->options.http, "localhost", &site.host, &port, e) &&
	     find_settings(&a, &site.settings_path, e);
	if (ok) {
		site.is_loopback_only = is_loopback_host(site.host);
		ok = serve(&site, port, e);
	}
	site_release(&site);
	buf_release(&warnings);
	arena_release(&a);
	return ok;
}
