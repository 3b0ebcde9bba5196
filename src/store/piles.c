#include "store/piles.h"

#include "base/unit.h"

/* ---- adding */

static bool same_types(const struct profile *x, const struct profile *y)
{
	if (x->ntypes != y->ntypes || x->period_type.type != y->period_type.type ||
	    x->period_type.unit != y->period_type.unit)
		return false;
	for (uint32_t i = 0; i < x->ntypes; i++)
		if (x->types[i].type != y->types[i].type || x->types[i].unit != y->types[i].unit)
			return false;
	return true;
}

static uint32_t pile_for(struct piles *t, const struct profile *p)
{
	for (uint32_t i = 0; i < t->at.n; i++)
		if (same_types(&t->at.at[i].like, p))
			return i;
	vec_push(&t->at, (struct pile){ .like = *p, .merger = merger_new(t->strings) });
	/* The profile is of a scratch arena. */
	t->at.at[t->at.n - 1].like.types =
		arena_copy(t->a, p->types, p->ntypes * sizeof(*p->types));
	return (uint32_t)t->at.n - 1;
}

bool piles_add(struct piles *t, const struct profile *p, const struct sum *sum, struct err *e)
{
	uint32_t pile = pile_for(t, p);

	t->at.at[pile].nprofiles += sum->nprofiles;
	vec_push(&t->parts,
		 (struct pile_part){ sum->service, sum->service_name, pile, sum->nprofiles });
	return merger_add(t->at.at[pile].merger, p, e);
}

void piles_release(struct piles *t)
{
	for (size_t i = 0; i < t->at.n; i++)
		merger_free(t->at.at[i].merger);
	vec_release(&t->at);
	vec_release(&t->parts);
}

/* ---- which piles */

static struct str name_at(const struct profile *p, uint32_t column)
{
	return profile_str(p, p->types[column].type);
}

static struct str unit_at(const struct profile *p, uint32_t column)
{
	return profile_str(p, p->types[column].unit);
}

/* "" is the default one, which is the last if it names none, as in pprof. */
static uint32_t column_of(const struct profile *p, struct str name)
{
	struct str wanted = name.n ? name : profile_str(p, p->default_type);

	for (uint32_t i = 0; i < p->ntypes; i++)
		if (str_eq(name_at(p, i), wanted))
			return i;
	return name.n || !p->ntypes ? NONE : p->ntypes - 1;
}

static bool has_column(const struct profile *p, struct str name, struct str unit)
{
	uint32_t column = name.n ? column_of(p, name) : NONE;

	return column != NONE && (!unit.n || unit_compatible(name, unit, name, unit_at(p, column)));
}

/* A pile's kind, and whether it may be the one that is told. */
static uint32_t kind_of(struct kinds *k, const struct profile *p, struct str name, struct str unit)
{
	uint32_t column = column_of(p, name), kind;
	bool is_unfit = name.n && !has_column(p, name, unit);

	if (column == NONE)
		column = column_of(p, STR(""));
	kind = column == NONE ? kinds_find(k, STR(""), STR(""))
			      : kinds_find(k, name_at(p, column), unit_at(p, column));
	k->at.at[kind].is_unfit = is_unfit;
	return kind;
}

/* What the query asks for, as far as there is such a thing. */
static void find_wanted(const struct piles *t, const struct store_query *q, struct str *name,
			struct str *unit)
{
	bool has_name = false, has_unit = false;

	for (size_t i = 0; i < t->at.n; i++) {
		has_name |= has_column(&t->at.at[i].like, q->sample_type, STR(""));
		has_unit |= has_column(&t->at.at[i].like, q->sample_type, q->unit);
	}
	*name = has_name ? q->sample_type : STR("");
	*unit = has_unit ? q->unit : STR("");
}

/* The kind that most have, of those that fit; the kinds of all piles go to `kinds`. */
static uint32_t vote(struct piles *t, struct kinds *k, struct str name, struct str unit,
		     uint32_t *kinds)
{
	for (size_t i = 0; i < t->at.n; i++)
		kinds[i] = kind_of(k, &t->at.at[i].like, name, unit);
	for (size_t i = 0; i < t->parts.n; i++) {
		const struct pile_part *part = &t->parts.at[i];

		kinds_count(k, kinds[part->pile], part->service, part->service_name,
			    part->nprofiles);
	}
	return kinds_choose(k);
}

