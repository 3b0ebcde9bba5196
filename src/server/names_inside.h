/* names_inside.h - what names.c, which answers, and names_work.c, which finds out, both know. */
#ifndef SERVER_NAMES_INSIDE_H
#define SERVER_NAMES_INSIDE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/map.h"
#include "base/strings.h"
#include "base/vec.h"
#include "server/names.h"
#include "server/names_child.h"

enum { NAMES_RETRY_MS = 10 * 60 * 1000 }; /* until it is looked again for what was not there */

struct names_entry {
	uint64_t key;
	uint32_t first, n; /* frames; none if nobody knows */
};

enum names_state {
	ASKABLE,  /* what is not known is to be looked for */
	FETCHING, /* from a debuginfod server, for which nobody waits */
	NOTHING,  /* is there, until `retry_ms` */
};

struct store_binary {
	char *build_id, *file;
	/* under names.tables */
	vec(struct names_entry) entries;
	struct map map;
	vec(struct profile_frame) frames;
	struct strings strings; /* of the frames */
	uint64_t nnamed, bytes;
	/* under names.lock */
	enum names_state state;
	int64_t retry_ms;
	uint64_t last_use;
	vec(struct names_place) wanted;
	bool is_queued;
	uint64_t version;			   /* goes up when there is other debug info */
	char *local_said, *fetch_said, *read_said; /* NULL: it was not asked */
};

struct names {
	struct names_params params;
	struct store_namer namer;
	pthread_rwlock_t tables; /* readers go first: they do not wait, and there is one writer */
	pthread_mutex_t lock;	 /* taken after `tables`, if both are */
	pthread_cond_t wake, wake_fetcher, idle;
	vec(struct store_binary *) binaries, queue, fetches;
	struct map map;
	uint64_t clock, bytes, nruns, nfailed, nfetched;
	struct store_binary *busy_with; /* or NULL */
	_Atomic uint64_t generation;	/* store_namer */
	atomic_bool is_stopping;
	/* Names that linkers know, and how people read them, of as many as there is room for; under
	 * a lock of their own. */
	pthread_mutex_t reading;
	struct strings mangled, texts;
	vec(struct str) readable; /* of each in `mangled`; p == NULL: it is none */
	pthread_t thread, fetcher;
	bool has_thread, has_fetcher;
};

/* Under `tables`: number of the entry, or MAP_NONE. */
uint32_t names_find_entry(const struct store_binary *b, uint64_t key);
/* Under `tables` as a writer. */
void names_forget(struct names *n, struct store_binary *b);
/* The threads: one has a child read debug information, the other asks debuginfod servers. */
void *names_work(void *names);
void *names_fetch(void *names);

#endif
