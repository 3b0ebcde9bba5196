/* raw.c - a profile written out as it is: -raw. */
#include "report/raw.h"

#include <stdlib.h>
#include <time.h>

#include "base/unit.h"
#include "base/utf8.h"
#include "base/vec.h"
#include "report/report.h"

static void write_time(struct buf *out, int64_t nanos)
{
	int64_t fraction = nanos % 1000000000;
	time_t seconds = nanos / 1000000000;
	char text[64];
	struct tm tm;

	if (fraction < 0) {
		fraction += 1000000000;
		seconds--;
	}
	tzset();
	localtime_r(&seconds, &tm);
	strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm);
	buf_printf(out, "Time: %s", text);
	if (fraction) {
		buf_printf(out, ".%09d", (int)fraction);
		while (out->p[out->n - 1] == '0')
			out->n--;
	}
	strftime(text, sizeof(text), " %z %Z\n", &tm);
	buf_puts(out, text);
}

/* Go prints it with the format %.4v, which cuts the text. */
static void write_duration(struct buf *out, int64_t nanos)
{
	struct buf text = { 0 };
	struct str s;
	size_t n = 0;

	duration_text(&text, nanos);
	s = buf_view(&text);
	for (int i = 0; i < 4 && n < s.n; i++) {
		uint32_t rune;

		n += utf8_decode(str_from(s, n), &rune);
	}
	buf_puts(out, "Duration: ");
	buf_add(out, s.p, n);
	buf_char(out, '\n');
	buf_release(&text);
}

static void write_types(struct buf *out, const struct profile *p)
{
	struct buf line = { 0 };

	for (uint32_t i = 0; i < p->ntypes; i++) {
		buf_str(&line, profile_str(p, p->types[i].type));
		buf_char(&line, '/');
		buf_str(&line, profile_str(p, p->types[i].unit));
		buf_puts(&line, p->types[i].type == p->default_type ? "[dflt] " : " ");
	}
	buf_str(out, str_trim(buf_view(&line)));
	buf_char(out, '\n');
	buf_release(&line);
}

static void write_header(struct buf *out, const struct profile *p)
{
	for (uint32_t i = 0; i < p->ncomments; i++) {
		buf_puts(out, "Comment: ");
		buf_str(out, profile_str(p, p->comments[i]));
		buf_char(out, '\n');
	}
	if (p->doc_url) {
		buf_puts(out, "Doc: ");
		buf_str(out, profile_str(p, p->doc_url));
		buf_char(out, '\n');
	}
	buf_puts(out, "PeriodType: ");
	buf_str(out, profile_str(p, p->period_type.type));
	buf_char(out, ' ');
	buf_str(out, profile_str(p, p->period_type.unit));
	buf_puts(out, "\nPeriod: ");
	buf_int(out, p->period);
	buf_char(out, '\n');
	if (p->time_nanos)
		write_time(out, p->time_nanos);
	if (p->duration_nanos)
		write_duration(out, p->duration_nanos);
}

/* All values of one key, from labels[i] on; returns the index after them. */
static uint32_t write_key(struct buf *out, const struct profile *p, const struct label *labels,
			  uint32_t i, uint32_t n, bool is_number)
{
	uint32_t key = labels[i].key, end = i;
	bool has_unit = false;

	for (; end < n && labels[end].key == key; end++)
		has_unit |= labels[end].text != 0;
	buf_str(out, profile_str(p, key));
	buf_char(out, ':');
	for (uint32_t k = i; k < end; k++) {
		buf_char(out, k == i ? '[' : ' ');
		if (is_number) {
			buf_int(out, labels[k].number);
			if (has_unit)
				buf_char(out, ' ');
		}
		buf_str(out, profile_str(p, labels[k].text));
	}
	buf_char(out, ']');
	return end;
}

static int compare_texts(const void *x, const void *y)
{
	return str_cmp(*(const struct str *)x, *(const struct str *)y);
}

/* The labels of one kind. They are sorted as text, since the order of "key:[value]" is not that of
 * the keys if one key is the start of another. */
static void write_labels(struct buf *out, const struct profile *p, const struct label *labels,
			 uint32_t n, bool is_number)
{
	struct buf text = { 0 };
	vec(size_t) ends = { 0 };
	struct str *parts;

	if (!n)
		return;
	for (uint32_t i = 0; i < n;) {
		i = write_key(&text, p, labels, i, n, is_number);
		vec_push(&ends, text.n);
	}
	parts = xmalloc(ends.n * sizeof(*parts));
	for (size_t i = 0; i < ends.n; i++) {
		size_t start = i ? ends.at[i - 1] : 0;

		parts[i] = (struct str){ text.p + start, ends.at[i] - start };
	}
	qsort(parts, ends.n, sizeof(*parts), compare_texts);
	buf_fill(out, ' ', 15);
	for (size_t i = 0; i < ends.n; i++) {
		buf_char(out, ' ');
		buf_str(out, parts[i]);
	}
	buf_char(out, '\n');
	free(parts);
	vec_release(&ends);
	buf_release(&text);
}

static void write_label_set(struct buf *out, const struct profile *p, uint32_t set)
{
	const struct label_set *s = &p->label_sets[set];
	const struct label *labels = set_labels(p, set);

	write_labels(out, p, labels, s->nstrings, false);
	write_labels(out, p, labels + s->nstrings, s->nnumbers, true);
}

