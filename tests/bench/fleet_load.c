/* fleet_load.c - fills a store with a fleet of services, as it would be after some hours.
 *
 *	fleet_load DIR services=1000 hours=24 minutes=40 HOUR.pb.gz... -- MINUTE.pb.gz...
 *
 * Of each service there are sums of whole hours, made of the first files, and before them nothing;
 * and since the last of them, which is so many minutes ago or up to an hour more, a profile a
 * minute, made of the others. Half of a service's functions are its own, the others are those of
 * all; and one in 50 places has no name, and never will.
 *
 * Prints what there is, to be compared with: lines of a time, in nanoseconds, and the sum of all
 * values of all services that count there.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/parallel.h"
#include "base/small_file.h"
#include "store/store.h"

#define SECOND INT64_C(1000000000)
#define MINUTE (60 * SECOND)
#define HOUR (60 * MINUTE)

struct input {
	struct profile profile;
	struct strings strings;
	int64_t total; /* of the default sample type, which is the last */
};

static struct arena arena;
static struct input *inputs;
static size_t nhours, nminutes; /* files */
static int64_t services = 1000, hours = 24, minutes = 40;
static int64_t sealed;	/* up to here there are hours */
static int64_t nminute; /* profiles since then */
static struct store *store;

static void die(const char *what, const struct err *e)
{
	fprintf(stderr, "fleet_load: %s: %s\n", what, e->text);
	exit(1);
}

/* Some of what is in the last binary, of which nobody knows anything. */
static void strip(struct profile *p)
{
	enum { ONE_IN = 50 };
	struct location *l = arena_copy(&arena, p->locations, p->nlocations * sizeof(*l));
	struct mapping *m = arena_copy(&arena, p->mappings, p->nmappings * sizeof(*m));
	uint32_t last = p->nmappings - 1;

	m[last].build_id = 0;
	for (uint32_t i = 0; i < p->nlocations; i += ONE_IN) {
		l[i].nlines = 0;
		l[i].mapping = last;
	}
	p->locations = l;
	p->mappings = m;
}

static void read_input(const char *path, struct input *in)
{
	struct buf *bytes = arena_new(&arena, struct buf);
	struct err e;

	strings_init(&in->strings);
	if (!small_file_read(bytes, path, 64 << 20, &e) ||
	    !profile_read(&in->profile, &arena, &in->strings, buf_view(bytes), (size_t)1 << 30, &e))
		die(path, &e);
	strip(&in->profile);
	for (uint32_t i = 0; i < in->profile.nsamples; i++)
		in->total += sample_values(&in->profile,
					   &in->profile.samples[i])[in->profile.ntypes - 1];
}

/* The file as if it were of this service. */
static struct profile of_service(struct arena *a, struct strings *strings, const struct input *in,
				 size_t service)
{
	struct profile p = in->profile;
	char name[300];

	/* Numbers of strings stay what they are. */
	strings_init(strings);
	for (size_t i = 0; i < in->strings.n; i++)
		strings_add(strings, in->strings.at[i]);
	p.strings = strings;
	p.functions = arena_copy(a, p.functions, p.nfunctions * sizeof(*p.functions));
	for (uint32_t i = 0; i < p.nfunctions; i += 2) {
		struct str old = strings->at[p.functions[i].name];

		snprintf(name, sizeof(name), "service%zu.%.*s", service, STR_ARG(old));
		p.functions[i].name = p.functions[i].system_name =
			strings_add(strings, str_of(name));
	}
	return p;
}

/* So many hours before the last. */
static const struct input *hour_input(size_t service, int64_t hour)
{
	return &inputs[(service + (size_t)hour) % nhours];
}

static const struct input *minute_input(size_t service, int64_t minute)
{
	return &inputs[nhours + (service + (size_t)minute) % nminutes];
}

static void put_hour(struct arena *a, struct str service, size_t number, int64_t hour)
{
	struct strings strings;
	struct profile p = of_service(a, &strings, hour_input(number, hour), number);
	struct store_window w = { .service = service,
				  .type = STR("cpu"),
				  .tier = 2,
				  .start = sealed - (hour + 1) * HOUR,
				  .duration = HOUR,
				  .nprofiles = 60,
				  .is_thinned = true,
				  .until = sealed,
				  .profile = &p };
	struct err e;
	bool is_put;

	w.first = w.start;
	w.last = w.start + HOUR - MINUTE;
	p.duration_nanos = HOUR;
	if (!store_put_window(store, &w, false, &is_put, &e))
		die("store_put_window", &e);
	strings_release(&strings);
}

static void put_minute(struct arena *a, struct str service, size_t number, int64_t minute)
{
	struct strings strings;
	struct profile p = of_service(a, &strings, minute_input(number, minute), number);
	struct store_new new = { .service = service, .type = STR("cpu"), .profile = &p };
	struct store_meta meta;
	struct err e;

	p.time_nanos = sealed + minute * MINUTE;
	p.duration_nanos = MINUTE;
	if (!store_put(store, &new, a, &meta, &e))
		die("store_put", &e);
	strings_release(&strings);
}

static void fill(void *ctx, size_t number)
{
	char name[40];
	struct str service = { name, (size_t)snprintf(name, sizeof(name), "service-%zu", number) };

	(void)ctx;
	for (int64_t hour = hours; hour > 0; hour--) {
		struct arena a = { 0 };

		put_hour(&a, service, number, hour - 1);
		arena_release(&a);
	}
	for (int64_t minute = 0; minute < nminute; minute++) {
		struct arena a = { 0 };

		put_minute(&a, service, number, minute);
		arena_release(&a);
	}
}

static void print_totals(void)
{
	for (int64_t i = -hours; i < nminute; i++) {
		int64_t time = sealed + i * (i < 0 ? HOUR : MINUTE), total = 0;

		for (size_t service = 0; service < (size_t)services; service++)
			total += i < 0 ? hour_input(service, -i - 1)->total
				       : minute_input(service, i)->total;
		printf("%lld %lld\n", (long long)time, (long long)total);
	}
}

static bool take_number(const char *arg)
{
	return sscanf(arg, "services=%ld", &services) == 1 ||
	       sscanf(arg, "hours=%ld", &hours) == 1 || sscanf(arg, "minutes=%ld", &minutes) == 1;
}

int main(int argc, char **argv)
{
	struct store_params params = { .dir = argc > 1 ? argv[1] : "",
				       .max_memory = (uint64_t)1 << 30,
				       .is_passive = true,
				       .is_lazy = true };
	size_t n = 0;
	struct err e;

	inputs = xcalloc((size_t)argc + 1, sizeof(*inputs));
	for (int i = 2; i < argc; i++) {
		if (!strcmp(argv[i], "--"))
			nhours = n;
		else if (!take_number(argv[i]))
			read_input(argv[i], &inputs[n++]);
	}
	nminutes = n - nhours;
	if (!nhours || !nminutes) {
		fprintf(stderr, "usage: fleet_load DIR [services=N hours=N minutes=N] FILE... -- "
				"FILE...\n");
		return 2;
	}
	sealed = ((int64_t)time(NULL) * SECOND - minutes * MINUTE) / MINUTE * MINUTE;
	sealed -= sealed % HOUR;
	nminute = ((int64_t)time(NULL) * SECOND - sealed) / MINUTE + 1;
	store = store_open(&params, &e);
	if (!store)
		die(argv[1], &e);
	parallel_for(8, (size_t)services, fill, NULL);
	store_close(store);
	print_totals();
	return 0;
}
