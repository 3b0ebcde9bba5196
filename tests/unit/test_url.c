#include "test.h"

#include <stdio.h>

#include "fetch/collect.h"
#include "fetch/url.h"

static struct arena arena;

/* What is asked of the server for a source; "" if it cannot be a URL. */
static void check(const char *source, const char *want)
{
	struct url_source got;

	if (!url_resolve(&arena, str_of(source), -1, -1, &got))
		got.url = str_dup(&arena, STR(""));
	assert_string_equal(got.url, want);
	arena_release(&arena);
}

TEST(a_socket_makes_a_url)
{
	check("unix:/run/a.sock", "unix:/run/a.sock:/debug/pprof/profile");
	check("unix:/run/a.sock:/", "unix:/run/a.sock:/debug/pprof/profile");
	check("unix:/run/a.sock?seconds=3", "unix:/run/a.sock:/debug/pprof/profile?seconds=3");
	check("unix:/run/a.sock:/debug/pprof/heap?b=1&a=2",
	      "unix:/run/a.sock:/debug/pprof/heap?a=2&b=1");
	check("unix:/run/a b:/x?:/y", "unix:/run/a b:/x?%3A%2Fy=");
	check("unix:/a:/%zz", "");
	check("unix:80/x", "http://unix:80/x");
}

TEST(a_host_makes_a_url)
{
	check("http://h/x", "http://h/x");
	check("HTTPS://h:443/x", "https://h:443/x");
	check("https+insecure://h/x", "https+insecure://h/x");
	check("host:6060/x", "http://host:6060/x");
	check("127.0.0.1:80/x", "http://127.0.0.1:80/x");
	check("[::1]:80/x", "http://[::1]:80/x");
	check("//h/x", "//h/x");
	check("ftp://h/x", "ftp://h/x");
	check("file://go/x", "file://go/x");
	check("http://u:p%40@h/x", "http://u:p%40@h/x");
}

TEST(what_has_no_host_is_a_file)
{
	check("", "");
	check("host", "");
	check("dir/file", "");
	check("/tmp/x", "");
	check("http://", "http://http://");
	check("file:///x", "");
	check("///x", "");
	check("a\nb:1/x", "");
	check("http://a%zz/x", "");
	check("http://h:x/", "http://http://h:x/"); /* so does Go */
	check("http://[::1/", "http://http://[::1/");
}

TEST(a_root_means_the_cpu_profile)
{
	check("host:6060", "http://host:6060/debug/pprof/profile");
	check("http://h", "http://h/debug/pprof/profile");
	check("http://h/", "http://h/debug/pprof/profile");
	check("http://h?seconds=5", "http://h/debug/pprof/profile?seconds=5");
}

TEST(paths_stay_as_they_were_if_they_are_right)
{
	check("http://h/a b", "http://h/a%20b");
	check("http://h/a%20b", "http://h/a%20b");
	check("http://h/%41", "http://h/%41");
	check("http://h/%41 ", "http://h/A%20");
	check("http://h/[x]/../y", "http://h/[x]/../y");
	check("http://h/\xc3\xbc", "http://h/%C3%BC");
	check("http://h/x#a%20b", "http://h/x#a%20b");
}

TEST(queries_are_sorted)
{
	check("http://h/x?b=2&a=1&b=1", "http://h/x?a=1&b=2&b=1");
	check("http://h/x?", "http://h/x?");
	check("http://h/x?a", "http://h/x?a=");
	check("http://h/x?a=b+c%20d/", "http://h/x?a=b+c+d%2F");
	check("http://h/x?a=1;b=2&c=3", "http://h/x?c=3");
	check("http://h/x?a=%zz&c=3", "http://h/x?c=3");
	check("http://h/x??", "http://h/x?%3F=");
}

static void check_times(const char *source, int64_t seconds, int64_t timeout,
			const struct url_source *want)
{
	struct url_source got;

	assert_true(url_resolve(&arena, str_of(source), seconds, timeout, &got));
	assert_string_equal(got.url, want->url);
	assert_int_equal(got.seconds, want->seconds);
	assert_int_equal(got.timeout_ms, want->timeout_ms);
	arena_release(&arena);
}

TEST(the_timeout_follows_from_the_seconds)
{
	char plain[] = "http://h/x", five[] = "http://h/x?seconds=5",
	     bad[] = "http://h/x?seconds=no";
	char cpu[] = "http://h/debug/pprof/profile";
	char bare[] = "http://h:1/debug/pprof/profile";

	check_times(plain, -1, -1, &(struct url_source){ plain, 0, 65000 });
	check_times(plain, 5, -1, &(struct url_source){ five, 5, 12000 });
	check_times(five, -1, -1, &(struct url_source){ five, 5, 12000 });
	check_times("http://h/x?seconds=9", 5, 2, &(struct url_source){ five, 5, 7000 });
	check_times(bad, 0, 0, &(struct url_source){ bad, 0, 65000 });
	/* what servers do when they are not told */
	check_times("h:1", 0, 0, &(struct url_source){ bare, 30, 65000 });
	check_times(cpu, 0, 1, &(struct url_source){ cpu, 30, 6000 });
}

TEST(no_number_is_too_large)
{
	struct url_source got;

	assert_true(url_resolve(&arena, STR("h:1"), INT64_MAX, INT64_MAX, &got));
	assert_true(got.timeout_ms > 0 && got.seconds > 0);
	assert_true(url_resolve(&arena, STR("h:1/?seconds=-5"), 0, 0, &got));
	assert_int_equal(got.timeout_ms, 65000);
	arena_release(&arena);
}

static void check_target(const char *text, const char *service, const char *url)
{
	struct collect_target t;
	struct err e;

	assert_true(collect_target_parse(&arena, text, &t, &e));
	assert_string_equal(t.service, service);
	assert_string_equal(t.url, url);
	arena_release(&arena);
}

TEST(targets)
{
	struct collect_target t;
	struct err e;

	check_target("h:1", "h_1", "http://h:1/debug/pprof");
	check_target("http://h:1/", "h_1", "http://h:1/debug/pprof");
	check_target("http://h:1/debug/pprof/", "h_1", "http://h:1/debug/pprof");
	check_target("http://h:1/debug/pprof/heap?debug=1", "h_1", "http://h:1/debug/pprof");
	check_target("https://h/api/", "h", "https://h/api/debug/pprof");
	check_target("shop=h:1", "shop", "http://h:1/debug/pprof");
	check_target("http://[::1]:1", "___1__1", "http://[::1]:1/debug/pprof");
	check_target("http://h:1/?a=b", "h_1", "http://h:1/debug/pprof");
	assert_false(collect_target_parse(&arena, "h", &t, &e));
	assert_false(collect_target_parse(&arena, "", &t, &e));
	arena_release(&arena);
}
