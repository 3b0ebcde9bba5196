#include "store/delta.h"

#include "store/meaning.h"

/* Of profiles whose sample types mean the same. */
struct delta_kind {
	struct str type;
	int64_t book;
	uint32_t head, ntypes;
	bool has_duration, has_cumulative;
	uint64_t names; /* hash: values of other types cannot be compared */
	enum meaning of[];
};

/* ---- kinds */

static struct delta_kind *make_kind(const struct scan_row *row, const struct book *b)
{
	uint32_t n = book_ntypes(b, row->head);
	struct delta_kind *k = xcalloc(1, sizeof(*k) + (n + 1) * sizeof(*k->of));

	*k = (struct delta_kind){ .type = row->series->type,
				  .book = row->book,
				  .head = row->head,
				  .ntypes = n,
				  .has_duration = row->duration != 0,
				  .names = map_seed() };
	for (uint32_t t = 0; t < n; t++) {
		struct str name = book_type_name(b, row->head, t);

		k->names = hash_bytes(k->names, name.p, name.n);
		k->of[t] = meaning_of(row->series->type, name);
		if (k->of[t] == MEANING_CUMULATIVE && k->has_duration)
			k->of[t] = MEANING_COUNTER;
		k->has_cumulative |= k->of[t] == MEANING_CUMULATIVE;
	}
	return k;
}

/* NULL: its book cannot be had. Whoever reads the row finds out why. */
static const struct delta_kind *kind_of(struct deltas *d, const struct scan_row *row)
{
	struct shelf_book *b;
	struct err ignored;

	for (size_t i = d->kinds.n; i > 0; i--) {
		const struct delta_kind *k = d->kinds.at[i - 1];

		if (k->book == row->book && k->head == row->head &&
		    k->has_duration == (row->duration != 0) && str_eq(k->type, row->series->type))
			return k;
	}
	b = shelf_take(d->s, row->book, &ignored);
	if (!b)
		return NULL;
	pthread_rwlock_rdlock(&b->lock);
	vec_push(&d->kinds, make_kind(row, b->book));
	pthread_rwlock_unlock(&b->lock);
	shelf_put_back(d->s, b);
	return d->kinds.at[d->kinds.n - 1];
}

/* ---- rows */

static int64_t total_of(struct str totals, uint32_t type)
{
	int64_t total = 0;

	if (type < totals.n / sizeof(total))
		memcpy(&total, totals.p + type * sizeof(total), sizeof(total));
	return total;
}

enum link { LINK_NONE, LINK_RESTART, LINK_NEXT };

/* How the row follows the last one. */
static enum link link_to(const struct deltas *d, const struct delta_kind *kind,
			 const struct scan_row *row)
{
	bool has_risen = false, has_fallen = false;

	if (!d->has_last || d->kind->names != kind->names || d->kind->ntypes != kind->ntypes ||
	    row->time - d->last.time > DELTA_MAX_GAP)
		return LINK_NONE;
	for (uint32_t t = 0; t < kind->ntypes; t++) {
		int64_t before = total_of(buf_view(&d->totals), t), now = total_of(row->totals, t);

		if (kind->of[t] != MEANING_CUMULATIVE)
			continue;
		has_risen |= now > before;
		has_fallen |= now < before;
	}
	return has_fallen && !has_risen ? LINK_RESTART : LINK_NEXT;
}

static bool hand_on(struct deltas *d, struct err *e)
{
	struct scan_row row = d->last;
	bool is_all_zero = true;

	for (uint32_t t = 0; t < d->kind->ntypes; t++)
		is_all_zero &= d->factors.at[t] == 0;
	if (is_all_zero && !row.nprofiles)
		return true;
	row.data = buf_view(&d->data);
	row.totals = buf_view(&d->totals);
	row.factors = d->factors.at;
	return d->each(d->ctx, &row, e);
}

static bool flush(struct deltas *d, struct err *e)
{
	bool is_waiting = d->is_waiting;

	d->is_waiting = false;
	return !is_waiting || hand_on(d, e);
}

static void keep(struct deltas *d, const struct delta_kind *kind, const struct scan_row *row)
{
	d->has_last = d->is_waiting = true;
	d->kind = kind;
	d->last = *row;
	d->data.n = d->totals.n = 0;
	buf_str(&d->data, row->data);
	buf_str(&d->totals, row->totals);
	d->factors.n = 0;
	vec_reserve(&d->factors, kind->ntypes + 1);
}

static void set_factors(struct deltas *d, double cumulative, double other)
{
	for (uint32_t t = 0; t < d->kind->ntypes; t++)
		d->factors.at[t] = d->kind->of[t] == MEANING_CUMULATIVE ? cumulative : other;
}

static int64_t step_of(const struct deltas *d, int64_t time)
{
	int64_t step = d->step ? time / d->step : 0;

	return d->step && time < 0 && time % d->step ? step - 1 : step;
}

/* The last row is taken off, at the time of this one. */
static bool take_off(struct deltas *d, const struct scan_row *row, struct err *e)
{
	if (d->is_waiting && step_of(d, d->last.time) == step_of(d, row->time)) {
		for (uint32_t t = 0; t < d->kind->ntypes; t++)
			d->factors.at[t] -= d->kind->of[t] == MEANING_CUMULATIVE;
		return flush(d, e);
	}
	if (!flush(d, e))
		return false;
	set_factors(d, -1, 0);
	d->last.time = row->time;
	d->last.nprofiles = 0;
	return hand_on(d, e);
}

bool deltas_wants_base(struct deltas *d, const struct scan_row *row)
{
	const struct delta_kind *kind = row->book ? kind_of(d, row) : NULL;

	return kind && kind->has_cumulative;
}

void deltas_base(struct deltas *d, const struct scan_row *row)
{
	const struct delta_kind *kind = row->book ? kind_of(d, row) : NULL;

	if (!kind)
		return;
	keep(d, kind, row);
	d->last.nprofiles = 0;
	set_factors(d, 0, 0);
}

bool deltas_add(struct deltas *d, const struct scan_row *row, struct err *e)
{
	const struct delta_kind *kind = row->book ? kind_of(d, row) : NULL;
	enum link link;

	if (!kind || !kind->has_cumulative)
		return deltas_end(d, e) && d->each(d->ctx, row, e);
	link = link_to(d, kind, row);
	if (!(link == LINK_NEXT ? take_off(d, row, e) : flush(d, e)))
		return false;
	keep(d, kind, row);
	set_factors(d, link == LINK_NONE ? 0 : 1, 1);
	return true;
}

bool deltas_end(struct deltas *d, struct err *e)
{
	bool ok = flush(d, e);

	d->has_last = false;
	return ok;
}

void deltas_release(struct deltas *d)
{
	for (size_t i = 0; i < d->kinds.n; i++)
		free(d->kinds.at[i]);
	vec_release(&d->kinds);
	vec_release(&d->factors);
	buf_release(&d->data);
	buf_release(&d->totals);
}
