/* proto.c - profiles out: -proto and -topproto. */
#include "report/report.h"

#include "base/map.h"
#include "base/unit.h"
#include "base/vec.h"

/* Values divided, samples as they are. */
static void divide_values(struct report_run *r, struct profile *p)
{
	struct sample *samples = arena_copy(r->a, p->samples, p->nsamples * sizeof(*samples));
	int64_t *values = arena_many(r->a, (size_t)p->nsamples * p->ntypes, int64_t);

	for (uint32_t i = 0; i < p->nsamples; i++) {
		const int64_t *from = sample_values(p, &samples[i]);

		for (uint32_t k = 0; k < p->ntypes; k++)
			values[(size_t)i * p->ntypes + k] = report_divided(r, from[k]);
		samples[i].row = i;
	}
	p->samples = samples;
	p->values = values;
}

static bool run(struct buf *out, struct report_run *r, struct err *e)
{
	struct profile p = *r->p;

	(void)e;
	if (r->params->divide_by != 1)
		divide_values(r, &p);
	if (r->params->stop)
		profile_encode_unless(out, &p, r->params->stop);
	else
		profile_encode_gzip(out, &p);
	return true;
}

const struct report report_proto = {
	.name = "proto",
	.flags = REPORT_UNTRIMMED | REPORT_ADDRESSES | REPORT_PROFILE | REPORT_BINARY,
	.extension = "pb.gz",
	.run = run,
};

/* ---- topproto: a profile of one sample per node */

struct top_profile {
	struct profile p;
	struct map map;
};

static bool same_function(const void *ctx, uint32_t index)
{
	const struct profile *p = ((const void *const *)ctx)[0];
	const struct function *want = ((const void *const *)ctx)[1], *f = &p->functions[index];

	return f->name == want->name && f->filename == want->filename &&
	       f->start_line == want->start_line;
}

static uint32_t add_function(struct top_profile *t, const struct node_info *i)
{
	struct function f = { .name = i->name, .filename = i->file, .start_line = i->start_line };
	const void *ctx[2] = { &t->p, &f };
	uint64_t hash =
		hash_mix(map_seed() ^ (uint64_t)f.start_line, (uint64_t)f.name << 32 | f.filename);
	uint32_t at = map_put(&t->map, hash, t->p.nfunctions, same_function, ctx);

	if (at == t->p.nfunctions) {
		f.id = at + 1;
		t->p.functions[t->p.nfunctions++] = f;
	}
	return at;
}

static int64_t scaled(const struct report_run *r, int64_t v)
{
	struct str unit;

	return int_from_double(unit_scale(v, r->sample_unit, r->unit, &unit));
}

static void add_node(const struct report_run *r, struct top_profile *t, uint32_t i)
{
	const struct node *n = &r->g.nodes[r->g.order[i]];
	struct profile *p = &t->p;

	p->lines[i] = (struct line){ n->info.line, n->info.column, add_function(t, &n->info) };
	p->locations[i] = (struct location){ .id = i + 1,
					     .address = n->info.address,
					     .mapping = NONE,
					     .first_line = i,
					     .nlines = 1 };
	p->stacks[i] = i;
	p->samples[i] = (struct sample){ i, 1, 0, i };
	p->values[2 * i] = scaled(r, node_cum(n));
	p->values[2 * i + 1] = scaled(r, node_flat(n));
}

static bool run_top(struct buf *out, struct report_run *r, struct err *e)
{
	const struct profile *from = r->p;
	uint32_t n = r->g.norder;
	struct top_profile t = { .p = { .strings = from->strings,
					.period_type = from->period_type,
					.period = from->period,
					.time_nanos = from->time_nanos,
					.duration_nanos = from->duration_nanos } };
	struct profile *p = &t.p;

	(void)e;
	p->ntypes = 2;
	p->types = arena_many(r->a, 2, struct value_type);
	p->types[0].type = strings_add(p->strings, STR("cum"));
	p->types[1].type = strings_add(p->strings, STR("flat"));
	p->types[0].unit = p->types[1].unit = strings_add(p->strings, r->unit);
	p->label_sets = arena_new(r->a, struct label_set);
	p->labels = arena_new(r->a, struct label);
	p->nlabel_sets = 1;
	p->functions = arena_many(r->a, n, struct function);
	p->lines = arena_many(r->a, n, struct line);
	p->locations = arena_many(r->a, n, struct location);
	p->stacks = arena_many(r->a, n, uint32_t);
	p->samples = arena_many(r->a, n, struct sample);
	p->values = arena_many(r->a, (size_t)n * 2, int64_t);
	p->nlines = p->nlocations = p->nsamples = n;
	for (uint32_t i = 0; i < n; i++)
		add_node(r, &t, i);
	profile_encode_gzip(out, p);
	map_release(&t.map);
	return true;
}

const struct report report_topproto = {
	.name = "topproto",
	.flags = REPORT_GRAPH | REPORT_ALL_NODES | REPORT_BINARY | REPORT_NO_EDGES,
	.extension = "pb.gz",
	.run = run_top,
};
