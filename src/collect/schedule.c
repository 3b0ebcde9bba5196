#include "collect/schedule.h"

#include "base/map.h"

int64_t schedule_next(int64_t after, int64_t interval, int64_t spread, uint64_t hash)
{
	uint64_t width = (uint64_t)(spread && spread < interval ? spread : interval);
	int64_t next = schedule_round(after, interval) * interval + (int64_t)(hash % width);

	return next > after ? next : next + interval;
}

int64_t schedule_backoff(int64_t interval, unsigned nfailures, int64_t max, uint64_t random)
{
	int64_t d = interval;

	while (nfailures-- > 1 && d < max)
		d *= 2;
	if (d > max)
		d = max > interval ? max : interval;
	return d - d / 4 + (int64_t)(random % (uint64_t)(d / 2 + 1));
}

uint64_t random_next(uint64_t *state)
{
	*state += 0x9e3779b97f4a7c15u;
	return hash_mix(*state, 0xd1b54a32d192ed03u);
}

static void set_place(struct queue *q, size_t i, struct queued *x)
{
	q->at.at[i] = x;
	x->place = i + 1;
}

static void move_up(struct queue *q, size_t i, struct queued *x)
{
	while (i && q->at.at[(i - 1) / 2]->due > x->due) {
		set_place(q, i, q->at.at[(i - 1) / 2]);
		i = (i - 1) / 2;
	}
	set_place(q, i, x);
}

static void move_down(struct queue *q, size_t i, struct queued *x)
{
	for (;;) {
		size_t child = 2 * i + 1;

		if (child + 1 < q->at.n && q->at.at[child + 1]->due < q->at.at[child]->due)
			child++;
		if (child >= q->at.n || q->at.at[child]->due >= x->due)
			break;
		set_place(q, i, q->at.at[child]);
		i = child;
	}
	set_place(q, i, x);
}

void queue_put(struct queue *q, struct queued *x, int64_t due)
{
	queue_remove(q, x);
	x->due = due;
	vec_push(&q->at, x);
	move_up(q, q->at.n - 1, x);
}

void queue_remove(struct queue *q, struct queued *x)
{
	size_t i = x->place - 1;
	struct queued *last;

	if (!x->place)
		return;
	x->place = 0;
	last = q->at.at[--q->at.n];
	if (last == x)
		return;
	if (last->due < x->due)
		move_up(q, i, last);
	else
		move_down(q, i, last);
}

struct queued *queue_first(const struct queue *q)
{
	return q->at.n ? q->at.at[0] : NULL;
}
