/* raw.h - the text of -raw, also for tests of what a profile reads as. Private to report/. */
#ifndef REPORT_RAW_H
#define REPORT_RAW_H

#include "profile/profile.h"

/* Header, samples, locations and mappings as text. Times are in the local zone. */
void raw_write(struct buf *out, const struct profile *p);

#endif
