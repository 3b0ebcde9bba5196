#include "store/delta.h"

#include "store/meaning.h"

enum {
	MAX_CHAINS = 10000,
	MEMORY_SHARE = 32, /* of max_memory: what waits for the next row */
	SETTLED = 3,	   /* profiles of a process, until those that come are new */
	MAX_OTHERS = 64,   /* that a new one is compared with: there may be thousands */
};

/* Of profiles whose sample types mean the same. */
struct delta_kind {
	struct str type;
	int64_t book;
	uint32_t head, ntypes;
	bool has_duration, has_cumulative;
	uint64_t names; /* hash: values of other types cannot be compared */
	enum meaning of[];
};

/* The rows of one process: the last one, whose factors the next one changes. */
struct delta_chain {
	int64_t process;
	uint32_t nseen;
	bool is_waiting;
	const struct delta_kind *kind;
	struct scan_row last;
	struct buf data, totals;
	vec(double) factors;
};

int64_t process_of(struct str instance, const struct profile *p)
{
	if (instance.n)
		return (int64_t)hash_bytes(1, instance.p, instance.n);
	for (uint32_t i = 0; i < p->nmappings; i++)
		if (str_eq(profile_str(p, p->mappings[i].file), STR("[vdso]")))
			return (int64_t)hash_mix(2, p->mappings[i].start);
	return 0;
}

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

/* ---- chains */

static bool same_process(const void *ctx, uint32_t index)
{
	const struct deltas *d = ((const void *const *)ctx)[0];
	const int64_t *process = ((const void *const *)ctx)[1];

	return d->chains.at[index]->process == *process;
}

/* NULL: there is none, and it is not to be made. */
static struct delta_chain *chain_of(struct deltas *d, int64_t process, bool is_made)
{
	const void *key[2] = { d, &process };
	uint64_t hash = hash_mix(map_seed(), (uint64_t)process);
	uint32_t i = is_made ? map_put(&d->map, hash, d->chains.n, same_process, key)
			     : map_get(&d->map, hash, same_process, key);
	struct delta_chain *chain;

	if (i == MAP_NONE)
		return NULL;
	if (i == d->chains.n) {
		chain = xcalloc(1, sizeof(*chain));
		chain->process = process;
		vec_push(&d->chains, chain);
	}
	return d->chains.at[i];
}

static void keep(struct deltas *d, struct delta_chain *c, const struct delta_kind *kind,
		 const struct scan_row *row)
{
	d->bytes += row->data.n - c->data.n;
	c->is_waiting = true;
	c->nseen++;
	c->kind = kind;
	c->last = *row;
	c->data.n = c->totals.n = 0;
	buf_str(&c->data, row->data);
	buf_str(&c->totals, row->totals);
	c->factors.n = 0;
	vec_reserve(&c->factors, kind->ntypes + 1);
}

static void set_factors(struct delta_chain *c, double cumulative, double other)
{
	for (uint32_t t = 0; t < c->kind->ntypes; t++)
		c->factors.at[t] = c->kind->of[t] == MEANING_CUMULATIVE ? cumulative : other;
}

static bool hand_on(struct deltas *d, struct delta_chain *c, struct err *e)
{
	struct scan_row row = c->last;
	bool is_all_zero = true;

	for (uint32_t t = 0; t < c->kind->ntypes; t++)
		is_all_zero &= c->factors.at[t] == 0;
	if (is_all_zero && !row.nprofiles)
		return true;
	row.data = buf_view(&c->data);
	row.totals = buf_view(&c->totals);
	row.factors = c->factors.at;
	return d->each(d->ctx, &row, e);
}

static bool flush(struct deltas *d, struct delta_chain *c, struct err *e)
{
	bool is_waiting = c->is_waiting;

	c->is_waiting = false;
	return !is_waiting || hand_on(d, c, e);
}

