/* Folded stacks, as stackcollapse-*.pl and difffolded.pl write and flamegraph.pl reads them:
 *
 *	main;parse;read_token 12
 *	main;parse;read_token 12 15		before and after
 *
 * Names may contain anything but NUL, numbers and blanks included, so a file holds differences only
 * if every line ends in two numbers.
 */
#include "profile/legacy_parse.h"

struct folded_line {
	struct str stack;
	int64_t counts[2]; /* the last number, and the one before it */
	int ncounts;
};

/* Takes a number off the end of the text: `\s+(\d+(?:\.\d*)?)$`, the fraction is ignored. */
static bool take_count(struct str *text, int64_t *count)
{
	size_t end = text->n, start;
	uint64_t v = 0;

	for (start = end; start && is_digit(text->p[start - 1]); start--)
		;
	if (start && text->p[start - 1] == '.') {
		end = --start;
		while (start && is_digit(text->p[start - 1]))
			start--;
	}
	if (start == end || !start || !is_regex_space(text->p[start - 1]))
		return false;
	for (size_t i = start; i < end; i++) {
		uint64_t digit = (uint64_t)(text->p[i] - '0');

		if (v > (INT64_MAX - digit) / 10)
			return false;
		v = v * 10 + digit;
	}
	while (start && is_regex_space(text->p[start - 1]))
		start--;
	text->n = start;
	*count = (int64_t)v;
	return true;
}

/* At most two counts; the stack that they leave is not empty. */
static bool parse_line(struct str text, int max_counts, struct folded_line *out)
{
	*out = (struct folded_line){ .stack = text };
	while (out->ncounts < max_counts) {
		struct str before = out->stack;

		if (!take_count(&before, &out->counts[out->ncounts]) || !before.n)
			break;
		out->stack = before;
		out->ncounts++;
	}
	return out->ncounts > 0;
}

static bool next_line(struct str *rest, struct str *line)
{
	while (rest->n) {
		*line = str_trim(str_cut(rest, '\n'));
		if (line->n && line->p[0] != '#')
			return true;
	}
	return false;
}

/* How many counts every line has: 2, 1, or 0 if this is another format. */
static int count_counts(struct str data)
{
	struct folded_line l;
	struct str line;
	int least = 3;

	/* Bytes that happen to end in a number are no text. */
	if (str_find_char(data, 0) != STR_NONE)
		return 0;
	while (least && next_line(&data, &line)) {
		parse_line(line, 2, &l);
		if (l.ncounts < least)
			least = l.ncounts;
	}
	return least == 3 ? 0 : least;
}

struct folded_reader {
	struct legacy *r;
	int ncounts;
	uint32_t base_label;
	vec(uint32_t) location_of; /* by string; plus 1 */
};

/* Function, line and location of a name are rows of the same index. */
static uint32_t find_location(struct folded_reader *f, struct str name)
{
	struct builder *b = &f->r->b;
	uint32_t string = builder_string(b, name), i = (uint32_t)b->locations.n;

	if (string >= f->location_of.n) {
		size_t more = b->head.strings->n - f->location_of.n;

		vec_reserve(&f->location_of, more);
		memset(f->location_of.at + f->location_of.n, 0, more * sizeof(uint32_t));
		f->location_of.n += more;
	}
	if (f->location_of.at[string])
		return f->location_of.at[string] - 1;
	vec_push(&b->functions,
		 (struct function){ .id = i + 1u, .name = string, .system_name = string });
	vec_push(&b->lines, (struct line){ .function = i });
	vec_push(&b->locations,
		 (struct location){ .id = i + 1u, .mapping = NONE, .first_line = i, .nlines = 1 });
	f->location_of.at[string] = i + 1;
	return i;
}

/* Frames from the last to the first, as stacks are stored leaf first. Empty ones are left out. */
static void read_stack(struct folded_reader *f, struct str text)
{
	size_t end = text.n;

	f->r->stack.n = 0;
	while (end) {
		size_t before = str_rfind_char((struct str){ text.p, end }, ';');
		size_t start = before == STR_NONE ? 0 : before + 1;

		if (start < end) {
			uint32_t location =
				find_location(f, (struct str){ text.p + start, end - start });

			vec_push(&f->r->stack, location);
		}
		end = before == STR_NONE ? 0 : before;
	}
}

static void add_sample(struct folded_reader *f, uint32_t labels, int64_t value)
{
	builder_sample(&f->r->b, f->r->stack.at, f->r->stack.n, labels, &value);
}

static void read_line(struct folded_reader *f, struct str line)
{
	struct folded_line l;

	parse_line(line, f->ncounts, &l);
	read_stack(f, l.stack);
	if (f->ncounts == 1) {
		add_sample(f, 0, l.counts[0]);
		return;
	}
	if (l.counts[0])
		add_sample(f, 0, l.counts[0]);
	if (l.counts[1])
		add_sample(f, f->base_label, -l.counts[1]);
}

bool folded_read(struct legacy *r, struct str data, struct err *e)
{
	struct folded_reader f = { .r = r, .ncounts = count_counts(data) };
	struct label base = { .key = 0 };
	struct str line;

	if (!f.ncounts)
		return err_set(e, ERR_UNRECOGNIZED, "no folded stacks");
	base.key = builder_string(&r->b, STR(LABEL_BASE));
	base.text = builder_string(&r->b, STR("true"));
	f.base_label = label_table_add_set(&r->b.labels, &base, 1, 0);
	legacy_add_type(r, STR("samples"), STR("count"));
	legacy_set_period(r, STR("samples"), STR("count"), 1);
	while (next_line(&data, &line))
		read_line(&f, line);
	vec_release(&f.location_of);
	return true;
}
