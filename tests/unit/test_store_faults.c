/* A disk that fails, and files that are damaged. */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "profiles.h"
#include "store/store.h"

#define SECOND ((int64_t)1000000000)
#define DAY (86400 * SECOND)

/* ---- the disk: SQLite is linked in, so these are what it calls */

enum fault { FAULT_WRITE = 1, FAULT_SYNC = 2, FAULT_TRUNCATE = 4 };

static struct {
	atomic_uint kinds; /* that fail */
	atomic_uint every; /* n-th call */
	atomic_uint ncalls, nfaults;
	atomic_int code;
} disk;

static bool fails(enum fault kind)
{
	if (!(atomic_load(&disk.kinds) & kind) ||
	    atomic_fetch_add(&disk.ncalls, 1) % atomic_load(&disk.every) != 0)
		return false;
	atomic_fetch_add(&disk.nfaults, 1);
	errno = atomic_load(&disk.code);
	return true;
}

ssize_t pwrite64(int fd, const void *from, size_t n, off64_t at)
{
	/* A part of it may be there all the same. */
	if (fails(FAULT_WRITE)) {
		int code = errno;

		syscall(SYS_pwrite64, fd, from, n / 2, at);
		errno = code;
		return -1;
	}
	return syscall(SYS_pwrite64, fd, from, n, at);
}

int fdatasync(int fd)
{
	return fails(FAULT_SYNC) ? -1 : (int)syscall(SYS_fdatasync, fd);
}

int ftruncate64(int fd, off64_t n)
{
	return fails(FAULT_TRUNCATE) ? -1 : (int)syscall(SYS_ftruncate, fd, n);
}

static void disk_fails(unsigned kinds, int code, unsigned every)
{
	atomic_store(&disk.kinds, 0);
	atomic_store(&disk.code, code);
	atomic_store(&disk.every, every);
	atomic_store(&disk.ncalls, 0);
	atomic_store(&disk.nfaults, 0);
	atomic_store(&disk.kinds, kinds);
}

static unsigned disk_is_well(void)
{
	atomic_store(&disk.kinds, 0);
	return atomic_load(&disk.nfaults);
}

/* ---- a store */

struct place {
	struct world w;
	char dir[64];
	struct store *store;
};

static const char *const files[] = { "profiles.db", "profiles.db-wal", "profiles.db-shm", "lock" };

static void path_in(const struct place *p, const char *file, char *path, size_t n)
{
	snprintf(path, n, "%s/%s", p->dir, file);
}

static const struct store_params keep = { .is_passive = true,
					  .keep = { .raw_ns = 2 * DAY,
						    .minute_ns = 3 * DAY,
						    .hour_ns = 4 * DAY,
						    .max_bytes = 8 << 20 } };

static bool open_place(struct place *p, struct err *e)
{
	struct store_params params = keep;

	params.dir = p->dir;
	p->store = store_open(&params, e);
	return p->store;
}

static void place_init(struct place *p)
{
	*p = (struct place){ .dir = "/dev/shm/kiln-store-XXXXXX" };
	if (access("/dev/shm", W_OK))
		memcpy(p->dir, "/tmp/kiln-store-XXXXXX", sizeof("/tmp/kiln-store-XXXXXX"));
	world_init(&p->w);
	assert_non_null(mkdtemp(p->dir));
}

static void place_release(struct place *p)
{
	store_close(p->store);
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
		char path[128];

		path_in(p, files[i], path, sizeof(path));
		unlink(path);
	}
	assert_int_equal(rmdir(p->dir), 0);
	world_release(&p->w);
}

static uint64_t random_state;

static uint64_t random_below(uint64_t n)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return (random_state >> 33) % n;
}

/* Its first stack has the value 1, so that sums tell how many there are. */
static bool put(struct place *p, int64_t time, struct store_id *id, struct err *e)
{
	static const char *const services[] = { "api", "web" };
	struct buf stacks = { 0 };
	struct store_meta meta;
	struct profile profile;
	struct store_new new = { .type = STR("cpu"), .created = time, .profile = &profile };
	bool ok;

	new.service = str_of(services[random_below(2)]);
	buf_puts(&stacks, "main;once 1\n");
	for (int i = 0; i < 50; i++)
		buf_printf(&stacks, "main;f%llu;g%llu %llu\n", (unsigned long long)random_below(30),
			   (unsigned long long)random_below(100),
			   (unsigned long long)random_below(1000) + 1);
	buf_char(&stacks, '\0');
	profile = folded(&p->w, stacks.p);
	buf_release(&stacks);
	ok = store_put(p->store, &new, &p->w.arena, &meta, e);
	*id = meta.id;
	return ok;
}

