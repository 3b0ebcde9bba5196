#include "server/findings.h"

#include "test.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define SECOND INT64_C(1000000000)

static char dir[60];

static struct findings *opened(void)
{
	struct buf why = { 0 };
	struct findings *f = findings_open(dir, &why);

	if (why.n)
		fail_msg("%.*s", STR_ARG(buf_view(&why)));
	return f;
}

static struct findings *fresh(void)
{
	snprintf(dir, sizeof(dir), "/tmp/test_findings.XXXXXX");
	assert_non_null(mkdtemp(dir));
	return opened();
}

static void done(struct findings *f)
{
	char path[100];

	findings_free(f);
	snprintf(path, sizeof(path), "%s/regressions.json", dir);
	unlink(path);
	rmdir(dir);
}

static struct finding sample(const char *function, const char *version)
{
	return (struct finding){ .kind = *version ? STR("version") : STR("window"),
				 .service = STR("shop"),
				 .type = STR("cpu"),
				 .function = str_of(function),
				 .new_version = str_of(version),
				 .change = 0.25,
				 .changed = 5 * SECOND };
}

TEST(one_that_is_found_again_is_the_same)
{
	struct findings *f = fresh();
	struct finding x = sample("f\"<>\xff", "2"), got;
	struct arena a = { 0 };
	char first[17], again[17];
	struct err e;

	assert_true(findings_note(f, &x, 10 * SECOND, 0, first));
	assert_true(findings_say(f, str_of(first), STR("expected"), STR("eve"), &STR("why"),
				 11 * SECOND, &e));
	x.change = 0.5;
	x.changed = 6 * SECOND;
	assert_false(findings_note(f, &x, 20 * SECOND, 0, again));
	assert_string_equal(first, again);
	assert_true(findings_get(f, str_of(first), &a, &got));
	assert_true(got.change == 0.5 && got.changed == 5 * SECOND && got.found == 10 * SECOND &&
		    got.seen == 20 * SECOND && got.status_at == 11 * SECOND);
	assert_true(str_eq(got.status, STR("expected")) && str_eq(got.status_by, STR("eve")) &&
		    str_eq(got.note, STR("why")));
	x = sample("f", "3");
	assert_true(findings_note(f, &x, 20 * SECOND, 0, again));
	arena_release(&a);
	done(f);
}

TEST(a_note_stays_until_another_is_given)
{
	struct findings *f = fresh();
	struct finding x = sample("f", "2"), got;
	struct str why = STR("why"), none = STR("");
	struct arena a = { 0 };
	char id[17];
	struct err e;

	findings_note(f, &x, 10 * SECOND, 0, id);
	assert_true(
		findings_say(f, str_of(id), STR("expected"), STR("eve"), &why, 11 * SECOND, &e));
	assert_true(findings_say(f, str_of(id), STR("fixed"), STR("ann"), NULL, 12 * SECOND, &e));
	assert_true(findings_get(f, str_of(id), &a, &got));
	assert_true(str_eq(got.status, STR("fixed")) && str_eq(got.note, why));
	assert_true(findings_say(f, str_of(id), STR("fixed"), STR("ann"), &none, 13 * SECOND, &e));
	assert_true(findings_get(f, str_of(id), &a, &got));
	assert_true(!got.note.n);
	arena_release(&a);
	done(f);
}

TEST(of_windows_it_is_another_one_after_a_while)
{
	struct findings *f = fresh();
	struct finding x = sample("f", "");
	char first[17], again[17];

	assert_true(findings_note(f, &x, 10 * SECOND, 0, first));
	assert_false(findings_note(f, &x, 20 * SECOND, 10 * SECOND, again));
	assert_true(findings_note(f, &x, 40 * SECOND, 30 * SECOND, again));
	assert_string_not_equal(first, again);
	done(f);
}

TEST(what_a_comparison_has_not_is_not_current)
{
	struct findings *f = fresh();
	struct finding x = sample("f", "2"), y = sample("g", "2"), *list;
	struct arena a = { 0 };
	char first[17], id[1][17];
	size_t n;

	/* Whatever the clock says meanwhile. */
	findings_note(f, &x, 30 * SECOND, 0, first);
	findings_note(f, &y, 20 * SECOND, 0, id[0]);
	findings_settle(f, STR("shop"), STR("cpu"), STR("version"), id, 1);
	findings_settle(f, STR("shop"), STR("heap"), STR("version"), NULL, 0);
	findings_list(f, &a, &list, &n);
	assert_int_equal(n, 2);
	assert_true(str_eq(list[0].function, STR("g")) && list[0].current);
	assert_true(str_eq(list[1].function, STR("f")) && !list[1].current);
	assert_true(findings_has_version(f, STR("shop"), STR("cpu"), STR("f"), 5 * SECOND));
	assert_false(findings_has_version(f, STR("shop"), STR("cpu"), STR("f"), 6 * SECOND));
	arena_release(&a);
	done(f);
}

TEST(the_file_has_all_of_it)
{
	struct findings *f = fresh();
	struct finding x = sample("f\"<>\n", "2"), *list;
	struct buf before = { 0 }, after = { 0 };
	struct arena a = { 0 };
	struct err e;
	char id[17];
	size_t n;

	findings_note(f, &x, 10 * SECOND, 0, id);
	findings_set_webhook(f, str_of(id), STR("sent"));
	assert_true(findings_save(f, &e));
	findings_list(f, &a, &list, &n);
	finding_json(&before, &list[0]);
	findings_free(f);
	f = opened();
	findings_list(f, &a, &list, &n);
	assert_int_equal(n, 1);
	finding_json(&after, &list[0]);
	assert_true(str_eq(buf_view(&before), buf_view(&after)));
	buf_release(&before);
	buf_release(&after);
	arena_release(&a);
	done(f);
}

