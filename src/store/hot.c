#include "store/hot.h"

#include <stdlib.h>

#include "base/int.h"
#include "store/column.h"

enum {
	SHARE = 3, /* of the memory */
};

struct hot_entry {
	struct hot_key key; /* without its changes: */
	_Atomic uint64_t nchanges;
	struct hot_sum sum; /* without its weights */
	_Atomic uint64_t used;
	bool is_taken;
	uint32_t n;
	size_t bytes;
	char data[]; /* numbers: what all values are multiples of; function - the one before, flat,
			cum - flat */
};

void hot_init(struct hot *h, uint64_t max_memory)
{
	*h = (struct hot){ .max_bytes = max_memory / SHARE, .seed = map_seed() };
	pthread_rwlock_init(&h->lock, NULL);
	strings_init(&h->strings);
}

static void drop_entries(struct hot *h)
{
	for (size_t i = 0; i < h->entries.n; i++)
		free(h->entries.at[i]);
	vec_release(&h->entries);
	map_release(&h->entry_map);
	h->entry_map = (struct map){ 0 };
	h->bytes = 0;
}

static void drop_names(struct hot *h)
{
	vec_release(&h->functions);
	map_release(&h->function_map);
	h->function_map = (struct map){ 0 };
	strings_release(&h->strings);
	for (unsigned i = 0; i < HOT_NGROUPS; i++) {
		vec_release(&h->groups[i].of);
		h->groups[i].group = NULL;
	}
	atomic_fetch_add(&h->names, 1);
}

void hot_release(struct hot *h)
{
	drop_entries(h);
	drop_names(h);
	pthread_rwlock_destroy(&h->lock);
}

static size_t name_bytes(const struct hot *h)
{
	size_t bytes =
		arena_bytes(&h->strings.bytes) + h->strings.cap * sizeof(*h->strings.at) +
		h->functions.cap * sizeof(*h->functions.at) +
		((size_t)h->function_map.mask + h->strings.map.mask) * sizeof(struct map_slot);

	for (unsigned i = 0; i < HOT_NGROUPS; i++)
		bytes += h->groups[i].of.cap * sizeof(*h->groups[i].of.at);
	return bytes;
}

uint64_t hot_bytes(struct hot *h)
{
	uint64_t bytes;

	pthread_rwlock_rdlock(&h->lock);
	bytes = h->bytes + name_bytes(h);
	pthread_rwlock_unlock(&h->lock);
	return bytes;
}

bool hot_is_full(struct hot *h)
{
	bool is_full;

	pthread_rwlock_rdlock(&h->lock);
	is_full = name_bytes(h) > h->max_bytes;
	pthread_rwlock_unlock(&h->lock);
	return is_full;
}

/* Names that nothing uses any more cannot be told from others: when they take too much, all goes.
 */
static void drop_too_much(struct hot *h)
{
	if (h->nactive || name_bytes(h) <= h->max_bytes / 4 * 3)
		return;
	drop_entries(h);
	drop_names(h);
	strings_init(&h->strings);
}

static void begin(struct hot *h, bool is_query)
{
	pthread_rwlock_wrlock(&h->lock);
	drop_too_much(h);
	h->nactive++;
	h->nqueries += is_query;
	pthread_rwlock_unlock(&h->lock);
}

void hot_begin(struct hot *h)
{
	begin(h, true);
}

void hot_begin_adding(struct hot *h)
{
	begin(h, false);
}

void hot_end(struct hot *h)
{
	pthread_rwlock_wrlock(&h->lock);
	h->nactive--;
	drop_too_much(h);
	pthread_rwlock_unlock(&h->lock);
}

/* ---- names */

/* Most are known: nobody waits for others who only look. */
uint32_t hot_string(struct hot *h, struct str s)
{
	uint32_t string;

	if (!s.n)
		return 0;
	pthread_rwlock_rdlock(&h->lock);
	string = strings_find(&h->strings, s);
	pthread_rwlock_unlock(&h->lock);
	if (string)
		return string;
	pthread_rwlock_wrlock(&h->lock);
	string = strings_add(&h->strings, s);
	pthread_rwlock_unlock(&h->lock);
	return string;
}

struct function_key {
	const struct hot *h;
	struct hot_function f;
};

static bool same_function(const void *ctx, uint32_t index)
{
	const struct function_key *k = ctx;
	const struct hot_function *f = &k->h->functions.at[index];

	return f->name == k->f.name && f->file == k->f.file;
}

