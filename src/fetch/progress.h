/* progress.h - the counters behind fetch_progress_text. Private to fetch/; NULL counts nothing. */
#ifndef FETCH_PROGRESS_H
#define FETCH_PROGRESS_H

#include "fetch/fetch.h"

void fetch_progress_expect(struct fetch_progress *p, size_t nsources);
void fetch_progress_done(struct fetch_progress *p, size_t nsamples);
void fetch_progress_failed(struct fetch_progress *p);
void fetch_progress_received(struct fetch_progress *p, size_t bytes);
/* A server has been asked to collect for that long. */
void fetch_progress_wait(struct fetch_progress *p, int64_t seconds);

#endif
