/* code_child.h - instructions, from the child that reads debug information; see debug_child.h.
 *
 * The question has one mapping; of its locations each two are a range, and its comments say how
 * instructions are spelled. The answer has the ranges as mappings, whose offset is where the linker
 * put them, the instructions as locations with frames, and their texts as comments.
 */
#ifndef SERVER_CODE_CHILD_H
#define SERVER_CODE_CHILD_H

#include "report/code.h"

struct code_job {
	const char *program; /* NULL: this one */
	const char *path;
	struct str build_id;
	const struct code_question *question;
	size_t max_bytes; /* of the answer */
};
/* Has a child read them. Everything goes to `a`. */
bool code_child_ask(const struct code_job *job, struct arena *a, struct code *out, struct err *e);

/* What the child does: `kiln debuginfo code FILE BUILD_ID`. The answer is appended to `out`. */
void code_child_answer(const char *path, struct str build_id, struct str question, struct buf *out);

#endif
