#include "profile/legacy_java.h"

#include "base/number.h"
#include "base/path.h"

enum java_kind { JAVA_HEAP, JAVA_CONTENTION };

struct java_reader {
	struct legacy *r;
	enum java_kind kind;
	struct str rest;
};

static bool unrecognized(struct err *e)
{
	return err_set(e, ERR_UNRECOGNIZED, "no Java profile");
}

static bool is_word_or_blank(char c)
{
	return c == ' ' || c == '_' || is_digit(c) || (c >= 'a' && c <= 'z') ||
	       (c >= 'A' && c <= 'Z');
}

/* `([\w ]+)=([\w ]+)`, found anywhere. */
static bool match_attribute(struct str line, struct str *key, struct str *value)
{
	size_t run = 0; /* where the run of word bytes before i starts */

	for (size_t i = 0; i < line.n; i++) {
		size_t end = i + 1;

		if (is_word_or_blank(line.p[i]))
			continue;
		while (end < line.n && is_word_or_blank(line.p[end]))
			end++;
		if (line.p[i] == '=' && run < i && end > i + 1) {
			*key = text_trim((struct str){ line.p + run, i - run });
			*value = text_trim((struct str){ line.p + i + 1, end - i - 1 });
			return true;
		}
		run = i + 1;
		i = end - 1;
	}
	return false;
}

static bool attribute_int(struct str line, struct str value, int64_t *out, struct err *e)
{
	enum number_result why = number_parse_int(value, 0, out);

	if (why == NUMBER_OK)
		return true;
	number_error(e, why, "ParseInt", value);
	e->kind = ERR_FORMAT;
	return err_wrap(e, "failed to parse attribute %.*s", STR_ARG(line));
}

static void set_types(struct java_reader *j, struct str resolution)
{
	bool is_heap = j->kind == JAVA_HEAP;

	j->r->b.types.n = 0;
	legacy_add_type(j->r, is_heap ? STR("inuse_objects") : STR("contentions"), STR("count"));
	legacy_add_type(j->r, is_heap ? STR("inuse_space") : STR("delay"), resolution);
}

static bool read_attribute(struct java_reader *j, struct str line, struct str key, struct str value,
			   struct err *e)
{
	int64_t n;

	if (str_eq(key, STR("format")))
		return str_eq(value, STR("java")) || unrecognized(e);
	if (str_eq(key, STR("resolution"))) {
		set_types(j, value);
		return true;
	}
	if (j->kind != JAVA_CONTENTION)
		return unrecognized(e);
	if (str_eq(key, STR("sampling period"))) {
		if (!attribute_int(line, value, &n, e))
			return false;
		legacy_set_period(j->r, STR("contentions"), STR("count"), n);
		return true;
	}
	if (!str_eq(key, STR("ms since reset")))
		return unrecognized(e);
	if (!attribute_int(line, value, &n, e))
		return false;
	j->r->b.head.duration_nanos = (int64_t)((uint64_t)n * 1000000);
	return true;
}

/* Next line that ends in \n and is not blank, trimmed; it is not taken. */
static bool peek_line(struct java_reader *j, struct str *line)
{
	size_t n;

	while ((n = str_find_char(j->rest, '\n')) != STR_NONE) {
		*line = text_trim((struct str){ j->rest.p, n });
		if (line->n)
			return true;
		j->rest = str_from(j->rest, n + 1);
	}
	return false;
}

static void take_line(struct java_reader *j)
{
	j->rest = str_from(j->rest, str_find_char(j->rest, '\n') + 1);
}

static bool read_header(struct java_reader *j, struct err *e)
{
	struct str line, key, value;

	while (peek_line(j, &line) && match_attribute(line, &key, &value)) {
		if (!read_attribute(j, line, key, value, e))
			return false;
		take_line(j);
	}
	return true;
}

struct java_line {
	struct str first, second, addresses;
};