/* The value of "once" in all there is; -1: it fails. */
static int64_t count_once(struct place *p, struct err *e)
{
	struct store_query q = { .from = INT64_MIN, .to = INT64_MAX };
	struct store_merged m;

	if (!store_merge(p->store, &q, STORE_SUM, &p->w.arena, &p->w.strings, &m, e))
		return e->kind == ERR_NOTFOUND ? 0 : -1;
	for (uint32_t i = 0; i < m.profile.nsamples; i++) {
		const struct sample *s = &m.profile.samples[i];
		const struct location *l = &m.profile.locations[m.profile.stacks[s->stack]];
		uint32_t f = l->nlines ? m.profile.lines[l->first_line].function : UINT32_MAX;

		if (f < m.profile.nfunctions &&
		    str_eq(profile_str(&m.profile, m.profile.functions[f].name), STR("once")))
			return sample_values(&m.profile, s)[0];
	}
	return 0;
}

static void ignore_line(void *ctx, const char *line)
{
	(void)ctx, (void)line;
}

static void print_line(void *ctx, const char *line)
{
	(void)ctx;
	print_message("# %s\n", line);
}

static void assert_count(struct place *p, int64_t want)
{
	struct err e = { 0 };
	int64_t got = count_once(p, &e);

	if (got != want)
		fail_msg("%lld, not %lld: %s", (long long)got, (long long)want, e.text);
}

static void assert_whole(struct place *p)
{
	struct store_checked found;
	struct err e;

	if (!store_check(p->store, print_line, NULL, &found, &e))
		fail_msg("%s", e.text);
	assert_int_equal(found.nproblems, 0);
}

/* ---- faults */

/* Puts, sums, thinning, deleting and vacuum on a disk that fails now and then. Returns how many
 * were acknowledged and not deleted. */
static int64_t work_on(struct place *p, int64_t first, int64_t *nrefused)
{
	int64_t n = 0;

	for (int i = 0; i < 60; i++) {
		int64_t now = (first + i / 6) * DAY + i % 6 * 3600 * SECOND;
		struct store_id id;
		struct err e = { 0 };
		bool ok = put(p, now, &id, &e);

		n += ok;
		*nrefused += !ok;
		if (!ok && (e.kind != ERR_IO || !strstr(e.text, "profiles.db: ")))
			fail_msg("kind %d: %s", e.kind, e.text);
		/* It may fail, and says why. */
		if (i % 10 == 9 && !store_tidy(p->store, now, &e))
			assert_true(*e.text);
	}
	return n;
}

TEST(a_disk_that_fails_loses_nothing_and_is_used_again_when_it_is_well)
{
	static const struct {
		unsigned kinds;
		int code;
	} faults[] = {
		{ FAULT_WRITE, EIO },
		{ FAULT_WRITE, ENOSPC },
		{ FAULT_SYNC, EIO },
		{ FAULT_TRUNCATE, EIO },
		{ FAULT_WRITE | FAULT_SYNC | FAULT_TRUNCATE, EIO },
	};
	static const unsigned every[] = { 1, 2, 3, 7, 19, 53 };
	int64_t nrefused = 0;
	unsigned nfaults = 0;

	random_state = 1;
	for (size_t k = 0; k < sizeof(faults) / sizeof(*faults); k++) {
		struct place p;
		struct err e;
		int64_t n;

		place_init(&p);
		if (!open_place(&p, &e))
			fail_msg("%s", e.text);
		n = work_on(&p, 100, &nrefused);
		assert_int_equal(n, 60);
		for (size_t i = 0; i < sizeof(every) / sizeof(*every); i++) {
			disk_fails(faults[k].kinds, faults[k].code, every[i]);
			n += work_on(&p, 110 + (int64_t)i * 10, &nrefused);
			nfaults += disk_is_well();
			/* by itself, without being opened again */
			assert_count(&p, n);
			n += work_on(&p, 110 + (int64_t)i * 10, &nrefused);
			assert_true(store_tidy(p.store, (120 + (int64_t)i * 10) * DAY, &e));
			assert_count(&p, n);
		}
		store_close(p.store);
		if (!open_place(&p, &e))
			fail_msg("%s", e.text);
		assert_count(&p, n);
		assert_whole(&p);
		place_release(&p);
	}
	assert_true(nfaults > 100 && nrefused > 100);
}

