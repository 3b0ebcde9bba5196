#include "profile/legacy_parse.h"

#include "base/int.h"

#include <math.h>
#include <stdlib.h>

/* Not a base/map: with the address in the slot a lookup touches memory once, and it is most of what
 * reading a large profile costs. */
struct address_slot {
	uint64_t address;
	uint32_t location_plus_1; /* 0: free */
};

static struct address_slot *home_slot(const struct address_table *t, uint64_t address)
{
	return &t->slots[hash_mix(t->seed, address) & t->mask];
}

/* The address's slot, or the free one where it belongs. */
static struct address_slot *find_slot(const struct address_table *t, uint64_t address)
{
	struct address_slot *s = home_slot(t, address);

	while (s->location_plus_1 && s->address != address)
		s = s == t->slots + t->mask ? t->slots : s + 1;
	return s;
}

static void grow_table(struct address_table *t)
{
	struct address_table old = *t;
	size_t nslots = old.slots ? 2 * (old.mask + 1) : 1024;

	t->slots = memset(xmalloc(nslots * sizeof(*t->slots)), 0, nslots * sizeof(*t->slots));
	t->mask = nslots - 1;
	if (!old.slots)
		t->seed = map_seed();
	for (size_t i = 0; old.slots && i <= old.mask; i++)
		if (old.slots[i].location_plus_1)
			*find_slot(t, old.slots[i].address) = old.slots[i];
	free(old.slots);
}

static uint32_t intern_location(struct legacy *r, uint64_t address)
{
	struct address_slot *s = find_slot(&r->by_address, address);

	if (!s->location_plus_1) {
		struct location l = { .id = r->b.locations.n + 1,
				      .address = address,
				      .mapping = NONE };

		vec_push(&r->b.locations, l);
		*s = (struct address_slot){ address, (uint32_t)r->b.locations.n };
	}
	return s->location_plus_1 - 1;
}

uint32_t legacy_find_location(const struct legacy *r, uint64_t address)
{
	return r->by_address.slots ? find_slot(&r->by_address, address)->location_plus_1 - 1 : NONE;
}

static unsigned lower_hex_value(char c)
{
	return is_digit(c)	      ? (unsigned)(c - '0')
	       : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10
				      : 16;
}

bool legacy_addresses(struct legacy *r, struct str text, struct str line, struct err *e)
{
	const char *p = text.p, *end = text.p + text.n;

	while (end - p >= 3) {
		const char *start = p, *digits = p + 2;
		uint64_t v = 0;
		unsigned d;
		bool overflows = false;

		if (p[0] != '0' || p[1] != 'x' || lower_hex_value(*digits) > 15) {
			p++;
			continue;
		}
		for (p = digits; p < end && (d = lower_hex_value(*p)) < 16; p++) {
			overflows |= v >> 60 != 0;
			v = v << 4 | d;
		}
		if (overflows) {
			struct str number = { start, (size_t)(p - start) };

			err_set(e, ERR_FORMAT, "failed to parse as hex 64-bit number: %.*s",
				STR_ARG(number));
			return err_wrap(e, "malformed sample: %.*s", STR_ARG(line));
		}
		vec_push(&r->addresses, v);
	}
	return true;
}

void legacy_sample(struct legacy *r, enum adjust adjust, uint32_t labels, const int64_t *values)
{
	struct address_table *t = &r->by_address;
	size_t n = r->addresses.n;

	while (!t->slots || r->b.locations.n + n > t->mask / 2)
		grow_table(t);
	vec_reserve(&r->stack, n);
	for (size_t i = 0; i < n; i++) {
		if (adjust == ADJUST_ALL || (adjust == ADJUST_CALLERS && i > 0))
			r->addresses.at[i]--;
		__builtin_prefetch(home_slot(t, r->addresses.at[i]));
	}
	for (size_t i = 0; i < n; i++)
		r->stack.at[i] = intern_location(r, r->addresses.at[i]);
	builder_sample(&r->b, r->stack.at, n, labels, values);
	r->addresses.n = 0;
}

