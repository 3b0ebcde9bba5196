#include "server/code_child.h"

#include "base/vec.h"
#include "report/binary.h"
#include "server/debug_child.h"

enum {
	MAX_SECONDS = 30,     /* somebody waits for it */
	MAX_CODE = 256 << 10, /* bytes that are disassembled at once */
};

#define GNU STR("gnu")
#define INTEL STR("intel")

/* ---- the parent's side */

static void put_style(struct profile *p, struct arena *a, struct asm_style style)
{
	p->comments = arena_many(a, 2, uint32_t);
	if (style.is_gnu)
		p->comments[p->ncomments++] = strings_add(p->strings, GNU);
	if (style.is_intel)
		p->comments[p->ncomments++] = strings_add(p->strings, INTEL);
}

/* Of ranges that are too much, the last and the least are left out. */
static struct profile question_of(const struct code_question *q, struct arena *a,
				  struct strings *strings)
{
	struct profile p = debug_child_profile(a, strings);
	uint64_t left = MAX_CODE;

	put_style(&p, a, q->style);
	p.mappings = arena_new(a, struct mapping);
	p.mappings[p.nmappings++] = (struct mapping){ .id = 1,
						      .start = q->mapping->start,
						      .limit = q->mapping->limit,
						      .offset = q->mapping->offset };
	p.locations = arena_many(a, 2 * q->n, struct location);
	for (size_t i = 0; i < q->n && left; i++) {
		uint64_t size = q->ranges[i].end - q->ranges[i].begin;

		size = size < left ? size : left;
		left -= size;
		for (int k = 0; k < 2; k++, p.nlocations++)
			p.locations[p.nlocations] =
				(struct location){ .id = p.nlocations + 1,
						   .address = q->ranges[i].begin + (k ? size : 0) };
	}
	return p;
}

/* Frames of all functions; strings are copies. */
static struct symbol_frame *read_functions(const struct profile *p, struct arena *a)
{
	struct symbol_frame *functions = arena_many(a, p->nfunctions, struct symbol_frame);

	for (uint32_t i = 0; i < p->nfunctions; i++) {
		const struct function *f = &p->functions[i];

		functions[i].name = str_of(str_dup(a, profile_str(p, f->system_name)));
		functions[i].file = str_of(str_dup(a, profile_str(p, f->filename)));
	}
	return functions;
}

static void read_frames(const struct profile *p, const struct location *l,
			const struct symbol_frame *functions, struct arena *a,
			struct code_instruction *to)
{
	struct symbol_frame *frames = arena_many(a, l->nlines, struct symbol_frame);

	for (uint32_t i = 0; i < l->nlines; i++) {
		const struct line *line = &p->lines[l->first_line + i];

		if (line->function == NONE)
			continue;
		frames[to->nframes] = functions[line->function];
		frames[to->nframes++].line = line->line;
	}
	to->frames = frames;
}

/* Whoever could make the child do as he likes tells lies here: an instruction begins after the one
 * before it, or in another range, and lies in one that was asked for. */
static bool read_instruction(const struct profile *p, const struct profile *question, uint32_t i,
			     struct code_instruction *to)
{
	const struct location *l = &p->locations[i];
	const struct location *next = i + 1 < p->nlocations ? l + 1 : NULL;
	const struct mapping *m = l->mapping == NONE ? NULL : &p->mappings[l->mapping];
	uint64_t begin, end, at;

	if (!m || l->mapping >= question->nlocations / 2)
		return false;
	begin = question->locations[2 * l->mapping].address;
	end = question->locations[2 * l->mapping + 1].address;
	at = l->address - m->offset;
	if (l->address < m->offset || at >= end - begin)
		return false;
	*to = (struct code_instruction){ .address = l->address,
					 .runtime = begin + at,
					 .length = 1 };
	if (!next || next->mapping != l->mapping)
		return !next || (next->mapping != NONE && next->mapping > l->mapping);
	to->length = next->address - l->address;
	return next->address > l->address;
}

static bool read_answer(const struct profile *p, const struct profile *question, struct arena *a,
			struct code *out, struct err *e)
{
	struct symbol_frame *functions = read_functions(p, a);
	bool ok = p->ncomments == p->nlocations;

	out->at = arena_many(a, p->nlocations, struct code_instruction);
	for (uint32_t i = 0; ok && i < p->nlocations; i++) {
		struct code_instruction *to = &out->at[i];

		ok = read_instruction(p, question, i, to);
		to->text = str_of(str_dup(a, profile_str(p, p->comments[i])));
		read_frames(p, &p->locations[i], functions, a, to);
	}
	out->n = ok ? p->nlocations : 0;
	return ok || err_set(e, ERR_FORMAT, "it said something else");
}

