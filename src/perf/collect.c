#include "perf/collect.h"

#include "base/int.h"

void collector_init(struct collector *c, struct strings *strings)
{
	*c = (struct collector){ .seed = map_seed(), .first_time = UINT64_MAX };
	builder_init(&c->b, strings);
	vec_reserve(&c->stacks, 1);
}

void collector_release(struct collector *c)
{
	builder_release(&c->b);
	vec_release(&c->events);
	vec_release(&c->threads);
	vec_release(&c->rows);
	vec_release(&c->stacks);
	vec_release(&c->ticks);
	map_release(&c->by_thread);
	map_release(&c->by_row);
}

uint32_t collector_event(struct collector *c, struct str name)
{
	uint32_t string = builder_string(&c->b, name);

	for (uint32_t i = 0; i < c->events.n; i++)
		if (c->events.at[i].name == string)
			return i;
	vec_push(&c->events, (struct collect_event){ .name = string });
	return (uint32_t)c->events.n - 1;
}

struct thread_key {
	const struct collector *c;
	const struct collect_thread *thread;
};

static bool same_thread(const void *ctx, uint32_t index)
{
	const struct thread_key *key = ctx;
	const struct collect_thread *t = &key->c->threads.at[index];

	return t->pid == key->thread->pid && t->tid == key->thread->tid &&
	       t->comm == key->thread->comm;
}

static uint32_t find_thread(struct collector *c, const struct collect_thread *t)
{
	struct thread_key key = { c, t };
	uint64_t hash = hash_mix(c->seed ^ t->comm, (uint64_t)t->pid << 32 | t->tid);
	uint32_t i = map_put(&c->by_thread, hash, c->threads.n, same_thread, &key);

	if (i == c->threads.n)
		vec_push(&c->threads, *t);
	return i;
}

struct row_key {
	const struct collector *c;
	const struct collect_sample *sample;
	uint32_t thread;
};

static bool same_row(const void *ctx, uint32_t index)
{
	const struct row_key *key = ctx;
	const struct collect_row *r = &key->c->rows.at[index];

	return r->event == key->sample->event && r->thread == key->thread &&
	       r->nstack == key->sample->nstack &&
	       (!r->nstack || memcmp(key->c->stacks.at + r->stack, key->sample->stack,
				     r->nstack * sizeof(uint32_t)) == 0);
}

static void add_row(struct collector *c, const struct collect_sample *s, uint32_t thread)
{
	struct collect_row row = { .event = s->event,
				   .thread = thread,
				   .stack = (uint32_t)c->stacks.n,
				   .nstack = (uint32_t)s->nstack };

	vec_push(&c->rows, row);
	vec_reserve(&c->stacks, s->nstack);
	if (s->nstack)
		memcpy(c->stacks.at + c->stacks.n, s->stack, s->nstack * sizeof(uint32_t));
	c->stacks.n += s->nstack;
}

bool collector_add(struct collector *c, const struct collect_sample *s, struct err *e)
{
	struct row_key key = { c, s, find_thread(c, &s->thread) };
	uint64_t seed = hash_mix(c->seed, (uint64_t)key.thread << 32 | s->event);
	uint64_t hash = hash_bytes(seed, s->stack, s->nstack * sizeof(uint32_t));
	uint32_t i = map_put(&c->by_row, hash, c->rows.n, same_row, &key);

	if (c->stacks.n + s->nstack >= UINT32_MAX)
		return err_set(e, ERR_LIMIT, "more than 2^32 frames");
	if (i == c->rows.n)
		add_row(c, s, key.thread);
	c->rows.at[i].count++;
	c->rows.at[i].total = int_add(c->rows.at[i].total, (int64_t)s->period);
	if (s->time && s->time < c->first_time)
		c->first_time = s->time;
	if (s->time > c->last_time)
		c->last_time = s->time;
	if (c->has_times && s->time)
		vec_push(&c->ticks, (struct collect_tick){ s->time, s->period, i });
	return true;
}

/* ---- mappings */

/* Neither a library nor something in brackets. */
static bool may_be_main(struct str file)
{
	size_t so = str_find(file, STR(".so"));
	bool is_library = so != STR_NONE && (so + 3 == file.n || file.p[so + 3] == '.');

	return file.n && file.p[0] != '[' && !str_has_prefix(file, STR("//")) && !is_library;
}

