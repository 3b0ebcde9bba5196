#include "kube/inside.h"

#include "test.h"

#include <stdio.h>

static const char web[] =
	"{\"metadata\":{\"name\":\"web-5d4f-x\",\"namespace\":\"shop\",\"uid\":\"u-1\","
	"\"resourceVersion\":\"42\",\"labels\":{\"app\":\"web\",\"pod-template-hash\":\"5d4f\"},"
	"\"annotations\":{\"a\":\"1\",\"n\":7},\"managedFields\":[{\"x\":{\"y\":[1,2]}}],"
	"\"ownerReferences\":[{\"kind\":\"Other\",\"name\":\"o\"},"
	"{\"kind\":\"ReplicaSet\",\"name\":\"web-5d4f\",\"controller\":true}]},"
	"\"spec\":{\"nodeName\":\"n1\",\"containers\":[{\"name\":\"main\",\"image\":\"shop:1\","
	"\"ports\":[{\"name\":\"http\",\"containerPort\":8080},{\"containerPort\":99999}]},"
	"{\"name\":\"side\",\"image\":\"s\"}]},"
	"\"status\":{\"phase\":\"Running\",\"podIP\":\"10.0.0.7\",\"hostIP\":\"10.1.0.1\","
	"\"containerStatuses\":[{\"name\":\"side\",\"ready\":false},{\"name\":\"main\",\"ready\":"
	"true}]}}";

TEST(a_pod_is_what_is_wanted_of_it)
{
	struct arena a = { 0 };
	struct kube_pod p;
	struct err e;

	assert_true(pods_read_one(&a, str_of(web), &p, &e));
	assert_true(str_eq(p.name, STR("web-5d4f-x")));
	assert_true(str_eq(p.namespace, STR("shop")));
	assert_true(str_eq(p.uid, STR("u-1")));
	assert_true(str_eq(p.ip, STR("10.0.0.7")));
	assert_true(str_eq(p.node, STR("n1")));
	assert_true(str_eq(p.host_ip, STR("10.1.0.1")));
	assert_true(str_eq(p.owner_kind, STR("Deployment")));
	assert_true(str_eq(p.owner, STR("web")));
	assert_true(p.is_running);
	assert_int_equal(p.nannotations, 1);
	assert_true(str_eq(kube_pod_annotation(&p, "a"), STR("1")));
	assert_true(str_eq(kube_pod_annotation(&p, "n"), STR("")));
	assert_true(str_eq(kube_pod_label(&p, "app"), STR("web")));
	assert_int_equal(p.ncontainers, 2);
	assert_true(str_eq(p.containers[0].image, STR("shop:1")));
	assert_int_equal(p.containers[0].nports, 1);
	assert_int_equal(p.containers[0].ports[0].number, 8080);
	assert_true(p.containers[0].is_ready);
	assert_false(p.containers[1].is_ready);
	arena_release(&a);
}

static bool is_running(const char *text)
{
	struct arena a = { 0 };
	struct kube_pod p;
	struct err e;
	bool ok = pods_read_one(&a, str_of(text), &p, &e), running = ok && p.is_running;

	arena_release(&a);
	assert_true(ok);
	return running;
}

TEST(who_is_about_to_go_does_not_run)
{
	assert_true(
		is_running("{\"status\":{\"phase\":\"Running\"},\"metadata\":{\"name\":\"a\"}}"));
	assert_false(
		is_running("{\"status\":{\"phase\":\"Pending\"},\"metadata\":{\"name\":\"a\"}}"));
	assert_false(is_running("{\"status\":{\"phase\":\"Running\"},\"metadata\":{\"name\":\"a\","
				"\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"}}"));
	assert_false(is_running("{\"status\":null,\"spec\":[],\"metadata\":{\"name\":\"a\"}}"));
}

TEST(what_is_large_is_left_out)
{
	struct buf text = { 0 };
	struct arena a = { 0 };
	struct kube_pod p;
	struct err e;

	buf_puts(&text, "{\"metadata\":{\"name\":\"a\",\"annotations\":{\"big\":\"");
	buf_fill(&text, 'x', 5000);
	buf_puts(&text, "\",\"small\":\"s\"");
	for (int i = 0; i < 100; i++) {
		buf_printf(&text, ",\"k%d\":\"", i);
		buf_fill(&text, 'y', 4000);
		buf_char(&text, '"');
	}
	buf_puts(&text, "}}}");
	assert_true(pods_read_one(&a, buf_view(&text), &p, &e));
	assert_int_equal(p.nannotations, 17);
	assert_true(str_eq(kube_pod_annotation(&p, "small"), STR("s")));
	assert_true(str_eq(kube_pod_annotation(&p, "big"), STR("")));
	arena_release(&a);
	buf_release(&text);
}

/* ---- lists */

static bool count(void *ctx, const struct pod_item *item)
{
	int *n = ctx;

	assert_true(item->pod.name.n > 0);
	return ++*n < 3;
}

static struct pod_page page;

static bool read_page(const char *text, int *n, struct err *e)
{
	*n = 0;
	return pods_read_page(str_of(text), count, n, &page, e);
}

TEST(a_page_says_where_the_next_one_is)
{
	struct err e;
	int n;

	assert_true(read_page("{\"kind\":\"PodList\",\"metadata\":{\"resourceVersion\":\"7\","
			      "\"continue\":\"more\"},\"items\":[{\"metadata\":{\"name\":\"a\"}},"
			      "{\"metadata\":{\"name\":\"b\"}}]}",
			      &n, &e));
	assert_int_equal(n, 2);
	assert_true(str_eq(buf_view(&page.version), STR("7")));
	assert_true(str_eq(buf_view(&page.next), STR("more")));
	assert_false(page.is_ended);
	assert_true(read_page("{\"items\":null,\"metadata\":{\"resourceVersion\":\"8\"}}", &n, &e));
	assert_int_equal(n, 0);
	assert_int_equal(page.next.n, 0);
	/* Whoever has enough need not hear the rest. */
	assert_true(read_page("{\"items\":[{\"metadata\":{\"name\":\"a\"}},{\"metadata\":{\"name\":"
			      "\"a\"}},{\"metadata\":{\"name\":\"a\"}},{\"metadata\":{\"name\":",
			      &n, &e));
	assert_true(page.is_ended);
	buf_release(&page.version);
	buf_release(&page.next);
}

