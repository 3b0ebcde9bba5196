/* names.c - services, types, labels and their values, with how much there is of each. */
#include <stdlib.h>

#include "base/stop.h"
#include "store/inside.h"

struct listing {
	struct db *db;
	const struct store_query *q;
	vec(struct store_name) names;
};

static bool count_series(struct listing *l, const struct picked *p, struct store_name *count,
			 struct err *e)
{
	const struct counts *all = &p->counts;
	sqlite3_stmt *row;
	bool ok;

	*count = (struct store_name){ { 0 }, 1, all->nprofiles, all->first, all->last };
	if (all->first >= l->q->from && all->last <= l->q->to)
		return true;
	row = db_bind(l->db, SQL_COUNT_KEPT,
		      DB_VALUES(DB_INT(p->series), DB_INT(l->q->from), DB_INT(l->q->to)), e);
	ok = row && db_step(l->db, row, e) == DB_ROW;
	if (ok) {
		count->nprofiles = (uint64_t)db_int(row, 0);
		count->first = db_int(row, 1);
		count->last = db_int(row, 2);
		sqlite3_reset(row);
	}
	return ok;
}

static void add(struct listing *l, struct str name, const struct store_name *count)
{
	struct store_name n = *count;

	n.name = name;
	vec_push(&l->names, n);
}

static bool add_series(struct listing *l, const struct picked *p, struct str of, struct err *e)
{
	struct store_name count;

	if (!count_series(l, p, &count, e))
		return false;
	if (!count.nprofiles)
		return true;
	if (str_eq(of, STR("service")) || str_eq(of, STR("type"))) {
		add(l, picked_value(p, of), &count);
		return true;
	}
	for (size_t i = 0; i < p->nlabels; i++) {
		bool is_again = i && str_eq(p->labels[i].key, p->labels[i - 1].key);

		if (!of.n && !is_again)
			add(l, store_query_name(p->labels[i].key), &count);
		else if (of.n && str_eq(store_query_name(p->labels[i].key), of))
			add(l, p->labels[i].value, &count);
	}
	return true;
}

static int by_name(const void *a, const void *b)
{
	const struct store_name *x = a, *y = b;

	return str_cmp(x->name, y->name);
}

/* Sorts, and makes one of those with the same name. */
static void join(struct listing *l)
{
	size_t n = 0;

	if (l->names.n)
		qsort(l->names.at, l->names.n, sizeof(*l->names.at), by_name);
	for (size_t i = 0; i < l->names.n; i++) {
		const struct store_name *more = &l->names.at[i];
		struct store_name *last = n ? &l->names.at[n - 1] : NULL;

		if (!last || !str_eq(last->name, more->name)) {
			l->names.at[n++] = *more;
			continue;
		}
		last->nseries += more->nseries;
		last->nprofiles += more->nprofiles;
		if (more->first < last->first)
			last->first = more->first;
		if (more->last > last->last)
			last->last = more->last;
	}
	l->names.n = n;
}

bool store_names(struct store *s, const struct store_query *q, struct str of, struct arena *a,
		 struct store_name **names, size_t *n, struct err *e)
{
	struct store_query all = *q;
	struct listing l = { .q = &all };
	struct picked *picked;
	size_t npicked;
	bool ok;

	if (!q->from && !q->to) {
		all.from = INT64_MIN;
		all.to = INT64_MAX;
	}
	picked = catalog_pick(&s->catalog, &all, a, &npicked);
	l.db = store_reader(s, e);
	ok = l.db;
	for (size_t i = 0; ok && i < npicked; i++)
		ok = stop_asked(q->stop) ? err_set(e, ERR_IO, "nobody waits for it any more")
					 : add_series(&l, &picked[i], of, e);
	store_reader_back(s, l.db);
	if (ok) {
		join(&l);
		*n = l.names.n;
		*names = vec_adopt(a, &l.names);
	}
	vec_release(&l.names);
	return ok;
}
