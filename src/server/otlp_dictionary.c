/* otlp_dictionary.c - a request's dictionary, and what refers to it directly. */
#include <stdio.h>

#include "server/otlp.h"

static bool malformed(struct err *e, const char *message)
{
	return err_set(e, ERR_FORMAT, "%s: no protobuf", message);
}

bool otlp_numbers(const struct field *f, void (*each)(void *ctx, uint64_t v), void *ctx)
{
	struct wire w = f->bytes;
	uint64_t v;

	if (f->type == WIRE_VARINT) {
		each(ctx, f->value);
		return true;
	}
	while (f->type == WIRE_BYTES && w.p < w.end) {
		if (!wire_varint(&w, &v))
			return false;
		each(ctx, v);
	}
	return f->type == WIRE_BYTES;
}

/* ---- rows */

static bool read_dictionary(struct otlp *o, struct wire w, struct err *e)
{
	/* ProfilesDictionary: fields 1 to 7 */
	static const enum otlp_tables tables[] = {
		[1] = OTLP_MAPPINGS, [2] = OTLP_LOCATIONS,  [3] = OTLP_FUNCTIONS, [4] = OTLP_LINKS,
		[5] = OTLP_STRINGS,  [6] = OTLP_ATTRIBUTES, [7] = OTLP_STACKS,
	};
	struct field f = { 0 };

	while (w.p < w.end) {
		if (!wire_next(&w, &f))
			return malformed(e, "ProfilesDictionary");
		if (f.type == WIRE_BYTES && f.number >= 1 && f.number <= 7)
			vec_push(&o->tables[tables[f.number]].rows, f.bytes);
	}
	return true;
}

bool otlp_row(const struct otlp *o, enum otlp_tables table, uint64_t index, const char *what,
	      struct wire *row, struct err *e)
{
	static const char *const names[] = { "mapping", "location",  "function", "link",
					     "string",	"attribute", "stack" };
	const struct otlp_table *t = &o->tables[table];

	if (index >= t->rows.n)
		return err_set(e, ERR_FORMAT, "%s names %s %lld, and the dictionary has %zu", what,
			       names[table], (long long)index, t->rows.n);
	*row = t->rows.at[index];
	return true;
}

bool otlp_string(const struct otlp *o, uint64_t index, struct str *out, struct err *e)
{
	struct wire row = { 0 };

	*out = STR("");
	if (!index)
		return true;
	if (!otlp_row(o, OTLP_STRINGS, index, "something", &row, e))
		return false;
	*out = wire_view(row);
	return true;
}

bool otlp_spend(struct otlp *o, uint64_t bytes, struct err *e)
{
	if (bytes > o->left)
		return err_set(e, ERR_LIMIT,
			       "max-unpacked: with all that its profiles refer to, for each of "
			       "them, the request is many times as large as may be");
	o->left -= bytes;
	return true;
}

/* ---- attributes */

static const struct otlp_attribute no_attribute = { .key = { "", 0 },
						    .unit = { "", 0 },
						    .value.text = { "", 0 } };

static struct otlp_value text_value(struct str text)
{
	return (struct otlp_value){ .text = text, .is_text = true };
}

/* Of several the last counts. */
static bool read_value(struct otlp *o, struct wire w, struct otlp_value *v, struct err *e)
{
	struct field f = { 0 };
	char digits[40] = "";

	while (w.p < w.end) {
		if (!wire_next(&w, &f))
			return malformed(e, "AnyValue");
		if (f.number == 1 && f.type == WIRE_BYTES) { /* string_value */
			*v = text_value(wire_view(f.bytes));
		} else if (f.number == 2 && f.type == WIRE_VARINT) { /* bool_value */
			*v = text_value(f.value ? STR("true") : STR("false"));
		} else if (f.number == 3 && f.type == WIRE_VARINT) { /* int_value */
			*v = (struct otlp_value){ .number = (int64_t)f.value, .is_number = true };
			snprintf(digits, sizeof(digits), "%lld", (long long)f.value);
		} else if (f.number == 4 && f.type == WIRE_FIXED64) { /* double_value */
			*v = (struct otlp_value){ .is_text = true };
			snprintf(digits, sizeof(digits), "%.15g", wire_double(&f));
		} else if (f.number == 8 && f.type == WIRE_VARINT) { /* string_value_strindex */
			*v = text_value(STR(""));
			if (!otlp_string(o, f.value, &v->text, e))
				return false;
		}
	}
	if ((v->is_text || v->is_number) && !v->text.p)
		v->text = (struct str){ str_dup(&o->texts, str_of(digits)), strlen(digits) };
	return true;
}

static bool read_attribute(struct otlp *o, struct wire w, struct otlp_attribute *out, struct err *e)
{
	struct field f = { 0 };
	uint64_t key = 0, unit = 0;

	while (w.p < w.end) {
		if (!wire_next(&w, &f))
			return malformed(e, "KeyValueAndUnit");
		if (f.number == 1 && f.type == WIRE_VARINT)
			key = f.value;
		else if (f.number == 3 && f.type == WIRE_VARINT)
			unit = f.value;
		else if (f.number == 2 && f.type == WIRE_BYTES &&
			 !read_value(o, f.bytes, &out->value, e))
			return false;
	}
	return otlp_string(o, key, &out->key, e) && otlp_string(o, unit, &out->unit, e);
}

