/* The server's options from a file and from the environment. */
#include "test.h"

#include <stdio.h>

#include "server/keep_rules.h"
#include "server/options.h"

struct read {
	struct server_options options;
	struct arena arena;
	struct err e;
	bool ok;
};

static struct read read_yaml(const char *text)
{
	struct read r = { .options = server_defaults };

	r.ok = config_read(&r.options, &r.arena, str_of(text), &r.e);
	return r;
}

static void assert_fails(const char *text, const char *why)
{
	struct read r = read_yaml(text);

	assert_false(r.ok);
	assert_string_equal(r.e.text, why);
	arena_release(&r.arena);
}

TEST(keys_are_flags)
{
	struct read r = read_yaml("# where\n"
				  "data: /var/lib/kiln\n"
				  "listen: \":10100\"\n"
				  "max-memory: 2GB\n"
				  "exit_timeout: 1h30m\n"
				  "access-log: no\n"
				  "max-series: 7\n");

	assert_true(r.ok);
	assert_string_equal(r.options.data, "/var/lib/kiln");
	assert_string_equal(r.options.listen, ":10100");
	assert_int_equal(r.options.max_memory, INT64_C(2) << 30);
	assert_int_equal(r.options.exit_timeout, INT64_C(5400) * 1000000000);
	assert_false(r.options.access_log);
	assert_int_equal(r.options.max_series, 7);
	arena_release(&r.arena);
}

TEST(nested_keys_are_joined)
{
	struct read r = read_yaml("keep:\n  raw: 1d\n  minute: 2d\nmax: {disk: 1GB, series: 5}\n");

	assert_true(r.ok);
	assert_int_equal(r.options.keep_raw, INT64_C(86400) * 1000000000);
	assert_int_equal(r.options.keep_minute, INT64_C(2) * 86400 * 1000000000);
	assert_int_equal(r.options.max_disk, 1 << 30);
	assert_int_equal(r.options.max_series, 5);
	arena_release(&r.arena);
}

TEST(owners_are_a_list_of_rules)
{
	struct read r = read_yaml("owners:\n"
				  "  - {match: '^a{1,3}[,=@]', owner: team a}\n"
				  "  - owner: storage\n"
				  "    service: ^db-\n"
				  "  - {service: '^db', owner: db, match: ^pread}\n"
				  "data: x\n");

	assert_true(r.ok);
	assert_string_equal(r.options.owners,
			    "team a=^a{1,3}[,=@]\nstorage@^db-=\ndb@^db=^pread\n");
	assert_string_equal(r.options.data, "x");
	arena_release(&r.arena);
	assert_fails("owners: [a]\n", "line 1: owners are a list of  {match: REGEXP, owner: NAME}");
	assert_fails("owners:\n - {owner: x}\n", "line 2: a rule has match, service or both");
	assert_fails("owners:\n - {match: x}\n", "line 2: an owner is a name of up to 100 bytes");
	assert_fails("owners:\n - {owner: a@b, match: x}\n",
		     "line 2: the name of an owner has no @ and no =");
	assert_fails("owners:\n - {owner: a, service: b=c}\n",
		     "line 2: the pattern of a service has no =: write \\x3d");
	assert_fails("owners:\n - {owner: a, match: \"b\\nc\"}\n",
		     "line 2: a pattern is on one line");
	assert_fails("owners:\n - {owner: a, matches: b}\n",
		     "line 2: \"matches\" is none of owner, match and service");
	assert_fails("owners:\n - {owner: a, match: b, match: c}\n", "line 2: match is set twice");
	assert_fails("owners:\n - {owner: [a], match: b}\n",
		     "line 2: owner, match and service are texts");
}

TEST(lists_become_commas)
{
	struct read r = read_yaml("data:\n- a\n- b\n");

	assert_true(r.ok);
	assert_string_equal(r.options.data, "a,b");
	arena_release(&r.arena);
}

TEST(an_empty_file_changes_nothing)
{
	static const char *const empty[] = { "", "\n", "# nothing\n", "---\n", "---\n...\n", "{}" };

	for (size_t i = 0; i < sizeof(empty) / sizeof(*empty); i++) {
		struct read r = read_yaml(empty[i]);

		assert_true(r.ok);
		assert_memory_equal(&r.options, &server_defaults, sizeof(server_defaults));
		arena_release(&r.arena);
	}
}