/* The decimal digits of v, at most 20. */
static char *put_uint(char *to, uint64_t v)
{
	static const char pairs[] =
		"00010203040506070809101112131415161718192021222324252627282930313233"
		"34353637383940414243444546474849505152535455565758596061626364656667"
		"6869707172737475767778798081828384858687888990919293949596979899";
	char digits[20], *p = digits + sizeof(digits);
	size_t n;

	while (v >= 100) {
		p -= 2;
		memcpy(p, pairs + v % 100 * 2, 2);
		v /= 100;
	}
	p -= 2;
	memcpy(p, pairs + v * 2, 2);
	p += v < 10;
	n = (size_t)(digits + sizeof(digits) - p);
	memcpy(to, p, n);
	return to + n;
}

static void write_stack(struct buf *out, const struct profile *p, const struct sample *s,
			const uint64_t *ids)
{
	const uint32_t *stack = p->stacks + s->stack;
	char *to = buf_room(out, 21 * (size_t)s->nstack + 1);

	for (uint32_t i = 0; i < s->nstack; i++) {
		to = put_uint(to, ids[stack[i]]);
		*to++ = ' ';
	}
	*to++ = '\n';
	out->n = (size_t)(to - out->p);
}

static void write_samples(struct buf *out, const struct profile *p, const atomic_bool *stop)
{
	uint64_t *ids = xmalloc(p->nlocations * sizeof(*ids) + 1);

	/* Locations are large and stacks jump around in them. */
	for (uint32_t i = 0; i < p->nlocations; i++)
		ids[i] = p->locations[i].id;
	for (uint32_t i = 0; i < p->nsamples && !stop_asked_at(stop, i); i++) {
		const struct sample *s = &p->samples[i];
		const int64_t *values = sample_values(p, s);

		for (uint32_t k = 0; k < p->ntypes; k++) {
			buf_char(out, ' ');
			buf_int_pad(out, values[k], 10);
		}
		buf_add(out, ": ", 2);
		write_stack(out, p, s, ids);
		write_label_set(out, p, s->labels);
	}
	free(ids);
}

static void write_line(struct buf *out, const struct profile *p, const struct line *l)
{
	const struct function *f;

	if (l->function == NONE) {
		buf_puts(out, "??\n");
		return;
	}
	f = &p->functions[l->function];
	buf_str(out, profile_str(p, f->name));
	buf_char(out, ' ');
	buf_str(out, profile_str(p, f->filename));
	buf_char(out, ':');
	buf_int(out, l->line);
	buf_char(out, ':');
	buf_int(out, l->column);
	buf_puts(out, " s=");
	buf_int(out, f->start_line);
	if (f->name != f->system_name) {
		buf_char(out, '(');
		buf_str(out, profile_str(p, f->system_name));
		buf_char(out, ')');
	}
	buf_char(out, '\n');
}

static void write_location(struct buf *out, const struct profile *p, const struct location *l)
{
	char id[20];
	size_t n = (size_t)(put_uint(id, l->id) - id);

	buf_fill(out, ' ', n < 6 ? 6 - n : 0);
	buf_add(out, id, n);
	buf_puts(out, ": 0x");
	buf_hex(out, l->address);
	buf_char(out, ' ');
	if (l->mapping != NONE) {
		buf_puts(out, "M=");
		buf_uint(out, p->mappings[l->mapping].id);
		buf_char(out, ' ');
	}
	if (l->is_folded)
		buf_puts(out, "[F] ");
	if (!l->nlines)
		buf_char(out, '\n');
	for (uint32_t i = 0; i < l->nlines; i++) {
		buf_fill(out, ' ', i ? 13 : 0);
		write_line(out, p, &p->lines[l->first_line + i]);
	}
}

static void write_mapping(struct buf *out, const struct profile *p, const struct mapping *m)
{
	buf_uint(out, m->id);
	buf_puts(out, ": 0x");
	buf_hex(out, m->start);
	buf_puts(out, "/0x");
	buf_hex(out, m->limit);
	buf_puts(out, "/0x");
	buf_hex(out, m->offset);
	buf_char(out, ' ');
	buf_str(out, profile_str(p, m->file));
	buf_char(out, ' ');
	buf_str(out, profile_str(p, m->build_id));
	buf_char(out, ' ');
	buf_puts(out, m->has_functions ? "[FN]" : "");
	buf_puts(out, m->has_filenames ? "[FL]" : "");
	buf_puts(out, m->has_line_numbers ? "[LN]" : "");
	buf_puts(out, m->has_inline_frames ? "[IN]" : "");
	buf_char(out, '\n');
}

static void write_all(struct buf *out, const struct profile *p, const atomic_bool *stop)
{
	write_header(out, p);
	buf_puts(out, "Samples:\n");
	write_types(out, p);
	write_samples(out, p, stop);
	buf_puts(out, "Locations\n");
	for (uint32_t i = 0; i < p->nlocations; i++)
		write_location(out, p, &p->locations[i]);
	buf_puts(out, "Mappings\n");
	for (uint32_t i = 0; i < p->nmappings; i++)
		write_mapping(out, p, &p->mappings[i]);
}

void raw_write(struct buf *out, const struct profile *p)
{
	write_all(out, p, NULL);
}

static bool run(struct buf *out, struct report_run *r, struct err *e)
{
	(void)e;
	write_all(out, r->p, r->params->stop);
	return true;
}

const struct report report_raw = {
	.name = "raw",
	.flags = REPORT_UNTRIMMED | REPORT_ADDRESSES | REPORT_PROFILE,
	.run = run,
};
