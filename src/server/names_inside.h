/* names_inside.h - what the files of names.c know of each other: names.c answers, names_table.c has
 * what is known, names_disk.c keeps it, names_work.c finds out, names_fetch.c asks others. */
#ifndef SERVER_NAMES_INSIDE_H
#define SERVER_NAMES_INSIDE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/map.h"
#include "base/strings.h"
#include "base/vec.h"
#include "server/names.h"
#include "server/names_child.h"

enum {
	NAMES_RETRY_MS = 10 * 60 * 1000, /* until it is looked again for what was not there, */
	NAMES_RETRIES = 7,		 /* and twice that and so on up to a day */
	NAMES_PATHS = 4,		 /* of a binary that are tried */
	NAMES_BINARY_SHARE = 2,		 /* of the memory a binary may have half */
};

/* A function, by strings of its binary. */
struct names_function {
	uint32_t name, system_name, file, start_line;
};

struct names_frame {
	uint32_t function, line, column; /* function NONE: it is not known */
};

/* `n` frames from `first` on. 0: nobody knows, and `first` is which of those it is. */
struct names_entry {
	uint64_t key;
	uint32_t first, n;
};

enum names_state {
	ASKABLE, /* what is not known is to be looked for */
	NOTHING, /* is there, until it is looked again */
};

struct store_binary {
	char *build_id;
	/* under names.tables */
	vec(struct names_entry) entries;
	struct map map;
	vec(struct names_frame) frames;
	vec(struct names_function) functions;
	struct map function_map;
	struct strings strings;		  /* without any until there is a name */
	vec(struct names_place) nameless; /* of entries without frames */
	uint64_t nnamed, bytes;
	atomic_bool is_loaded;	/* what the disk had is here */
	atomic_bool is_changed; /* the disk has other names, or none */
	/* of the thread */
	int64_t saved_ms;
	/* under names.lock */
	char *paths[NAMES_PATHS];
	size_t npaths;
	enum names_state state;
	int64_t retry_ms; /* 0: there is nothing to look for again */
	unsigned ntries;
	uint64_t last_use;
	vec(struct names_place) wanted;
	bool is_queued, is_fetching;
	uint64_t version;			   /* goes up when there is other debug info */
	char *local_said, *fetch_said, *read_said; /* NULL: it was not asked */
};

/* First come, first served. */
struct names_queue {
	vec(struct store_binary *) items;
	size_t first;
};

/* Names that linkers know, and how people read them. */
struct names_readable {
	pthread_mutex_t lock;
	struct strings mangled, texts;
	vec(struct str) of; /* of each in `mangled`; p == NULL: it is none */
	uint64_t max_bytes;
};

struct names {
	struct names_params params;
	struct store_namer namer;
	pthread_rwlock_t tables; /* readers go first: they do not wait, and there is one writer */
	pthread_mutex_t lock;	 /* taken after `tables`, if both are */
	pthread_cond_t wake, wake_fetcher, idle;
	vec(struct store_binary *) binaries;
	struct names_queue queue, fetches;
	struct map map;
	uint64_t clock, bytes, nruns, nfailed, nfetched, nloaded;
	struct store_binary *busy_with;	     /* or NULL */
	_Atomic uint64_t generation, nfound; /* store_namer */
	_Atomic uint64_t disk_bytes;
	atomic_bool is_stopping, is_trim_due;
	struct names_readable readable;
	pthread_t thread, fetcher;
	bool has_thread, has_fetcher;
};

/* ---- names_table.c */

/* Under the lock. */
struct store_binary *names_find_binary(const struct names *n, struct str build_id);
/* NULL: there are too many, of which the thread will drop some. */
struct store_binary *names_add_binary(struct names *n, struct str build_id);
/* Under `tables` as a writer, and the lock: drops those that nobody asked for lately. */
void names_drop_binaries(struct names *n);
/* Is it time for that? Under the lock. */
bool names_are_many(const struct names *n);
void names_free_binary(struct names *n, struct store_binary *b);

/* Under `tables`: number of the entry, or MAP_NONE. */
uint32_t names_find_entry(const struct store_binary *b, uint64_t key);
/* Under `tables`; `frames` has room for STORE_MAX_FRAMES. */
uint32_t names_frames(const struct store_binary *b, uint32_t entry, struct profile_frame *frames);
/* Under `tables` as a writer. */
void names_forget(struct names *n, struct store_binary *b);
/* The same: the profile's locations are of these places, and those that have names are taken.
 * Returns how many. ERR_LIMIT: they are more than a binary may have. */
bool names_take(struct names *n, struct store_binary *b, const struct names_place *places,
		const struct profile *p, size_t *nnamed, struct err *e);
/* The same: nobody knows these. */
void names_take_nameless(struct names *n, struct store_binary *b, const struct names_place *places,
			 size_t nplaces);

/* ---- names_disk.c; of the thread */

/* Names that were written before, if they are of the debug info that is there now. */
void names_load(struct names *n, struct store_binary *b);
/* If they have changed. */
void names_save(struct names *n, struct store_binary *b);
void names_save_all(struct names *n);
void names_unlink(struct names *n, struct str build_id);
/* What nobody has used lately makes room on the disk. */
void names_tidy_disk(struct names *n);

/* ---- names_readable.c */

void names_readable_init(struct names_readable *r, uint64_t max_bytes);
void names_readable_release(struct names_readable *r);
/* Good until names_readable_trim. */
struct str names_readable_find(struct names_readable *r, struct str name, bool *is_full);
/* Nobody may be reading. */
void names_readable_trim(struct names_readable *r);

/* ---- the threads: one has a child read debug information, the other asks debuginfod servers */

void names_push(struct names_queue *q, struct store_binary *b);
/* NULL: there is none. */
struct store_binary *names_pop(struct names_queue *q);
void *names_work(void *names);
void *names_fetch(void *names);
/* Under the lock: has debuginfod servers be asked, if there are any and it is of use. */
bool names_queue_fetch(struct names *n, struct store_binary *b);
/* The same: when it is looked again. */
void names_retry_later(const struct names *n, struct store_binary *b);
/* Which debug info there is; what was found in an older one is of no use. */
uint64_t names_version(struct names *n, const struct store_binary *b);
void names_say(char **what, const char *text);

#endif
