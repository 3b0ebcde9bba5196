/* functions.h - numbers for functions: the same for all profiles and all requests of a server.
 *
 * A function is known by the text of its node: its name, and with -filefunctions or finer its file
 * and line. Id 0 is the root of trees. A text stays as long as one of the profiles that have it is
 * open; its id may mean another function then. Pages know functions by their numbers, which are in
 * URLs: where profiles come and go these are made of the text, so that a URL means the same later.
 * For many threads.
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
		uint32_t number;
	} * at;
	size_t n, cap;
	vec(uint32_t) unused;
	struct map map, numbers;  /* by text; by number */
	bool has_lasting_numbers; /* else they are the ids */
};

/* Numbers are less than this. */
#define FUNCTIONS_MAX_NUMBER 0x3fffffffu

enum function_flag {
	FUNCTION_INLINED = 1, /* somewhere */
	FUNCTION_UNNAMED = 2, /* the name is a place in a binary */
	FUNCTION_LABEL = 4,   /* -tagroot or -tagleaf made it */
	FUNCTION_GROUP = 8,   /* all that has no name in its module */
};

void functions_init(struct functions *t, bool has_lasting_numbers);
void functions_release(struct functions *t);
/* The id of a text that `owner` has. */
uint32_t functions_add(struct functions *t, unsigned owner, struct str text);
/* The owner has none of its texts any more. */
void functions_forget(struct functions *t, unsigned owner);
uint32_t functions_number(struct functions *t, uint32_t id);
/* The id; 0: there is none of that number. */
uint32_t functions_of_number(struct functions *t, uint32_t number);
/* The id of what a parameter means: a number, or the text itself. 0: no such function. */
uint32_t functions_find(struct functions *t, struct str number_or_text);
/* The text that a parameter means, in `a`: its owner may go. */
struct str functions_text(struct functions *t, struct arena *a, struct str number_or_text);

#endif
