/* feed.c - what a page is shown of profiles that come and go, as what changes of it.
 *
 * Sums of a window are not made of what is new and what has left it: memory in use is a mean, and
 * times may come late. So all of it is drawn each time, and compared with what the page has. */
#include <stdlib.h>

#include "web/changes.h"
#include "web/names.h"

#define LEAST_SHARE 0.0005 /* as pages ask for (LEAST_SENT) */
enum {
	MAX_BOXES = 3000,
	MAX_FUNCTIONS = 4 * MAX_BOXES, /* that a page remembers */
	MAX_BYTES = WEB_FEED_BYTES / 2,
};

struct web_feed {
	struct changes changes;
	enum web_feed_kind kind;
	struct arena arena;
	struct analyze_options options;
	uint32_t max_boxes;
};

/* On its way. */
struct drawing {
	struct web_feed *feed;
	struct site *site;
	struct loaded *profile;
	struct buf head, functions;
};

struct web_feed *web_feed_new(enum web_feed_kind kind, struct str sample_type)
{
	struct web_feed *f = xcalloc(1, sizeof(*f));

	f->kind = kind;
	f->options = analyze_defaults;
	f->options.sample_index = str_dup(&f->arena, sample_type);
	/* Of too many functions those stay that take most with all they call. */
	f->options.sort = SORT_CUM;
	f->max_boxes = MAX_BOXES;
	return f;
}

void web_feed_free(struct web_feed *f)
{
	if (!f)
		return;
	changes_release(&f->changes);
	arena_release(&f->arena);
	free(f);
}

void web_feed_forget(struct web_feed *f)
{
	changes_forget(&f->changes);
}

/* ---- boxes */

static void put_head(struct drawing *d, const struct report_run *r, int64_t total, uint32_t ncut)
{
	api_put_type(&d->head, r);
	buf_printf(&d->head, ",\"total\":%lld,\"cut\":%u", (long long)total, ncut);
}

static uint32_t put_box(struct drawing *d, const struct report_run *r, uint32_t parent,
			const struct node_info *info, const struct change_values *values)
{
	uint32_t id = name_id(d->site, d->profile, r, info), box;
	bool is_new;

	box = changes_box(&d->feed->changes, parent, functions_number(&d->site->functions, id),
			  values, &is_new);
	if (is_new) {
		buf_puts(&d->functions, d->functions.n ? "," : "");
		name_put(&d->functions, d->profile, r, id, info);
	}
	return box;
}

static int64_t positive(int64_t v)
{
	return v > 0 ? v : 0;
}

static void put_tree(struct drawing *d, const struct report_run *r, const struct frames *frames,
		     const struct path_tree *t)
{
	const int64_t *own = path_tree_own(r->a, t, false);
	uint32_t *boxes = arena_many(r->a, t->npaths, uint32_t);

	/* Means of samples do not add up to the mean of all, but to this. */
	put_head(d, r, r->params->mean ? t->paths[0].now : r->params->total, t->ncut);
	for (uint32_t i = 0; i < t->npaths; i++) {
		const struct path *p = &t->paths[i];
		struct change_values values = { positive(own[i]), positive(p->lost_now) };
		struct node_info info;

		if (!i) {
			changes_begin(&d->feed->changes, &values);
			continue;
		}
		frames_info(frames, r->p, p->frame, &info);
		boxes[i] = put_box(d, r, boxes[p->parent], &info, &values);
	}
}

static bool run_flame(struct buf *out, struct report_run *r, struct err *e)
{
	struct drawing *d = r->params->into;
	struct path_tree tree = { 0 };
	struct frames frames;
	struct path_side side = {
		.p = r->p, .frames = &frames, .value = r->params->value, .mean = r->params->mean
	};

	(void)out, (void)e;
	name_graph_frames(r, &frames);
	path_tree_grow(r->a, &tree, &side, 1,
		       &(struct path_params){ .fraction = LEAST_SHARE,
					      .max_paths = d->feed->max_boxes,
					      .pivot = NONE,
					      .threads = r->params->threads,
					      .stop = r->params->stop });
	if (!stop_asked(r->params->stop))
		put_tree(d, r, &frames, &tree);
	return true;
}

