#include "report/annotate.h"

#include <stdlib.h>

#include "base/number.h"
#include "base/path.h"
#include "base/vec.h"
#include "report/binary.h"

/* Code before and after a sample that is shown with it. */
#define EXPAND 500
#define RANGES_MAX 25
/* An instruction of no line belongs to that of one so near before it. */
#define NEIGHBOURHOOD 32
/* Lines of one function with fewer than that between them are shown together. */
#define MERGE_LINES 20
#define CONTEXT_LINES 5
/* No source has more; what does is taken as having no line. */
#define LINE_MAX INT32_MAX

/* What was sampled at an address. */
struct weight {
	uint64_t address;
	int64_t flat, cum;
	uint32_t location; /* the first that is interesting, or NONE */
};

/* Code that is close together and of one mapping. */
struct hot_range {
	uint64_t begin, end;
	int64_t score;
	uint32_t mapping;
};

struct name {
	uint32_t pretty; /* what to show for it, 0 for itself */
	bool is_interesting;
};

/* The binary of a mapping. */
struct mapped_binary {
	struct binary binary;
	enum { UNTRIED, OPEN, MISSING, ELSEWHERE } state;
};

struct annotator {
	struct report_run *r;
	struct annotation *out;
	const struct annotate_params *params;
	bool has_address;
	uint64_t address;
	unsigned char *verdicts; /* of functions */
	unsigned char *mapping_verdicts;
	vec(struct name) names;		/* by string of the annotation */
	struct mapped_binary *binaries; /* by mapping */
	vec(struct weight) weights;
	vec(struct annotated_instruction) instructions;
	vec(struct annotated_use) uses;
	vec(struct source_place) calls;
	bool is_any_interesting;
};

/* ---- what is interesting */

enum { UNKNOWN, YES, NO };

static bool is_match(const struct annotator *x, uint32_t string)
{
	return regex_match(x->r->params->regex, profile_str(x->r->p, string));
}

static bool matches_function(struct annotator *x, uint32_t function)
{
	const struct function *f;
	unsigned char *verdict;

	if (function == NONE)
		return false;
	f = &x->r->p->functions[function];
	verdict = &x->verdicts[function];
	if (*verdict == UNKNOWN)
		*verdict = is_match(x, f->name) || is_match(x, f->system_name) ||
					   is_match(x, f->filename)
				   ? YES
				   : NO;
	return *verdict == YES;
}

static bool matches_mapping(struct annotator *x, uint32_t mapping)
{
	unsigned char *verdict;

	if (mapping == NONE)
		return false;
	verdict = &x->mapping_verdicts[mapping];
	if (*verdict == UNKNOWN)
		*verdict = is_match(x, x->r->p->mappings[mapping].file) ? YES : NO;
	return *verdict == YES;
}

/* The entry of a name; a pointer that is good until the next call. */
static struct name *name_of(struct annotator *x, struct str text, uint32_t *string)
{
	uint32_t i = strings_add(&x->out->strings, text);

	while (x->names.n <= i)
		vec_push(&x->names, (struct name){ 0 });
	if (string)
		*string = i;
	return &x->names.at[i];
}

static void mark_name(struct annotator *x, struct str text)
{
	if (text.n)
		name_of(x, text, NULL)->is_interesting = true;
}

static bool mark_line(struct annotator *x, const struct line *line)
{
	const struct function *f;

	if (line->function == NONE)
		return false;
	f = &x->r->p->functions[line->function];
	mark_name(x, profile_str(x->r->p, f->name));
	mark_name(x, profile_str(x->r->p, f->system_name));
	return true;
}

/* Marks the functions at a location that were asked for. False if there are none. */
static bool mark_location(struct annotator *x, const struct location *l, uint64_t address)
{
	const struct line *lines = x->r->p->lines + l->first_line;
	bool is_in_file, found = false;

	if (x->has_address && address == x->address)
		return l->nlines && mark_line(x, &lines[l->nlines - 1]);
	is_in_file = matches_mapping(x, l->mapping);
	for (uint32_t i = 0; i < l->nlines; i++)
		if ((i == 0 && is_in_file) || matches_function(x, lines[i].function))
			found |= mark_line(x, &lines[i]);
	return found;
}

