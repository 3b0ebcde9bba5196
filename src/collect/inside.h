/* inside.h - what the files of the collector share. Private to collect/. */
#ifndef COLLECT_INSIDE_H
#define COLLECT_INSIDE_H

#include <pthread.h>
#include <time.h>

#include "base/buf.h"
#include "base/wait.h"
#include "collect/collect.h"
#include "collect/schedule.h"

struct http_client;

/* One profile of one target, again and again. */
struct task {
	struct queued queued; /* first: the queue's entries are tasks */
	struct target *target;
	struct profile_type type; /* strings are the target's, or the job's */
	uint64_t hash;
	int64_t slot; /* when its turn was, though it may have had to wait: monotonic, ns */
	bool is_running, is_gone, is_resting, is_tried;
	enum collect_result result; /* of the last, if is_tried */
	char *problem;		    /* malloc'ed, or NULL */
	unsigned nfailures;	    /* its own in a row, not those to reach the target */
	int64_t tried_ms;	    /* when the last one was asked for; monotonic */
	int64_t last;		    /* ns since 1970 */
	double duration_s;
	uint64_t nok, nfailed;
};

enum target_state { TARGET_NEW, TARGET_UP, TARGET_DOWN };

/* One block of memory, together with its labels and strings. */
struct target {
	struct job *job; /* not to be used once it is gone */
	struct str address, service;
	struct target_label *labels; /* by name */
	size_t nlabels;
	uint64_t hash;		      /* of all of these, and of the job's name */
	const struct target_own *own; /* NULL: all is as the job says */
	size_t bytes;		      /* of the block */
	vec(struct task *) tasks;
	unsigned nrunning;
	bool is_gone, is_seen;
	bool is_unreachable;
	unsigned nfailures;  /* to reach it, in a row */
	int64_t retry_at;    /* of one that cannot be reached; monotonic, ns */
	int64_t failed_ms;   /* when it was last found that it cannot be; monotonic */
	int64_t answered_ms; /* when it last gave any answer; monotonic */
	enum target_state state;
	char *problem;	     /* malloc'ed, or NULL */
	int64_t last, since; /* ns since 1970 */
	/* of jobs with replicas, see replicas.c */
	size_t group;
	int64_t round; /* in which is_chosen holds; -1: none yet */
	bool is_chosen;
};

#define TARGETS_LEFT_OUT "there are more targets than kiln can have: the rest is left out"

/* The job's labels, the target's own, its address, and its service. */
enum { MAX_MERGED_LABELS = 2 * MAX_LABELS + 2 };

/* The targets of a job with the same service. */
struct replicas {
	size_t first, n; /* of the job's members */
	int64_t round;	 /* for which was drawn last; -1: none */
};

/* The text of jobs, which have it together. */
struct shared_config {
	struct scrape_config config;
	unsigned refs;
};

enum { MAX_SOURCES = 3 }; /* of a job: the configuration itself, files, and a cluster */

struct job {
	const struct scrape_job *config;
	struct shared_config *shared;
	struct http_client *client;
	unsigned refs;
	size_t nsources;
	struct target_source *sources[MAX_SOURCES];
	struct target_set sets[MAX_SOURCES];
	vec(struct target *) targets;
	size_t left_out_bytes; /* of the first target for which there was no room; 0: all are in */
	vec(struct target *) members; /* the same by their services, of jobs with replicas */
	vec(struct replicas) groups;
};

/* One profile on its way. It has copies of all that it needs, as its job may change meanwhile. */
struct shot {
	struct shot *next;
	struct collector *c;
	struct arena arena;
	struct job *job; /* for its client and secrets; a reference */
	struct target *target;
	struct task *task;  /* NULL: of a capture */
	struct str capture; /* its id; "" */
	struct str address, service;
	struct target_label *labels;
	size_t nlabels;
	struct profile_type type;
	const struct target_own *own; /* the target's, or NULL */
	int64_t started_ms;	      /* monotonic */
	int64_t started;	      /* ns since 1970 */
	atomic_bool canceled;
	size_t taken; /* bytes, of the sink's */
	bool is_out_of_memory;
	bool was_sent; /* it reached whoever is there */
	/* what became of it */
	enum collect_result result;
	char id[COLLECT_ID_BYTES];
	struct err e;
};

