#include "store/hot.h"

#include <stdlib.h>

#include "base/int.h"
#include "store/column.h"

enum {
	SHARE = 3, /* of the memory */
};

struct hot_entry {
	struct hot_key key;
	struct hot_sum sum; /* without its weights */
	_Atomic uint64_t used;
	uint32_t n;
	size_t bytes;
	char data[]; /* numbers: function - the one before, flat, cum - flat */
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
}

void hot_release(struct hot *h)
{
	drop_entries(h);
	drop_names(h);
	pthread_rwlock_destroy(&h->lock);
}

static size_t name_bytes(const struct hot *h)
{
	return arena_bytes(&h->strings.bytes) + h->strings.cap * sizeof(*h->strings.at) +
	       h->functions.cap * sizeof(*h->functions.at) +
	       ((size_t)h->function_map.mask + h->strings.map.mask) * sizeof(struct map_slot);
}

uint64_t hot_bytes(struct hot *h)
{
	uint64_t bytes;

	pthread_rwlock_rdlock(&h->lock);
	bytes = h->bytes + name_bytes(h);
	pthread_rwlock_unlock(&h->lock);
	return bytes;
}

/* Names that nothing uses any more cannot be told from others: when they take too much, all goes.
 */
void hot_begin(struct hot *h)
{
	pthread_rwlock_wrlock(&h->lock);
	if (!h->nactive && name_bytes(h) > h->max_bytes / 4 * 3) {
		drop_entries(h);
		drop_names(h);
		strings_init(&h->strings);
	}
	h->nactive++;
	h->nqueries++;
	pthread_rwlock_unlock(&h->lock);
}

void hot_end(struct hot *h)
{
	pthread_rwlock_wrlock(&h->lock);
	h->nactive--;
	pthread_rwlock_unlock(&h->lock);
}

/* ---- names */

void hot_lock(struct hot *h)
{
	pthread_rwlock_wrlock(&h->lock);
}

void hot_unlock(struct hot *h)
{
	pthread_rwlock_unlock(&h->lock);
}

uint32_t hot_string(struct hot *h, struct str s)
{
	uint32_t string;

	hot_lock(h);
	string = strings_add(&h->strings, s);
	hot_unlock(h);
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

uint32_t hot_function(struct hot *h, struct str name, struct str file, struct str module)
{
	struct function_key key = { h,
				    { strings_add(&h->strings, name),
				      strings_add(&h->strings, file),
				      strings_add(&h->strings, module) } };
	uint64_t hash = hash_mix(h->seed, (uint64_t)key.f.name << 32 | key.f.file);
	uint32_t i = map_put(&h->function_map, hash, h->functions.n, same_function, &key);

	if (i == h->functions.n)
		vec_push(&h->functions, key.f);
	return i;
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
	       x->length == k->key->length && x->sample_type == k->key->sample_type;
}

static uint64_t hash_of(const struct hot *h, const struct hot_key *k)
{
	return hash_mix(hash_mix(h->seed, (uint64_t)k->series ^ (uint64_t)k->sample_type << 48),
			(uint64_t)k->start ^ (uint64_t)k->length);
}

bool hot_get(struct hot *h, const struct hot_key *key, struct hot_sum *sum)
{
	struct entry_key k = { h, key };
	struct hot_entry *entry = NULL;
	uint32_t i, function = 0;

	pthread_rwlock_rdlock(&h->lock);
	i = map_get(&h->entry_map, hash_of(h, key), same_entry, &k);
	if (i != MAP_NONE && h->entries.at[i]->key.nchanges == key->nchanges)
		entry = h->entries.at[i];
	if (entry) {
		struct reader r = reader_of((struct str){ entry->data, entry->bytes });
		struct hot_sum head = entry->sum;

		atomic_store_explicit(&entry->used, h->nqueries, memory_order_relaxed);
		memcpy(&head.weights, &sum->weights, sizeof(head.weights));
		*sum = head;
		vec_reserve(&sum->weights, entry->n);
		for (uint32_t w = 0; w < entry->n; w++) {
			struct hot_weight weight;

			weight.function = function += (uint32_t)get_number(&r);
			weight.flat = get_signed(&r);
			weight.cum = int_add(weight.flat, get_signed(&r));
			sum->weights.at[sum->weights.n++] = weight;
		}
	}
	pthread_rwlock_unlock(&h->lock);
	return entry;
}

/* What the last two queries did not use. */
static void sweep(struct hot *h)
{
	size_t left = 0;

	h->swept = h->nqueries;
	for (size_t i = 0; i < h->entries.n; i++) {
		struct hot_entry *entry = h->entries.at[i];

		if (atomic_load(&entry->used) + 1 >= h->nqueries) {
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

static bool has_room(struct hot *h, size_t bytes)
{
	size_t names = name_bytes(h), max = h->max_bytes > names ? h->max_bytes - names : 0;

	if (h->bytes + bytes > max && h->swept != h->nqueries)
		sweep(h);
	return h->bytes + bytes <= max;
}

static struct hot_entry *pack(const struct hot_key *key, const struct hot_sum *sum)
{
	struct hot_entry *entry;
	struct buf data = { 0 };
	uint32_t function = 0;

	for (size_t i = 0; i < sum->weights.n; i++) {
		const struct hot_weight *w = &sum->weights.at[i];

		put_number(&data, w->function - function);
		put_signed(&data, w->flat);
		put_signed(&data, int_add(w->cum, int_neg(w->flat)));
		function = w->function;
	}
	entry = xmalloc(sizeof(*entry) + data.n);
	*entry = (struct hot_entry){
		.key = *key, .sum = *sum, .n = (uint32_t)sum->weights.n, .bytes = data.n
	};
	memset(&entry->sum.weights, 0, sizeof(entry->sum.weights));
	if (data.n)
		memcpy(entry->data, data.p, data.n);
	buf_release(&data);
	return entry;
}

void hot_put(struct hot *h, const struct hot_key *key, const struct hot_sum *sum)
{
	struct hot_entry *entry = pack(key, sum);
	size_t bytes = sizeof(*entry) + entry->bytes;
	struct entry_key k = { h, key };

	hot_lock(h);
	atomic_store(&entry->used, h->nqueries);
	if (has_room(h, bytes)) {
		uint32_t i = map_put(&h->entry_map, hash_of(h, key), h->entries.n, same_entry, &k);

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
	hot_unlock(h);
	free(entry);
}
