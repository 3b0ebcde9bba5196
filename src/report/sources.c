#include "report/sources.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#define CACHE_MAX_BYTES (256 << 20)

bool sources_open(struct sources *s, const struct report_run *r, struct err *e)
{
	*s = (struct sources){ .params = { .trim_path = r->params->trim_path,
					   .source_path = r->params->source_path },
			       .max_bytes = CACHE_MAX_BYTES };
	if (!s->params.source_path[0]) {
		char *cwd = getcwd(NULL, 0);

		if (!cwd)
			return err_set(e, ERR_IO, "could not stat current dir: %s",
				       strerrordesc_np(errno));
		s->params.source_path = arena_adopt(r->a, cwd);
	}
	strings_init(&s->paths);
	return true;
}

void sources_close(struct sources *s)
{
	strings_release(&s->paths);
	arena_release(&s->arena);
	free(s->all);
}

static size_t source_bytes(const struct source_file *f)
{
	size_t bytes = f->nlines * sizeof(*f->lines);

	for (size_t i = 0; i < f->nlines; i++)
		bytes += f->lines[i].n + 1;
	return bytes;
}

/* Room for the source of every path. */
static struct source *room_for(struct sources *s, uint32_t path)
{
	if (path >= s->nall) {
		size_t n = s->paths.cap;

		s->all = xrealloc(s->all, n * sizeof(*s->all));
		memset(s->all + s->nall, 0, (n - s->nall) * sizeof(*s->all));
		s->nall = n;
	}
	return &s->all[path];
}

const struct source *sources_find(struct sources *s, struct str path)
{
	struct source *source = room_for(s, strings_add(&s->paths, path));
	struct err e;

	if (source->is_read)
		return source;
	if (s->bytes > s->max_bytes) {
		arena_release(&s->arena);
		memset(s->all, 0, s->nall * sizeof(*s->all));
		s->bytes = 0;
	}
	if (s->allows && !s->allows(s->allows_ctx, path))
		source->error = STR("not shown: the profile of the command line does not name it");
	else if (!source_read(&s->arena, &source->file, path, &s->params, &e))
		source->error = str_of(str_dup(&s->arena, str_of(e.text)));
	s->bytes += source_bytes(&source->file);
	source->is_read = true;
	return source;
}