static void learn_names(struct annotator *x, const struct location *l)
{
	const struct profile *p = x->r->p;

	for (uint32_t i = 0; i < l->nlines; i++) {
		uint32_t function = p->lines[l->first_line + i].function;
		uint32_t pretty;

		if (function == NONE)
			continue;
		name_of(x, profile_str(p, p->functions[function].name), &pretty);
		name_of(x, profile_str(p, p->functions[function].system_name), NULL)->pretty =
			pretty;
	}
}

/* ---- samples */

static int by_address(const void *a, const void *b)
{
	const struct weight *x = a, *y = b;

	if (x->address != y->address)
		return x->address < y->address ? -1 : 1;
	return (x->location > y->location) - (x->location < y->location);
}

/* Locations of one address count as one, which is interesting if any of them is. */
static void join_weights(struct annotator *x)
{
	struct weight *at = x->weights.at;
	size_t kept = 0;

	if (x->weights.n)
		qsort(at, x->weights.n, sizeof(*at), by_address);
	for (size_t i = 0; i < x->weights.n; i++) {
		if (kept && at[kept - 1].address == at[i].address) {
			at[kept - 1].flat = int_add(at[kept - 1].flat, at[i].flat);
			at[kept - 1].cum = int_add(at[kept - 1].cum, at[i].cum);
		} else {
			at[kept++] = at[i];
		}
	}
	x->weights.n = kept;
}

static uint64_t first_free_address(const struct profile *p)
{
	uint64_t free = 1;

	for (uint32_t i = 0; i < p->nmappings; i++)
		if (p->mappings[i].limit > free)
			free = p->mappings[i].limit;
	return free;
}

struct location_weight {
	int64_t flat, cum;
	bool is_sampled;
};

static struct location_weight *weigh_locations(const struct report_run *r)
{
	const struct profile *p = r->p;
	struct location_weight *w = arena_many(r->a, p->nlocations, struct location_weight);

	for (uint32_t i = 0; i < p->nsamples && !stop_asked_at(r->params->stop, i); i++) {
		const struct sample *s = &p->samples[i];
		int64_t value = report_sample_value(r, s);

		for (uint32_t k = 0; k < s->nstack; k++) {
			struct location_weight *l = &w[p->stacks[s->stack + k]];

			l->cum = int_add(l->cum, value);
			if (k == 0)
				l->flat = int_add(l->flat, value);
			l->is_sampled = true;
		}
	}
	return w;
}

/* Locations without an address each get one that no mapping has. */
static void read_samples(struct annotator *x)
{
	const struct profile *p = x->r->p;
	struct location_weight *weights = weigh_locations(x->r);
	uint64_t free = first_free_address(p);

	for (uint32_t i = 0; i < p->nlocations; i++) {
		const struct location *l = &p->locations[i];
		struct weight w = { l->address ? l->address : free++, weights[i].flat,
				    weights[i].cum, NONE };

		if (!weights[i].is_sampled)
			continue;
		learn_names(x, l);
		if (mark_location(x, l, w.address)) {
			w.location = i;
			x->is_any_interesting = true;
		}
		vec_push(&x->weights, w);
	}
	join_weights(x);
}

/* ---- instructions of lines */

/* Names of one file differ by how the compiler was called. */
static uint32_t canonical_file(struct annotator *x, struct str file)
{
	struct buf clean = { 0 };
	uint32_t string;

	if (str_has_prefix(file, STR("/proc/self/cwd/")))
		file = str_from(file, sizeof("/proc/self/cwd/") - 1);
	if (str_has_prefix(file, STR("./")))
		file = str_from(file, 2);
	path_clean(&clean, file);
	name_of(x, buf_view(&clean), &string);
	buf_release(&clean);
	return string;
}

static struct str keep(struct annotator *x, struct str s)
{
	uint32_t string;

	name_of(x, s, &string);
	return x->out->strings.at[string];
}

/* As profiles call it, if any has it. */
static struct str shown_name(struct annotator *x, struct str name)
{
	uint32_t string, pretty = name_of(x, name, &string)->pretty;

	return x->out->strings.at[pretty ? pretty : string];
}

static int64_t checked_line(int64_t line)
{
	return line < 0 || line > LINE_MAX ? 0 : line;
}

