#include "symbol/symbol.h"

#include <ctype.h>
#include <stdlib.h>

#include "base/parallel.h"
#include "base/path.h"
#include "base/vec.h"
#include "profile/profile.h"

#define NO_FILE UINT32_MAX
/* Opening a binary once more costs what some hundred lookups do. */
#define LOCATIONS_PER_THREAD 200

/* A binary, and what it says about the locations that are in it. */
struct binary {
	uint32_t file; /* its name, a string */
	char *path;
	struct object object;
	vec(uint32_t) locations;
	struct err error; /* if it could not be opened */
	bool is_open;
	struct symbolizer *symbolizer; /* one of its pieces', to say what was looked for */
};

/* Some locations of a binary, which one thread names. */
struct piece {
	uint32_t binary;
	const uint32_t *locations;
	size_t n;
	struct symbolizer *symbolizer;
	vec(struct symbol_frame) frames;
};

/* Where the frames of a location are. */
struct location_frames {
	uint32_t piece, first, n;
};

struct naming {
	struct arena *a;
	struct profile *p;
	const struct symbolize_params *params;
	struct buf *warnings;
	vec(struct binary) binaries;
	vec(struct piece) pieces;
	uint32_t *binary_of; /* of each mapping, or NO_FILE */
	struct location_frames *found;
	bool has_missing;
};

/* Something:..., where the something has http in it. */
static bool is_http_url(struct str file)
{
	size_t n = 0;

	while (n < file.n && (isalnum((unsigned char)file.p[n]) || strchr("+-.", file.p[n])))
		n++;
	if (n == file.n || file.p[n] != ':' || !isalpha((unsigned char)file.p[0]))
		return false;
	for (size_t i = 0; i + 4 <= n; i++)
		if (strncasecmp(file.p + i, "http", 4) == 0)
			return true;
	return false;
}

static void warn_failed(struct naming *s, const struct mapping *m, const char *why)
{
	struct str build_id = profile_str(s->p, m->build_id);

	buf_puts(s->warnings, "Local symbolization failed for ");
	buf_str(s->warnings, path_base(profile_str(s->p, m->file)));
	if (build_id.n) {
		buf_puts(s->warnings, " (build ID ");
		buf_str(s->warnings, build_id);
		buf_puts(s->warnings, ")");
	}
	buf_printf(s->warnings, ": %s\n", why);
}

static struct object_place place_of(const struct profile *p, const struct mapping *m)
{
	return (struct object_place){ .start = m->start,
				      .limit = m->limit,
				      .offset = m->offset,
				      .kernel_symbol = profile_str(p, m->kernel_symbol) };
}

/* The binary of that name, opened by whoever asks first. */
static uint32_t binary_for(struct naming *s, uint32_t file)
{
	struct binary b = { .file = file };

	for (size_t i = 0; i < s->binaries.n; i++)
		if (s->binaries.at[i].file == file)
			return (uint32_t)i;
	b.path = str_dup(s->a, profile_str(s->p, file));
	b.is_open = object_open(&b.object, b.path, &b.error);
	vec_push(&s->binaries, b);
	return (uint32_t)s->binaries.n - 1;
}

/* Finds the mapping's binary, or says why there is none. */
static uint32_t open_mapping(struct naming *s, uint32_t mapping)
{
	const struct mapping *m = &s->p->mappings[mapping];
	struct str file = profile_str(s->p, m->file), build_id = profile_str(s->p, m->build_id);
	struct object_place place = place_of(s->p, m);
	const struct binary *b;
	struct err e;
	uint32_t at;

	if (!s->params->force && (m->has_functions || m->has_filenames || m->has_line_numbers))
		return NO_FILE;
	if (!file.n) {
		if (mapping == 0)
			buf_puts(s->warnings, "Main binary filename not available.\n");
		else
			s->has_missing = true;
		return NO_FILE;
	}
	if (mapping_is_system(s->p, m) || (!build_id.n && is_http_url(file)))
		return NO_FILE;
	at = binary_for(s, m->file);
	b = &s->binaries.at[at];
	e = b->error;
	if (!b->is_open || !object_check_base(&b->object, b->path, &place, &e)) {
		warn_failed(s, m, e.text);
		s->has_missing = true;
		return NO_FILE;
	}
	if (build_id.n && b->object.build_id.n && !str_eq(build_id, b->object.build_id)) {
		warn_failed(s, m, "build ID mismatch");
		return NO_FILE;
	}
	return at;
}

