#include "web/functions.h"

#include <stdlib.h>

#include "base/number.h"

void functions_init(struct functions *t, bool has_lasting_numbers)
{
	*t = (struct functions){ .has_lasting_numbers = has_lasting_numbers };
	pthread_mutex_init(&t->lock, NULL);
	vec_push(t, (struct function_text){ 0 }); /* the root */
}

void functions_release(struct functions *t)
{
	for (size_t i = 0; i < t->n; i++)
		free((char *)(uintptr_t)t->at[i].text.p);
	free(t->at);
	vec_release(&t->unused);
	map_release(&t->map);
	map_release(&t->numbers);
	pthread_mutex_destroy(&t->lock);
}

static bool same_text(const void *ctx, uint32_t index)
{
	const struct functions *t = ((const void *const *)ctx)[0];
	const struct str *want = ((const void *const *)ctx)[1];

	return str_eq(t->at[index].text, *want);
}

static uint64_t hash(struct str text)
{
	return hash_bytes(map_seed(), text.p, text.n);
}

static uint32_t find(struct functions *t, struct str text)
{
	uint32_t id = map_get(&t->map, hash(text), same_text, (const void *[]){ t, &text });

	return id == MAP_NONE ? 0 : id;
}

/* ---- numbers */

static bool same_number(const void *ctx, uint32_t index)
{
	const struct functions *t = ((const void *const *)ctx)[0];
	const uint32_t *want = ((const void *const *)ctx)[1];

	return t->at[index].number == *want;
}

static uint64_t hash_number(uint32_t number)
{
	return hash_mix(map_seed(), number);
}

static uint32_t find_number(const struct functions *t, uint32_t number)
{
	uint32_t id = map_get(&t->numbers, hash_number(number), same_number,
			      (const void *[]){ t, &number });

	return id == MAP_NONE ? 0 : id;
}

/* The same in every process; of two texts that would have the same, the second has the next. */
static uint32_t lasting_number(const struct functions *t, struct str text)
{
	uint32_t number = (uint32_t)hash_bytes(0, text.p, text.n) % FUNCTIONS_MAX_NUMBER;

	while (!number || find_number(t, number))
		number = (number + 1) % FUNCTIONS_MAX_NUMBER;
	return number;
}

uint32_t functions_number(struct functions *t, uint32_t id)
{
	uint32_t number;

	pthread_mutex_lock(&t->lock);
	number = t->at[id].number;
	pthread_mutex_unlock(&t->lock);
	return number;
}

uint32_t functions_of_number(struct functions *t, uint32_t number)
{
	uint32_t id;

	pthread_mutex_lock(&t->lock);
	id = find_number(t, number);
	pthread_mutex_unlock(&t->lock);
	return id;
}

/* ---- texts */

static uint32_t add(struct functions *t, struct str text)
{
	uint32_t id = (uint32_t)t->n;
	char *copy = memcpy(xmalloc(text.n + 1), text.n ? text.p : "", text.n);

	if (t->unused.n)
		id = t->unused.at[--t->unused.n];
	else
		vec_push(t, (struct function_text){ 0 });
	t->at[id] = (struct function_text){
		.text = { copy, text.n },
		.number = t->has_lasting_numbers ? lasting_number(t, text) : id,
	};
	map_add(&t->numbers, hash_number(t->at[id].number), id);
	return map_add(&t->map, hash(text), id);
}

uint32_t functions_add(struct functions *t, unsigned owner, struct str text)
{
	uint32_t id;

	pthread_mutex_lock(&t->lock);
	id = find(t, text);
	if (!id)
		id = add(t, text);
	t->at[id].owners |= 1u << owner;
	pthread_mutex_unlock(&t->lock);
	return id;
}

void functions_forget(struct functions *t, unsigned owner)
{
	struct map map = { 0 }, numbers = { 0 };

	pthread_mutex_lock(&t->lock);
	for (uint32_t i = 1; i < t->n; i++) {
		struct function_text *f = &t->at[i];

		f->owners &= ~(1u << owner);
		if (f->owners) {
			map_add(&map, hash(f->text), i);
			map_add(&numbers, hash_number(f->number), i);
		} else if (f->text.p) {
			free((char *)(uintptr_t)f->text.p);
			*f = (struct function_text){ 0 };
			vec_push(&t->unused, i);
		}
	}
	map_release(&t->map);
	map_release(&t->numbers);
	t->map = map;
	t->numbers = numbers;
	pthread_mutex_unlock(&t->lock);
}

static uint32_t find_meant(struct functions *t, struct str number_or_text)
{
	uint64_t number;
	uint32_t id = 0;

	if (number_parse_uint(number_or_text, 10, &number) == NUMBER_OK &&
	    number < FUNCTIONS_MAX_NUMBER)
		id = find_number(t, (uint32_t)number);
	return id ? id : find(t, number_or_text);
}

uint32_t functions_find(struct functions *t, struct str number_or_text)
{
	uint32_t id;

	pthread_mutex_lock(&t->lock);
	id = find_meant(t, number_or_text);
	pthread_mutex_unlock(&t->lock);
	return id;
}

struct str functions_text(struct functions *t, struct arena *a, struct str number_or_text)
{
	struct str text = number_or_text;
	uint32_t id;

	pthread_mutex_lock(&t->lock);
	id = find_meant(t, number_or_text);
	if (id)
		text = (struct str){ str_dup(a, t->at[id].text), t->at[id].text.n };
	pthread_mutex_unlock(&t->lock);
	return text;
}
