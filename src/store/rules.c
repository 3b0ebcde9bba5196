#include "store/rules.h"

#include <stdlib.h>

#include "store/inside.h"

static struct store_rule copy_rule(const struct store_rule *rule)
{
	struct store_rule copy = *rule;
	char *p = xmalloc(rule->service.n + 1);

	if (rule->service.n)
		memcpy(p, rule->service.p, rule->service.n);
	copy.service = (struct str){ p, rule->service.n };
	return copy;
}

static void free_rule(struct store_rule *rule)
{
	free((void *)(uintptr_t)rule->service.p);
}

void rules_init(struct rules *r, const struct store_params *params)
{
	*r = (struct rules){ 0 };
	pthread_mutex_init(&r->lock, NULL);
	for (size_t i = 0; i < params->nrules; i++)
		vec_push(&r->fixed, copy_rule(&params->rules[i]));
}

void rules_release(struct rules *r)
{
	for (size_t i = 0; i < r->stored.n; i++)
		free_rule(&r->stored.at[i]);
	for (size_t i = 0; i < r->fixed.n; i++)
		free_rule(&r->fixed.at[i]);
	vec_release(&r->stored);
	vec_release(&r->fixed);
	pthread_mutex_destroy(&r->lock);
}

bool rules_load(struct rules *r, struct db *db, struct err *e)
{
	sqlite3_stmt *rows = db_bind(db, SQL_RULES, NULL, 0, e);
	enum db_result got = rows ? DB_ROW : DB_FAILED;

	while (got == DB_ROW && (got = db_step(db, rows, e)) == DB_ROW) {
		struct store_rule rule = { db_blob(rows, 0), db_int(rows, 1), db_int(rows, 2),
					   db_int(rows, 3),  db_int(rows, 4), true };

		vec_push(&r->stored, copy_rule(&rule));
	}
	return got == DB_DONE;
}

/* ---- which one */

/* '*' is any text. After one that has been passed nothing earlier need be tried again. */
bool store_rule_fits(struct str pattern, struct str name)
{
	size_t p = 0, n = 0, star = SIZE_MAX, from = 0;

	while (n < name.n) {
		if (p < pattern.n && pattern.p[p] == '*') {
			star = p++;
			from = n;
		} else if (p < pattern.n && pattern.p[p] == name.p[n]) {
			p++;
			n++;
		} else if (star != SIZE_MAX) {
			p = star + 1;
			n = ++from;
		} else {
			return false;
		}
	}
	while (p < pattern.n && pattern.p[p] == '*')
		p++;
	return p == pattern.n;
}

/* The name itself goes before patterns. */
static const struct store_rule *find(const struct store_rule *rules, size_t n, struct str service)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(rules[i].service, service))
			return &rules[i];
	for (size_t i = 0; i < n; i++)
		if (store_rule_fits(rules[i].service, service))
			return &rules[i];
	return NULL;
}

static void set_age(int64_t *age, int64_t own)
{
	if (own >= 0)
		*age = own;
}

static void apply(const struct store_rule *rule, struct store_keep *keep)
{
	set_age(&keep->raw_ns, rule->raw_ns);
	set_age(&keep->minute_ns, rule->minute_ns);
	set_age(&keep->hour_ns, rule->hour_ns);
	set_age(&keep->day_ns, rule->day_ns);
}

void rules_apply(struct rules *r, struct str service, struct store_keep *keep)
{
	const struct store_rule *rule;

	pthread_mutex_lock(&r->lock);
	rule = find(r->stored.at, r->stored.n, service);
	if (!rule)
		rule = find(r->fixed.at, r->fixed.n, service);
	if (rule)
		apply(rule, keep);
	pthread_mutex_unlock(&r->lock);
}

/* ---- changes */

struct change {
	struct store_rule rule;
	bool is_drop, is_found;
};

static bool save(struct store *s, struct db *db, void *ctx, struct err *e)
{
	const struct change *c = ctx;
	const struct store_rule *r = &c->rule;

	(void)s;
	if (c->is_drop)
		return db_run(db, SQL_DROP_RULE, DB_VALUES(DB_BLOB(r->service)), e);
	return db_run(db, SQL_SET_RULE,
		      DB_VALUES(DB_BLOB(r->service), DB_INT(r->raw_ns), DB_INT(r->minute_ns),
				DB_INT(r->hour_ns), DB_INT(r->day_ns)),
		      e);
}

