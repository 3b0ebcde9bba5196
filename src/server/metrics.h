/* metrics.h - what is counted, and its text for Prometheus.
 *
 * A metric is one line of metrics.def. Threads: any number may use one struct metrics. */
#ifndef SERVER_METRICS_H
#define SERVER_METRICS_H

#include "base/buf.h"
#include "base/str.h"

enum metric {
#define METRIC(kind, field, name, labels, help) METRIC_##field,
#include "server/metrics.def"
#undef METRIC
	NMETRICS
};

struct metrics;

struct metrics *metrics_new(void);
void metrics_free(struct metrics *m);
/* Adds to a counter or gauge, or one observation to a histogram or summary. `labels` has a value
 * for each label that the metric has; NULL if it has none. They must not be any client's choice: of
 * thousands of different ones the later are counted as "other". */
void metrics_add(struct metrics *m, enum metric which, double value, const struct str *labels);
/* The value of a gauge, or of a counter that somebody else counts. */
void metrics_set(struct metrics *m, enum metric which, double value, const struct str *labels);
/* What has been added or set; of a histogram or summary how often. */
double metrics_get(struct metrics *m, enum metric which, const struct str *labels);
/* The text exposition format, version 0.0.4. */
void metrics_print(struct buf *out, struct metrics *m);

#endif
