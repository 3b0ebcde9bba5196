#include "server/desks.h"

#include <stdlib.h>

/* As much as a common profile takes, most of which it does not touch; and as many as there are
 * cores to use them. */
enum { TABLE_BYTES = 1 << 20, STRING_BYTES = 64 << 10, MAX_UNUSED = 8 };

void desks_init(struct desks *d)
{
	*d = (struct desks){ 0 };
	pthread_mutex_init(&d->lock, NULL);
}

static void desk_free(struct desk *desk)
{
	strings_release(&desk->strings);
	arena_release(&desk->arena);
	free(desk);
}

void desks_release(struct desks *d)
{
	while (d->unused) {
		struct desk *desk = d->unused;

		d->unused = desk->next;
		desk_free(desk);
	}
	pthread_mutex_destroy(&d->lock);
}

static struct desk *desk_new(void)
{
	struct desk *desk = xcalloc(1, sizeof(*desk));

	arena_reserve(&desk->arena, TABLE_BYTES);
	strings_init(&desk->strings);
	return desk;
}

struct desk *desk_take(struct desks *d)
{
	struct desk *desk;

	pthread_mutex_lock(&d->lock);
	desk = d->unused;
	if (desk) {
		d->unused = desk->next;
		d->nunused--;
	}
	pthread_mutex_unlock(&d->lock);
	return desk ? desk : desk_new();
}

void desk_put_back(struct desks *d, struct desk *desk)
{
	arena_rewind(&desk->arena);
	strings_clear(&desk->strings, STRING_BYTES);
	pthread_mutex_lock(&d->lock);
	if (d->nunused < MAX_UNUSED) {
		desk->next = d->unused;
		d->unused = desk;
		d->nunused++;
		desk = NULL;
	}
	pthread_mutex_unlock(&d->lock);
	if (desk)
		desk_free(desk);
}

void desk_let_go(void *ctx)
{
	struct held_desk *h = ctx;

	if (h->desk)
		desk_put_back(h->desks, h->desk);
	h->desk = NULL;
}
