/* health.c - how the server is: for balancers, for Prometheus, for people. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "server/gate.h"
#include "server/debuginfo.h"
#include "server/limits.h"
#include "server/live.h"
#include "server/metrics.h"
#include "server/scrape.h"
#include "server/names.h"
#include "web/web.h"

/* ---- alive, ready */

void health_alive(struct call *c)
{
	reply_text(c, 200, "ok\n");
}

void health_ready(struct call *c)
{
	struct store_stats stats = { 0 };

	store_stats(c->server->store, &stats);
	if (atomic_load(&c->server->is_stopping))
		reply_text(c, 503, "the server is stopping\n");
	else if (stats.is_full)
		reply_text(c, 503,
			   "the store is full: there is no room on its disk, profiles are "
			   "refused; what is there can be read\n");
	else
		reply_text(c, 200, "ok\n");
}

/* ---- metrics */

static void set(struct server *s, enum metric which, uint64_t value)
{
	metrics_set(s->metrics, which, (double)value, NULL);
}

static void measure_store(struct server *s)
{
	struct store_stats t = { 0 };

	store_stats(s->store, &t);
	set(s, METRIC_STORE_SERVICES, t.nservices);
	set(s, METRIC_STORE_SERIES, t.nseries);
	set(s, METRIC_STORE_PROFILES, t.nprofiles);
	set(s, METRIC_STORE_SAMPLES, t.nsamples);
	set(s, METRIC_STORE_BYTES, t.bytes_on_disk);
	set(s, METRIC_STORE_DATA, t.bytes_of_profiles);
	set(s, METRIC_STORE_FREE, t.free_bytes);
	set(s, METRIC_STORE_MEMORY, t.memory);
	set(s, METRIC_STORE_WAITING, t.nwaiting);
	set(s, METRIC_STORE_FULL, t.is_full);
	set(s, METRIC_STORE_PUTS, t.nputs);
	set(s, METRIC_STORE_COMMITS, t.ncommits);
	set(s, METRIC_STORE_DELETED, t.ndeleted);
	set(s, METRIC_STORE_THINNED, t.nthinned);
	metrics_set(s->metrics, METRIC_STORE_OLDEST, (double)t.oldest / 1e9, NULL);
	metrics_set(s->metrics, METRIC_STORE_NEWEST, (double)t.newest / 1e9, NULL);
}

static void measure_names(struct server *s)
{
	struct debuginfo_stats files;
	struct names_stats names;

	debuginfo_stats(s->debuginfo, &files);
	names_stats(s->names, &names);
	set(s, METRIC_DEBUGINFO_FILES, files.nfiles);
	set(s, METRIC_DEBUGINFO_BYTES, files.bytes);
	set(s, METRIC_DEBUGINFO_DROPPED, files.nexpired);
	set(s, METRIC_DEBUGINFO_FETCHED, names.nfetched);
	set(s, METRIC_NAMES_ADDRESSES, names.naddresses);
	set(s, METRIC_NAMES_NAMED, names.nnamed);
	set(s, METRIC_NAMES_MEMORY, names.bytes);
	set(s, METRIC_NAMES_FAILED, names.nfailed);
}

static void measure_http(struct server *s, struct http_server *http)
{
	struct http_server_stats t;
	const struct str late = STR("late"), shed = STR("shed"), broken = STR("broken");

	http_server_stats(http, &t);
	set(s, METRIC_CONNECTIONS, t.nopen);
	set(s, METRIC_HTTP_WAITING, t.nwaiting);
	set(s, METRIC_HTTP_RUNNING, t.nrunning);
	set(s, METRIC_ACCEPTED, t.naccepted);
	metrics_set(s->metrics, METRIC_CLOSED, (double)t.nlate, &late);
	metrics_set(s->metrics, METRIC_CLOSED, (double)t.nshed, &shed);
	metrics_set(s->metrics, METRIC_CLOSED, (double)t.nbroken, &broken);
}

static void measure_limits(struct server *s)
{
	unsigned for_memory, for_turn, nrunning;
	uint64_t nevents;
	size_t nstreams;

	set(s, METRIC_MEMORY_MAX, s->limits->max_memory);
	set(s, METRIC_REQUEST_MEMORY_MAX, s->limits->memory.total);
	set(s, METRIC_REQUEST_MEMORY, budget_taken(&s->limits->memory, &for_memory));
	set(s, METRIC_UNREAD, holds_total(s->limits->unread));
	set(s, METRIC_VIEWER_PROFILES, web_site_profiles(s->site));
	live_count(s->live, &nstreams, &nevents);
	set(s, METRIC_LIVE_STREAMS, nstreams);
	set(s, METRIC_LIVE_EVENTS, nevents);
	turns_count(s->limits->turns, &nrunning, &for_turn);
	set(s, METRIC_QUERIES, nrunning);
	set(s, METRIC_QUERIES_WAITING, for_memory + for_turn);
}

static uint64_t count_files(const char *dir)
{
	DIR *d = opendir(dir);
	uint64_t n = 0;

	if (!d)
		return 0;
	while (readdir(d))
		n++;
	closedir(d);
	return n > 3 ? n - 3 : 0; /* ".", ".." and the folder itself */
}

static void measure_process(struct server *s)
{
	unsigned long long size = 0, resident = 0;
	struct rusage u;
	struct rlimit r;
	FILE *f = fopen("/proc/self/statm", "re");
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	if (f && fscanf(f, "%llu %llu", &size, &resident) == 2) {
		set(s, METRIC_PROCESS_VIRTUAL, size * page);
		set(s, METRIC_PROCESS_RESIDENT, resident * page);
	}
	if (f)
		fclose(f);
	if (getrusage(RUSAGE_SELF, &u) == 0)
		metrics_set(s->metrics, METRIC_PROCESS_CPU,
			    (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
				    (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6,
			    NULL);
	if (getrlimit(RLIMIT_NOFILE, &r) == 0)
		set(s, METRIC_PROCESS_MAX_FDS, r.rlim_cur);
	set(s, METRIC_PROCESS_FDS, count_files("/proc/self/fd"));
	set(s, METRIC_PROCESS_THREADS, count_files("/proc/self/task") + 1);
	metrics_set(s->metrics, METRIC_PROCESS_START, (double)s->started / 1e9, NULL);
}

void health_metrics(struct call *c)
{
	struct buf text = { 0 };

	measure_http(c->server, http_call_server(c->http));
	measure_limits(c->server);
	measure_store(c->server);
	measure_names(c->server);
	measure_process(c->server);
	scrape_measure(c->server);
	metrics_print(&text, c->server->metrics);
	c->reply->status = 200;
	c->reply->content = http_content_new(&text, "text/plain; version=0.0.4; charset=utf-8");
}
