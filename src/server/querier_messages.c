#include "server/querier_messages.h"

/* ---- requests */

#define LABELS(...) WIRE_MEMBER(struct ask_labels, __VA_ARGS__)
static const struct wire_field profile_types_fields[] = {
	LABELS(1, start, WIRE_KIND_INT),
	LABELS(2, end, WIRE_KIND_INT),
	{ 0 },
};
static const struct wire_field label_names_fields[] = {
	LABELS(1, matchers, WIRE_KIND_STRING, .is_repeated = true),
	LABELS(2, start, WIRE_KIND_INT),
	LABELS(3, end, WIRE_KIND_INT),
	{ 0 },
};
static const struct wire_field label_values_fields[] = {
	LABELS(1, name, WIRE_KIND_STRING),
	LABELS(2, matchers, WIRE_KIND_STRING, .is_repeated = true),
	LABELS(3, start, WIRE_KIND_INT),
	LABELS(4, end, WIRE_KIND_INT),
	{ 0 },
};
static const struct wire_field label_sets_fields[] = {
	LABELS(1, matchers, WIRE_KIND_STRING, .is_repeated = true),
	LABELS(2, label_names, WIRE_KIND_STRING, .is_repeated = true),
	LABELS(3, start, WIRE_KIND_INT),
	LABELS(4, end, WIRE_KIND_INT),
	{ 0 },
};
const struct wire_message ask_profile_types =
	WIRE_STRUCT("ProfileTypesRequest", struct ask_labels, profile_types_fields);
const struct wire_message ask_label_names =
	WIRE_STRUCT("LabelNamesRequest", struct ask_labels, label_names_fields);
const struct wire_message ask_label_values =
	WIRE_STRUCT("LabelValuesRequest", struct ask_labels, label_values_fields);
const struct wire_message ask_label_sets =
	WIRE_STRUCT("SeriesRequest", struct ask_labels, label_sets_fields);
static const struct wire_field no_fields[] = { { 0 } };
const struct wire_message ask_stats = { .name = "GetProfileStatsRequest",
					.fields = no_fields,
					.bytes = 1 };

static const struct wire_field location_fields[] = {
	WIRE_MEMBER(struct ask_location, 1, name, WIRE_KIND_STRING),
	{ 0 },
};
static const struct wire_message location =
	WIRE_STRUCT("Location", struct ask_location, location_fields);
static const struct wire_field pgo_fields[] = {
	WIRE_MEMBER(struct ask_pgo, 1, keep_locations, WIRE_KIND_UINT),
	{ 0 },
};
static const struct wire_message pgo = WIRE_STRUCT("GoPGO", struct ask_pgo, pgo_fields);
static const struct wire_field stacks_fields[] = {
	WIRE_MEMBER(struct ask_stacks, 1, call_site, WIRE_KIND_MESSAGE, .is_repeated = true,
		    .message = &location),
	WIRE_MEMBER(struct ask_stacks, 2, go_pgo, WIRE_KIND_MESSAGE, .message = &pgo),
	{ 0 },
};
static const struct wire_message stacks =
	WIRE_STRUCT("StackTraceSelector", struct ask_stacks, stacks_fields);

static const char *const formats[] = { "PROFILE_FORMAT_UNSPECIFIED", "PROFILE_FORMAT_FLAMEGRAPH",
				       "PROFILE_FORMAT_TREE",	     "PROFILE_FORMAT_DOT",
				       "PROFILE_FORMAT_PPROF",	     NULL };

