/* names_disk.c - names that were found stay over restarts, and when memory is short.
 *
 * DIR/BUILD_ID has a line that says which debug info they were found in, then a gzipped profile
 * without samples: each location is a place, with the names it has, or with a mapping if nobody
 * knows it. What is damaged, or of other debug info, is as if it was not there.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/small_file.h"
#include "base/wait.h"
#include "server/log.h"
#include "server/names_inside.h"

enum {
	MAX_FILE = 64 << 20,
	MAX_UNPACKED = 256 << 20,
	SAVE_MS = 60000, /* between two times that a binary's are written */
};
#define HEAD "kiln names 1 "

static char *path_of(const struct names *n, struct str build_id)
{
	struct buf path = { 0 };

	buf_printf(&path, "%s/%.*s%c", n->params.dir, STR_ARG(build_id), '\0');
	return path.p;
}

/* What is there of this build now. */
static void put_head(struct buf *out, const struct names *n, struct str build_id)
{
	struct debuginfo_file file;
	struct arena a = { 0 };

	buf_puts(out, HEAD);
	if (debuginfo_find(n->params.files, build_id, &a, &file))
		buf_printf(out, "%llu %lld", (unsigned long long)file.bytes, (long long)file.since);
	buf_char(out, '\n');
	arena_release(&a);
}

void names_unlink(struct names *n, struct str build_id)
{
	char *path;

	if (!n->params.dir || !debuginfo_is_id(build_id))
		return;
	path = path_of(n, build_id);
	unlink(path);
	free(path);
}

/* ---- writing */

/* The profile's own mapping: places have no file, so its numbers say what the question was. */
static void put_place(struct profile *p, struct location *l, const struct names_place *at)
{
	const struct mapping *last = p->nmappings ? &p->mappings[p->nmappings - 1] : NULL;

	if (!last || last->limit != at->size || last->offset != at->offset) {
		p->mappings[p->nmappings] = (struct mapping){ .id = p->nmappings + 1,
							      .limit = at->size,
							      .offset = at->offset };
		p->nmappings++;
	}
	l->mapping = p->nmappings - 1;
}

static void put_frames(struct profile_names *names, const struct store_binary *b)
{
	struct profile_frame frames[STORE_MAX_FRAMES];

	for (uint32_t i = 0; i < b->entries.n; i++) {
		uint32_t nframes = names_frames(b, i, frames);

		if (!nframes || !profile_names_location(names, i, nframes))
			continue;
		for (uint32_t k = 0; k < nframes; k++)
			profile_names_frame(names, &frames[k]);
	}
}

/* Under `tables`. */
static void encode(struct buf *out, const struct store_binary *b)
{
	struct arena a = { 0 };
	struct strings strings;
	struct profile p = { .strings = &strings };
	struct profile_names *names;

	strings_init(&strings);
	p.types = arena_new(&a, struct value_type);
	p.types[0].type = p.types[0].unit = strings_add(&strings, STR("none"));
	p.ntypes = 1;
	p.mappings = arena_many(&a, b->nameless.n + 1, struct mapping);
	p.locations = arena_many(&a, b->entries.n + 1, struct location);
	p.nlocations = (uint32_t)b->entries.n;
	for (uint32_t i = 0; i < p.nlocations; i++) {
		const struct names_entry *e = &b->entries.at[i];

		p.locations[i] =
			(struct location){ .id = i + 1, .address = e->key, .mapping = NONE };
		if (!e->n)
			put_place(&p, &p.locations[i], &b->nameless.at[e->first]);
	}
	names = profile_names_begin(&a, &p);
	put_frames(names, b);
	profile_names_end(names);
	profile_encode_gzip(out, &p);
	strings_release(&strings);
	arena_release(&a);
}

static void save(struct names *n, struct store_binary *b)
{
	struct buf out = { 0 };
	struct err e;
	uint64_t version = names_version(n, b);
	char *path = path_of(n, str_of(b->build_id));

	pthread_rwlock_rdlock(&n->tables);
	put_head(&out, n, str_of(b->build_id));
	encode(&out, b);
	b->is_changed = false; /* the thread alone asks for it, and makes it true */
	pthread_rwlock_unlock(&n->tables);
	b->saved_ms = clock_now_ms();
	if (out.n > MAX_FILE)
		log_error("names of %s are too many to be kept", b->build_id);
	else if (!small_file_write(path, buf_view(&out), &e))
		log_error("names of %s cannot be kept: %s", b->build_id, e.text);
	else
		n->disk_bytes += out.n; /* names_tidy_disk counts again */
	if (names_version(n, b) != version)
		unlink(path); /* names_changed was here, before it was written */
	if (n->disk_bytes > n->params.max_disk)
		names_tidy_disk(n);
	buf_release(&out);
	free(path);
}

