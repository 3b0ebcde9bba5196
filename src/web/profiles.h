/* profiles.h - the profiles that a server has open: that of the command line, and what is added.
 *
 * A profile is held while it is used, and lives until nobody holds it; whoever works on its session
 * has its lock as well.
 */
#ifndef WEB_PROFILES_H
#define WEB_PROFILES_H

#include <pthread.h>
#include <stdatomic.h>

#include "analyze/analyze.h"
#include "web/functions.h"

enum { PROFILES_MAX = 8 };

/* What is known of a name, beside it. */
struct name_facts {
	uint32_t file, object; /* strings */
	int64_t line;	       /* where the function starts */
	uint32_t id;	       /* of functions.h; 0: not asked for yet */
	unsigned char flags;   /* enum function_flag */
	bool is_known;
};

struct loaded {
	uint32_t id;
	const char *key;    /* of a web_source; else NULL */
	uint64_t bytes;	    /* that it gives back */
	uint64_t last_used; /* by profiles.clock */
	struct functions *functions;
	unsigned owner; /* for functions.h: one that no other has that is open, or still held */
	const char *name;
	struct arena arena;
	struct session session;	  /* as the command line has it */
	struct session named;	  /* where every address has a name, for pages; or .threads is 0 */
	struct name_facts *facts; /* by string */
	size_t nfacts;
	struct strings files; /* names of source files, cleaned */
	struct buf missing;   /* a line for each thing that it lacks, as names of a binary: why */
	struct buf about;     /* JSON for the page; made once, as reports add to the strings */
	unsigned holders;
	pthread_mutex_t lock;
	/* Of the thread that works ahead: what it makes, or NULL; and whether it should let go. */
	_Atomic(const char *) ahead;
	atomic_bool is_wanted;
};

struct profiles {
	pthread_mutex_t lock;
	struct loaded *at[PROFILES_MAX];
	size_t n;
	uint32_t next_id, owners; /* a bit for each that is taken */
	struct functions *functions;
	uint64_t clock;
	void (*give)(void *ctx, uint64_t bytes); /* or NULL */
	void *ctx;
};

/* `functions` lives longer. */
void profiles_init(struct profiles *t, struct functions *functions);
void profiles_release(struct profiles *t);
/* NULL if there is none of that number. Give it back by profiles_drop. */
struct loaded *profiles_hold(struct profiles *t, uint32_t id);
void profiles_drop(struct profiles *t, struct loaded *l);
/* The one that was there first stays. */
bool profiles_remove(struct profiles *t, uint32_t id);
/* Reads what the command line asks for. NULL if that fails, else it is held. `warnings` may be
 * NULL.
 */
struct loaded *profiles_load(struct profiles *t, const struct command_line *c, const char *name,
			     struct buf *warnings, struct err *e);
/* Fills in `about`. */
void loaded_describe(struct loaded *l, const struct analyze_options *o);
/* One that belongs to somebody else, who keeps it as long. Held. */
struct loaded *profiles_lend(struct profiles *t, const struct profile *p, int threads,
			     const char *name, const struct analyze_options *o);
/* One that others do not find, and that takes no place of theirs. Takes over the session, and the
 * bytes to give back. Held; NULL: too many are. */
struct loaded *profiles_borrow(struct profiles *t, struct session *s, uint64_t bytes);
/* The one with that key, held; NULL if there is none. */
struct loaded *profiles_find(struct profiles *t, struct str key);
/* Takes over the session, for `key`, and what is missing, and describes it. Closes another if there
 * are too many; NULL if that cannot be. Held. */
struct loaded *profiles_keep(struct profiles *t, struct session *s, const char *name,
			     struct str key, const struct buf *missing,
			     const struct analyze_options *o);
/* Closes the one that was last used longest ago, of those that nobody holds. False: there is none.
 */
bool profiles_shed(struct profiles *t);
/* Numbers of all of them, in the order in which they came. */
size_t profiles_list(struct profiles *t, uint32_t ids[PROFILES_MAX]);

/* The session whose names pages show. */
struct session *loaded_session(struct loaded *l);
const struct name_facts *loaded_facts(const struct loaded *l, uint32_t string);

#endif
