/* label.h - sets of labels. A set is a number, good forever; 0 is the empty one. */
#ifndef AGENT_LABEL_H
#define AGENT_LABEL_H

#include <stdint.h>

/* The set `labels` with `key` set to `value`, or without it for NULL. The same set if there is no
 * room for more. */
uint32_t labels_with(uint32_t labels, const char *key, const char *value);

struct label {
	const char *key, *value;
};
uint32_t labels_count(uint32_t labels);
struct label labels_at(uint32_t labels, uint32_t i); /* in order of keys */

/* How many sets there was no room for. */
uint64_t labels_lost(void);

#endif
