/* Go's count profiles, and threadz and contentionz pages of C++ servers. */
#include "base/int.h"
#include "profile/legacy_parse.h"

#include "base/number.h"

static bool unrecognized(struct err *e)
{
	return err_set(e, ERR_UNRECOGNIZED, "no text profile");
}

/* `\A(\S+) profile: total \d+\z` */
static bool match_count_header(struct str line, struct str *name)
{
	struct cursor c = { line, 0 };

	while (c.at < line.n && !is_regex_space(line.p[c.at]))
		c.at++;
	*name = (struct str){ line.p, c.at };
	return name->n && cursor_literal(&c, STR(" profile: total ")) && cursor_digits(&c).n &&
	       c.at == line.n;
}

/* `\A(\d+) @(( 0x[0-9a-f]+)+)\z` */
static bool read_count_sample(struct legacy *r, struct str line, struct err *e)
{
	struct cursor c = { line, 0 };
	struct str count = cursor_digits(&c);
	int64_t value;

	if (!count.n || number_parse_int(count, 0, &value) != NUMBER_OK ||
	    !cursor_literal(&c, STR(" @")) || c.at == line.n)
		return err_set(e, ERR_FORMAT, "malformed profile format");
	while (c.at < line.n) {
		struct str number;
		uint64_t address;

		if (!cursor_char(&c, ' '))
			return err_set(e, ERR_FORMAT, "malformed profile format");
		number.p = line.p + c.at;
		while (c.at < line.n && line.p[c.at] != ' ' &&
		       (line.p[c.at] < 'A' || line.p[c.at] > 'F'))
			c.at++;
		number.n = (size_t)(line.p + c.at - number.p);
		if (!str_has_prefix(number, STR("0x")) ||
		    number_parse_uint(str_from(number, 2), 16, &address) != NUMBER_OK)
			return err_set(e, ERR_FORMAT, "malformed profile format");
		vec_push(&r->addresses, address);
	}
	legacy_sample(r, ADJUST_ALL, 0, &value);
	return true;
}

bool legacy_read_count(struct legacy *r, struct str data, struct err *e)
{
	struct lines in = { .rest = data };
	struct str name;

	lines_next_content(&in);
	if (!lines_check(&in, e))
		return false;
	if (!match_count_header(in.line, &name))
		return unrecognized(e);
	legacy_add_type(r, name, STR("count"));
	legacy_set_period(r, name, STR("count"), 1);
	while (lines_next_content(&in) && !str_has_prefix(in.line, STR("---")))
		if (!read_count_sample(r, in.line, e))
			return false;
	return lines_check(&in, e) && legacy_read_map_section(r, &in, e);
}

/* `--- threadz \d+ ---` */
static bool is_threadz_header(struct str line)
{
	const struct str start = STR("--- threadz ");
	struct cursor c = { line, 0 };
	size_t at;

	while ((at = str_find(str_from(line, c.at), start)) != STR_NONE) {
		c.at += at + start.n;
		if (cursor_digits(&c).n && cursor_literal(&c, STR(" ---")))
			return true;
	}
	return false;
}

/* `/(\d+)\) stack: ---` */
static bool has_thread_header_end(struct str text)
{
	const struct str end = STR(") stack: ---");
	size_t at = 0, found;

	while ((found = str_find(str_from(text, at), end)) != STR_NONE) {
		size_t digits = at + found, i = digits;

		while (i > at && is_digit(text.p[i - 1]))
			i--;
		if (i < digits && i > at && text.p[i - 1] == '/')
			return true;
		at = digits + 1;
	}
	return false;
}

/* `--- Thread ([[:xdigit:]]+) \(name: (.*)/(\d+)\) stack: ---`. What can follow a later start can
 * follow the first one as well. */
static bool is_thread_header(struct str line)
{
	const struct str start = STR("--- Thread ");
	struct cursor c = { line, 0 };
	size_t at;

	while ((at = str_find(str_from(line, c.at), start)) != STR_NONE) {
		c.at += at + start.n;
		if (cursor_hex(&c).n && cursor_literal(&c, STR(" (name: ")))
			return has_thread_header_end(str_from(line, c.at));
	}
	return false;
}

/* Reads the lines of one thread into r->addresses, and the line that ended them into *next: one
 * that starts with ---, or at the end of the file the last one there was. */
static bool read_thread(struct legacy *r, struct lines *in, struct str *next, struct err *e)
{
	bool is_same = false;

	*next = STR("");
	while (lines_next(in)) {
		*next = text_trim(in->line);
		if (!next->n)
			continue;
		if (str_has_prefix(*next, STR("---")))
			break;
		if (str_contains(*next, STR("same as previous thread")))
			is_same = true;
		else if (!legacy_addresses(r, *next, *next, e))
			return false;
	}
	if (is_same)
		r->addresses.n = 0;
	return lines_check(in, e);
}

static bool find_first_thread(struct lines *in, struct str *line, struct err *e)
{
	lines_next_content(in);
	*line = in->line;
	if (!is_threadz_header(*line))
		return is_thread_header(*line) || unrecognized(e);
	while (lines_next(in)) {
		*line = in->line;
		if (text_is_map_sentinel(*line) || str_has_prefix(*line, STR("-")))
			break;
	}
	return true;
}

