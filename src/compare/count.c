/* count.c - a profile reduced to functions with their values, and the noise of these. */
#include "compare/compare.h"

#include <math.h>

#include "base/map.h"
#include "base/unit.h"
#include "base/vec.h"
#include "graph/graph.h"

/* ---- how many events a sample stands for */

enum event_kind {
	EVENTS_UNKNOWN,
	EVENTS_OF_COLUMN, /* a column counts them, maybe the value itself */
	EVENTS_OF_PERIOD, /* one per period of the value */
	EVENTS_OF_HEAP,	  /* sampled every so many bytes, then scaled up */
};

struct events {
	enum event_kind kind;
	uint32_t value;		 /* the column that is compared */
	uint32_t count;		 /* OF_COLUMN */
	uint32_t space, objects; /* OF_HEAP */
	double period;		 /* OF_PERIOD, OF_HEAP */
	uint32_t bytes_key;	 /* OF_HEAP: label with the size of one object */
	double spread;		 /* mean of squares over square of mean of the events' weights */
};

static struct str type_name(const struct profile *p, uint32_t column)
{
	return profile_str(p, p->types[column].type);
}

static struct str unit_name(const struct profile *p, uint32_t column)
{
	return profile_str(p, p->types[column].unit);
}

/* The column whose type is `prefix` and `suffix`, or NONE. */
static uint32_t find_column(const struct profile *p, struct str prefix, struct str suffix)
{
	for (uint32_t i = 0; i < p->ntypes; i++) {
		struct str name = type_name(p, i);

		if (name.n == prefix.n + suffix.n && str_has_prefix(name, prefix) &&
		    str_has_suffix(name, suffix))
			return i;
	}
	return NONE;
}

/* inuse_space goes with inuse_objects, alloc_space with alloc_objects, space with objects. */
static bool find_heap(const struct profile *p, struct events *v)
{
	struct str prefix = type_name(p, v->value), period = profile_str(p, p->period_type.unit);

	if (str_has_suffix(prefix, STR("space")))
		prefix.n -= STR("space").n;
	else if (str_has_suffix(prefix, STR("objects")))
		prefix.n -= STR("objects").n;
	else
		return false;
	v->space = find_column(p, prefix, STR("space"));
	v->objects = find_column(p, prefix, STR("objects"));
	if (v->space == NONE || v->objects == NONE)
		return false;
	v->kind = EVENTS_OF_HEAP;
	v->period = unit_same_family(period, STR("B")) ? (double)p->period : 0;
	v->bytes_key = strings_add(p->strings, STR("bytes"));
	return true;
}

/* A column of counts that goes with the value: samples, cycles_sample, contentions. */
static bool find_count(const struct profile *p, struct events *v)
{
	for (uint32_t i = 0; i < p->ntypes; i++) {
		bool is_waiting = str_contains(type_name(p, i), STR("contention"));

		if ((!is_waiting && !str_contains(type_name(p, i), STR("sample"))) ||
		    unit_family_of(unit_name(p, i)))
			continue;
		v->kind = EVENTS_OF_COLUMN;
		v->count = i;
		/* Waits differ, about as much as exponentially distributed times do. */
		if (is_waiting && i != v->value)
			v->spread = 2;
		return true;
	}
	return false;
}

static bool has_period(const struct profile *p, uint32_t column)
{
	return p->period > 0 && unit_compatible(type_name(p, column), unit_name(p, column),
						profile_str(p, p->period_type.type),
						profile_str(p, p->period_type.unit));
}

static struct events events_of(const struct profile *p, uint32_t value)
{
	struct events v = { .value = value, .spread = 1 };
	struct str unit;

	if (find_heap(p, &v))
		return v;
	if (has_period(p, value)) {
		v.kind = EVENTS_OF_PERIOD;
		v.period = (double)p->period * unit_scale(1, profile_str(p, p->period_type.unit),
							  unit_name(p, value), &unit);
		return v;
	}
	if (find_count(p, &v))
		return v;
	if (!unit_family_of(unit_name(p, value))) {
		v.kind = EVENTS_OF_COLUMN;
		v.count = value;
	}
	return v;
}

