#include "web/finder.h"

#include <ctype.h>

#include "base/unit.h"

enum { MAX_PATTERN_BYTES = 10000 };

/* A letter in upper case says that the case matters. */
static bool has_upper(struct str text)
{
	for (size_t i = 0; i < text.n; i++)
		if (isupper((unsigned char)text.p[i]))
			return true;
	return false;
}

static bool read_scope(struct finder *f, struct str in, struct err *e)
{
	static const char *const scopes[] = { [IN_NAMES] = "name",
					      [IN_FILES] = "file",
					      [IN_MODULES] = "module",
					      [IN_LABELS] = "label" };

	for (f->scope = IN_NAMES; in.n && !str_eq(in, str_of(scopes[f->scope])); f->scope++)
		if (f->scope == IN_LABELS)
			return err_set(e, ERR_USAGE, "in=%.*s: not name, file, module or label",
				       STR_ARG(in));
	return true;
}

bool finder_open(struct finder *f, const struct api_call *q, struct err *e)
{
	*f = (struct finder){ .text = api_param(q, "q") };
	f->ignores_case = !has_upper(f->text);
	if (!read_scope(f, api_param(q, "in"), e))
		return false;
	if (f->text.n > MAX_PATTERN_BYTES)
		return err_set(e, ERR_LIMIT, "q is longer than %d bytes", MAX_PATTERN_BYTES);
	if (api_flag(q, "re"))
		f->regex = regex_compile(f->text, e);
	return f->regex || !api_flag(q, "re");
}

void finder_close(struct finder *f)
{
	regex_free(f->regex);
	buf_release(&f->lower);
	buf_release(&f->label);
}

bool finder_finds(struct finder *f, struct str text)
{
	if (f->regex)
		return regex_match(f->regex, text);
	if (!f->ignores_case)
		return str_contains(text, f->text);
	f->lower.n = 0;
	for (size_t i = 0; i < text.n; i++)
		buf_char(&f->lower, (char)tolower((unsigned char)text.p[i]));
	return str_contains(buf_view(&f->lower), f->text);
}

/* ---- labels */

static bool is_label_found(struct finder *f, const struct report_run *r, const struct label *l,
			   bool is_number)
{
	f->label.n = 0;
	buf_str(&f->label, profile_str(r->p, l->key));
	buf_char(&f->label, ':');
	if (is_number)
		unit_label(&f->label, l->number, label_unit(r->p, r->params->units, l->key),
			   r->params->unit);
	else
		buf_str(&f->label, profile_str(r->p, l->text));
	return finder_finds(f, buf_view(&f->label));
}

bool *finder_label_sets(struct finder *f, const struct report_run *r)
{
	const struct profile *p = r->p;
	bool *found = arena_many(r->a, p->nlabel_sets, bool);

	for (uint32_t set = 0; set < p->nlabel_sets && !stop_asked_at(r->params->stop, set);
	     set++) {
		const struct label_set *s = &p->label_sets[set];
		const struct label *l = set_labels(p, set);

		for (uint32_t i = 0; i < s->nstrings + s->nnumbers && !found[set]; i++)
			found[set] = is_label_found(f, r, &l[i], i >= s->nstrings);
	}
	return found;
}

void finder_keep(struct report_run *r, const bool *sets)
{
	struct profile *p = arena_new(r->a, struct profile);

	*p = *r->p;
	p->samples = arena_many(r->a, p->nsamples, struct sample);
	p->nsamples = 0;
	for (uint32_t i = 0; i < r->p->nsamples; i++)
		if (sets[r->p->samples[i].labels])
			p->samples[p->nsamples++] = r->p->samples[i];
	r->p = p;
}

/* ---- the same as a filter */

/* Does the value of -tagfocus match those sets of samples, and no others? */
static bool is_same(const struct report_run *r, const char *tagfocus, const bool *sets)
{
	const struct profile *p = r->p;
	struct buf warnings = { 0 };
	struct err ignored;
	struct tag_match *m = tag_match_compile("tagfocus", tagfocus, &warnings, &ignored);
	bool *is_done = arena_many(r->a, p->nlabel_sets, bool), same = m;

	for (uint32_t i = 0; same && i < p->nsamples; i++) {
		uint32_t set = p->samples[i].labels;

		if (!is_done[set])
			same = tag_match_set(m, p, r->params->units, set) == sets[set];
		is_done[set] = true;
	}
	tag_match_free(m);
	buf_release(&warnings);
	return same;
}

/* "=" and "," mean something to -tagfocus, and a number would be a range. */
static void put_regexp(struct buf *out, const struct finder *f)
{
	buf_puts(out, f->regex ? "(?:" : f->ignores_case ? "(?i)" : "(?-i)");
	for (size_t i = 0; i < f->text.n; i++) {
		char c = f->text.p[i];
		bool is_quoted = f->regex ? c == '\\' && i + 1 < f->text.n
					  : strchr("\\.+*?()|[]{}^$", c) != NULL;

		if (is_quoted && f->regex)
			c = f->text.p[++i];
		if (c == '=' || c == ',') {
			buf_printf(out, "\\x%02x", c);
			continue;
		}
		if (is_quoted)
			buf_char(out, '\\');
		buf_char(out, c);
	}
	buf_puts(out, f->regex ? ")" : "");
}

/* From the least to the largest number that is found, if all are of one key. */
static void put_range(struct buf *out, struct finder *f, const struct report_run *r,
		      const bool *sets)
{
	const struct label *low = NULL, *high = NULL;
	struct str unit;

	for (uint32_t set = 0; set < r->p->nlabel_sets; set++) {
		const struct label_set *s = &r->p->label_sets[set];
		const struct label *l = set_labels(r->p, set) + s->nstrings;

		for (uint32_t i = 0; sets[set] && i < s->nnumbers; i++) {
			if (!is_label_found(f, r, &l[i], true))
				continue;
			if (low && low->key != l[i].key)
				return;
			low = low && low->number < l[i].number ? low : &l[i];
			high = high && high->number > l[i].number ? high : &l[i];
		}
	}
	if (!low)
		return;
	unit = label_unit(r->p, r->params->units, low->key);
	buf_str(out, profile_str(r->p, low->key));
	buf_printf(out, "=%lld%.*s", (long long)low->number, STR_ARG(unit));
	if (low->number != high->number)
		buf_printf(out, ":%lld%.*s", (long long)high->number, STR_ARG(unit));
}

const char *finder_tagfocus(struct finder *f, const struct report_run *r, const bool *sets)
{
	struct buf out = { 0 };
	const char *value = "";

	if (f->text.n && str_find_char(f->text, '\0') == STR_NONE) {
		put_regexp(&out, f);
		value = str_dup(r->a, buf_view(&out));
		if (!is_same(r, value, sets)) {
			out.n = 0;
			put_range(&out, f, r, sets);
			value = str_dup(r->a, buf_view(&out));
			value = out.n && is_same(r, value, sets) ? value : "";
		}
	}
	buf_release(&out);
	return value;
}
