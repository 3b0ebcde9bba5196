#include "store/sums.h"

enum {
	MERGE_SHARE = 4,
	ONE_SHARE = 8
}; /* of max_memory: all merges together, one before it must
      hand over */

void sums_init(struct sums *m, struct store *s,
	       bool (*take)(void *ctx, const struct sum *sum, struct err *e), void *ctx)
{
	*m = (struct sums){ .s = s, .take = take, .ctx = ctx, .seed = map_seed() };
}

static void empty(struct sums *m)
{
	for (size_t i = 0; i < m->at.n; i++)
		book_sum_free(m->at.at[i].sum);
	for (size_t i = 0; i < m->held.n; i++)
		shelf_put_back(m->s, m->held.at[i]);
	m->at.n = m->held.n = 0;
	map_release(&m->map);
	m->map = (struct map){ 0 };
	atomic_fetch_sub(&m->s->merge_bytes, m->bytes);
	m->bytes = 0;
}

void sums_release(struct sums *m)
{
	empty(m);
	vec_release(&m->at);
	vec_release(&m->held);
	vec_release(&m->ones);
}

bool sums_flush(struct sums *m, struct err *e)
{
	bool ok = true;

	for (size_t i = 0; ok && i < m->at.n; i++) {
		struct sum *sum = &m->at.at[i];

		pthread_rwlock_rdlock(&sum->book->lock);
		ok = m->take(m->ctx, sum, e);
		pthread_rwlock_unlock(&sum->book->lock);
	}
	empty(m);
	return ok;
}

/* The book, held until the sums are handed over. */
static struct shelf_book *hold(struct sums *m, int64_t id, struct err *e)
{
	struct shelf_book *b;

	/* The one that was used last is last. */
	for (size_t i = m->held.n; i > 0; i--)
		if (m->held.at[i - 1]->id == id)
			return m->held.at[i - 1];
	b = shelf_take(m->s, id, e);
	if (b)
		vec_push(&m->held, b);
	return b;
}

struct wanted {
	const struct sums *m;
	int64_t book;
	uint32_t head;
	uint64_t group;
};

static bool same_sum(const void *ctx, uint32_t index)
{
	const struct wanted *w = ctx;
	const struct sum *sum = &w->m->at.at[index];

	return sum->group == w->group && sum->head == w->head && sum->book->id == w->book;
}

static struct sum *find_sum(struct sums *m, struct shelf_book *b, const struct book_head *head,
			    uint64_t group)
{
	struct wanted w = { m, b->id, head->head, group };
	uint64_t hash = hash_mix(hash_mix(m->seed, (uint64_t)b->id << 32 | head->head), group);
	uint32_t i = map_put(&m->map, hash, m->at.n, same_sum, &w);

	if (i == m->at.n)
		vec_push(&m->at, (struct sum){ .book = b,
					       .head = head->head,
					       .ntypes = head->ntypes,
					       .group = group,
					       .sum = book_sum_new(b->book) });
	return &m->at.at[i];
}

/* Does the row count at all? In a run of differences most do not. */
static bool counts(const struct scan_row *row, uint32_t ntypes)
{
	if (!row->factors)
		return true;
	for (uint32_t t = 0; t < ntypes; t++)
		if (row->factors[t] != 0)
			return true;
	return false;
}

static bool add_locked(struct sums *m, struct shelf_book *b, const struct scan_row *row,
		       uint64_t group, struct err *e)
{
	struct book_head head;
	struct sum *sum;
	size_t bytes;

	if (!book_read_head(b->book, row->data, &head, e))
		return false;
	if (head.head != row->head)
		return err_set(e, ERR_FORMAT, "its sample types are not those that are noted");
	while (m->ones.n < head.ntypes)
		vec_push(&m->ones, 1.0);
	sum = find_sum(m, b, &head, group);
	sum->service = row->series->service;
	sum->service_name = row->series->service_name;
	sum->nprofiles += row->nprofiles;
	/* The first one tells the types. */
	if (sum->bytes && !counts(row, head.ntypes))
		return true;
	if (!book_sum_add(sum->sum, row->data, row->factors ? row->factors : m->ones.at, e))
		return false;
	bytes = book_sum_bytes(sum->sum);
	m->bytes += bytes - sum->bytes;
	atomic_fetch_add(&m->s->merge_bytes, bytes - sum->bytes);
	sum->bytes = bytes;
	return true;
}

static bool check_memory(struct sums *m, struct err *e)
{
	uint64_t max = m->s->params.max_memory, all = atomic_load(&m->s->merge_bytes);

	if (m->bytes > max / ONE_SHARE && !sums_flush(m, e))
		return false;
	if (all <= max / MERGE_SHARE || m->bytes < all / 2)
		return true;
	return err_set(
		e, ERR_LIMIT,
		"max-memory: %llu MB are in use by queries now; ask again later, or for less",
		(unsigned long long)(all >> 20));
}

bool sums_add(struct sums *m, const struct scan_row *row, uint64_t group, bool *is_added,
	      struct err *e)
{
	struct shelf_book *b = hold(m, row->book, e);
	bool ok;

	*is_added = b;
	if (!b)
		return e->kind == ERR_NOTFOUND;
	pthread_rwlock_rdlock(&b->lock);
	ok = add_locked(m, b, row, group, e);
	pthread_rwlock_unlock(&b->lock);
	return ok ? check_memory(m, e)
		  : err_wrap(e, "a profile of service \"%.*s\"",
			     STR_ARG(row->series->service_name));
}
