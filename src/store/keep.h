/* keep.h - work in the background: sums of windows (tiers.h), and less of what is old.
 *
 * All of it goes through the writer in small commits, so that puts get their turn. What was summed
 * outside a commit is thrown away if a put has changed it meanwhile, and made again later.
 */
#ifndef STORE_KEEP_H
#define STORE_KEEP_H

#include <pthread.h>
#include <stdatomic.h>

#include "store/store.h"

struct keeper {
	pthread_t thread;
	bool has_thread, is_stopping, is_wanted;
	pthread_mutex_t lock, busy;
	pthread_cond_t wake;
	atomic_bool stop;
	int64_t last_day;  /* at which books were last looked at */
	int64_t last_hour; /* at which ages were last looked at */
	atomic_bool is_age_wanted;
	_Atomic uint64_t nthinned;
};

void keeper_init(struct keeper *k);
void keeper_release(struct keeper *k);
bool keeper_start(struct store *s, struct err *e);
void keeper_stop(struct store *s);
/* It looks at once whether there is too much. */
void keeper_wake(struct store *s);

/* Nothing of a service, or "" for all that have no rule, is kept that is older than this. */
int64_t keep_cut(struct store *s, struct str service, int64_t now);
/* Drops those that are too old (annotations.c). */
bool annotations_age(struct store *s, int64_t now, struct err *e);

/* Makes the sums of windows that have ended, also those that have changed since. */
bool keep_make_tiers(struct store *s, int64_t now, struct err *e);
struct keep_counts {
	uint64_t nthinned, ndropped;
};
/* Sums in windows of `tier` replace all that is finer and before `cut`, of one series. What cannot
 * be summed up, as it is damaged, is dropped. */
bool keep_thin(struct store *s, int64_t series, int tier, int64_t cut, struct keep_counts *n,
	       struct err *e);
/* Profiles to change in one commit, so that its log is short. Who gets ERR_LIMIT tries it with
 * fewer. */
size_t keep_piece(const struct store *s);

#endif