struct collector {
	struct collector_params params;
	pthread_mutex_t sources_lock; /* of jobs and their sources; before `lock` */
	pthread_mutex_t lock;	      /* of all that follows */
	pthread_cond_t changed;	      /* for the dispatcher */
	pthread_cond_t has_work;      /* for workers */
	pthread_cond_t stopped;	      /* for the watcher */
	bool is_stopping;
	pthread_t dispatcher, watcher;
	bool has_dispatcher, has_watcher;
	vec(pthread_t) workers;
	unsigned nidle;
	vec(struct job *) jobs;
	size_t ntargets, target_bytes;
	struct queue queue;
	struct shot *first, **last; /* that no worker has yet */
	vec(struct shot *) running; /* and those */
	vec(struct capture) captures;
	uint64_t random;
};

static inline int64_t wall_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* A new copy in the place of the old one; NULL: none. */
void set_text(char **to, const char *text);

/* ---- target.c: with `lock` held */

const char *target_state_name(enum target_state state);
/* A target as a spec of a job has it, not yet in a block of its own: it points to the spec, the
 * job's configuration and `labels`. */
void target_describe(struct target *t, struct target_label labels[MAX_MERGED_LABELS], struct job *j,
		     const struct target_spec *spec);
bool target_same(const struct target *a, const struct target *b);
/* Its own, or its job's. */
const struct profile_type *target_types(const struct target *t, size_t *n);
struct target *target_new(const struct target *described);
/* Makes the tasks that its job's configuration says; those of types that it still has stay. */
void target_set_tasks(struct collector *c, struct target *t);
/* The one with which to find out whether a target can be reached again. NULL: it has none. */
struct task *target_probe(const struct target *t);
/* It counts no more, and what is under way of it is canceled. */
void target_remove(struct collector *c, struct target *t);
/* Frees it if it is gone and nothing of it is under way. */
void target_drop(struct target *t);
void task_drop(struct task *t);

/* ---- jobs.c: with both locks held. What is to be logged is appended to `log`, each line with a
 * NUL at its end. */

struct job *job_new(const struct scrape_job *config, struct shared_config *shared);
/* Ends what its sources have under way. Without `lock`. */
void job_stop(struct job *j);
/* With `lock` held. */
void job_drop(struct job *j);
/* Its targets become those of its sources. */
void job_sync(struct collector *c, struct job *j, struct buf *log);
/* Is there room again for some that were left out? */
bool job_may_grow(const struct collector *c, const struct job *j);
/* The same after its settings have changed. */
void job_refresh(struct collector *c, struct job *j, struct buf *log);
/* Takes over the targets of one of the same name. */
void job_inherit(struct job *j, struct job *old);
void job_remove_targets(struct collector *c, struct job *j);

/* ---- replicas.c: with `lock` held */

/* After the targets of a job have changed. */
void replicas_group(struct job *j);
/* Are others of the same service taken in this round? */
bool replicas_are_others(struct collector *c, const struct task *task, int64_t now);

/* ---- shot.c */

/* With `lock` held. */
struct shot *shot_new(struct collector *c, struct target *t, const struct profile_type *type);
/* What is asked for, in its arena. */
const char *shot_url(struct shot *s);
/* Without; sets the result. */
void shot_run(struct shot *s);
/* With `lock` held. */
void shot_free(struct shot *s);

/* ---- results.c: with `lock` held */

/* A shot of a task is over. What is to be logged is appended to `log`, each line with a NUL at its
 * end. */
void task_done(struct collector *c, const struct shot *s, struct buf *log);
/* Its first turn after this time. */
int64_t task_next(const struct task *t, int64_t after);
/* It has its turn then. */
void task_queue(struct collector *c, struct task *t, int64_t at);
/* What was left alone as the target failed is tried again when its time comes. */
void target_wake(struct collector *c, struct target *t);

/* ---- captures.c: with `lock` held */

/* Starts what can be started. */
void captures_start(struct collector *c);
void capture_done(struct collector *c, const struct shot *s);

/* ---- collector.c: with `lock` held */

void start_shot(struct collector *c, struct shot *s);
/* Or are there too many under way, of all or of this target? */
bool may_start(const struct collector *c, const struct target *t, const struct profile_type *type);

#endif
