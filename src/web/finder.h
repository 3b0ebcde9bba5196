/* finder.h - what a person searches for, q, re and in of a request. Private to web/.
 *
 *	finder_open(&f, q, e), finder_finds(&f, text) ..., finder_close(&f)
 */
#ifndef WEB_FINDER_H
#define WEB_FINDER_H

#include "web/site.h"

enum finder_scope { IN_NAMES, IN_FILES, IN_MODULES, IN_LABELS };

struct finder {
	enum finder_scope scope;
	struct str text; /* to look for */
	bool ignores_case;
	struct regex *regex; /* instead; or NULL */
	struct buf lower, label;
};

/* Close it also after a failure. */
bool finder_open(struct finder *f, const struct api_call *q, struct err *e);
void finder_close(struct finder *f);
bool finder_finds(struct finder *f, struct str text);

/* Which label sets have a label that is found, as a "key:value" with numbers as -tags prints them;
 * in the run's arena. */
bool *finder_label_sets(struct finder *f, const struct report_run *r);
/* The value of -tagfocus that matches just those sets, in the run's arena; "": none does. */
const char *finder_tagfocus(struct finder *f, const struct report_run *r, const bool *sets);
/* Leaves the samples of those sets. */
void finder_keep(struct report_run *r, const bool *sets);

#endif
