/* progress.h - tells a person at a terminal what takes so long. */
#ifndef ANALYZE_PROGRESS_H
#define ANALYZE_PROGRESS_H

struct fetch_progress;
struct progress;

/* If stderr is a terminal, shows a line there once a second has passed, until stopped, and gives
 * the counters to keep up to date in *counters; otherwise NULL. */
struct progress *progress_start(struct fetch_progress **counters);
void progress_stop(struct progress *p);

#endif
