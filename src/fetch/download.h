/* download.h - what many servers send, all asked at the same time. Private to fetch/.
 *
 * Threads here wait for the network only; whoever needs a body waits for it with download_wait.
 */
#ifndef FETCH_DOWNLOAD_H
#define FETCH_DOWNLOAD_H

#include "fetch/fetch.h"
#include "fetch/url.h"

/* Starts with the first `n` of `sources`, 128 at a time; each is told as it starts. All arguments
 * must outlive the downloads. */
struct downloads *downloads_start(const struct fetch_params *params,
				  const struct url_source *sources, size_t n);
/* Waits for one of them. The bytes stay until download_drop. */
bool download_wait(struct downloads *d, size_t i, struct str *bytes, struct err *e);
void download_drop(struct downloads *d, size_t i);
/* Ends what still goes on. */
void downloads_free(struct downloads *d);

#endif
