#include "profile/legacy_parse.h"

#include "base/number.h"

/* What `$name` substitutions may cost in one file, in bytes compared and copied. Real maps need a
 * few thousand; without a limit a line could double the length of the next. */
#define SUBSTITUTION_BUDGET ((size_t)64 << 20)

struct attribute {
	struct str name, value; /* name without the '$' */
};

struct map_reader {
	struct legacy *r;
	vec(struct attribute) attributes;
	struct arena text; /* names and values */
	struct buf line;
	size_t budget;
};

/* Pattern `^[^\[\]]+:[0-9]+]\s`: the prefix that a log file puts before a line. */
static struct str strip_log_prefix(struct str line)
{
	size_t close = 0, i;

	while (close < line.n && line.p[close] != '[' && line.p[close] != ']')
		close++;
	if (close + 1 >= line.n || line.p[close] == '[' || !is_regex_space(line.p[close + 1]))
		return line;
	for (i = close; i > 0 && is_digit(line.p[i - 1]); i--)
		;
	if (i == close || i < 2 || line.p[i - 1] != ':')
		return line;
	return str_from(line, close + 2);
}

/* The attribute whose name stands at the start of `text`: the one that was defined first. */
static const struct attribute *find_attribute(struct map_reader *m, struct str text)
{
	for (size_t i = 0; i < m->attributes.n; i++) {
		const struct attribute *a = &m->attributes.at[i];
		size_t cost = a->name.n + 1;

		if (m->budget < cost)
			return NULL;
		m->budget -= cost;
		if (str_has_prefix(text, a->name))
			return a;
	}
	return NULL;
}

static bool substitute(struct map_reader *m, struct str *line, struct err *e)
{
	struct str rest = *line;
	size_t dollar;

	if (!m->attributes.n || str_find_char(rest, '$') == STR_NONE)
		return true;
	m->line.n = 0;
	while ((dollar = str_find_char(rest, '$')) != STR_NONE) {
		struct str after = str_from(rest, dollar + 1);
		const struct attribute *a = find_attribute(m, after);
		size_t cost = a ? a->value.n : 0;

		if (m->budget <= cost)
			return err_set(e, ERR_LIMIT, "memory map with too many substitutions");
		m->budget -= cost;
		buf_add(&m->line, rest.p, a ? dollar : dollar + 1);
		if (a)
			buf_str(&m->line, a->value);
		rest = a ? str_from(after, a->name.n) : after;
	}
	buf_str(&m->line, rest);
	*line = buf_view(&m->line);
	return true;
}

static struct str keep_text(struct map_reader *m, struct str s)
{
	return (struct str){ str_dup(&m->text, s), s.n };
}

static void add_attribute(struct map_reader *m, struct str line)
{
	size_t equals = str_find_char(line, '=');
	struct attribute a;

	if (equals == STR_NONE)
		return;
	a.name = keep_text(m, text_trim((struct str){ line.p, equals }));
	a.value = keep_text(m, text_trim(str_from(line, equals + 1)));
	vec_push(&m->attributes, a);
}

struct map_entry {
	struct str start, end, permissions, offset, file, build_id;
};

/* `(?:0x)?(HEX)`, with 0x taken only if digits follow; otherwise its 0 is the number. */
static struct str prefixed_hex(struct cursor *c)
{
	size_t from = c->at;

	if (cursor_literal(c, STR("0x")) && c->at < c->s.n && is_hex_digit(c->s.p[c->at]))
		return cursor_hex(c);
	c->at = from;
	return cursor_hex(c);
}

/* `(?:0x)?(HEX)[\s-]?\s*(?:0x)?(HEX):?`. With `split` the last digit of the first run begins the
 * second number, which is what a backtracking matcher tries when the pattern fails otherwise. */
