#include "analyze/flags.h"

#include "analyze/usage.h"
#include "test.h"

/* One command line, parsed; `said` is what pprof would have written to stderr. */
struct run {
	struct command_line c;
	struct arena a;
	struct err e;
	struct buf warnings, said;
	bool ok;
};

#define RUN(...) run((char *[]){ (char[]){ "pprof" }, __VA_ARGS__, NULL })
#define ARG(text)    \
	(char[])     \
	{            \
		text \
	}

static struct run run(char **argv)
{
	struct run r = { 0 };
	int argc = 0;

	while (argv[argc])
		argc++;
	r.ok = flags_parse(&r.c, &r.a, argc, argv, &r.warnings, &r.e);
	if (!r.ok)
		flags_explain(&r.said, &r.c, "pprof", &r.e);
	return r;
}

static void run_release(struct run *r)
{
	arena_release(&r->a);
	buf_release(&r->warnings);
	buf_release(&r->said);
}

static void assert_fails(struct run r, const char *text, enum flags_failure how)
{
	assert_false(r.ok);
	assert_string_equal(r.e.text, text);
	assert_int_equal(r.c.failure, how);
	run_release(&r);
}

TEST(defaults)
{
	struct run r = RUN(ARG("cpu.pb.gz"));

	assert_true(r.ok);
	assert_int_equal(r.c.action, FLAGS_ANALYZE);
	assert_null(r.c.command);
	assert_int_equal(r.c.options.nodecount, -1);
	assert_true(r.c.options.trim);
	assert_int_equal(r.c.options.sort, SORT_FLAT);
	assert_int_equal(r.c.options.granularity, CHOICE_DEFAULT);
	assert_string_equal(r.c.options.unit, "minimum");
	assert_int_equal(r.c.nsources, 1);
	assert_int_equal(r.c.max_profile_bytes, 1ul << 31);
	run_release(&r);
}

TEST(every_way_to_spell_a_flag)
{
	struct run r =
		RUN(ARG("--top"), ARG("-nodecount"), ARG("0x10"), ARG("--focus==x"), ARG("-trim=F"),
		    ARG("-cum"), ARG("-nodefraction=1e-1"), ARG("-lines"), ARG("a"), ARG("-tree"));

	assert_true(r.ok);
	assert_string_equal(r.c.command->name, "top");
	assert_int_equal(r.c.options.nodecount, 16);
	assert_string_equal(r.c.options.focus, "=x");
	assert_false(r.c.options.trim);
	assert_int_equal(r.c.options.sort, SORT_CUM);
	assert_int_equal(r.c.options.granularity, GRANULARITY_LINES);
	assert_true(r.c.options.nodefraction == 0.1);
	assert_int_equal(r.c.nsources, 2);
	assert_string_equal(r.c.sources[1], "-tree");
	run_release(&r);
}

TEST(dashes_alone)
{
	struct run r = RUN(ARG("-top"), ARG("--"), ARG("-x"));

	assert_true(r.ok);
	assert_string_equal(r.c.sources[0], "-x");
	run_release(&r);
	r = RUN(ARG("-"), ARG("-top"));
	assert_true(r.ok);
	assert_null(r.c.command);
	assert_int_equal(r.c.nsources, 2);
	run_release(&r);
}

TEST(the_last_of_repeated_flags_counts)
{
	struct run r =
		RUN(ARG("-top"), ARG("-top=false"), ARG("-peek=x"), ARG("-cum"), ARG("-cum=0"),
		    ARG("-flat"), ARG("-nodecount=2"), ARG("-nodecount=4"), ARG("-base=a"),
		    ARG("-base="), ARG("-diff_base=b"), ARG("-normalize"), ARG("c"));

	assert_true(r.ok);
	assert_string_equal(r.c.command->name, "peek");
	assert_string_equal(r.c.argument, "x");
	assert_int_equal(r.c.options.sort, SORT_FLAT);
	assert_int_equal(r.c.options.nodecount, 4);
	run_release(&r);
}

TEST(an_empty_regexp_is_no_command)
{
	struct run r = RUN(ARG("-peek="), ARG("c"));

	assert_true(r.ok);
	assert_null(r.c.command);
	run_release(&r);
}

