/* round_report.h - how a round of profiles is to be taken, and what became of it, for people and
 * for programs. */
#ifndef CMD_ROUND_REPORT_H
#define CMD_ROUND_REPORT_H

#include "base/vec.h"
#include "collect/round.h"

#define ROUND_FIELD_STRING const char *
#define ROUND_FIELD_INT int64_t
#define ROUND_FIELD_TIME int64_t

/* Rows of a table of options are made by
 *
 *	#define ROUND(type, field, name, initial, value, help) ...
 *	#include "cmd/round.def"
 */
struct round_options {
#define ROUND(type, field, name, initial, value, help) ROUND_FIELD_##type field;
#include "cmd/round.def"
#undef ROUND
};
/* What they say becomes part of `params`, and the types are in `a`. */
bool round_options_read(const struct round_options *o, struct arena *a, struct round_params *params,
			struct profile_type **types, size_t *ntypes, struct err *e);

struct round_report {
	struct arena arena;
	const struct round_target *targets;
	size_t ntargets;
	struct target_sum *sums; /* one for each */
	vec(struct profile_sum) profiles;
	vec(const char *) files; /* that were written */
	char *const *problems;	 /* of what did not even become a target */
	size_t nproblems;
	size_t nexpected, nstored, nempty, nabsent, nfailed;
	int64_t start_ms;
	bool is_terminal;
};

void round_report_init(struct round_report *r, const struct round_target *targets, size_t n,
		       char *const *problems, size_t nproblems);
/* For round_params.tell. On a terminal it shows how far it is. */
void round_report_add(struct round_report *r, const struct round_result *result);
void round_report_add_file(struct round_report *r, const char *path);
void round_report_clear_progress(const struct round_report *r);
/* Once all is there. */
void round_report_table(struct buf *out, struct round_report *r);
void round_report_json(struct buf *out, struct round_report *r);
/* Has anything gone wrong? A profile that has no samples, or that a target does not have though it
 * has others, is nothing wrong. */
bool round_report_is_good(const struct round_report *r);
void round_report_release(struct round_report *r);

#endif
