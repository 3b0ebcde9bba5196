/* store_load.c - how fast the store takes profiles and merges them.
 *
 *	store_load DIR puts=20000 threads=16 services=1 series=4 [merges=3] FILE...
 *	ACKS=FILE store_load ...	appends the id of each profile once it is acknowledged
 *	CHECK=FILE store_load DIR puts=0 merges=0 FILE...	are they all there?
 *
 * The files are read once, and put again and again a minute apart, each as if decoded anew: with
 * decode=1 that is measured too. With tidy=1 the store has the usual ages of tiers, which are made
 * at the end; start_s is the time of the first profile; with lazy=1
 * nothing is durable before the end. Prints one "name value" a line.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "store/store.h"

#define DAY_NS (INT64_C(86400) * 1000000000)

static struct {
	int64_t puts, threads, services, series, merges, decode, memory_mb, step_s, start_s, tidy,
		lazy;
} params = { .puts = 20000,
	     .threads = 16,
	     .services = 1,
	     .series = 4,
	     .merges = 3,
	     .step_s = 60,
	     .start_s = 1700000000 };

static const struct {
	const char *name;
	int64_t *value;
} param_table[] = {
	{ "puts", &params.puts },	    { "threads", &params.threads },
	{ "services", &params.services },   { "series", &params.series },
	{ "merges", &params.merges },	    { "decode", &params.decode },
	{ "memory_mb", &params.memory_mb }, { "step_s", &params.step_s },
	{ "start_s", &params.start_s },	    { "tidy", &params.tidy },
	{ "lazy", &params.lazy },
};

struct input {
	struct str bytes;
	struct profile profile;
	struct strings strings;
};

static struct arena arena;
static struct input *inputs;
static size_t ninputs;
static struct store *store;
static _Atomic int64_t next_put, nsamples;
static int acks = -1;

static void die(const char *what, const struct err *e)
{
	fprintf(stderr, "store_load: %s: %s\n", what, e->text);
	exit(1);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static bool set_param(const char *arg)
{
	for (size_t i = 0; i < sizeof(param_table) / sizeof(*param_table); i++) {
		size_t n = strlen(param_table[i].name);

		if (!strncmp(arg, param_table[i].name, n) && arg[n] == '=') {
			*param_table[i].value = atoll(arg + n + 1);
			return true;
		}
	}
	return false;
}

static void read_input(const char *path, struct input *in)
{
	struct err e = { .text = "cannot be read" };
	struct stat st;
	int fd = open(path, O_RDONLY);
	char *bytes;

	if (fd < 0 || fstat(fd, &st))
		die(path, &e);
	bytes = arena_raw(&arena, (size_t)st.st_size + 1);
	if (read(fd, bytes, (size_t)st.st_size) != st.st_size)
		die(path, &e);
	close(fd);
	in->bytes = (struct str){ bytes, (size_t)st.st_size };
	strings_init(&in->strings);
	if (!profile_read(&in->profile, &arena, &in->strings, in->bytes, (size_t)1 << 30, &e))
		die(path, &e);
}

static void acknowledge(const struct store_id *id)
{
	struct buf line = { 0 };

	store_id_print(&line, id);
	buf_char(&line, '\n');
	if (write(acks, line.p, line.n) != (ssize_t)line.n)
		exit(1);
	buf_release(&line);
}

/* Every id of the file must give a profile with all its samples. */
static void check(const char *path)
{
	FILE *f = fopen(path, "r");
	char line[100];
	size_t n = 0;

	while (f && fgets(line, sizeof(line), f)) {
		struct arena a = { 0 };
		struct strings strings;
		struct store_meta meta;
		struct profile p;
		struct store_id id;
		struct str bytes;
		struct err e = { .text = "not an id" };

		strings_init(&strings);
		if (!store_id_parse((struct str){ line, strcspn(line, "\n") }, &id) ||
		    !store_get(store, &id, &a, &strings, &meta, &p, &bytes, &e) ||
		    p.nsamples != meta.nsamples)
			die(line, &e);
		strings_release(&strings);
		arena_release(&a);
		n++;
	}
	if (f)
		fclose(f);
	printf("checked %zu\n", n);
}

