#include "server/debug_child.h"

#include <string.h>
#include <sys/resource.h>

#include "base/child.h"
#include "store/store.h"

enum { MAX_QUESTION = 256 << 20, MAX_DATA_MB = 2048 };

/* The first byte of an answer. */
enum { ANSWER_PROFILE = 'P', ANSWER_ERROR = 'E' };

struct profile debug_child_profile(struct arena *a, struct strings *strings)
{
	struct profile p = { .strings = strings };

	p.types = arena_new(a, struct value_type);
	p.types[0].type = p.types[0].unit = strings_add(strings, STR("none"));
	p.ntypes = 1;
	return p;
}

/* ---- the parent's side */

static bool read_answer(struct str answer, struct arena *a, struct strings *strings,
			struct profile *out, struct err *e)
{
	struct parse_params params = { .threads = 1 };

	if (answer.n && answer.p[0] == ANSWER_ERROR) {
		answer = str_from(answer, 1);
		return err_set(e, ERR_FORMAT, "%.*s", STR_ARG(answer));
	}
	if (!answer.n || answer.p[0] != ANSWER_PROFILE)
		return err_set(e, ERR_IO, "it said nothing");
	if (!profile_parse(out, a, strings, str_from(answer, 1), &params, e))
		return false;
	for (uint32_t i = 0; i < out->nlocations; i++)
		if (out->locations[i].id != i + 1)
			return err_set(e, ERR_FORMAT, "it said something else");
	return true;
}

bool debug_child_ask(const struct debug_child *c, const struct profile *question, struct arena *a,
		     struct strings *strings, struct profile *out, struct err *e)
{
	const char *id = str_dup(a, c->build_id);
	const char *argv[] = { "kiln", "debuginfo", c->command, c->path, id, NULL };
	/* Nothing of ours: neither the agent (LD_PRELOAD) nor other servers to ask. */
	const char *const environment[] = { "LC_ALL=C", NULL };
	/* By its name, this program may be another one since it was upgraded, or none. */
	struct child_params params = { .argv = argv,
				       .path = c->program ? c->program : "/proc/self/exe",
				       .environment = environment,
				       .max_seconds = c->max_seconds,
				       .max_output = c->max_bytes,
				       .stop = c->stop };
	struct buf bytes = { 0 }, answer = { 0 };
	bool ok;

	profile_encode(&bytes, question);
	params.input = buf_view(&bytes);
	ok = child_run(&params, &answer, e) ||
	     err_wrap(e, "the program that reads debug information");
	ok = ok && read_answer(buf_view(&answer), a, strings, out, e);
	buf_release(&bytes);
	buf_release(&answer);
	return ok;
}

/* ---- the child's side */

/* Memory, not time, is what hostile files take first. Sanitizers need more than that. */
static void limit_myself(void)
{
	struct rlimit none = { 0, 0 }, cpu = { DEBUG_CHILD_SECONDS, DEBUG_CHILD_SECONDS };

	setrlimit(RLIMIT_CORE, &none);
	setrlimit(RLIMIT_CPU, &cpu);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	setrlimit(RLIMIT_DATA,
		  &(struct rlimit){ (rlim_t)MAX_DATA_MB << 20, (rlim_t)MAX_DATA_MB << 20 });
#endif
}

void debug_child_put_frames(struct profile_names *names, uint32_t location,
			    const struct symbol_frame *frames, size_t n)
{
	struct symbol_frame some[STORE_MAX_FRAMES];

	if (n > STORE_MAX_FRAMES) { /* files may claim any number */
		memcpy(some, frames, sizeof(some));
		some[STORE_MAX_FRAMES - 1] = frames[n - 1];
		frames = some;
		n = STORE_MAX_FRAMES;
	}
	if (n)
		profile_names_put(names, location, frames, n);
}

bool debug_child_check(const struct object *o, struct str build_id, struct err *e)
{
	return str_eq(o->build_id, build_id) ||
	       err_set(e, ERR_NOTFOUND, "it is of another build: %.*s", STR_ARG(o->build_id));
}

static bool read_question(struct arena *a, struct strings *strings, struct str question,
			  struct profile *p, struct err *e)
{
	if (!profile_read(p, a, strings, question, MAX_QUESTION, e))
		return false;
	for (uint32_t i = 0; i < p->nlocations; i++)
		if (p->locations[i].mapping == NONE)
			return err_set(e, ERR_FORMAT, "location %u has no mapping", i);
	return true;
}

void debug_child_answer(debug_child_work *work, const char *path, struct str build_id,
			struct str question, struct buf *out)
{
	struct arena a = { 0 };
	struct strings strings;
	struct profile p;
	struct err e;

	limit_myself();
	strings_init(&strings);
	if (read_question(&a, &strings, question, &p, &e) && work(&a, &p, path, build_id, &e)) {
		buf_char(out, ANSWER_PROFILE);
		profile_encode(out, &p);
	} else {
		buf_char(out, ANSWER_ERROR);
		buf_puts(out, e.text);
	}
	strings_release(&strings);
	arena_release(&a);
}
