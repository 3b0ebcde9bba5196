#include "profile/legacy_parse.h"

#include "base/number.h"

struct heap_format {
	int64_t period;
	bool has_alloc, is_sampled;
};

static bool unrecognized(struct err *e)
{
	return err_set(e, ERR_UNRECOGNIZED, "no heap profile");
}

struct heap_header {
	struct str inuse_count, inuse_bytes, alloc_count, alloc_bytes, kind, rate;
	bool is_growth; /* or fragmentation */
};

/* `*(\d+): *(\d+) *\[ *(\d+): *(\d+) *\]` */
static bool match_totals(struct cursor *c, struct heap_header *h)
{
	cursor_blanks(c);
	h->inuse_count = cursor_digits(c);
	if (!h->inuse_count.n || !cursor_char(c, ':'))
		return false;
	cursor_blanks(c);
	h->inuse_bytes = cursor_digits(c);
	cursor_blanks(c);
	if (!h->inuse_bytes.n || !cursor_char(c, '['))
		return false;
	cursor_blanks(c);
	h->alloc_count = cursor_digits(c);
	if (!h->alloc_count.n || !cursor_char(c, ':'))
		return false;
	cursor_blanks(c);
	h->alloc_bytes = cursor_digits(c);
	cursor_blanks(c);
	return h->alloc_bytes.n && cursor_char(c, ']');
}

/* `heap[_a-z0-9]*` */
static struct str heap_kind(struct cursor *c)
{
	size_t from = c->at;

	if (cursor_literal(c, STR("heap")))
		while (c->at < c->s.n && (c->s.p[c->at] == '_' || is_digit(c->s.p[c->at]) ||
					  (c->s.p[c->at] >= 'a' && c->s.p[c->at] <= 'z')))
			c->at++;
	return (struct str){ c->s.p + from, c->at - from };
}

/* Finds `heap profile:` and what has to follow it. With `growth` what follows is ` @ growth` or
 * ` @ fragmentation`, else ` *@ *(heap[_a-z0-9]*)/?(\d*)`. */
static bool match_header(struct str line, bool growth, struct heap_header *h)
{
	const struct str start = STR("heap profile:");
	struct cursor c = { line, 0 };
	size_t at;

	while ((at = str_find(str_from(line, c.at), start)) != STR_NONE) {
		struct cursor tail;

		c.at += at + start.n;
		tail = c;
		*h = (struct heap_header){ .is_growth = growth };
		if (!match_totals(&tail, h))
			continue;
		if (growth) {
			if (cursor_literal(&tail, STR(" @ growth")) ||
			    cursor_literal(&tail, STR(" @ fragmentation")))
				return true;
			continue;
		}
		cursor_blanks(&tail);
		if (!cursor_char(&tail, '@'))
			continue;
		cursor_blanks(&tail);
		h->kind = heap_kind(&tail);
		cursor_char(&tail, '/');
		h->rate = cursor_digits(&tail);
		if (h->kind.n)
			return true;
	}
	return false;
}

static bool differs_and_counts(struct str alloc, struct str inuse)
{
	return !str_eq(alloc, inuse) && !str_eq(alloc, STR("0"));
}

static bool read_header(struct str line, struct heap_format *f, struct err *e)
{
	struct heap_header h;

	*f = (struct heap_format){ .period = 1 };
	if (!match_header(line, false, &h))
		return match_header(line, true, &h) || unrecognized(e);
	f->period = 0;
	if (h.rate.n && number_parse_int(h.rate, 10, &f->period) != NUMBER_OK)
		return unrecognized(e);
	f->has_alloc = differs_and_counts(h.alloc_count, h.inuse_count) ||
		       differs_and_counts(h.alloc_bytes, h.inuse_bytes);
	f->is_sampled = true;
	if (str_eq(h.kind, STR("heapz_v2")) || str_eq(h.kind, STR("heap_v2")))
		return true;
	if (str_eq(h.kind, STR("heap"))) { /* Go wrote twice its rate */
		f->period /= 2;
		return true;
	}
	if (!str_eq(h.kind, STR("heapprofile")))
		return unrecognized(e);
	f->is_sampled = false;
	f->period = 1;
	return true;
}

struct heap_line {
	struct str inuse_count, inuse_bytes, alloc_count, alloc_bytes, addresses;
};

/* `-?\d+` */
static struct str signed_digits(struct cursor *c)
{
	size_t from = c->at;