static void open_mappings(struct naming *s)
{
	struct profile *p = s->p;
	bool *is_used = arena_many(s->a, p->nmappings, bool);

	for (uint32_t i = 0; i < p->nlocations; i++)
		if (p->locations[i].mapping != NONE)
			is_used[p->locations[i].mapping] = true;
	s->binary_of = arena_many(s->a, p->nmappings, uint32_t);
	for (uint32_t i = 0; i < p->nmappings; i++)
		s->binary_of[i] = is_used[i] ? open_mapping(s, i) : NO_FILE;
	if (s->has_missing)
		buf_puts(s->warnings,
			 "Some binary filenames not available. Symbolization may be incomplete.\n"
			 "Try setting PPROF_BINARY_PATH to the search path for local binaries.\n");
}

static void find_frames(struct naming *s, struct piece *piece, uint32_t location)
{
	const struct location *l = &s->p->locations[location];
	struct object_place place = place_of(s->p, &s->p->mappings[l->mapping]);
	struct location_frames *found = &s->found[location];
	const struct symbol_frame *frames;
	uint64_t address;
	struct err e;
	size_t n;

	if (!object_address(symbolizer_object(piece->symbolizer), &place, l->address, &address, &e))
		return;
	n = symbolizer_find(piece->symbolizer, address, &frames);
	if (n > UINT32_MAX - piece->frames.n)
		return;
	found->piece = (uint32_t)(piece - s->pieces.at);
	found->first = (uint32_t)piece->frames.n;
	found->n = (uint32_t)n;
	for (size_t i = 0; i < n; i++)
		vec_push(&piece->frames, frames[i]);
}

static void name_piece(void *ctx, size_t i)
{
	struct naming *s = ctx;
	struct piece *piece = &s->pieces.at[i];
	struct err e;

	piece->symbolizer =
		symbolizer_open(s->binaries.at[piece->binary].path, &s->params->symbolizer, &e);
	for (size_t k = 0; piece->symbolizer && k < piece->n; k++)
		find_frames(s, piece, piece->locations[k]);
}

static int by_address(const void *a, const void *b, void *ctx)
{
	const struct location *locations = ctx;
	const struct location *x = &locations[*(const uint32_t *)a];
	const struct location *y = &locations[*(const uint32_t *)b];

	return (x->address > y->address) - (x->address < y->address);
}

/* Cuts the binary's locations into pieces for the threads. Neighbours stay together: they are
 * likely to be of the same unit, which each thread must read for itself. */
static void cut_into_pieces(struct naming *s, uint32_t binary)
{
	struct binary *b = &s->binaries.at[binary];
	size_t n = b->locations.n, npieces = n / LOCATIONS_PER_THREAD + 1;

	if (!n)
		return;
	if (npieces > (size_t)s->params->threads)
		npieces = (size_t)s->params->threads;
	if (npieces > 1)
		qsort_r(b->locations.at, n, sizeof(uint32_t), by_address, s->p->locations);
	for (size_t i = 0; i < npieces; i++) {
		size_t first = n * i / npieces;

		vec_push(&s->pieces, ((struct piece){ .binary = binary,
						      .locations = b->locations.at + first,
						      .n = n * (i + 1) / npieces - first }));
	}
}

static void find_all_frames(struct naming *s)
{
	struct profile *p = s->p;

	s->found = arena_many(s->a, p->nlocations, struct location_frames);
	for (uint32_t i = 0; i < p->nlocations; i++) {
		uint32_t mapping = p->locations[i].mapping;
		uint32_t binary = mapping == NONE ? NO_FILE : s->binary_of[mapping];

		if (binary != NO_FILE)
			vec_push(&s->binaries.at[binary].locations, i);
	}
	for (size_t i = 0; i < s->binaries.n; i++)
		cut_into_pieces(s, (uint32_t)i);
	parallel_for(s->params->threads, s->pieces.n, name_piece, s);
	for (size_t i = 0; i < s->pieces.n; i++)
		s->binaries.at[s->pieces.at[i].binary].symbolizer = s->pieces.at[i].symbolizer;
}

void profile_names_put(struct profile_names *names, uint32_t location,
		       const struct symbol_frame *frames, size_t n)
{
	if (!n || n > UINT32_MAX || !profile_names_location(names, location, (uint32_t)n))
		return;
	for (size_t i = 0; i < n; i++)
		profile_names_frame(names,
				    &(struct profile_frame){ .name = frames[i].name,
							     .system_name = frames[i].name,
							     .file = frames[i].file,
							     .line = frames[i].line,
							     .column = frames[i].column,
							     .start_line = frames[i].start_line });
}

static void put_all_frames(struct naming *s)
{
	struct profile_names *names = profile_names_begin(s->a, s->p);

	for (uint32_t i = 0; i < s->p->nlocations; i++) {
		const struct location_frames *f = &s->found[i];

		if (f->n)
			profile_names_put(names, i, &s->pieces.at[f->piece].frames.at[f->first],
					  f->n);
	}
	profile_names_end(names);
}