static int64_t step_of(const struct deltas *d, int64_t time)
{
	int64_t step = d->step ? time / d->step : 0;

	return d->step && time < 0 && time % d->step ? step - 1 : step;
}

/* The last row is taken off, at the time of this one. */
static bool take_off(struct deltas *d, struct delta_chain *c, const struct scan_row *row,
		     struct err *e)
{
	if (c->is_waiting && step_of(d, c->last.time) == step_of(d, row->time)) {
		for (uint32_t t = 0; t < c->kind->ntypes; t++)
			c->factors.at[t] -= c->kind->of[t] == MEANING_CUMULATIVE;
		return flush(d, c, e);
	}
	if (!flush(d, c, e))
		return false;
	set_factors(c, -1, 0);
	c->last.time = row->time;
	c->last.nprofiles = 0;
	return hand_on(d, c, e);
}

/* ---- how a row follows another */

static int64_t total_of(struct str totals, uint32_t type)
{
	int64_t total = 0;

	if (type < totals.n / sizeof(total))
		memcpy(&total, totals.p + type * sizeof(total), sizeof(total));
	return total;
}

static bool same_types(const struct delta_kind *x, const struct delta_kind *y)
{
	return x && y && x->names == y->names && x->ntypes == y->ntypes;
}

/* What has risen and fallen since the totals `before`. */
static void compare(const struct delta_kind *kind, struct str before, struct str now,
		    bool *has_risen, bool *has_fallen)
{
	*has_risen = *has_fallen = false;
	for (uint32_t t = 0; t < kind->ntypes; t++) {
		if (kind->of[t] != MEANING_CUMULATIVE)
			continue;
		*has_risen |= total_of(now, t) > total_of(before, t);
		*has_fallen |= total_of(now, t) < total_of(before, t);
	}
}

enum link { LINK_NONE, LINK_RESTART, LINK_NEXT };

static enum link link_to(const struct delta_chain *c, const struct delta_kind *kind,
			 const struct scan_row *row)
{
	bool has_risen, has_fallen;

	if (!same_types(c->kind, kind) || row->time - c->last.time > DELTA_MAX_GAP)
		return LINK_NONE;
	compare(kind, buf_view(&c->totals), row->totals, &has_risen, &has_fallen);
	return has_fallen && !has_risen ? LINK_RESTART : LINK_NEXT;
}

/* Of a process that was not there before: did it begin while others were there? */
struct others {
	const struct delta_kind *kind;
	struct str totals;
	bool is_settled, is_less;
};

static void look_at(struct others *o, uint32_t nseen, const struct delta_kind *kind,
		    struct str totals)
{
	bool has_risen, has_fallen;

	o->is_settled |= nseen >= SETTLED;
	if (!same_types(o->kind, kind))
		return;
	compare(kind, totals, o->totals, &has_risen, &has_fallen);
	o->is_less |= has_fallen && !has_risen;
}

/* ---- what was before */

static struct scan_row row_before(const struct scan_row *like, const struct before_row *b)
{
	return (struct scan_row){ .series = like->series,
				  .time = b->time,
				  .last = b->time,
				  .row = b->row,
				  .book = b->book,
				  .head = b->head,
				  .totals = b->totals,
				  .process = b->process };
}

static bool is_new(struct deltas *d, const struct delta_kind *kind, const struct scan_row *row)
{
	struct others o = { .kind = kind, .totals = row->totals };

	if (!row->process)
		return false;
	for (size_t i = 0; i < d->chains.n && i < MAX_OTHERS; i++)
		look_at(&o, d->chains.at[i]->nseen, d->chains.at[i]->kind,
			buf_view(&d->chains.at[i]->totals));
	for (size_t i = 0; i < d->before.rows.n && i < MAX_OTHERS; i++) {
		const struct before_row *b = &d->before.rows.at[i];
		struct scan_row other = row_before(row, b);

		if (!chain_of(d, b->process, false))
			look_at(&o, b->nseen, kind_of(d, &other), b->totals);
	}
	return o.is_settled && o.is_less;
}

