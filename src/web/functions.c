#include "web/functions.h"

#include "base/number.h"

void functions_init(struct functions *t)
{
	pthread_mutex_init(&t->lock, NULL);
	strings_init(&t->texts);
}

void functions_release(struct functions *t)
{
	strings_release(&t->texts);
	pthread_mutex_destroy(&t->lock);
}

uint32_t functions_add(struct functions *t, struct str text)
{
	uint32_t id;

	pthread_mutex_lock(&t->lock);
	id = strings_add(&t->texts, text);
	pthread_mutex_unlock(&t->lock);
	return id;
}

struct str functions_text(struct functions *t, struct str number_or_text)
{
	struct str text = number_or_text;
	uint64_t id;

	if (number_parse_uint(number_or_text, 10, &id) != NUMBER_OK)
		return text;
	pthread_mutex_lock(&t->lock);
	if (id && id < t->texts.n)
		text = t->texts.at[id];
	pthread_mutex_unlock(&t->lock);
	return text;
}