TEST(bad_flags)
{
	assert_fails(RUN(ARG("-x"), ARG("c")), "flag provided but not defined: -x",
		     FLAGS_THEN_USAGE);
	assert_fails(RUN(ARG("-sort=cum"), ARG("c")), "flag provided but not defined: -sort",
		     FLAGS_THEN_USAGE);
	assert_fails(RUN(ARG("-nodecount=a\n"), ARG("c")),
		     "invalid value \"a\\n\" for flag -nodecount: parse error", FLAGS_THEN_USAGE);
	assert_fails(RUN(ARG("-seconds"), ARG("9223372036854775808")),
		     "invalid value \"9223372036854775808\" for flag -seconds: value out of range",
		     FLAGS_THEN_USAGE);
	assert_fails(RUN(ARG("-top=maybe"), ARG("c")),
		     "invalid boolean value \"maybe\" for -top: parse error", FLAGS_THEN_USAGE);
	assert_fails(RUN(ARG("-trim="), ARG("c")),
		     "invalid boolean value \"\" for -trim: parse error", FLAGS_THEN_USAGE);
	assert_fails(RUN(ARG("-top"), ARG("-nodecount")), "flag needs an argument: -nodecount",
		     FLAGS_THEN_USAGE);
	assert_fails(RUN(ARG("-=3")), "bad flag syntax: -=3", FLAGS_THEN_USAGE);
	assert_fails(RUN(ARG("---top")), "bad flag syntax: ---top", FLAGS_THEN_USAGE);
}

TEST(what_does_not_fit_together)
{
	assert_fails(RUN(ARG("-top")), "no profile source specified", FLAGS_AFTER_USAGE);
	assert_fails(RUN(ARG("-top"), ARG("-tree"), ARG("-flat"), ARG("-cum"), ARG("c")),
		     "conflicting options set: [cum flat]", FLAGS_PLAIN);
	assert_fails(RUN(ARG("-files"), ARG("-functions"), ARG("c")),
		     "conflicting options set: [functions files]", FLAGS_PLAIN);
	assert_fails(RUN(ARG("-top"), ARG("-list=x"), ARG("-http=:"), ARG("c")),
		     "must set at most one output format", FLAGS_PLAIN);
	assert_fails(RUN(ARG("-top"), ARG("-http=:"), ARG("c")),
		     "-http is not compatible with an output format on the command line",
		     FLAGS_PLAIN);
	assert_fails(RUN(ARG("-no_browser"), ARG("c")), "-no_browser only makes sense with -http",
		     FLAGS_PLAIN);
	assert_fails(RUN(ARG("-base=a"), ARG("-diff_base=b"), ARG("c")),
		     "-base and -diff_base flags cannot both be specified", FLAGS_PLAIN);
	assert_fails(RUN(ARG("-normalize"), ARG("c")), "must have base profile to normalize by",
		     FLAGS_PLAIN);
}

TEST(legacy_flags_choose_the_sample_type)
{
	struct run r = RUN(ARG("-alloc_space"), ARG("-mean_delay"), ARG("c"));

	assert_true(r.ok);
	assert_string_equal(r.c.options.sample_index, "delay");
	assert_true(r.c.options.mean);
	assert_true(str_eq(buf_view(&r.warnings),
			   STR("Multiple value selections, ignoring -alloc_space\n")));
	run_release(&r);
}

