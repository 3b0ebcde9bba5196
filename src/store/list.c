/* list.c - series, with the sample types of their newest profiles.
 *
 * What a profile's types are only its book knows. Series of a service have few heads in common, so
 * each is read once.
 */
#include <stdlib.h>

#include "base/map.h"
#include "base/stop.h"
#include "store/inside.h"
#include "store/tiers.h"

/* A profile may claim any number of sample types, and newer ones others than older ones. */
enum { MAX_TYPES = 64 };

struct known_head {
	int64_t book;
	uint32_t head;
	const struct store_sample_type *types;
	uint32_t n;
};

struct lister {
	struct store *s;
	struct db *db;
	const struct store_query *q;
	struct arena *a;
	vec(struct known_head) heads;
	struct map map;
	uint64_t seed;
	vec(struct store_listed) series;
};

/* ---- heads */

static struct str copy(struct arena *a, struct str s)
{
	return (struct str){ arena_copy(a, s.p, s.n), s.n };
}

static void copy_types(struct lister *l, const struct book *b, struct known_head *to)
{
	uint32_t n = book_ntypes(b, to->head);
	struct store_sample_type *types;

	to->n = n < MAX_TYPES ? n : MAX_TYPES;
	to->types = types = arena_many(l->a, to->n + 1, struct store_sample_type);
	for (uint32_t i = 0; i < to->n; i++)
		types[i] = (struct store_sample_type){
			.type = copy(l->a, book_type_name(b, to->head, i)),
			.unit = copy(l->a, book_type_unit(b, to->head, i)),
			.period_type = copy(l->a, book_period_type(b, to->head)),
			.period_unit = copy(l->a, book_period_unit(b, to->head)),
		};
}

/* Of a book that has been deleted meanwhile there is nothing to tell. */
static bool read_head(struct lister *l, struct known_head *to, struct err *e)
{
	struct shelf_book *b = shelf_take(l->s, to->book, e);

	if (!b)
		return e->kind == ERR_NOTFOUND;
	pthread_rwlock_rdlock(&b->lock);
	copy_types(l, b->book, to);
	pthread_rwlock_unlock(&b->lock);
	shelf_put_back(l->s, b);
	return true;
}

static bool same_head(const void *ctx, uint32_t index)
{
	const struct lister *l = ((const void *const *)ctx)[0];
	const struct known_head *k = ((const void *const *)ctx)[1];

	return l->heads.at[index].book == k->book && l->heads.at[index].head == k->head;
}

/* NULL: failed. */
static const struct known_head *find_head(struct lister *l, int64_t book, uint32_t head,
					  struct err *e)
{
	struct known_head new = { .book = book, .head = head };
	const void *key[2] = { l, &new };
	uint64_t hash = hash_mix(hash_mix(l->seed, (uint64_t)book), head);
	uint32_t i = map_put(&l->map, hash, l->heads.n, same_head, key);

	if (i == l->heads.n) {
		if (!read_head(l, &new, e))
			return NULL;
		vec_push(&l->heads, new);
	}
	return &l->heads.at[i];
}

/* ---- series */

static bool has_type(const struct store_listed *to, const struct store_sample_type *t)
{
	for (size_t i = 0; i < to->ntypes; i++)
		if (str_eq(to->types[i].type, t->type) && str_eq(to->types[i].unit, t->unit))
			return true;
	return false;
}

static void add_types(struct lister *l, struct store_listed *to, const struct known_head *head)
{
	struct store_sample_type *both = NULL;

	if (!to->ntypes) {
		to->types = head->types;
		to->ntypes = head->n;
		return;
	}
	/* Most have nothing new. */
	for (uint32_t i = 0; i < head->n && to->ntypes < MAX_TYPES; i++) {
		if (has_type(to, &head->types[i]))
			continue;
		if (!both) {
			both = arena_many(l->a, to->ntypes + head->n, struct store_sample_type);
			memcpy(both, to->types, to->ntypes * sizeof(*both));
			to->types = both;
		}
		both[to->ntypes++] = head->types[i];
	}
}

/* What rows of book and head say. */
static bool add_rows(struct lister *l, sqlite3_stmt *rows, struct store_listed *to, bool *is_there,
		     struct err *e)
{
	enum db_result r = DB_FAILED;

	while (rows && (r = db_step(l->db, rows, e)) == DB_ROW) {
		int64_t book = db_int(rows, 0);
		const struct known_head *head =
			book ? find_head(l, book, (uint32_t)db_int(rows, 1), e) : NULL;

		if (book && !head) {
			sqlite3_reset(rows);
			return false;
		}
		*is_there = true;
		if (head)
			add_types(l, to, head);
	}
	return r == DB_DONE;
}

static bool add_series(struct lister *l, const struct picked *p, struct err *e)
{
	struct store_listed to = { .service = p->service_name,
				   .type = p->type,
				   .labels = p->labels,
				   .nlabels = p->nlabels };
	bool is_there = false;

	if (!add_rows(l,
		      db_bind(l->db, SQL_NEWEST_HEADS,
			      DB_VALUES(DB_INT(p->series), DB_INT(l->q->from), DB_INT(l->q->to)),
			      e),
		      &to, &is_there, e))
		return false;
	/* Maybe there are but sums. */
	for (int tier = TIER_MINUTE; !is_there && tier < NTIERS; tier++) {
		int64_t from = tier_start((enum tier)tier, l->q->from);

		if (!add_rows(l,
			      db_bind(l->db, SQL_NEWEST_TIER_HEADS,
				      DB_VALUES(DB_INT(p->series), DB_INT(tier), DB_INT(from),
						DB_INT(l->q->to)),
				      e),
			      &to, &is_there, e))
			return false;
	}
	if (is_there)
		vec_push(&l->series, to);
	return true;
}

static int by_service(const void *a, const void *b)
{
	const struct picked *x = a, *y = b;
	int c = str_cmp(x->service_name, y->service_name);

	return c ? c : (x->series > y->series) - (x->series < y->series);
}

bool store_list(struct store *s, const struct store_query *q, struct arena *a,
		struct store_listed **series, size_t *n, struct err *e)
{
	struct store_query all = *q;
	struct lister l = { .s = s, .q = &all, .a = a, .seed = map_seed() };
	struct picked *picked;
	size_t npicked;
	bool ok;

	if (!q->from && !q->to) {
		all.from = INT64_MIN;
		all.to = INT64_MAX;
	}
	picked = catalog_pick(&s->catalog, &all, a, &npicked);
	if (npicked)
		qsort(picked, npicked, sizeof(*picked), by_service);
	l.db = store_reader(s, e);
	ok = l.db;
	for (size_t i = 0; ok && i < npicked; i++)
		ok = stop_asked(q->stop) ? err_set(e, ERR_IO, "nobody waits for it any more")
					 : add_series(&l, &picked[i], e);
	store_reader_back(s, l.db);
	if (ok) {
		*n = l.series.n;
		*series = vec_adopt(a, &l.series);
	}
	vec_release(&l.series);
	vec_release(&l.heads);
	map_release(&l.map);
	return ok;
}
