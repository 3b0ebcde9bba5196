/* combine.c - makes profiles comparable (same columns, same units), then merges or subtracts them.
 */
#include "profile/profile.h"

#include <math.h>
#include <string.h>

#include "base/int.h"
#include "base/unit.h"
#include "base/vec.h"

/* By string: how many columns of all profiles have this type. */
static uint32_t *count_types(struct arena *a, const struct profile *profiles, size_t n)
{
	uint32_t *counts = arena_many(a, profiles[0].strings->n, uint32_t);

	for (size_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < profiles[i].ntypes; k++)
			counts[profiles[i].types[k].type]++;
	return counts;
}

static bool has_type(const struct profile *p, uint32_t type)
{
	for (uint32_t i = 0; i < p->ntypes; i++)
		if (p->types[i].type == type)
			return true;
	return false;
}

static bool has_columns(const struct profile *p, const uint32_t *common, uint32_t ncommon)
{
	if (p->ntypes != ncommon)
		return false;
	for (uint32_t i = 0; i < ncommon; i++)
		if (p->types[i].type != common[i])
			return false;
	return true;
}

void profile_select(struct arena *a, struct profile *p, const uint32_t *columns, uint32_t n)
{
	struct value_type *types = arena_many(a, n + 1, struct value_type);
	struct sample *samples = arena_many(a, p->nsamples, struct sample);
	int64_t *values = arena_many(a, (size_t)p->nsamples * n, int64_t);

	for (uint32_t i = 0; i < n; i++)
		types[i] = p->types[columns[i]];
	for (uint32_t s = 0; s < p->nsamples; s++) {
		const int64_t *from = sample_values(p, &p->samples[s]);

		for (uint32_t i = 0; i < n; i++)
			values[(size_t)s * n + i] = from[columns[i]];
		samples[s] = p->samples[s];
		samples[s].row = s;
	}
	p->types = types;
	p->ntypes = n;
	p->times = NULL;
	p->samples = samples;
	p->values = values;
	if (n && !has_type(p, p->default_type))
		p->default_type = types[0].type;
}

/* Rewrites a profile to just these types. */
static bool select_types(struct arena *a, struct profile *p, const uint32_t *common,
			 uint32_t ncommon, struct err *e)
{
	uint32_t *column_of = arena_many(a, p->strings->n, uint32_t); /* by type: its first, + 1 */
	uint32_t *columns = arena_many(a, ncommon, uint32_t);

	for (uint32_t i = p->ntypes; i-- > 0;)
		column_of[p->types[i].type] = i + 1;
	for (uint32_t i = 0; i < ncommon; i++) {
		columns[i] = column_of[common[i]] - 1;
		if (columns[i] == NONE)
			return err_set(e, ERR_FORMAT,
				       "\"%.*s\" sample type is not found in profile",
				       STR_ARG(profile_str(p, common[i])));
	}
	profile_select(a, p, columns, ncommon);
	return true;
}

static bool select_common_types(struct arena *a, struct profile *profiles, size_t n, struct err *e)
{
	uint32_t *common = arena_many(a, profiles[0].ntypes, uint32_t);
	const uint32_t *counts = count_types(a, profiles, n);
	uint32_t ncommon = 0;

	for (uint32_t i = 0; i < profiles[0].ntypes; i++)
		if (counts[profiles[0].types[i].type] == n)
			common[ncommon++] = profiles[0].types[i].type;
	if (!ncommon)
		return err_set(e, ERR_FORMAT, "profiles have empty common sample type list");
	for (size_t i = 0; i < n; i++)
		if (!has_columns(&profiles[i], common, ncommon) &&
		    !select_types(a, &profiles[i], common, ncommon, e))
			return false;
	return true;
}

static bool check_compatible(const struct profile *p, struct value_type x, struct value_type y,
			     struct err *e)
{
	struct str xt = profile_str(p, x.type), xu = profile_str(p, x.unit);
	struct str yt = profile_str(p, y.type), yu = profile_str(p, y.unit);

	return unit_compatible(xt, xu, yt, yu) ||
	       err_set(e, ERR_FORMAT, "incompatible types: {%.*s %.*s 0 0} {%.*s %.*s 0 0}",
		       STR_ARG(xt), STR_ARG(xu), STR_ARG(yt), STR_ARG(yu));
}

static struct value_type type_at(const struct profile *p, uint32_t column)
{
	return column == NONE ? p->period_type : p->types[column];
}

/* The finest unit of one column (NONE: of the period) over all profiles. */
static bool find_unit(const struct profile *profiles, size_t n, uint32_t column, uint32_t *unit,
		      struct err *e)
{
	struct value_type finest = type_at(&profiles[0], column), last = finest;

	for (size_t i = 1; i < n; i++) {
		struct value_type t = type_at(&profiles[i], column);

		if (!check_compatible(profiles, last, t, e))
			return false;
		if (unit_is_finer(profile_str(profiles, t.unit),
				  profile_str(profiles, finest.unit)))
			finest = t;
		last = t;
	}
	*unit = finest.unit;
	return true;
}

