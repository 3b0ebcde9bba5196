/* functions.h - numbers for functions: the same for all profiles and all requests of a server.
 *
 * A function is known by the text of its node: its name, and with -filefunctions or finer its file
 * and line. Number 0 is the root of trees. A text stays as long as one of the profiles that have it
 * is open; its number may mean another function then. For many threads.
 */
#ifndef WEB_FUNCTIONS_H
#define WEB_FUNCTIONS_H

#include <pthread.h>

#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"

struct functions {
	pthread_mutex_t lock;
	struct function_text {
		struct str text; /* p == NULL: there is none of that number */
		uint32_t owners; /* profiles, a bit for each */
	} * at;
	size_t n, cap;
	vec(uint32_t) unused;
	struct map map;
};

enum function_flag {
	FUNCTION_INLINED = 1, /* somewhere */
	FUNCTION_UNNAMED = 2, /* the name is a place in a binary */
	FUNCTION_LABEL = 4,   /* -tagroot or -tagleaf made it */
	FUNCTION_GROUP = 8,   /* all that has no name in its module */
};

void functions_init(struct functions *t);
void functions_release(struct functions *t);
/* The number of a text that `owner` has. */
uint32_t functions_add(struct functions *t, unsigned owner, struct str text);
/* The owner has none of its texts any more. */
void functions_forget(struct functions *t, unsigned owner);
/* What a parameter means: a number, or the text itself. 0: no such function. */
uint32_t functions_find(struct functions *t, struct str number_or_text);
/* The text that a parameter means, in `a`: its owner may go. */
struct str functions_text(struct functions *t, struct arena *a, struct str number_or_text);

#endif
