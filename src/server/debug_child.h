/* debug_child.h - the child that reads binaries and their debug information.
 *
 * Both are hostile, large, and read by libraries that are not ours; if the child dies or takes too
 * long, only what it was to tell is missing. It gets a profile that has no samples, and answers
 * with another or with what went wrong; names_child.h and code_child.h say what is in them.
 */
#ifndef SERVER_DEBUG_CHILD_H
#define SERVER_DEBUG_CHILD_H

#include "base/stop.h"
#include "profile/profile.h"
#include "symbol/symbol.h"

enum { DEBUG_CHILD_SECONDS = 60, DEBUG_CHILD_BYTES = 32 << 20 };

/* One without anything in it, for a question or an answer. */
struct profile debug_child_profile(struct arena *a, struct strings *strings);

struct debug_child {
	const char *program; /* NULL: this one */
	const char *command; /* of kiln debuginfo, followed by the file and its build id */
	const char *path;
	struct str build_id;
	int64_t max_seconds; /* not more than DEBUG_CHILD_SECONDS */
	size_t max_bytes;    /* of its answer */
	const atomic_bool *stop;
};
/* Locations of the answer have their index + 1 as id. */
bool debug_child_ask(const struct debug_child *c, const struct profile *question, struct arena *a,
		     struct strings *strings, struct profile *out, struct err *e);

/* ---- the child's side */

/* Makes the answer of the question, each of whose locations has a mapping. */
typedef bool debug_child_work(struct arena *a, struct profile *p, const char *path,
			      struct str build_id, struct err *e);
/* Appends the answer to `out`. The process has limits from then on. */
void debug_child_answer(debug_child_work *work, const char *path, struct str build_id,
			struct str question, struct buf *out);
/* Is it of the build that is asked for? */
bool debug_child_check(const struct object *o, struct str build_id, struct err *e);
/* Gives a location these frames; of too many, those in the middle are left out. */
void debug_child_put_frames(struct profile_names *names, uint32_t location,
			    const struct symbol_frame *frames, size_t n);

#endif
