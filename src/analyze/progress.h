/* progress.h - tells a person at a terminal what takes so long. */
#ifndef ANALYZE_PROGRESS_H
#define ANALYZE_PROGRESS_H

struct str;
struct fetch_progress;
struct progress;

/* If stderr is a terminal, shows a line there once a second has passed, until stopped. */
struct progress *progress_start(void);
/* The counters to keep up to date; NULL if nobody looks at them. */
struct fetch_progress *progress_counters(struct progress *p);
/* Prints whole lines to stderr at once, whether it is a terminal or not; for fetch_params.tell. */
void progress_tell(void *progress, struct str lines);
void progress_stop(struct progress *p);

#endif
