/* otlp_profile.c - one profile of OpenTelemetry's becomes one of kiln's. */
#include "server/columns.h"
#include "server/otlp.h"

enum { LONG_KEY = 100 };

/* ---- a message */

static void add_number(void *ctx, uint64_t v)
{
	struct otlp_profile *p = ctx;

	vec_push(&p->attributes, v);
}

bool otlp_profile(struct wire w, struct otlp_profile *p, struct err *e)
{
	struct field f = { 0 };
	bool ok = true;

	*p = (struct otlp_profile){ 0 };
	while (ok && w.p < w.end) {
		ok = wire_next(&w, &f);
		if (!ok)
			break;
		if (f.number == 1 && f.type == WIRE_BYTES)
			p->sample_type = f.bytes;
		else if (f.number == 2 && f.type == WIRE_BYTES)
			vec_push(&p->samples, f.bytes);
		else if (f.number == 3 && f.type == WIRE_FIXED64)
			p->time = f.value;
		else if (f.number == 4 && f.type == WIRE_VARINT)
			p->duration = f.value;
		else if (f.number == 5 && f.type == WIRE_BYTES)
			p->period_type = f.bytes;
		else if (f.number == 6 && f.type == WIRE_VARINT)
			p->period = (int64_t)f.value;
		else if (f.number == 11)
			ok = otlp_numbers(&f, add_number, p);
	}
	return ok || err_set(e, ERR_FORMAT, "Profile: no protobuf");
}

void otlp_profile_release(struct otlp_profile *p)
{
	vec_release(&p->samples);
	vec_release(&p->attributes);
}

/* ---- tables */

struct maker {
	struct otlp *o;
	struct builder b;
	struct otlp_sample sample;
	vec(uint32_t) stack;
	vec(struct label_input) labels;	     /* of a sample */
	vec(struct label_input) made_labels; /* of attributes */
	struct err *e;
};

/* True: the row is in the profile already, as *row. */
static bool is_made(const struct maker *m, enum otlp_tables table, uint64_t index, uint32_t *row)
{
	const struct otlp_made *made = &m->o->tables[table].made[index];

	*row = made->row;
	return made->profile == m->o->nprofiles;
}

static void note_made(struct maker *m, enum otlp_tables table, uint64_t index, size_t row)
{
	m->o->tables[table].made[index] = (struct otlp_made){ m->o->nprofiles, (uint32_t)row };
}

/* All fields of a message that are numbers, by their number; others, and larger ones, are left out.
 */
static bool read_numbers(struct maker *m, struct wire w, uint64_t *values, size_t n)
{
	struct field f = { 0 };

	while (w.p < w.end) {
		if (!wire_next(&w, &f))
			return err_set(m->e, ERR_FORMAT, "the dictionary: no protobuf");
		if (f.type == WIRE_VARINT && f.number < n)
			values[f.number] = f.value;
	}
	return true;
}

static bool spend_row(struct maker *m, struct wire w)
{
	return otlp_spend(m->o, wire_view(w).n, m->e);
}

static bool add_string(struct maker *m, uint64_t index, uint32_t *out)
{
	struct str text;

	if (index < m->o->tables[OTLP_STRINGS].rows.n && is_made(m, OTLP_STRINGS, index, out))
		return true;
	if (!otlp_string(m->o, index, &text, m->e) || !otlp_spend(m->o, text.n, m->e))
		return false;
	*out = builder_string(&m->b, text);
	if (index < m->o->tables[OTLP_STRINGS].rows.n)
		note_made(m, OTLP_STRINGS, index, *out);
	return true;
}

static bool add_function(struct maker *m, uint64_t index, uint32_t *row)
{
	uint64_t v[5] = { 0 }; /* name, system_name, filename, start_line */
	struct function f = { .id = m->b.functions.n + 1 };
	struct wire w = { 0 };

	*row = NONE;
	if (!index)
		return true;
	if (!otlp_row(m->o, OTLP_FUNCTIONS, index, "a line", &w, m->e))
		return false;
	if (is_made(m, OTLP_FUNCTIONS, index, row))
		return true;
	if (!spend_row(m, w) || !read_numbers(m, w, v, 5) || !add_string(m, v[1], &f.name) ||
	    !add_string(m, v[2], &f.system_name) || !add_string(m, v[3], &f.filename))
		return false;
	f.start_line = (int64_t)v[4];
	f.system_name = f.system_name ? f.system_name : f.name;
	*row = (uint32_t)m->b.functions.n;
	vec_push(&m->b.functions, f);
	note_made(m, OTLP_FUNCTIONS, index, *row);
	return true;
}