static uint64_t hash_function(const struct hot *h, const struct hot_function *f)
{
	return hash_mix(h->seed, (uint64_t)f->name << 32 | f->file);
}

static uint32_t find_function(struct hot *h, struct str name, struct str file)
{
	struct function_key key = { h,
				    { .name = strings_find(&h->strings, name),
				      .file = strings_find(&h->strings, file) } };

	if ((name.n && !key.f.name) || (file.n && !key.f.file))
		return MAP_NONE;
	return map_get(&h->function_map, hash_function(h, &key.f), same_function, &key);
}

uint32_t hot_new_function(struct hot *h, struct str name, struct str file, struct str module)
{
	struct function_key key = { .h = h };
	uint32_t i;

	pthread_rwlock_wrlock(&h->lock);
	key.f = (struct hot_function){ strings_add(&h->strings, name),
				       strings_add(&h->strings, file),
				       strings_add(&h->strings, module) };
	i = map_put(&h->function_map, hash_function(h, &key.f), h->functions.n, same_function,
		    &key);
	if (i == h->functions.n)
		vec_push(&h->functions, key.f);
	pthread_rwlock_unlock(&h->lock);
	return i;
}

uint32_t hot_function(struct hot *h, struct str name, struct str file, struct str module)
{
	uint32_t i;

	pthread_rwlock_rdlock(&h->lock);
	i = find_function(h, name, file);
	pthread_rwlock_unlock(&h->lock);
	return i != MAP_NONE ? i : hot_new_function(h, name, file, module);
}

struct str hot_text(struct hot *h, uint32_t string)
{
	struct str s;

	pthread_rwlock_rdlock(&h->lock);
	s = h->strings.at[string];
	pthread_rwlock_unlock(&h->lock);
	return s;
}

struct hot_function hot_function_at(struct hot *h, uint32_t function)
{
	struct hot_function f;

	pthread_rwlock_rdlock(&h->lock);
	f = h->functions.at[function];
	pthread_rwlock_unlock(&h->lock);
	return f;
}

uint32_t hot_nfunctions(struct hot *h)
{
	uint32_t n;

	pthread_rwlock_rdlock(&h->lock);
	n = (uint32_t)h->functions.n;
	pthread_rwlock_unlock(&h->lock);
	return n;
}

/* ---- groups */

static struct hot_groups *find_groups(struct hot *h, const struct hot_groups *like)
{
	for (unsigned i = 0; i < HOT_NGROUPS; i++)
		if (h->groups[i].group == like->group && h->groups[i].ctx == like->ctx)
			return &h->groups[i];
	return NULL;
}

void hot_get_groups(struct hot *h, struct hot_groups *to)
{
	const struct hot_groups *from;

	pthread_rwlock_rdlock(&h->lock);
	from = find_groups(h, to);
	to->of.n = 0;
	if (from && from->of.n) {
		vec_reserve(&to->of, from->of.n);
		memcpy(to->of.at, from->of.at, from->of.n * sizeof(*to->of.at));
		to->of.n = from->of.n;
	}
	pthread_rwlock_unlock(&h->lock);
}

void hot_put_groups(struct hot *h, struct hot_groups *from)
{
	struct hot_groups *to;

	pthread_rwlock_wrlock(&h->lock);
	to = find_groups(h, from);
	if (!to) {
		to = &h->groups[h->next_group++ % HOT_NGROUPS];
		to->group = from->group;
		to->ctx = from->ctx;
		to->of.n = 0;
	}
	while (to->of.n < from->of.n)
		vec_push(&to->of, 0);
	for (size_t i = 0; i < from->of.n; i++)
		if (from->of.at[i])
			to->of.at[i] = from->of.at[i];
	pthread_rwlock_unlock(&h->lock);
}

/* ---- sums */

struct entry_key {
	const struct hot *h;
	const struct hot_key *key;
};

/* Whatever it was before it changed: there is one entry of a window. */
static bool same_entry(const void *ctx, uint32_t index)
{
	const struct entry_key *k = ctx;
	const struct hot_key *x = &k->h->entries.at[index]->key;

	return x->series == k->key->series && x->start == k->key->start &&
	       x->length == k->key->length && x->sample_type == k->key->sample_type &&
	       x->is_open == k->key->is_open;
}

