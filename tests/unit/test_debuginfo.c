#include "test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "base/small_file.h"
#include "server/debuginfo.h"
#include "small_elf.h"

#define ID SMALL_ELF_ID

/* ---- a disk: instead of the libc's */

static atomic_int nsyncs, nsyncing, most_syncing;
static atomic_bool folders_fail;

int fsync(int fd)
{
	int now = ++nsyncing;
	struct stat st;

	nsyncs++;
	if (now > most_syncing)
		most_syncing = now;
	usleep(1000);
	nsyncing--;
	if (folders_fail && fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
		errno = EIO;
		return -1;
	}
	return 0;
}

/* ---- a folder */

struct place {
	char data[64];
	struct debuginfo *d;
	struct arena a;
	uint64_t asked, most, max_disk;
	char file[SMALL_ELF_BYTES];
};

static bool may_grow(void *ctx, uint64_t bytes, struct err *e)
{
	struct place *p = ctx;

	p->asked = bytes;
	return bytes <= p->most || err_set(e, ERR_LIMIT, "max-disk: full");
}

static void reopen(struct place *p, uint64_t max_file)
{
	struct err e;

	debuginfo_close(p->d);
	p->d = debuginfo_open(&(struct debuginfo_params){ .data = p->data,
							  .max_file = max_file,
							  .max_disk = p->max_disk,
							  .may_grow = may_grow,
							  .ctx = p },
			      &e);
	if (!p->d)
		fail_msg("%s", e.text);
}

static void place_init(struct place *p)
{
	*p = (struct place){ .data = "/tmp/kiln-debuginfo-XXXXXX", .most = 1 << 20 };
	assert_non_null(mkdtemp(p->data));
	reopen(p, 1 << 20);
}

static void place_release(struct place *p)
{
	char command[100];

	debuginfo_close(p->d);
	snprintf(command, sizeof(command), "rm -r %s", p->data);
	assert_int_equal(system(command), 0);
	arena_release(&p->a);
}

/* What happened, or the error. */
static const char *put(struct place *p, struct str body)
{
	static const char *const results[] = { "new", "better", "there" };
	enum debuginfo_put how;
	struct err e;
	bool ok = debuginfo_put(p->d,
				&(struct debuginfo_new){ .build_id = STR(ID),
							 .name = STR("/srv/a b/../sh\"op"),
							 .body = body },
				&how, &e);

	return ok ? results[how] : str_dup(&p->a, str_of(e.text));
}

static size_t count_files(const struct place *p)
{
	struct buf path = { 0 };
	struct dirent *entry;
	size_t n = 0;
	DIR *d;

	buf_printf(&path, "%s/debuginfo%c", p->data, '\0');
	d = opendir(path.p);
	while ((entry = readdir(d)))
		n += entry->d_name[0] != '.' || strlen(entry->d_name) > 2;
	closedir(d);
	buf_release(&path);
	return n;
}

TEST(more_takes_the_place_of_less)
{
	struct debuginfo_file found;
	struct debuginfo_stats stats;
	struct place p;

	place_init(&p);
	assert_false(debuginfo_find(p.d, STR(ID), &p.a, &found));
	assert_string_equal(put(&p, small_elf(p.file, ELF_NAMES)), "new");
	assert_string_equal(put(&p, small_elf(p.file, ELF_NAMES)), "there");
	assert_string_equal(put(&p, small_elf(p.file, ELF_LINES)), "better");
	assert_string_equal(put(&p, small_elf(p.file, ELF_NAMES)), "there");
	assert_int_equal(count_files(&p), 1);
	assert_true(debuginfo_find(p.d, STR(ID), &p.a, &found));
	assert_true(found.has.has_lines && found.has.has_symbols && !found.has.is_loadable);
	assert_true(str_eq(found.name, STR("sh_op")));
	debuginfo_stats(p.d, &stats);
	assert_int_equal(stats.nfiles, 1);
	assert_int_equal(stats.bytes, SMALL_ELF_BYTES);
	place_release(&p);
}