static bool is_build_id(struct str key)
{
	return str_eq(key, STR("process.executable.build_id.gnu")) ||
	       str_eq(key, STR("process.executable.build_id.go"));
}

struct build_id {
	struct maker *m;
	uint32_t string;
	bool ok;
};

/* The first wins: GNU's is what debug files go by. */
static void take_build_id(void *ctx, uint64_t attribute)
{
	struct build_id *id = ctx;
	const struct otlp_attribute *a =
		id->ok ? otlp_attribute(id->m->o, attribute, id->m->e) : NULL;

	id->ok = a;
	if (!id->ok || id->string || !is_build_id(a->key) || !a->value.is_text)
		return;
	id->ok = otlp_spend(id->m->o, a->value.text.n, id->m->e);
	if (id->ok)
		id->string = builder_string(&id->m->b, a->value.text);
}

static bool add_mapping(struct maker *m, uint64_t index, uint32_t *row)
{
	uint64_t v[5] = { 0 }; /* memory_start, memory_limit, file_offset, filename */
	struct build_id id = { .m = m, .ok = true };
	struct mapping mapping = { .id = m->b.mappings.n + 1 };
	struct wire w = { 0 };
	struct field f = { 0 };

	*row = NONE;
	if (!index)
		return true;
	if (!otlp_row(m->o, OTLP_MAPPINGS, index, "a location", &w, m->e))
		return false;
	if (is_made(m, OTLP_MAPPINGS, index, row))
		return true;
	if (!spend_row(m, w) || !read_numbers(m, w, v, 5) || !add_string(m, v[4], &mapping.file))
		return false;
	while (w.p < w.end && wire_next(&w, &f))
		if (f.number == 5 && !otlp_numbers(&f, take_build_id, &id))
			return err_set(m->e, ERR_FORMAT, "Mapping: no protobuf");
	if (!id.ok)
		return false;
	mapping.build_id = id.string;
	mapping.start = v[1];
	mapping.limit = v[2];
	mapping.offset = v[3];
	*row = (uint32_t)m->b.mappings.n;
	vec_push(&m->b.mappings, mapping);
	note_made(m, OTLP_MAPPINGS, index, *row);
	return true;
}

static bool add_line(struct maker *m, struct wire w)
{
	uint64_t v[4] = { 0 }; /* function, line, column */
	struct line line = { 0 };

	if (!read_numbers(m, w, v, 4) || !add_function(m, v[1], &line.function))
		return false;
	if (line.function == NONE) /* which profile.proto does not allow */
		return true;
	line.line = (int64_t)v[2];
	line.column = (int64_t)v[3];
	vec_push(&m->b.lines, line);
	return true;
}

static void mark_symbolized(struct mapping *mapping)
{
	mapping->has_functions = mapping->has_filenames = mapping->has_line_numbers = true;
}

static bool add_location(struct maker *m, uint64_t index, uint32_t *row)
{
	uint64_t v[3] = { 0 }; /* mapping, address */
	struct location l = { .id = m->b.locations.n + 1 };
	struct wire w = { 0 };
	struct field f = { 0 };

	if (!otlp_row(m->o, OTLP_LOCATIONS, index, "a stack", &w, m->e))
		return false;
	if (is_made(m, OTLP_LOCATIONS, index, row))
		return true;
	l.first_line = (uint32_t)m->b.lines.n;
	if (!spend_row(m, w) || !read_numbers(m, w, v, 3) || !add_mapping(m, v[1], &l.mapping))
		return false;
	while (w.p < w.end && wire_next(&w, &f))
		if (f.number == 3 && f.type == WIRE_BYTES && !add_line(m, f.bytes))
			return false;
	l.nlines = (uint32_t)m->b.lines.n - l.first_line;
	l.address = v[2];
	if (l.nlines && l.mapping != NONE)
		mark_symbolized(&m->b.mappings.at[l.mapping]);
	*row = (uint32_t)m->b.locations.n;
	vec_push(&m->b.locations, l);
	note_made(m, OTLP_LOCATIONS, index, *row);
	return true;
}

/* ---- samples */

struct stack_reader {
	struct maker *m;
	bool ok;
};

static void take_location(void *ctx, uint64_t index)
{
	struct stack_reader *s = ctx;
	uint32_t row;

	s->ok = s->ok && (!index || add_location(s->m, index, &row));
	if (s->ok && index)
		vec_push(&s->m->stack, row);
}

