/* stores.h - a store of its own for each test, and small profiles to put into it. */
#ifndef UNIT_STORES_H
#define UNIT_STORES_H

#include <stdio.h>
#include <unistd.h>

#include "profiles.h"
#include "store/store.h"

struct place {
	struct world w;
	char dir[64];
	struct store *store;
};

static inline void reopen(struct place *p, const struct store_params *params)
{
	struct store_params all = params ? *params : (struct store_params){ 0 };
	struct err e;

	store_close(p->store);
	all.dir = p->dir;
	p->store = store_open(&all, &e);
	if (!p->store)
		fail_msg("%s", e.text);
}

static inline void place_init(struct place *p)
{
	*p = (struct place){ .dir = "/tmp/kiln-store-XXXXXX" };
	world_init(&p->w);
	assert_non_null(mkdtemp(p->dir));
	reopen(p, NULL);
}

static inline void place_release(struct place *p)
{
	static const char *const files[] = { "lock", "profiles.db", "profiles.db-wal",
					     "profiles.db-shm" };

	store_close(p->store);
	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
		char path[128];

		snprintf(path, sizeof(path), "%s/%s", p->dir, files[i]);
		unlink(path);
	}
	assert_int_equal(rmdir(p->dir), 0);
	world_release(&p->w);
}

enum { SECOND = 1000000000 };

/* `labels` as "a=1,b=2". */
static inline struct store_meta put(struct place *p, const char *service, const char *type,
				    const char *labels, int64_t seconds, const char *stacks)
{
	struct profile profile = folded(&p->w, stacks);
	struct store_label list[10];
	struct store_new new = { .service = str_of(service),
				 .type = str_of(type),
				 .labels = list,
				 .created = seconds * SECOND,
				 .profile = &profile };
	struct str rest = str_of(labels);
	struct store_meta meta;
	struct err e;

	while (rest.n) {
		struct str value = str_cut(&rest, ',');

		list[new.nlabels].key = str_cut(&value, '=');
		list[new.nlabels++].value = value;
	}
	if (!store_put(p->store, &new, &p->w.arena, &meta, &e))
		fail_msg("%s", e.text);
	return meta;
}

static const struct store_query everything = { .from = INT64_MIN, .to = INT64_MAX };

static inline const char *text_of(struct place *p, struct buf *out)
{
	buf_char(out, '\0');
	return arena_adopt(&p->w.arena, out->p);
}

static inline const char *series_text(struct place *p, const struct store_series_params *params)
{
	struct buf out = { 0 };
	struct store_line *lines;
	struct err e;
	size_t n;

	if (!store_series(p->store, params, &p->w.arena, &lines, &n, &e))
		fail_msg("%s", e.text);
	for (size_t i = 0; i < n; i++) {
		buf_printf(&out, "%.*s:", STR_ARG(lines[i].name));
		for (size_t k = 0; k < lines[i].n; k++)
			buf_printf(&out, " %g@%lld", lines[i].points[k].value,
				   (long long)(lines[i].points[k].time / SECOND));
		buf_char(&out, '\n');
	}
	return text_of(p, &out);
}

static inline void put_some(struct place *p)
{
	put(p, "api", "cpu", "pod=1", 100, "main;work 10\nmain 5\n");
	put(p, "api", "cpu", "pod=1", 109, "main;work 1\n");
	put(p, "api", "cpu", "pod=2", 101, "main;work;work 1\nmain;idle 2\n");
	put(p, "web", "cpu", "pod=2", 121, "main;work 7\n");
}

static inline const char *merge_text(struct place *p, const struct store_query *q,
				     enum store_sum how, struct store_merged *merged)
{
	struct err e;

	if (!store_merge(p->store, q, how, &p->w.arena, &p->w.strings, merged, &e))
		return str_dup(&p->w.arena, str_of(e.text));
	return samples_text(&p->w, &merged->profile);
}

#endif