bool code_child_ask(const struct code_job *job, struct arena *a, struct code *out, struct err *e)
{
	struct debug_child child = { .program = job->program,
				     .command = "code",
				     .path = job->path,
				     .build_id = job->build_id,
				     .max_seconds = MAX_SECONDS,
				     .max_bytes = job->max_bytes,
				     .stop = job->question->stop };
	struct arena scratch = { 0 };
	struct strings strings;
	struct profile question, answer;
	bool ok;

	strings_init(&strings);
	question = question_of(job->question, &scratch, &strings);
	ok = debug_child_ask(&child, &question, &scratch, &strings, &answer, e) &&
	     read_answer(&answer, &question, a, out, e);
	strings_release(&strings);
	arena_release(&scratch);
	return ok;
}

/* ---- the child's side */

struct reading {
	struct arena *a;
	struct binary binary;
	struct profile *out;
	vec(struct location) locations;
	vec(uint32_t) texts;
};

static struct asm_style style_of(const struct profile *p)
{
	struct asm_style style = { 0 };

	for (uint32_t i = 0; i < p->ncomments; i++) {
		style.is_gnu |= str_eq(profile_str(p, p->comments[i]), GNU);
		style.is_intel |= str_eq(profile_str(p, p->comments[i]), INTEL);
	}
	return style;
}

static bool read_range(struct reading *x, uint64_t begin, uint64_t end, struct err *e)
{
	struct mapping *range = &x->out->mappings[x->out->nmappings];
	struct instructions code = { 0 };
	uint64_t linked = 0;
	struct err outside;

	if (binary_address(&x->binary, begin, &linked, &outside) &&
	    !binary_disassemble(&x->binary, x->a, linked, linked + (end - begin), &code, e))
		return false;
	*range = (struct mapping){
		.id = x->out->nmappings + 1, .start = begin, .limit = end, .offset = linked
	};
	for (size_t i = 0; i < code.n; i++) {
		struct location l = { .id = x->locations.n + 1,
				      .mapping = x->out->nmappings,
				      .address = code.at[i].address };

		vec_push(&x->locations, l);
		vec_push(&x->texts, strings_add(x->out->strings, code.at[i].text));
	}
	x->out->nmappings++;
	return true;
}

static void put_frames(struct reading *x)
{
	struct profile_names *names = profile_names_begin(x->a, x->out);

	for (uint32_t i = 0; i < x->out->nlocations; i++) {
		const struct symbol_frame *frames;
		size_t n = binary_frames(&x->binary, x->out->locations[i].address, &frames);

		debug_child_put_frames(names, i, frames, n);
	}
	profile_names_end(names);
}

static bool read_ranges(struct reading *x, const struct profile *p, struct err *e)
{
	struct profile *out = x->out;
	bool ok = true;

	out->mappings = arena_many(x->a, p->nlocations / 2, struct mapping);
	for (uint32_t i = 0; ok && i + 1 < p->nlocations; i += 2)
		ok = read_range(x, p->locations[i].address, p->locations[i + 1].address, e);
	out->nlocations = (uint32_t)x->locations.n;
	out->locations = vec_adopt(x->a, &x->locations);
	out->ncomments = (uint32_t)x->texts.n;
	out->comments = vec_adopt(x->a, &x->texts);
	if (ok)
		put_frames(x);
	return ok;
}

static bool read_code(struct arena *a, struct profile *p, const char *path, struct str build_id,
		      struct err *e)
{
	struct profile out = debug_child_profile(a, p->strings);
	struct reading x = { .a = a, .out = &out };
	bool ok;

	if (p->nmappings != 1)
		return err_set(e, ERR_FORMAT, "there is not one mapping but %u", p->nmappings);
	p->mappings[0].file = strings_add(p->strings, str_of(path));
	if (!binary_open(&x.binary, p, &p->mappings[0], style_of(p), e))
		return false;
	ok = debug_child_check(&x.binary.object, build_id, e);
	if (ok && !object_contents(&x.binary.object).is_loadable)
		ok = err_set(e, ERR_NOTFOUND, "it has debug information, but no code");
	ok = ok && read_ranges(&x, p, e);
	binary_close(&x.binary);
	*p = out;
	return ok;
}

void code_child_answer(const char *path, struct str build_id, struct str question, struct buf *out)
{
	debug_child_answer(read_code, path, build_id, question, out);
}
