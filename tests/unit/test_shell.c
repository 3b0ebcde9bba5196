#include "test.h"

#include <stdio.h>
#include <unistd.h>

#include "shell/complete.h"
#include "shell/history.h"
#include "shell/parse.h"
#include "base/regex.h"
#include "profiles.h"

/* A shell on a small profile. */
struct fixture {
	struct world w;
	struct profile p;
	struct shell_parser parser;
	struct shell_request q;
	struct err e;
};

static void fixture_init(struct fixture *f)
{
	world_init(&f->w);
	f->p = folded(&f->w, "main;a.(*T).run;a.go 10\nmain;operator new(int);b 5\n");
	f->parser = (struct shell_parser){ .profile = &f->p,
					   .settings = analyze_defaults,
					   .has_pipes = true };
}

static void fixture_release(struct fixture *f)
{
	arena_release(&f->parser.arena);
	world_release(&f->w);
}

static bool parse(struct fixture *f, const char *line)
{
	return shell_parse(&f->parser, &f->w.arena, str_of(line), &f->q, &f->e);
}

#define assert_refused(f, line, message)                   \
	do {                                               \
		assert_false(parse((f), (line)));          \
		assert_string_equal((f)->e.text, message); \
	} while (0)

TEST(words_of_a_command)
{
	struct fixture f;

	fixture_init(&f);
	assert_true(parse(&f, "  top10 main -x  go -y >out.txt -cum "));
	assert_int_equal(f.q.action, SHELL_REPORT);
	assert_string_equal(f.q.command->name, "top");
	assert_int_equal(f.q.options.nodecount, 10);
	assert_int_equal(f.q.options.sort, SORT_CUM);
	assert_string_equal(f.q.options.focus, "main|go");
	assert_string_equal(f.q.options.ignore, "x|y");
	assert_string_equal(f.q.options.output, "out.txt");
	assert_string_equal(f.q.pipe, "");
	/* ... are forgotten with it. */
	assert_string_equal(f.parser.settings.focus, "");
	assert_int_equal(f.parser.settings.nodecount, -1);

	assert_true(parse(&f, "top"));
	assert_int_equal(f.q.options.nodecount, 10);
	assert_true(parse(&f, "tree -5"));
	assert_int_equal(f.q.options.nodecount, -5);
	assert_true(parse(&f, "top 99999999999"));
	assert_string_equal(f.q.options.focus, "99999999999");
	assert_true(parse(&f, "tags a -b"));
	assert_string_equal(f.q.options.tagfocus, "a");
	assert_string_equal(f.q.options.tagignore, "b");
	assert_string_equal(f.q.options.focus, "");
	assert_true(parse(&f, "list main > f"));
	assert_string_equal(f.q.argument, "main");
	assert_string_equal(f.q.options.output, "f");
	fixture_release(&f);
}

TEST(pipes)
{
	struct fixture f;

	fixture_init(&f);
	assert_true(parse(&f, "top a|b | grep 'x | y' | head"));
	assert_string_equal(f.q.options.focus, "a|b");
	assert_string_equal(f.q.pipe, "grep 'x | y' | head");
	assert_true(parse(&f, "top |head"));
	assert_string_equal(f.q.pipe, "head");
	assert_true(parse(&f, "focus=a | b"));
	assert_string_equal(f.parser.settings.focus, "a | b");
	assert_refused(&f, "top | ", "expected a command after |");
	assert_refused(&f, "| cat", "unrecognized command: \"|\"");
	f.parser.has_pipes = false;
	assert_true(parse(&f, "peek x | cat"));
	assert_string_equal(f.q.pipe, "");
	assert_string_equal(f.q.options.focus, "||cat");
	fixture_release(&f);
}

TEST(assignments)
{
	struct fixture f;

	fixture_init(&f);
	assert_true(parse(&f, "focus = a=b //: c //: d"));
	assert_int_equal(f.q.action, SHELL_NOTHING);
	assert_string_equal(f.parser.settings.focus, "a=b //: c");
	assert_true(parse(&f, "cum=true"));
	assert_int_equal(f.parser.settings.sort, SORT_CUM);
	assert_true(parse(&f, "call_tree"));
	assert_true(f.parser.settings.call_tree);
	assert_true(parse(&f, ":"));
	assert_string_equal(f.parser.settings.focus, "");
	assert_true(parse(&f, "mean_samples"));
	assert_true(f.parser.settings.mean);
	assert_string_equal(f.parser.settings.sample_index, "samples");
	assert_true(parse(&f, "total_samples"));
	assert_false(f.parser.settings.mean);
	assert_refused(&f, "cum", "unknown config field \"cum\"");
	assert_refused(&f, "nodecount", "please specify a value, e.g. nodecount=<val>");
	assert_refused(&f, "nodecount 5", "did you mean: nodecount=5");
	assert_refused(&f, "http=:80", "unrecognized command: \"http=:\"");
	fixture_release(&f);
}

TEST(other_lines)
{
	struct fixture f;

	fixture_init(&f);
	assert_true(parse(&f, " \t "));
	assert_int_equal(f.q.action, SHELL_NOTHING);
	assert_true(parse(&f, "help  a  b"));
	assert_int_equal(f.q.action, SHELL_HELP);
	assert_string_equal(f.q.topic, "a b");
	assert_true(parse(&f, "quit now"));
	assert_int_equal(f.q.action, SHELL_QUIT);
	assert_true(parse(&f, "o"));
	assert_int_equal(f.q.action, SHELL_OPTIONS);
	assert_refused(&f, "frob12", "unrecognized command: \"frob\"");
	assert_refused(&f, "12", "unrecognized command: \"12\"");
	assert_refused(&f, "disasm", "command disasm requires an argument");
	assert_refused(&f, "top >", "unexpected end of line after >");
	fixture_release(&f);
}

