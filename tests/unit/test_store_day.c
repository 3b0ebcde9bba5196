/* A day of a fleet as fast as it goes, with retention: neither the folder nor memory are ever
 * larger than they may be. SOAK=SECONDS is for longer: days go on until then. */
#include "test.h"

#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "profiles.h"
#include "store/store.h"

#define SECOND ((int64_t)1000000000)
#define MINUTE (60 * SECOND)
#define HOUR (60 * MINUTE)
#define FIRST (20000 * 24 * HOUR)

enum {
	PODS = 6,
	MB = 1 << 20,
	MAX_DISK = 10 * MB,
	MAX_MEMORY = 48 * MB,	  /* of the store */
	PROGRAM_MEMORY = 32 * MB, /* besides: the program, its profiles, malloc's leftovers */
	TIDY_MINUTES = 10,
	DEPLOY_MINUTES = 180, /* then functions have other names */
};

static const char *const files[] = { "profiles.db", "profiles.db-wal", "profiles.db-shm", "lock" };

static uint64_t folder_bytes(const char *dir)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
		char path[128];
		struct stat st;

		snprintf(path, sizeof(path), "%s/%s", dir, files[i]);
		if (!stat(path, &st))
			bytes += (uint64_t)st.st_size;
	}
	return bytes;
}

static uint64_t resident_bytes(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	unsigned long pages = 0;

	if (f && fscanf(f, "%*u %lu", &pages) != 1)
		pages = 0;
	if (f)
		fclose(f);
	return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint64_t random_state = 1;

static uint64_t random_below(uint64_t n)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return (random_state >> 33) % n;
}

/* A minute of one pod. Each has some of its service's stacks. */
static struct profile make_profile(struct world *w, int64_t minute)
{
	long long version = minute / DEPLOY_MINUTES;
	struct buf stacks = { 0 };
	struct profile p;

	for (int i = 0; i < 150; i++)
		buf_printf(&stacks, "main;handle;v%lld_f%llu;v%lld_g%llu %llu\n", version,
			   (unsigned long long)random_below(40), version,
			   (unsigned long long)random_below(400),
			   (unsigned long long)random_below(100000) + 1);
	buf_char(&stacks, '\0');
	p = folded(w, stacks.p);
	buf_release(&stacks);
	return p;
}

struct day {
	struct store *store;
	char dir[64];
	uint64_t nputs, nrefused, most_disk, most_memory, first_memory;
};

static void put_minute(struct day *d, int64_t minute)
{
	for (int pod = 0; pod < PODS; pod++) {
		struct world w;
		char name[20];
		struct store_label label = { STR("pod"), { name, 0 } };
		struct profile p;
		struct store_new new = { .type = STR("cpu"), .labels = &label, .nlabels = 1 };
		struct store_meta meta;
		struct err e;

		world_init(&w);
		p = make_profile(&w, minute);
		p.duration_nanos = 10 * SECOND;
		label.value.n = (size_t)snprintf(name, sizeof(name), "%d", pod);
		new.service = pod % 2 ? STR("api") : STR("web");
		new.created = FIRST + minute *MINUTE + pod;
		new.profile = &p;
		if (store_put(d->store, &new, &w.arena, &meta, &e))
			d->nputs++;
		else if (e.kind == ERR_LIMIT && strncmp(e.text, "max-disk:", 9) == 0)
			d->nrefused++;
		else
			fail_msg("%s", e.text);
		world_release(&w);
		if (folder_bytes(d->dir) > d->most_disk)
			d->most_disk = folder_bytes(d->dir);
	}
}

static void tidy(struct day *d, int64_t minute)
{
	uint64_t bytes;
	struct err e;

	if (!store_tidy(d->store, FIRST + minute * MINUTE, &e))
		fail_msg("%s", e.text);
	bytes = folder_bytes(d->dir);
	d->most_disk = bytes > d->most_disk ? bytes : d->most_disk;
	bytes = resident_bytes();
	d->most_memory = bytes > d->most_memory ? bytes : d->most_memory;
}

static bool has_time(time_t begin)
{
	const char *soak = getenv("SOAK");

	return soak && time(NULL) - begin < atoi(soak);
}

static void open_day(struct day *d)
{
	struct store_params params = { .is_passive = true,
				       .max_memory = MAX_MEMORY,
				       .keep = { .raw_ns = 6 * HOUR,
						 .minute_ns = 8 * HOUR,
						 .hour_ns = 48 * HOUR,
						 .max_bytes = MAX_DISK } };
	struct err e;

	*d = (struct day){ .dir = "/dev/shm/kiln-store-XXXXXX", .first_memory = resident_bytes() };
	if (access("/dev/shm", W_OK))
		memcpy(d->dir, "/tmp/kiln-store-XXXXXX", sizeof("/tmp/kiln-store-XXXXXX"));
	assert_non_null(mkdtemp(d->dir));
	params.dir = d->dir;
	d->store = store_open(&params, &e);
	if (!d->store)
		fail_msg("%s", e.text);
}

static void close_day(struct day *d)
{
	store_close(d->store);
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
		char path[128];

		snprintf(path, sizeof(path), "%s/%s", d->dir, files[i]);
		unlink(path);
	}
	assert_int_equal(rmdir(d->dir), 0);
}

TEST(a_day_of_a_fleet_stays_below_its_limits)
{
	time_t begin = time(NULL);
	int64_t minute = 0;
	struct store_stats stats;
	struct day d;

	open_day(&d);
	for (; minute < 24 * 60 || has_time(begin); minute++) {
		put_minute(&d, minute);
		if (minute % TIDY_MINUTES == 0)
			tidy(&d, minute);
	}
	store_stats(d.store, &stats);
	print_message("# %lld hours: %llu put, %llu refused, %llu thinned, %llu dropped; at most "
		      "%.1f MB of %d MB on disk, %.1f MB of memory\n",
		      (long long)minute / 60, (unsigned long long)d.nputs,
		      (unsigned long long)d.nrefused, (unsigned long long)stats.nthinned,
		      (unsigned long long)stats.ndeleted, (double)d.most_disk / MB, MAX_DISK / MB,
		      (double)(d.most_memory - d.first_memory) / MB);
	assert_true(d.most_disk <= MAX_DISK);
#ifndef __SANITIZE_ADDRESS__
	assert_true(d.most_memory - d.first_memory <= MAX_MEMORY + PROGRAM_MEMORY);
#endif
	assert_true(stats.nthinned > d.nputs / 2);
	assert_true(d.nrefused < d.nputs / 20);
	/* What is young is there in full. */
	assert_true(stats.newest >= FIRST + (minute - 1) * MINUTE);
	close_day(&d);
}