/* Is this frame at the site that is wanted? Of two builds of a program files may have other names.
 */
static bool is_wanted(struct annotator *x, const struct symbol_frame *frames, size_t n, size_t i)
{
	const struct annotate_site *only = x->params->only;

	if (!only)
		return true;
	if (i + 1 == n || !only->caller.n)
		return i + 1 == n && !only->caller.n;
	return checked_line(frames[i + 1].line) == only->line &&
	       str_eq(shown_name(x, frames[i + 1].name), only->caller);
}

/* Frames are innermost first. */
static void add_uses(struct annotator *x, uint32_t instruction, const struct symbol_frame *frames,
		     size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct annotated_use use = { .line = checked_line(frames[i].line),
					     .instruction = instruction,
					     .first_call = (uint32_t)x->calls.n,
					     .ncalls = (uint32_t)i };

		if (!name_of(x, frames[i].name, &use.function)->is_interesting ||
		    !is_wanted(x, frames, n, i))
			continue;
		use.file = canonical_file(x, frames[i].file);
		for (size_t k = i; k > 0; k--)
			vec_push(&x->calls,
				 (struct source_place){ keep(x, frames[k - 1].file),
							checked_line(frames[k - 1].line),
							shown_name(x, frames[k - 1].name) });
		vec_push(&x->uses, use);
	}
}

static void add_instruction(struct annotator *x, struct annotated_instruction i,
			    const struct symbol_frame *frames, size_t n)
{
	if (n)
		i.place = (struct source_place){ .file = keep(x, frames[0].file),
						 .line = frames[0].line };
	vec_push(&x->instructions, i);
}

/* What is known of a sampled address from the profile alone. */
static void add_synthetic(struct annotator *x, const struct weight *w)
{
	const struct profile *p = x->r->p;
	const struct location *l = &p->locations[w->location];
	struct symbol_frame *frames = arena_many(x->r->a, l->nlines, struct symbol_frame);
	size_t n = 0;

	for (uint32_t i = 0; i < l->nlines; i++) {
		const struct line *line = &p->lines[l->first_line + i];
		const struct function *f;

		if (line->function == NONE)
			continue;
		f = &p->functions[line->function];
		frames[n++] = (struct symbol_frame){ .name = profile_str(p, f->name),
						     .file = profile_str(p, f->filename),
						     .line = line->line };
	}
	add_instruction(x,
			(struct annotated_instruction){
				.address = w->address, .runtime = w->address, .length = 1 },
			frames, n);
	add_uses(x, (uint32_t)x->instructions.n - 1, frames, n);
}

/* ---- ranges of code */

static struct binary *binary_of(struct annotator *x, uint32_t mapping)
{
	struct mapped_binary *b;
	struct err ignored;

	if (mapping == NONE)
		return NULL;
	b = &x->binaries[mapping];
	if (b->state == UNTRIED)
		b->state = binary_open(&b->binary, x->r->p, &x->r->p->mappings[mapping],
				       x->r->params->asm_style, &ignored)
				   ? OPEN
				   : MISSING;
	return b->state == OPEN ? &b->binary : NULL;
}

/* May it be found elsewhere? */
static bool is_elsewhere(struct annotator *x, const struct location *l)
{
	const struct code_reader *code = x->params->code;
	const struct mapping *m;
	struct mapped_binary *b;

	if (l->mapping == NONE)
		return false;
	m = &x->r->p->mappings[l->mapping];
	b = &x->binaries[l->mapping];
	if (b->state == UNTRIED)
		b->state = code->has(code->ctx, x->r->p, m) ? ELSEWHERE : MISSING;
	/* Where mappings say nothing, addresses are the binary's own. */
	return b->state == ELSEWHERE &&
	       (!m->limit || (l->address >= m->start && l->address < m->limit));
}

/* Can the code at this address be shown? */
static bool has_code(struct annotator *x, const struct weight *w)
{
	const struct location *l = &x->r->p->locations[w->location];
	struct binary *b;
	uint64_t linked;
	struct err outside;

	if (x->params->is_by_samples || !l->address)
		return false;
	if (x->params->code)
		return is_elsewhere(x, l);
	b = binary_of(x, l->mapping);
	return b && binary_address(b, w->address, &linked, &outside);
}