static void put(int64_t i)
{
	struct input *in = &inputs[(size_t)i % ninputs];
	char service[32], pod[32];
	struct store_label label = { STR("pod"), { pod, 0 } };
	struct arena a = { 0 };
	struct strings strings;
	struct profile p = in->profile;
	struct store_new new = { .service = { service, 0 },
				 .type = STR("cpu"),
				 .labels = &label,
				 .nlabels = 1,
				 .profile = &p };
	struct store_meta meta;
	struct err e;

	new.service.n = (size_t)snprintf(service, sizeof(service), "service-%lld",
					 (long long)(i % params.services));
	label.value.n = (size_t)snprintf(pod, sizeof(pod), "pod-%lld",
					 (long long)(i / params.services % params.series));
	if (params.decode) {
		strings_init(&strings);
		if (!profile_read(&p, &a, &strings, in->bytes, (size_t)1 << 30, &e))
			die("profile_read", &e);
	}
	p.time_nanos =
		(params.start_s + i / params.services / params.series * params.step_s) * 1000000000;
	if (!store_put(store, &new, &a, &meta, &e))
		die("store_put", &e);
	nsamples += p.nsamples;
	if (acks >= 0)
		acknowledge(&meta.id);
	if (params.decode)
		strings_release(&strings);
	arena_release(&a);
}

static void *put_on(void *ctx)
{
	for (int64_t i; (i = next_put++) < params.puts;)
		put(i);
	return ctx;
}

static void run_puts(void)
{
	pthread_t *threads = xcalloc((size_t)params.threads, sizeof(*threads));
	double begin = now();
	struct store_stats stats;

	for (int64_t i = 0; i < params.threads; i++)
		pthread_create(&threads[i], NULL, put_on, NULL);
	for (int64_t i = 0; i < params.threads; i++)
		pthread_join(threads[i], NULL);
	free(threads);
	printf("put_per_s %.0f\n", (double)params.puts / (now() - begin));
	store_stats(store, &stats);
	printf("puts_per_commit %.1f\n",
	       (double)params.puts / (double)(stats.ncommits ? stats.ncommits : 1));
	printf("memory_mb %.1f\n", (double)stats.memory / 1048576);
}

static void tidy(void)
{
	struct timespec t;
	double begin = now();
	struct err e;

	clock_gettime(CLOCK_REALTIME, &t);
	if (!store_tidy(store, (int64_t)t.tv_sec * 1000000000, &e))
		die("store_tidy", &e);
	printf("tidy_s %.2f\n", now() - begin);
}

static void run_merge(struct str service)
{
	struct store_matcher one = { STR("service"), STORE_EQUAL, service, NULL };
	struct store_query q = {
		.matchers = &one, .nmatchers = service.n ? 1 : 0, .from = INT64_MIN, .to = INT64_MAX
	};
	struct arena a = { 0 };
	struct strings strings;
	struct store_merged merged;
	double begin = now();
	struct err e;

	strings_init(&strings);
	if (!store_merge(store, &q, STORE_AS_TYPE, &a, &strings, &merged, &e))
		die("store_merge", &e);
	printf("merge_s %.4f of %llu profiles, %u samples\n", now() - begin,
	       (unsigned long long)merged.nprofiles, merged.profile.nsamples);
	strings_release(&strings);
	arena_release(&a);
}

static double database_mb(const char *dir)
{
	char path[4096];
	struct stat st;

	snprintf(path, sizeof(path), "%s/profiles.db", dir);
	return stat(path, &st) ? 0 : (double)st.st_size;
}

int main(int argc, char **argv)
{
	struct store_params open_params = { .dir = argc > 1 ? argv[1] : "" };
	struct rusage usage;
	struct err e;

	inputs = xcalloc((size_t)argc + 1, sizeof(*inputs));
	for (int i = 2; i < argc; i++)
		if (!set_param(argv[i]))
			read_input(argv[i], &inputs[ninputs++]);
	if (!ninputs) {
		fprintf(stderr, "usage: store_load DIR [puts=N threads=N services=N series=N "
				"merges=N decode=1 memory_mb=N step_s=N start_s=N tidy=1 lazy=1] "
				"FILE...\n");
		return 2;
	}
	if (params.tidy) /* as kiln serve */
		open_params.keep = (struct store_keep){ .raw_ns = 14 * DAY_NS,
							.minute_ns = 30 * DAY_NS,
							.hour_ns = 180 * DAY_NS };
	open_params.is_lazy = params.lazy;
	open_params.max_memory = (uint64_t)params.memory_mb << 20;
	store = store_open(&open_params, &e);
	if (!store)
		die(argv[1], &e);
	if (getenv("ACKS"))
		acks = open(getenv("ACKS"), O_WRONLY | O_CREAT | O_APPEND, 0600);
	if (params.puts)
		run_puts();
	if (getenv("CHECK"))
		check(getenv("CHECK"));
	if (params.tidy)
		tidy();
	for (int64_t i = 0; i < params.merges; i++)
		run_merge(i % 2 ? STR("") : STR("service-0"));
	store_close(store);
	getrusage(RUSAGE_SELF, &usage);
	printf("max_rss_mb %.1f\n", (double)usage.ru_maxrss / 1024);
	if (nsamples)
		printf("bytes_per_sample %.2f\n", database_mb(argv[1]) / (double)nsamples);
	return 0;
}