TEST(too_many_make_room)
{
	struct findings *f = fresh();
	struct finding *list;
	struct arena a = { 0 };
	char id[17], name[20];
	size_t n;

	for (int i = 0; i <= FINDINGS_MAX; i++) {
		struct finding x;

		snprintf(name, sizeof(name), "f%d", i);
		x = sample(name, "2");
		findings_note(f, &x, (i + 1) * SECOND, 0, id);
	}
	findings_list(f, &a, &list, &n);
	assert_true(n < FINDINGS_MAX && n > FINDINGS_MAX / 2);
	assert_true(str_eq(list[0].function, str_of(name)));
	assert_false(findings_has_version(f, STR("shop"), STR("cpu"), STR("f0"), 0));
	arena_release(&a);
	done(f);
}

static void path_of(char path[100], const char *name)
{
	snprintf(path, 100, "%s/%s", dir, name);
}

/* Names whose every byte takes six in the file: what does not fit goes, and the rest can be read.
 */
TEST(the_file_stays_as_short_as_can_be_read)
{
	struct findings *f = fresh();
	struct finding *list;
	struct arena a = { 0 };
	char id[17], name[4097];
	struct err e;
	size_t n, again;

	memset(name, 1, sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	for (int i = 0; i < FINDINGS_MAX; i++) {
		struct finding x;

		snprintf(name, 12, "%09d", i);
		name[9] = 1;
		x = sample(name, "2");
		findings_note(f, &x, (i + 1) * SECOND, 0, id);
	}
	assert_true(findings_save(f, &e));
	findings_list(f, &a, &list, &n);
	assert_true(n > 1000);
	assert_true(str_eq(list[0].function, str_of(name)));
	findings_free(f);
	f = opened();
	findings_list(f, &a, &list, &again);
	assert_int_equal(n, again);
	arena_release(&a);
	done(f);
}

static void write_file(const char *name, const char *text)
{
	char path[100];
	FILE *file;

	path_of(path, name);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static void assert_file(const char *name, const char *want)
{
	char path[100], got[100] = "";
	FILE *file;

	path_of(path, name);
	file = fopen(path, "r");
	assert_non_null(file);
	assert_true(fgets(got, sizeof(got), file));
	fclose(file);
	assert_string_equal(got, want);
	unlink(path);
}

TEST(one_that_is_damaged_takes_no_others_place)
{
	struct findings *f = fresh();
	struct buf why = { 0 };

	findings_free(f);
	write_file("regressions.json.damaged", "first");
	write_file("regressions.json", "second");
	f = findings_open(dir, &why);
	assert_non_null(strstr(buf_view(&why).p, "damaged.1"));
	assert_file("regressions.json.damaged", "first");
	assert_file("regressions.json.damaged.1", "second");
	buf_release(&why);
	done(f);
}

TEST(one_that_cannot_be_read_is_left_alone)
{
	struct findings *f = fresh();
	struct finding x = sample("f", "2");
	struct buf why = { 0 };
	char path[100], id[17];
	struct err e;

	findings_free(f);
	path_of(path, "regressions.json");
	assert_int_equal(symlink(path, path), 0); /* to itself: ELOOP */
	f = findings_open(dir, &why);
	assert_true(why.n > 0);
	findings_note(f, &x, 10 * SECOND, 0, id);
	assert_false(findings_save(f, &e));
	buf_release(&why);
	done(f);
}

static bool reads(const char *text)
{
	struct arena a = { 0 };
	struct finding x;
	struct json doc;
	struct err e;
	bool ok = json_parse(&a, str_of(text), &doc, &e) && finding_read(&doc, &x, &e);

	arena_release(&a);
	return ok;
}

TEST(fields_of_other_types_are_refused)
{
	assert_true(reads("{\"id\":\"0123456789abcdef\",\"service\":\"s\",\"function\":\"f\"}"));
	assert_false(reads("{\"id\":\"0123456789abcdef\",\"service\":\"s\"}"));
	assert_false(reads("{\"id\":\"0123\",\"service\":\"s\",\"function\":\"f\"}"));
	assert_false(reads("{\"id\":\"0123456789abcdef\",\"service\":1,\"function\":\"f\"}"));
	assert_false(reads("{\"id\":\"0123456789abcdef\",\"service\":\"s\",\"function\":\"f\","
			   "\"found\":\"soon\"}"));
	assert_false(reads("{\"id\":\"0123456789abcdef\",\"service\":\"s\",\"function\":\"f\","
			   "\"change\":\"1\"}"));
	assert_false(reads("[]"));
}

TEST(ids_are_hex_digits)
{
	/* Bytes that are no UTF-8 would be written as others, and be an id no more. */
	static const char *const texts[] = {
		"{\"id\":\"0123456789abcdef\",\"service\":\"s\",\"function\":\"f\"}",
		"{\"id\":\"0123456789abcde\xff\",\"service\":\"s\",\"function\":\"f\"}",
		"{\"id\":\"0123456789abcde\",\"service\":\"s\",\"function\":\"f\"}",
	};
	struct arena a = { 0 };
	struct finding x;
	struct json doc;
	struct err e;

	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		assert_true(json_parse(&a, str_of(texts[i]), &doc, &e));
		assert_int_equal(finding_read(&doc, &x, &e), i == 0);
	}
	arena_release(&a);
}