void names_save(struct names *n, struct store_binary *b)
{
	if (n->params.dir && b->is_changed &&
	    (!b->saved_ms || clock_now_ms() - b->saved_ms >= SAVE_MS))
		save(n, b);
}

void names_save_all(struct names *n)
{
	for (size_t i = 0; n->params.dir; i++) {
		struct store_binary *b;

		pthread_mutex_lock(&n->lock);
		b = i < n->binaries.n ? n->binaries.at[i] : NULL;
		pthread_mutex_unlock(&n->lock);
		if (!b)
			break;
		if (b->is_changed && (n->is_stopping || clock_now_ms() - b->saved_ms >= SAVE_MS))
			save(n, b);
	}
}

/* ---- reading */

static bool read_file(struct names *n, const struct store_binary *b, struct arena *a,
		      struct strings *strings, struct profile *p, struct err *e)
{
	struct buf head = { 0 }, bytes = { 0 };
	char *path = path_of(n, str_of(b->build_id));
	bool ok = small_file_read(&bytes, path, MAX_FILE, e);

	put_head(&head, n, str_of(b->build_id));
	ok = ok && (str_has_prefix(buf_view(&bytes), buf_view(&head)) ||
		    err_set(e, ERR_NOTFOUND, "they are of other debug info"));
	ok = ok && profile_read(p, a, strings, str_from(buf_view(&bytes), head.n), MAX_UNPACKED, e);
	if (ok)
		utimensat(AT_FDCWD, path, NULL, 0); /* it is needed: names_tidy_disk */
	buf_release(&head);
	buf_release(&bytes);
	free(path);
	return ok;
}

/* Unless there is other debug info meanwhile. */
static void take(struct names *n, struct store_binary *b, const struct profile *p, uint64_t version)
{
	struct names_place *all = xcalloc((size_t)p->nlocations + 1, sizeof(*all));
	vec(struct names_place) nameless = { 0 };
	struct err ignored;
	size_t nnamed;

	for (uint32_t i = 0; i < p->nlocations; i++) {
		const struct location *l = &p->locations[i];

		all[i].key = l->address;
		if (l->mapping != NONE && !location_has_name(p, l))
			vec_push(&nameless, ((struct names_place){
						    .key = l->address,
						    .size = p->mappings[l->mapping].limit,
						    .offset = p->mappings[l->mapping].offset }));
	}
	pthread_rwlock_wrlock(&n->tables);
	if (names_version(n, b) == version && names_take(n, b, all, p, &nnamed, &ignored)) {
		names_take_nameless(n, b, nameless.at, nameless.n);
		n->nfound += nnamed;
		n->nloaded++;
		b->is_changed = false;
	}
	pthread_rwlock_unlock(&n->tables);
	vec_release(&nameless);
	free(all);
}

void names_load(struct names *n, struct store_binary *b)
{
	struct arena a = { 0 };
	struct strings strings;
	struct profile p;
	struct err ignored;
	uint64_t version = names_version(n, b);

	if (b->is_loaded)
		return;
	b->is_loaded = true;
	if (!n->params.dir)
		return;
	strings_init(&strings);
	if (read_file(n, b, &a, &strings, &p, &ignored))
		take(n, b, &p, version);
	strings_release(&strings);
	arena_release(&a);
}

/* ---- how much there is */

struct kept {
	char *name;
	int64_t changed;
	uint64_t bytes;
};

static int newest_first(const void *a, const void *b)
{
	const struct kept *x = a, *y = b;

	return (x->changed < y->changed) - (x->changed > y->changed);
}

void names_tidy_disk(struct names *n)
{
	vec(struct kept) files = { 0 };
	struct arena a = { 0 };
	struct dirent *entry;
	DIR *dir = n->params.dir ? opendir(n->params.dir) : NULL;
	uint64_t bytes = 0;

	while (dir && (entry = readdir(dir))) {
		struct stat st;

		if (fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
		    !S_ISREG(st.st_mode))
			continue;
		vec_push(&files, ((struct kept){ .name = str_dup(&a, str_of(entry->d_name)),
						 .changed = st.st_mtim.tv_sec,
						 .bytes = (uint64_t)st.st_size }));
		bytes += (uint64_t)st.st_size;
	}
	if (files.n)
		qsort(files.at, files.n, sizeof(*files.at), newest_first);
	while (files.n && bytes > n->params.max_disk) {
		const struct kept *oldest = &files.at[--files.n];

		unlinkat(dirfd(dir), oldest->name, 0);
		bytes -= oldest->bytes;
	}
	if (dir)
		closedir(dir);
	vec_release(&files);
	arena_release(&a);
	n->disk_bytes = bytes;
}