static uint64_t hash_of(const struct hot *h, const struct hot_key *k)
{
	uint64_t which = (uint64_t)k->sample_type << 1 | k->is_open;

	return hash_mix(hash_mix(h->seed, (uint64_t)k->series ^ which << 32),
			(uint64_t)k->start ^ (uint64_t)k->length);
}

/* With the lock. NULL: it is not there, or is not what it was. */
static struct hot_entry *find_entry(struct hot *h, const struct hot_key *key)
{
	struct entry_key k = { h, key };
	uint32_t i = map_get(&h->entry_map, hash_of(h, key), same_entry, &k);
	struct hot_entry *entry;

	if (i == MAP_NONE)
		return NULL;
	entry = h->entries.at[i];
	if (entry->sum.generation != HOT_EVER && entry->sum.generation != key->generation)
		return NULL;
	if (!changes_hold(key->changes, atomic_load(&entry->nchanges), key->start,
			  int_add(key->start, key->length)))
		return NULL;
	/* Who asked before some change, and is slow, must not undo what is known since. */
	if (atomic_load(&entry->nchanges) < key->changes->n)
		atomic_store(&entry->nchanges, key->changes->n);
	return entry;
}

bool hot_has(struct hot *h, const struct hot_key *key)
{
	bool has;

	pthread_rwlock_rdlock(&h->lock);
	has = find_entry(h, key);
	pthread_rwlock_unlock(&h->lock);
	return has;
}

/* False: it was written down, and is damaged; `sum` is as it was. */
static bool unpack(const struct hot *h, const struct hot_entry *entry, struct hot_sum *sum)
{
	struct reader r = reader_of((struct str){ entry->data, entry->bytes });
	struct hot_sum head = entry->sum;
	uint64_t function = 0;
	int64_t unit;
	size_t before = sum->weights.n;

	vec_reserve(&sum->weights, entry->n);
	unit = get_signed(&r);
	for (uint32_t w = 0; w < entry->n; w++) {
		struct hot_weight weight;

		function += get_below(&r, h->functions.n);
		weight.function = (uint32_t)function;
		weight.flat = int_mul(unit, get_signed(&r));
		weight.cum = int_add(weight.flat, int_mul(unit, get_signed(&r)));
		if (r.is_bad || function >= h->functions.n) {
			sum->weights.n = before;
			return false;
		}
		sum->weights.at[sum->weights.n++] = weight;
	}
	memcpy(&head.weights, &sum->weights, sizeof(head.weights));
	*sum = head;
	return true;
}

bool hot_get(struct hot *h, const struct hot_key *key, struct hot_sum *sum)
{
	struct hot_entry *entry;
	bool ok;

	pthread_rwlock_rdlock(&h->lock);
	entry = find_entry(h, key);
	ok = entry && unpack(h, entry, sum);
	if (ok)
		atomic_store_explicit(&entry->used, h->nqueries, memory_order_relaxed);
	pthread_rwlock_unlock(&h->lock);
	return ok;
}

/* What the last two queries did not use. */
static bool is_unused(const struct hot *h, const struct hot_entry *entry, int64_t until)
{
	(void)until;
	return atomic_load(&entry->used) + 1 < h->nqueries;
}

static bool is_open_before(const struct hot *h, const struct hot_entry *entry, int64_t until)
{
	(void)h;
	return entry->key.is_open && int_add(entry->key.start, entry->key.length) < until;
}

/* Some go. */
static void sweep(struct hot *h,
		  bool (*goes)(const struct hot *h, const struct hot_entry *entry, int64_t until),
		  int64_t until)
{
	size_t left = 0;

	for (size_t i = 0; i < h->entries.n; i++) {
		struct hot_entry *entry = h->entries.at[i];

		if (!goes(h, entry, until)) {
			h->entries.at[left++] = entry;
			continue;
		}
		h->bytes -= sizeof(*entry) + entry->bytes;
		free(entry);
	}
	h->entries.n = 0;
	map_release(&h->entry_map);
	h->entry_map = (struct map){ 0 };
	for (size_t i = 0; i < left; i++)
		map_add(&h->entry_map, hash_of(h, &h->entries.at[i]->key), h->entries.n++);
}

void hot_drop_open(struct hot *h, int64_t until)
{
	pthread_rwlock_wrlock(&h->lock);
	sweep(h, is_open_before, until);
	pthread_rwlock_unlock(&h->lock);
}