#define MERGE(...) WIRE_MEMBER(struct ask_merge, __VA_ARGS__)
static const struct wire_field merge_stacktraces_fields[] = {
	MERGE(1, profile_typeID, WIRE_KIND_STRING),
	MERGE(2, label_selector, WIRE_KIND_STRING),
	MERGE(3, start, WIRE_KIND_INT),
	MERGE(4, end, WIRE_KIND_INT),
	MERGE(5, max_nodes, WIRE_KIND_INT),
	MERGE(6, format, WIRE_KIND_CHOICE, .choices = formats),
	MERGE(7, stack_trace_selector, WIRE_KIND_MESSAGE, .message = &stacks),
	MERGE(8, profile_id_selector, WIRE_KIND_STRING, .is_repeated = true),
	MERGE(10, trace_id_selector, WIRE_KIND_STRING, .is_repeated = true),
	MERGE(11, span_selector, WIRE_KIND_STRING, .is_repeated = true),
	{ 0 },
};
static const struct wire_field merge_profile_fields[] = {
	MERGE(1, profile_typeID, WIRE_KIND_STRING),
	MERGE(2, label_selector, WIRE_KIND_STRING),
	MERGE(3, start, WIRE_KIND_INT),
	MERGE(4, end, WIRE_KIND_INT),
	MERGE(5, max_nodes, WIRE_KIND_INT),
	MERGE(6, stack_trace_selector, WIRE_KIND_MESSAGE, .message = &stacks),
	MERGE(7, profile_id_selector, WIRE_KIND_STRING, .is_repeated = true),
	MERGE(8, trace_id_selector, WIRE_KIND_STRING, .is_repeated = true),
	{ 0 },
};
static const struct wire_field merge_span_profile_fields[] = {
	MERGE(1, profile_typeID, WIRE_KIND_STRING),
	MERGE(2, label_selector, WIRE_KIND_STRING),
	MERGE(3, span_selector, WIRE_KIND_STRING, .is_repeated = true),
	MERGE(4, start, WIRE_KIND_INT),
	MERGE(5, end, WIRE_KIND_INT),
	MERGE(6, max_nodes, WIRE_KIND_INT),
	MERGE(7, format, WIRE_KIND_CHOICE, .choices = formats),
	{ 0 },
};
const struct wire_message ask_merge_stacktraces =
	WIRE_STRUCT("SelectMergeStacktracesRequest", struct ask_merge, merge_stacktraces_fields);
const struct wire_message ask_merge_profile =
	WIRE_STRUCT("SelectMergeProfileRequest", struct ask_merge, merge_profile_fields);
const struct wire_message ask_merge_span_profile =
	WIRE_STRUCT("SelectMergeSpanProfileRequest", struct ask_merge, merge_span_profile_fields);

static const struct wire_field diff_fields[] = {
	WIRE_MEMBER(struct ask_diff, 1, left, WIRE_KIND_MESSAGE, .message = &ask_merge_stacktraces),
	WIRE_MEMBER(struct ask_diff, 2, right, WIRE_KIND_MESSAGE,
		    .message = &ask_merge_stacktraces),
	{ 0 },
};
const struct wire_message ask_diff = WIRE_STRUCT("DiffRequest", struct ask_diff, diff_fields);

static const char *const aggregations[] = { "TIME_SERIES_AGGREGATION_TYPE_SUM",
					    "TIME_SERIES_AGGREGATION_TYPE_AVERAGE", NULL };

#define SERIES(...) WIRE_MEMBER(struct ask_series, __VA_ARGS__)
static const struct wire_field series_fields[] = {
	SERIES(1, profile_typeID, WIRE_KIND_STRING),
	SERIES(2, label_selector, WIRE_KIND_STRING),
	SERIES(3, start, WIRE_KIND_INT),
	SERIES(4, end, WIRE_KIND_INT),
	SERIES(5, group_by, WIRE_KIND_STRING, .is_repeated = true),
	SERIES(6, step, WIRE_KIND_DOUBLE),
	SERIES(7, aggregation, WIRE_KIND_CHOICE, .choices = aggregations),
	SERIES(8, stack_trace_selector, WIRE_KIND_MESSAGE, .message = &stacks),
	SERIES(9, limit, WIRE_KIND_INT),
	{ 0 },
};
const struct wire_message ask_series =
	WIRE_STRUCT("SelectSeriesRequest", struct ask_series, series_fields);

/* ---- answers: no structs are made of these */

#define ANSWER(table)             \
	{                         \
		.fields = (table) \
	}
#define LIST .is_repeated = true

static const struct wire_field profile_type_fields[] = {
	WIRE_FIELD("ID", 1, WIRE_KIND_STRING),
	WIRE_FIELD("name", 2, WIRE_KIND_STRING),
	WIRE_FIELD("sample_type", 4, WIRE_KIND_STRING),
	WIRE_FIELD("sample_unit", 5, WIRE_KIND_STRING),
	WIRE_FIELD("period_type", 6, WIRE_KIND_STRING),
	WIRE_FIELD("period_unit", 7, WIRE_KIND_STRING),
	{ 0 },
};
static const struct wire_message profile_type = ANSWER(profile_type_fields);
static const struct wire_field answer_profile_types_fields[] = {
	WIRE_FIELD("profile_types", 1, WIRE_KIND_MESSAGE, LIST, .message = &profile_type),
	{ 0 },
};
const struct wire_message answer_profile_types = ANSWER(answer_profile_types_fields);

static const struct wire_field answer_names_fields[] = {
	WIRE_FIELD("names", 1, WIRE_KIND_STRING, LIST),
	{ 0 },
};
const struct wire_message answer_names = ANSWER(answer_names_fields);

