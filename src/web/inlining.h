/* inlining.h - the places that a function was inlined into, with what each weighs. Private to web/.
 */
#ifndef WEB_INLINING_H
#define WEB_INLINING_H

#include "report/annotate.h"
#include "web/site.h"

struct inline_site {
	uint32_t caller; /* strings; 0: it was called */
	uint32_t file;
	int64_t line;
	int64_t flat, cum;
};

struct inline_sites {
	struct inline_site *at; /* heaviest first, in the run's arena */
	size_t n;
	int64_t flat, cum; /* of all: the function's own */
};

/* Sites of the function of that name. A sample that goes through several of them counts for the one
 * next to its leaf, so that all sites add up to what the function weighs. None if it was never
 * inlined. */
void inlining_find(struct report_run *r, struct str name, struct inline_sites *out);
/* ,"sites":{"flat":3,"cum":9,"rows":[{"caller":[id,...],"file":"x.c","line":3,"flat":1,"cum":2},
 * ...],"more":0}; the caller of what was not inlined is null. */
void inlining_put(struct buf *out, struct api_call *q, const struct report_run *r,
		  const struct inline_sites *sites);
/* What a parameter means: "called", or the caller's number or name and the line, "7:12". */
bool inlining_read(struct api_call *q, struct str param, struct annotate_site *out, struct err *e);

#endif