bool legacy_read_threads(struct legacy *r, struct str data, struct err *e)
{
	struct lines in = { .rest = data };
	const int64_t one = 1;
	struct str line;

	if (!find_first_thread(&in, &line, e))
		return false;
	legacy_add_type(r, STR("thread"), STR("count"));
	legacy_set_period(r, STR("thread"), STR("count"), 1);
	while (!text_is_map_sentinel(line) &&
	       !str_has_prefix(line, STR("---- no stack trace for"))) {
		if (!is_thread_header(line))
			return unrecognized(e);
		if (!read_thread(r, &in, &line, e))
			return false;
		if (r->addresses.n)
			legacy_sample(r, ADJUST_CALLERS, 0, &one);
		else if (r->b.samples.n)
			r->b.values.at[r->b.samples.n - 1]++;
	}
	if (!legacy_read_map_section(r, &in, e))
		return false;
	legacy_drop_repeated_leaves(r);
	return true;
}

struct contention_header {
	int64_t hz, period;
};

static bool read_attribute(struct legacy *r, struct contention_header *h, struct str key,
			   struct str value, struct err *e)
{
	int64_t ignored, *out = &ignored;
	bool is_reset = str_eq(key, STR("ms since reset"));

	if (str_eq(key, STR("discarded samples")))
		return true;
	if (str_eq(key, STR("cycles/second")))
		out = &h->hz;
	else if (str_eq(key, STR("sampling period")))
		out = &h->period;
	else if (!is_reset)
		return unrecognized(e);
	if (number_parse_int(value, 0, out) != NUMBER_OK)
		return unrecognized(e);
	if (is_reset)
		r->b.head.duration_nanos = (int64_t)((uint64_t)*out * 1000000);
	return true;
}

/* `key = value` lines. Stops at the first line that is none. */
static bool read_contention_header(struct legacy *r, struct lines *in, struct contention_header *h,
				   struct err *e)
{
	while (lines_next_content(in)) {
		struct str line = text_trim(in->line);
		size_t equals = str_find_char(line, '=');

		if (str_has_prefix(line, STR("---")) || equals == STR_NONE)
			break;
		if (!read_attribute(r, h, text_trim((struct str){ line.p, equals }),
				    text_trim(str_from(line, equals + 1)), e))
			return false;
	}
	return lines_check(in, e);
}

struct contention_line {
	struct str delay, count, addresses;
};

/* `(\d+) *(\d+) @([ x0-9a-f]*)`, found anywhere. A lone number is split before its last digit. */
static bool match_contention(struct str line, struct contention_line *l)
{
	struct cursor c = { line, 0 };

	while (c.at < line.n) {
		size_t after;

		l->delay = cursor_digits(&c);
		if (!l->delay.n) {
			c.at++;
			continue;
		}
		after = c.at;
		cursor_blanks(&c);
		l->count = cursor_digits(&c);
		if (!l->count.n && l->delay.n > 1) {
			c.at = after;
			l->delay.n--;
			l->count = (struct str){ l->delay.p + l->delay.n, 1 };
		}
		if (l->count.n && cursor_literal(&c, STR(" @"))) {
			l->addresses = cursor_address_list(&c);
			return true;
		}
		c.at = after;
	}
	return false;
}

static bool read_contention_sample(struct legacy *r, const struct contention_header *h,
				   struct str line, struct err *e)
{
	struct contention_line l;
	int64_t values[2];

	if (!match_contention(line, &l))
		return unrecognized(e);
	if (!sample_int(l.delay, line, &values[1], e) || !sample_int(l.count, line, &values[0], e))
		return false;
	if (h->period > 0) {
		if (h->hz > 0)
			values[1] = int_from_double((double)values[1] * (double)h->period /
						    ((double)h->hz / 1e9));
		values[0] = (int64_t)((uint64_t)values[0] * (uint64_t)h->period);
	}
	if (!legacy_addresses(r, l.addresses, line, e))
		return false;
	legacy_sample(r, ADJUST_ALL, 0, values);
	return true;
}

bool legacy_read_contention(struct legacy *r, struct str data, struct err *e)
{
	struct lines in = { .rest = data };
	struct contention_header h = { .period = 1 };

	if (!lines_next(&in))
		return lines_check(&in, e) && unrecognized(e);
	if (!str_has_prefix(in.line, STR("--- contentionz ")) &&
	    !str_has_prefix(in.line, STR("--- mutex:")) &&
	    !str_has_prefix(in.line, STR("--- contention:")))
		return unrecognized(e);
	legacy_add_type(r, STR("contentions"), STR("count"));
	legacy_add_type(r, STR("delay"), STR("nanoseconds"));
	if (!read_contention_header(r, &in, &h, e))
		return false;
	legacy_set_period(r, STR("contentions"), STR("count"), h.period);
	while (in.line.n && !str_has_prefix(text_trim(in.line), STR("---"))) {
		if (!read_contention_sample(r, &h, text_trim(in.line), e))
			return false;
		lines_next_content(&in);
	}
	return lines_check(&in, e) && legacy_read_map_section(r, &in, e);
}
