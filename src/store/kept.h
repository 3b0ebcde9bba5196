/* kept.h - sums by function (hot.h) in the database, so that a server that has just been started
 * knows them.
 *
 * They are what a program that runs all the time has in memory anyway: of the default sample type,
 * for windows that have come to rest, and for the last ones, which have not (follow.h). Functions
 * are numbers here as there; what those mean is written before the first sum that has them. A sum
 * goes in the same commit as what it is made of changes: so what is there is right at any time. To
 * open windows profiles are added all the time; such a sum tells which it has seen (struct
 * hot_seen), and is right of those. All of it can be made again, and goes first when there is
 * little room.
 */
#ifndef STORE_KEPT_H
#define STORE_KEPT_H

#include <pthread.h>

#include "store/catalog.h"
#include "store/db.h"
#include "store/hot.h"

struct store;

struct kept {
	pthread_mutex_t lock;
	bool is_read;	       /* functions of the database are in memory */
	bool is_bad;	       /* they are not, as they are damaged */
	uint64_t names;	       /* of struct hot, of which the numbers are */
	uint32_t nfunctions;   /* that the database has */
	_Atomic int64_t until; /* up to here all was summed up, the last time */
};

void kept_init(struct kept *k);
void kept_release(struct kept *k);

/* Between hot_begin and hot_end: first of all; */
void kept_begin(struct store *s);
/* what is known of a window of a series is in memory then: true; */
bool kept_load(struct store *s, const struct picked *series, const struct hot_key *key);
/* what is new in memory is durable, and what is older than `since` goes, as far as there is room.
 * All has been summed up before `until`. */
void kept_save(struct store *s, int64_t since, int64_t until, const atomic_bool *stop);
/* The same of open windows only, and nothing goes. */
void kept_save_open(struct store *s, const atomic_bool *stop);

/* All goes, some at a time; *n: so many are gone. */
bool kept_drop_some(struct store *s, uint64_t *n, struct err *e);

/* ---- within a commit */

/* A profile of this time has come, which others that are later may be differences to (delta.h). */
bool kept_change(struct db *db, struct series *series, int64_t time, bool may_be_base,
		 struct err *e);
/* What is between the times is deleted, or all of a series. */
bool kept_delete(struct db *db, int64_t series, int64_t from, int64_t to, struct err *e);

/* ---- for who checks: is a row of the database what it should be? */

bool kept_check_functions(struct str data, uint32_t *nfunctions, struct err *e);
bool kept_check_sum(struct str data, uint32_t nfunctions, struct err *e);

#endif
