#include "server/code.h"

#include "base/path.h"
#include "server/code_child.h"
#include "server/debuginfo.h"
#include "server/limits.h"
#include "server/log.h"

enum {
	WAIT_MS = 10000,
	MAX_LISTING = 64 << 20,
	LISTING_SHARE = 4, /* of the requests' memory, at most */
	ANSWER_SHARE = 4,  /* of that: it is read, and then becomes a part of a page */
};
#define KERNEL_HALF (UINT64_C(1) << 63)

static bool find_upload(struct server *s, struct str build_id, struct arena *a,
			struct debuginfo_file *file)
{
	return debuginfo_find(s->debuginfo, build_id, a, file) && file->has.is_loadable &&
	       !file->is_unreadable;
}

static bool is_local(const struct server *s, struct str path)
{
	return s->options->symbolize_local && path.n && path.p[0] == '/';
}

static bool has(void *ctx, const struct profile *p, const struct mapping *m)
{
	struct server *s = ctx;
	struct str build_id = profile_str(p, m->build_id);
	struct debuginfo_file file;
	struct arena a = { 0 };
	bool found;

	if (!debuginfo_is_id(build_id) || m->start >= KERNEL_HALF || mapping_is_system(p, m))
		return false;
	found = is_local(s, profile_str(p, m->file)) || find_upload(s, build_id, &a, &file);
	arena_release(&a);
	return found;
}

/* Of what was uploaded, then of what is here. */
static bool read_any(struct server *s, struct arena *a, const struct code_question *q,
		     size_t max_bytes, struct code *out, struct err *e)
{
	struct str file = profile_str(q->p, q->mapping->file);
	struct code_job job = { .build_id = profile_str(q->p, q->mapping->build_id),
				.question = q,
				.max_bytes = max_bytes };
	struct debuginfo_file upload;

	if (find_upload(s, job.build_id, a, &upload)) {
		debuginfo_use(s->debuginfo, job.build_id);
		job.path = upload.path;
		if (code_child_ask(&job, a, out, e))
			return true;
		if (!is_local(s, file) || stop_asked(q->stop))
			return false;
	}
	job.path = str_dup(a, file);
	return code_child_ask(&job, a, out, e);
}

static bool read_in_turn(struct server *s, struct arena *a, const struct code_question *q,
			 struct code *out, struct err *e)
{
	size_t max_bytes = (size_t)code_listing_bytes(s) / ANSWER_SHARE;
	bool ok;

	if (!turns_take(s->limits->code, STR(""), WAIT_MS, q->stop))
		return err_set(e, ERR_LIMIT, "others are being shown instructions; try again");
	ok = read_any(s, a, q, max_bytes, out, e);
	turns_give(s->limits->code, STR(""));
	return ok;
}

static void read_code(void *ctx, struct arena *a, const struct code_question *q, struct code *out)
{
	struct str file = profile_str(q->p, q->mapping->file);
	struct err e;

	if (read_in_turn(ctx, a, q, out, &e) || stop_asked(q->stop))
		return;
	log_error("instructions of %.*s (%.*s) cannot be read: %s", STR_ARG(file),
		  STR_ARG(profile_str(q->p, q->mapping->build_id)), e.text);
	if (q->warnings)
		buf_printf(q->warnings, "No instructions of %.*s: %s\n", STR_ARG(path_base(file)),
			   e.text);
}

struct code_reader code_reader_of(struct server *s)
{
	return (struct code_reader){ .has = has, .read = read_code, .ctx = s };
}

uint64_t code_listing_bytes(const struct server *s)
{
	uint64_t most = s->limits->memory.total / LISTING_SHARE;

	return most < MAX_LISTING ? most : MAX_LISTING;
}
