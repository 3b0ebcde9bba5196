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
	struct profile_type type; /* strings are the job's */
	uint64_t hash;
	bool is_running, is_gone, is_resting, is_tried;
	enum collect_result result; /* of the last, if is_tried */
	char *problem;		    /* malloc'ed, or NULL */
	unsigned nfailures;	    /* in a row */
	int64_t last;		    /* ns since 1970 */
	double duration_s;
	uint64_t nok, nfailed;
};

enum target_state { TARGET_NEW, TARGET_UP, TARGET_DOWN };

struct target {
	struct arena arena; /* of the strings, but for the problem */
	struct job *job;    /* not to be used once it is gone */
	struct str key, address, service;
	struct target_label *labels;
	size_t nlabels;
	uint64_t hash;
	vec(struct task *) tasks;
	unsigned nrunning;
	bool is_gone, is_seen;
	bool is_unreachable;
	unsigned nfailures; /* to reach it, in a row */
	int64_t retry_at;   /* monotonic; of one that cannot be reached */
	enum target_state state;
	char *problem;	     /* malloc'ed, or NULL */
	int64_t last, since; /* ns since 1970 */
	int64_t round;	     /* in which is_chosen holds, of jobs with replicas */
	bool is_chosen;
};

/* The text of jobs, which have it together. */
struct shared_config {
	struct scrape_config config;
	unsigned refs;
};

enum { MAX_SOURCES = 2 }; /* of a job: the configuration itself, and files */

struct job {
	const struct scrape_job *config;
	struct shared_config *shared;
	struct http_client *client;
	unsigned refs;
	size_t nsources;
	struct target_source *sources[MAX_SOURCES];
	struct target_set sets[MAX_SOURCES];
	vec(struct target *) targets;
	bool has_too_many;
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
	int64_t started_ms; /* monotonic */
	int64_t started;    /* ns since 1970 */
	atomic_bool canceled;
	size_t taken; /* bytes, of the sink's */
	bool is_out_of_memory;
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
	size_t ntargets;
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

/* ---- jobs.c: with both locks held */

struct job *job_new(const struct scrape_job *config, struct shared_config *shared);
/* With `lock` held. */
void job_drop(struct job *j);
/* Its targets become those of its sources. */
void job_sync(struct collector *c, struct job *j);
/* The same after its settings have changed. */
void job_refresh(struct collector *c, struct job *j);
/* Takes over the targets of one of the same name. */
void job_inherit(struct job *j, struct job *old);
void job_remove_targets(struct collector *c, struct job *j);
/* Frees it if it is gone and nothing of it is under way. */
void target_drop(struct target *t);
void task_drop(struct task *t);

/* ---- shot.c */

/* With `lock` held. */
struct shot *shot_new(struct collector *c, struct target *t, const struct profile_type *type);
/* Without; sets the result. */
void shot_run(struct shot *s);
/* With `lock` held. */
void shot_free(struct shot *s);

/* ---- results.c: with `lock` held */

/* A shot of a task is over. What is to be logged is appended to `log`, in lines. */
void task_done(struct collector *c, const struct shot *s, struct buf *log);
int64_t task_next(const struct task *t, int64_t after);
/* What was left alone as it failed is tried again when its time comes. */
void target_wake(struct collector *c, struct target *t);

/* ---- captures.c: with `lock` held */

/* Starts what can be started. */
void captures_start(struct collector *c);
void capture_done(struct collector *c, const struct shot *s);

/* ---- collector.c: with `lock` held */

void start_shot(struct collector *c, struct shot *s);
/* Is the one CPU profiler of the process at that address in use? */
bool is_in_use(const struct collector *c, struct str address);

#endif
