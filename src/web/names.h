/* names.h - nodes of a report as functions that pages know. Private to web/. */
#ifndef WEB_NAMES_H
#define WEB_NAMES_H

#include "web/site.h"

/* The id of the function that a node is. */
uint32_t name_id(struct site *site, struct loaded *l, const struct report_run *r,
		 const struct node_info *info);
/* The number that pages know it by. */
uint32_t name_number(struct site *site, struct loaded *l, const struct report_run *r,
		     const struct node_info *info);
/* [number, "name", "file", line, "module", flags] */
void name_put(struct buf *out, const struct loaded *l, const struct report_run *r, uint32_t id,
	      const struct node_info *info);
/* The file and the binary of a node, as pages show them. */
struct str name_file(const struct loaded *l, const struct report_run *r,
		     const struct node_info *info);
struct str name_module(const struct loaded *l, const struct report_run *r,
		       const struct node_info *info);
/* All that has no name in a binary can be shown as one function, "[libc.so.6]": its id, and its
 * name in r->text; or 0 if the node has a name of its own. */
uint32_t name_group(struct site *site, const struct loaded *l, const struct report_run *r,
		    const struct node_info *info);
/* name_put for such a one; `info` is any node of it. */
void name_put_group(struct buf *out, const struct loaded *l, const struct report_run *r,
		    uint32_t id, const struct node_info *info);
/* Ids of all nodes of some frames. */
uint32_t *name_frames(struct site *site, struct loaded *l, const struct report_run *r,
		      const struct frames *f);
/* Frames of the run's profile, by its granularity. */
void name_graph_frames(struct report_run *r, struct frames *f);
/* Ids of all functions of a profile, so that they are the same whatever is asked first. */
void name_functions(struct site *site, struct loaded *l);
/* A path from the root, "3.17.5" of numbers, as ids. "17i" is 17 with FRAME_INLINED. */
struct name_path {
	uint32_t *ids, *numbers;
	size_t n;
};
bool name_path_read(struct api_call *q, const char *param, struct name_path *out, struct err *e);

#endif