static bool run_top(struct buf *out, struct report_run *r, struct err *e)
{
	struct drawing *d = r->params->into;
	uint32_t n = r->g.norder < d->feed->max_boxes ? r->g.norder : d->feed->max_boxes;

	(void)out, (void)e;
	put_head(d, r, r->params->total, r->g.norder - n);
	changes_begin(&d->feed->changes, &(struct change_values){ 0 });
	for (uint32_t i = 0; i < n; i++) {
		const struct node *node = &r->g.nodes[r->g.order[i]];

		put_box(d, r, 0, &node->info,
			&(struct change_values){ node_flat(node), node_cum(node) });
	}
	return true;
}

static const struct report reports[] = {
	[WEB_FEED_FLAME] = { .name = "flame",
			     .flags = REPORT_ALL_NODES | REPORT_UNTRIMMED | REPORT_PATHS |
				      REPORT_NO_STACKS,
			     .run = run_flame },
	[WEB_FEED_TOP] = { .name = "top",
			   .flags = REPORT_GRAPH | REPORT_ALL_NODES | REPORT_UNTRIMMED |
				    REPORT_NO_EDGES,
			   .run = run_top },
};

/* ---- all of it */

static bool draw(struct drawing *d, const atomic_bool *stop, struct buf *out, struct err *e)
{
	struct web_feed *f = d->feed;
	struct analyze_request request = { .report = &reports[f->kind],
					   .argument = "",
					   .options = &f->options,
					   .into = d,
					   .stop = stop };
	struct buf none = { 0 }, warnings = { 0 };
	bool is_first = changes_is_first(&f->changes), ok;

	d->head.n = d->functions.n = 0;
	ok = analyze_report(loaded_session(d->profile), &request, &none, &warnings, e) &&
	     (!stop_asked(stop) || err_set(e, ERR_IO, "the server is stopping"));
	if (ok) {
		buf_str(out, buf_view(&d->head));
		buf_printf(out, ",\"reset\":%s,\"functions\":[", is_first ? "true" : "false");
		buf_str(out, buf_view(&d->functions));
		buf_puts(out, "],");
		changes_put(&f->changes, out);
	}
	buf_release(&none);
	buf_release(&warnings);
	return ok;
}

/* With fewer boxes, if it is too much; the page then gets all of them anew. */
static bool draw_to_fit(struct drawing *d, const atomic_bool *stop, struct buf *out, struct err *e)
{
	struct web_feed *f = d->feed;
	size_t start = out->n;

	while (draw(d, stop, out, e)) {
		if (out->n - start <= MAX_BYTES)
			return true;
		out->n = start;
		changes_forget(&f->changes);
		if (f->max_boxes == 1)
			return err_set(e, ERR_LIMIT, "names of functions are too long to be told");
		f->max_boxes /= 2;
	}
	return false;
}

bool web_feed_put(struct web_feed *f, struct site *site, const struct web_feed_source *source,
		  struct buf *out, struct err *e)
{
	struct drawing d = { .feed = f, .site = site };
	bool ok;

	d.profile = profiles_borrow(&site->profiles, source->session, source->bytes);
	if (!d.profile)
		return err_set(e, ERR_LIMIT, "too many profiles are being looked at");
	name_functions(site, d.profile);
	if (f->changes.functions.n > MAX_FUNCTIONS)
		changes_forget(&f->changes);
	ok = draw_to_fit(&d, source->stop, out, e);
	if (!ok)
		changes_forget(&f->changes); /* who knows what it has of this */
	buf_release(&d.head);
	buf_release(&d.functions);
	profiles_drop(&site->profiles, d.profile);
	return ok;
}
