/* inside.h - what a store is made of; for the files of this folder. */
#ifndef STORE_INSIDE_H
#define STORE_INSIDE_H

#include <pthread.h>
#include <stdatomic.h>

#include "store/catalog.h"
#include "store/db.h"
#include "store/follow.h"
#include "store/hot.h"
#include "store/id.h"
#include "store/keep.h"
#include "store/kept.h"
#include "store/rules.h"
#include "store/shelf.h"
#include "store/store.h"
#include "store/writer.h"

struct store {
	struct store_params params;
	char *dir, *path; /* of the database */
	int lock_fd;
	bool has_lock;
	struct id_source ids;
	struct catalog catalog;
	struct shelf shelf;
	struct hot hot;
	struct kept kept;
	struct follow follow;
	struct writer writer;
	struct keeper keeper;
	struct rules rules;
	/* connections that read, of which nobody uses these */
	pthread_mutex_t readers_lock;
	struct db *readers;
	atomic_uint nreaders;
	pthread_mutex_t packers_lock;
	vec(struct packer *) packers;
	_Atomic uint64_t merge_bytes; /* memory of sums that are being made */
	_Atomic uint64_t ndeleted;
	const struct store_namer *namer; /* or NULL */
};

/* A connection to read by, until it is given back. Statements see what has been committed when they
 * begin; those between SQL_BEGIN_READ and SQL_COMMIT all see the same. */
struct db *store_reader(struct store *s, struct err *e);
void store_reader_back(struct store *s, struct db *db);
/* Of the disk: what is free, and how much of it puts leave alone, since deleting takes some too. */
bool store_free_bytes(struct store *s, uint64_t *free_bytes, uint64_t *reserve);
/* All files. */
uint64_t store_disk_bytes(struct store *s);
/* Of long work: so much is done. */
void store_progress(struct store *s, uint64_t done, uint64_t all);
void store_log(struct store *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