TEST(what_is_no_list_is_refused)
{
	static const char *const texts[] = {
		"",
		"[]",
		"{}",
		"{\"items\":[]}",
		"{\"metadata\":{\"resourceVersion\":\"7\"},\"items\":[{\"metadata\":{}]}",
		"{\"metadata\":{\"resourceVersion\":\"7\"}} x",
		"{\"metadata\":{\"resourceVersion\":7}}",
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		struct err e;
		int n;

		assert_false(read_page(texts[i], &n, &e));
		assert_int_equal(e.kind, ERR_FORMAT);
		assert_non_null(strstr(e.text, "this is no list of pods"));
	}
	buf_release(&page.version);
	buf_release(&page.next);
}

/* ---- watches */

TEST(events_of_a_watch)
{
	struct arena a = { 0 };
	struct pod_event event;
	struct buf line = { 0 };
	struct err e;

	buf_printf(&line, "{\"object\":%s,\"type\":\"ADDED\"}", web);
	assert_true(pods_read_event(&a, buf_view(&line), &event, &e));
	assert_int_equal(event.kind, POD_IS);
	assert_true(str_eq(event.item.version, STR("42")));
	assert_true(str_eq(event.item.pod.node, STR("n1")));
	assert_true(pods_read_event(&a,
				    STR("{\"type\":\"DELETED\",\"object\":{\"metadata\":{\"name\":"
					"\"a\",\"resourceVersion\":\"9\"}}}"),
				    &event, &e));
	assert_int_equal(event.kind, POD_GONE);
	assert_true(pods_read_event(&a,
				    STR("{\"type\":\"BOOKMARK\",\"object\":{\"kind\":\"Pod\","
					"\"metadata\":{\"resourceVersion\":\"12746\"}}}"),
				    &event, &e));
	assert_int_equal(event.kind, POD_BOOKMARK);
	assert_true(str_eq(event.item.version, STR("12746")));
	assert_true(pods_read_event(
		&a,
		STR("{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\","
		    "\"message\":\"too old\",\"reason\":\"Expired\",\"code\":410}}"),
		&event, &e));
	assert_int_equal(event.kind, POD_ERROR);
	assert_int_equal(event.code, 410);
	assert_true(str_eq(event.message, STR("too old")));
	arena_release(&a);
	buf_release(&line);
}

TEST(what_is_no_event_is_refused)
{
	static const char *const lines[] = {
		"",
		"{}",
		"{\"type\":\"NEW\",\"object\":{}}",
		"{\"type\":\"ADDED\"}",
		"{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a\"}}}",
		"{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"resourceVersion\":\"1\"}}}",
		"{\"type\":\"ADDED\",\"object\":[[[[}",
		"{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{}}}",
	};

	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		struct arena a = { 0 };
		struct pod_event event;
		struct err e;

		assert_false(pods_read_event(&a, str_of(lines[i]), &event, &e));
		arena_release(&a);
	}
}

/* ---- paths and frames */

TEST(paths_are_escaped)
{
	struct buf out = { 0 };

	kube_proxy_path(&out, "shop", "web-1", "https", 8080, "/debug/pprof/heap?seconds=1");
	assert_true(str_eq(buf_view(&out), STR("/api/v1/namespaces/shop/pods/https:web-1:8080/proxy"
					       "/debug/pprof/heap?seconds=1")));
	out.n = 0;
	kube_proxy_path(&out, "a/b", "c?d", "", 1, "x");
	assert_true(str_eq(buf_view(&out), STR("/api/v1/namespaces/a%2Fb/pods/c%3Fd:1/proxy/x")));
	out.n = 0;
	pods_put_path(&out, &(struct kube_query){ .selector = "a=b,c in (d)" });
	assert_true(
		str_eq(buf_view(&out), STR("/api/v1/pods?labelSelector=a%3Db%2Cc+in+%28d%29&")));
	buf_release(&out);
}

static int frame_of(const char *bytes, size_t n, struct frame *f)
{
	struct err e;

	return frame_read((struct str){ bytes, n }, f, &e);
}

TEST(frames_are_bounded)
{
	struct frame f;

	assert_int_equal(frame_of("\x82", 1, &f), 0);
	assert_int_equal(frame_of("\x82\x03"
				  "ab",
				  4, &f),
			 0);
	assert_int_equal(frame_of("\x82\x03"
				  "abc",
				  5, &f),
			 1);
	assert_true(f.is_last);
	assert_int_equal(f.opcode, 2);
	assert_int_equal(f.body_bytes, 3);
	assert_int_equal(frame_of("\x82\x7e\x00\x80", 4, &f), 0);
	assert_int_equal(f.body_bytes, 128);
	assert_int_equal(frame_of("\x82\x7f\xff\xff\xff\xff\xff\xff\xff\xff", 10, &f), -1);
	assert_int_equal(frame_of("\x82\x83", 2, &f), -1);	   /* servers do not mask */
	assert_int_equal(frame_of("\xc2\x01", 2, &f), -1);	   /* no extension was agreed on */
	assert_int_equal(frame_of("\x89\x7e\x00\x80", 4, &f), -1); /* a ping is small */
}