/* Goes on from *at to the first sample that is too far from the one before it. */
static struct hot_range next_range(struct annotator *x, const struct weight *const *code, size_t n,
				   size_t *at)
{
	uint32_t mapping = x->r->p->locations[code[*at]->location].mapping;
	const struct mapping *m = &x->r->p->mappings[mapping];
	uint64_t begin = code[*at]->address, end = begin;
	struct hot_range range = { .mapping = mapping, .score = code[*at]->flat };

	for (++*at;
	     *at < n && code[*at]->address - end <= 2 * EXPAND && code[*at]->address < m->limit;
	     ++*at) {
		end = code[*at]->address;
		range.score = int_add(range.score, code[*at]->flat);
	}
	range.begin = begin - m->start >= EXPAND ? begin - EXPAND : m->start;
	range.end = m->limit - end >= EXPAND ? end + EXPAND : m->limit;
	return range;
}

static int by_score(const void *a, const void *b)
{
	const struct hot_range *x = a, *y = b;

	if (x->score != y->score)
		return x->score > y->score ? -1 : 1;
	return (x->begin > y->begin) - (x->begin < y->begin);
}

/* The frames of the last instruction whose line is known. */
struct last_frames {
	struct symbol_frame *at;
	size_t n;
	uint64_t address;
};

static void remember_frames(struct annotator *x, struct last_frames *last, uint64_t address,
			    const struct symbol_frame *frames, size_t n)
{
	/* Consecutive instructions mostly have the same. */
	if (n != last->n || memcmp(frames, last->at, n * sizeof(*frames)) != 0)
		last->at = arena_copy(x->r->a, frames, n * sizeof(*frames));
	last->n = n;
	last->address = address;
}

static void add_placed(struct annotator *x, struct last_frames *last,
		       struct annotated_instruction new, const struct symbol_frame *frames,
		       size_t n)
{
	add_instruction(x, new, frames, n);
	if (n && frames[0].line) {
		remember_frames(x, last, new.runtime, frames, n);
	} else if (last->n && new.runtime - last->address <= NEIGHBOURHOOD) {
		frames = last->at;
		n = last->n;
	}
	add_uses(x, (uint32_t)x->instructions.n - 1, frames, n);
}

static void add_code(struct annotator *x, struct binary *b, const struct instructions *code,
		     uint64_t base)
{
	struct last_frames last = { 0 };

	for (size_t i = 0; i < code->n; i++) {
		const struct instruction *in = &code->at[i];
		struct annotated_instruction new = {
			.address = in->address,
			.runtime = in->address + base,
			.length = i + 1 < code->n ? code->at[i + 1].address - in->address : 1,
			.text = in->text,
		};
		const struct symbol_frame *frames;
		size_t n = binary_frames(b, in->address, &frames);

		add_placed(x, &last, new, frames, n);
	}
}

static void add_range(struct annotator *x, const struct hot_range *range)
{
	struct binary *b = binary_of(x, range->mapping);
	struct instructions code;
	uint64_t linked;
	struct err ignored;

	if (binary_address(b, range->begin, &linked, &ignored) &&
	    binary_disassemble(b, x->r->a, linked, linked + (range->end - range->begin), &code,
			       &ignored))
		add_code(x, b, &code, range->begin - linked);
}

/* ---- code from elsewhere */

/* All of a mapping at once: whoever reads it has to open its binary. */
static void read_mapping(struct annotator *x, uint32_t mapping, const struct hot_range *ranges,
			 size_t n)
{
	const struct code_reader *reader = x->params->code;
	struct code_range *wanted = arena_many(x->r->a, n, struct code_range);
	struct code_question q = { .p = x->r->p,
				   .mapping = &x->r->p->mappings[mapping],
				   .ranges = wanted,
				   .style = x->r->params->asm_style,
				   .stop = x->r->params->stop,
				   .warnings = x->params->warnings };
	struct last_frames last = { 0 };
	struct code code = { 0 };

	for (size_t i = 0; i < n; i++)
		if (ranges[i].mapping == mapping)
			wanted[q.n++] = (struct code_range){ ranges[i].begin, ranges[i].end };
	reader->read(reader->ctx, x->r->a, &q, &code);
	for (size_t i = 0; i < code.n; i++)
		add_placed(x, &last,
			   (struct annotated_instruction){ .address = code.at[i].address,
							   .runtime = code.at[i].runtime,
							   .length = code.at[i].length,
							   .text = code.at[i].text },
			   code.at[i].frames, code.at[i].nframes);
}

