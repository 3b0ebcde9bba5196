/* names_child.h - names of places, from the child that reads debug information; see debug_child.h.
 *
 * It gets a profile that has no samples: locations whose mappings say where in the file they are.
 * It answers with the same profile, whose locations have names, or with what went wrong.
 */
#ifndef SERVER_NAMES_CHILD_H
#define SERVER_NAMES_CHILD_H

#include "base/stop.h"
#include "profile/profile.h"

/* A place in a binary. */
struct names_place {
	uint64_t key; /* from the start of the file; IS_OWN: an address of the binary's own */
	uint64_t size, offset; /* of the mapping */
};
#define NAMES_IS_OWN (UINT64_C(1) << 63)

struct names_job {
	const char *program; /* NULL: this one */
	const char *path;
	struct str build_id;
	const struct names_place *places; /* sorted by size and offset */
	size_t n;
	const atomic_bool *stop;
};
/* Has a child name them; out->locations[i] is that of places[i]. */
bool names_child_ask(const struct names_job *job, struct arena *a, struct strings *strings,
		     struct profile *out, struct err *e);

/* What the child does: `kiln debuginfo names FILE BUILD_ID`. The answer is appended to `out`. */
void names_child_answer(const char *path, struct str build_id, struct str question,
			struct buf *out);

#endif
