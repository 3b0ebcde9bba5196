#include "server/names_child.h"

#include <string.h>
#include <sys/resource.h>

#include "base/child.h"
#include "store/store.h"
#include "symbol/symbol.h"

enum {
	MAX_SECONDS = 60,
	MAX_ANSWER = 32 << 20,
	MAX_QUESTION = 256 << 20,
	MAX_DATA_MB = 2048,
};
/* Where files are taken to be loaded; no linker links anything to there. */
#define BIAS (UINT64_C(1) << 44)

/* The first byte of an answer. */
enum { ANSWER_NAMES = 'N', ANSWER_ERROR = 'E' };

/* ---- the parent's side */

static struct mapping mapping_of(const struct names_place *at)
{
	if (at->key & NAMES_IS_OWN)
		return (struct mapping){ 0 };
	return (struct mapping){ .start = BIAS + at->offset,
				 .limit = BIAS + at->offset + at->size,
				 .offset = at->offset };
}

static bool same_mapping(const struct mapping *x, const struct mapping *y)
{
	return x->start == y->start && x->limit == y->limit && x->offset == y->offset;
}

static struct profile question_of(const struct names_job *job, struct arena *a,
				  struct strings *strings)
{
	struct profile p = { .strings = strings };

	p.types = arena_new(a, struct value_type);
	p.types[0].type = p.types[0].unit = strings_add(strings, STR("none"));
	p.ntypes = 1;
	p.mappings = arena_many(a, job->n + 1, struct mapping);
	p.locations = arena_many(a, job->n + 1, struct location);
	for (size_t i = 0; i < job->n; i++) {
		const struct names_place *at = &job->places[i];
		struct mapping m = mapping_of(at);

		if (!p.nmappings || !same_mapping(&p.mappings[p.nmappings - 1], &m)) {
			m.id = p.nmappings + 1;
			p.mappings[p.nmappings++] = m;
		}
		p.locations[i] = (struct location){
			.id = i + 1,
			.mapping = p.nmappings - 1,
			.address =
				at->key & NAMES_IS_OWN ? at->key & ~NAMES_IS_OWN : BIAS + at->key,
		};
	}
	p.nlocations = (uint32_t)job->n;
	return p;
}

static bool read_answer(struct str answer, size_t n, struct arena *a, struct strings *strings,
			struct profile *out, struct err *e)
{
	struct parse_params params = { .threads = 1 };

	if (answer.n && answer.p[0] == ANSWER_ERROR) {
		answer = str_from(answer, 1);
		return err_set(e, ERR_FORMAT, "%.*s", STR_ARG(answer));
	}
	if (!answer.n || answer.p[0] != ANSWER_NAMES)
		return err_set(e, ERR_IO, "it said nothing");
	if (!profile_parse(out, a, strings, str_from(answer, 1), &params, e))
		return false;
	if (out->nlocations != n)
		return err_set(e, ERR_FORMAT, "it said something else");
	for (uint32_t i = 0; i < out->nlocations; i++)
		if (out->locations[i].id != i + 1)
			return err_set(e, ERR_FORMAT, "it said something else");
	return true;
}

bool names_child_ask(const struct names_job *job, struct arena *a, struct strings *strings,
		     struct profile *out, struct err *e)
{
	const char *id = str_dup(a, job->build_id);
	const char *argv[] = { "kiln", "debuginfo", "names", job->path, id, NULL };
	/* Nothing of ours: neither the agent (LD_PRELOAD) nor other servers to ask. */
	const char *const environment[] = { "LC_ALL=C", NULL };
	/* By its name, this program may be another one since it was upgraded, or none. */
	struct child_params params = { .argv = argv,
				       .path = job->program ? job->program : "/proc/self/exe",
				       .environment = environment,
				       .max_seconds = MAX_SECONDS,
				       .max_output = MAX_ANSWER,
				       .stop = job->stop };
	struct profile p = question_of(job, a, strings);
	struct buf question = { 0 }, answer = { 0 };
	bool ok;