TEST(opening_on_a_disk_that_fails_does_no_harm)
{
	struct place p;
	struct err e;
	int64_t n, none = 0;

	place_init(&p);
	random_state = 2;
	if (!open_place(&p, &e))
		fail_msg("%s", e.text);
	n = work_on(&p, 100, &none);
	for (unsigned every = 1; every < 12; every++) {
		disk_fails(FAULT_WRITE | FAULT_SYNC | FAULT_TRUNCATE, every % 2 ? EIO : ENOSPC,
			   every);
		/* Closing copies the log. */
		store_close(p.store);
		if (!open_place(&p, &e))
			assert_true(*e.text);
		disk_is_well();
		if (!p.store && !open_place(&p, &e))
			fail_msg("%s", e.text);
		assert_count(&p, n);
		n += work_on(&p, 100 + every, &none);
	}
	assert_count(&p, n);
	assert_whole(&p);
	place_release(&p);
}

/* ---- damage */

struct copy {
	struct str bytes[2]; /* of the database and its log */
	struct str merged;   /* what is in it */
};

static struct str read_all(struct arena *a, const char *path)
{
	int fd = open(path, O_RDONLY);
	struct stat st;
	char *p;

	if (fd < 0)
		return (struct str){ 0 };
	assert_int_equal(fstat(fd, &st), 0);
	p = arena_alloc(a, (size_t)st.st_size + 1);
	assert_int_equal(read(fd, p, (size_t)st.st_size), st.st_size);
	close(fd);
	return (struct str){ p, (size_t)st.st_size };
}

static void write_all(const char *path, struct str bytes)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes.p, bytes.n), bytes.n);
	close(fd);
}

static const char *merge_text(struct place *p)
{
	struct store_query q = { .from = INT64_MIN, .to = INT64_MAX };
	struct store_merged m;
	struct err e;

	if (!store_merge(p->store, &q, STORE_SUM, &p->w.arena, &p->w.strings, &m, &e))
		return "nothing";
	return samples_text(&p->w, &m.profile);
}

/* If it has not been closed there is a log, which has most of it. */
static void make_copy(struct arena *a, bool is_closed, struct copy *c)
{
	struct place p;
	struct err e;
	int64_t none = 0;

	place_init(&p);
	random_state = 3;
	if (!open_place(&p, &e))
		fail_msg("%s", e.text);
	work_on(&p, 100, &none);
	store_close(p.store);
	assert_true(open_place(&p, &e));
	work_on(&p, 108, &none);
	for (int i = 0; i < 5; i++) {
		struct store_id id;

		assert_true(put(&p, 117 * DAY + i * SECOND, &id, &e));
	}
	c->merged = str_of(str_dup(a, str_of(merge_text(&p))));
	if (is_closed) {
		store_close(p.store);
		p.store = NULL;
	}
	for (size_t i = 0; i < 2; i++) {
		char path[128];

		path_in(&p, files[i], path, sizeof(path));
		c->bytes[i] = read_all(a, path);
		assert_true(c->bytes[i].n > 0 || is_closed);
	}
	place_release(&p);
}

/* Something of one of the files is not what it was. */
static void damage(struct str *bytes, char *p)
{
	size_t from = random_below(bytes->n), n = 1 + random_below(200);

	if (n > bytes->n - from)
		n = bytes->n - from;
	switch (random_below(5)) {
	case 0:
		bytes->n = from;
		break;
	case 1:
		memset(p + from, 0, n);
		break;
	case 2:
		for (size_t i = 0; i < n; i++)
			p[from + i] = (char)random_below(256);
		break;
	case 3: /* what SQLite reads first, and pages of the schema */
		p[random_below(bytes->n < 2000 ? bytes->n : 2000)] ^= (char)(1 << random_below(8));
		break;
	default:
		for (size_t i = 0; i < 1 + n / 10; i++)
			p[random_below(bytes->n)] ^= (char)(1 << random_below(8));
	}
}

