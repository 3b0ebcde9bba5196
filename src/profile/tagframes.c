/* tagframes.c - label values as frames: -tagroot and -tagleaf. */
#include "profile/profile.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/unit.h"
#include "base/vec.h"

enum { MAX_KEYS = 1000 };

struct frame_adder {
	struct profile *p;
	const struct tag_frames *t;
	struct str root[MAX_KEYS], leaf[MAX_KEYS];
	size_t nroot, nleaf;
	vec(struct function) functions;
	vec(struct location) locations;
	vec(struct line) lines;
	struct map map; /* (name, key) -> index behind the old locations */
	uint64_t next_function, next_location;
	struct buf name;
};

static size_t split_keys(struct str list, struct str *keys)
{
	size_t n = 0;

	while (list.n && n < MAX_KEYS) {
		struct str key = str_cut(&list, ',');

		if (key.n)
			keys[n++] = key;
	}
	return n;
}

static bool same_frame(const void *ctx, uint32_t index)
{
	const struct frame_adder *x = ((const void *const *)ctx)[0];
	const struct function *want = ((const void *const *)ctx)[1];
	const struct function *f = &x->functions.at[x->p->nfunctions + index];

	return f->name == want->name && f->filename == want->filename;
}

/* The location whose one frame is called x->name, in "file" key. */
static uint32_t frame_location(struct frame_adder *x, struct str key)
{
	struct function f = { .name = strings_add(x->p->strings, buf_view(&x->name)),
			      .filename = strings_add(x->p->strings, key) };
	const void *ctx[2] = { x, &f };
	uint32_t fresh = (uint32_t)x->locations.n - x->p->nlocations;
	uint32_t at =
		map_put(&x->map, hash_mix(x->p->strings->seed, (uint64_t)f.name << 32 | f.filename),
			fresh, same_frame, ctx);

	if (at == fresh) {
		struct line line = { .function = (uint32_t)x->functions.n };
		struct location loc = { .id = x->next_location++,
					.mapping = NONE,
					.first_line = (uint32_t)x->lines.n,
					.nlines = 1 };

		f.id = x->next_function++;
		vec_push(&x->functions, f);
		vec_push(&x->lines, line);
		vec_push(&x->locations, loc);
	}
	return x->p->nlocations + at;
}

/* All values of the key, joined. Returns whether there are any. */
static bool name_values(struct frame_adder *x, uint32_t set, struct str key)
{
	const struct profile *p = x->p;
	const struct label_set *s = &p->label_sets[set];
	const struct label *l = set_labels(p, set);
	bool found = false, has_units = false;

	x->name.n = 0;
	for (uint32_t i = 0; i < s->nstrings; i++) {
		if (str_eq(profile_str(p, l[i].key), key)) {
			if (found)
				buf_char(&x->name, ',');
			buf_str(&x->name, profile_str(p, l[i].text));
			found = true;
		}
	}
	for (uint32_t i = s->nstrings; i < s->nstrings + s->nnumbers; i++)
		has_units |= l[i].text && str_eq(profile_str(p, l[i].key), key);
	for (uint32_t i = s->nstrings; i < s->nstrings + s->nnumbers; i++) {
		if (!str_eq(profile_str(p, l[i].key), key))
			continue;
		if (found)
			buf_char(&x->name, ',');
		unit_label(&x->name, l[i].number, has_units ? profile_str(p, l[i].text) : STR(""),
			   has_units ? x->t->unit : STR(""));
		found = true;
	}
	return found;
}

static void add_frames(struct arena *a, struct frame_adder *x, struct tag_frames *t)
{
	struct profile *p = x->p;
	size_t extra = x->nroot + x->nleaf, total = 0;
	uint32_t *of_set = arena_many(a, p->nlabel_sets * extra, uint32_t);
	struct sample *samples = arena_copy(a, p->samples, p->nsamples * sizeof(*samples));
	uint32_t *stacks;

	for (uint32_t i = 0; i < p->nsamples && !stop_asked_at(t->stop, i); i++) {
		uint32_t set = samples[i].labels, *to = of_set + set * extra;

		total += samples[i].nstack + extra;
		if (*to) /* this set has its frames */
			continue;
		/* Both lists go from the outside in, stacks from the inside out. */
		for (size_t k = 0; k < x->nroot; k++) {
			struct str key = x->root[x->nroot - 1 - k];

			t->has_root |= name_values(x, set, key);
			to[x->nleaf + k] = 1 + frame_location(x, key);
		}
		for (size_t k = 0; k < x->nleaf; k++) {
			struct str key = x->leaf[x->nleaf - 1 - k];

			t->has_leaf |= name_values(x, set, key);
			to[k] = 1 + frame_location(x, key);
		}
	}
	if (stop_asked(t->stop)) /* not all have been counted */
		return;
	stacks = arena_many(a, total, uint32_t);
	total = 0;
	for (uint32_t i = 0; i < p->nsamples && !stop_asked_at(t->stop, i); i++) {
		const uint32_t *frames = of_set + samples[i].labels * extra;
		const uint32_t *from = p->stacks + samples[i].stack;

		samples[i].stack = (uint32_t)total;
		for (size_t k = 0; k < x->nleaf; k++)
			stacks[total++] = frames[k] - 1;
		if (samples[i].nstack)
			memcpy(stacks + total, from, samples[i].nstack * sizeof(*from));
		total += samples[i].nstack;
		for (size_t k = x->nleaf; k < extra; k++)
			stacks[total++] = frames[k] - 1;
		samples[i].nstack += (uint32_t)extra;
	}
	p->samples = samples;
	p->stacks = stacks;
}

void profile_add_tag_frames(struct arena *a, struct profile *p, struct tag_frames *t)
{
	struct frame_adder *x = arena_new(a, struct frame_adder);

	x->p = p;
	x->t = t;
	x->nroot = split_keys(str_of(t->root_keys), x->root);
	x->nleaf = split_keys(str_of(t->leaf_keys), x->leaf);
	if (!x->nroot && !x->nleaf)
		return;
	for (uint32_t i = 0; i < p->nfunctions; i++) {
		vec_push(&x->functions, p->functions[i]);
		if (p->functions[i].id >= x->next_function)
			x->next_function = p->functions[i].id;
	}
	for (uint32_t i = 0; i < p->nlocations; i++) {
		vec_push(&x->locations, p->locations[i]);
		if (p->locations[i].id >= x->next_location)
			x->next_location = p->locations[i].id;
	}
	for (uint32_t i = 0; i < p->nlines; i++)
		vec_push(&x->lines, p->lines[i]);
	x->next_function++;
	x->next_location++;
	add_frames(a, x, t);
	p->nfunctions = (uint32_t)x->functions.n;
	p->functions = vec_adopt(a, &x->functions);
	p->nlocations = (uint32_t)x->locations.n;
	p->locations = vec_adopt(a, &x->locations);
	p->nlines = (uint32_t)x->lines.n;
	p->lines = vec_adopt(a, &x->lines);
	map_release(&x->map);
	buf_release(&x->name);
}
