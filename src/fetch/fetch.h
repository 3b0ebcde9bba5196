/* fetch.h - where profiles come from: files and servers, many at once.
 *
 * Sources are read on all cores and merged as they arrive, so memory depends on what is distinct in
 * them, not on how many there are. Servers are asked all at the same time, up to 128 of them.
 */
#ifndef FETCH_FETCH_H
#define FETCH_FETCH_H

#include "profile/profile.h"

struct http_tls;

/* How far a fetch has got; read by whoever shows it while others write. */
struct fetch_progress;
struct fetch_progress *fetch_progress_new(void);
void fetch_progress_free(struct fetch_progress *p);
/* Appends "123 of 900 sources, 1.2M samples, 30s, 12s left". */
void fetch_progress_text(struct buf *out, const struct fetch_progress *p);

struct locate_params;

/* The servers that profiles come from: how to talk to them, and which mappings came from which. The
 * strings of `tls` must outlive it. */
struct fetch_remote;
struct fetch_remote *fetch_remote_new(const struct http_tls *tls);
void fetch_remote_free(struct fetch_remote *r);
/* Has any profile come from a server? */
bool fetch_remote_is_used(const struct fetch_remote *r);

/* Patterns such as *.pb.gz that no shell has replaced by the names of files are replaced here. */
void fetch_expand(struct arena *a, char ***sources, size_t *nsources);

struct fetch_params {
	char *const *sources; /* files, URLs, or "-" for stdin */
	size_t nsources;
	size_t max_bytes; /* of one profile, unpacked */
	int threads;
	/* Called for every profile before it is merged, from any thread; warnings are whole lines.
	 */
	void (*prepare)(const void *ctx, struct arena *a, struct profile *p, struct buf *warnings);
	const void *prepare_ctx;
	const struct locate_params *locate; /* for perf's stacks (perf/perf.h); or NULL */
	bool has_times;			    /* keep those of perf's samples */
	struct fetch_progress *progress;    /* or NULL */

	struct fetch_remote *remote; /* NULL: all sources are files */
	int64_t seconds, timeout;    /* for servers; what is not above 0 was not given */
	/* Gets a line at once, not when everything is there; from any thread. Or NULL. */
	void (*tell)(void *ctx, struct str line);
	void *tell_ctx;
};

/* Begins to ask the servers, and returns. `params` must outlive the fetch, which fetch_finish
 * frees. */
struct fetch *fetch_start(const struct fetch_params *params);
/* All sources merged into *out, and how many of them could be read into *ngot. The others are
 * reported in `warnings`, one line each; if there are only those, nothing is returned in *out.
 * False: what was read cannot be combined. */
bool fetch_finish(struct fetch *f, struct arena *a, struct strings *strings, struct profile *out,
		  size_t *ngot, struct buf *warnings, struct err *e);

#endif