/* What is wrong with the file that a mapping names. */
static void explain_file(struct naming *s, const struct mapping *m, struct buf *out)
{
	uint32_t at = binary_for(s, m->file);
	const struct binary *b = &s->binaries.at[at];
	struct object_place place = place_of(s->p, m);
	struct err e = b->error;

	if (!b->is_open || !object_check_base(&b->object, b->path, &place, &e))
		buf_puts(out, e.text);
	else if (b->object.build_id.n)
		buf_printf(out, "%s is another build, %.*s", b->path, STR_ARG(b->object.build_id));
	else
		buf_printf(out, "%s cannot be read", b->path);
}

/* And where another one was looked for, in which it could be put; see locate.c. */
static void explain_search(const struct naming *s, const struct mapping *m, struct buf *out)
{
	const char *path = s->params->symbolizer.binary_path;
	struct str file = profile_str(s->p, m->file), id = profile_str(s->p, m->build_id);
	struct str base = path_base(file);
	bool is_set = path && *path;

	if (is_set)
		buf_printf(out, "; looked for it below PPROF_BINARY_PATH=%s", path);
	else
		buf_puts(out, "; looked for it below $HOME/pprof/binaries");
	buf_puts(out, ", as ");
	if (id.n)
		buf_printf(out, "%.*s/%.*s, ", STR_ARG(id), STR_ARG(base));
	buf_str(out, base);
	if (base.n < file.n)
		buf_printf(out, ", %s%.*s", *file.p == '/' ? "." : "", STR_ARG(file));
	buf_puts(out, ". ");
	buf_puts(out,
		 is_set ? "Put it there." : "Set PPROF_BINARY_PATH to a directory that has it.");
}

/* Why the mapping's locations may have no names, and what to do about it. */
static const char *reason_for(struct naming *s, uint32_t mapping)
{
	uint32_t at = s->binary_of[mapping];
	struct buf text = { 0 };
	char *reason;

	if (at == NO_FILE || !s->binaries.at[at].symbolizer) {
		explain_file(s, &s->p->mappings[mapping], &text);
		explain_search(s, &s->p->mappings[mapping], &text);
	} else {
		symbolizer_explain(s->binaries.at[at].symbolizer, &text);
		buf_puts(&text, ". Install its debug package, set DEBUGINFOD_URLS, or set "
				"PPROF_BINARY_PATH to a directory with the unstripped file.");
	}
	reason = str_dup(s->a, buf_view(&text));
	buf_release(&text);
	return reason;
}

static void give_reasons(struct naming *s)
{
	for (uint32_t i = 0; i < s->p->nmappings; i++) {
		const struct mapping *m = &s->p->mappings[i];
		struct str file = profile_str(s->p, m->file);

		if (file.n && !mapping_is_system(s->p, m) && !is_http_url(file))
			s->params->reasons[i] = reason_for(s, i);
	}
}

void profile_explain_names(const struct profile *p, const char *const *reasons, struct buf *out)
{
	uint32_t *nmissing = xcalloc(p->nmappings, sizeof(*nmissing));

	for (uint32_t i = 0; i < p->nlocations; i++) {
		const struct location *l = &p->locations[i];

		if (l->mapping != NONE && !location_has_name(p, l))
			nmissing[l->mapping]++;
	}
	for (uint32_t i = 0; i < p->nmappings; i++) {
		struct str file = profile_str(p, p->mappings[i].file);
		struct str build_id = profile_str(p, p->mappings[i].build_id);

		if (!nmissing[i] || !reasons[i])
			continue;
		buf_printf(out, "No names for %u address%s in ", nmissing[i],
			   nmissing[i] == 1 ? "" : "es");
		buf_str(out, file);
		if (build_id.n)
			buf_printf(out, " (build ID %.*s)", STR_ARG(build_id));
		buf_printf(out, ": %s\n", reasons[i]);
	}
	free(nmissing);
}

static void close_binaries(struct naming *s)
{
	for (size_t i = 0; i < s->pieces.n; i++) {
		symbolizer_close(s->pieces.at[i].symbolizer);
		vec_release(&s->pieces.at[i].frames);
	}
	for (size_t i = 0; i < s->binaries.n; i++) {
		if (s->binaries.at[i].is_open)
			object_close(&s->binaries.at[i].object);
		vec_release(&s->binaries.at[i].locations);
	}
	vec_release(&s->pieces);
	vec_release(&s->binaries);
}

void profile_symbolize(struct arena *a, struct profile *p, const struct symbolize_params *params,
		       struct buf *warnings)
{
	struct naming s = { .a = a, .p = p, .params = params, .warnings = warnings };

	open_mappings(&s);
	if (s.binaries.n) {
		find_all_frames(&s);
		put_all_frames(&s);
	}
	if (params->reasons)
		give_reasons(&s);
	close_binaries(&s);
}
