/* files.c - targets that others write into files, in the format of Prometheus' file_sd. */
#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/small_file.h"
#include "base/vec.h"
#include "base/yaml.h"
#include "collect/targets.h"

enum { MAX_FILES = 1000, MAX_FILE_BYTES = 8 << 20 };

struct file {
	char *path;
	struct file_version version;
	struct arena arena; /* of what was read last without an error */
	struct target_spec *at;
	size_t n;
	struct err problem;
	bool is_there;	/* found this time */
	bool is_unread; /* it could not be; maybe next time, though it has not changed */
};

struct files {
	struct target_source source;
	const char *const *patterns;
	size_t npatterns;
	vec(struct file *) files;
	struct err problem; /* of patterns: which files there are is not known */
	bool is_told, has_too_many;
};

static void file_free(struct file *f)
{
	arena_release(&f->arena);
	free(f->path);
	free(f);
}

/* ---- one file */

/* An empty one is most likely about to be written. */
static bool read_targets(struct file *f, struct arena *scratch, struct str text)
{
	struct arena a = { 0 };
	struct target_spec *at;
	struct tree tree;
	size_t n;

	if (!tree_read(scratch, text, &tree, &f->problem))
		return false;
	if (tree.kind == TREE_TEXT && !tree.text.n)
		return tree_fail(&tree, &f->problem, "it is empty; write [] for no targets");
	if (!targets_read(scratch, &tree, false, &at, &n, &f->problem))
		return false;
	f->at = arena_many(&a, n, struct target_spec);
	f->n = n;
	targets_copy(&a, f->at, at, n);
	arena_release(&f->arena);
	f->arena = a;
	return true;
}

/* Somebody may be writing it right now: what was read before stays until it makes sense. */
static void read_again(struct file *f)
{
	struct arena scratch = { 0 };
	struct buf text = { 0 };

	f->problem.kind = ERR_NONE;
	f->is_unread = !small_file_read(&text, f->path, MAX_FILE_BYTES, &f->problem);
	if (!f->is_unread && !read_targets(f, &scratch, buf_view(&text)))
		err_wrap(&f->problem, "%s", f->path);
	buf_release(&text);
	arena_release(&scratch);
}

static struct file *find_file(struct files *s, const char *path)
{
	for (size_t i = 0; i < s->files.n; i++)
		if (strcmp(s->files.at[i]->path, path) == 0)
			return s->files.at[i];
	return NULL;
}

static struct file *add_file(struct files *s, const char *path)
{
	struct file *f;

	if (s->files.n == MAX_FILES) {
		s->has_too_many = true;
		return NULL;
	}
	f = xcalloc(1, sizeof(*f));
	f->path = xmalloc(strlen(path) + 1);
	memcpy(f->path, path, strlen(path) + 1);
	vec_push(&s->files, f);
	return f;
}

static bool is_other_problem(const struct err *a, const struct err *b)
{
	return a->kind != b->kind || (a->kind != ERR_NONE && strcmp(a->text, b->text) != 0);
}

/* True: it is new, or has changed. */
static bool look_at(struct files *s, const char *path)
{
	struct file_version now = file_version(path);
	struct file *f = find_file(s, path);
	bool was_unread = f && f->is_unread;
	struct err before;

	if (f && (f->is_there || (!f->is_unread && file_version_same(&f->version, &now)))) {
		f->is_there = true;
		return false;
	}
	if (!f)
		f = add_file(s, path);
	if (!f)
		return false;
	before = f->problem;
	f->is_there = true;
	f->version = now;
	read_again(f);
	return !(was_unread && f->is_unread) || is_other_problem(&before, &f->problem);
}

static bool drop_missing(struct files *s)
{
	size_t n = 0;
	bool has_dropped;

	for (size_t i = 0; i < s->files.n; i++) {
		if (s->files.at[i]->is_there)
			s->files.at[n++] = s->files.at[i];
		else
			file_free(s->files.at[i]);
	}
	has_dropped = n < s->files.n;
	s->files.n = n;
	return has_dropped;
}