const struct otlp_attribute *otlp_attribute(struct otlp *o, uint64_t index, struct err *e)
{
	struct otlp_attribute *a;
	struct wire w = { 0 };

	if (!index)
		return &no_attribute;
	if (!otlp_row(o, OTLP_ATTRIBUTES, index, "something", &w, e))
		return NULL;
	a = &o->attributes[index];
	if (!a->is_read) {
		*a = no_attribute;
		a->is_read = true;
		a->is_broken = !read_attribute(o, w, a, e);
	} else if (a->is_broken) {
		err_set(e, ERR_FORMAT, "attribute %llu is broken", (unsigned long long)index);
	}
	return a->is_broken ? NULL : a;
}

bool otlp_key_value(struct otlp *o, struct wire w, struct otlp_attribute *out, struct err *e)
{
	struct field f = { 0 };

	*out = no_attribute;
	while (w.p < w.end) {
		if (!wire_next(&w, &f))
			return malformed(e, "KeyValue");
		if (f.number == 1 && f.type == WIRE_BYTES)
			out->key = wire_view(f.bytes);
		else if (f.number == 3 && f.type == WIRE_VARINT && /* key_strindex */
			 !otlp_string(o, f.value, &out->key, e))
			return false;
		else if (f.number == 2 && f.type == WIRE_BYTES &&
			 !read_value(o, f.bytes, &out->value, e))
			return false;
	}
	return true;
}

/* ---- samples */

static void add_value(void *ctx, uint64_t v)
{
	struct otlp_sample *s = ctx;

	vec_push(&s->values, (int64_t)v);
}

static void add_attribute(void *ctx, uint64_t v)
{
	struct otlp_sample *s = ctx;

	vec_push(&s->attributes, v);
}

/* fixed64, packed or not. */
static bool add_times(const struct field *f, struct otlp_sample *s)
{
	size_t n = f->type == WIRE_BYTES ? (size_t)(f->bytes.end - f->bytes.p) : 0;

	if (f->type == WIRE_FIXED64)
		vec_push(&s->times, (int64_t)f->value);
	vec_reserve(&s->times, n / 8);
	for (size_t i = 0; i < n / 8; i++)
		memcpy(&s->times.at[s->times.n++], f->bytes.p + i * 8, 8); /* as in wire_next */
	return f->type == WIRE_FIXED64 || (f->type == WIRE_BYTES && n % 8 == 0);
}

static void sum_values(struct otlp_sample *s)
{
	int64_t sum = 0;

	for (size_t i = 0; i < s->values.n; i++)
		if (__builtin_add_overflow(sum, s->values.at[i], &sum))
			sum = s->values.at[i] < 0 ? INT64_MIN : INT64_MAX;
	s->values.n = 0;
	vec_push(&s->values, sum);
}

/* Values and times are of the same observations, and without values each time is one event. Values
 * without times are one observation. */
static bool fit_values(struct otlp_sample *s, struct err *e)
{
	if (!s->times.n) {
		sum_values(s);
		return true;
	}
	if (s->values.n && s->values.n != s->times.n)
		return err_set(e, ERR_FORMAT,
			       "%zu values and %zu timestamps, which are one for each value",
			       s->values.n, s->times.n);
	for (size_t i = 0; i < s->times.n; i++)
		if (s->times.at[i] < 0)
			return err_set(e, ERR_FORMAT, "timestamp %llu is after the year 2262",
				       (unsigned long long)s->times.at[i]);
	while (s->values.n < s->times.n)
		vec_push(&s->values, 1);
	return true;
}

bool otlp_sample(const struct otlp *o, struct wire w, struct otlp_sample *s, struct err *e)
{
	/* v1.10 put the values after the indices. */
	const unsigned values_field = o->is_v1_9 ? 2 : 4, attributes_field = o->is_v1_9 ? 3 : 2,
		       link_field = o->is_v1_9 ? 4 : 3;
	struct field f = { 0 };
	bool ok = true;

	s->stack = s->link = 0;
	s->attributes.n = s->values.n = s->times.n = 0;
	while (ok && w.p < w.end) {
		ok = wire_next(&w, &f);
		if (!ok)
			break;
		if (f.number == 1 && f.type == WIRE_VARINT)
			s->stack = f.value;
		else if (f.number == values_field)
			ok = otlp_numbers(&f, add_value, s);
		else if (f.number == attributes_field)
			ok = otlp_numbers(&f, add_attribute, s);
		else if (f.number == link_field && f.type == WIRE_VARINT)
			s->link = f.value;
		else if (f.number == 5)
			ok = add_times(&f, s);
	}
	return ok ? fit_values(s, e) : malformed(e, "Sample");
}

