/* folded.c - one line per distinct stack, root first: "main;work;sort 42", as flame graph tools
 * read it. With -diff_base each line has two counts: the base's and the source's. With -base, which
 * subtracts, it has the difference. */
#include "report/report.h"

#include <string.h>

#include "base/map.h"
#include "base/vec.h"

struct folded_stack {
	uint32_t first, n; /* in `frames` */
	int64_t base, source;
};

struct folder {
	struct report_run *r;
	vec(struct folded_stack) stacks;
	vec(uint32_t) frames; /* strings, root first */
	vec(uint32_t) stack;  /* of the sample at hand */
	vec(uint32_t) texts;  /* of locations: strings, caller first */
	uint32_t *first_text; /* by location, and one more: index in texts */
	struct map map;
	uint64_t seed;
};

/* Semicolons separate frames, so a name's own become colons; line ends become blanks. */
static uint32_t frame_string(struct folder *f, const struct node_info *info, struct buf *text)
{
	text->n = 0;
	node_info_text(text, f->r->p, info);
	for (size_t i = 0; i < text->n; i++) {
		if (text->p[i] == ';')
			text->p[i] = ':';
		else if (text->p[i] == '\n' || text->p[i] == '\r')
			text->p[i] = ' ';
	}
	return strings_add(f->r->p->strings, buf_view(text));
}

static void name_locations(struct folder *f)
{
	const struct profile *p = f->r->p;
	struct frame_reader *reader = frame_reader_new(f->r->a, p, &f->r->params->keep, false);
	struct buf text = { 0 };

	f->first_text = arena_many(f->r->a, (size_t)p->nlocations + 1, uint32_t);
	for (uint32_t loc = 0; loc < p->nlocations; loc++) {
		uint32_t n = frame_count(reader, loc);

		while (n-- > 0) {
			struct node_info info;

			frame_info(reader, loc, n, &info);
			vec_push(&f->texts, frame_string(f, &info, &text));
		}
		f->first_text[loc + 1] = (uint32_t)f->texts.n;
	}
	buf_release(&text);
}

static bool same_stack(const void *ctx, uint32_t index)
{
	const struct folder *f = ctx;
	const struct folded_stack *s = &f->stacks.at[index];

	return s->n == f->stack.n &&
	       memcmp(f->frames.at + s->first, f->stack.at, s->n * sizeof(*f->stack.at)) == 0;
}

static struct folded_stack *fold(struct folder *f, const struct sample *s)
{
	const struct profile *p = f->r->p;
	uint32_t at;

	f->stack.n = 0;
	for (uint32_t i = s->nstack; i-- > 0;) {
		uint32_t loc = p->stacks[s->stack + i];

		for (uint32_t k = f->first_text[loc]; k < f->first_text[loc + 1]; k++)
			vec_push(&f->stack, f->texts.at[k]);
	}
	at = map_put(&f->map, hash_bytes(f->seed, f->stack.at, f->stack.n * sizeof(*f->stack.at)),
		     f->stacks.n, same_stack, f);
	if (at == f->stacks.n) {
		struct folded_stack new = { (uint32_t)f->frames.n, (uint32_t)f->stack.n, 0, 0 };

		vec_push(&f->stacks, new);
		vec_reserve(&f->frames, f->stack.n);
		memcpy(f->frames.at + f->frames.n, f->stack.at, f->stack.n * sizeof(*f->stack.at));
		f->frames.n += f->stack.n;
	}
	return &f->stacks.at[at];
}

static void write_stack(struct buf *out, const struct folder *f, const struct folded_stack *s,
			bool has_base)
{
	if (!s->base && !s->source)
		return;
	for (uint32_t i = 0; i < s->n; i++) {
		if (i)
			buf_char(out, ';');
		buf_str(out, profile_str(f->r->p, f->frames.at[s->first + i]));
	}
	if (has_base) {
		buf_char(out, ' ');
		buf_int(out, report_divided(f->r, s->base));
	}
	buf_char(out, ' ');
	buf_int(out, report_divided(f->r, s->source));
	buf_char(out, '\n');
}

static bool run(struct buf *out, struct report_run *r, struct err *e)
{
	const struct profile *p = r->p;
	struct folder f = { .r = r, .seed = map_seed() };
	bool *is_base = arena_many(r->a, p->nlabel_sets, bool), has_base = false;

	(void)e;
	for (uint32_t s = 0; s < p->nlabel_sets; s++)
		is_base[s] = label_set_is_base(p, s);
	for (uint32_t i = 0; i < p->nsamples && !has_base; i++)
		has_base = is_base[p->samples[i].labels];
	name_locations(&f);
	for (uint32_t i = 0; i < p->nsamples && !stop_asked_at(r->params->stop, i); i++) {
		const struct sample *s = &p->samples[i];
		int64_t v = report_sample_value(r, s);
		struct folded_stack *to;

		if (!s->nstack || !v)
			continue;
		to = fold(&f, s);
		if (is_base[s->labels]) /* it has been subtracted */
			to->base = int_add(to->base, int_neg(v));
		else
			to->source = int_add(to->source, v);
	}
	for (size_t i = 0; i < f.stacks.n && !stop_asked_at(r->params->stop, i); i++)
		write_stack(out, &f, &f.stacks.at[i], has_base);
	vec_release(&f.stacks);
	vec_release(&f.frames);
	vec_release(&f.stack);
	vec_release(&f.texts);
	map_release(&f.map);
	return true;
}

const struct report report_folded = {
	.name = "folded",
	.run = run,
};
