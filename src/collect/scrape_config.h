/* scrape_config.h - the jobs under `scrape:` in the configuration file. */
#ifndef COLLECT_SCRAPE_CONFIG_H
#define COLLECT_SCRAPE_CONFIG_H

#include <stdint.h>

#include "base/option.h"
#include "collect/targets.h"

#define COLLECT_SECOND INT64_C(1000000000)

/* A profile that a job takes of each target. */
struct profile_type {
	const char *name, *path; /* "cpu", "profile"; the path is below the job's path-prefix */
	int64_t seconds;	 /* that the target is to collect; 0: it answers at once */
	int64_t interval;	 /* ns */
	/* Name of what a process takes one of at a time, as runtimes have one CPU profiler; NULL:
	 * it takes many. A type of another name may be the same by its path. */
	const char *exclusive;
};
/* One of types.def, or NULL. */
const struct profile_type *profile_type_find(struct str name);
/* One of another name may be what a process takes one of at a time, by the last part of its path;
 * then it takes some seconds, too. */
void profile_type_set_exclusive(struct profile_type *t);
/* Those that are taken if nothing is said, in `a`. */
struct profile_type *profile_types_usual(struct arena *a, size_t *n);
/* "cpu,heap,rpc=path/of/rpc", in `a`; the error is only the reason, and says what to write. */
bool profile_types_parse(struct arena *a, struct str list, struct profile_type **types, size_t *n,
			 struct err *e);
/* May a type be called so, and may this be part of a URL's path? */
bool profile_type_is_name(struct str s);
bool profile_type_is_path(struct str s);
enum { PROFILE_MAX_SECONDS = 3600 };

#define COLLECT_FIELD_BOOL bool
#define COLLECT_FIELD_INT int64_t
#define COLLECT_FIELD_STRING const char *
#define COLLECT_FIELD_TIME int64_t

struct scrape_job {
#define KEY(type, field, key, initial, value, help) COLLECT_FIELD_##type field;
#include "collect/jobs.def"
#undef KEY
	const struct target_label *labels;
	size_t nlabels;
	struct profile_type *types;
	size_t ntypes;
	struct target_spec *targets;
	size_t ntargets;
	const char *const *files; /* patterns */
	size_t nfiles;
};

/* The keys that are one value each, for the manual. */
extern const struct option_table scrape_job_table;

struct scrape_config {
	struct arena arena; /* of all of it */
	struct scrape_job *jobs;
	size_t njobs;
};

/* Reads what the text of a configuration file has under `scrape:`, if it is a list. Names of files
 * that do not begin with a slash are below `dir`. The error begins with the line. On failure there
 * is nothing to release. */
bool scrape_config_read(struct scrape_config *out, struct str yaml, const char *dir, struct err *e);
void scrape_config_release(struct scrape_config *c);

#endif