/* ---- patterns */

/* A folder that is not there has no files; of one that cannot be read nobody knows. */
static int is_unknown(const char *path, int error)
{
	(void)path;
	errno = error;
	return error != ENOENT && error != ENOTDIR;
}

/* The name of one file is found whether it is there or not. */
static bool is_gone(const char *path)
{
	struct stat st;

	return stat(path, &st) != 0 && (errno == ENOENT || errno == ENOTDIR);
}

/* False: what it finds cannot be told. */
static bool look_for(struct files *s, const char *pattern, bool *is_new)
{
	glob_t found = { 0 };
	int result;

	errno = 0;
	result = glob(pattern, GLOB_NOMAGIC, is_unknown, &found);
	if (result != 0 && result != GLOB_NOMATCH) {
		errno = result == GLOB_NOSPACE ? ENOMEM : errno;
		err_system(&s->problem, "glob", pattern);
	}
	for (size_t i = 0; result == 0 && i < found.gl_pathc; i++)
		if (!is_gone(found.gl_pathv[i]))
			*is_new = look_at(s, found.gl_pathv[i]) || *is_new;
	globfree(&found);
	return result == 0 || result == GLOB_NOMATCH;
}

/* ---- all of them */

static void note_problem(struct target_set *out, const struct err *problem)
{
	if (problem->kind != ERR_NONE && out->problem.kind == ERR_NONE)
		out->problem = *problem;
}

static void put_all(struct files *s, struct target_set *out)
{
	struct err too_many;
	size_t n = 0;

	note_problem(out, &s->problem);
	for (size_t i = 0; i < s->files.n; i++) {
		n += s->files.at[i]->n;
		note_problem(out, &s->files.at[i]->problem);
	}
	if (n > MAX_TARGETS || s->has_too_many) {
		err_set(&too_many, ERR_LIMIT,
			"files have more than %d targets, or are more than %d", MAX_TARGETS,
			MAX_FILES);
		note_problem(out, &too_many);
	}
	out->at = arena_many(&out->arena, n < MAX_TARGETS ? n : MAX_TARGETS, struct target_spec);
	for (size_t i = 0; i < s->files.n && out->n < MAX_TARGETS; i++) {
		const struct file *f = s->files.at[i];
		size_t left = MAX_TARGETS - out->n, more = f->n < left ? f->n : left;

		targets_copy(&out->arena, out->at + out->n, f->at, more);
		out->n += more;
	}
}

static bool files_look(struct target_source *source, struct target_set *out)
{
	struct files *s = (struct files *)source;
	struct err before = s->problem;
	bool is_new = !s->is_told, is_known = true;

	for (size_t i = 0; i < s->files.n; i++)
		s->files.at[i]->is_there = false;
	s->has_too_many = false;
	s->problem.kind = ERR_NONE;
	for (size_t i = 0; i < s->npatterns; i++)
		is_known = look_for(s, s->patterns[i], &is_new) && is_known;
	if (is_known)
		is_new = drop_missing(s) || is_new;
	is_new = is_other_problem(&before, &s->problem) || is_new;
	s->is_told = true;
	if (is_new)
		put_all(s, out);
	return is_new;
}

/* Those that the patterns do not find any more go when it looks. */
static void files_inherit(struct target_source *source, struct target_source *old)
{
	struct files *s = (struct files *)source, *from = (struct files *)old;

	for (size_t i = 0; i < from->files.n; i++)
		vec_push(&s->files, from->files.at[i]);
	from->files.n = 0;
}

static void files_free(struct target_source *source)
{
	struct files *s = (struct files *)source;

	for (size_t i = 0; i < s->files.n; i++)
		file_free(s->files.at[i]);
	vec_release(&s->files);
	free(s);
}

struct target_source *source_files_new(const char *const *patterns, size_t n)
{
	struct files *s = xcalloc(1, sizeof(*s));

	*s = (struct files){
		.source = { .look = files_look, .inherit = files_inherit, .free = files_free },
		.patterns = patterns,
		.npatterns = n
	};
	return &s->source;
}
