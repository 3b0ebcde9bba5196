/* merge_ids.c - one profile of a few that are named. */
#include "store/inside.h"
#include "store/meaning.h"
#include "store/naming.h"

struct adding {
	struct store *s;
	struct strings *strings;
	struct merger *merger;
	struct store_merged *out;
	struct arena *a;
	struct str type;
};

static bool note_type(struct adding *x, const struct store_meta *meta, struct err *e)
{
	if (!x->out->nprofiles)
		x->type = (struct str){ str_dup(x->a, meta->type), meta->type.n };
	if (!str_eq(x->type, meta->type))
		return err_set(e, ERR_USAGE, "profiles of different types: %.*s and %.*s",
			       STR_ARG(x->type), STR_ARG(meta->type));
	return true;
}

static void note_time(struct store_merged *out, int64_t time)
{
	if (!out->nprofiles || time < out->first)
		out->first = time;
	if (!out->nprofiles || time > out->last)
		out->last = time;
	out->nprofiles++;
}

static bool add(struct adding *x, const struct store_id *id, struct err *e)
{
	struct arena scratch = { 0 };
	struct store_meta meta;
	struct profile p;
	struct str bytes;
	bool ok = store_get(x->s, id, &scratch, x->strings, &meta, &p, &bytes, e) &&
		  note_type(x, &meta, e) &&
		  (p.strings || err_set(e, ERR_USAGE, "can't merge profiles of %.*s type",
					STR_ARG(meta.type))) &&
		  merger_add(x->merger, &p, e);

	if (ok)
		note_time(x->out, meta.created);
	arena_release(&scratch);
	return ok;
}

bool store_merge_ids(struct store *s, const struct store_id *ids, size_t n, const atomic_bool *stop,
		     struct arena *a, struct strings *strings, struct store_merged *out,
		     struct err *e)
{
	struct adding x = {
		.s = s, .strings = strings, .merger = merger_new(strings), .out = out, .a = a
	};

	*out = (struct store_merged){ 0 };
	for (size_t i = 0; i < n; i++)
		if (stop_asked(stop) ? !err_set(e, ERR_IO, "nobody waits for it any more")
				     : !add(&x, &ids[i], e)) {
			merger_free(x.merger);
			return false;
		}
	merger_finish(x.merger, a, &out->profile);
	average_profile(a, &out->profile, x.type, false, out->nprofiles);
	naming_profile(s->namer, a, &out->profile);
	return true;
}