static bool read_stack(struct maker *m, uint64_t index)
{
	struct stack_reader s = { m, true };
	struct wire w = { 0 };
	struct field f = { 0 };

	m->stack.n = 0;
	if (!index)
		return true;
	if (!otlp_row(m->o, OTLP_STACKS, index, "a sample", &w, m->e))
		return false;
	while (s.ok && w.p < w.end) {
		if (!wire_next(&w, &f))
			return err_set(m->e, ERR_FORMAT, "Stack: no protobuf");
		if (f.number == 1 && !otlp_numbers(&f, take_location, &s))
			return s.ok ? err_set(m->e, ERR_FORMAT, "Stack: no list of locations")
				    : false;
	}
	return s.ok;
}

static struct str text_of(const struct maker *m, uint32_t string)
{
	return m->b.head.strings->at[string];
}

static void add_text_label(struct maker *m, struct str key, struct str value)
{
	struct label_input label = { .label = { .key = builder_string(&m->b, key),
						.text = builder_string(&m->b, value) } };

	vec_push(&m->labels, label);
}

/* A label of profile.proto that is neither text nor a number but 0 is none. */
static bool is_label(const struct otlp_attribute *a)
{
	if (!a->key.n || str_eq(a->key, STR("service.name")))
		return false;
	return a->value.is_number ? a->value.number || a->unit.n
				  : a->value.is_text && a->value.text.n;
}

/* The label that an attribute is, made once for all samples. Its row is NONE if it is none. */
static bool make_label(struct maker *m, uint64_t attribute, uint32_t *row)
{
	const struct otlp_attribute *a = otlp_attribute(m->o, attribute, m->e);
	struct str text;

	*row = NONE;
	if (!a || !attribute || is_made(m, OTLP_ATTRIBUTES, attribute, row))
		return a;
	*row = NONE;
	if (is_label(a)) {
		text = a->value.is_number ? a->unit : a->value.text;
		if (!otlp_spend(m->o, a->key.n + text.n, m->e))
			return false;
		*row = (uint32_t)m->made_labels.n;
		vec_push(&m->made_labels,
			 (struct label_input){ .label = { .key = builder_string(&m->b, a->key),
							  .text = builder_string(&m->b, text),
							  .number = a->value.number },
					       .is_number = a->value.is_number });
	}
	note_made(m, OTLP_ATTRIBUTES, attribute, *row);
	return true;
}

/* Labels of each observation are sorted by their keys, so that long ones are work each time. */
static bool add_label(struct maker *m, uint64_t attribute)
{
	size_t key_bytes;
	uint32_t row;

	if (!make_label(m, attribute, &row))
		return false;
	if (row == NONE)
		return true;
	key_bytes = text_of(m, m->made_labels.at[row].label.key).n;
	if (key_bytes > LONG_KEY && !otlp_spend(m->o, key_bytes * m->sample.values.n, m->e))
		return false;
	vec_push(&m->labels, m->made_labels.at[row]);
	return true;
}

static void add_id_label(struct maker *m, struct str key, struct wire id)
{
	char text[2 * 32];
	size_t n = 0;

	for (; id.p < id.end && n < sizeof(text); id.p++) {
		text[n++] = "0123456789abcdef"[*id.p >> 4];
		text[n++] = "0123456789abcdef"[*id.p & 15];
	}
	if (n)
		add_text_label(m, key, (struct str){ text, n });
}

static bool add_link(struct maker *m, uint64_t index)
{
	struct wire w = { 0 };
	struct field f = { 0 };

	if (!index)
		return true;
	if (!otlp_row(m->o, OTLP_LINKS, index, "a sample", &w, m->e))
		return false;
	while (w.p < w.end) {
		if (!wire_next(&w, &f))
			return err_set(m->e, ERR_FORMAT, "Link: no protobuf");
		if (f.type == WIRE_BYTES && f.number == 1)
			add_id_label(m, STR("trace_id"), f.bytes);
		if (f.type == WIRE_BYTES && f.number == 2)
			add_id_label(m, STR("span_id"), f.bytes);
	}
	return true;
}

/* As profile_find_times knows it. It is the first label, so that it comes before an attribute of
 * the same name. */
static void add_time_label(struct maker *m)
{
	struct label_input label = { .label = { .key = builder_string(&m->b, STR("timestamp")),
						.text = builder_string(&m->b, STR("nanoseconds")) },
				     .is_number = true };

	vec_push(&m->labels, label);
}

