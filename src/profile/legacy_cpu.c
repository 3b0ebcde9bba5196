#include "profile/legacy_parse.h"

#include "profile/legacy_java.h"

struct word_format {
	unsigned bytes;
	bool is_big_endian;
};

struct words {
	struct str rest;
	struct word_format format;
};

static bool take_word(struct words *in, uint64_t *out)
{
	unsigned n = in->format.bytes;
	uint64_t v = 0;

	if (in->rest.n < n)
		return false;
	for (unsigned i = 0; i < n; i++) {
		unsigned at = in->format.is_big_endian ? i : n - 1 - i;

		v = v << 8 | (unsigned char)in->rest.p[at];
	}
	in->rest = str_from(in->rest, n);
	*out = v;
	return true;
}

enum { PRODUCER_CPP, PRODUCER_JAVA };

struct cpu_header {
	uint64_t producer, period_us;
};

/* Five words: 0, 3, who wrote it, period, 0. */
static bool take_header(struct words *in, struct cpu_header *h)
{
	uint64_t slots[5];

	for (int i = 0; i < 5; i++)
		if (!take_word(in, &slots[i]))
			return false;
	*h = (struct cpu_header){ slots[2], slots[3] };
	return slots[0] == 0 && slots[1] == 3 && h->producer <= PRODUCER_JAVA && h->period_us &&
	       slots[4] == 0;
}

static bool find_format(struct words *in, struct str data, struct cpu_header *h)
{
	static const struct word_format formats[] = {
		{ 4, false }, { 4, true }, { 8, false }, { 8, true }
	};

	for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++) {
		*in = (struct words){ data, formats[i] };
		if (take_header(in, h))
			return true;
	}
	return false;
}

static bool unrecognized(struct err *e)
{
	return err_set(e, ERR_UNRECOGNIZED, "no CPU profile");
}

/* Records up to the one that ends the data, or to the end. What follows is left in `in`. */
static bool read_records(struct legacy *r, struct words *in, enum adjust adjust, struct err *e)
{
	while (in->rest.n) {
		uint64_t count, nstack, address;
		int64_t values[2];

		if (!take_word(in, &count) || !take_word(in, &nstack) || nstack > in->rest.n / 4)
			return unrecognized(e);
		r->addresses.n = 0;
		vec_reserve(&r->addresses, nstack);
		for (uint64_t i = 0; i < nstack; i++) {
			/* pprof reads zeros where the file breaks off inside a stack. */
			if (!take_word(in, &address)) {
				in->rest.n = 0;
				address = 0;
			}
			vec_push(&r->addresses, address);
		}
		if (count == 0 && nstack == 1 && r->addresses.at[0] == 0)
			break;
		values[0] = (int64_t)count;
		values[1] = (int64_t)(count * (uint64_t)r->b.head.period);
		legacy_sample(r, adjust, 0, values);
	}
	r->addresses.n = 0;
	return true;
}

/* The address that is the leaf's caller in at least `want` samples, if there is one. `want` is more
 * than half of the samples, so the candidate is found by majority vote and then counted. */
static uint32_t common_caller(const struct builder *b, size_t want)
{
	uint32_t candidate = NONE;
	size_t votes = 0, count = 0;

	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < b->samples.n; i++) {
			const struct sample *s = &b->samples.at[i];
			uint32_t caller = s->nstack > 1 ? b->stacks.at[s->stack + 1] : NONE;

			if (pass == 1) {
				count += caller == candidate;
			} else if (!votes) {
				candidate = caller;
				votes = 1;
			} else {
				votes += caller == candidate ? 1 : (size_t)-1;
			}
		}
	}
	return count >= want ? candidate : NONE;
}

/* A caller that nearly all leaves have is the signal handler's frame. There may be two of them. */
static void drop_signal_frames(struct legacy *r)
{
	struct builder *b = &r->b;

	for (int round = 0; round < 2; round++) {
		uint32_t caller = common_caller(b, b->samples.n - b->samples.n / 32);

		for (size_t i = 0; i < b->samples.n && caller != NONE; i++) {
			struct sample *s = &b->samples.at[i];

			if (s->nstack > 1 && b->stacks.at[s->stack + 1] == caller)
				legacy_drop_caller(r, s);
		}
	}
}

static bool finish_cpp(struct legacy *r, struct str rest, struct err *e)
{
	struct lines in = { .rest = rest };

	drop_signal_frames(r);
	if (!legacy_read_map(r, &in, e))
		return false;
	legacy_drop_repeated_leaves(r);
	return true;
}

bool legacy_read_cpu(struct legacy *r, struct str data, struct err *e)
{
	struct cpu_header h;
	struct words in;
	bool is_java;

	if (!find_format(&in, data, &h))
		return unrecognized(e);
	is_java = h.producer == PRODUCER_JAVA;
	legacy_add_type(r, STR("samples"), STR("count"));
	legacy_add_type(r, STR("cpu"), STR("nanoseconds"));
	legacy_set_period(r, STR("cpu"), STR("nanoseconds"), (int64_t)(h.period_us * 1000));
	if (!read_records(r, &in, is_java ? ADJUST_NONE : ADJUST_CALLERS, e))
		return false;
	return is_java ? java_read_locations(r, in.rest, e) : finish_cpp(r, in.rest, e);
}