/* The chain begins with what was before, which does not count itself. */
static bool begin_chain(struct deltas *d, const struct before_row *b, const struct scan_row *row,
			struct err *e)
{
	struct scan_row base = row_before(row, b);
	const struct delta_kind *kind = kind_of(d, &base);
	struct delta_chain *c;
	sqlite3_stmt *found = NULL;
	enum db_result r = DB_DONE;

	if (d->has_data) {
		found = db_bind(
			d->db, SQL_BASE_AT,
			DB_VALUES(DB_INT(row->series->series), DB_INT(b->time), DB_INT(b->row)), e);
		r = found ? db_step(d->db, found, e) : DB_FAILED;
		if (r == DB_ROW)
			base.data = db_blob(found, 0);
	}
	if (kind && r != DB_FAILED) {
		c = chain_of(d, b->process, true);
		keep(d, c, kind, &base);
		c->nseen = b->nseen;
		set_factors(c, 0, 0);
	}
	if (r == DB_ROW)
		sqlite3_reset(found);
	return r != DB_FAILED;
}

/* The first row of a process. */
static bool look_back(struct deltas *d, const struct delta_kind *kind, const struct scan_row *row,
		      enum link *link, struct err *e)
{
	const struct before_row *found;

	*link = LINK_NONE;
	if (d->is_extra)
		return true;
	if (!d->chains.n)
		before_start(&d->before, d->db, row->series->series, row->time, row->row);
	if (!before_find(&d->before, row->process, &found, e))
		return false;
	if (found)
		return begin_chain(d, found, row, e);
	if (is_new(d, kind, row))
		*link = LINK_RESTART;
	return true;
}

/* ---- all */

/* What waits takes memory: it is let go, and read again if it is needed. */
static bool make_room(struct deltas *d, struct err *e)
{
	bool is_too_much = d->chains.n > MAX_CHAINS ||
			   (d->chains.n > 1 && d->bytes > d->s->params.max_memory / MEMORY_SHARE);

	return !is_too_much || deltas_end(d, e);
}

bool deltas_add(struct deltas *d, const struct scan_row *row, struct err *e)
{
	const struct delta_kind *kind = row->book ? kind_of(d, row) : NULL;
	struct delta_chain *c;
	enum link link = LINK_NONE;

	if (!kind || !kind->has_cumulative)
		return d->each(d->ctx, row, e);
	if ((d->is_extra && !deltas_end(d, e)) || !make_room(d, e))
		return false;
	if (!chain_of(d, row->process, false) && !look_back(d, kind, row, &link, e))
		return false;
	c = chain_of(d, row->process, true);
	if (c->kind) {
		link = link_to(c, kind, row);
		if (!(link == LINK_NEXT ? take_off(d, c, row, e) : flush(d, c, e)))
			return false;
	}
	keep(d, c, kind, row);
	set_factors(c, link == LINK_NONE ? 0 : 1, 1);
	return true;
}

static void forget_chains(struct deltas *d)
{
	for (size_t i = 0; i < d->chains.n; i++) {
		struct delta_chain *c = d->chains.at[i];

		vec_release(&c->factors);
		buf_release(&c->data);
		buf_release(&c->totals);
		free(c);
	}
	d->chains.n = d->bytes = 0;
	map_release(&d->map);
	d->map = (struct map){ 0 };
}

bool deltas_end(struct deltas *d, struct err *e)
{
	bool ok = true;

	for (size_t i = 0; ok && i < d->chains.n; i++)
		ok = flush(d, d->chains.at[i], e);
	forget_chains(d);
	return ok;
}

void deltas_release(struct deltas *d)
{
	forget_chains(d);
	for (size_t i = 0; i < d->kinds.n; i++)
		free(d->kinds.at[i]);
	vec_release(&d->kinds);
	vec_release(&d->chains);
	before_release(&d->before);
}