void otlp_sample_release(struct otlp_sample *s)
{
	vec_release(&s->attributes);
	vec_release(&s->values);
	vec_release(&s->times);
}

/* ---- which version of the protocol */

struct votes {
	size_t v1_9, v1_10; /* samples that can only be of one */
	const struct otlp *o;
};

/* What a sample has in a field that is a list in one version, and a number in another. */
struct clue {
	const struct votes *votes;
	bool is_there, is_packed;
	bool are_attributes, are_links; /* all that it names */
};

static bool is_row(const struct votes *votes, enum otlp_tables table, uint64_t index)
{
	return !index || index < votes->o->tables[table].rows.n;
}

static void check_index(void *ctx, uint64_t v)
{
	struct clue *clue = ctx;

	clue->are_attributes &= is_row(clue->votes, OTLP_ATTRIBUTES, v);
	clue->are_links &= is_row(clue->votes, OTLP_LINKS, v);
}

/* v1.9 has values in field 2, attributes in 3, a link in 4; v1.10 has attributes in 2, a link in 3,
 * values in 4. A list in field 3 or 4 tells, but some write lists as single numbers. Then it is of
 * the version in which it makes sense, if it does so in one alone: it has values or times, and
 * names what is there. */
static bool count_vote(struct votes *votes, struct wire w)
{
	const struct clue none = { .votes = votes, .are_attributes = true, .are_links = true };
	struct clue clues[] = { none, none, none, none, none };
	const struct clue *two = &clues[2], *three = &clues[3], *four = &clues[4];
	bool is_old, is_new, has_times = false;
	struct field f = { 0 };

	while (w.p < w.end) {
		if (!wire_next(&w, &f))
			return false;
		has_times |= f.number == 5;
		if (f.number < 2 || f.number > 4)
			continue;
		clues[f.number].is_there = true;
		clues[f.number].is_packed |= f.type == WIRE_BYTES;
		otlp_numbers(&f, check_index, &clues[f.number]);
	}
	is_old = (two->is_there || has_times) && three->are_attributes && four->are_links;
	is_new = (four->is_there || has_times) && two->are_attributes && three->are_links;
	if (three->is_packed || four->is_packed) {
		votes->v1_9 += three->is_packed;
		votes->v1_10 += four->is_packed;
	} else {
		votes->v1_9 += is_old && !is_new;
		votes->v1_10 += is_new && !is_old;
	}
	return true;
}

/* Calls `each` for all fields `number` of the message that are messages. */
static bool each_message(struct wire w, unsigned number, struct votes *votes,
			 bool (*each)(struct votes *votes, struct wire w))
{
	struct field f = { 0 };

	while (w.p < w.end) {
		if (!wire_next(&w, &f))
			return false;
		if (f.number == number && f.type == WIRE_BYTES && !each(votes, f.bytes))
			return false;
	}
	return true;
}

static bool count_samples(struct votes *votes, struct wire profile)
{
	return each_message(profile, 2, votes, count_vote);
}

static bool count_profiles(struct votes *votes, struct wire scope)
{
	return each_message(scope, 2, votes, count_samples);
}

static bool find_version(struct otlp *o, struct err *e)
{
	struct votes votes = { .o = o };

	for (size_t i = 0; i < o->resources.n; i++)
		if (!each_message(o->resources.at[i], 2, &votes, count_profiles))
			return malformed(e, "ResourceProfiles");
	if (votes.v1_9 && votes.v1_10)
		return err_set(e, ERR_FORMAT,
			       "%zu samples have fields as in v1.9 of OTLP, and %zu as in v1.10",
			       votes.v1_9, votes.v1_10);
	o->is_v1_9 = votes.v1_9;
	return true;
}

/* ---- */

bool otlp_open(struct otlp *o, struct str message, bool is_json, struct err *e)
{
	struct wire w = wire_of(message);
	struct field f = { 0 };

	*o = (struct otlp){ .left = UINT64_MAX };
	while (w.p < w.end) {
		if (!wire_next(&w, &f))
			return malformed(e, "ExportProfilesServiceRequest");
		if (f.number == 1 && f.type == WIRE_BYTES)
			vec_push(&o->resources, f.bytes);
		else if (f.number == 2 && f.type == WIRE_BYTES && !read_dictionary(o, f.bytes, e))
			return false;
	}
	for (int i = 0; i < OTLP_NTABLES; i++)
		o->tables[i].made = xcalloc(o->tables[i].rows.n + 1, sizeof(*o->tables[i].made));
	o->attributes = xcalloc(o->tables[OTLP_ATTRIBUTES].rows.n + 1, sizeof(*o->attributes));
	return is_json || find_version(o, e);
}

void otlp_release(struct otlp *o)
{
	for (int i = 0; i < OTLP_NTABLES; i++) {
		vec_release(&o->tables[i].rows);
		free(o->tables[i].made);
	}
	vec_release(&o->resources);
	free(o->attributes);
	arena_release(&o->texts);
}
