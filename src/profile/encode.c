/* encode.c - a profile as profile.proto, field by field in the order of the reference encoder. */
#include "profile/profile.h"

#include <stdlib.h>
#include <string.h>

#include "base/packer.h"
#include "base/vec.h"
#include "profile/wire.h"

enum { MEMBER_BYTES = 4 << 20 };

struct encoder {
	const struct profile *p;
	struct buf *out, part, inner; /* `part` is a message, `inner` one inside it */
	uint32_t *string_of;	      /* index in p->strings -> string_table index + 1 */
	vec(uint32_t) strings;	      /* the string_table */
	void (*put_string)(struct buf *out, unsigned field, struct str s);
	const atomic_bool *stop;
};

static uint64_t string_index(struct encoder *x, uint32_t string)
{
	uint32_t *at = &x->string_of[string];

	if (!*at) {
		vec_push(&x->strings, string);
		*at = (uint32_t)x->strings.n;
	}
	return *at - 1;
}

static void put_value_type(struct encoder *x, unsigned field, struct value_type t)
{
	uint64_t type = string_index(x, t.type), unit = string_index(x, t.unit);

	put_nonzero(&x->part, 1, type);
	put_nonzero(&x->part, 2, unit);
	put_message(x->out, field, &x->part);
}

/* Repeated numbers are packed only when there are more than two. */
static void put_stack(struct encoder *x, const struct sample *s)
{
	const uint32_t *stack = x->p->stacks + s->stack;
	struct buf *to = s->nstack > 2 ? &x->inner : &x->part;

	for (uint32_t i = 0; i < s->nstack; i++) {
		if (s->nstack <= 2)
			put_varint(to, 1 << 3);
		put_varint(to, x->p->locations[stack[i]].id);
	}
	if (s->nstack > 2)
		put_message(&x->part, 1, &x->inner);
}

static void put_values(struct encoder *x, const struct sample *s)
{
	const int64_t *values = sample_values(x->p, s);
	uint32_t n = x->p->ntypes;
	struct buf *to = n > 2 ? &x->inner : &x->part;

	for (uint32_t i = 0; i < n; i++) {
		if (n <= 2)
			put_varint(to, 2 << 3);
		put_varint(to, (uint64_t)values[i]);
	}
	if (n > 2)
		put_message(&x->part, 2, &x->inner);
}

static void put_labels(struct encoder *x, const struct sample *s)
{
	const struct label_set *set = &x->p->label_sets[s->labels];
	const struct label *l = set_labels(x->p, s->labels);

	for (uint32_t i = 0; i < set->nstrings + set->nnumbers; i++) {
		bool is_number = i >= set->nstrings;
		uint64_t key = string_index(x, l[i].key), text = string_index(x, l[i].text);

		put_nonzero(&x->inner, 1, key);
		put_nonzero(&x->inner, 2, is_number ? 0 : text);
		put_nonzero(&x->inner, 3, (uint64_t)l[i].number);
		put_nonzero(&x->inner, 4, is_number ? text : 0);
		put_message(&x->part, 3, &x->inner);
	}
}

static void put_samples(struct encoder *x)
{
	for (uint32_t i = 0; i < x->p->nsamples && !stop_asked_at(x->stop, i); i++) {
		const struct sample *s = &x->p->samples[i];

		put_stack(x, s);
		put_values(x, s);
		put_labels(x, s);
		put_message(x->out, 2, &x->part);
	}
}

static void put_mapping(struct encoder *x, const struct mapping *m)
{
	uint64_t file = string_index(x, m->file), build_id = string_index(x, m->build_id);

	put_nonzero(&x->part, 1, m->id);
	put_nonzero(&x->part, 2, m->start);
	put_nonzero(&x->part, 3, m->limit);
	put_nonzero(&x->part, 4, m->offset);
	put_nonzero(&x->part, 5, file);
	put_nonzero(&x->part, 6, build_id);
	put_nonzero(&x->part, 7, m->has_functions);
	put_nonzero(&x->part, 8, m->has_filenames);
	put_nonzero(&x->part, 9, m->has_line_numbers);
	put_nonzero(&x->part, 10, m->has_inline_frames);
	put_message(x->out, 3, &x->part);
}

static void put_location(struct encoder *x, const struct location *loc)
{
	const struct profile *p = x->p;

	put_nonzero(&x->part, 1, loc->id);
	put_nonzero(&x->part, 2, loc->mapping == NONE ? 0 : p->mappings[loc->mapping].id);
	put_nonzero(&x->part, 3, loc->address);
	for (uint32_t i = 0; i < loc->nlines; i++) {
		const struct line *l = &p->lines[loc->first_line + i];

		put_nonzero(&x->inner, 1, l->function == NONE ? 0 : p->functions[l->function].id);
		put_nonzero(&x->inner, 2, (uint64_t)l->line);
		put_nonzero(&x->inner, 3, (uint64_t)l->column);
		put_message(&x->part, 4, &x->inner);
	}
	put_nonzero(&x->part, 5, loc->is_folded);
	put_message(x->out, 4, &x->part);
}

