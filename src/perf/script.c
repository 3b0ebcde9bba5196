#include "perf/script.h"

#include <ctype.h>

#include "base/number.h"
#include "perf/collect.h"

enum {
	FIRST_LINE_MAX = 4096, /* of a file that may be something else */
	EVENTS_MAX = 256,      /* each is a column of the profile */
};

struct header {
	struct str comm, event, rest;
	uint32_t pid, tid;
	uint64_t time, period;
	bool has_period, is_record; /* is_record: no sample, but something that perf tells */
};

struct script_frame {
	uint64_t address;
	struct str name, dso, file;
	int64_t line;
	bool is_inlined;
};

struct script {
	struct collector c;
	vec(struct script_frame) frames; /* of the sample that is being read, leaf first */
	vec(uint32_t) stack;
	struct header sample;
	bool in_sample, has_periods;
	vec(uint32_t) mapping_of; /* by file, as strings; plus 1 */
	struct map by_function, by_place;
};

/* ---- lines */

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* The next word, and what stands before it. */
static struct str next_word(struct str line, size_t *at)
{
	size_t start = *at, end;

	while (start < line.n && is_blank(line.p[start]))
		start++;
	for (end = start; end < line.n && !is_blank(line.p[end]); end++)
		;
	*at = end;
	return (struct str){ line.p + start, end - start };
}

static bool to_number(struct str digits, uint64_t *out)
{
	return digits.n && isdigit((unsigned char)digits.p[0]) &&
	       number_parse_uint(digits, 10, out) == NUMBER_OK;
}

/* "5678.123456:", in seconds. */
static bool read_time(struct str word, uint64_t *nanos)
{
	struct str seconds = word, fraction;
	uint64_t whole, part;

	if (!word.n || word.p[word.n - 1] != ':')
		return false;
	seconds.n--;
	fraction = seconds;
	seconds = str_cut(&fraction, '.');
	if (fraction.n > 9 || !to_number(seconds, &whole) || !to_number(fraction, &part) ||
	    whole > UINT32_MAX)
		return false;
	for (size_t i = fraction.n; i < 9; i++)
		part *= 10;
	*nanos = whole * 1000000000 + part;
	return true;
}

/* "1234" or "1234/1235" */
static bool read_ids(struct str word, struct header *h)
{
	struct str second = word, first = str_cut(&second, '/');
	uint64_t pid, tid;

	if (!to_number(first, &pid) || pid > UINT32_MAX)
		return false;
	tid = pid;
	if (second.p && (!to_number(second, &tid) || tid > UINT32_MAX))
		return false;
	h->pid = (uint32_t)pid;
	h->tid = (uint32_t)tid;
	return true;
}

/* "[001]" */
static bool is_processor(struct str word)
{
	uint64_t n;

	return word.n > 2 && word.p[0] == '[' && word.p[word.n - 1] == ']' &&
	       to_number((struct str){ word.p + 1, word.n - 2 }, &n);
}

/* Behind the time: a period, if there is one, and the event. */
static bool read_event(struct str line, size_t at, struct header *h)
{
	struct str word = next_word(line, &at);

	h->is_record = str_has_prefix(word, STR("PERF_RECORD_"));
	h->has_period = to_number(word, &h->period);
	if (h->has_period)
		word = next_word(line, &at);
	if (!h->is_record && (word.n < 2 || word.p[word.n - 1] != ':'))
		return false;
	h->event = (struct str){ word.p, word.n ? word.n - 1 : 0 };
	h->rest = str_trim(str_from(line, at));
	return true;
}

/* The thread's name may be of several words and look like anything, so the time is looked for. */
static bool read_header(struct str line, struct header *h)
{
	struct str before[2] = { { NULL, 0 }, { NULL, 0 } };
	size_t at = 0;

	*h = (struct header){ 0 };
	for (struct str word; (word = next_word(line, &at)).n;) {
		struct str ids = is_processor(before[1]) ? before[0] : before[1];

		if (ids.p && read_time(word, &h->time) && read_ids(ids, h)) {
			h->comm = str_trim((struct str){ line.p, (size_t)(ids.p - line.p) });
			return h->comm.n && read_event(line, at, h);
		}
		before[0] = before[1];
		before[1] = word;
	}
	return false;
}

/* Takes "(...)" off the end of the text, with all parentheses in it. */
static bool take_parenthesis(struct str *text, struct str *inside)
{
	size_t depth = 0, i = text->n;

	if (!i || text->p[i - 1] != ')')
		return false;
	while (i-- > 0) {
		if (text->p[i] == ')')
			depth++;
		else if (text->p[i] == '(' && --depth == 0)
			break;
	}
	if (depth || i == SIZE_MAX)
		return false;
	*inside = (struct str){ text->p + i + 1, text->n - i - 2 };
	*text = str_trim((struct str){ text->p, i });
	return true;
}

