#include "symbol/symbol.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/path.h"
#include "base/vec.h"
#include "profile/profile.h"

/* Files of one build id directory that are looked at. */
#define FILES_MAX 1000

struct search {
	struct profile *p;
	struct mapping *m;
	struct str file, base, dir, build_id; /* base and dir are those of file */
	struct buf *warnings;
	struct buf name; /* the candidate's */
};

/* Takes the file in s->name for the mapping, if it is an object file of the right build. */
static bool try_file(struct search *s)
{
	struct object_place place = {
		.start = s->m->start,
		.limit = s->m->limit,
		.offset = s->m->offset,
		.kernel_symbol = profile_str(s->p, s->m->kernel_symbol),
	};
	struct object o;
	struct err ignored;
	bool is_object, is_ours;

	if (memchr(s->name.p, '\0', s->name.n))
		return false;
	buf_char(&s->name, '\0');
	s->name.n--;
	is_object = object_open(&o, s->name.p, &ignored);
	if (!is_object)
		return false;
	is_object = object_check_base(&o, s->name.p, &place, &ignored);
	is_ours = is_object && (s->build_id.n == 0 || str_eq(s->build_id, o.build_id));
	if (is_ours) {
		s->m->file = strings_add(s->p->strings, buf_view(&s->name));
	} else if (is_object) {
		buf_puts(s->warnings, "Ignoring local file ");
		buf_str(s->warnings, buf_view(&s->name));
		buf_puts(s->warnings, ": build-id mismatch (");
		buf_str(s->warnings, s->build_id);
		buf_puts(s->warnings, " != ");
		buf_str(s->warnings, o.build_id);
		buf_puts(s->warnings, ")\n");
	}
	object_close(&o);
	return is_ours;
}

/* Tries the file whose name these parts make; an end marker follows them. */
static bool try_parts(struct search *s, const struct str *parts)
{
	struct buf raw = { 0 };

	for (; parts->p; parts++)
		buf_str(&raw, *parts);
	s->name.n = 0;
	path_clean(&s->name, buf_view(&raw));
	buf_release(&raw);
	return try_file(s);
}

#define TRY(s, ...) try_parts((s), (struct str[]){ __VA_ARGS__, { NULL, 0 } })

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Each file of path/build_id, in order of names. */
static bool try_build_id_files(struct search *s, struct str path)
{
	struct arena arena = { 0 };
	vec(char *) names = { 0 };
	struct dirent *entry;
	bool found = false;
	DIR *d;

	s->name.n = 0;
	path_join(&s->name, path, s->build_id);
	buf_char(&s->name, '\0');
	d = opendir(s->name.p);
	if (!d)
		return false;
	while (names.n < FILES_MAX && (entry = readdir(d)))
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			vec_push(&names, str_dup(&arena, str_of(entry->d_name)));
	closedir(d);
	if (names.n)
		qsort(names.at, names.n, sizeof(*names.at), by_name);
	for (size_t i = 0; i < names.n && !found; i++)
		found = TRY(s, path, STR("/"), s->build_id, STR("/"), str_of(names.at[i]));
	vec_release(&names);
	arena_release(&arena);
	return found;
}

static bool try_build_id(struct search *s, struct str path)
{
	struct str id = s->build_id;

	if (TRY(s, path, STR("/"), id, STR("/"), s->base) || try_build_id_files(s, path))
		return true;
	/* perf's layout, then that of debug packages */
	return TRY(s, path, STR("/"), s->file, STR("/"), id) ||
	       (id.n >= 2 && TRY(s, path, STR("/"), ((struct str){ id.p, 2 }), STR("/"),
				 str_from(id, 2), STR(".debug")));
}

/* The name alone, below another root, and where gdb looks for debug files. */
static bool try_name(struct search *s, struct str path)
{
	return TRY(s, path, STR("/"), s->base) || TRY(s, path, STR("/"), s->file) ||
	       TRY(s, path, STR("/"), s->file, STR(".debug")) ||
	       TRY(s, path, STR("/"), s->dir, STR("/.debug/"), s->base, STR(".debug")) ||
	       TRY(s, path, STR("/usr/lib/debug/"), s->dir, STR("/"), s->base, STR(".debug"));
}

struct dirs {
	struct str *at;
	size_t n;
};

/* The directories of the search list that exist: most runs have none, and then cost nothing. */
static struct dirs search_dirs(struct arena *a, const struct locate_params *params)
{
	struct buf home = { 0 };
	struct str list = str_of(params->binary_path);
	vec(struct str) dirs = { 0 };
	size_t n;

	if (!list.n) {
		path_join(&home, str_of(params->home), STR("pprof/binaries"));
		list = buf_view(&home);
	}
	while (list.p) {
		struct str dir = str_cut(&list, ':');
		const char *name = dir.n ? str_dup(a, dir) : ".";
		struct stat st;

		if (stat(name, &st) == 0 && S_ISDIR(st.st_mode))
			vec_push(&dirs, str_of(name));
	}
	buf_release(&home);
	n = dirs.n;
	return (struct dirs){ vec_adopt(a, &dirs), n };
}

static void locate(struct search *s, const struct dirs *dirs)
{
	struct buf dir = { 0 };

	s->file = profile_str(s->p, s->m->file);
	s->build_id = profile_str(s->p, s->m->build_id);
	if (s->file.n) {
		s->base = path_base(s->file);
		path_dir(&dir, s->file);
		s->dir = buf_view(&dir);
	} else {
		s->file = s->base = s->dir = STR("");
	}
	for (size_t i = 0; i < dirs->n; i++)
		if ((s->build_id.n && try_build_id(s, dirs->at[i])) ||
		    (s->file.n && try_name(s, dirs->at[i])))
			break;
	buf_release(&dir);
}

/* Symbolization needs a mapping to start from. */
static void add_mapping(struct arena *a, struct profile *p)
{
	p->mappings = arena_new(a, struct mapping);
	p->mappings[0].id = 1;
	p->nmappings = 1;
	p->locations = arena_copy(a, p->locations, p->nlocations * sizeof(*p->locations));
	for (uint32_t i = 0; i < p->nlocations; i++)
		p->locations[i].mapping = 0;
}

void profile_locate_binaries(struct arena *a, struct profile *p, const struct locate_params *params,
			     struct buf *warnings)
{
	struct search s = { .p = p, .warnings = warnings };
	struct dirs dirs = search_dirs(a, params);

	if (p->nmappings)
		p->mappings = arena_copy(a, p->mappings, p->nmappings * sizeof(*p->mappings));
	else
		add_mapping(a, p);
	for (uint32_t i = 0; dirs.n && i < p->nmappings; i++) {
		s.m = &p->mappings[i];
		locate(&s, &dirs);
	}
	buf_release(&s.name);
	if (params->exec_name[0])
		p->mappings[0].file = strings_add(p->strings, str_of(params->exec_name));
	if (params->build_id[0] && !p->mappings[0].build_id)
		p->mappings[0].build_id = strings_add(p->strings, str_of(params->build_id));
}