static void put_function(struct encoder *x, const struct function *f)
{
	uint64_t name = string_index(x, f->name), system_name = string_index(x, f->system_name),
		 filename = string_index(x, f->filename);

	put_nonzero(&x->part, 1, f->id);
	put_nonzero(&x->part, 2, name);
	put_nonzero(&x->part, 3, system_name);
	put_nonzero(&x->part, 4, filename);
	put_nonzero(&x->part, 5, (uint64_t)f->start_line);
	put_message(x->out, 5, &x->part);
}

static void put_comments(struct encoder *x, struct buf *to)
{
	uint32_t n = x->p->ncomments;

	for (uint32_t i = 0; i < n; i++) {
		if (n <= 2)
			put_number(to, 13, string_index(x, x->p->comments[i]));
		else
			put_varint(&x->inner, string_index(x, x->p->comments[i]));
	}
	if (n > 2)
		put_message(to, 13, &x->inner);
}

/* Fields 7 to 15. They name strings, so they are made before the string table is written. */
static void put_tail(struct encoder *x, struct buf *tail)
{
	const struct profile *p = x->p;
	uint64_t drop = string_index(x, p->drop_frames), keep = string_index(x, p->keep_frames);

	put_nonzero(tail, 7, drop);
	put_nonzero(tail, 8, keep);
	put_nonzero(tail, 9, (uint64_t)p->time_nanos);
	put_nonzero(tail, 10, (uint64_t)p->duration_nanos);
	if (p->period_type.type || p->period_type.unit) {
		uint64_t type = string_index(x, p->period_type.type);
		uint64_t unit = string_index(x, p->period_type.unit);

		put_nonzero(&x->part, 1, type);
		put_nonzero(&x->part, 2, unit);
		put_message(tail, 11, &x->part);
	}
	put_nonzero(tail, 12, (uint64_t)p->period);
	put_comments(x, tail);
	put_number(tail, 14, string_index(x, p->default_type));
	put_nonzero(tail, 15, string_index(x, p->doc_url));
}

static void encode(struct encoder x)
{
	const struct profile *p = x.p;
	struct buf tail = { 0 };

	x.string_of = xmalloc(p->strings->n * sizeof(*x.string_of));
	memset(x.string_of, 0, p->strings->n * sizeof(*x.string_of));
	string_index(&x, 0);
	for (uint32_t i = 0; i < p->ntypes; i++)
		put_value_type(&x, 1, p->types[i]);
	put_samples(&x);
	for (uint32_t i = 0; i < p->nmappings; i++)
		put_mapping(&x, &p->mappings[i]);
	for (uint32_t i = 0; i < p->nlocations; i++)
		put_location(&x, &p->locations[i]);
	for (uint32_t i = 0; i < p->nfunctions; i++)
		put_function(&x, &p->functions[i]);
	put_tail(&x, &tail);
	for (size_t i = 0; i < x.strings.n; i++)
		x.put_string(x.out, 6, profile_str(p, x.strings.at[i]));
	buf_str(x.out, buf_view(&tail));
	buf_release(&tail);
	buf_release(&x.part);
	buf_release(&x.inner);
	vec_release(&x.strings);
	free(x.string_of);
}

void profile_encode(struct buf *out, const struct profile *p)
{
	encode((struct encoder){ .p = p, .out = out, .put_string = put_bytes });
}

void profile_encode_text(struct buf *out, const struct profile *p)
{
	encode((struct encoder){ .p = p, .out = out, .put_string = put_utf8 });
}

/* In members of at most that many bytes. */
static void pack(struct buf *out, struct str plain, size_t most, const atomic_bool *stop)
{
	struct libdeflate_compressor *c = packer_take(PACKER_QUICK);

	do {
		size_t n = plain.n < most ? plain.n : most;
		size_t bound = libdeflate_gzip_compress_bound(c, n);

		out->n += libdeflate_gzip_compress(c, plain.p, n, buf_room(out, bound), bound);
		plain = str_from(plain, n);
	} while (plain.n && !stop_asked(stop));
	packer_give(c, PACKER_QUICK);
}

void profile_encode_gzip(struct buf *out, const struct profile *p)
{
	struct buf plain = { 0 };

	profile_encode(&plain, p);
	pack(out, buf_view(&plain), SIZE_MAX, NULL);
	buf_release(&plain);
}

void profile_encode_unless(struct buf *out, const struct profile *p, const atomic_bool *stop)
{
	struct buf plain = { 0 };

	encode((struct encoder){ .p = p, .out = &plain, .put_string = put_bytes, .stop = stop });
	if (!stop_asked(stop))
		pack(out, buf_view(&plain), MEMBER_BYTES, stop);
	buf_release(&plain);
}