/* Without "+0x12f" at the end. */
static struct str strip_offset(struct str name)
{
	size_t i = name.n;

	while (i && isxdigit((unsigned char)name.p[i - 1]))
		i--;
	return i >= 3 && i < name.n && memcmp(name.p + i - 3, "+0x", 3) == 0
		       ? (struct str){ name.p, i - 3 }
		       : name;
}

/* "55d0c8a4f139 hot+0x9 (/usr/bin/prog)" */
static bool read_frame(struct str line, struct script_frame *f)
{
	size_t at = 0;
	struct str address = next_word(line, &at), inside;

	*f = (struct script_frame){ 0 };
	if (number_parse_uint(address, 16, &f->address) != NUMBER_OK)
		return false;
	f->name = str_trim(str_from(line, at));
	if (take_parenthesis(&f->name, &inside)) {
		f->is_inlined = str_eq(inside, STR("inlined"));
		if (!f->is_inlined)
			f->dso = inside;
	}
	f->name = strip_offset(f->name);
	if (str_eq(f->name, STR("[unknown]")))
		f->name.n = 0;
	return true;
}

/* "hot.c:12", on a line of its own behind the frame; "(inlined)" may follow. */
static void read_source_line(struct str text, struct script_frame *f)
{
	struct str inside = { 0 }, file = text;
	uint64_t line;
	size_t colon;

	if (take_parenthesis(&file, &inside) && str_eq(inside, STR("inlined")))
		f->is_inlined = true;
	colon = str_rfind_char(file, ':');
	if (colon == STR_NONE || !to_number(str_from(file, colon + 1), &line) || !line ||
	    line > INT32_MAX)
		return;
	f->file = (struct str){ file.p, colon };
	f->line = (int64_t)line;
}

/* ---- tables */

static uint32_t find_mapping(struct script *s, struct str dso)
{
	struct builder *b = &s->c.b;
	uint32_t file = builder_string(b, dso);

	if (!dso.n || str_eq(dso, STR("[unknown]")))
		return NONE;
	while (s->mapping_of.n <= file)
		vec_push(&s->mapping_of, 0);
	if (!s->mapping_of.at[file]) {
		vec_push(&b->mappings, (struct mapping){ .file = file, .has_functions = true });
		s->mapping_of.at[file] = (uint32_t)b->mappings.n;
	}
	return s->mapping_of.at[file] - 1;
}

struct function_key {
	const struct builder *b;
	uint32_t name, filename;
};

static bool same_function(const void *ctx, uint32_t index)
{
	const struct function_key *key = ctx;
	const struct function *f = &key->b->functions.at[index];

	return f->name == key->name && f->filename == key->filename;
}

static uint32_t find_function(struct script *s, const struct script_frame *f)
{
	struct builder *b = &s->c.b;
	struct function_key key = { b, builder_string(b, f->name), builder_string(b, f->file) };
	uint64_t hash = hash_mix(s->c.seed, (uint64_t)key.name << 32 | key.filename);
	uint32_t i = map_put(&s->by_function, hash, b->functions.n, same_function, &key);

	if (i == b->functions.n)
		vec_push(&b->functions, (struct function){ .id = i + 1u,
							   .name = key.name,
							   .system_name = key.name,
							   .filename = key.filename });
	return i;
}

struct place_key {
	const struct builder *b;
	struct location location; /* its lines are the last of the table */
};

static bool same_place(const void *ctx, uint32_t index)
{
	const struct place_key *key = ctx;
	const struct location *a = &key->b->locations.at[index], *l = &key->location;

	if (a->address != l->address || a->mapping != l->mapping || a->nlines != l->nlines)
		return false;
	for (uint32_t i = 0; i < l->nlines; i++) {
		const struct line *x = &key->b->lines.at[a->first_line + i];
		const struct line *y = &key->b->lines.at[l->first_line + i];

		if (x->function != y->function || x->line != y->line)
			return false;
	}
	return true;
}

/* n frames at one address: functions that were inlined, then the one that they are in. */
static uint32_t find_location(struct script *s, const struct script_frame *f, size_t n)
{
	struct builder *b = &s->c.b;
	struct place_key key = { b,
				 { .id = b->locations.n + 1u,
				   .address = f->address,
				   .mapping = find_mapping(s, f[n - 1].dso),
				   .first_line = (uint32_t)b->lines.n } };
	uint64_t hash = hash_mix(s->c.seed ^ key.location.mapping, f->address);
	uint32_t i;

	for (size_t k = 0; k < n; k++) {
		struct line line = { .line = f[k].line };

		if (!f[k].name.n)
			continue;
		line.function = find_function(s, &f[k]);
		hash = hash_mix(hash, (uint64_t)line.function << 32 | (uint32_t)line.line);
		vec_push(&b->lines, line);
		key.location.nlines++;
	}
	i = map_put(&s->by_place, hash, b->locations.n, same_place, &key);
	if (i == b->locations.n)
		vec_push(&b->locations, key.location);
	else
		b->lines.n = key.location.first_line;
	return i;
}