uint32_t legacy_bytes_label(struct legacy *r, int64_t n)
{
	struct label label = { .key = builder_string(&r->b, STR("bytes")), .number = n };

	return label_table_add_set(&r->b.labels, &label, 0, 1);
}

void legacy_add_type(struct legacy *r, struct str type, struct str unit)
{
	struct value_type t = { builder_string(&r->b, type), builder_string(&r->b, unit) };

	vec_push(&r->b.types, t);
}

void legacy_set_period(struct legacy *r, struct str type, struct str unit, int64_t period)
{
	r->b.head.period_type.type = builder_string(&r->b, type);
	r->b.head.period_type.unit = builder_string(&r->b, unit);
	r->b.head.period = period;
}

void legacy_drop_caller(struct legacy *r, struct sample *s)
{
	uint32_t *stack = r->b.stacks.at + s->stack;

	stack[1] = stack[0];
	s->stack++;
	s->nstack--;
}

void legacy_drop_repeated_leaves(struct legacy *r)
{
	const struct location *locations = r->b.locations.at;

	for (size_t i = 0; i < r->b.samples.n; i++) {
		struct sample *s = &r->b.samples.at[i];
		const uint32_t *stack = r->b.stacks.at + s->stack;

		if (s->nstack > 1 && locations[stack[0]].address == locations[stack[1]].address + 1)
			legacy_drop_caller(r, s);
	}
}

static void renumber_locations(struct builder *b, struct arena *scratch)
{
	uint32_t *renumbered =
		arena_many(scratch, b->locations.n, uint32_t); /* plus 1; 0: unseen */
	struct location *old =
		arena_copy(scratch, b->locations.at, b->locations.n * sizeof(*b->locations.at));

	b->locations.n = 0;
	for (size_t i = 0; i < b->samples.n; i++) {
		uint32_t *stack = b->stacks.at + b->samples.at[i].stack;

		for (uint32_t k = 0; k < b->samples.at[i].nstack; k++) {
			uint32_t *to = &renumbered[stack[k]];

			if (!*to) {
				vec_push(&b->locations, old[stack[k]]);
				*to = (uint32_t)b->locations.n;
				b->locations.at[*to - 1].id = *to;
			}
			stack[k] = *to - 1;
		}
	}
}

static void renumber_functions(struct builder *b, struct arena *scratch)
{
	uint32_t *renumbered = arena_many(scratch, b->functions.n, uint32_t);
	struct function *old =
		arena_copy(scratch, b->functions.at, b->functions.n * sizeof(*b->functions.at));

	b->functions.n = 0;
	for (size_t i = 0; i < b->locations.n; i++) {
		struct location *l = &b->locations.at[i];

		for (uint32_t k = 0; k < l->nlines; k++) {
			uint32_t *function = &b->lines.at[l->first_line + k].function;
			uint32_t *to = &renumbered[*function];

			if (!*to) {
				vec_push(&b->functions, old[*function]);
				*to = (uint32_t)b->functions.n;
				b->functions.at[*to - 1].id = *to;
			}
			*function = *to - 1;
		}
	}
}

void legacy_renumber(struct legacy *r)
{
	struct arena scratch = { 0 };

	if (r->b.locations.n)
		renumber_locations(&r->b, &scratch);
	if (r->b.functions.n)
		renumber_functions(&r->b, &scratch);
	arena_release(&scratch);
}

void legacy_unbias(int64_t *count, int64_t *size, int64_t rate)
{
	double n = (double)*count, bytes = (double)*size, scale;

	if (*count == 0 || *size == 0) {
		*count = *size = 0;
	} else if (rate > 1) {
		scale = 1 / (1 - exp(-(bytes / n) / (double)rate));
		*count = int_from_double(n * scale);
		*size = int_from_double(bytes * scale);
	}
}
