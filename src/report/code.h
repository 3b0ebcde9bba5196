/* code.h - instructions of a profile's binaries, for those who do not read them from the files that
 * its mappings name. */
#ifndef REPORT_CODE_H
#define REPORT_CODE_H

#include "base/stop.h"
#include "profile/profile.h"
#include "symbol/symbol.h"

/* Addresses of the profile. */
struct code_range {
	uint64_t begin, end;
};

struct code_question {
	const struct profile *p;
	const struct mapping *mapping;
	const struct code_range *ranges; /* within it; what matters most comes first */
	size_t n;
	struct asm_style style;
	const atomic_bool *stop; /* or NULL */
	struct buf *warnings;	 /* or NULL: gets lines */
};

struct code_instruction {
	uint64_t address; /* as linked */
	uint64_t runtime; /* in the profile */
	uint64_t length;
	struct str text;
	const struct symbol_frame *frames; /* innermost first */
	size_t nframes;
};

struct code {
	struct code_instruction *at; /* of each range in order of addresses */
	size_t n;
};

struct code_reader {
	/* May there be code of this mapping? Asked before `read`. */
	bool (*has)(void *ctx, const struct profile *p, const struct mapping *m);
	/* Appends nothing it cannot find out: that is known by its samples then. All goes to `a`.
	 */
	void (*read)(void *ctx, struct arena *a, const struct code_question *q, struct code *out);
	void *ctx;
};

#endif