TEST(a_value_that_is_empty_is_not_set)
{
	struct read r = read_yaml("max-memory:\nmax-series: ~\n");

	assert_true(r.ok);
	assert_int_equal(r.options.max_memory, server_defaults.max_memory);
	assert_int_equal(r.options.max_series, server_defaults.max_series);
	arena_release(&r.arena);
}

TEST(errors_name_the_line)
{
	assert_fails("data: x\nmax-memroy: 2GB\n",
		     "line 2: there is no option \"max-memroy\"; kiln serve --help lists them");
	assert_fails("keep:\n  weekly: 1d\n",
		     "line 2: there is no option \"keep-weekly\"; kiln serve --help lists them");
	assert_fails("\n\nmax-memory: lots\n",
		     "line 3: max-memory: lots: not a size such as 64MB or 2GB");
	assert_fails("data: a\ndata: b\n", "line 2: data is set twice");
	assert_fails("config: other.yaml\n",
		     "line 1: there is no option \"config\"; kiln serve --help lists them");
	assert_fails("- data\n", "line 1: options are written as  name: value");
	assert_fails("data\n", "line 1: options are written as  name: value");
	assert_fails("data: [[a]]\n", "line 1: a list of data has texts only");
	assert_fails("data: &x a\nlisten: *x\n", "line 2: listen: aliases are not understood");
	assert_fails("? [a]\n: b\n", "line 1: the name of an option is a word");
}

TEST(broken_yaml_is_an_error_with_a_line)
{
	static const char *const broken[] = { "data: x\n\tlisten: y\n",
					      "data: \"x\n",
					      "{",
					      "a: b: c\n",
					      "data: x\n  listen: y\n",
					      "data: \xff\xfe\n",
					      "%YAML 9\n---\n" };

	for (size_t i = 0; i < sizeof(broken) / sizeof(*broken); i++) {
		struct read r = read_yaml(broken[i]);

		assert_false(r.ok);
		assert_non_null(strstr(r.e.text, "line "));
		arena_release(&r.arena);
	}
}

TEST(what_is_nested_deep_is_refused)
{
	struct buf text = { 0 };
	struct read r;

	for (int i = 0; i < 1000; i++)
		buf_puts(&text, "{a: ");
	buf_char(&text, '\0');
	r = read_yaml(text.p);
	assert_false(r.ok);
	assert_non_null(strstr(r.e.text, "nested too deep"));
	arena_release(&r.arena);
	buf_release(&text);
}

TEST(a_file_that_is_not_there_is_named)
{
	struct server_options o = server_defaults;
	struct arena a = { 0 };
	struct err e;

	assert_false(config_read_file(&o, &a, "/nowhere/kiln.yaml", &e));
	assert_string_equal(e.text, "open /nowhere/kiln.yaml: no such file or directory");
	arena_release(&a);
}

static bool read_environment(struct server_options *o, struct arena *a, const char *variable,
			     struct err *e)
{
	char path[] = "PATH=/bin", copy[200], *environment[] = { path, copy, NULL };

	strcpy(copy, variable);
	*o = server_defaults;
	return config_read_environment(o, a, environment, e);
}

TEST(the_environment_sets_options)
{
	struct server_options o;
	struct arena a = { 0 };
	struct err e;

	assert_true(read_environment(&o, &a, "KILN_SERVE_MAX_MEMORY=3GB", &e));
	assert_int_equal(o.max_memory, INT64_C(3) << 30);
	assert_true(read_environment(&o, &a, "KILN_SERVE_DATA=/x=y", &e));
	assert_string_equal(o.data, "/x=y");
	assert_true(read_environment(&o, &a, "KILN_OTHER=1", &e));
	assert_false(read_environment(&o, &a, "KILN_SERVE_MAX_MEMROY=3GB", &e));
	assert_string_equal(e.text,
			    "environment variable KILN_SERVE_MAX_MEMROY: there is no such option");
	assert_false(read_environment(&o, &a, "KILN_SERVE_MAX_MEMORY=much", &e));
	assert_string_equal(e.text,
			    "environment variable KILN_SERVE_MAX_MEMORY=much: not a size such as "
			    "64MB or 2GB");
	arena_release(&a);
}

