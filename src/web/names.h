/* names.h - nodes of a report as functions that pages know. Private to web/. */
#ifndef WEB_NAMES_H
#define WEB_NAMES_H

#include "web/site.h"

/* The number of the function that a node is. */
uint32_t name_id(struct site *site, struct loaded *l, const struct report_run *r,
		 const struct node_info *info);
/* [id, "name", "file", line, "module", flags] */
void name_put(struct buf *out, const struct loaded *l, const struct report_run *r, uint32_t id,
	      const struct node_info *info);
/* Numbers of all nodes of some frames. */
uint32_t *name_frames(struct site *site, struct loaded *l, const struct report_run *r,
		      const struct frames *f);
/* Frames of the run's profile, by its granularity. */
void name_graph_frames(struct report_run *r, struct frames *f);
/* Numbers of all functions of a profile, so that they are the same whatever is asked first. */
void name_functions(struct site *site, struct loaded *l);

#endif