static bool address_range(struct cursor *c, bool split, struct map_entry *m)
{
	m->start = prefixed_hex(c);
	if (split) {
		if (m->start.n < 2)
			return false;
		m->start.n--;
		c->at--;
	} else {
		if (!m->start.n)
			return false;
		if (!cursor_char(c, '-') && c->at < c->s.n && is_regex_space(c->s.p[c->at]))
			c->at++;
		cursor_spaces(c);
	}
	m->end = prefixed_hex(c);
	if (!m->end.n)
		return false;
	cursor_char(c, ':');
	return true;
}

/* `(?:\s+([-rwxp]+))?` */
static struct str optional_permissions(struct cursor *c)
{
	size_t from = c->at, start;

	cursor_spaces(c);
	start = c->at;
	if (start > from)
		while (c->at < c->s.n && c->s.p[c->at] && strchr("-rwxp", c->s.p[c->at]))
			c->at++;
	if (c->at == start)
		c->at = from;
	return (struct str){ c->s.p + start, c->at > start ? c->at - start : 0 };
}

/* `(?:\s+(\S+))?` */
static struct str optional_word(struct cursor *c)
{
	size_t from = c->at, start;

	cursor_spaces(c);
	start = c->at;
	if (start > from)
		while (c->at < c->s.n && !is_regex_space(c->s.p[c->at]))
			c->at++;
	if (c->at == start)
		c->at = from;
	return (struct str){ c->s.p + start, c->at > start ? c->at - start : 0 };
}

/* `(?:\s+(HEX))?` */
static struct str optional_hex(struct cursor *c)
{
	size_t from = c->at;
	struct str hex = { c->s.p, 0 };

	if (cursor_spaces(c).n)
		hex = cursor_hex(c);
	if (!hex.n)
		c->at = from;
	return hex;
}

/* `(?:\s+\(@(HEX)\))?` */
static struct str optional_at_offset(struct cursor *c)
{
	size_t from = c->at;
	struct str hex = { c->s.p, 0 };

	if (cursor_spaces(c).n && cursor_literal(c, STR("(@")))
		hex = cursor_hex(c);
	if (hex.n && cursor_char(c, ')'))
		return hex;
	c->at = from;
	return (struct str){ c->s.p, 0 };
}

/* After the range in /proc/PID/maps: permissions, offset, device and inode, of which only the last
 * two must be there, then the file. */
static bool proc_map_tail(struct cursor *c, struct map_entry *m)
{
	m->permissions = optional_permissions(c);
	if (!cursor_spaces(c).n)
		return false;
	m->offset = cursor_hex(c);
	if (cursor_sees(c, ':')) { /* it was the device */
		if (!m->offset.n)
			return false;
		m->offset.n = 0;
	} else if (!m->offset.n || !cursor_spaces(c).n || !cursor_hex(c).n) {
		return false;
	}
	if (!cursor_char(c, ':') || !cursor_hex(c).n || !cursor_spaces(c).n || !cursor_digits(c).n)
		return false;
	m->file = optional_word(c);
	return true;
}

static bool match_proc_map(struct str line, struct map_entry *m)
{
	struct cursor c = { line, 0 };
	size_t start;

	cursor_spaces(&c);
	start = c.at;
	for (int split = 0; split < 2; split++) {
		*m = (struct map_entry){ 0 };
		c.at = start;
		if (address_range(&c, split, m) && proc_map_tail(&c, m))
			return true;
	}
	return false;
}

static bool match_brief_map(struct str line, struct map_entry *m)
{
	struct cursor c = { line, 0 };
	size_t start;

	cursor_spaces(&c);
	start = c.at;
	*m = (struct map_entry){ 0 };
	if (!address_range(&c, false, m)) {
		c.at = start;
		if (!address_range(&c, true, m))
			return false;
	}
	m->permissions = optional_permissions(&c);
	m->file = optional_word(&c);
	m->offset = optional_at_offset(&c);
	m->build_id = optional_hex(&c);
	return true;
}

