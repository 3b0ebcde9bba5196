/* traces.c - every sample with its labels and its stack: -traces. */
#include "report/report.h"

#include <stdlib.h>

#include "base/unit.h"
#include "base/vec.h"

#define SEPARATOR "-----------+-------------------------------------------------------\n"

/* Texts are made once per location and label set, and then only copied. */
struct trace_writer {
	struct report_run *r;
	struct frame_reader *frames;
	struct str *location_text; /* its frames, each "   name\n", leaf first */
	struct str *label_text;
};

static struct str keep_text(struct arena *a, struct buf *text)
{
	struct str s = { arena_copy(a, text->p, text->n), text->n };

	text->n = 0;
	return s;
}

/* Each frame but the first of a sample starts with ten blanks; the first with its value. */
static struct str frames_text(struct trace_writer *w, uint32_t loc, struct buf *text)
{
	const struct profile *p = w->r->p;
	uint32_t n = frame_count(w->frames, loc);

	for (uint32_t i = 0; i < n; i++) {
		struct node_info info;

		frame_info(w->frames, loc, i, &info);
		buf_puts(text, i ? "             " : "   ");
		node_info_text(text, p, &info);
		buf_puts(text, i + 1 < n ? " (inline)\n" : "\n");
	}
	return keep_text(w->r->a, text);
}

static int compare_strs(const void *x, const void *y)
{
	return str_cmp(*(const struct str *)x, *(const struct str *)y);
}

static struct str labels_text(struct trace_writer *w, uint32_t set, struct buf *text)
{
	const struct profile *p = w->r->p;
	const struct label_set *s = &p->label_sets[set];
	const struct label *l = set_labels(p, set);
	uint32_t n = s->nstrings + s->nnumbers;
	vec(struct str) all = { 0 };
	struct arena *a = w->r->a;
	size_t nstrings = 0;

	for (uint32_t i = 0; i < n; i++) {
		bool is_number = i >= s->nstrings;
		bool is_same_key = i && i != s->nstrings && l[i].key == l[i - 1].key;

		if (!is_same_key) {
			if (i)
				vec_push(&all, keep_text(a, text));
			if (i == s->nstrings)
				nstrings = all.n;
			buf_pad_left(text, profile_str(p, l[i].key), 10);
			buf_puts(text, ":  ");
		} else {
			buf_char(text, ' ');
		}
		if (is_number)
			unit_label(text, l[i].number, label_unit(p, w->r->params->units, l[i].key),
				   STR("auto"));
		else
			buf_str(text, profile_str(p, l[i].text));
	}
	if (n)
		vec_push(&all, keep_text(a, text));
	if (!s->nnumbers)
		nstrings = all.n;
	/* Sorted as they are padded: shorter keys come first. */
	if (nstrings)
		qsort(all.at, nstrings, sizeof(*all.at), compare_strs);
	if (all.n > nstrings)
		qsort(all.at + nstrings, all.n - nstrings, sizeof(*all.at), compare_strs);
	for (size_t i = 0; i < all.n; i++) {
		buf_str(text, all.at[i]);
		buf_char(text, '\n');
	}
	vec_release(&all);
	return keep_text(a, text);
}

static void write_sample(struct buf *out, struct trace_writer *w, const struct sample *s,
			 struct buf *text)
{
	const struct profile *p = w->r->p;
	const uint32_t *stack = p->stacks + s->stack;

	if (!s->nstack)
		return;
	buf_puts(out, SEPARATOR);
	if (!w->label_text[s->labels].p)
		w->label_text[s->labels] = labels_text(w, s->labels, text);
	buf_str(out, w->label_text[s->labels]);
	for (uint32_t i = 0; i < s->nstack; i++) {
		struct str *t = &w->location_text[stack[i]];

		if (!t->p)
			*t = frames_text(w, stack[i], text);
		if (i == 0)
			report_value_cell(out, w->r, report_sample_value(w->r, s), 10);
		else
			buf_add(out, "          ", 10);
		buf_str(out, *t);
	}
}

static bool run(struct buf *out, struct report_run *r, struct err *e)
{
	const struct profile *p = r->p;
	struct trace_writer w = { r, frame_reader_new(r->a, p, &r->params->keep, false),
				  arena_many(r->a, p->nlocations, struct str),
				  arena_many(r->a, p->nlabel_sets, struct str) };
	struct buf text = { 0 };

	(void)e;
	report_profile_labels(out, r);
	buf_char(out, '\n');
	for (uint32_t i = 0; i < p->nsamples && !out->write_errno; i++)
		write_sample(out, &w, &p->samples[i], &text);
	buf_puts(out, SEPARATOR);
	buf_release(&text);
	return true;
}

const struct report report_traces = {
	.name = "traces",
	.run = run,
};