/* ` *(\d+) +(\d+) +@ +([ x0-9a-f]*)`, found anywhere. */
static bool match_sample(struct str line, struct java_line *l)
{
	struct cursor c = { line, 0 };

	while (c.at < line.n) {
		size_t after;

		l->first = cursor_digits(&c);
		if (!l->first.n) {
			c.at++;
			continue;
		}
		after = c.at;
		if (cursor_blanks(&c).n && (l->second = cursor_digits(&c)).n &&
		    cursor_blanks(&c).n && cursor_char(&c, '@') && cursor_blanks(&c).n) {
			l->addresses = cursor_address_list(&c);
			return true;
		}
		c.at = after;
	}
	return false;
}

static bool line_int(struct str line, struct str digits, int64_t *out, struct err *e)
{
	enum number_result why = number_parse_int(digits, 0, out);

	if (why == NUMBER_OK)
		return true;
	number_error(e, why, "ParseInt", digits);
	e->kind = ERR_FORMAT;
	return err_wrap(e, "parsing sample %.*s", STR_ARG(line));
}

static bool read_sample(struct java_reader *j, struct str line, const struct java_line *l,
			struct err *e)
{
	const int64_t heap_rate = 512 << 10;
	uint64_t period = (uint64_t)j->r->b.head.period;
	uint32_t labels = 0;
	int64_t values[2];

	if (!legacy_addresses(j->r, l->addresses, line, e) ||
	    !line_int(line, l->second, &values[0], e) || !line_int(line, l->first, &values[1], e))
		return false;
	if (j->kind == JAVA_HEAP) {
		if (values[0] == 0)
			return err_set(e, ERR_FORMAT,
				       "parsing sample %.*s: second value must be non-zero",
				       STR_ARG(line));
		labels = legacy_bytes_label(j->r, values[1] / values[0]);
		legacy_unbias(&values[0], &values[1], heap_rate);
	} else if (period) {
		values[0] = (int64_t)((uint64_t)values[0] * period);
		values[1] = (int64_t)((uint64_t)values[1] * period);
	}
	legacy_sample(j->r, ADJUST_NONE, labels, values);
	return true;
}

static bool read_samples(struct java_reader *j, struct err *e)
{
	struct java_line l;
	struct str line;

	while (peek_line(j, &line) && match_sample(line, &l)) {
		if (!read_sample(j, line, &l, e))
			return false;
		take_line(j);
	}
	return true;
}

struct java_frame {
	struct str function, file;
	int64_t line;
};

/* Last '(' with a \s before it and more than `room` bytes between it and `end`, or STR_NONE. */
static size_t last_parenthesis(struct str text, size_t end, size_t room)
{
	for (size_t i = end; i > 1; i--)
		if (text.p[i - 1] == '(' && is_regex_space(text.p[i - 2]) && end - i >= room)
			return i - 1;
	return STR_NONE;
}

/* `^(.*)\s+\((.+):(-?\d+)\)$` */
static bool match_file_line(struct str text, struct java_frame *f)
{
	size_t colon, digits, open;
	struct str number;

	if (!text.n || text.p[text.n - 1] != ')')
		return false;
	for (digits = text.n - 1; digits && is_digit(text.p[digits - 1]); digits--)
		;
	if (digits == text.n - 1 || !digits)
		return false;
	colon = digits - 1;
	if (text.p[colon] == '-' && colon)
		colon--;
	if (text.p[colon] != ':')
		return false;
	open = last_parenthesis(text, colon, 1);
	if (open == STR_NONE)
		return false;
	number = (struct str){ text.p + colon + 1, text.n - 1 - (colon + 1) };
	f->function = (struct str){ text.p, open - 1 };
	f->file = (struct str){ text.p + open + 1, colon - open - 1 };
	if (number_parse_int(number, 10, &f->line) != NUMBER_OK || f->line < 0)
		f->line = 0;
	return true;
}

/* `^(.*)\s+\((.*)\)$` */
static bool match_path(struct str text, struct java_frame *f)
{
	size_t open;

	if (!text.n || text.p[text.n - 1] != ')')
		return false;
	open = last_parenthesis(text, text.n - 1, 0);
	if (open == STR_NONE)
		return false;
	f->function = (struct str){ text.p, open - 1 };
	f->file = path_base((struct str){ text.p + open + 1, text.n - 1 - (open + 1) });
	return true;
}

static struct java_frame parse_frame(struct str text)
{
	struct java_frame f = { 0 };

