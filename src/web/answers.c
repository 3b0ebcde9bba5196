#include "web/answers.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

void answers_init(struct answers *t, size_t max_bytes)
{
	*t = (struct answers){ .max_bytes = max_bytes };
	pthread_mutex_init(&t->lock, NULL);
}

static void drop_last(struct answers *t)
{
	struct answer *last = &t->at[--t->n];

	t->bytes -= http_content_size(last->content);
	http_content_drop(last->content);
	free(last->key);
}

void answers_forget(struct answers *t)
{
	pthread_mutex_lock(&t->lock);
	while (t->n)
		drop_last(t);
	pthread_mutex_unlock(&t->lock);
}

void answers_release(struct answers *t)
{
	answers_forget(t);
	pthread_mutex_destroy(&t->lock);
}

/* NULL, or the answer, which is the first then. */
static struct answer *find(struct answers *t, const char *key)
{
	for (size_t i = 0; i < t->n; i++) {
		struct answer found = t->at[i];

		if (strcmp(found.key, key) != 0)
			continue;
		memmove(t->at + 1, t->at, i * sizeof(*t->at));
		t->at[0] = found;
		return t->at;
	}
	return NULL;
}

struct http_content *answers_find(struct answers *t, const char *key)
{
	struct http_content *content = NULL;
	struct answer *found;

	pthread_mutex_lock(&t->lock);
	found = find(t, key);
	if (found)
		content = http_content_hold(found->content);
	pthread_mutex_unlock(&t->lock);
	return content;
}

void answers_add(struct answers *t, const char *key, struct http_content *content)
{
	if (http_content_size(content) > t->max_bytes / 2)
		return;
	pthread_mutex_lock(&t->lock);
	if (!find(t, key)) {
		memmove(t->at + 1, t->at, t->n++ * sizeof(*t->at));
		t->at[0] = (struct answer){ strcpy(xmalloc(strlen(key) + 1), key),
					    http_content_hold(content) };
		t->bytes += http_content_size(content);
		while (t->n > ANSWERS_MAX || t->bytes > t->max_bytes)
			drop_last(t);
	}
	pthread_mutex_unlock(&t->lock);
}
