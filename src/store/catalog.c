#include "store/catalog.h"

#include <stdlib.h>
#include <time.h>

#include "base/buf.h"
#include "base/stop.h"
#include "store/delta.h"
#include "store/tiers.h"

#define MAX_SERIES_ID ((int64_t)1 << 30) /* so that row numbers fit */

/* ---- labels as one text: for each the length of its key, the key, the length of its value, the
 * value */

static void encode_text(struct buf *out, struct str s)
{
	size_t n = s.n;

	for (; n >= 0x80; n >>= 7)
		buf_char(out, (char)(n | 0x80));
	buf_char(out, (char)n);
	buf_str(out, s);
}

void labels_encode(struct buf *out, const struct store_label *labels, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		encode_text(out, labels[i].key);
		encode_text(out, labels[i].value);
	}
}

static bool decode_text(struct str *rest, struct str *s)
{
	size_t n = 0;
	unsigned shift = 0;

	for (;; shift += 7) {
		unsigned char byte;

		if (!rest->n || shift > 28)
			return false;
		byte = (unsigned char)*rest->p;
		*rest = str_from(*rest, 1);
		n |= (size_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			break;
	}
	if (n > rest->n)
		return false;
	*s = (struct str){ rest->p, n };
	*rest = str_from(*rest, n);
	return true;
}

bool labels_decode(struct arena *a, struct str text, struct store_label **labels, size_t *n)
{
	/* Each takes two bytes at least. */
	*labels = arena_many(a, text.n / 2 + 1, struct store_label);
	for (*n = 0; text.n; ++*n) {
		struct store_label *l = &(*labels)[*n];

		if (!decode_text(&text, &l->key) || !decode_text(&text, &l->value))
			return false;
	}
	return true;
}

static struct store_label *sorted_labels(struct arena *a, const struct store_new *new)
{
	struct store_label *sorted = arena_many(a, new->nlabels + 1, struct store_label);

	/* There are few. Those with one key stay in the order in which they came. */
	for (size_t i = 0, k; i < new->nlabels; i++) {
		for (k = i; k && str_cmp(sorted[k - 1].key, new->labels[i].key) > 0; k--)
			sorted[k] = sorted[k - 1];
		sorted[k] = new->labels[i];
	}
	return sorted;
}

/* ---- what there is */

void catalog_init(struct catalog *c, uint32_t max_series, uint32_t max_service_series)
{
	*c = (struct catalog){ .seed = map_seed(),
			       .max_series = max_series,
			       .max_service_series = max_service_series };
	pthread_rwlock_init(&c->lock, NULL);
}

static void free_series(struct series *s)
{
	free(s->labels);
	free((void *)(uintptr_t)s->key.p);
	free(s);
}

static void free_service(struct service *s)
{
	free((void *)(uintptr_t)s->name.p);
	free(s);
}

void catalog_release(struct catalog *c)
{
	for (size_t i = 0; i < c->series.n; i++)
		free_series(c->series.at[i]);
	for (size_t i = 0; i < c->services.n; i++)
		free_service(c->services.at[i]);
	vec_release(&c->series);
	vec_release(&c->services);
	map_release(&c->series_map);
	map_release(&c->service_map);
	pthread_rwlock_destroy(&c->lock);
}

static struct str copy(struct str s)
{
	char *p = xmalloc(s.n + 1);

	if (s.n)
		memcpy(p, s.p, s.n);
	return (struct str){ p, s.n };
}

struct wanted {
	const struct catalog *c;
	struct str service, type, key;
};

static bool same_service(const void *ctx, uint32_t index)
{
	const struct wanted *w = ctx;

	return str_eq(w->c->services.at[index]->name, w->service);
}

static bool same_series(const void *ctx, uint32_t index)
{
	const struct wanted *w = ctx;
	const struct series *s = w->c->series.at[index];

	return str_eq(s->key, w->key) && str_eq(s->type, w->type) &&
	       str_eq(s->service->name, w->service);
}

static uint64_t service_hash(const struct catalog *c, struct str name)
{
	return hash_bytes(c->seed, name.p, name.n);
}

static uint64_t series_hash(const struct catalog *c, struct str service, struct str type,
			    struct str key)
{
	uint64_t h = hash_bytes(c->seed, service.p, service.n);

	return hash_bytes(hash_bytes(h, type.p, type.n), key.p, key.n);
}

static struct service *find_service(const struct catalog *c, const struct wanted *w)
{
	uint32_t i = map_get(&c->service_map, service_hash(c, w->service), same_service, w);

	return i == MAP_NONE ? NULL : c->services.at[i];
}

static struct series *find_series(const struct catalog *c, const struct wanted *w)
{
	uint32_t i = map_get(&c->series_map, series_hash(c, w->service, w->type, w->key),
			     same_series, w);

	return i == MAP_NONE ? NULL : c->series.at[i];
}

static struct service *add_service(struct catalog *c, int64_t id, struct str name)
{
	struct service *s = xcalloc(1, sizeof(*s));

	*s = (struct service){ .id = id, .name = copy(name) };
	map_add(&c->service_map, service_hash(c, name), c->services.n);
	vec_push(&c->services, s);
	if (id > c->last_service)
		c->last_service = id;
	return s;
}

/* One block has the texts, so that a series is three allocations. */
static void copy_texts(struct series *s, struct str type, struct str key)
{
	struct arena scratch = { 0 };
	struct store_label *labels;
	char *block = xmalloc(key.n + type.n + 1);

	if (key.n)
		memcpy(block, key.p, key.n);
	if (type.n)
		memcpy(block + key.n, type.p, type.n);
	s->key = (struct str){ block, key.n };
	s->type = (struct str){ block + key.n, type.n };
	labels_decode(&scratch, s->key, &labels, &s->nlabels);
	s->labels = xcalloc(s->nlabels + 1, sizeof(*labels));
	memcpy(s->labels, labels, s->nlabels * sizeof(*labels));
	arena_release(&scratch);
}

static struct series *add_series(struct catalog *c, int64_t id, struct service *service,
				 struct str type, struct str key)
{
	struct series *s = xcalloc(1, sizeof(*s));

	s->id = id;
	s->service = service;
	copy_texts(s, type, key);
	map_add(&c->series_map, series_hash(c, service->name, type, key), c->series.n);
	vec_push(&c->series, s);
	service->nseries++;
	if (id > c->last_series)
		c->last_series = id;
	return s;
}

static bool load_services(struct catalog *c, struct db *db, struct err *e)
{
	sqlite3_stmt *rows = db_bind(db, SQL_ALL_SERVICES, NULL, 0, e);
	enum db_result r;

	if (!rows)
		return false;
	while ((r = db_step(db, rows, e)) == DB_ROW)
		add_service(c, db_int(rows, 0), db_blob(rows, 1))->is_saved = true;
	return r == DB_DONE;
}

static bool load_one_series(struct catalog *c, sqlite3_stmt *row, struct err *e)
{
	int64_t id = db_int(row, 0);
	struct service *service = catalog_service(c, db_int(row, 1));
	struct str labels = db_blob(row, 3);
	struct arena scratch = { 0 };
	struct store_label *decoded;
	struct series *s;
	size_t n;
	bool ok = labels_decode(&scratch, labels, &decoded, &n);

	arena_release(&scratch);
	if (!service || !ok || id <= 0 || id >= MAX_SERIES_ID)
		return err_set(e, ERR_FORMAT,
			       "series %lld is damaged; `kiln store check` tells more",
			       (long long)id);
	s = add_series(c, id, service, db_blob(row, 2), labels);
	s->is_saved = true;
	s->tiers_until = db_int(row, 4);
	s->kept_until = INT64_MAX;
	return true;
}

bool catalog_load(struct catalog *c, struct db *db, struct err *e)
{
	sqlite3_stmt *rows;
	enum db_result r = DB_FAILED;

	if (!load_services(c, db, e) || !(rows = db_bind(db, SQL_ALL_SERIES, NULL, 0, e)))
		return false;
	while ((r = db_step(db, rows, e)) == DB_ROW)
		if (!load_one_series(c, rows, e)) {
			sqlite3_reset(rows);
			return false;
		}
	return r == DB_DONE;
}

/* Both tables are in order of id: new ones come last. */
#define DEFINE_FIND(kind, table)                                                                 \
	struct kind *catalog_##kind(const struct catalog *c, int64_t id)                         \
	{                                                                                        \
		size_t low = 0, high = c->table.n;                                               \
                                                                                                 \
		while (low < high) {                                                             \
			size_t middle = low + (high - low) / 2;                                  \
                                                                                                 \
			if (c->table.at[middle]->id < id)                                        \
				low = middle + 1;                                                \
			else                                                                     \
				high = middle;                                                   \
		}                                                                                \
		return low < c->table.n && c->table.at[low]->id == id ? c->table.at[low] : NULL; \
	}

DEFINE_FIND(service, services)
DEFINE_FIND(series, series)

void counts_add(struct counts *to, const struct counts *more)
{
	if (!more->nprofiles)
		return;
	if (!to->nprofiles || more->first < to->first)
		to->first = more->first;
	if (!to->nprofiles || more->last > to->last)
		to->last = more->last;
	to->nprofiles += more->nprofiles;
	to->nsamples += more->nsamples;
	to->bytes += more->bytes;
}

/* ---- forgetting */

static void forget_series(struct catalog *c, const int64_t *ids, size_t n)
{
	size_t left = 0, next = 0;

	map_release(&c->series_map);
	c->series_map = (struct map){ 0 };
	for (size_t i = 0; i < c->series.n; i++) {
		struct series *s = c->series.at[i];

		if (next < n && s->id == ids[next]) {
			next++;
			s->service->nseries--;
			free_series(s);
			continue;
		}
		map_add(&c->series_map, series_hash(c, s->service->name, s->type, s->key), left);
		c->series.at[left++] = s;
	}
	c->series.n = left;
}

static void forget_services(struct catalog *c, const int64_t *ids, size_t n)
{
	size_t left = 0, next = 0;

	map_release(&c->service_map);
	c->service_map = (struct map){ 0 };
	for (size_t i = 0; i < c->services.n; i++) {
		struct service *s = c->services.at[i];

		if (next < n && s->id == ids[next]) {
			next++;
			free_service(s);
			continue;
		}
		map_add(&c->service_map, service_hash(c, s->name), left);
		c->services.at[left++] = s;
	}
	c->services.n = left;
}

void catalog_forget(struct catalog *c, const int64_t *series, size_t nseries,
		    const int64_t *services, size_t nservices)
{
	if (nseries)
		forget_series(c, series, nseries);
	if (nservices)
		forget_services(c, services, nservices);
}

/* ---- entering */

static struct series *new_series(struct catalog *c, const struct wanted *w, struct err *e)
{
	struct service *service = find_service(c, w);

	if ((c->max_series && c->series.n >= c->max_series) ||
	    c->last_series + 1 >= MAX_SERIES_ID) {
		err_set(e, ERR_LIMIT,
			"max-series: there are %zu series (services with types and labels) already",
			c->series.n);
		return NULL;
	}
	if (c->max_service_series && service && service->nseries >= c->max_service_series) {
		err_set(e, ERR_LIMIT,
			"max-service-series: service \"%.*s\" has %u series (types with labels) "
			"already",
			STR_ARG(w->service), service->nseries);
		return NULL;
	}
	if (!service)
		service = add_service(c, c->last_service + 1, w->service);
	return add_series(c, c->last_series + 1, service, w->type, w->key);
}

static struct series *enter(struct catalog *c, const struct wanted *w, struct err *e)
{
	struct series *s;

	pthread_rwlock_rdlock(&c->lock);
	s = find_series(c, w);
	if (s)
		atomic_fetch_add(&s->nwaiting, 1);
	pthread_rwlock_unlock(&c->lock);
	if (s)
		return s;
	pthread_rwlock_wrlock(&c->lock);
	s = find_series(c, w);
	if (!s)
		s = new_series(c, w, e);
	if (s)
		atomic_fetch_add(&s->nwaiting, 1);
	pthread_rwlock_unlock(&c->lock);
	return s;
}

struct series *catalog_enter(struct catalog *c, const struct store_new *new, struct arena *a,
			     struct err *e)
{
	struct buf key = { 0 };
	struct series *s;

	labels_encode(&key, sorted_labels(a, new), new->nlabels);
	s = enter(c, &(struct wanted){ c, new->service, new->type, buf_view(&key) }, e);
	buf_release(&key);
	return s;
}

void catalog_leave(struct series *s)
{
	atomic_fetch_sub(&s->nwaiting, 1);
}

/* ---- picking */

struct str store_query_name(struct str key)
{
	if (str_eq(key, STR("service")))
		return STR("exported_service");
	return str_eq(key, STR("type")) ? STR("exported_type") : key;
}

static bool value_matches(const struct store_matcher *m, struct str value)
{
	struct regex_span all;

	if (m->op == STORE_EQUAL || m->op == STORE_NOT_EQUAL)
		return str_eq(value, m->value);
	return regex_find(m->regex, value, &all, 1) && all.start == 0 && all.end == value.n;
}

/* Has the label any value that the matcher names? A label may be there several times. */
static bool label_matches(const struct store_matcher *m, const struct series *s)
{
	bool is_there = false;

	if (str_eq(m->name, STR("service")))
		return value_matches(m, s->service->name);
	if (str_eq(m->name, STR("type")))
		return value_matches(m, s->type);
	for (size_t i = 0; i < s->nlabels; i++)
		if (str_eq(store_query_name(s->labels[i].key), m->name)) {
			if (value_matches(m, s->labels[i].value))
				return true;
			is_there = true;
		}
	return !is_there && value_matches(m, STR(""));
}

static bool series_matches(const struct series *s, const struct store_query *q)
{
	if (!s->counts.nprofiles || s->counts.last < q->from || s->counts.first > q->to)
		return false;
	for (size_t i = 0; i < q->nmatchers; i++) {
		const struct store_matcher *m = &q->matchers[i];
		bool is_not = m->op == STORE_NOT_EQUAL || m->op == STORE_NOT_LIKE;

		if (label_matches(m, s) == is_not)
			return false;
	}
	return true;
}

static struct str copy_to(struct arena *a, struct str s)
{
	return (struct str){ arena_copy(a, s.p, s.n), s.n };
}

static void copy_series(struct arena *a, const struct series *s, struct picked *to)
{
	struct str key = copy_to(a, s->key);

	*to = (struct picked){
		.series = s->id,
		.service = s->service->id,
		.service_name = copy_to(a, s->service->name),
		.type = copy_to(a, s->type),
		.tiers_until = s->tiers_until,
		.counts = s->counts,
		.changes = s->changes,
		.hours_until = s->hours_until,
		.days_until = s->days_until,
	};
	labels_decode(a, key, &to->labels, &to->nlabels);
}

void catalog_note_put(struct series *s, int64_t time, bool may_be_base)
{
	struct timespec now;

	/* A minute early, or clocks would have to agree. */
	clock_gettime(CLOCK_REALTIME, &now);
	if (time / 1000000000 < now.tv_sec - CATALOG_SETTLED / 1000000000 + 60 ||
	    (may_be_base && s->counts.nprofiles && time < s->counts.last))
		changes_add(&s->changes, time);
}

void catalog_note_change(struct series *s, int64_t oldest)
{
	changes_add(&s->changes, oldest);
}

/* What goes as it is old, which happens every day, must not make all that is left doubtful. */
void catalog_note_deleted(struct series *s, int64_t from, int64_t to)
{
	if (from <= s->counts.first && to < INT64_MAX - DELTA_MAX_GAP)
		changes_add_old(&s->changes, to + DELTA_MAX_GAP);
	else
		changes_add(&s->changes, from);
}

void catalog_note_thinned(struct series *s, int tier, int64_t until)
{
	if (tier >= TIER_HOUR && until > s->hours_until)
		s->hours_until = until;
	if (tier >= TIER_DAY && until > s->days_until)
		s->days_until = until;
}

bool catalog_copy(struct catalog *c, int64_t series, struct arena *a, struct picked *to)
{
	struct series *s;

	pthread_rwlock_rdlock(&c->lock);
	s = catalog_series(c, series);
	if (s)
		copy_series(a, s, to);
	pthread_rwlock_unlock(&c->lock);
	return s;
}

struct picked *catalog_pick(struct catalog *c, const struct store_query *q, struct arena *a,
			    size_t *n)
{
	vec(struct picked) found = { 0 };

	pthread_rwlock_rdlock(&c->lock);
	for (size_t i = 0; i < c->series.n && !stop_asked_at(q->stop, i); i++)
		if (series_matches(c->series.at[i], q)) {
			struct picked p;

			copy_series(a, c->series.at[i], &p);
			vec_push(&found, p);
		}
	pthread_rwlock_unlock(&c->lock);
	*n = found.n;
	return vec_adopt(a, &found);
}

struct str picked_value(const struct picked *p, struct str name)
{
	if (str_eq(name, STR("service")))
		return p->service_name;
	if (str_eq(name, STR("type")))
		return p->type;
	for (size_t i = 0; i < p->nlabels; i++)
		if (str_eq(store_query_name(p->labels[i].key), name))
			return p->labels[i].value;
	return STR("");
}