static double unit_ratio(const struct profile *p, int64_t value, uint32_t from, uint32_t to)
{
	struct str unit;

	return unit_scale(value, profile_str(p, from), profile_str(p, to), &unit);
}

static void convert_units(struct arena *a, struct profile *p, uint32_t period_unit,
			  const uint32_t *units)
{
	double *ratios = arena_many(a, p->ntypes, double);
	struct value_type *types = arena_copy(a, p->types, p->ntypes * sizeof(*types));

	p->period = int_from_double(unit_ratio(p, p->period, p->period_type.unit, period_unit));
	p->period_type.unit = period_unit;
	for (uint32_t i = 0; i < p->ntypes; i++) {
		ratios[i] = unit_ratio(p, 1, types[i].unit, units[i]);
		types[i].unit = units[i];
	}
	p->types = types;
	profile_scale(a, p, ratios);
}

static bool unify_units(struct arena *a, struct profile *profiles, size_t n, struct err *e)
{
	uint32_t ntypes = profiles[0].ntypes, period_unit;
	uint32_t *units = arena_many(a, ntypes, uint32_t);

	if (!find_unit(profiles, n, NONE, &period_unit, e))
		return err_wrap(e, "period type");
	for (uint32_t i = 0; i < ntypes; i++)
		if (!find_unit(profiles, n, i, &units[i], e))
			return err_wrap(e, "sample types");
	for (size_t i = 0; i < n; i++)
		convert_units(a, &profiles[i], period_unit, units);
	return true;
}

void profile_scale(struct arena *a, struct profile *p, const double *ratios)
{
	uint32_t n = p->ntypes, kept = 0, i = 0;
	struct sample *samples;
	int64_t *values;

	while (i < n && ratios[i] == 1)
		i++;
	if (i == n)
		return;
	samples = arena_many(a, p->nsamples, struct sample);
	values = arena_many(a, (size_t)p->nsamples * n, int64_t);
	for (uint32_t s = 0; s < p->nsamples; s++) {
		const int64_t *from = sample_values(p, &p->samples[s]);
		int64_t *to = values + (size_t)kept * n;
		bool is_nonzero = false; /* in a column that is scaled; others do not count */

		for (i = 0; i < n; i++) {
			to[i] = from[i];
			if (ratios[i] != 1) {
				to[i] = int_from_double(round((double)from[i] * ratios[i]));
				is_nonzero |= to[i] != 0;
			}
		}
		if (is_nonzero) {
			samples[kept] = p->samples[s];
			samples[kept].row = kept;
			kept++;
		}
	}
	p->times = NULL;
	p->samples = samples;
	p->values = values;
	p->nsamples = kept;
}

bool profile_combine(struct arena *a, struct profile *profiles, size_t n, struct profile *out,
		     struct err *e)
{
	struct merger *m;

	if (!select_common_types(a, profiles, n, e) || (n > 1 && !unify_units(a, profiles, n, e)))
		return false;
	if (n == 1) {
		*out = profiles[0];
		return true;
	}
	m = merger_new(profiles[0].strings);
	for (size_t i = 0; i < n; i++) {
		if (!merger_add(m, &profiles[i], e)) {
			merger_free(m);
			return false;
		}
	}
	merger_finish(m, a, out);
	return true;
}

static bool normalize(struct arena *a, struct profile *source, const struct profile *base,
		      struct err *e)
{
	double *ratios = arena_many(a, source->ntypes, double);

	if (source->period_type.type != base->period_type.type ||
	    source->period_type.unit != base->period_type.unit)
		return err_set(e, ERR_FORMAT, "incompatible period types");
	if (source->ntypes != base->ntypes)
		return err_set(e, ERR_FORMAT, "incompatible sample types");
	for (uint32_t i = 0; i < source->ntypes; i++) {
		int64_t from = 0, to = 0;

		if (source->types[i].type != base->types[i].type ||
		    source->types[i].unit != base->types[i].unit)
			return err_set(e, ERR_FORMAT, "incompatible sample types");
		for (uint32_t s = 0; s < source->nsamples; s++)
			from = int_add(from, sample_values(source, &source->samples[s])[i]);
		for (uint32_t s = 0; s < base->nsamples; s++)
			to = int_add(to, sample_values(base, &base->samples[s])[i]);
		ratios[i] = from ? (double)to / (double)from : 0;
	}
	profile_scale(a, source, ratios);
	return true;
}

bool profile_diff(struct arena *a, struct profile source, struct profile base,
		  const struct diff_params *params, struct profile *out, struct err *e)
{
	struct profile both[2];
	double *minus = arena_many(a, base.ntypes, double);

	if (params->mark_base)
		profile_add_base_label(a, &base);
	if (params->normalize && !normalize(a, &source, &base, e))
		return false;
	for (uint32_t i = 0; i < base.ntypes; i++)
		minus[i] = -1;
	profile_scale(a, &base, minus);
	both[0] = source;
	both[1] = base;
	return profile_combine(a, both, 2, out, e);
}