static void write_damaged(struct place *p, const struct copy *c, size_t which)
{
	for (size_t i = 0; i < 2; i++) {
		char path[128], *own = arena_alloc(&p->w.arena, c->bytes[i].n + 1);
		struct str bytes = { own, c->bytes[i].n };

		if (bytes.n)
			memcpy(own, c->bytes[i].p, bytes.n);
		if (i == which)
			damage(&bytes, own);
		path_in(p, files[i], path, sizeof(path));
		if (bytes.n)
			write_all(path, bytes);
	}
}

/* All that can be asked. Nothing of it crashes or takes for ever. */
static void ask_all(struct place *p)
{
	struct arena *a = &p->w.arena;
	struct store_query q = { .from = INT64_MIN, .to = INT64_MAX };
	struct store_series_params series = { .query = q, .step = DAY };
	struct store_top_params top = { .query = q, .limit = 10 };
	struct store_meta *metas;
	struct store_name *names;
	struct store_line *lines;
	struct store_top rows;
	struct err e;
	size_t n = 0;

	series.query.from = 90 * DAY;
	series.query.to = 130 * DAY;
	if (store_find(p->store, &q, a, &metas, &n, &e))
		for (size_t i = 0; i < n; i++) {
			struct store_meta meta;
			struct profile profile;
			struct str bytes;

			store_get(p->store, &metas[i].id, a, &p->w.strings, &meta, &profile, &bytes,
				  &e);
		}
	store_names(p->store, &q, STR("service"), a, &names, &n, &e);
	store_series(p->store, &series, a, &lines, &n, &e);
	store_top(p->store, &top, a, &rows, &e);
}

static void change_all(struct place *p)
{
	struct store_query q = { .from = 0, .to = 104 * DAY };
	struct store_id id;
	struct err e;
	uint64_t n;

	for (int i = 0; i < 10; i++)
		put(p, (110 + i) * DAY, &id, &e);
	store_tidy(p->store, 121 * DAY, &e);
	store_delete(p->store, &q, false, &n, &e);
	store_tidy(p->store, 125 * DAY, &e);
}

struct tally {
	unsigned nrefused, nfound, nharmless, nmissed;
};

static void try_damaged(const struct copy *c, size_t which, struct tally *tally)
{
	struct store_checked found = { 0 };
	struct place p;
	struct err e = { 0 };

	place_init(&p);
	write_damaged(&p, c, which);
	if (!open_place(&p, &e)) {
		assert_true(*e.text);
		tally->nrefused++;
		place_release(&p);
		return;
	}
	if (!store_check(p.store, ignore_line, NULL, &found, &e) || found.nproblems)
		tally->nfound++;
	else if (str_eq(str_of(merge_text(&p)), c->merged))
		tally->nharmless++;
	else
		tally->nmissed++;
	ask_all(&p);
	change_all(&p);
	store_check(p.store, ignore_line, NULL, &found, &e);
	place_release(&p);
}

/* SQLite cuts a log off where it is damaged, as it does after a crash: that cannot be found. */
TEST(damaged_files_are_no_more_than_errors)
{
	enum { LOGS = 4 }; /* one of so many times it is the log */
	struct arena a = { 0 };
	struct tally all[2] = { 0 };
	const char *rounds = getenv("DAMAGES");
	struct copy copies[2];

	make_copy(&a, true, &copies[0]);
	make_copy(&a, false, &copies[1]);
	alarm(600);
	random_state = 4;
	for (int i = 0; i < (rounds ? atoi(rounds) : 60); i++)
		try_damaged(&copies[i % LOGS == 0], i % LOGS == 0, &all[i % LOGS == 0]);
	alarm(0);
	for (size_t i = 0; i < 2; i++)
		print_message("# %s: %u not opened, %u found by check, %u did no harm, %u missed\n",
			      files[i], all[i].nrefused, all[i].nfound, all[i].nharmless,
			      all[i].nmissed);
	assert_true(all[0].nfound > 5);
	assert_int_equal(all[0].nmissed, 0);
	arena_release(&a);
}