/* Index of the program that most frames are in, or NONE. */
static uint32_t find_main(const struct collector *c, const uint64_t *uses)
{
	uint32_t best = NONE;

	for (uint32_t i = 0; i < c->b.mappings.n; i++)
		if (uses[i] && (best == NONE || uses[i] > uses[best]) &&
		    may_be_main(c->b.head.strings->at[c->b.mappings.at[i].file]))
			best = i;
	return best;
}

/* By mapping, the samples in it; the last is for frames without one. */
static uint64_t *count_uses(struct arena *a, const struct collector *c)
{
	size_t n = c->b.mappings.n;
	uint64_t *uses = arena_many(a, n + 1, uint64_t);

	for (size_t i = 0; i < c->rows.n; i++)
		for (uint32_t k = 0; k < c->rows.at[i].nstack; k++) {
			uint32_t location = c->stacks.at[c->rows.at[i].stack + k];
			uint32_t mapping = c->b.locations.at[location].mapping;

			uses[mapping == NONE ? n : mapping] += (uint64_t)c->rows.at[i].count;
		}
	return uses;
}

static void keep_used_mappings(struct collector *c)
{
	struct builder *b = &c->b;
	struct arena a = { 0 };
	uint64_t *uses = count_uses(&a, c);
	uint32_t *renumbered = arena_many(&a, b->mappings.n, uint32_t), n = 0;
	uint32_t nold = (uint32_t)b->mappings.n, main_binary = find_main(c, uses);
	const struct mapping *old = arena_copy(&a, b->mappings.at, nold * sizeof(*old));

	for (uint32_t i = 0; i <= nold && nold; i++) {
		uint32_t from = i ? i - 1 : main_binary; /* that comes first */

		if (from == NONE || !uses[from])
			continue;
		uses[from] = 0;
		renumbered[from] = n;
		b->mappings.at[n] = old[from];
		b->mappings.at[n].id = n + 1u;
		n++;
	}
	b->mappings.n = n;
	for (size_t i = 0; i < b->locations.n; i++)
		if (b->locations.at[i].mapping != NONE)
			b->locations.at[i].mapping = renumbered[b->locations.at[i].mapping];
	arena_release(&a);
}

/* ---- labels */

/* What threads differ in. */
struct differences {
	bool comm, pid, tid;
};

static struct differences compare_threads(const struct collector *c)
{
	struct differences d = { 0 };

	for (size_t i = 1; i < c->threads.n; i++) {
		const struct collect_thread *t = &c->threads.at[i], *first = &c->threads.at[0];

		d.comm |= t->comm != first->comm;
		d.pid |= t->pid != first->pid;
	}
	/* Processes of one thread each need no second number. */
	for (size_t i = 0; i < c->threads.n && c->threads.n > 1; i++)
		d.tid |= c->threads.at[i].tid != c->threads.at[i].pid;
	return d;
}

/* A number that is a name: as a string, or reports would sum and scale it. */
static uint32_t number_string(struct builder *b, uint32_t n)
{
	struct buf text = { 0 };
	uint32_t string;

	buf_int(&text, (int32_t)n);
	string = builder_string(b, buf_view(&text));
	buf_release(&text);
	return string;
}

static uint32_t thread_labels(struct builder *b, const struct collect_thread *t,
			      const struct differences *d)
{
	struct label_input labels[3];
	size_t n = 0;

	if (d->comm)
		labels[n++].label =
			(struct label){ .key = builder_string(b, STR("comm")), .text = t->comm };
	if (d->pid)
		labels[n++].label = (struct label){ .key = builder_string(b, STR("pid")),
						    .text = number_string(b, t->pid) };
	if (d->tid)
		labels[n++].label = (struct label){ .key = builder_string(b, STR("tid")),
						    .text = number_string(b, t->tid) };
	for (size_t i = 0; i < n; i++)
		labels[i].is_number = false;
	return label_table_add(&b->labels, b->head.strings, labels, n);
}

/* ---- sample types */

/* Without modifiers: "cycles" of "cycles:uk". Those of tracepoints have a colon in the name. */
static struct str plain_name(struct str name, bool is_tracepoint)
{
	size_t colon = str_rfind_char(name, ':');