/* Of each pile: is it left out? Returns the sample type that is told. */
static struct str choose(struct piles *t, const struct store_query *q, bool *is_out,
			 struct store_left_out *left_out)
{
	uint32_t *kinds = arena_many(t->a, t->at.n + 1, uint32_t), chosen;
	struct str name, unit;
	struct kinds k, again;

	kinds_init(&k);
	kinds_init(&again);
	find_wanted(t, q, &name, &unit);
	chosen = vote(t, &k, name, unit, kinds);
	name = k.at.at[chosen].name;
	name = (struct str){ str_dup(t->a, name), name.n };
	/* Those whose default is another may have it, too. */
	chosen = vote(t, &again, name, k.at.at[chosen].unit, kinds);
	for (size_t i = 0; i < t->at.n; i++)
		is_out[i] = kinds[i] != chosen;
	kinds_left_out(&again, chosen, t->a, left_out);
	kinds_release(&k);
	kinds_release(&again);
	return name;
}

/* ---- one profile */

/* The column of `p` that can be added to this one; NONE: there is none. */
static uint32_t match(const struct profile *p, const struct profile *like, uint32_t column)
{
	uint32_t found = column_of(p, name_at(like, column));

	return name_at(like, column).n && found != NONE &&
			       unit_compatible(name_at(like, column), unit_at(like, column),
					       name_at(p, found), unit_at(p, found))
		       ? found
		       : NONE;
}

static bool is_common(const struct profile *profiles, size_t n, uint32_t column)
{
	/* Of two with the same name the first counts. */
	if (column_of(&profiles[0], name_at(&profiles[0], column)) != column)
		return false;
	for (size_t i = 1; i < n; i++)
		if (match(&profiles[i], &profiles[0], column) == NONE)
			return false;
	return true;
}

/* Only columns that all have are left, in the same order; and periods that can be compared. */
static void align(struct piles *t, struct profile *profiles, size_t n)
{
	struct profile like = profiles[0];
	uint32_t *common = arena_many(t->a, like.ntypes + 1, uint32_t), ncommon = 0;
	uint32_t *columns = arena_many(t->a, like.ntypes + 1, uint32_t);

	for (uint32_t c = 0; c < like.ntypes; c++)
		if (is_common(profiles, n, c))
			common[ncommon++] = c;
	for (size_t i = 0; i < n; i++) {
		struct profile *p = &profiles[i];

		for (uint32_t c = 0; c < ncommon; c++)
			columns[c] = match(p, &like, common[c]);
		profile_select(t->a, p, columns, ncommon);
		if (unit_compatible(profile_str(p, p->period_type.type),
				    profile_str(p, p->period_type.unit),
				    profile_str(p, like.period_type.type),
				    profile_str(p, like.period_type.unit)))
			continue;
		p->period_type = like.period_type;
		p->period = 0;
	}
}

static void swap(struct profile *x, struct profile *y)
{
	struct profile kept = *x;

	*x = *y;
	*y = kept;
}

bool piles_finish(struct piles *t, const struct store_query *q, struct profile *out,
		  struct store_left_out *left_out, struct err *e)
{
	struct profile *profiles = arena_many(t->a, t->at.n + 1, struct profile);
	bool *is_out = arena_many(t->a, t->at.n + 1, bool);
	struct str told = choose(t, q, is_out, left_out);
	uint64_t most = 0;
	size_t n = 0;

	if (q->is_whole && left_out->why.n)
		return err_set(e, ERR_USAGE, "profiles that cannot be added: %.*s",
			       STR_ARG(left_out->why));
	for (size_t i = 0; i < t->at.n; i++) {
		struct pile *pile = &t->at.at[i];

		if (is_out[i])
			continue;
		merger_finish(pile->merger, t->a, &profiles[n]);
		pile->merger = NULL;
		/* What most have comes first: it says which columns, and which period. */
		if (pile->nprofiles > most) {
			most = pile->nprofiles;
			swap(&profiles[0], &profiles[n]);
		}
		n++;
	}
	if (n == 1) {
		*out = profiles[0];
		return true;
	}
	align(t, profiles, n);
	if (!profile_combine(t->a, profiles, n, out, e))
		return false;
	if (told.n)
		out->default_type = strings_add(t->strings, told);
	return true;
}
