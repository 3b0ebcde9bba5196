/* annotate.h - source lines with the instructions that were made from them, and their weights.
 *
 * Starts from the functions that an expression or an address selects, disassembles around the
 * samples in them, and gives each instruction to the source lines of the selected functions it
 * belongs to, be it as their own code or as that of calls inlined there. Code whose binary is not
 * at hand is known by its samples only.
 */
#ifndef REPORT_ANNOTATE_H
#define REPORT_ANNOTATE_H

#include "report/code.h"
#include "report/report.h"

/* A place in the source. */
struct source_place {
	struct str file;
	int64_t line;
	struct str function; /* of inlined calls: what was called, whose line it is; else "" */
};

struct annotated_instruction {
	uint64_t address; /* as linked */
	uint64_t runtime; /* in the profile */
	uint64_t length;
	struct str text; /* "" if only samples are known */
	struct source_place place;
	int64_t flat, cum;
};

/* An instruction at a line, through calls that were inlined there: caller first. */
struct annotated_use {
	uint32_t file; /* strings of the annotation */
	uint32_t function;
	int64_t line;
	uint32_t instruction;
	uint32_t first_call, ncalls;
};

/* Part of a file, with the lines around it that give context. */
struct annotated_function {
	struct str name, file;
	int64_t begin, end;  /* lines */
	size_t use, end_use; /* uses[use] .. uses[end_use - 1] */
	int64_t flat, cum;
};

struct annotation {
	struct annotated_function *functions; /* by file and line */
	size_t nfunctions;
	struct annotated_use *uses; /* by file and line */
	size_t nuses;
	struct annotated_instruction *instructions; /* by runtime address */
	size_t ninstructions;
	struct source_place *calls;
	struct strings strings;
};

/* A line that selected functions were inlined at. */
struct annotate_site {
	struct str caller; /* "": they were not */
	int64_t line;
};

struct annotate_params {
	const struct annotate_site *only; /* whose code is wanted; NULL: of all */
	const struct code_reader *code;	  /* NULL: files that mappings name are read */
	struct buf *warnings;		  /* of the reader; or NULL */
	bool is_by_samples; /* no code is read: of functions that binaries have other names for */
};

/* Fails with ERR_NOTFOUND if nothing is selected. Release with annotation_release, also after a
 * failure. */
bool annotate(struct report_run *r, const struct annotate_params *params, struct annotation *out,
	      struct err *e);
void annotation_release(struct annotation *a);

#endif
