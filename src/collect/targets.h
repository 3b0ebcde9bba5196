/* targets.h - what is to be profiled, and where that is known from.
 *
 * A source has a set of targets that changes over time: those of the configuration never do, those
 * of files do when somebody writes them. Whoever has a source looks at it every few seconds.
 */
#ifndef COLLECT_TARGETS_H
#define COLLECT_TARGETS_H

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "collect/secrets.h"

struct profile_type;

enum {
	MAX_TARGETS = 20000,		 /* of all sources together */
	MAX_TARGETS_BYTES = 64 << 20,	 /* that these take */
	MAX_LABELS = 60,		 /* of a target */
	MAX_LABEL = 1000,		 /* bytes of a label's name or value */
	MAX_LABELS_BYTES = 4096,	 /* of a target, names and values */
	MAX_ALL_LABELS_BYTES = 32 << 20, /* of all targets of a file, though a group shares its */
	MAX_FAULTS = 100,		 /* that are told */
};

struct target_label {
	struct str name, value;
};

/* What a target has of its own; NULL or "" where it is as its job says. */
struct target_own {
	const char *scheme;		  /* http, https or https+insecure */
	const char *path_prefix;	  /* begins with a slash */
	const struct profile_type *types; /* all with an interval */
	size_t ntypes;
	const char *namespace; /* of the secret, if that has a name */
	struct pod_secret secret;
};

struct target_spec {
	struct str address; /* host:port */
	const struct target_label *labels;
	size_t nlabels;
	const struct target_own *own; /* NULL: nothing */
};

struct target_set {
	struct arena arena; /* of all of it */
	struct target_spec *at;
	size_t n;
	struct err problem; /* kind ERR_NONE: all is well */
	/* What is wrong with single ones, which are left out: a line each, of the first of them. */
	const char **faults;
	size_t nfaults, nmore_faults;
};
void target_set_release(struct target_set *s);

struct target_source {
	/* Has anything changed? Then `out`, which is empty, gets all targets as they are now, and
	 * what is wrong with them, if anything. Must not wait for the network. */
	bool (*look)(struct target_source *s, struct target_set *out);
	/* NULL: there is nothing to. Takes over what one of the same kind, which ends, has read. */
	void (*inherit)(struct target_source *s, struct target_source *old);
	/* NULL: it has none of these. A header for a target whose own settings name a secret, in
	 * `a`; waits for the network, on any thread. */
	bool (*authorize)(struct target_source *s, const struct target_own *own, struct arena *a,
			  atomic_bool *canceled, const char **header, struct err *e);
	/* NULL: there is nothing to. Ends its threads; nobody looks at it any more. */
	void (*stop)(struct target_source *s);
	void (*free)(struct target_source *s);
};

/* Always the same. What the specs point to must live as long as the source. */
struct target_source *source_fixed_new(const struct target_spec *at, size_t n);
/* Files of YAML or JSON, [{"targets": ["host:port"], "labels": {"name": "value"}}], that patterns
 * as /etc/kiln/targets/\*.yaml find. One that is wrong keeps the targets that it had. */
struct target_source *source_files_new(const char *const *patterns, size_t n);
struct scrape_job;
/* Pods of a cluster whose annotations (annotations.h) say that they want it, as they come and go.
 * While the API server is away all stay. The job must live as long as the source. */
struct target_source *source_kubernetes_new(const struct scrape_job *job);
/* Can it be told which cluster that is, and who asks? */
bool source_kubernetes_check(const struct scrape_job *job, struct err *e);

/* May a label be called so? Letters, digits and _.-/ */
bool label_is_name(struct str name);

struct tree;
/* A list of such groups; with `may_be_plain` a target may stand there by itself, too. Appended to
 * *at, in `a`. The error begins with the line. */
bool targets_read(struct arena *a, const struct tree *list, bool may_be_plain,
		  struct target_spec **at, size_t *n, struct err *e);
struct target_label *labels_copy(struct arena *a, const struct target_label *from, size_t n);
/* Into `to`, with all that they point to; labels that several share are copied once. */
void targets_copy(struct arena *a, struct target_spec *to, const struct target_spec *from,
		  size_t n);
bool labels_read(struct arena *a, const struct tree *map, const struct target_label **labels,
		 size_t *n, struct err *e);

#endif
