#include "server/debuginfo.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"
#include "base/vec.h"
#include "base/when.h"
#include "server/log.h"

enum {
	MAX_NAME = 100,
	DISK_SHARE = 4, /* of what the store may have, files here may have a quarter */
};
#define NEW_PREFIX ".new-"
#define NEW_NAME NEW_PREFIX "0" /* there is one at a time */

struct entry {
	char *build_id, *name, *path;
	bool is_fetched;
	uint64_t bytes;
	struct object_contents has;
	int64_t since, used;
	bool is_unreadable;
};

struct debuginfo {
	struct debuginfo_params params;
	char *dir;
	/* One at a time, from the first byte on: together they would have more of the disk than
	 * there is, and each compares, then replaces. */
	pthread_mutex_t putting;
	pthread_mutex_t lock;	   /* of what follows */
	vec(struct entry) entries; /* by build id */
	uint64_t bytes, nexpired;
};

bool debuginfo_is_id(struct str text)
{
	if (text.n % 2 || text.n < DEBUGINFO_ID_MIN || text.n > DEBUGINFO_ID_MAX)
		return false;
	for (size_t i = 0; i < text.n; i++)
		if (!(text.p[i] >= '0' && text.p[i] <= '9') &&
		    !(text.p[i] >= 'a' && text.p[i] <= 'f'))
			return false;
	return true;
}

/* ---- the table; under the lock */