TEST(sizes)
{
	static const struct {
		const char *text;
		size_t bytes; /* 0: refused */
	} cases[] = {
		{ "100000", 100000 },
		{ "512MB", 512 << 20 },
		{ "1.5 kb", 1536 },
		{ "2GB", 1ul << 31 },
		{ "", 0 },
		{ "GB", 0 },
		{ "1.2.3", 0 },
		{ "3s", 0 },
		{ "-1", 0 },
		{ "9999999999PB", 0 },
		{ "inf", 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char text[20];
		struct run r;

		strcpy(text, cases[i].text);
		r = RUN(ARG("-max_profile_size"), text, ARG("c"));
		assert_int_equal(r.ok, cases[i].bytes != 0);
		assert_int_equal(r.c.max_profile_bytes, cases[i].bytes);
		run_release(&r);
	}
}

TEST(tools_come_from_the_environment)
{
	struct run r;

	setenv("PPROF_TOOLS", "/opt/bin", 1);
	r = RUN(ARG("c"));
	assert_string_equal(r.c.options.tools, "/opt/bin");
	run_release(&r);
	r = RUN(ARG("-tools=/x"), ARG("c"));
	assert_string_equal(r.c.options.tools, "/x");
	run_release(&r);
	unsetenv("PPROF_TOOLS");
}

TEST(actions)
{
	static const struct {
		const char *flag;
		enum flags_action action;
	} cases[] = {
		{ "-h", FLAGS_HELP },		{ "--help=1", FLAGS_HELP },
		{ "--version", FLAGS_VERSION }, { "--complete", FLAGS_COMPLETE },
		{ "--scdoc", FLAGS_SCDOC },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char flag[20];
		struct run r;

		strcpy(flag, cases[i].flag);
		r = RUN(flag);
		assert_true(r.ok);
		assert_int_equal(r.c.action, cases[i].action);
		run_release(&r);
	}
}

TEST(no_arguments_at_all)
{
	struct run r = run((char *[]){ NULL });

	assert_false(r.ok);
	assert_true(str_has_prefix(buf_view(&r.said), STR("usage:\n")));
	assert_true(
		str_has_suffix(buf_view(&r.said), STR("\npprof: no profile source specified\n")));
	run_release(&r);
}

TEST(pprof_lists_only_what_pprof_has)
{
	struct buf pprof = { 0 }, kiln = { 0 };

	usage_write(&pprof, "pprof");
	usage_write(&kiln, "kiln");
	assert_false(str_contains(buf_view(&pprof), STR("kiln")));
	assert_false(str_contains(buf_view(&pprof), STR("-folded")));
	assert_true(str_contains(buf_view(&pprof), STR("debugging pprof itself\n")));
	assert_true(str_contains(buf_view(&kiln), STR("    -folded          Outputs stacks")));
	assert_true(str_contains(buf_view(&kiln), STR("   -max_profile_size  Refuse")));
	assert_true(str_contains(buf_view(&kiln), STR("debugging kiln itself\n")));
	assert_false(str_contains(buf_view(&kiln), STR("-scdoc")));
	buf_release(&pprof);
	buf_release(&kiln);
}

TEST(help_in_the_shell)
{
	struct buf out = { 0 };

	assert_true(usage_topic(&out, STR("disasm"), STR("")));
	assert_true(
		str_eq(buf_view(&out),
		       STR("Output assembly listings annotated with samples\n"
			   "  Usage:\n"
			   "    disasm<func_regex|address> [-focus_regex]* [-ignore_regex]* >f\n"
			   "    Include functions matching func_regex, or including the address "
			   "specified.\n"
			   "    Include samples matching focus_regex, and exclude ignore_regex.\n"
			   "    Optionally save the report on the file f\n"
			   "\n")));
	out.n = 0;
	assert_true(usage_topic(&out, STR("files"), STR("")));
	assert_true(str_eq(buf_view(&out), STR("Aggregate at the file level.\n")));
	assert_false(usage_topic(&out, STR("sort"), STR("")));
	assert_false(usage_topic(&out, STR("http"), STR("")));
	buf_release(&out);
}

TEST(names_are_unique_and_in_order)
{
	const struct option_table *t = analyze_option_table();

	for (size_t i = 0; i + 1 < analyze_ncommands; i++)
		assert_true(strcmp(analyze_commands[i].name, analyze_commands[i + 1].name) < 0);
	for (size_t i = 0; i < t->n; i++) {
		assert_ptr_equal(option_find(t, str_of(t->at[i].name)), &t->at[i]);
		assert_null(analyze_command_find(str_of(t->at[i].name)));
		assert_null(option_find_choice(t, str_of(t->at[i].name)));
		if (*t->at[i].key)
			assert_ptr_equal(option_find_key(t, str_of(t->at[i].key)), &t->at[i]);
	}
	for (size_t i = 0; i < t->nchoices; i++)
		assert_non_null(option_of_choice(t, &t->choices[i]));
}