TEST(files_are_there_after_a_restart)
{
	struct debuginfo_file found, *files;
	struct place p;
	char path[200];
	int fd;

	place_init(&p);
	put(&p, small_elf(p.file, ELF_NAMES));
	/* What a crash leaves: one that was being written, one that was to be replaced. */
	snprintf(path, sizeof(path), "%s/debuginfo/.new-0", p.data);
	fd = open(path, O_CREAT | O_WRONLY, 0600);
	assert_int_equal(write(fd, "x", 1), 1);
	close(fd);
	small_elf(p.file, ELF_LINES);
	snprintf(path, sizeof(path), "%s/debuginfo/" ID ".d.other", p.data);
	fd = open(path, O_CREAT | O_WRONLY, 0600);
	assert_int_equal(write(fd, p.file, SMALL_ELF_BYTES), SMALL_ELF_BYTES);
	close(fd);
	reopen(&p, 1 << 20);
	assert_int_equal(count_files(&p), 1);
	assert_int_equal(debuginfo_list(p.d, &p.a, &files), 1);
	assert_true(debuginfo_find(p.d, STR(ID), &p.a, &found));
	assert_true(found.is_fetched && found.has.has_lines);
	assert_true(debuginfo_drop(p.d, STR(ID)));
	assert_false(debuginfo_drop(p.d, STR(ID)));
	assert_int_equal(count_files(&p), 0);
	place_release(&p);
}

TEST(what_is_no_such_file_is_refused)
{
	struct place p;
	enum debuginfo_put how;
	struct err e;

	place_init(&p);
	assert_non_null(strstr(put(&p, small_elf(p.file, ELF_NOTHING)), "has no symbols"));
	small_elf(p.file, ELF_NAMES);
	assert_non_null(strstr(put(&p, (struct str){ p.file, 60 }), "no whole ELF"));
	assert_non_null(strstr(put(&p, (struct str){ p.file, 300 }), "no whole ELF"));
	assert_non_null(strstr(put(&p, STR("hello")), "is no ELF file"));
	p.file[SMALL_ELF_NOTE + 16] ^= 1;
	assert_non_null(strstr(put(&p, (struct str){ p.file, SMALL_ELF_BYTES }), "not " ID));
	assert_false(debuginfo_put(
		p.d, &(struct debuginfo_new){ .build_id = STR("../../x"), .name = STR("x") }, &how,
		&e));
	assert_int_equal(e.kind, ERR_USAGE);
	assert_int_equal(count_files(&p), 0);
	place_release(&p);
}

TEST(build_ids)
{
	assert_true(debuginfo_is_id(STR(ID)));
	assert_false(debuginfo_is_id(STR("")));
	assert_false(debuginfo_is_id(STR("0102030")));
	assert_false(debuginfo_is_id(STR("01020304x5")));
	assert_false(debuginfo_is_id(STR("010203ABCD")));
	assert_false(debuginfo_is_id(STR("./../../..")));
}

TEST(limits)
{
	struct place p;

	place_init(&p);
	p.most = SMALL_ELF_BYTES - 1;
	assert_string_equal(put(&p, small_elf(p.file, ELF_NAMES)), "max-disk: full");
	assert_int_equal(p.asked, SMALL_ELF_BYTES);
	p.most = SMALL_ELF_BYTES;
	reopen(&p, SMALL_ELF_BYTES - 1);
	assert_non_null(strstr(put(&p, small_elf(p.file, ELF_NAMES)), "max-debuginfo: "));
	reopen(&p, SMALL_ELF_BYTES);
	assert_string_equal(put(&p, small_elf(p.file, ELF_NAMES)), "new");
	/* The old one's room is the new one's. */
	assert_string_equal(put(&p, small_elf(p.file, ELF_LINES)), "better");
	assert_int_equal(p.asked, SMALL_ELF_BYTES);
	place_release(&p);
}

/* Zeros after the tables do not matter to an ELF file. */
static struct str with_zeros(struct place *p, char *file, size_t zeros)
{
	char *bytes = arena_alloc(&p->a, SMALL_ELF_BYTES + zeros);

