/* answers.h - finished answers, kept for who asks the same again. For many threads. */
#ifndef WEB_ANSWERS_H
#define WEB_ANSWERS_H

#include <pthread.h>

#include "http/content.h"

enum { ANSWERS_MAX = 200 };

struct answers {
	pthread_mutex_t lock;
	struct answer {
		char *key;
		struct http_content *content;
	} at[ANSWERS_MAX + 1]; /* the one that was used last comes first */
	size_t n, bytes, max_bytes;
};

void answers_init(struct answers *t, size_t max_bytes);
void answers_release(struct answers *t);
/* A reference of the caller's; NULL if it is not there. */
struct http_content *answers_find(struct answers *t, const char *key);
/* Takes a reference of its own. */
void answers_add(struct answers *t, const char *key, struct http_content *content);
/* All of them are out of date. */
void answers_forget(struct answers *t);

#endif
