/* files.c - targets that others write into files, in the format of Prometheus' file_sd. */
#include <glob.h>
#include <stdlib.h>

#include "base/small_file.h"
#include "base/vec.h"
#include "collect/targets.h"
#include "collect/tree.h"

enum { MAX_FILES = 1000, MAX_FILE_BYTES = 8 << 20 };

struct file {
	char *path;
	struct file_version version;
	struct arena arena; /* of what was read last without an error */
	struct target_spec *at;
	size_t n;
	struct err problem;
	bool is_there; /* found this time */
};

struct files {
	struct target_source source;
	const char *const *patterns;
	size_t npatterns;
	vec(struct file *) files;
	bool is_told, has_too_many;
};

static void file_free(struct file *f)
{
	arena_release(&f->arena);
	free(f->path);
	free(f);
}

/* Somebody may be writing it right now: what was read before stays until it makes sense. */
static void read_again(struct file *f)
{
	struct arena a = { 0 };
	struct buf text = { 0 };
	struct target_spec *at;
	struct tree tree;
	size_t n;

	f->problem.kind = ERR_NONE;
	if (small_file_read(&text, f->path, MAX_FILE_BYTES, &f->problem) &&
	    ((tree_read(&a, buf_view(&text), &tree, &f->problem) &&
	      targets_read(&a, &tree, false, &at, &n, &f->problem)) ||
	     err_wrap(&f->problem, "%s", f->path))) {
		arena_release(&f->arena);
		f->arena = a;
		f->at = at;
		f->n = n;
		f->problem.kind = ERR_NONE;
	} else {
		arena_release(&a);
	}
	buf_release(&text);
}

static struct file *find_file(struct files *s, const char *path)
{
	for (size_t i = 0; i < s->files.n; i++)
		if (strcmp(s->files.at[i]->path, path) == 0)
			return s->files.at[i];
	return NULL;
}

/* True: it is new, or has changed. */
static bool look_at(struct files *s, const char *path)
{
	struct file_version now = file_version(path);
	struct file *f = find_file(s, path);

	if (f && (f->is_there || file_version_same(&f->version, &now))) {
		f->is_there = true;
		return false;
	}
	if (!f) {
		if (s->files.n == MAX_FILES) {
			s->has_too_many = true;
			return false;
		}
		f = xcalloc(1, sizeof(*f));
		f->path = xmalloc(strlen(path) + 1);
		memcpy(f->path, path, strlen(path) + 1);
		vec_push(&s->files, f);
	}
	f->is_there = true;
	f->version = now;
	read_again(f);
	return true;
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

static void note_problem(struct target_set *out, const struct err *problem)
{
	if (problem->kind != ERR_NONE && out->problem.kind == ERR_NONE)
		out->problem = *problem;
}

static void copy_labels(struct arena *a, struct target_spec *spec)
{
	struct target_label *labels = arena_many(a, spec->nlabels, struct target_label);

	for (size_t i = 0; i < spec->nlabels; i++) {
		const struct target_label *from = &spec->labels[i];

		labels[i].name = (struct str){ str_dup(a, from->name), from->name.n };
		labels[i].value = (struct str){ str_dup(a, from->value), from->value.n };
	}
	spec->labels = labels;
}

static void put_all(struct files *s, struct target_set *out)
{
	struct err too_many;
	size_t n = 0;

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
	for (size_t i = 0; i < s->files.n; i++) {
		const struct file *f = s->files.at[i];

		for (size_t k = 0; k < f->n && out->n < MAX_TARGETS; k++) {
			struct target_spec *to = &out->at[out->n++];

			*to = f->at[k];
			to->address.p = str_dup(&out->arena, to->address);
			copy_labels(&out->arena, to);
		}
	}
}

static bool files_look(struct target_source *source, struct target_set *out)
{
	struct files *s = (struct files *)source;
	bool is_new = !s->is_told;

	for (size_t i = 0; i < s->files.n; i++)
		s->files.at[i]->is_there = false;
	s->has_too_many = false;
	for (size_t i = 0; i < s->npatterns; i++) {
		glob_t found = { 0 };

		if (glob(s->patterns[i], 0, NULL, &found) == 0)
			for (size_t k = 0; k < found.gl_pathc; k++)
				is_new = look_at(s, found.gl_pathv[k]) || is_new;
		globfree(&found);
	}
	is_new = drop_missing(s) || is_new;
	s->is_told = true;
	if (is_new)
		put_all(s, out);
	return is_new;
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

	*s = (struct files){ .source = { files_look, files_free },
			     .patterns = patterns,
			     .npatterns = n };
	return &s->source;
}
