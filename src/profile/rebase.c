#include "profile/profile.h"

struct rebaser {
	struct profile *p;
	struct strings *to;
	uint32_t *known; /* by string: its index in `to`, + 1 */
};

static void move(const struct rebaser *x, uint32_t *string)
{
	uint32_t *known = &x->known[*string];

	if (!*known)
		*known = 1 + strings_add(x->to, profile_str(x->p, *string));
	*string = *known - 1;
}

static void move_header(const struct rebaser *x, struct profile *p)
{
	for (uint32_t i = 0; i < p->ntypes; i++) {
		move(x, &p->types[i].type);
		move(x, &p->types[i].unit);
	}
	for (uint32_t i = 0; i < p->ncomments; i++)
		move(x, &p->comments[i]);
	move(x, &p->period_type.type);
	move(x, &p->period_type.unit);
	move(x, &p->drop_frames);
	move(x, &p->keep_frames);
	move(x, &p->default_type);
	move(x, &p->doc_url);
}

void profile_rebase(struct profile *p, struct strings *to)
{
	struct arena scratch = { 0 };
	struct rebaser x = { p, to, arena_many(&scratch, p->strings->n, uint32_t) };
	const struct label_set *last = p->nlabel_sets ? &p->label_sets[p->nlabel_sets - 1] : NULL;
	size_t nlabels = last ? (size_t)last->first + last->nstrings + last->nnumbers : 0;

	move_header(&x, p);
	for (size_t i = 0; i < nlabels; i++) {
		move(&x, &p->labels[i].key);
		move(&x, &p->labels[i].text);
	}
	for (uint32_t i = 0; i < p->nmappings; i++) {
		move(&x, &p->mappings[i].file);
		move(&x, &p->mappings[i].build_id);
		move(&x, &p->mappings[i].kernel_symbol);
	}
	for (uint32_t i = 0; i < p->nfunctions; i++) {
		move(&x, &p->functions[i].name);
		move(&x, &p->functions[i].system_name);
		move(&x, &p->functions[i].filename);
	}
	p->strings = to;
	arena_release(&scratch);
}
