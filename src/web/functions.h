/* functions.h - numbers for functions: the same for all profiles and all requests of a server.
 *
 * A function is known by the text of its node: its name, and with -filefunctions or finer its file
 * and line. Number 0 is the root of trees. For many threads.
 */
#ifndef WEB_FUNCTIONS_H
#define WEB_FUNCTIONS_H

#include <pthread.h>

#include "base/strings.h"

struct functions {
	pthread_mutex_t lock;
	struct strings texts;
};

enum function_flag {
	FUNCTION_INLINED = 1, /* somewhere */
	FUNCTION_UNNAMED = 2, /* the name is a place in a binary */
	FUNCTION_LABEL = 4,   /* -tagroot or -tagleaf made it */
};

void functions_init(struct functions *t);
void functions_release(struct functions *t);
uint32_t functions_add(struct functions *t, struct str text);
/* The text that a parameter means, which is a number or the text itself. Valid as long as the
 * table. */
struct str functions_text(struct functions *t, struct str number_or_text);

#endif