/* The candidates, and what Tab would put in the line. */
static const char *complete(struct fixture *f, const char *line)
{
	struct completion c = { 0 };
	struct str common;

	f->w.text.n = 0;
	shell_complete(&c, &f->w.arena, &f->p, str_of(line));
	common = completion_common(&c, str_of(line));
	buf_printf(&f->w.text, "%.*s[%.*s]", (int)c.start, line, STR_ARG(common));
	for (size_t i = 0; i < c.candidates.n; i++)
		buf_printf(&f->w.text, " %s", c.candidates.at[i]);
	buf_char(&f->w.text, '\0');
	completion_release(&c);
	return f->w.text.p;
}

TEST(completion_of_names)
{
	struct fixture f;

	fixture_init(&f);
	assert_string_equal(complete(&f, "tre"), "[tree] tree");
	assert_string_equal(complete(&f, "TO"), "[to] top topproto total_samples");
	assert_string_equal(complete(&f, "  node"), "  [node] nodecount= nodefraction=");
	assert_string_equal(complete(&f, "file"), "[file] filefunctions=true files=true");
	assert_string_equal(complete(&f, "help file"), "help [file] filefunctions files");
	assert_string_equal(complete(&f, "help nosuch"), "help []");
	assert_string_equal(complete(&f, "sort="), "sort=[] cum flat");
	assert_string_equal(complete(&f, "granularity = l"), "granularity = [lines] lines");
	assert_string_equal(complete(&f, "trim=f"), "trim=[false] false");
	assert_string_equal(complete(&f, "sample_index=s"), "sample_index=[samples] samples");
	assert_string_equal(complete(&f, "nodecount="), "nodecount=[]");
	assert_string_equal(complete(&f, "http="), "[]");
	fixture_release(&f);
}

TEST(completion_of_functions)
{
	struct fixture f;

	fixture_init(&f);
	assert_string_equal(complete(&f, "top go"), "top [a\\.go] a\\.go");
	assert_string_equal(complete(&f, "top -go"), "top -[a\\.go] a\\.go");
	assert_string_equal(complete(&f, "list a"),
			    "list [] a\\.\\(\\*T\\)\\.run a\\.go main operator\\x20new\\(int\\)");
	assert_string_equal(complete(&f, "top a."), "top [] a\\.\\(\\*T\\)\\.run a\\.go");
	assert_string_equal(complete(&f, "top a\\."), "top [a\\.] a\\.\\(\\*T\\)\\.run a\\.go");
	assert_string_equal(complete(&f, "focus=new"),
			    "focus=[operator\\x20new\\(int\\)] operator\\x20new\\(int\\)");
	assert_string_equal(complete(&f, "tags go"), "tags []");
	assert_string_equal(complete(&f, "nosuch go"), "nosuch []");
	assert_string_equal(complete(&f, "top | go"), "top | []");
	fixture_release(&f);
}

TEST(completed_names_match_themselves)
{
	struct fixture f;
	struct completion c = { 0 };

	fixture_init(&f);
	shell_complete(&c, &f.w.arena, &f.p, STR("top "));
	assert_int_equal(c.candidates.n, 5);
	for (size_t i = 0; i < c.candidates.n; i++) {
		struct regex *re = regex_compile(str_of(c.candidates.at[i]), &f.e);
		size_t matches = 0;

		assert_non_null(re);
		for (uint32_t k = 0; k < f.p.nfunctions; k++)
			matches += regex_match(re, profile_str(&f.p, f.p.functions[k].name));
		assert_true(matches >= 1);
		assert_null(strchr(c.candidates.at[i], ' '));
		regex_free(re);
	}
	completion_release(&c);
	fixture_release(&f);
}

TEST(completion_of_files)
{
	struct fixture f;

	fixture_init(&f);
	assert_string_equal(complete(&f, "top > tests/unit/test_shel"),
			    "top > [tests/unit/test_shell.c] tests/unit/test_shell.c");
	assert_string_equal(complete(&f, "top >tests/unit/test_shel"),
			    "top >[tests/unit/test_shell.c] tests/unit/test_shell.c");
	assert_string_equal(complete(&f, "output=tests/un"), "output=[tests/unit/] tests/unit/");
	assert_string_equal(complete(&f, "top > no/such/"), "top > []");
	fixture_release(&f);
}

TEST(history_keeps_the_last_lines)
{
	struct arena a = { 0 };
	struct str *lines = arena_many(&a, HISTORY_LINES, struct str);
	char dir[] = "/tmp/kiln-history-XXXXXX", line[32];
	const char *path;

	assert_non_null(mkdtemp(dir));
	setenv("XDG_STATE_HOME", dir, 1);
	path = history_path(&a);
	assert_non_null(path);
	assert_int_equal(history_load(&a, path, lines), 0);
	for (int i = 0; i < 2500; i++) {
		snprintf(line, sizeof(line), "top %d", i);
		history_append(path, str_of(line));
	}
	for (int again = 0; again < 2; again++) { /* the first time cuts the file */
		assert_int_equal(history_load(&a, path, lines), HISTORY_LINES);
		assert_true(str_eq(lines[0], STR("top 1500")));
		assert_true(str_eq(lines[HISTORY_LINES - 1], STR("top 2499")));
	}
	assert_int_equal(unlink(path), 0);
	snprintf(line, sizeof(line), "%s/kiln", dir);
	assert_int_equal(rmdir(line), 0);
	assert_int_equal(rmdir(dir), 0);
	arena_release(&a);
}
