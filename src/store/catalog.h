/* catalog.h - which services, series and books there are, in memory.
 *
 * Series are few next to their profiles, so a query picks series here and reads rows of those only.
 * What is new lives here from the moment it is first put, and in the database with the commit that
 * has its first profile. Threads: any number; `lock` is the catalog's own business unless it says
 * otherwise.
 */
#ifndef STORE_CATALOG_H
#define STORE_CATALOG_H

#include <pthread.h>

#include "base/map.h"
#include "base/vec.h"
#include "store/changes.h"
#include "store/db.h"
#include "store/store.h"

struct shelf_book;

struct service {
	int64_t id;
	struct str name;
	uint32_t nseries;
	size_t nleft; /* for who counts */
	struct shelf_book
		*book;	 /* that new profiles go to, or NULL; of the shelf, under its lock */
	bool is_saved;	 /* the writer's: is in the database */
	uint64_t saving; /* the writer's: number of the commit that is to save it */
};

struct counts {
	uint64_t nprofiles, nsamples, bytes;
	int64_t first, last; /* times */
};

struct series {
	int64_t id;
	struct service *service;
	struct str type;
	struct store_label *labels;
	size_t nlabels;
	struct str key; /* the labels as one text */
	struct counts counts;
	uint32_t next_row;	    /* the writer's */
	int64_t tiers_until;	    /* the writer's: sums of windows have been made up to there */
	_Atomic int64_t oldest_put; /* time, of those since the maker of sums looked */
	struct changes changes;	    /* of what is older than CATALOG_SETTLED, once it is durable */
	int64_t hours_until;	    /* up to here there may be but sums of hours, or longer ones */
	int64_t days_until;	    /* the same of days */
	int64_t kept_until; /* the writer's: up to here there may be sums by function (kept.h);
			       INT64_MAX: nobody has looked */
	int64_t open_until; /* the same of open windows, once somebody has looked */
	_Atomic int64_t unfollowed; /* piece that is too much to follow (follow.h) */
	_Atomic uint32_t nwaiting;  /* puts that hold it */
	bool is_saved;
	uint64_t saving;
};

/* Most profiles come within so many nanoseconds: what is older has come to rest, and who has summed
 * it up need not look again as long as its changes do not say so. */
#define CATALOG_SETTLED ((int64_t)5 * 60 * 1000000000)
/* These are for whoever has changed something, after the commit, with `lock` to write. A profile
 * has been put, which others that are later may be differences to (delta.h); it is not counted yet.
 */
void catalog_note_put(struct series *s, int64_t time, bool may_be_base);
/* Sums have been put, the oldest of this time. */
void catalog_note_change(struct series *s, int64_t oldest);
/* Profiles between the times have been deleted. */
void catalog_note_deleted(struct series *s, int64_t from, int64_t to);
/* Up to a time there are but sums of a tier (tiers.h) left. */
void catalog_note_thinned(struct series *s, int tier, int64_t until);

struct catalog {
	pthread_rwlock_t lock;
	vec(struct service *) services;
	vec(struct series *) series;
	struct map service_map, series_map;
	uint64_t seed;
	int64_t last_service, last_series;
	uint32_t max_series, max_service_series;
};

void catalog_init(struct catalog *c, uint32_t max_series, uint32_t max_service_series);
/* Reads all of it but the counts. */
bool catalog_load(struct catalog *c, struct db *db, struct err *e);
void catalog_release(struct catalog *c);

/* The series, new if need be, held until catalog_leave. NULL: ERR_LIMIT. */
struct series *catalog_enter(struct catalog *c, const struct store_new *new, struct arena *a,
			     struct err *e);
void catalog_leave(struct series *s);

/* By their ids; NULL if there is none. For the opener, and whoever has `lock`. */
struct service *catalog_service(const struct catalog *c, int64_t id);
struct series *catalog_series(const struct catalog *c, int64_t id);
/* Series and services, in order of id, are no more: first the series of a service, then itself.
 * For whoever has `lock` to write. */
void catalog_forget(struct catalog *c, const int64_t *series, size_t nseries,
		    const int64_t *services, size_t nservices);
void counts_add(struct counts *to, const struct counts *more);

/* A series that a query finds, copied. */
struct picked {
	int64_t series, service;
	struct str service_name, type;
	struct store_label *labels;
	size_t nlabels;
	int64_t tiers_until;
	struct counts counts;	/* of all of it, not just the query's times */
	struct changes changes; /* struct series */
	int64_t hours_until, days_until;
};
/* Those that match and may have profiles between the times. */
struct picked *catalog_pick(struct catalog *c, const struct store_query *q, struct arena *a,
			    size_t *n);
/* One of them by its id; false: it is not there. */
bool catalog_copy(struct catalog *c, int64_t series, struct arena *a, struct picked *to);
/* Its value of a name: "service", "type", or a label ("" if it is not there). */
struct str picked_value(const struct picked *p, struct str name);

/* Labels as one text, and back; `text` may come from a damaged file. */
void labels_encode(struct buf *out, const struct store_label *labels, size_t n);
bool labels_decode(struct arena *a, struct str text, struct store_label **labels, size_t *n);

#endif