static bool has_room(struct hot *h, size_t bytes)
{
	size_t names = name_bytes(h), max = h->max_bytes > names ? h->max_bytes - names : 0;

	if (h->bytes + bytes > max && h->swept != h->nqueries) {
		sweep(h, is_unused, 0);
		h->swept = h->nqueries;
	}
	return h->bytes + bytes <= max;
}

/* Samples are taken at some period: so times are few different numbers, which are multiples of it.
 */
static int64_t unit_of(const struct hot_sum *sum)
{
	uint64_t unit = 0;

	for (size_t i = 0; i < sum->weights.n && unit != 1; i++) {
		unit = common_divisor((uint64_t)int_abs(sum->weights.at[i].flat), unit);
		unit = common_divisor((uint64_t)int_abs(sum->weights.at[i].cum), unit);
	}
	return unit && unit <= INT64_MAX ? (int64_t)unit : 1;
}

static void pack(const struct hot_sum *sum, struct buf *data)
{
	uint32_t function = 0;
	int64_t unit = unit_of(sum);

	put_signed(data, unit);
	for (size_t i = 0; i < sum->weights.n; i++) {
		const struct hot_weight *w = &sum->weights.at[i];

		put_number(data, w->function - function);
		put_signed(data, w->flat / unit);
		put_signed(data, int_add(w->cum, int_neg(w->flat)) / unit);
		function = w->function;
	}
}

static struct hot_entry *new_entry(const struct hot_packed *p, bool is_taken)
{
	struct hot_entry *entry = xmalloc(sizeof(*entry) + p->data.n);

	*entry = (struct hot_entry){ .key = p->key,
				     .nchanges = p->nchanges,
				     .sum = p->sum,
				     .is_taken = is_taken,
				     .n = p->n,
				     .bytes = p->data.n };
	entry->key.changes = NULL;
	memset(&entry->sum.weights, 0, sizeof(entry->sum.weights));
	if (p->data.n)
		memcpy(entry->data, p->data.p, p->data.n);
	return entry;
}

/* It is there now, or not. */
static void add_entry(struct hot *h, struct hot_entry *entry)
{
	size_t bytes = sizeof(*entry) + entry->bytes;
	struct entry_key k = { h, &entry->key };

	pthread_rwlock_wrlock(&h->lock);
	atomic_store(&entry->used, h->nqueries);
	if (has_room(h, bytes)) {
		uint32_t i = map_put(&h->entry_map, hash_of(h, &entry->key), h->entries.n,
				     same_entry, &k);

		if (i == h->entries.n) {
			vec_push(&h->entries, entry);
		} else {
			h->bytes -= sizeof(*entry) + h->entries.at[i]->bytes;
			free(h->entries.at[i]);
			h->entries.at[i] = entry;
		}
		h->bytes += bytes;
		entry = NULL;
	}
	pthread_rwlock_unlock(&h->lock);
	free(entry);
}

void hot_put(struct hot *h, const struct hot_key *key, const struct hot_sum *sum)
{
	struct hot_packed p = {
		.key = *key, .nchanges = key->changes->n, .sum = *sum, .n = (uint32_t)sum->weights.n
	};
	struct buf data = { 0 };

	pack(sum, &data);
	p.data = buf_view(&data);
	add_entry(h, new_entry(&p, false));
	if (key->is_open)
		atomic_store(&h->has_new_open, true);
	buf_release(&data);
}

/* ---- for who writes them down */

void hot_put_packed(struct hot *h, const struct hot_packed *p)
{
	add_entry(h, new_entry(p, true));
}

bool hot_has_new_open(struct hot *h)
{
	return atomic_exchange(&h->has_new_open, false);
}

size_t hot_take_new(struct hot *h, bool is_open, struct arena *a, struct hot_packed *to, size_t max,
		    size_t *at)
{
	size_t n = 0;

	pthread_rwlock_wrlock(&h->lock);
	for (; *at < h->entries.n && n < max; ++*at) {
		struct hot_entry *entry = h->entries.at[*at];

		if (entry->is_taken || entry->key.is_open != is_open || entry->key.sample_type ||
		    entry->sum.generation != HOT_EVER)
			continue;
		entry->is_taken = true;
		to[n] = (struct hot_packed){ .key = entry->key,
					     .nchanges = atomic_load(&entry->nchanges),
					     .sum = entry->sum,
					     .n = entry->n,
					     .data = { arena_copy(a, entry->data, entry->bytes),
						       entry->bytes } };
		n++;
	}
	pthread_rwlock_unlock(&h->lock);
	return n;
}
