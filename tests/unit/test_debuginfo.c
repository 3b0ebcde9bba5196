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
#include "symbol/elf.h"

/* A file of a few hundred bytes: a header, a note with a build id, and maybe a table of symbols and
 * sections that are called as those of DWARF are. */
enum { NOTE = 64 + 56, ID_BYTES = 8, SECTIONS = 256, SYMBOLS = 800, TEXTS = 1000, END = 1200 };
#define ID "0102030405060708"

static void put_section(char *file, int i, uint32_t name, uint32_t type, uint64_t offset,
			uint64_t size)
{
	Elf64_Shdr s = { .sh_name = name, .sh_type = type, .sh_offset = offset, .sh_size = size };

	s.sh_link = type == SHT_SYMTAB ? 2 : 0;
	memcpy(file + SECTIONS + (size_t)i * sizeof(s), &s, sizeof(s));
}

enum with { NOTHING, NAMES, LINES };

static struct str make_file(char *file, enum with with)
{
	static const char texts[] = "\0.symtab\0.strtab\0.debug_info\0.debug_line\0f";
	Elf64_Ehdr h = { .e_type = ET_DYN,
			 .e_machine = EM_X86_64,
			 .e_version = EV_CURRENT,
			 .e_phoff = 64,
			 .e_phentsize = sizeof(Elf64_Phdr),
			 .e_phnum = 1,
			 .e_shentsize = sizeof(Elf64_Shdr) };
	Elf64_Phdr p = {
		.p_type = PT_NOTE, .p_offset = NOTE, .p_filesz = 16 + ID_BYTES, .p_align = 4
	};
	Elf64_Sym f = { .st_name = 41, .st_value = 16, .st_size = 4, .st_shndx = 1 };
	uint32_t note[3] = { 4, ID_BYTES, NT_GNU_BUILD_ID };

	memset(file, 0, END);
	memcpy(h.e_ident, ELFMAG, SELFMAG);
	h.e_ident[EI_CLASS] = ELFCLASS64;
	h.e_ident[EI_DATA] = ELFDATA2LSB;
	h.e_ident[EI_VERSION] = EV_CURRENT;
	if (with) {
		h.e_shoff = SECTIONS;
		h.e_shnum = 5;
		h.e_shstrndx = 2;
		put_section(file, 1, 1, SHT_SYMTAB, SYMBOLS, 2 * sizeof(f));
		put_section(file, 2, 9, SHT_STRTAB, TEXTS, sizeof(texts));
		put_section(file, 3, 17, SHT_PROGBITS, TEXTS, with == LINES ? 8 : 0);
		put_section(file, 4, 29, SHT_PROGBITS, TEXTS, with == LINES ? 8 : 0);
		memcpy(file + SYMBOLS + sizeof(f), &f, sizeof(f));
		memcpy(file + TEXTS, texts, sizeof(texts));
	}
	memcpy(file, &h, sizeof(h));
	memcpy(file + 64, &p, sizeof(p));
	memcpy(file + NOTE, note, sizeof(note));
	memcpy(file + NOTE + 12, "GNU\0\1\2\3\4\5\6\7\10", 4 + ID_BYTES);
	return (struct str){ file, END };
}

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
	char file[END];
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
	assert_string_equal(put(&p, make_file(p.file, NAMES)), "new");
	assert_string_equal(put(&p, make_file(p.file, NAMES)), "there");
	assert_string_equal(put(&p, make_file(p.file, LINES)), "better");
	assert_string_equal(put(&p, make_file(p.file, NAMES)), "there");
	assert_int_equal(count_files(&p), 1);
	assert_true(debuginfo_find(p.d, STR(ID), &p.a, &found));
	assert_true(found.has.has_lines && found.has.has_symbols && !found.has.is_loadable);
	assert_true(str_eq(found.name, STR("sh_op")));
	debuginfo_stats(p.d, &stats);
	assert_int_equal(stats.nfiles, 1);
	assert_int_equal(stats.bytes, END);
	place_release(&p);
}