/* The size of one object of a heap sample. */
static double object_bytes(const struct events *v, const struct profile *p, const struct sample *s,
			   const int64_t *values)
{
	const struct label_set *set = &p->label_sets[s->labels];
	const struct label *numbers = set_labels(p, s->labels) + set->nstrings;

	for (uint32_t i = 0; i < set->nnumbers; i++)
		if (numbers[i].key == v->bytes_key && numbers[i].number > 0)
			return (double)numbers[i].number;
	return (double)values[v->space] / (double)values[v->objects];
}

/* Undoes the scaling: of objects of `size` bytes, 1 - exp(-size / period) are sampled. */
static double heap_events(const struct events *v, const struct profile *p, const struct sample *s,
			  const int64_t *values)
{
	double size;

	if (values[v->objects] <= 0 || values[v->space] <= 0)
		return 0;
	if (v->period <= 1)
		return (double)values[v->objects];
	size = object_bytes(v, p, s, values);
	return (double)values[v->space] / size * -expm1(-size / v->period);
}

/* At least one, or there would be no value. */
static double sample_events(const struct events *v, const struct profile *p, const struct sample *s,
			    const int64_t *values)
{
	double n = 1;

	switch (v->kind) {
	case EVENTS_OF_COLUMN:
		n = (double)values[v->count];
		break;
	case EVENTS_OF_PERIOD:
		n = (double)values[v->value] / v->period;
		break;
	case EVENTS_OF_HEAP:
		n = heap_events(v, p, s, values);
		break;
	case EVENTS_UNKNOWN:
		break;
	}
	return n > 1 ? n : 1;
}

/* The sum of the squares of the weights of a sample's events. */
static double sample_square(const struct events *v, const struct profile *p, const struct sample *s,
			    const int64_t *values)
{
	double value = (double)values[v->value];

	if (v->kind == EVENTS_UNKNOWN)
		return 0;
	return v->spread * value * value / sample_events(v, p, s, values);
}

static bool count_total(const struct profile *p, const struct events *v, const atomic_bool *stop,
			struct compare_source *out, struct err *e)
{
	out->has_events = v->kind != EVENTS_UNKNOWN;
	for (uint32_t i = 0; i < p->nsamples && !stop_asked_at(stop, i); i++) {
		const struct sample *s = &p->samples[i];
		const int64_t *values = sample_values(p, s);

		if (values[v->value] < 0)
			return err_set(e, ERR_FORMAT,
				       "negative values: a difference of profiles cannot be "
				       "compared again");
		if (!values[v->value])
			continue;
		out->total += (double)values[v->value];
		out->total_square += sample_square(v, p, s, values);
		out->nevents += out->has_events ? sample_events(v, p, s, values) : 0;
	}
	return true;
}

/* ---- functions */

/* The functions of all locations, innermost first: those of location `loc` are lists[first[loc]] up
 * to lists[first[loc + 1]]. */
struct functions {
	struct arena *a;
	vec(struct str) names;
	struct map map;
	vec(uint32_t) lists;
	uint32_t *first;
};

struct name_key {
	const struct functions *f;
	struct str name;
};

static bool same_name(const void *ctx, uint32_t index)
{
	const struct name_key *key = ctx;

	return str_eq(key->f->names.at[index], key->name);
}

static uint32_t add_name(struct functions *f, struct str name)
{
	struct name_key key = { f, name };
	uint32_t at = map_put(&f->map, hash_bytes(map_seed(), name.p, name.n), f->names.n,
			      same_name, &key);

	if (at == f->names.n)
		vec_push(&f->names, (struct str){ str_dup(f->a, name), name.n });
	return at;
}

static bool is_number(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] < '0' || s.p[i] > '9')
			return false;
	return s.n;
}

/* Compilers make copies of a function, other ones in each build: f.constprop.0, f.part.3.cold,
 * "f(int) [clone .isra.0]". They are the function. */
static struct str without_clone(struct str name)
{
	static const struct str kinds[] = {
		{ ".constprop", 10 }, { ".isra", 5 }, { ".part", 5 },
		{ ".cold", 5 },	      { ".llvm", 5 }, { ".lto_priv", 9 }
	};
	size_t clone = str_find(name, STR(" [clone ."));

	if (clone != STR_NONE && str_has_suffix(name, STR("]")))
		name.n = clone;
	for (bool again = true; again;) {
		struct str rest = name;
		size_t dot = str_rfind_char(name, '.');

		again = false;
		if (dot != STR_NONE && is_number(str_from(name, dot + 1)))
			rest.n = dot;
		for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds) && !again; i++) {
			if (rest.n > kinds[i].n && str_has_suffix(rest, kinds[i])) {
				name.n = rest.n - kinds[i].n;
				again = true;
			}
		}
	}
	return name;
}