	if (match_file_line(text, &f) || match_path(text, &f))
		return f;
	f.function = str_contains(text, STR("generated stub/JIT")) ? STR("STUB") : text;
	return f;
}

/* Functions by name; the first one to have a name gives it its file. */
struct java_functions {
	struct builder *b;
	uint64_t seed;
	struct map by_name;
};

struct name_key {
	const struct function *functions;
	uint32_t name;
};

static bool same_name(const void *ctx, uint32_t index)
{
	const struct name_key *k = ctx;

	return k->functions[index].name == k->name;
}

static uint32_t find_function(struct java_functions *f, const struct java_frame *frame)
{
	struct builder *b = f->b;
	uint32_t name = builder_string(b, frame->function);
	struct name_key key = { b->functions.at, name };
	uint32_t i = map_put(&f->by_name, hash_mix(f->seed, name), b->functions.n, same_name, &key);

	if (i == b->functions.n) {
		struct function fn = { .id = i + 1u,
				       .name = name,
				       .system_name = name,
				       .filename = builder_string(b, frame->file) };

		vec_push(&b->functions, fn);
	}
	return i;
}

/* `^\s*0x(HEX)\s+(.*)\s*$` */
static bool read_location(struct legacy *r, struct java_functions *functions, struct str line,
			  struct err *e)
{
	struct cursor c = { line, 0 };
	enum number_result why;
	struct java_frame frame;
	struct location *l;
	struct str hex;
	uint64_t address;
	uint32_t found;

	if (!cursor_literal(&c, STR("0x")) || !(hex = cursor_hex(&c)).n || !cursor_spaces(&c).n)
		return true;
	why = number_parse_uint(hex, 16, &address);
	if (why != NUMBER_OK) {
		number_error(e, why, "ParseUint", hex);
		e->kind = ERR_FORMAT;
		return err_wrap(e, "parsing sample %.*s", STR_ARG(line));
	}
	found = legacy_find_location(r, address);
	if (found == NONE)
		return true;
	frame = parse_frame(str_from(line, c.at));
	l = &r->b.locations.at[found];
	if (!l->nlines) {
		l->first_line = (uint32_t)r->b.lines.n;
		l->nlines = 1;
		vec_push(&r->b.lines, (struct line){ 0 });
	}
	r->b.lines.at[l->first_line] =
		(struct line){ .line = frame.line, .function = find_function(functions, &frame) };
	return true;
}

static bool read_location_lines(struct legacy *r, struct str text, struct err *e)
{
	struct java_functions functions = { .b = &r->b, .seed = map_seed() };
	bool ok = true;

	while (ok && text.n) {
		struct str line = text_trim(str_cut(&text, '\n'));

		ok = read_location(r, &functions, line, e);
	}
	map_release(&functions.by_name);
	return ok;
}

bool java_read_locations(struct legacy *r, struct str text, struct err *e)
{
	struct builder *b = &r->b;

	if (!read_location_lines(r, text, e))
		return false;
	legacy_renumber(r);
	for (size_t i = 0; i < b->locations.n; i++)
		if (b->locations.at[i].nlines)
			b->locations.at[i].address = 0;
	legacy_assign_mappings(r);
	/* Addresses are arbitrary numbers here, and would keep profiles from being merged. */
	for (size_t i = 0; i < b->locations.n; i++)
		b->locations.at[i].address = 0;
	if (b->samples.n && !b->types.n)
		return err_set(e, ERR_FORMAT, "missing sample type information");
	return true;
}

bool legacy_read_java(struct legacy *r, struct str data, struct err *e)
{
	struct java_reader j = { .r = r, .rest = data };
	struct str header;

	if (str_find_char(data, '\n') == STR_NONE)
		return unrecognized(e);
	header = text_trim(str_cut(&j.rest, '\n'));
	if (str_eq(header, STR("--- contentionz 1 ---")))
		j.kind = JAVA_CONTENTION;
	else if (!str_eq(header, STR("--- heapz 1 ---")))
		return unrecognized(e);
	return read_header(&j, e) && read_samples(&j, e) && java_read_locations(r, j.rest, e);
}