TEST(files_are_there_after_a_restart)
{
	struct debuginfo_file found, *files;
	struct place p;
	char path[200];
	int fd;

	place_init(&p);
	put(&p, make_file(p.file, NAMES));
	/* What a crash leaves: one that was being written, one that was to be replaced. */
	snprintf(path, sizeof(path), "%s/debuginfo/.new-0", p.data);
	fd = open(path, O_CREAT | O_WRONLY, 0600);
	assert_int_equal(write(fd, "x", 1), 1);
	close(fd);
	make_file(p.file, LINES);
	snprintf(path, sizeof(path), "%s/debuginfo/" ID ".d.other", p.data);
	fd = open(path, O_CREAT | O_WRONLY, 0600);
	assert_int_equal(write(fd, p.file, END), END);
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
	assert_non_null(strstr(put(&p, make_file(p.file, NOTHING)), "has no symbols"));
	make_file(p.file, NAMES);
	assert_non_null(strstr(put(&p, (struct str){ p.file, 60 }), "no whole ELF"));
	assert_non_null(strstr(put(&p, (struct str){ p.file, 300 }), "no whole ELF"));
	assert_non_null(strstr(put(&p, STR("hello")), "is no ELF file"));
	p.file[NOTE + 16] ^= 1;
	assert_non_null(strstr(put(&p, (struct str){ p.file, END }), "not " ID));
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
	p.most = END - 1;
	assert_string_equal(put(&p, make_file(p.file, NAMES)), "max-disk: full");
	assert_int_equal(p.asked, END);
	p.most = END;
	reopen(&p, END - 1);
	assert_non_null(strstr(put(&p, make_file(p.file, NAMES)), "max-debuginfo: "));
	reopen(&p, END);
	assert_string_equal(put(&p, make_file(p.file, NAMES)), "new");
	/* The old one's room is the new one's. */
	assert_string_equal(put(&p, make_file(p.file, LINES)), "better");
	assert_int_equal(p.asked, END);
	place_release(&p);
}

/* Zeros after the tables do not matter to an ELF file. */
static struct str with_zeros(struct place *p, char *file, size_t zeros)
{
	char *bytes = arena_alloc(&p->a, END + zeros);

	memcpy(bytes, file, END);
	return (struct str){ bytes, END + zeros };
}

TEST(no_more_is_unpacked_than_may_be_kept)
{
	struct place p;

	place_init(&p);
	p.max_disk = UINT64_C(4) * (END + 100); /* a quarter is for files here */
	reopen(&p, 1 << 20);
	make_file(p.file, NAMES);
	nsyncs = 0;
	assert_true(strncmp(put(&p, with_zeros(&p, p.file, 101)), "max-disk: ", 10) == 0);
	assert_int_equal(p.asked, 0);
	assert_int_equal(nsyncs, 0);
	assert_string_equal(put(&p, with_zeros(&p, p.file, 100)), "new");
	make_file(p.file, LINES);
	assert_string_equal(put(&p, with_zeros(&p, p.file, 100)), "better");
	assert_int_equal(count_files(&p), 1);
	place_release(&p);
}

TEST(what_is_refused_is_not_synced)
{
	struct place p;

	place_init(&p);
	nsyncs = 0;
	put(&p, make_file(p.file, NOTHING));
	assert_int_equal(nsyncs, 0);
	put(&p, make_file(p.file, NAMES));
	assert_int_equal(nsyncs, 2); /* the file and the folder */
	put(&p, make_file(p.file, NAMES));
	assert_int_equal(nsyncs, 2);
	place_release(&p);
}

static void *put_some(void *ctx)
{
	struct place *p = ctx;
	char file[END];
	enum debuginfo_put how;
	struct err e;

	for (int i = 0; i < 10; i++) {
		debuginfo_put(p->d,
			      &(struct debuginfo_new){ .build_id = STR(ID),
						       .name = STR("x"),
						       .body = make_file(file, LINES) },
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
	assert_non_null(strstr(put(&p, make_file(p.file, NAMES)), "fsync"));
	assert_false(debuginfo_find(p.d, STR(ID), &p.a, &found));
	assert_int_equal(count_files(&p), 0);
	folders_fail = false;
	assert_string_equal(put(&p, make_file(p.file, NAMES)), "new");
	/* The old one is gone by then, so the new one is what there is. */
	folders_fail = true;
	assert_non_null(strstr(put(&p, make_file(p.file, LINES)), "fsync"));
	folders_fail = false;
	assert_true(debuginfo_find(p.d, STR(ID), &p.a, &found));
	assert_true(found.has.has_lines && str_eq(found.build_id, STR(ID)));
	debuginfo_stats(p.d, &stats);
	assert_int_equal(stats.bytes, END);
	place_release(&p);
}

TEST(what_cannot_be_read_is_replaced)
{
	struct debuginfo_file found;
	struct place p;

	place_init(&p);
	put(&p, make_file(p.file, LINES));
	debuginfo_unreadable(p.d, STR(ID));
	assert_true(debuginfo_find(p.d, STR(ID), &p.a, &found) && found.is_unreadable);
	assert_string_equal(put(&p, make_file(p.file, NAMES)), "better");
	assert_true(debuginfo_find(p.d, STR(ID), &p.a, &found) && !found.is_unreadable);
	assert_string_equal(put(&p, make_file(p.file, NAMES)), "there");
	place_release(&p);
}

TEST(old_files_that_nobody_needs_go)
{
	struct str needed[] = { STR("00000000"), STR(ID) };
	struct debuginfo_stats stats;
	struct place p;

	place_init(&p);
	put(&p, make_file(p.file, NAMES));
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