static size_t place_of(const struct debuginfo *d, struct str id)
{
	size_t low = 0, high = d->entries.n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (str_cmp(str_of(d->entries.at[middle].build_id), id) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct entry *entry_of(const struct debuginfo *d, struct str id)
{
	size_t at = place_of(d, id);

	if (at < d->entries.n && str_eq(str_of(d->entries.at[at].build_id), id))
		return &d->entries.at[at];
	return NULL;
}

static void entry_release(struct entry *x)
{
	free(x->build_id);
	free(x->name);
	free(x->path);
}

static void remove_entry(struct debuginfo *d, struct entry *x)
{
	size_t at = (size_t)(x - d->entries.at);

	d->bytes -= x->bytes;
	entry_release(x);
	memmove(x, x + 1, (d->entries.n - at - 1) * sizeof(*x));
	d->entries.n--;
}

/* In the place of one of the same build id, if there is one. */
static void insert_entry(struct debuginfo *d, const struct entry *new)
{
	struct entry *old = entry_of(d, str_of(new->build_id));
	size_t at;

	if (old)
		remove_entry(d, old);
	at = place_of(d, str_of(new->build_id));
	vec_push(&d->entries, *new);
	memmove(&d->entries.at[at + 1], &d->entries.at[at], (d->entries.n - 1 - at) * sizeof(*new));
	d->entries.at[at] = *new;
	d->bytes += new->bytes;
}

static struct debuginfo_file file_of(struct arena *a, const struct entry *x)
{
	return (struct debuginfo_file){ .build_id = str_of(str_dup(a, str_of(x->build_id))),
					.name = str_of(str_dup(a, str_of(x->name))),
					.is_fetched = x->is_fetched,
					.bytes = x->bytes,
					.has = x->has,
					.since = x->since,
					.used = x->used,
					.path = str_dup(a, str_of(x->path)),
					.is_unreadable = x->is_unreadable };
}

/* ---- names of files */

static char *join(const char *dir, const char *name)
{
	struct buf path = { 0 };

	buf_printf(&path, "%s/%s%c", dir, name, '\0');
	return path.p;
}

/* Nothing that a path or a header could take for something else. */
static void put_plain_name(struct buf *out, struct str name)
{
	name = path_base(name);
	for (size_t i = 0; i < name.n && i < MAX_NAME; i++) {
		char c = name.p[i];
		bool is_plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
				(c >= 'A' && c <= 'Z') || (c && strchr("._+-", c));

		buf_char(out, is_plain ? c : '_');
	}
	if (!name.n)
		buf_puts(out, "unnamed");
}

/* BUILD_ID.u.NAME, or BUILD_ID.d.NAME of what a debuginfod server had. */
static bool parse_name(const char *text, struct str *id, bool *is_fetched, struct str *name)
{
	struct str rest = str_of(text), origin;

	*id = str_cut(&rest, '.');
	origin = str_cut(&rest, '.');
	*name = rest;
	*is_fetched = str_eq(origin, STR("d"));
	return debuginfo_is_id(*id) && (*is_fetched || str_eq(origin, STR("u"))) && rest.n;
}

static int64_t ns_of(struct timespec t)
{
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* What the file is; it must be of that build. */
static bool inspect(const char *path, struct str id, struct entry *x, struct err *e)
{
	struct object o;
	struct stat st;
	bool ok;

	if (stat(path, &st) != 0)
		return err_system(e, "stat", path);
	if (!object_open(&o, path, e))
		return err_set(e, ERR_FORMAT, "it is no whole ELF file");
	x->has = object_contents(&o);
	ok = o.kind == OBJECT_ELF || err_set(e, ERR_FORMAT, "it is no ELF file");
	if (ok && !o.build_id.n)
		ok = err_set(e, ERR_FORMAT,
			     "the file has no build id; link it with -Wl,--build-id");
	if (ok && !str_eq(o.build_id, id))
		ok = err_set(e, ERR_FORMAT, "the file's build id is %.*s, not %.*s",
			     STR_ARG(o.build_id), STR_ARG(id));
	if (ok && !object_contents_rank(&x->has))
		ok = err_set(e, ERR_FORMAT,
			     "the file has no symbols, neither a table of them nor DWARF; upload "
			     "the one that was not stripped, or its debug file");
	object_close(&o);
	x->bytes = (uint64_t)st.st_size;
	x->since = ns_of(st.st_mtim);
	x->used = ns_of(st.st_atim);
	return ok;
}

/* ---- opening */

static void take_file(struct debuginfo *d, const char *name)
{
	struct entry x = { 0 }, *other;
	struct str id, rest;
	struct err e;

	x.path = join(d->dir, name);
	if (str_has_prefix(str_of(name), STR(NEW_PREFIX))) {
		unlink(x.path); /* a crash came between */
		free(x.path);
		return;
	}
	if (!parse_name(name, &id, &x.is_fetched, &rest) || !inspect(x.path, id, &x, &e)) {
		free(x.path);
		return;
	}
	other = entry_of(d, id);
	if (other) { /* the same */
		bool is_better = object_contents_rank(&x.has) > object_contents_rank(&other->has);

		unlink(is_better ? other->path : x.path);
		if (!is_better) {
			free(x.path);
			return;
		}
	}
	x.build_id = strndup(id.p, id.n);
	x.name = strndup(rest.p, rest.n);
	insert_entry(d, &x);
}

struct debuginfo *debuginfo_open(const struct debuginfo_params *params, struct err *e)
{
	struct debuginfo *d = xcalloc(1, sizeof(*d));
	struct dirent *entry;
	DIR *dir;

	d->params = *params;
	d->dir = join(params->data, "debuginfo");
	pthread_mutex_init(&d->lock, NULL);
	pthread_mutex_init(&d->putting, NULL);
	if (mkdir(d->dir, 0777) != 0 && errno != EEXIST) {
		err_system(e, "mkdir", d->dir);
		debuginfo_close(d);
		return NULL;
	}
	dir = opendir(d->dir);
	if (!dir) {
		err_system(e, "open", d->dir);
		debuginfo_close(d);
		return NULL;
	}
	while ((entry = readdir(dir)))
		take_file(d, entry->d_name);
	closedir(dir);
	return d;
}

void debuginfo_close(struct debuginfo *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < d->entries.n; i++)
		entry_release(&d->entries.at[i]);
	vec_release(&d->entries);
	pthread_mutex_destroy(&d->lock);
	pthread_mutex_destroy(&d->putting);
	free(d->dir);
	free(d);
}

/* ---- putting */

/* What files here may have together; 0: no limit. */
static uint64_t most_bytes(const struct debuginfo *d)
{
	return d->params.max_disk / DISK_SHARE;
}

/* How large a file may be, in which the old one's room is the new one's. Whoever sends more must
 * not fill the disk before that is found out. */
static uint64_t room_for_file(struct debuginfo *d, struct str build_id, bool *is_quota)
{
	uint64_t most = d->params.max_file, all = most_bytes(d), taken;
	const struct entry *old;

	pthread_mutex_lock(&d->lock);
	old = entry_of(d, build_id);
	taken = d->bytes - (old ? old->bytes : 0);
	pthread_mutex_unlock(&d->lock);
	*is_quota = d->params.max_disk && (all <= taken || all - taken < most);
	return !*is_quota ? most : all <= taken ? 0 : all - taken;
}

static bool write_new(struct debuginfo *d, const struct debuginfo_new *new, int fd, struct err *e)
{
	bool is_quota;
	uint64_t room = room_for_file(d, new->build_id, &is_quota);

	if (debuginfo_unpack(new->body, fd, room, d->params.min_free, e))
		return true;
	if (e->kind == ERR_LIMIT && is_quota && strncmp(e->text, "max-debuginfo:", 14) == 0)
		err_set(e, ERR_LIMIT,
			"max-disk: debug info may have a quarter of --max-disk, %llu bytes, of "
			"which %llu are left, and the file has more",
			(unsigned long long)most_bytes(d), (unsigned long long)room);
	return false;
}

/* All files here, and those of the store with them. */
static bool may_keep(struct debuginfo *d, uint64_t bytes, uint64_t old_bytes, struct err *e)
{
	return !d->params.may_grow ||
	       d->params.may_grow(d->params.ctx, d->bytes + bytes - old_bytes, e);
}

static bool sync_folder(const struct debuginfo *d, struct err *e)
{
	int fd = open(d->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool ok = fd >= 0 && fsync(fd) == 0;

	if (!ok)
		err_system(e, "fsync", d->dir);
	if (fd >= 0)
		close(fd);
	return ok;
}

/* The file at `path` takes its name, and the old one's place if there is one. `x` is the table's,
 * or is released. */
static bool put_in_place(struct debuginfo *d, struct entry *x, const char *path, struct err *e)
{
	const struct entry *old;
	bool is_durable, is_over;

	if (rename(path, x->path) != 0) {
		err_system(e, "rename", x->path);
		entry_release(x);
		return false;
	}
	is_durable = sync_folder(d, e);
	pthread_mutex_lock(&d->lock);
	old = entry_of(d, str_of(x->build_id));
	is_over = old && strcmp(old->path, x->path) == 0; /* and the old one is gone */
	if (is_durable || is_over) {
		if (old && !is_over)
			unlink(old->path);
		insert_entry(d, x);
	} else {
		unlink(x->path);
		entry_release(x);
	}
	pthread_mutex_unlock(&d->lock);
	return is_durable;
}

static enum debuginfo_put compare(const struct entry *old, const struct entry *new)
{
	if (!old)
		return DEBUGINFO_NEW;
	return old->is_unreadable ||
			       object_contents_rank(&new->has) > object_contents_rank(&old->has)
		       ? DEBUGINFO_BETTER
		       : DEBUGINFO_THERE;
}

static bool may_put(struct debuginfo *d, struct str build_id, const struct entry *x,
		    enum debuginfo_put *how, struct err *e)
{
	const struct entry *old;
	bool ok;

	pthread_mutex_lock(&d->lock);
	old = entry_of(d, build_id);
	*how = compare(old, x);
	ok = *how == DEBUGINFO_THERE || may_keep(d, x->bytes, old ? old->bytes : 0, e);
	pthread_mutex_unlock(&d->lock);
	return ok;
}

static bool keep(struct debuginfo *d, const struct debuginfo_new *new, struct entry *x,
		 const char *path, struct err *e)
{
	struct buf name = { 0 };

	put_plain_name(&name, new->name);
	buf_char(&name, '\0');
	x->name = name.p;
	x->build_id = strndup(new->build_id.p, new->build_id.n);
	name = (struct buf){ 0 };
	buf_printf(&name, "%s/%s.%c.%s%c", d->dir, x->build_id, new->is_fetched ? 'd' : 'u',
		   x->name, '\0');
	x->path = name.p;
	x->is_fetched = new->is_fetched;
	return put_in_place(d, x, path, e);
}

/* What is of no use is found out before it costs a sync. */
static bool write_and_keep(struct debuginfo *d, const struct debuginfo_new *new, const char *path,
			   enum debuginfo_put *how, struct err *e)
{
	struct entry x = { 0 };
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	bool ok;

	if (fd < 0)
		return err_system(e, "open", path);
	ok = write_new(d, new, fd, e) && inspect(path, new->build_id, &x, e) &&
	     may_put(d, new->build_id, &x, how, e);
	if (ok && *how != DEBUGINFO_THERE)
		ok = fsync(fd) == 0 ? keep(d, new, &x, path, e) : err_system(e, "fsync", path);
	close(fd);
	return ok;
}

bool debuginfo_put(struct debuginfo *d, const struct debuginfo_new *new, enum debuginfo_put *how,
		   struct err *e)
{
	char *path;
	bool ok;

	if (!debuginfo_is_id(new->build_id))
		return err_set(e, ERR_USAGE,
			       "\"%.*s\" is no build id: %d to %d digits 0-9a-f, as file(1) tells",
			       STR_ARG(new->build_id), DEBUGINFO_ID_MIN, DEBUGINFO_ID_MAX);
	path = join(d->dir, NEW_NAME);
	pthread_mutex_lock(&d->putting);
	ok = write_and_keep(d, new, path, how, e);
	unlink(path); /* if it is still there */
	pthread_mutex_unlock(&d->putting);
	free(path);
	return ok;
}

/* ---- asking */

bool debuginfo_find(struct debuginfo *d, struct str build_id, struct arena *a,
		    struct debuginfo_file *out)
{
	const struct entry *x;

	pthread_mutex_lock(&d->lock);
	x = entry_of(d, build_id);
	if (x)
		*out = file_of(a, x);
	pthread_mutex_unlock(&d->lock);
	return x;
}

void debuginfo_use(struct debuginfo *d, struct str build_id)
{
	struct timespec times[2] = { { .tv_nsec = UTIME_NOW }, { .tv_nsec = UTIME_OMIT } };
	struct entry *x;

	pthread_mutex_lock(&d->lock);
	x = entry_of(d, build_id);
	if (x) {
		x->used = time_now();
		utimensat(AT_FDCWD, x->path, times, 0);
	}
	pthread_mutex_unlock(&d->lock);
}

void debuginfo_unreadable(struct debuginfo *d, struct str build_id)
{
	struct entry *x;

	pthread_mutex_lock(&d->lock);
	x = entry_of(d, build_id);
	if (x)
		x->is_unreadable = true;
	pthread_mutex_unlock(&d->lock);
}

size_t debuginfo_list(struct debuginfo *d, struct arena *a, struct debuginfo_file **files)
{
	size_t n;

	pthread_mutex_lock(&d->lock);
	n = d->entries.n;
	*files = arena_many(a, n + 1, struct debuginfo_file);
	for (size_t i = 0; i < n; i++)
		(*files)[i] = file_of(a, &d->entries.at[i]);
	pthread_mutex_unlock(&d->lock);
	return n;
}

bool debuginfo_drop(struct debuginfo *d, struct str build_id)
{
	struct entry *x;
	bool is_there;

	pthread_mutex_lock(&d->lock);
	x = entry_of(d, build_id);
	is_there = x && unlink(x->path) == 0;
	if (x)
		remove_entry(d, x);
	pthread_mutex_unlock(&d->lock);
	return is_there;
}

void debuginfo_stats(struct debuginfo *d, struct debuginfo_stats *out)
{
	pthread_mutex_lock(&d->lock);
	*out = (struct debuginfo_stats){ .nfiles = d->entries.n,
					 .bytes = d->bytes,
					 .nexpired = d->nexpired };
	pthread_mutex_unlock(&d->lock);
}

/* ---- expiry */

static bool is_old(const struct entry *x, int64_t before)
{
	return x->since < before && x->used < before;
}

bool debuginfo_has_old(struct debuginfo *d, int64_t before)
{
	bool has = false;

	pthread_mutex_lock(&d->lock);
	for (size_t i = 0; i < d->entries.n && !has; i++)
		has = is_old(&d->entries.at[i], before);
	pthread_mutex_unlock(&d->lock);
	return has;
}

static int by_text(const void *a, const void *b)
{
	return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

void debuginfo_expire(struct debuginfo *d, int64_t before, const struct str *needed, size_t n)
{
	pthread_mutex_lock(&d->lock);
	for (size_t i = d->entries.n; i > 0; i--) {
		struct entry *x = &d->entries.at[i - 1];
		struct str id = str_of(x->build_id);

		if (!is_old(x, before) || (n && bsearch(&id, needed, n, sizeof(id), by_text)))
			continue;
		log_info("debug info of %s (%s) is dropped: no profile needs it any more", x->name,
			 x->build_id);
		unlink(x->path);
		remove_entry(d, x);
		d->nexpired++;
	}
	pthread_mutex_unlock(&d->lock);
}