static void insert(struct rules *r, size_t at, const struct store_rule *rule)
{
	vec_push(&r->stored, copy_rule(rule));
	for (size_t i = r->stored.n - 1; i > at; i--) {
		struct store_rule moved = r->stored.at[i];

		r->stored.at[i] = r->stored.at[i - 1];
		r->stored.at[i - 1] = moved;
	}
}

/* Was there one of its name? */
static bool replace(struct rules *r, const struct store_rule *rule, bool is_drop)
{
	size_t i = 0;
	bool is_found;

	while (i < r->stored.n && str_cmp(r->stored.at[i].service, rule->service) < 0)
		i++;
	is_found = i < r->stored.n && str_eq(r->stored.at[i].service, rule->service);
	if (is_found) {
		free_rule(&r->stored.at[i]);
		memmove(&r->stored.at[i], &r->stored.at[i + 1],
			(--r->stored.n - i) * sizeof(*r->stored.at));
	}
	if (!is_drop)
		insert(r, i, rule);
	return is_found;
}

void rules_copy(struct rules *to, struct rules *from, const struct store_rule_change *change,
		bool *is_found)
{
	*to = (struct rules){ 0 };
	pthread_mutex_init(&to->lock, NULL);
	pthread_mutex_lock(&from->lock);
	for (size_t i = 0; i < from->stored.n; i++)
		vec_push(&to->stored, copy_rule(&from->stored.at[i]));
	for (size_t i = 0; i < from->fixed.n; i++)
		vec_push(&to->fixed, copy_rule(&from->fixed.at[i]));
	pthread_mutex_unlock(&from->lock);
	*is_found = change->rule && replace(to, change->rule, change->is_drop);
}

/* Memory follows the database. */
static void note(struct store *s, void *ctx, bool is_ok)
{
	struct change *c = ctx;

	if (!is_ok)
		return;
	pthread_mutex_lock(&s->rules.lock);
	c->is_found = replace(&s->rules, &c->rule, c->is_drop);
	pthread_mutex_unlock(&s->rules.lock);
}

static bool change(struct store *s, struct change *c, struct err *e)
{
	struct writer_task task = { .work = save, .after = note, .ctx = c };

	if (!writer_do(s, &task, e))
		return false;
	atomic_store(&s->keeper.is_age_wanted, true);
	keeper_wake(s);
	return true;
}

bool store_set_rule(struct store *s, const struct store_rule *rule, struct err *e)
{
	enum { MAX_RULES = 10000 };
	struct change c = { .rule = *rule };
	bool is_full;

	pthread_mutex_lock(&s->rules.lock);
	is_full = s->rules.stored.n >= MAX_RULES;
	pthread_mutex_unlock(&s->rules.lock);
	if (is_full)
		return err_set(e, ERR_USAGE, "there are %d rules already", MAX_RULES);
	return change(s, &c, e);
}

bool store_drop_rule(struct store *s, struct str service, struct err *e)
{
	struct change c = { .rule = { .service = service }, .is_drop = true };

	return change(s, &c, e) &&
	       (c.is_found ||
		err_set(e, ERR_NOTFOUND, "there is no rule for \"%.*s\"", STR_ARG(service)));
}

static void copy_all(struct arena *a, struct store_rule *to, const struct store_rule *from,
		     size_t n, bool is_stored)
{
	for (size_t i = 0; i < n; i++) {
		to[i] = from[i];
		to[i].service.p = arena_copy(a, from[i].service.p, from[i].service.n);
		to[i].is_stored = is_stored;
	}
}

void store_rules(struct store *s, struct arena *a, struct store_rule **rules, size_t *n)
{
	struct rules *r = &s->rules;

	pthread_mutex_lock(&r->lock);
	*n = r->stored.n + r->fixed.n;
	*rules = arena_many(a, *n + 1, struct store_rule);
	copy_all(a, *rules, r->stored.at, r->stored.n, true);
	copy_all(a, *rules + r->stored.n, r->fixed.at, r->fixed.n, false);
	pthread_mutex_unlock(&r->lock);
}
