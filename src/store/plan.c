#include "store/plan.h"

#include "base/int.h"

struct window {
	int64_t time;
	bool is_thinned;
};

static void add_piece(struct plan *p, struct piece piece)
{
	struct piece *last = p->pieces.n ? &p->pieces.at[p->pieces.n - 1] : NULL;

	if (last && last->tier == piece.tier && piece.tier != TIER_RAW &&
	    last->to + tier_length(piece.tier) == piece.from)
		last->to = piece.to;
	else
		vec_push(&p->pieces, piece);
}

/* Sums that can be read for a part of the time. */
static bool find_windows(struct plan *p, enum tier tier, int64_t from, int64_t to,
			 struct window **windows, size_t *n, struct err *e)
{
	sqlite3_stmt *rows =
		db_bind(p->db, SQL_TIER_WINDOWS,
			DB_VALUES(DB_INT(p->series), DB_INT(tier), DB_INT(from), DB_INT(to)), e);
	vec(struct window) found = { 0 };
	enum db_result r = rows ? DB_ROW : DB_FAILED;

	while (r == DB_ROW && (r = db_step(p->db, rows, e)) == DB_ROW) {
		struct window w = { db_int(rows, 0), db_int(rows, 1) >= TIER_IS_THINNED };
		bool has_deltas = db_int(rows, 1) & TIER_HAS_DELTAS;

		if (w.is_thinned ||
		    (int_add(w.time, tier_length(tier) - 1) <= to && (p->as_type || !has_deltas)))
			vec_push(&found, w);
	}
	*windows = found.at;
	*n = found.n;
	return r == DB_DONE;
}

static bool is_tier_allowed(const struct plan *p, enum tier tier)
{
	return tier < p->below && (!p->step || p->step % tier_length(tier) == 0);
}

static bool make(struct plan *p, enum tier tier, int64_t from, int64_t to, bool is_extra,
		 struct err *e)
{
	struct window *windows = NULL;
	size_t n = 0;
	bool ok = true;

	if (from > to)
		return true;
	if (tier == TIER_RAW) {
		add_piece(p, (struct piece){ TIER_RAW, from, to, is_extra });
		return true;
	}
	if (tier < p->below)
		ok = find_windows(p, tier, from, to, &windows, &n, e);
	for (size_t i = 0; ok && i < n; i++) {
		struct window w = windows[i];
		int64_t end = int_add(w.time, tier_length(tier));

		/* Steps that are shorter than what is left of old data get it where it begins. */
		if (!w.is_thinned && !is_tier_allowed(p, tier))
			continue;
		ok = make(p, tier - 1, from, int_add(w.time, -1), is_extra, e);
		add_piece(p, (struct piece){ tier, w.time, w.time, false });
		if (ok && w.is_thinned)
			ok = make(p, tier - 1, w.time, end - 1 < to ? end - 1 : to, true, e);
		from = end;
	}
	free(windows);
	return ok && make(p, tier - 1, from, to, is_extra, e);
}

bool plan_make(struct plan *p, int64_t from, int64_t to, struct err *e)
{
	return make(p, TIER_DAY, from, to, false, e);
}