static size_t first_weight(const struct annotator *x, uint64_t address)
{
	size_t low = 0, high = x->weights.n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (x->weights.at[middle].address < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The weights that are an instruction's: of its first byte, or of one in the middle of it. */
static size_t end_weight(const struct annotator *x, const struct annotated_instruction *i,
			 size_t first)
{
	while (first < x->weights.n && x->weights.at[first].address - i->runtime < i->length)
		first++;
	return first;
}

/* What has not been read is known by its samples. */
static void add_unread(struct annotator *x, const struct weight *const *code, size_t n)
{
	bool *is_read = arena_many(x->r->a, x->weights.n, bool);

	for (size_t i = 0; i < x->instructions.n; i++) {
		const struct annotated_instruction *in = &x->instructions.at[i];
		size_t first = first_weight(x, in->runtime), end = end_weight(x, in, first);

		for (size_t k = first; k < end; k++)
			is_read[k] = true;
	}
	for (size_t i = 0; i < n; i++)
		if (!is_read[code[i] - x->weights.at])
			add_synthetic(x, code[i]);
}

static void read_elsewhere(struct annotator *x, const struct hot_range *ranges, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		size_t before = 0;

		while (ranges[before].mapping != ranges[i].mapping)
			before++;
		if (before == i)
			read_mapping(x, ranges[i].mapping, ranges, n);
	}
}

/* ---- all of it */

static void read_code(struct annotator *x)
{
	const struct weight **code = arena_many(x->r->a, x->weights.n, const struct weight *);
	struct hot_range *ranges;
	size_t n = 0, nranges = 0;

	for (size_t i = 0; i < x->weights.n; i++) {
		const struct weight *w = &x->weights.at[i];

		if (w->location == NONE)
			continue;
		if (has_code(x, w))
			code[n++] = w;
		else
			add_synthetic(x, w);
	}
	ranges = arena_many(x->r->a, n, struct hot_range);
	for (size_t at = 0; at < n;)
		ranges[nranges++] = next_range(x, code, n, &at);
	if (nranges)
		qsort(ranges, nranges, sizeof(*ranges), by_score);
	nranges = nranges < RANGES_MAX ? nranges : RANGES_MAX;
	if (x->params->code) {
		read_elsewhere(x, ranges, nranges);
		add_unread(x, code, n);
	} else {
		for (size_t i = 0; i < nranges; i++)
			add_range(x, &ranges[i]);
	}
}

/* ---- putting it together */

static void weigh_instructions(struct annotator *x)
{
	for (size_t i = 0; i < x->instructions.n; i++) {
		struct annotated_instruction *in = &x->instructions.at[i];
		size_t first = first_weight(x, in->runtime), end = end_weight(x, in, first);

		for (size_t k = first; k < end; k++) {
			in->flat = int_add(in->flat, x->weights.at[k].flat);
			in->cum = int_add(in->cum, x->weights.at[k].cum);
		}
	}
}

struct sort_key {
	struct str file;
	const struct annotated_use *use;
};

static int by_file_line(const void *a, const void *b)
{
	const struct sort_key *x = a, *y = b;
	int order = x->use->file == y->use->file ? 0 : str_cmp(x->file, y->file);

	if (order == 0 && x->use->line != y->use->line)
		order = x->use->line < y->use->line ? -1 : 1;
	return order ? order : (x->use > y->use) - (x->use < y->use);
}

static void sort_uses(struct annotator *x)
{
	size_t n = x->uses.n;
	struct sort_key *keys = arena_many(x->r->a, n, struct sort_key);

	x->out->uses = arena_many(x->r->a, n, struct annotated_use);
	x->out->nuses = n;
	for (size_t i = 0; i < n; i++)
		keys[i] =
			(struct sort_key){ x->out->strings.at[x->uses.at[i].file], &x->uses.at[i] };
	if (n)
		qsort(keys, n, sizeof(*keys), by_file_line);
	for (size_t i = 0; i < n; i++)
		x->out->uses[i] = *keys[i].use;
}

/* Lines around functions, but not those of their neighbours. Line 0 stands for no line at all. */
static void widen(struct annotated_function *f, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		bool is_first = i == 0 || !str_eq(f[i - 1].file, f[i].file);
		int64_t half;

		if (is_first) {
			if (i > 0)
				f[i - 1].end += CONTEXT_LINES;
			if (f[i].begin > CONTEXT_LINES)
				f[i].begin -= CONTEXT_LINES;
			else if (f[i].begin > 1)
				f[i].begin = 1;
			continue;
		}
		half = (f[i].begin - f[i - 1].end) / 2;
		half = half > CONTEXT_LINES ? CONTEXT_LINES : half;
		f[i - 1].end += half;
		f[i].begin -= half;
	}
	if (n)
		f[n - 1].end += CONTEXT_LINES;
}