static const struct wire_field label_fields[] = {
	WIRE_FIELD("name", 1, WIRE_KIND_STRING),
	WIRE_FIELD("value", 2, WIRE_KIND_STRING),
	{ 0 },
};
static const struct wire_message label = ANSWER(label_fields);
static const struct wire_field labels_fields[] = {
	WIRE_FIELD("labels", 1, WIRE_KIND_MESSAGE, LIST, .message = &label),
	{ 0 },
};
static const struct wire_message labels = ANSWER(labels_fields);
static const struct wire_field answer_label_sets_fields[] = {
	WIRE_FIELD("labels_set", 2, WIRE_KIND_MESSAGE, LIST, .message = &labels),
	{ 0 },
};
const struct wire_message answer_label_sets = ANSWER(answer_label_sets_fields);

static const struct wire_field level_fields[] = {
	WIRE_FIELD("values", 1, WIRE_KIND_INT, LIST),
	{ 0 },
};
static const struct wire_message level = ANSWER(level_fields);
static const struct wire_field flamegraph_fields[] = {
	WIRE_FIELD("names", 1, WIRE_KIND_STRING, LIST),
	WIRE_FIELD("levels", 2, WIRE_KIND_MESSAGE, LIST, .message = &level),
	WIRE_FIELD("total", 3, WIRE_KIND_INT),
	WIRE_FIELD("max_self", 4, WIRE_KIND_INT),
	WIRE_FIELD("leftTicks", 5, WIRE_KIND_INT), /* of comparisons */
	WIRE_FIELD("rightTicks", 6, WIRE_KIND_INT),
	{ 0 },
};
static const struct wire_message flamegraph = ANSWER(flamegraph_fields);
static const struct wire_field answer_diff_fields[] = {
	WIRE_FIELD("flamegraph", 1, WIRE_KIND_MESSAGE, .message = &flamegraph),
	{ 0 },
};
const struct wire_message answer_diff = ANSWER(answer_diff_fields);

static const struct wire_field value_type_fields[] = {
	WIRE_FIELD("type", 1, WIRE_KIND_INT),
	WIRE_FIELD("unit", 2, WIRE_KIND_INT),
	{ 0 },
};
static const struct wire_message value_type = ANSWER(value_type_fields);
static const struct wire_field sample_label_fields[] = {
	WIRE_FIELD("key", 1, WIRE_KIND_INT),
	WIRE_FIELD("str", 2, WIRE_KIND_INT),
	WIRE_FIELD("num", 3, WIRE_KIND_INT),
	WIRE_FIELD("num_unit", 4, WIRE_KIND_INT),
	{ 0 },
};
static const struct wire_message sample_label = ANSWER(sample_label_fields);
static const struct wire_field sample_fields[] = {
	WIRE_FIELD("location_id", 1, WIRE_KIND_UINT, LIST),
	WIRE_FIELD("value", 2, WIRE_KIND_INT, LIST),
	WIRE_FIELD("label", 3, WIRE_KIND_MESSAGE, LIST, .message = &sample_label),
	{ 0 },
};
static const struct wire_message sample = ANSWER(sample_fields);
static const struct wire_field mapping_fields[] = {
	WIRE_FIELD("id", 1, WIRE_KIND_UINT),
	WIRE_FIELD("memory_start", 2, WIRE_KIND_UINT),
	WIRE_FIELD("memory_limit", 3, WIRE_KIND_UINT),
	WIRE_FIELD("file_offset", 4, WIRE_KIND_UINT),
	WIRE_FIELD("filename", 5, WIRE_KIND_INT),
	WIRE_FIELD("build_id", 6, WIRE_KIND_INT),
	WIRE_FIELD("has_functions", 7, WIRE_KIND_BOOL),
	WIRE_FIELD("has_filenames", 8, WIRE_KIND_BOOL),
	WIRE_FIELD("has_line_numbers", 9, WIRE_KIND_BOOL),
	WIRE_FIELD("has_inline_frames", 10, WIRE_KIND_BOOL),
	{ 0 },
};
static const struct wire_message mapping = ANSWER(mapping_fields);
static const struct wire_field line_fields[] = {
	WIRE_FIELD("function_id", 1, WIRE_KIND_UINT),
	WIRE_FIELD("line", 2, WIRE_KIND_INT),
	WIRE_FIELD("column", 3, WIRE_KIND_INT),
	{ 0 },
};
static const struct wire_message line = ANSWER(line_fields);
static const struct wire_field profile_location_fields[] = {
	WIRE_FIELD("id", 1, WIRE_KIND_UINT),
	WIRE_FIELD("mapping_id", 2, WIRE_KIND_UINT),
	WIRE_FIELD("address", 3, WIRE_KIND_UINT),
	WIRE_FIELD("line", 4, WIRE_KIND_MESSAGE, LIST, .message = &line),
	WIRE_FIELD("is_folded", 5, WIRE_KIND_BOOL),
	{ 0 },
};
static const struct wire_message profile_location = ANSWER(profile_location_fields);
static const struct wire_field function_fields[] = {
	WIRE_FIELD("id", 1, WIRE_KIND_UINT),	     WIRE_FIELD("name", 2, WIRE_KIND_INT),
	WIRE_FIELD("system_name", 3, WIRE_KIND_INT), WIRE_FIELD("filename", 4, WIRE_KIND_INT),
	WIRE_FIELD("start_line", 5, WIRE_KIND_INT),  { 0 },
};
static const struct wire_message function = ANSWER(function_fields);
/* As the file format has it, and google.v1.Profile is the same. */
static const struct wire_field profile_fields[] = {
	WIRE_FIELD("sample_type", 1, WIRE_KIND_MESSAGE, LIST, .message = &value_type),
	WIRE_FIELD("sample", 2, WIRE_KIND_MESSAGE, LIST, .message = &sample),
	WIRE_FIELD("mapping", 3, WIRE_KIND_MESSAGE, LIST, .message = &mapping),
	WIRE_FIELD("location", 4, WIRE_KIND_MESSAGE, LIST, .message = &profile_location),
	WIRE_FIELD("function", 5, WIRE_KIND_MESSAGE, LIST, .message = &function),
	WIRE_FIELD("string_table", 6, WIRE_KIND_STRING, LIST),
	WIRE_FIELD("drop_frames", 7, WIRE_KIND_INT),
	WIRE_FIELD("keep_frames", 8, WIRE_KIND_INT),
	WIRE_FIELD("time_nanos", 9, WIRE_KIND_INT),
	WIRE_FIELD("duration_nanos", 10, WIRE_KIND_INT),
	WIRE_FIELD("period_type", 11, WIRE_KIND_MESSAGE, .message = &value_type),
	WIRE_FIELD("period", 12, WIRE_KIND_INT),
	WIRE_FIELD("comment", 13, WIRE_KIND_INT, LIST),
	WIRE_FIELD("default_sample_type", 14, WIRE_KIND_INT),
	{ 0 },
};
const struct wire_message answer_profile = ANSWER(profile_fields);