/* ---- samples */

static bool end_sample(struct script *s, struct err *e)
{
	const struct header *h = &s->sample;
	struct collect_sample out = { .time = h->time, .period = h->has_period ? h->period : 1 };

	if (!s->in_sample)
		return true;
	s->in_sample = false;
	s->stack.n = 0;
	for (size_t i = 0, n; i < s->frames.n; i += n) {
		const struct script_frame *f = &s->frames.at[i];
		uint32_t location;

		for (n = 1;
		     f[n - 1].is_inlined && i + n < s->frames.n && f[n].address == f->address; n++)
			;
		location = find_location(s, f, n);
		vec_push(&s->stack, location);
	}
	out.event = collector_event(&s->c, h->event);
	if (out.event == EVENTS_MAX)
		return err_set(e, ERR_LIMIT, "more than %d events", EVENTS_MAX);
	out.thread = (struct collect_thread){ h->pid, h->tid, builder_string(&s->c.b, h->comm) };
	out.stack = s->stack.at;
	out.nstack = s->stack.n;
	s->has_periods |= h->has_period;
	return collector_add(&s->c, &out, e);
}

static bool begin_sample(struct script *s, const struct header *h, struct err *e)
{
	struct script_frame f;

	if (!end_sample(s, e))
		return false;
	if (h->is_record)
		return true;
	s->in_sample = true;
	s->sample = *h;
	s->frames.n = 0;
	/* What follows a tracepoint is its fields. */
	if (h->rest.n && h->rest.p[h->rest.n - 1] == ')' && read_frame(h->rest, &f))
		vec_push(&s->frames, f);
	return true;
}

static bool read_line(struct script *s, struct str line, struct err *e)
{
	struct script_frame f;
	struct header h;

	if (!str_trim(line).n)
		return end_sample(s, e);
	if (line.p[0] == '#')
		return true;
	if (line.p[0] != '\t' && read_header(line, &h))
		return begin_sample(s, &h, e);
	if (!is_blank(line.p[0]))
		return err_set(e, ERR_FORMAT, "neither a sample nor a frame: %.*s",
			       STR_ARG(((struct str){ line.p, line.n < 80 ? line.n : 80 })));
	line = str_trim(line);
	if (s->in_sample && read_frame(line, &f))
		vec_push(&s->frames, f);
	else if (s->in_sample && s->frames.n)
		read_source_line(line, &s->frames.at[s->frames.n - 1]);
	return true;
}

static bool read_lines(struct script *s, struct str data, struct err *e)
{
	for (size_t n = 1; data.n; n++)
		if (!read_line(s, str_cut(&data, '\n'), e))
			return err_wrap(e, "perf script: line %zu", n);
	return end_sample(s, e);
}

static void set_mapping_flags(struct builder *b)
{
	for (size_t i = 0; i < b->locations.n; i++) {
		const struct location *l = &b->locations.at[i];

		if (l->mapping == NONE)
			continue;
		for (uint32_t k = 0; k < l->nlines; k++)
			if (b->lines.at[l->first_line + k].line) {
				b->mappings.at[l->mapping].has_filenames = true;
				b->mappings.at[l->mapping].has_line_numbers = true;
			}
		if (l->nlines > 1)
			b->mappings.at[l->mapping].has_inline_frames = true;
	}
}

bool perf_script_recognizes(struct str data)
{
	struct header h;

	while (data.n) {
		struct str rest = data, line = str_cut(&rest, '\n');

		if (line.n > FIRST_LINE_MAX || memchr(line.p, '\0', line.n))
			return false;
		if (line.n && line.p[0] != '#' && str_trim(line).n)
			return read_header(line, &h);
		data = rest;
	}
	return false;
}

bool perf_script_parse(struct profile *p, struct arena *a, struct strings *strings, struct str data,
		       bool has_times, struct err *e)
{
	struct script s = { 0 };
	bool ok;

	/* A byte makes at most one row of any table, so 32-bit indices cannot overflow. */
	if (data.n >= UINT32_MAX)
		return err_set(e, ERR_LIMIT, "perf script: text of %zu bytes is too large", data.n);
	collector_init(&s.c, strings);
	s.c.has_times = has_times;
	ok = read_lines(&s, data, e);
	if (ok) {
		s.c.has_no_periods = !s.has_periods;
		set_mapping_flags(&s.c.b);
		collector_finish(&s.c, a, p);
	}
	collector_release(&s.c);
	vec_release(&s.frames);
	vec_release(&s.stack);
	vec_release(&s.mapping_of);
	map_release(&s.by_function);
	map_release(&s.by_place);
	return ok;
}