/* The function that is on a line first owns it. */
static struct annotated_function line_function(const struct annotator *x, size_t use)
{
	const struct annotation *out = x->out;
	const struct annotated_use *first = &out->uses[use];
	uint32_t pretty = x->names.at[first->function].pretty;
	struct annotated_function f = {
		.name = out->strings.at[pretty ? pretty : first->function],
		.file = out->strings.at[first->file],
		.begin = first->line,
		.end = first->line + 1,
		.use = use,
	};

	for (; use < out->nuses && out->uses[use].file == first->file &&
	       out->uses[use].line == first->line;
	     use++) {
		const struct annotated_instruction *i =
			&out->instructions[out->uses[use].instruction];

		f.flat = int_add(f.flat, i->flat);
		f.cum = int_add(f.cum, i->cum);
	}
	f.end_use = use;
	return f;
}

static void find_functions(struct annotator *x)
{
	vec(struct annotated_function) all = { 0 };
	size_t next;

	for (size_t i = 0; i < x->out->nuses; i = next) {
		struct annotated_function f = line_function(x, i);
		struct annotated_function *last = all.n ? &all.at[all.n - 1] : NULL;

		next = f.end_use;
		if (last && str_eq(last->file, f.file) && str_eq(last->name, f.name) &&
		    f.begin - last->end < MERGE_LINES) {
			last->end = f.end;
			last->end_use = f.end_use;
			last->flat = int_add(last->flat, f.flat);
			last->cum = int_add(last->cum, f.cum);
		} else {
			vec_push(&all, f);
		}
	}
	widen(all.at, all.n);
	x->out->nfunctions = all.n;
	x->out->functions = vec_adopt(x->r->a, &all);
}

static void finish(struct annotator *x)
{
	weigh_instructions(x);
	sort_uses(x);
	x->out->ninstructions = x->instructions.n;
	x->out->instructions = vec_adopt(x->r->a, &x->instructions);
	x->out->calls = vec_adopt(x->r->a, &x->calls);
	find_functions(x);
}

bool annotate(struct report_run *r, const struct annotate_params *params, struct annotation *out,
	      struct err *e)
{
	const struct profile *p = r->p;
	struct annotator x = {
		.r = r,
		.out = out,
		.params = params,
		.verdicts = arena_many(r->a, p->nfunctions, unsigned char),
		.mapping_verdicts = arena_many(r->a, p->nmappings, unsigned char),
		.binaries = arena_many(r->a, p->nmappings, struct mapped_binary),
	};

	*out = (struct annotation){ 0 };
	strings_init(&out->strings);
	x.has_address = number_parse_uint(str_of(r->params->argument), 0, &x.address) == NUMBER_OK;
	read_samples(&x);
	if (x.is_any_interesting) {
		read_code(&x);
		finish(&x);
	}
	for (uint32_t i = 0; i < p->nmappings; i++)
		if (x.binaries[i].state == OPEN)
			binary_close(&x.binaries[i].binary);
	vec_release(&x.names);
	vec_release(&x.weights);
	vec_release(&x.uses);
	return x.is_any_interesting ||
	       err_set(e, ERR_NOTFOUND, "no matches found for regexp: %s", r->params->argument);
}

void annotation_release(struct annotation *a)
{
	strings_release(&a->strings);
}
