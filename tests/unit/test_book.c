#include "test.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/stat.h>

#include "profiles.h"
#include "store/book.h"

static struct str file_bytes(struct world *w, const char *path)
{
	FILE *f = fopen(path, "rb");
	struct buf bytes = { 0 };
	struct str kept;
	size_t n;

	assert_non_null(f);
	while ((n = fread(buf_room(&bytes, 1 << 16), 1, 1 << 16, f)) > 0)
		bytes.n += n;
	fclose(f);
	kept = (struct str){ arena_copy(&w->arena, bytes.p, bytes.n), bytes.n };
	buf_release(&bytes);
	return kept;
}

static struct str encoded(struct world *w, const struct profile *p)
{
	struct buf out = { 0 };
	struct str kept;

	profile_encode(&out, p);
	kept = (struct str){ arena_copy(&w->arena, out.p, out.n), out.n };
	buf_release(&out);
	return kept;
}

/* A book that has read what another has written. */
static struct book *copy_of(const struct book *b)
{
	struct book *empty = book_new(), *copy = book_new();
	struct book_mark start = book_mark(empty);
	struct buf chunk = { 0 };
	struct err e;

	book_write_chunk(b, &start, &chunk);
	if (!book_read_chunk(copy, buf_view(&chunk), &e))
		fail_msg("%s", e.text);
	book_free(empty);
	buf_release(&chunk);
	return copy;
}

static void check_same(struct book *b, const struct profile *p, const char *name)
{
	struct world w;
	struct buf packed = { 0 };
	struct profile back;
	struct book *copy;
	struct str want, got;
	struct err e;

	world_init(&w);
	book_pack(b, p, &packed);
	copy = copy_of(b);
	if (!book_unpack(copy, buf_view(&packed), &w.arena, &w.strings, &back, &e))
		fail_msg("%s: %s", name, e.text);
	want = encoded(&w, p);
	got = encoded(&w, &back);
	if (!str_eq(want, got))
		fail_msg("%s: %zu bytes have become %zu", name, want.n, got.n);
	book_free(copy);
	buf_release(&packed);
	world_release(&w);
}

static int check_folder(struct book *b, const char *folder)
{
	DIR *d = opendir(folder);
	struct dirent *entry;
	int n = 0;

	while (d && (entry = readdir(d))) {
		char path[1000];
		struct world w;
		struct profile p;
		struct stat st;
		struct err e;

		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		if (stat(path, &st) != 0 || st.st_size > 4 << 20)
			continue;
		if (S_ISDIR(st.st_mode) && entry->d_name[0] != '.')
			n += check_folder(b, path);
		if (!S_ISREG(st.st_mode))
			continue;
		world_init(&w);
		if (profile_read(&p, &w.arena, &w.strings, file_bytes(&w, path), 1 << 28, &e)) {
			check_same(b, &p, path);
			n++;
		}
		world_release(&w);
	}
	if (d)
		closedir(d);
	return n;
}

/* CORPUS may name a folder with more. */
TEST(every_profile_comes_back_with_every_field)
{
	struct book *b = book_new();

	assert_true(check_folder(b, "tests") > 10);
	if (getenv("CORPUS"))
		printf("# %d more profiles\n", check_folder(b, getenv("CORPUS")));
	book_free(b);
}
