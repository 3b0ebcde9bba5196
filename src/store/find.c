/* find.c - which profiles there are. */
#include <stdlib.h>

#include "base/stop.h"
#include "store/find.h"

/* Ties go by id, which is the order of arrival. */
static int by_time(const void *a, const void *b)
{
	const struct found *x = a, *y = b;

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return memcmp(x->id.at, y->id.at, sizeof(x->id.at));
}

/* Keeps the newest. */
static void cut(struct search *f)
{
	size_t limit = f->q->limit < f->found.n ? (size_t)f->q->limit : f->found.n;

	if (f->found.n)
		qsort(f->found.at, f->found.n, sizeof(*f->found.at), by_time);
	if (!f->q->limit || limit == f->found.n)
		return;
	memmove(f->found.at, f->found.at + f->found.n - limit, limit * sizeof(*f->found.at));
	f->found.n = limit;
}

static bool add(struct search *f, uint32_t picked, sqlite3_stmt *row, struct err *e)
{
	struct found *new;
	struct str id = db_blob(row, 1);

	if (id.n != STORE_ID_BYTES)
		return err_set(e, ERR_FORMAT, "%s: an id has %zu bytes", f->s->path, id.n);
	if (f->found.n >= f->max_found && f->q->limit)
		cut(f);
	if (f->found.n >= f->max_found)
		return err_set(e, ERR_LIMIT,
			       "max-memory: more than %zu profiles; ask for a shorter time or with "
			       "a limit",
			       f->max_found);
	vec_reserve(&f->found, 1);
	new = &f->found.at[f->found.n++];
	*new = (struct found){ .time = db_int(row, 0),
			       .row = db_int(row, 4),
			       .picked = picked,
			       .nsamples = (uint64_t)db_int(row, 2),
			       .bytes = (uint64_t)db_int(row, 3) };
	memcpy(new->id.at, id.p, id.n);
	return true;
}

static bool search_series(struct search *f, uint32_t i, struct err *e)
{
	int64_t limit = f->q->limit && f->q->limit < INT64_MAX ? (int64_t)f->q->limit : -1;
	sqlite3_stmt *rows = db_bind(f->db, SQL_RANGE,
				     DB_VALUES(DB_INT(f->picked[i].series), DB_INT(f->q->from),
					       DB_INT(f->q->to), DB_INT(limit)),
				     e);
	enum db_result r;

	if (!rows)
		return false;
	while ((r = db_step(f->db, rows, e)) == DB_ROW)
		if (!add(f, i, rows, e)) {
			sqlite3_reset(rows);
			return false;
		}
	return r == DB_DONE;
}

bool search_run(struct search *f, struct err *e)
{
	size_t each = sizeof(struct found) + sizeof(struct store_meta);

	if (!f->max_found)
		f->max_found = f->s->params.max_memory / 4 / each + 1;
	for (uint32_t i = 0; i < f->npicked; i++)
		if (stop_asked(f->q->stop) ? !err_set(e, ERR_IO, "nobody waits for it any more")
					   : !search_series(f, i, e))
			return false;
	cut(f);
	return true;
}

static struct store_meta *make_metas(const struct search *f, struct arena *a)
{
	struct store_meta *metas = arena_many_raw(a, f->found.n + 1, struct store_meta);

	for (size_t i = 0; i < f->found.n; i++) {
		const struct found *x = &f->found.at[i];
		const struct picked *p = &f->picked[x->picked];

		metas[i] = (struct store_meta){ .id = x->id,
						.service = p->service_name,
						.type = p->type,
						.labels = p->labels,
						.nlabels = p->nlabels,
						.created = x->time,
						.nsamples = x->nsamples,
						.bytes = x->bytes };
	}
	return metas;
}

bool store_find(struct store *s, const struct store_query *q, struct arena *a,
		struct store_meta **metas, size_t *n, struct err *e)
{
	struct search f = { .s = s, .q = q };
	struct err ignored;
	bool ok;

	f.picked = catalog_pick(&s->catalog, q, a, &f.npicked);
	f.db = store_reader(s, e);
	ok = f.db && db_do(f.db, SQL_BEGIN_READ, e) && search_run(&f, e);
	if (f.db)
		db_do(f.db, SQL_COMMIT, &ignored);
	store_reader_back(s, f.db);
	if (ok) {
		*metas = make_metas(&f, a);
		*n = f.found.n;
	}
	vec_release(&f.found);
	return ok;
}