	memcpy(bytes, file, SMALL_ELF_BYTES);
	return (struct str){ bytes, SMALL_ELF_BYTES + zeros };
}

TEST(no_more_is_unpacked_than_may_be_kept)
{
	struct place p;

	place_init(&p);
	p.max_disk = UINT64_C(4) * (SMALL_ELF_BYTES + 100); /* a quarter is for files here */
	reopen(&p, 1 << 20);
	small_elf(p.file, ELF_NAMES);
	nsyncs = 0;
	assert_true(strncmp(put(&p, with_zeros(&p, p.file, 101)), "max-disk: ", 10) == 0);
	assert_int_equal(p.asked, 0);
	assert_int_equal(nsyncs, 0);
	assert_string_equal(put(&p, with_zeros(&p, p.file, 100)), "new");
	small_elf(p.file, ELF_LINES);
	assert_string_equal(put(&p, with_zeros(&p, p.file, 100)), "better");
	assert_int_equal(count_files(&p), 1);
	place_release(&p);
}

TEST(what_is_refused_is_not_synced)
{
	struct place p;

	place_init(&p);
	nsyncs = 0;
	put(&p, small_elf(p.file, ELF_NOTHING));
	assert_int_equal(nsyncs, 0);
	put(&p, small_elf(p.file, ELF_NAMES));
	assert_int_equal(nsyncs, 2); /* the file and the folder */
	put(&p, small_elf(p.file, ELF_NAMES));
	assert_int_equal(nsyncs, 2);
	place_release(&p);
}

static void *put_some(void *ctx)
{
	struct place *p = ctx;
	char file[SMALL_ELF_BYTES];
	enum debuginfo_put how;
	struct err e;

	for (int i = 0; i < 10; i++) {
		debuginfo_put(p->d,
			      &(struct debuginfo_new){ .build_id = STR(ID),
						       .name = STR("x"),
						       .body = small_elf(file, ELF_LINES) },
			      &how, &e);
		debuginfo_drop(p->d, STR(ID));
	}
	return NULL;
}

/* Together they would fill the disk before any of them is counted. */
TEST(files_come_one_at_a_time)
{
	pthread_t threads[4];
	struct place p;

	place_init(&p);
	most_syncing = 0;
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, put_some, &p), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(most_syncing, 1);
	place_release(&p);
}

TEST(a_folder_that_cannot_be_synced)
{
	struct debuginfo_file found;
	struct debuginfo_stats stats;
	struct place p;

	place_init(&p);
	folders_fail = true;
	assert_non_null(strstr(put(&p, small_elf(p.file, ELF_NAMES)), "fsync"));
	assert_false(debuginfo_find(p.d, STR(ID), &p.a, &found));
	assert_int_equal(count_files(&p), 0);
	folders_fail = false;
	assert_string_equal(put(&p, small_elf(p.file, ELF_NAMES)), "new");
	/* The old one is gone by then, so the new one is what there is. */
	folders_fail = true;
	assert_non_null(strstr(put(&p, small_elf(p.file, ELF_LINES)), "fsync"));
	folders_fail = false;
	assert_true(debuginfo_find(p.d, STR(ID), &p.a, &found));
	assert_true(found.has.has_lines && str_eq(found.build_id, STR(ID)));
	debuginfo_stats(p.d, &stats);
	assert_int_equal(stats.bytes, SMALL_ELF_BYTES);
	place_release(&p);
}

TEST(what_cannot_be_read_is_replaced)
{
	struct debuginfo_file found;
	struct place p;

	place_init(&p);
	put(&p, small_elf(p.file, ELF_LINES));
	debuginfo_unreadable(p.d, STR(ID));
	assert_true(debuginfo_find(p.d, STR(ID), &p.a, &found) && found.is_unreadable);
	assert_string_equal(put(&p, small_elf(p.file, ELF_NAMES)), "better");
	assert_true(debuginfo_find(p.d, STR(ID), &p.a, &found) && !found.is_unreadable);
	assert_string_equal(put(&p, small_elf(p.file, ELF_NAMES)), "there");
	place_release(&p);
}