static uint32_t add_frame(struct functions *f, const struct profile *p, struct node_info *info,
			  struct buf *text)
{
	struct str name = profile_str(p, info->name), plain = without_clone(name);

	if (plain.n != name.n)
		info->name = strings_add(p->strings, plain);
	text->n = 0;
	node_info_text(text, p, info);
	return add_name(f, buf_view(text));
}

static void functions_init(struct functions *f, struct arena *a, struct arena *scratch,
			   const struct profile *p, const struct granularity *keep)
{
	struct frame_reader *r = frame_reader_new(scratch, p, keep, false);
	struct buf text = { 0 };

	*f = (struct functions){ .a = a,
				 .first =
					 arena_many(scratch, (size_t)p->nlocations + 1, uint32_t) };
	for (uint32_t loc = 0; loc < p->nlocations; loc++) {
		uint32_t n = frame_count(r, loc);

		for (uint32_t i = 0; i < n; i++) {
			struct node_info info;

			frame_info(r, loc, i, &info);
			vec_push(&f->lists, add_frame(f, p, &info, &text));
		}
		f->first[loc + 1] = (uint32_t)f->lists.n;
	}
	buf_release(&text);
}

static void functions_release(struct functions *f)
{
	vec_release(&f->names);
	vec_release(&f->lists);
	map_release(&f->map);
}

static void count_flat(const struct functions *f, const struct profile *p, const struct events *v,
		       const atomic_bool *stop, struct compare_source *out)
{
	for (uint32_t i = 0; i < p->nsamples && !stop_asked_at(stop, i); i++) {
		const struct sample *s = &p->samples[i];
		const int64_t *values = sample_values(p, s);
		uint32_t leaf;

		if (!s->nstack || !values[v->value])
			continue;
		leaf = f->lists.at[f->first[p->stacks[s->stack]]];
		out->values[leaf] += (double)values[v->value];
		out->squares[leaf] += sample_square(v, p, s, values);
	}
}

/* A function counts once in a stack, however often it is there. */
static void count_cum(const struct functions *f, const struct profile *p, const struct events *v,
		      uint32_t *last_seen, const atomic_bool *stop, struct compare_source *out)
{
	for (uint32_t i = 0; i < p->nsamples && !stop_asked_at(stop, i); i++) {
		const struct sample *s = &p->samples[i];
		const int64_t *values = sample_values(p, s);
		double value = (double)values[v->value], square;

		if (!values[v->value])
			continue;
		square = sample_square(v, p, s, values);
		for (uint32_t k = 0; k < s->nstack; k++) {
			uint32_t loc = p->stacks[s->stack + k];

			for (uint32_t at = f->first[loc]; at < f->first[loc + 1]; at++) {
				uint32_t function = f->lists.at[at];

				if (last_seen[function] == i + 1)
					continue;
				last_seen[function] = i + 1;
				out->values[function] += value;
				out->squares[function] += square;
			}
		}
	}
}

static struct str copy(struct arena *a, struct str s)
{
	return (struct str){ str_dup(a, s), s.n };
}

bool compare_count(struct arena *a, const struct profile *p,
		   const struct compare_count_params *params, struct compare_source *out,
		   struct err *e)
{
	struct arena scratch = { 0 };
	struct functions f;
	struct events v;

	if (!p->ntypes)
		return err_set(e, ERR_FORMAT, "no sample types");
	v = events_of(p, params->value);
	if (!count_total(params->whole, &v, params->stop, out, e))
		return false;
	functions_init(&f, a, &scratch, p, &params->keep);
	out->type = copy(a, type_name(p, params->value));
	out->unit = copy(a, unit_name(p, params->value));
	out->duration_s = (double)p->duration_nanos / 1e9;
	out->n = f.names.n;
	out->values = arena_many(a, out->n, double);
	out->squares = arena_many(a, out->n, double);
	if (params->is_cum)
		count_cum(&f, p, &v, arena_many(&scratch, out->n, uint32_t), params->stop, out);
	else
		count_flat(&f, p, &v, params->stop, out);
	out->names = vec_adopt(a, &f.names);
	functions_release(&f);
	arena_release(&scratch);
	return true;
}
