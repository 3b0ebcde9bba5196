#include "fetch/save.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/path.h"

enum { MAX_COPIES = 9999 };

/* Another process may make it at the same time. */
static bool make_one(const char *path, struct err *e)
{
	struct stat st;

	if (mkdir(path, 0755) == 0)
		return true;
	if (errno != EEXIST)
		return err_system(e, "mkdir", path);
	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		return true;
	errno = ENOTDIR;
	return err_system(e, "mkdir", path);
}

bool save_make_directory(const char *path, struct err *e)
{
	struct arena scratch = { 0 };
	char *part = str_dup(&scratch, str_of(path));
	bool ok = true;

	for (char *end = part + 1; ok && *part; end++) {
		char kept = *end;

		if (kept && kept != '/')
			continue;
		*end = '\0';
		ok = make_one(part, e);
		*end = kept;
		if (!kept)
			break;
	}
	arena_release(&scratch);
	return ok;
}

static char *find_directory(struct arena *a, const struct save_places *places, struct buf *warnings)
{
	struct buf in_home = { 0 };
	const char *dirs[3] = { places->pprof_tmpdir, "",
				*places->tmpdir ? places->tmpdir : "/tmp" };
	struct err e;

	if (*places->home)
		path_join(&in_home, str_of(places->home), STR("pprof"));
	dirs[1] = str_dup(a, buf_view(&in_home));
	buf_release(&in_home);
	for (size_t i = 0; i < 3; i++) {
		char *dir = str_dup(a, str_of(dirs[i]));

		if (!*dir)
			continue;
		if (save_make_directory(dir, &e))
			return dir;
		buf_printf(warnings, "Could not use temp dir %s: %s\n", dir, e.text);
	}
	return NULL;
}

/* Names come from a server: they may not lead to another directory. */
static void put_name(struct buf *out, struct str name)
{
	for (size_t i = 0; i < name.n; i++)
		buf_char(out,
			 name.p[i] == '/' || iscntrl((unsigned char)name.p[i]) ? '_' : name.p[i]);
	buf_char(out, '.');
}

static void put_prefix(struct buf *out, const struct profile *p)
{
	buf_puts(out, "pprof.");
	if (p->nmappings && p->mappings[0].file)
		put_name(out, path_base(profile_str(p, p->mappings[0].file)));
	for (uint32_t i = 0; i < p->ntypes; i++)
		put_name(out, profile_str(p, p->types[i].type));
}

/* The first of PREFIX001.pb.gz and so on that does not exist yet. */
static int create_file(struct arena *a, const char *dir, struct str prefix, char **path,
		       struct err *e)
{
	for (int i = 1; i <= MAX_COPIES; i++) {
		struct buf name = { 0 }, full = { 0 };
		int fd;

		buf_printf(&name, "%.*s%03d.pb.gz", STR_ARG(prefix), i);
		path_join(&full, str_of(dir), buf_view(&name));
		*path = str_dup(a, buf_view(&full));
		buf_release(&name);
		buf_release(&full);
		fd = open(*path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		if (fd >= 0)
			return fd;
		if (errno != EEXIST) {
			err_system(e, "open", *path);
			return -1;
		}
	}
	err_set(e, ERR_LIMIT, "could not create file of the form %.*s001.pb.gz", STR_ARG(prefix));
	return -1;
}

static bool write_profile(const struct profile *p, int fd, struct err *e)
{
	struct buf out = { 0 };
	bool ok;

	profile_encode_gzip(&out, p);
	buf_to_fd(&out, fd);
	ok = buf_flush(&out, e);
	buf_release(&out);
	return ok;
}

bool profile_save_copy(const struct profile *p, const struct save_places *places,
		       struct buf *warnings, struct err *e)
{
	struct arena scratch = { 0 };
	char *dir = find_directory(&scratch, places, warnings), *path;
	struct buf prefix = { 0 };
	struct err why;
	bool ok;
	int fd;

	if (!dir) {
		arena_release(&scratch);
		return err_set(e, ERR_IO, "failed to identify temp dir");
	}
	put_prefix(&prefix, p);
	fd = create_file(&scratch, dir, buf_view(&prefix), &path, &why);
	ok = fd >= 0 && write_profile(p, fd, &why);
	if (fd >= 0)
		close(fd);
	if (ok)
		buf_printf(warnings, "Saved profile in %s\n", path);
	else
		buf_printf(warnings, "Could not save profile: %s\n", why.text);
	buf_release(&prefix);
	arena_release(&scratch);
	return true;
}