static const struct wire_field pprof_fields[] = {
	WIRE_FIELD("profile", 1, WIRE_KIND_MESSAGE, .message = &answer_profile),
	{ 0 },
};
static const struct wire_message pprof = ANSWER(pprof_fields);
static const struct wire_field answer_merge_fields[] = {
	WIRE_FIELD("flamegraph", 1, WIRE_KIND_MESSAGE, .message = &flamegraph),
	WIRE_FIELD("tree", 2, WIRE_KIND_BYTES),
	WIRE_FIELD("dot", 3, WIRE_KIND_STRING),
	WIRE_FIELD("pprof", 5, WIRE_KIND_MESSAGE, .message = &pprof),
	{ 0 },
};
const struct wire_message answer_merge = ANSWER(answer_merge_fields);

static const struct wire_field point_fields[] = {
	WIRE_FIELD("value", 1, WIRE_KIND_DOUBLE),
	WIRE_FIELD("timestamp", 2, WIRE_KIND_INT),
	{ 0 },
};
static const struct wire_message point = ANSWER(point_fields);
static const struct wire_field answer_line_fields[] = {
	WIRE_FIELD("labels", 1, WIRE_KIND_MESSAGE, LIST, .message = &label),
	WIRE_FIELD("points", 2, WIRE_KIND_MESSAGE, LIST, .message = &point),
	{ 0 },
};
static const struct wire_message answer_line = ANSWER(answer_line_fields);
static const struct wire_field answer_series_fields[] = {
	WIRE_FIELD("series", 1, WIRE_KIND_MESSAGE, LIST, .message = &answer_line),
	{ 0 },
};
const struct wire_message answer_series = ANSWER(answer_series_fields);

static const struct wire_field answer_stats_fields[] = {
	WIRE_FIELD("data_ingested", 1, WIRE_KIND_BOOL),
	WIRE_FIELD("oldest_profile_time", 2, WIRE_KIND_INT),
	WIRE_FIELD("newest_profile_time", 3, WIRE_KIND_INT),
	{ 0 },
};
const struct wire_message answer_stats = ANSWER(answer_stats_fields);
