/* profiles.h - small profiles for unit tests, written as folded stacks: "main;work 10\nmain 5". */
#ifndef UNIT_PROFILES_H
#define UNIT_PROFILES_H

#include "profile/profile.h"
#include "report/raw.h"

struct world {
	struct arena arena;
	struct strings strings;
	struct buf text;
};

static inline void world_init(struct world *w)
{
	*w = (struct world){ 0 };
	strings_init(&w->strings);
}

static inline void world_release(struct world *w)
{
	arena_release(&w->arena);
	strings_release(&w->strings);
	buf_release(&w->text);
}

static inline struct profile folded(struct world *w, const char *stacks)
{
	struct profile p;
	struct err e;

	if (!profile_read(&p, &w->arena, &w->strings, str_of(stacks), 1 << 26, &e))
		fail_msg("%s", e.text);
	return p;
}

/* The samples as "12: leaf caller" lines; valid until the next call. */
static inline const char *samples_text(struct world *w, const struct profile *p)
{
	w->text.n = 0;
	for (uint32_t i = 0; i < p->nsamples; i++) {
		const struct sample *s = &p->samples[i];

		buf_int(&w->text, sample_values(p, s)[0]);
		buf_char(&w->text, ':');
		for (uint32_t k = 0; k < s->nstack; k++) {
			const struct location *l = &p->locations[p->stacks[s->stack + k]];

			for (uint32_t j = 0; j < l->nlines; j++) {
				uint32_t f = p->lines[l->first_line + j].function;

				buf_char(&w->text, ' ');
				buf_str(&w->text, profile_str(p, p->functions[f].name));
			}
		}
		buf_char(&w->text, '\n');
	}
	buf_char(&w->text, '\0');
	return w->text.p;
}

#endif
