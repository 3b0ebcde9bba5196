/* querier_messages.h - messages of Pyroscope's querier.v1, as far as Grafana uses them.
 *
 * Requests are structs that wire_read fills; answers are written as protobuf, and described so
 * that they can become JSON. Members are called as fields are in the .proto files. */
#ifndef SERVER_QUERIER_MESSAGES_H
#define SERVER_QUERIER_MESSAGES_H

#include "profile/wire_read.h"

/* LabelNames, LabelValues, Series, ProfileTypes; times of all requests are milliseconds. */
struct ask_labels {
	struct str name;
	struct wire_list matchers, label_names; /* texts */
	int64_t start, end;
};

struct ask_location {
	struct str name;
};
struct ask_pgo {
	uint64_t keep_locations;
};
struct ask_stacks {
	struct wire_list call_site; /* ask_location, from the root on */
	struct ask_pgo *go_pgo;
};

enum profile_format {
	FORMAT_UNSPECIFIED,
	FORMAT_FLAMEGRAPH,
	FORMAT_TREE,
	FORMAT_DOT,
	FORMAT_PPROF
};

/* SelectMergeStacktraces, SelectMergeProfile, SelectMergeSpanProfile. */
struct ask_merge {
	struct str profile_typeID, label_selector;
	int64_t start, end, max_nodes;
	int64_t format; /* enum profile_format */
	struct ask_stacks *stack_trace_selector;
	struct wire_list profile_id_selector, trace_id_selector, span_selector; /* texts */
};

struct ask_diff {
	struct ask_merge *left, *right;
};

enum series_aggregation { AGGREGATION_SUM, AGGREGATION_AVERAGE };

struct ask_series {
	struct str profile_typeID, label_selector;
	int64_t start, end;
	struct wire_list group_by; /* texts */
	double step;		   /* seconds */
	int64_t aggregation;	   /* enum series_aggregation */
	struct ask_stacks *stack_trace_selector;
	int64_t limit;
};

extern const struct wire_message ask_profile_types, ask_label_names, ask_label_values,
	ask_label_sets, ask_merge_stacktraces, ask_merge_profile, ask_merge_span_profile, ask_diff,
	ask_series, ask_stats;
extern const struct wire_message answer_profile_types, answer_names, answer_label_sets,
	answer_merge, answer_profile, answer_diff, answer_series, answer_stats;

#endif