/* One sample of each, as profile.proto has no other way to say when it was. */
static void add_observations(struct maker *m)
{
	const struct otlp_sample *s = &m->sample;

	for (size_t i = 0; i < s->values.n; i++) {
		uint32_t set;

		if (s->times.n)
			m->labels.at[0].label.number = s->times.at[i];
		set = label_table_add(&m->b.labels, m->b.head.strings, m->labels.at, m->labels.n);
		builder_sample(&m->b, m->stack.at, m->stack.n, set, &s->values.at[i]);
	}
}

static bool add_sample(struct maker *m, struct wire w)
{
	struct otlp_sample *s = &m->sample;

	if (!otlp_sample(m->o, w, s, m->e) || !read_stack(m, s->stack))
		return false;
	m->labels.n = 0;
	if (s->times.n)
		add_time_label(m);
	for (size_t i = 0; i < s->attributes.n; i++)
		if (!add_label(m, s->attributes.at[i]))
			return false;
	if (!add_link(m, s->link))
		return false;
	add_observations(m);
	return true;
}

/* ---- what it is */

static bool add_type(struct maker *m, struct wire w, struct value_type *out)
{
	uint64_t v[3] = { 0 }; /* type, unit */

	return read_numbers(m, w, v, 3) && add_string(m, v[1], &out->type) &&
	       add_string(m, v[2], &out->unit);
}

/* Counts of samples or events are of what the period is; other values are what they are called. */
static struct str type_of(const struct maker *m)
{
	struct str name = text_of(m, m->b.types.at[0].type);
	struct str period = text_of(m, m->b.head.period_type.type);

	if (!name.n || ((str_eq(name, STR("samples")) || str_eq(name, STR("events"))) && period.n))
		name = period;
	if (!name.n)
		name = STR("other");
	return profile_type_of_name(name);
}

/* The eBPF profiler's name for the time in which threads did not run. */
static bool is_off_cpu(const struct maker *m, const struct value_type *type)
{
	return str_eq(text_of(m, type->type), STR("events")) &&
	       str_eq(text_of(m, type->unit), STR("nanoseconds")) && !m->b.head.period_type.type;
}

static bool read_head(struct maker *m, const struct otlp_profile *p)
{
	struct value_type type;

	if (!spend_row(m, p->sample_type) || !spend_row(m, p->period_type) ||
	    !add_type(m, p->sample_type, &type) ||
	    !add_type(m, p->period_type, &m->b.head.period_type))
		return false;
	if (is_off_cpu(m, &type))
		type.type = builder_string(&m->b, STR("off_cpu"));
	vec_push(&m->b.types, type);
	m->b.head.period = p->period;
	m->b.head.time_nanos = p->time <= INT64_MAX ? (int64_t)p->time : 0;
	m->b.head.duration_nanos = p->duration <= INT64_MAX ? (int64_t)p->duration : 0;
	return true;
}

/* Those with a period have both counts and times, as of Go's runtime. */
static void set_columns(struct arena *a, struct str type, struct profile *p)
{
	struct str unit = profile_str(p, p->types[0].unit);
	bool is_time = str_eq(unit, STR("nanoseconds"));

	if (!str_eq(type, STR("cpu")) || p->period <= 0 ||
	    (!is_time && !str_eq(unit, STR("count"))))
		return;
	columns_add_cpu(a, p, is_time);
}

static bool fill(struct maker *m, const struct otlp_profile *p, const uint32_t *of, size_t n)
{
	bool ok = read_head(m, p);

	for (size_t i = 0; ok && i < n; i++)
		ok = add_sample(m, p->samples.at[of[i]]) ||
		     (m->e->kind != ERR_LIMIT && err_wrap(m->e, "sample %u", of[i]));
	return ok;
}

bool otlp_make(struct otlp *o, const struct otlp_profile *p, const uint32_t *of, size_t n,
	       struct desk *desk, struct profile *out, struct str *type, struct err *e)
{
	struct maker m = { .o = o, .e = e };
	bool ok;

	o->nprofiles++;
	builder_init(&m.b, &desk->strings);
	ok = fill(&m, p, of, n);
	if (ok) {
		*type = type_of(&m);
		builder_finish(&m.b, &desk->arena, out);
		set_columns(&desk->arena, *type, out);
	} else {
		builder_release(&m.b);
	}
	vec_release(&m.stack);
	vec_release(&m.labels);
	vec_release(&m.made_labels);
	otlp_sample_release(&m.sample);
	return ok;
}