TEST(names_of_variables_are_those_of_flags)
{
	struct buf name = { 0 };

	config_variable(&name, option_find(&server_option_table, STR("exit-timeout")));
	assert_true(str_eq(buf_view(&name), STR("KILN_SERVE_EXIT_TIMEOUT")));
	buf_release(&name);
}

/* They end up in C strings, in the environment, in YAML. */
TEST(no_option_is_named_twice)
{
	const struct option_table *t = &server_option_table;

	for (size_t i = 0; i < t->n; i++) {
		assert_ptr_equal(option_find(t, str_of(t->at[i].name)), &t->at[i]);
		assert_null(strchr(t->at[i].name, '_'));
		if (*t->at[i].key)
			assert_ptr_equal(option_find_key(t, str_of(t->at[i].key)), &t->at[i]);
	}
}

TEST(a_folder_must_be_given)
{
	struct server_options o = server_defaults;
	struct err e;

	assert_false(server_options_check(&o, &e));
	assert_non_null(strstr(e.text, "--data"));
	o.data = "x";
	assert_true(server_options_check(&o, &e));
	o.max_series = -1;
	assert_false(server_options_check(&o, &e));
	assert_string_equal(e.text, "--max-series must not be below 0");
}

static const char *rules_text(const char *text)
{
	static char out[1200];
	struct arena a = { 0 };
	struct store_rule *rules;
	size_t n, used = 0;
	struct err e;

	if (!keep_rules_parse(&a, str_of(text), &rules, &n, &e))
		n = 0, snprintf(out, sizeof(out), "%s", e.text);
	else
		out[0] = '\0';
	for (size_t i = 0; i < n; i++)
		used += (size_t)snprintf(out + used, sizeof(out) - used,
					 "%.*s %lld %lld %lld %lld|", STR_ARG(rules[i].service),
					 (long long)(rules[i].raw_ns / 1000000000),
					 (long long)rules[i].minute_ns, (long long)rules[i].hour_ns,
					 (long long)(rules[i].day_ns / 1000000000));
	arena_release(&a);
	return out;
}

TEST(rules_of_services)
{
	assert_string_equal(rules_text(""), "");
	assert_string_equal(rules_text("batch-*:raw=2s,day=1m,a:b:raw=0"),
			    "batch-* 2 -1 -1 60|a:b 0 -1 -1 0|");
	/* what is set twice is another rule, and the first one holds */
	assert_string_equal(rules_text("a:raw=1s,a:day=2s,a:raw=3s"), "a 1 -1 -1 2|a 3 -1 -1 0|");
	assert_string_equal(rules_text("a:raw=1s,raw=2s"), "raw of a is given twice");
	assert_string_equal(rules_text("a:week=1s"),
			    "\"week=1s\" is none of raw=AGE, minute=AGE, hour=AGE and day=AGE");
	assert_string_equal(
		rules_text("raw=1s"),
		"a rule is written as SERVICE:raw=2d,day=365d, and in \"raw=1s\" there is "
		"no service");
	assert_non_null(strstr(rules_text("a:raw=many"), "raw=many"));
}

TEST(rules_in_a_file)
{
	struct read r = read_yaml("keep-service: [\"x:raw=1d\", \"y:day=2d\"]\n"
				  "services:\n  a_b-*: {keep-raw: 2d, keep_day: 1d}\n"
				  "  c:\n    keep: {hour: 3d}\n");
	char variable[] = "KILN_SERVE_KEEP_SERVICE=z:raw=1s", *environment[] = { variable, NULL };

	assert_true(r.ok);
	assert_string_equal(r.options.keep_service,
			    "a_b-*:raw=2d,a_b-*:day=1d,c:hour=3d,x:raw=1d,y:day=2d");
	/* what goes first holds */
	assert_true(config_read_environment(&r.options, &r.arena, environment, &r.e));
	assert_non_null(strstr(r.options.keep_service, "z:raw=1s,a_b-*"));
	arena_release(&r.arena);
	assert_fails("services:\n  a: {raw: 2d}\n",
		     "line 2: there is no option \"services-a-raw\"; kiln serve --help lists them");
}
