#include "store/follow.h"

#include <time.h>

#include "base/parallel.h"
#include "store/top.h"

enum {
	ONE_IN = 50,	   /* of the time of all cores */
	MOST_SECONDS = 40, /* for so long it is saved: all of a fleet may push at the same second */
	MAX_ROWS = 1000,   /* of a piece: how many there are must be counted each time */
	MAX_NEW = 16,	   /* of them, that others have left out */
	BUSY = 2,	   /* more puts that wait: they go first */
};

void follow_init(struct follow *f)
{
	pthread_mutex_init(&f->lock, NULL);
}

void follow_release(struct follow *f)
{
	pthread_mutex_destroy(&f->lock);
}

static int64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * TOP_SECOND + now.tv_nsec;
}

/* ---- how much of the CPU */

static bool may_spend(struct follow *f)
{
	const int64_t most = MOST_SECONDS * TOP_SECOND / ONE_IN * f->ncores;
	int64_t now = clock_ns(CLOCK_MONOTONIC);
	bool is_left;

	pthread_mutex_lock(&f->lock);
	f->left_ns += (now - f->since_ns) / ONE_IN * f->ncores;
	f->since_ns = now;
	if (f->left_ns > most)
		f->left_ns = most;
	is_left = f->left_ns > 0;
	pthread_mutex_unlock(&f->lock);
	return is_left;
}

static void spend(struct follow *f, int64_t ns)
{
	pthread_mutex_lock(&f->lock);
	f->left_ns -= ns;
	pthread_mutex_unlock(&f->lock);
}

/* ---- */

/* As if somebody asked for the piece. */
static bool read_piece(struct store *s, int64_t series, int64_t start, struct err *e)
{
	static const struct store_top_params all = { 0 };
	struct topping t = { .s = s,
			     .params = &all,
			     .hot = &s->hot,
			     .settled = clock_ns(CLOCK_REALTIME) - CATALOG_SETTLED,
			     .generation = naming_generation(s->namer) };
	struct arena arena = { 0 };
	struct picked picked;
	struct top_window w;
	struct top_part p;
	bool ok = true;

	if (catalog_copy(&s->catalog, series, &arena, &picked)) {
		w = top_cut(&t, &picked, start, start + TOP_PIECE - 1);
		top_part_init(&p, &t);
		p.type = picked.type;
		p.max_rows = MAX_ROWS;
		p.max_new = MAX_NEW;
		/* What is old is added to by whoever sums up what has come to rest. */
		ok = w.kind != TOP_OPEN || top_read(&p, &picked, &w, e);
		top_part_release(&p);
	}
	arena_release(&arena);
	return ok;
}

void follow_put(struct store *s, const struct writer_task *task)
{
	int64_t start = task->time - task->time % TOP_PIECE, begin;
	struct follow *f = &s->follow;
	struct err e;

	if (!atomic_load(&f->is_on) || !task->book || !str_eq(task->series->type, f->type) ||
	    atomic_load(&task->series->unfollowed) == start ||
	    atomic_load(&s->writer.nwaiting) > BUSY || !may_spend(f))
		return;
	begin = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	hot_begin_adding(&s->hot);
	if (!read_piece(s, task->series->id, start, &e) && e.kind == ERR_LIMIT)
		atomic_store(&task->series->unfollowed, start);
	hot_end(&s->hot);
	spend(f, clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin);
}

/* ---- for who opens the store */

void store_follow(struct store *s, struct str type)
{
	struct follow *f = &s->follow;

	/* Names that are known get their numbers first. */
	hot_begin_adding(&s->hot);
	kept_begin(s);
	hot_end(&s->hot);
	f->type = type;
	f->ncores = parallel_cores();
	f->since_ns = clock_ns(CLOCK_MONOTONIC);
	atomic_store(&f->is_on, true);
}

void store_save_followed(struct store *s, const atomic_bool *stop)
{
	hot_begin_adding(&s->hot);
	kept_save_open(s, stop);
	hot_end(&s->hot);
}