	cursor_char(c, '-');
	if (!cursor_digits(c).n)
		c->at = from;
	return (struct str){ c->s.p + from, c->at - from };
}

/* After the first colon: ` *(-?\d+) *\[ *(\d+): *(\d+) *] @([ x0-9a-f]*)` */
static bool match_sample_tail(struct cursor *c, struct heap_line *l)
{
	cursor_blanks(c);
	l->inuse_bytes = signed_digits(c);
	cursor_blanks(c);
	if (!l->inuse_bytes.n || !cursor_char(c, '['))
		return false;
	cursor_blanks(c);
	l->alloc_count = cursor_digits(c);
	if (!l->alloc_count.n || !cursor_char(c, ':'))
		return false;
	cursor_blanks(c);
	l->alloc_bytes = cursor_digits(c);
	cursor_blanks(c);
	if (!l->alloc_bytes.n || !cursor_literal(c, STR("] @")))
		return false;
	l->addresses = cursor_address_list(c);
	return true;
}

/* Finds the first colon with a number before it, `(-?\d+):`, and the rest after it. */
static bool match_sample(struct str line, struct heap_line *l)
{
	size_t at = 0, found;

	while ((found = str_find_char(str_from(line, at), ':')) != STR_NONE) {
		size_t start = at + found;
		struct cursor c = { line, start + 1 };

		at = c.at;
		while (start && is_digit(line.p[start - 1]))
			start--;
		if (start + 1 == at || !match_sample_tail(&c, l))
			continue;
		if (start && line.p[start - 1] == '-')
			start--;
		l->inuse_count = (struct str){ line.p + start, at - 1 - start };
		return true;
	}
	return false;
}

struct heap_pair {
	struct str count, bytes;
	const char *label;
};

static bool read_pair(const struct heap_format *f, const struct heap_pair *in, struct str line,
		      int64_t values[2], int64_t *block_size, struct err *e)
{
	int64_t count, size;

	if (!sample_int(in->count, line, &count, e) || !sample_int(in->bytes, line, &size, e))
		return false;
	if (count == 0 && size != 0)
		return err_set(e, ERR_FORMAT, "%s count was 0 but %s bytes was %lld", in->label,
			       in->label, (long long)size);
	if (count != 0) {
		/* INT64_MIN / -1 does not fit and wraps. */
		*block_size = count == -1 ? (int64_t) - (uint64_t)size : size / count;
		if (f->is_sampled)
			legacy_unbias(&count, &size, f->period);
	}
	values[0] = count;
	values[1] = size;
	return true;
}

static bool read_sample(struct legacy *r, const struct heap_format *f, struct str line,
			struct err *e)
{
	int64_t values[4], *inuse = f->has_alloc ? values + 2 : values, block_size = 0;
	struct heap_line l;

	if (!match_sample(line, &l))
		return err_set(e, ERR_FORMAT, "unexpected number of sample values: got 0, want 6");
	if (f->has_alloc) {
		struct heap_pair alloc = { l.alloc_count, l.alloc_bytes, "allocation" };

		if (!read_pair(f, &alloc, line, values, &block_size, e))
			return false;
	}
	if (!read_pair(f, &(struct heap_pair){ l.inuse_count, l.inuse_bytes, "inuse" }, line, inuse,
		       &block_size, e) ||
	    !legacy_addresses(r, l.addresses, line, e))
		return false;
	legacy_sample(r, ADJUST_ALL, legacy_bytes_label(r, block_size), values);
	return true;
}

bool legacy_read_heap(struct legacy *r, struct str data, struct err *e)
{
	struct lines in = { .rest = data };
	struct heap_format f;

	if (!lines_next(&in))
		return lines_check(&in, e) && unrecognized(e);
	if (!read_header(in.line, &f, e))
		return false;
	legacy_set_period(r, STR("space"), STR("bytes"), f.period);
	if (f.has_alloc) {
		legacy_add_type(r, STR("alloc_objects"), STR("count"));
		legacy_add_type(r, STR("alloc_space"), STR("bytes"));
	}
	legacy_add_type(r, f.has_alloc ? STR("inuse_objects") : STR("objects"), STR("count"));
	legacy_add_type(r, f.has_alloc ? STR("inuse_space") : STR("space"), STR("bytes"));
	while (lines_next_content(&in) && !text_is_map_sentinel(in.line))
		if (!read_sample(r, &f, text_trim(in.line), e))
			return false;
	return lines_check(&in, e) && legacy_read_map_section(r, &in, e);
}