static void read_map_line(struct map_reader *m, struct str line)
{
	struct builder *b = &m->r->b;
	struct mapping mapping = { 0 };
	struct map_entry entry;

	if (!match_proc_map(line, &entry) && !match_brief_map(line, &entry)) {
		add_attribute(m, line);
		return;
	}
	if (entry.permissions.n && str_find_char(entry.permissions, 'x') == STR_NONE)
		return;
	if (number_parse_uint(entry.start, 16, &mapping.start) != NUMBER_OK ||
	    number_parse_uint(entry.end, 16, &mapping.limit) != NUMBER_OK ||
	    (entry.offset.n && number_parse_uint(entry.offset, 16, &mapping.offset) != NUMBER_OK)) {
		add_attribute(m, line);
		return;
	}
	mapping.file = builder_string(b, entry.file);
	mapping.build_id = builder_string(b, entry.build_id);
	vec_push(&b->mappings, mapping);
}

static bool read_map_lines(struct map_reader *m, struct lines *in, struct err *e)
{
	while (lines_next(in)) {
		struct str line = strip_log_prefix(in->line);

		if (!substitute(m, &line, e))
			return false;
		read_map_line(m, line);
	}
	return lines_check(in, e);
}

static bool is_adjacent(const struct mapping *a, const struct mapping *b)
{
	if (a->file && b->file && a->file != b->file)
		return false;
	if (a->build_id && b->build_id && a->build_id != b->build_id)
		return false;
	if (a->limit != b->start)
		return false;
	return !a->offset || !b->offset || a->offset + (a->limit - a->start) == b->offset;
}

static void merge_adjacent(struct builder *b)
{
	size_t n = 0;

	for (size_t i = 0; i < b->mappings.n; i++) {
		struct mapping *m = &b->mappings.at[i], *last = n ? &b->mappings.at[n - 1] : NULL;

		if (!last || !is_adjacent(last, m)) {
			b->mappings.at[n++] = *m;
			continue;
		}
		last->limit = m->limit;
		if (m->file)
			last->file = m->file;
		if (m->build_id)
			last->build_id = m->build_id;
	}
	b->mappings.n = n;
}

/* `([.]so$|[.]so[._][0-9]+)` somewhere in the name. */
static bool is_library(struct str file)
{
	size_t at;

	while ((at = str_find(file, STR(".so"))) != STR_NONE) {
		file = str_from(file, at + 3);
		if (!file.n)
			return true;
		if (file.n >= 2 && (file.p[0] == '.' || file.p[0] == '_') && is_digit(file.p[1]))
			return true;
	}
	return false;
}

static bool looks_like_main_binary(struct str file, struct buf *scratch)
{
	const struct str deleted = STR("(deleted)");
	size_t at;

	if (!file.n)
		return false;
	scratch->n = 0;
	while ((at = str_find(file, deleted)) != STR_NONE) {
		buf_add(scratch, file.p, at);
		file = str_from(file, at + deleted.n);
	}
	buf_str(scratch, file);
	file = text_trim(buf_view(scratch));
	return file.n && !is_library(file) && file.p[0] != '[';
}

static void put_main_binary_first(struct builder *b)
{
	struct buf scratch = { 0 };

	for (size_t i = 0; i < b->mappings.n; i++) {
		struct mapping *m = &b->mappings.at[i], first = b->mappings.at[0];

		if (looks_like_main_binary(b->head.strings->at[m->file], &scratch)) {
			b->mappings.at[0] = *m;
			*m = first;
			break;
		}
	}
	buf_release(&scratch);
}

bool legacy_read_map(struct legacy *r, struct lines *in, struct err *e)
{
	struct map_reader m = { .r = r, .budget = SUBSTITUTION_BUDGET };
	bool ok = read_map_lines(&m, in, e);

	vec_release(&m.attributes);
	arena_release(&m.text);
	buf_release(&m.line);
	if (!ok)
		return false;
	merge_adjacent(&r->b);
	put_main_binary_first(&r->b);
	legacy_renumber(r);
	legacy_assign_mappings(r);
	return true;
}

bool legacy_read_map_section(struct legacy *r, struct lines *in, struct err *e)
{
	while (!text_is_map_sentinel(in->line) && lines_next(in))
		;
	return lines_check(in, e) && legacy_read_map(r, in, e);
}
