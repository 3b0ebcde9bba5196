/* tagmatch.c - the language of -tagfocus and -tagignore: [key=](range | regexp,regexp...) */
#include "profile/profile.h"

#include <ctype.h>
#include <stdlib.h>

#include "base/number.h"
#include "base/regex.h"
#include "base/unit.h"
#include "base/vec.h"

struct tag_match {
	struct arena arena;
	bool has_key, is_range;
	struct str key;
	/* a range, ends included, in this unit */
	bool has_low, has_high;
	double low, high;
	struct str unit;
	/* or regexps */
	vec(struct regex *) regexps;
};

/* One "-12kb" of a range. */
struct quantity {
	size_t start, end; /* in the text */
	struct str number, unit;
};

static bool next_quantity(struct str s, size_t from, struct quantity *q)
{
	size_t i = from;

	while (i < s.n && !isdigit((unsigned char)s.p[i]))
		i++;
	if (i == s.n)
		return false;
	q->start = i > from && (s.p[i - 1] == '+' || s.p[i - 1] == '-') ? i - 1 : i;
	while (i < s.n && isdigit((unsigned char)s.p[i]))
		i++;
	q->number = (struct str){ s.p + q->start, i - q->start };
	q->unit = str_from(s, i);
	while (i < s.n && isalpha((unsigned char)s.p[i]))
		i++;
	q->unit.n = i - (size_t)(q->unit.p - s.p);
	q->end = i;
	return true;
}

static bool read_quantity(const struct quantity *q, int64_t *v, struct err *e)
{
	if (number_parse_int(q->number, 10, v) == NUMBER_OK)
		return true;
	return err_set(e, ERR_USAGE, "failed to parse int %.*s: value out of range",
		       STR_ARG(q->number));
}

/* Sets is_range if the value is `N`, `N:`, `:N` or `N:M` as a whole. */
static bool read_range(struct tag_match *m, struct str value, struct err *e)
{
	struct quantity q, q2;
	struct str unit2;
	int64_t v;

	if (!next_quantity(value, 0, &q))
		return true;
	if (!read_quantity(&q, &v, e))
		return false;
	m->low = m->high = unit_scale(v, q.unit, q.unit, &m->unit);
	if (!next_quantity(value, q.end, &q2)) {
		bool starts = q.start == 0, ends = q.end == value.n;

		m->has_low = starts && (ends || (q.end + 1 == value.n && value.p[q.end] == ':'));
		m->has_high = ends && (starts || (q.start == 1 && value.p[0] == ':'));
		m->is_range = m->has_low || m->has_high;
		return true;
	}
	if (q.start != 0 || q2.end != value.n || q2.start != q.end + 1 || value.p[q.end] != ':')
		return true;
	if (!read_quantity(&q2, &v, e))
		return false;
	m->high = unit_scale(v, q2.unit, m->unit, &unit2);
	m->is_range = m->has_low = m->has_high = str_eq(m->unit, unit2);
	return true;
}

static bool compile_regexps(struct tag_match *m, struct str value, struct err *e)
{
	do {
		struct regex *re = regex_compile(str_cut(&value, ','), e);

		if (!re)
			return false;
		vec_push(&m->regexps, re);
	} while (value.p);
	return true;
}

struct tag_match *tag_match_compile(const char *option, const char *value, struct buf *warnings,
				    struct err *e)
{
	struct tag_match *m = xmalloc(sizeof(*m));
	struct str v;

	*m = (struct tag_match){ 0 };
	v = (struct str){ str_dup(&m->arena, str_of(value)), strlen(value) };
	if (str_find_char(v, '=') != STR_NONE) {
		m->has_key = true;
		m->key = str_cut(&v, '=');
	}
	if (!read_range(m, v, e) || (!m->is_range && !compile_regexps(m, v, e))) {
		err_wrap(e, "parsing %s regexp", option);
		tag_match_free(m);
		return NULL;
	}
	if (m->is_range)
		buf_printf(warnings, "%s:Interpreted '%.*s' as range, not regexp\n", option,
			   STR_ARG(v));
	return m;
}

void tag_match_free(struct tag_match *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->regexps.n; i++)
		regex_free(m->regexps.at[i]);
	vec_release(&m->regexps);
	arena_release(&m->arena);
	free(m);
}

static bool is_in_range(const struct tag_match *m, int64_t v, struct str unit)
{
	struct str scaled_unit;
	double d = unit_scale(v, unit, m->unit, &scaled_unit);

	return str_eq(scaled_unit, m->unit) && (!m->has_low || d >= m->low) &&
	       (!m->has_high || d <= m->high);
}

static bool match_numbers(const struct tag_match *m, const struct profile *p,
			  const struct label_units *units, uint32_t set)
{
	const struct label *l = set_labels(p, set) + p->label_sets[set].nstrings;

	for (uint32_t i = 0; i < p->label_sets[set].nnumbers; i++)
		if ((!m->has_key || str_eq(profile_str(p, l[i].key), m->key)) &&
		    is_in_range(m, l[i].number, label_unit(p, units, l[i].key)))
			return true;
	return false;
}

static bool match_values_of_key(const struct tag_match *m, const struct profile *p, uint32_t set)
{
	const struct label *l = set_labels(p, set);

	for (uint32_t i = 0; i < p->label_sets[set].nstrings; i++)
		for (size_t k = 0; k < m->regexps.n && str_eq(profile_str(p, l[i].key), m->key);
		     k++)
			if (regex_match(m->regexps.at[k], profile_str(p, l[i].text)))
				return true;
	return false;
}

/* Without a key every regexp must find a "key:value". */
static bool match_pairs(const struct tag_match *m, const struct profile *p, uint32_t set)
{
	const struct label *l = set_labels(p, set);
	struct buf pair = { 0 };
	bool all = true;

	for (size_t k = 0; k < m->regexps.n && all; k++) {
		bool found = false;

		for (uint32_t i = 0; i < p->label_sets[set].nstrings && !found; i++) {
			pair.n = 0;
			buf_str(&pair, profile_str(p, l[i].key));
			buf_char(&pair, ':');
			buf_str(&pair, profile_str(p, l[i].text));
			found = regex_match(m->regexps.at[k], buf_view(&pair));
		}
		all = found;
	}
	buf_release(&pair);
	return all;
}

bool tag_match_set(const struct tag_match *m, const struct profile *p,
		   const struct label_units *units, uint32_t set)
{
	if (m->is_range)
		return match_numbers(m, p, units, set);
	return m->has_key ? match_values_of_key(m, p, set) : match_pairs(m, p, set);
}