	profile_encode(&question, &p);
	params.input = buf_view(&question);
	ok = child_run(&params, &answer, e) ||
	     err_wrap(e, "the program that reads debug information");
	ok = ok && read_answer(buf_view(&answer), job->n, a, strings, out, e);
	buf_release(&question);
	buf_release(&answer);
	return ok;
}

/* ---- the child's side */

/* Memory, not time, is what hostile files take first. Sanitizers need more than that. */
static void limit_myself(void)
{
	struct rlimit none = { 0, 0 }, cpu = { MAX_SECONDS, MAX_SECONDS };

	setrlimit(RLIMIT_CORE, &none);
	setrlimit(RLIMIT_CPU, &cpu);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	setrlimit(RLIMIT_DATA,
		  &(struct rlimit){ (rlim_t)MAX_DATA_MB << 20, (rlim_t)MAX_DATA_MB << 20 });
#endif
}

/* Of frames that are too many, those in the middle are left out: files may claim any number. */
static void put_frames(struct profile_names *names, uint32_t location,
		       const struct symbol_frame *frames, size_t n)
{
	struct symbol_frame some[STORE_MAX_FRAMES];

	if (n > STORE_MAX_FRAMES) {
		memcpy(some, frames, sizeof(some));
		some[STORE_MAX_FRAMES - 1] = frames[n - 1];
		frames = some;
		n = STORE_MAX_FRAMES;
	}
	if (n)
		profile_names_put(names, location, frames, n);
}

static void name_locations(struct arena *a, struct profile *p, struct symbolizer *s)
{
	const struct object *o = symbolizer_object(s);
	struct profile_names *names = profile_names_begin(a, p);
	struct err ignored;

	for (uint32_t i = 0; i < p->nlocations; i++) {
		const struct mapping *m = &p->mappings[p->locations[i].mapping];
		struct object_place place = { m->start, m->limit, m->offset, STR("") };
		const struct symbol_frame *frames = NULL;
		uint64_t address;
		size_t n = 0;

		if (object_debug_address(o, &place, p->locations[i].address, &address, &ignored))
			n = symbolizer_find(s, address, &frames);
		put_frames(names, i, frames, n);
	}
	profile_names_end(names);
}

static bool answer(struct arena *a, struct strings *strings, const char *path, struct str build_id,
		   struct str question, struct profile *p, struct err *e)
{
	struct symbolizer_params params = { .detail = SYMBOL_FULL, .leave_unknown = true };
	struct symbolizer *s;
	bool ok;

	if (!profile_read(p, a, strings, question, MAX_QUESTION, e))
		return false;
	for (uint32_t i = 0; i < p->nlocations; i++)
		if (p->locations[i].mapping == NONE)
			return err_set(e, ERR_FORMAT, "location %u has no mapping", i);
	s = symbolizer_open(path, &params, e);
	if (!s)
		return false;
	ok = str_eq(symbolizer_object(s)->build_id, build_id) ||
	     err_set(e, ERR_NOTFOUND, "it is of another build: %.*s",
		     STR_ARG(symbolizer_object(s)->build_id));
	if (ok) {
		name_locations(a, p, s);
		profile_demangle(a, p, DEMANGLE_DEFAULT, false);
	}
	symbolizer_close(s);
	return ok;
}

void names_child_answer(const char *path, struct str build_id, struct str question, struct buf *out)
{
	struct arena a = { 0 };
	struct strings strings;
	struct profile p;
	struct err e;

	limit_myself();
	strings_init(&strings);
	if (answer(&a, &strings, path, build_id, question, &p, &e)) {
		buf_char(out, ANSWER_NAMES);
		profile_encode(out, &p);
	} else {
		buf_char(out, ANSWER_ERROR);
		buf_puts(out, e.text);
	}
	strings_release(&strings);
	arena_release(&a);
}
