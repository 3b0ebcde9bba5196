#include "web/inlining.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/number.h"
#include "base/vec.h"
#include "web/names.h"

/* A page shows no more. */
enum { MOST_SITES = 1000 };

struct finding {
	const struct report_run *r;
	struct str name;
	vec(struct inline_site) sites;
	struct map map;
	uint64_t seed;
	bool is_any_inlined;
};

/* Where a location has the function. */
struct site_use {
	uint32_t site; /* plus 1; 0: nowhere */
	bool is_innermost;
};

static bool same_site(const void *ctx, uint32_t index)
{
	const struct finding *f = ((const void *const *)ctx)[0];
	const struct inline_site *want = ((const void *const *)ctx)[1], *s = &f->sites.at[index];

	return s->caller == want->caller && s->line == want->line;
}

static uint32_t add_site(struct finding *f, struct inline_site site)
{
	uint64_t hash = hash_mix(hash_mix(f->seed, site.caller), (uint64_t)site.line);
	uint32_t at = map_put(&f->map, hash, f->sites.n, same_site, (const void *[]){ f, &site });

	if (at == f->sites.n)
		vec_push(&f->sites, site);
	f->is_any_inlined |= site.caller > 0;
	return at;
}

/* Lines of no function are as good as not there, as they are to annotate(). */
static struct site_use find_use(struct finding *f, const struct location *l)
{
	const struct profile *p = f->r->p;
	struct site_use use = { .is_innermost = true };
	struct inline_site site = { 0 };
	bool is_found = false;

	for (uint32_t i = 0; i < l->nlines && !site.caller; i++) {
		const struct line *line = &p->lines[l->first_line + i];
		const struct function *function;

		if (line->function == NONE)
			continue;
		function = &p->functions[line->function];
		if (is_found)
			site = (struct inline_site){ .caller = function->name,
						     .file = function->filename,
						     .line = line->line };
		else if (str_eq(profile_str(p, function->name), f->name))
			is_found = true;
		else
			use.is_innermost = false;
	}
	if (is_found)
		use.site = 1 + add_site(f, site);
	return use;
}

static void weigh(struct finding *f, const struct site_use *uses)
{
	const struct profile *p = f->r->p;

	for (uint32_t i = 0; i < p->nsamples && !stop_asked_at(f->r->params->stop, i); i++) {
		const struct sample *s = &p->samples[i];
		int64_t w = report_sample_value(f->r, s);
		struct inline_site *site;
		uint32_t k = 0;

		while (k < s->nstack && !uses[p->stacks[s->stack + k]].site)
			k++;
		if (k == s->nstack)
			continue;
		site = &f->sites.at[uses[p->stacks[s->stack + k]].site - 1];
		site->cum = int_add(site->cum, w);
		if (k == 0 && uses[p->stacks[s->stack]].is_innermost)
			site->flat = int_add(site->flat, w);
	}
}

static int heavier_first(const void *a, const void *b, void *profile)
{
	const struct inline_site *x = a, *y = b;
	const struct profile *p = profile;
	int64_t v = int_abs(x->cum), w = int_abs(y->cum);
	int by_name;

	if (v != w)
		return v > w ? -1 : 1;
	by_name = str_cmp(profile_str(p, x->caller), profile_str(p, y->caller));
	return by_name ? by_name : (x->line > y->line) - (x->line < y->line);
}

void inlining_find(struct report_run *r, struct str name, struct inline_sites *out)
{
	struct finding f = { .r = r, .name = name, .seed = map_seed() };
	struct site_use *uses = arena_many(r->a, r->p->nlocations, struct site_use);

	*out = (struct inline_sites){ 0 };
	for (uint32_t i = 0; i < r->p->nlocations; i++)
		uses[i] = find_use(&f, &r->p->locations[i]);
	if (f.is_any_inlined) {
		weigh(&f, uses);
		qsort_r(f.sites.at, f.sites.n, sizeof(*f.sites.at), heavier_first,
			(void *)(uintptr_t)r->p);
		/* The profile may have locations that no sample is left of. */
		while (f.sites.n && !f.sites.at[f.sites.n - 1].cum)
			f.sites.n--;
		for (size_t i = 0; i < f.sites.n; i++) {
			out->flat = int_add(out->flat, f.sites.at[i].flat);
			out->cum = int_add(out->cum, f.sites.at[i].cum);
		}
		out->n = f.sites.n;
		out->at = arena_copy(r->a, f.sites.at, f.sites.n * sizeof(*f.sites.at));
	}
	vec_release(&f.sites);
	map_release(&f.map);
}

void inlining_put(struct buf *out, struct api_call *q, const struct report_run *r,
		  const struct inline_sites *sites)
{
	buf_printf(out, ",\"sites\":{\"flat\":%lld,\"cum\":%lld,\"rows\":[", (long long)sites->flat,
		   (long long)sites->cum);
	for (size_t i = 0; i < sites->n && i < MOST_SITES; i++) {
		const struct inline_site *s = &sites->at[i];
		struct node_info caller = { .name = s->caller };

		buf_puts(out, i ? ",\n{\"caller\":" : "{\"caller\":");
		if (s->caller)
			name_put(out, q->profile, r, name_id(q->site, q->profile, r, &caller),
				 &caller);
		else
			buf_puts(out, "null");
		buf_puts(out, ",\"file\":");
		json_put(out, profile_str(r->p, s->file));
		buf_printf(out, ",\"line\":%lld,\"flat\":%lld,\"cum\":%lld}", (long long)s->line,
			   (long long)s->flat, (long long)s->cum);
	}
	buf_printf(out, "],\"more\":%zu}", sites->n > MOST_SITES ? sites->n - MOST_SITES : 0);
}

bool inlining_read(struct api_call *q, struct str param, struct annotate_site *out, struct err *e)
{
	size_t colon = str_rfind_char(param, ':');

	*out = (struct annotate_site){ 0 };
	if (str_eq(param, STR("called")))
		return true;
	if (colon == STR_NONE ||
	    number_parse_int(str_from(param, colon + 1), 10, &out->line) != NUMBER_OK)
		return err_set(e, ERR_USAGE, "site=%.*s: not a function and a line",
			       STR_ARG(param));
	out->caller = functions_text(&q->site->functions, q->a, (struct str){ param.p, colon });
	return true;
}
