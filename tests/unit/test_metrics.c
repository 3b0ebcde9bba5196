#include "server/metrics.h"

#include "test.h"

#include <stdio.h>

static bool prints(struct metrics *m, const char *line)
{
	struct buf out = { 0 };
	bool found;

	metrics_print(&out, m);
	found = str_contains(buf_view(&out), str_of(line));
	buf_release(&out);
	return found;
}

TEST(a_counter_for_each_set_of_labels)
{
	struct metrics *m = metrics_new();
	struct str a[] = { STR("GET"), STR("/a"), STR("200") };
	struct str b[] = { STR("GET"), STR("/a"), STR("404") };

	metrics_add(m, METRIC_API_REQUESTS, 1, a);
	metrics_add(m, METRIC_API_REQUESTS, 2, a);
	metrics_add(m, METRIC_API_REQUESTS, 1, b);
	assert_true(metrics_get(m, METRIC_API_REQUESTS, a) == 3);
	assert_true(prints(m,
			   "# TYPE profefe_api_requests_total counter\n"
			   "profefe_api_requests_total{method=\"GET\",path=\"/a\",code=\"200\"} 3\n"
			   "profefe_api_requests_total{method=\"GET\",path=\"/a\",code=\"404\"} "
			   "1\n"));
	assert_false(prints(m, "kiln_refusals_total")); /* what has no value is not there */
	metrics_free(m);
}

TEST(buckets_of_a_histogram_add_up)
{
	struct metrics *m = metrics_new();
	struct str l[] = { STR("GET"), STR("/"), STR("200") };

	metrics_add(m, METRIC_API_DURATION, 0.004, l);
	metrics_add(m, METRIC_API_DURATION, 0.01, l); /* a bound belongs to its bucket */
	metrics_add(m, METRIC_API_DURATION, 100, l);
	assert_true(prints(m, "code=\"200\",le=\"0.005\"} 1\n"));
	assert_true(prints(m, "code=\"200\",le=\"0.01\"} 2\n"));
	assert_true(prints(m, "code=\"200\",le=\"10\"} 2\n"));
	assert_true(prints(m, "code=\"200\",le=\"+Inf\"} 3\n"));
	assert_true(prints(m, "_sum{method=\"GET\",path=\"/\",code=\"200\"} 100.014\n"));
	assert_true(prints(m, "_count{method=\"GET\",path=\"/\",code=\"200\"} 3\n"));
	metrics_free(m);
}

TEST(a_gauge_is_what_was_set_last)
{
	struct metrics *m = metrics_new();

	metrics_set(m, METRIC_CONNECTIONS, 7, NULL);
	metrics_set(m, METRIC_CONNECTIONS, 4503599627370497, NULL);
	assert_true(prints(m, "\nkiln_http_connections 4503599627370497\n") ||
		    prints(m, "\nkiln_http_connections 4.5035996273705e+15\n"));
	metrics_free(m);
}

TEST(values_of_labels_are_escaped)
{
	struct metrics *m = metrics_new();
	struct str l = STR("a\"b\\c\nd");

	metrics_add(m, METRIC_REFUSALS, 1, &l);
	assert_true(prints(m, "kiln_refusals_total{limit=\"a\\\"b\\\\c\\nd\"} 1\n"));
	metrics_free(m);
}

TEST(more_labels_than_may_be_are_counted_together)
{
	struct metrics *m = metrics_new();
	struct str other = STR("other");

	for (int i = 0; i < 5000; i++) {
		char name[16];
		struct str l = { name, (size_t)snprintf(name, sizeof(name), "l%d", i) };

		metrics_add(m, METRIC_REFUSALS, 1, &l);
	}
	assert_true(metrics_get(m, METRIC_REFUSALS, &other) == 3000);
	metrics_free(m);
}