TEST(old_files_that_nobody_needs_go)
{
	struct str needed[] = { STR("00000000"), STR(ID) };
	struct debuginfo_stats stats;
	struct place p;

	place_init(&p);
	put(&p, small_elf(p.file, ELF_NAMES));
	assert_false(debuginfo_has_old(p.d, 1000));
	debuginfo_expire(p.d, 1000, NULL, 0);
	assert_int_equal(count_files(&p), 1);
	assert_true(debuginfo_has_old(p.d, INT64_MAX));
	debuginfo_expire(p.d, INT64_MAX, needed, 2);
	assert_int_equal(count_files(&p), 1);
	debuginfo_expire(p.d, INT64_MAX, needed, 1);
	assert_int_equal(count_files(&p), 0);
	debuginfo_stats(p.d, &stats);
	assert_int_equal(stats.nexpired, 1);
	assert_int_equal(stats.bytes, 0);
	place_release(&p);
}

/* ---- unpacking */

/* What comes out, or the error; `max` bytes at most. */
static struct str unpacked(struct place *p, struct str body, uint64_t max)
{
	char path[200];
	struct buf out = { 0 };
	struct str text;
	struct err e;
	int fd;

	snprintf(path, sizeof(path), "%s/out", p->data);
	fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
	if (!debuginfo_unpack(body, fd, max, 0, &e)) {
		close(fd);
		return str_of(str_dup(&p->a, str_of(e.text)));
	}
	close(fd);
	assert_true(small_file_read(&out, path, 1 << 24, &e));
	text = (struct str){ arena_copy(&p->a, out.p, out.n), out.n };
	buf_release(&out);
	return text;
}

static bool says(struct str text, const char *part)
{
	return text.n < 500 && memmem(text.p, text.n, part, strlen(part));
}

TEST(zstd_is_unpacked)
{
	enum { N = 3 << 20 };
	char *plain = xcalloc(N, 1), *packed = xmalloc(ZSTD_compressBound(N));
	struct place p;
	struct str got;
	size_t n;

	place_init(&p);
	for (size_t i = 0; i < N; i++)
		plain[i] = (char)(i * i >> 7);
	n = ZSTD_compress(packed, ZSTD_compressBound(N), plain, N, 1);
	got = unpacked(&p, (struct str){ packed, n }, N);
	assert_true(str_eq(got, (struct str){ plain, N }));
	assert_true(says(unpacked(&p, (struct str){ packed, n }, N - 1), "max-debuginfo"));
	assert_true(says(unpacked(&p, (struct str){ packed, n - 1 }, N), "zstd"));
	assert_true(says(unpacked(&p, (struct str){ packed, 4 }, N), "zstd"));
	free(plain);
	free(packed);
	place_release(&p);
}

TEST(gzip_is_unpacked)
{
	enum { N = 1 << 20 };
	char *plain = xcalloc(N, 1), *packed = xmalloc(2 * N);
	z_stream z = { .next_in = (Bytef *)plain,
		       .avail_in = N,
		       .next_out = (Bytef *)packed,
		       .avail_out = 2 * N };
	struct place p;
	size_t n;

	place_init(&p);
	for (size_t i = 0; i < N; i++)
		plain[i] = (char)(i * i >> 7);
	assert_int_equal(deflateInit2(&z, 1, Z_DEFLATED, 15 + 16, 8, 0), Z_OK);
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	n = 2 * N - z.avail_out;
	deflateEnd(&z);
	assert_true(str_eq(unpacked(&p, (struct str){ packed, n }, N), (struct str){ plain, N }));
	assert_true(says(unpacked(&p, (struct str){ packed, n }, N - 1), "max-debuginfo"));
	assert_true(says(unpacked(&p, (struct str){ packed, n - 9 }, N), "cut off"));
	assert_true(says(unpacked(&p, (struct str){ packed, 12 }, N), "cut off"));
	packed[n / 2] ^= 0x55;
	assert_true(says(unpacked(&p, (struct str){ packed, n }, N), "gzip"));
	free(plain);
	free(packed);
	place_release(&p);
}
