/* names.h - names of addresses of binaries that were pushed without: from debug info that was
 * uploaded, from files of this machine, from debuginfod servers, in this order; what one does not
 * know, the next may.
 *
 * What is known stays in memory, by build id and place in the file, so that the second question
 * costs a lookup, and on disk, where there is room for more. What is not known is found by a thread
 * of its own, which has a child read the debug information: that is hostile, large, and read by a
 * library that is not ours, and if the child dies or takes too long, only names are missing.
 * Whoever asked waits a moment for it. What nobody knows is looked for again by the thread itself,
 * less and less often.
 *
 * Threads: any number may ask.
 */
#ifndef SERVER_NAMES_H
#define SERVER_NAMES_H

#include "server/debuginfo.h"
#include "store/store.h"

struct names;

struct names_params {
	struct debuginfo *files;
	const char *program; /* kiln, which is the child; NULL: this one */
	bool is_local;	     /* files that mappings name may be looked at */
	const char *urls;    /* of debuginfod servers, blanks between them; "" */
	uint64_t max_bytes;  /* of memory */
	const char *dir;     /* where names are kept, made if it is not there; NULL: nowhere */
	uint64_t max_disk;   /* bytes of them */
	uint64_t max_file;   /* that is fetched */
	/* Called now and then by the thread, with what names take on disk, or NULL. */
	void (*tidy)(void *ctx, uint64_t disk_bytes);
	void *ctx;
	int64_t tidy_ms;
	/* Called by any thread when there may be other names than before, or NULL. */
	void (*changed)(void *ctx);
};

struct names *names_new(const struct names_params *params);
void names_free(struct names *n);
const struct store_namer *names_namer(struct names *n);
/* Debug info of this build id came or went, or a file can be read at last: all that is known of it
 * is asked for again. */
void names_changed(struct names *n, struct str build_id);

/* Why there may be no names. */
struct names_look {
	const char *where, *result;
};
struct names_why {
	struct names_look looks[3];
	size_t nlooks;
	bool is_pending;	     /* there will be more in a moment */
	bool has_lines;		     /* no other debug info could tell more than what is here */
	uint64_t naddresses, nnamed; /* that were asked for, and of those that have names */
};
/* Strings go to `a`, but for those that are constant. */
void names_explain(struct names *n, struct str build_id, struct str file, struct arena *a,
		   struct names_why *why);

struct names_stats {
	uint64_t nbinaries, naddresses, nnamed, bytes, nruns, nfailed, nfetched;
	uint64_t nloaded; /* times that a binary's names were read from disk */
};
void names_stats(struct names *n, struct names_stats *out);
/* That names take on disk; takes no lock. */
uint64_t names_disk_bytes(const struct names *n);

#endif