	if (is_tracepoint || colon == STR_NONE || !colon)
		return name;
	for (size_t i = colon + 1; i < name.n; i++)
		if (!strchr("ukhGHpPSDeIWR", name.p[i]))
			return name;
	return (struct str){ name.p, colon };
}

static bool is_clock(struct str name)
{
	return str_eq(name, STR("cpu-clock")) || str_eq(name, STR("task-clock"));
}

static struct value_type event_type(struct collector *c, uint32_t event)
{
	const struct strings *strings = c->b.head.strings;
	const struct collect_event *x = &c->events.at[event];
	struct str full = strings->at[x->name], name = plain_name(full, x->is_tracepoint);
	bool clock = is_clock(name);

	if (clock)
		name = STR("cpu");
	return (struct value_type){ builder_string(&c->b, name),
				    builder_string(&c->b,
						   clock ? STR("nanoseconds") : STR("count")) };
}

/* The column of each event; two events of one plain name keep their full names. */
static void add_types(struct collector *c, uint32_t *columns)
{
	struct builder *b = &c->b;

	vec_push(&b->types, (struct value_type){ builder_string(b, STR("samples")),
						 builder_string(b, STR("count")) });
	for (uint32_t i = 0; i < c->events.n && !c->has_no_periods; i++) {
		struct value_type type = event_type(c, i);

		for (size_t k = 1; k < b->types.n; k++)
			if (b->types.at[k].type == type.type)
				type.type = c->events.at[i].name;
		columns[i] = (uint32_t)b->types.n;
		vec_push(&b->types, type);
	}
	b->head.period_type = b->types.at[b->types.n > 1];
	b->head.period = b->types.n > 1 ? c->events.at[0].period : 1;
	if (b->types.n > 2) /* the first event is the one that was asked for first */
		b->head.default_type = b->types.at[1].type;
}

static void add_samples(struct collector *c, struct arena *a, const uint32_t *columns)
{
	struct differences d = compare_threads(c);
	uint32_t *labels = arena_many(a, c->threads.n, uint32_t);
	int64_t *values = arena_many(a, c->b.types.n, int64_t);

	for (size_t i = 0; i < c->threads.n; i++)
		labels[i] = thread_labels(&c->b, &c->threads.at[i], &d);
	for (size_t i = 0; i < c->rows.n; i++) {
		const struct collect_row *r = &c->rows.at[i];

		memset(values, 0, c->b.types.n * sizeof(*values));
		values[0] = r->count;
		if (columns[r->event])
			values[columns[r->event]] = r->total;
		builder_sample(&c->b, c->stacks.at + r->stack, r->nstack, labels[r->thread],
			       values);
	}
}

/* ---- times */

static void add_times(struct collector *c, struct arena *a, const uint32_t *columns,
		      struct profile *p)
{
	size_t n = c->ticks.n;
	struct profile_tick *ticks;
	int64_t *values;

	if (!n || n >= UINT32_MAX)
		return;
	ticks = arena_many(a, n, struct profile_tick);
	values = arena_many(a, n * p->ntypes, int64_t);
	for (size_t i = 0; i < n; i++) {
		const struct collect_tick *t = &c->ticks.at[i];
		uint32_t column = columns[c->rows.at[t->row].event];

		ticks[i] = (struct profile_tick){ (int64_t)(t->time & INT64_MAX), t->row,
						  (uint32_t)i };
		values[i * p->ntypes] = 1;
		if (column)
			values[i * p->ntypes + column] = (int64_t)t->period;
	}
	profile_set_times(a, p, ticks, n, values);
}

void collector_finish(struct collector *c, struct arena *a, struct profile *out)
{
	struct arena scratch = { 0 };
	uint32_t *columns = arena_many(&scratch, c->events.n + 1, uint32_t);

	keep_used_mappings(c);
	add_types(c, columns);
	add_samples(c, &scratch, columns);
	if (c->last_time > c->first_time)
		c->b.head.duration_nanos = (int64_t)(c->last_time - c->first_time);
	builder_finish(&c->b, a, out);
	add_times(c, a, columns, out);
	arena_release(&scratch);
}
