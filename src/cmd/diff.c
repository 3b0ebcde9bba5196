/* diff.c - kiln diff: two sets of profiles compared, with a verdict on each function. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "analyze/analyze.h"
#include "analyze/progress.h"
#include "base/number.h"
#include "base/parallel.h"
#include "base/vec.h"
#include "cmd/cmd.h"
#include "compare/compare.h"

enum { DEFAULT_ROWS = 20 };

/* ---- options: the analyzer's, and these */

struct diff_options {
	double fdr;
	const char *fail_over, *old_binary, *new_binary;
	int64_t rows;
	bool per_second, per_run, markdown, json, help, complete, scdoc;
};

enum { HIDDEN = 1 };

#define ROW(type, name, field, flags, spelling, help)                                           \
	{                                                                                       \
		name, OPTION_##type, offsetof(struct diff_options, field), flags, "", spelling, \
			help                                                                    \
	}

static const struct option_def rows[] = {
	ROW(FLOAT, "fdr", fdr, 0, "=0.05",
	    "Of the changes that are reported, at most this part is chance"),
	ROW(STRING, "fail-over", fail_over, 0, "=5%",
	    "Exit with status 1 if a function's change is no chance and more\n"
	    "than this part of the total"),
	ROW(BOOL, "per-second", per_second, 0, "",
	    "Compare values per second, by the profiles' durations"),
	ROW(BOOL, "per-run", per_run, 0, "",
	    "Compare values per profile: each side did the same work"),
	ROW(INT, "n", rows, 0, "=20", "Show at most this many functions; 0 for all"),
	ROW(BOOL, "markdown", markdown, 0, "", "Print a Markdown table, for a pull request"),
	ROW(BOOL, "json", json, 0, "", "Print JSON"),
	ROW(STRING, "old-binary", old_binary, 0, "=FILE",
	    "The program that the old profiles are of, for names"),
	ROW(STRING, "new-binary", new_binary, 0, "=FILE",
	    "The program that the new profiles are of, for names"),
	ROW(BOOL, "help", help, 0, "", "Print this text"),
	ROW(BOOL, "complete", complete, HIDDEN, "", "Print the names of all flags"),
	ROW(BOOL, "scdoc", scdoc, HIDDEN, "", "Print the options' part of the manual page"),
};

static const struct diff_options defaults = {
	.fdr = 0.05, .fail_over = "", .old_binary = "", .new_binary = "", .rows = DEFAULT_ROWS
};

static const struct option_table table = { .at = rows,
					   .n = sizeof(rows) / sizeof(*rows),
					   .defaults = &defaults };

static const char usage[] =
	"usage:\n"
	"\n"
	"Tell what changed between two profiles, and what of it is more than chance.\n"
	"\n"
	"   kiln diff [options] OLD NEW\n"
	"   kiln diff [options] OLD... -- NEW...\n"
	"\n"
	"Several profiles on a side, of runs that should be equal, sharpen the verdict.\n"
	"Shares of the total are compared unless an option says otherwise.\n"
	"\n"
	"  Verdicts:\n"
	"    more, less          The change is no chance (slower, faster: of time per\n"
	"                        second or per run)\n"
	"    same                Within the noise, and surely no change by half\n"
	"    not enough samples  Within the noise, which may hide a change by half\n"
	"\n"
	"  Options:\n";

static const char usage_more[] =
	"\n"
	"  Options of the analyzer that also work here (kiln help lists them):\n"
	"    -cum -sample_index -focus -ignore -hide -show -show_from -prune_from\n"
	"    -tagfocus -tagignore -tagroot -tagleaf -relative_percentages -noinlines\n"
	"    -functions -filefunctions -files -lines -symbolize -output and more\n"
	"\n"
	"  Exit status: 0; 1 if --fail-over found something; 2 on errors\n";

static const char *dashes(const struct option_def *d)
{
	return d->name[1] ? "--" : "-";
}

static void put_help(struct buf *out)
{
	buf_puts(out, usage);
	for (size_t i = 0; i < table.n; i++) {
		struct str help = str_of(rows[i].help);
		struct buf flag = { 0 };

		if (rows[i].flags & HIDDEN)
			continue;
		buf_printf(&flag, "%s%s%s", dashes(&rows[i]), rows[i].name, rows[i].spelling);
		buf_puts(out, "    ");
		buf_pad_right(out, buf_view(&flag), 19);
		for (bool more = false; help.p; more = true) {
			buf_fill(out, ' ', more ? 24 : 1);
			buf_str(out, str_cut(&help, '\n'));
			buf_char(out, '\n');
		}
		buf_release(&flag);
	}
	buf_puts(out, usage_more);
}

static void put_complete(struct buf *out)
{
	const struct option_table *t = analyze_option_table();

	for (size_t i = 0; i < table.n; i++)
		if (!(rows[i].flags & HIDDEN))
			buf_printf(out, "%s%s\n", dashes(&rows[i]), rows[i].name);
	for (size_t i = 0; i < t->n; i++)
		if (t->at[i].type != OPTION_CHOICE && !(t->at[i].flags & ANALYZE_HIDDEN))
			buf_printf(out, "-%s\n", t->at[i].name);
	for (size_t i = 0; i < t->nchoices; i++)
		buf_printf(out, "-%s\n", t->choices[i].name);
}

static void put_scdoc(struct buf *out)
{
	for (size_t i = 0; i < table.n; i++) {
		struct str help = str_of(rows[i].help), value = str_of(rows[i].spelling);

		if (rows[i].flags & HIDDEN)
			continue;
		buf_printf(out, "\n*%s%s*", dashes(&rows[i]), rows[i].name);
		if (value.n)
			buf_printf(out, "=_%.*s_", STR_ARG(str_from(value, 1)));
		buf_puts(out, "\n\t");
		while (help.p) {
			buf_str(out, str_cut(&help, '\n'));
			buf_puts(out, help.p ? " " : ".\n");
		}
	}
}

/* ---- the command line */

struct diff {
	struct arena arena;
	struct diff_options options;
	struct command_line analyzer; /* for all sources */
	struct compare_params params;
	vec(char *) sources;
	size_t nold;
	struct job *jobs;
};

/* Takes "name", "name=value" or "name" "value" of one of our own flags; `*i` is its index in argv.
 * False without an error: it is not ours. */
static bool take_own(struct diff *d, int argc, char **argv, int *i, struct err *e)
{
	struct str value = str_of(argv[*i] + 1 + (argv[*i][1] == '-')), name;
	const struct option_def *option;

	name = str_cut(&value, '=');
	option = option_find(&table, name);
	if (!option)
		return false;
	if (!value.p && option->type == OPTION_BOOL)
		value = STR("true");
	else if (!value.p && ++*i < argc)
		value = str_of(argv[*i]);
	if (!value.p)
		return err_set(e, ERR_USAGE, "--%.*s needs a value", STR_ARG(name));
	return option_set_flag(option, &d->options, &d->arena, value, e) ||
	       err_wrap(e, "--%.*s=%.*s", STR_ARG(name), STR_ARG(value));
}

/* Does the value of this flag of the analyzer's stand in the next argument? */
static bool has_next_value(const char *arg)
{
	struct str value = str_of(arg + 1 + (arg[1] == '-')), name = str_cut(&value, '=');
	const struct option_def *option = option_find(analyze_option_table(), name);

	return !value.p && option && option->type != OPTION_BOOL && option->type != OPTION_CHOICE;
}

static bool split_sources(struct diff *d, bool has_divider, struct err *e)
{
	size_t n = d->sources.n;

	if (!has_divider && n != 2)
		return err_set(e, ERR_USAGE,
			       "two profiles are compared as OLD NEW, more as OLD... -- NEW..., "
			       "and %zu came",
			       n);
	if (!has_divider)
		d->nold = 1;
	if (!d->nold || d->nold == n)
		return err_set(e, ERR_USAGE, "there is no %s profile", d->nold ? "new" : "old");
	return true;
}

/* Flags and sources may stand in any order; a "--" divides old from new. Flags that are not ours go
 * to flags_parse, which wants them before the sources. */
static bool take_arguments(struct diff *d, int argc, char **argv, struct buf *warnings,
			   struct err *e)
{
	vec(char *) flags = { 0 };
	bool has_divider = false, ok = true;

	vec_push(&flags, argv[0]);
	for (int i = 1; i < argc && ok; i++) {
		if (strcmp(argv[i], "--") == 0) {
			ok = !has_divider || err_set(e, ERR_USAGE, "-- is there twice");
			has_divider = true;
			d->nold = d->sources.n;
		} else if (argv[i][0] != '-' || !argv[i][1]) {
			vec_push(&d->sources, argv[i]);
		} else if (!take_own(d, argc, argv, &i, e)) {
			ok = e->kind == ERR_NONE;
			if (ok)
				vec_push(&flags, argv[i]);
			if (ok && has_next_value(argv[i]) && i + 1 < argc)
				vec_push(&flags, argv[++i]);
		}
	}
	if (ok && !d->options.help && !d->options.complete && !d->options.scdoc) {
		vec_push(&flags, (char[]){ "--" });
		vec_push(&flags, (char[]){ "source" }); /* flags_parse wants one */
		ok = flags_parse(&d->analyzer, &d->arena, (int)flags.n, flags.at, warnings, e) &&
		     split_sources(d, has_divider, e);
	}
	vec_release(&flags);
	return ok;
}

/* "5%" or "0.05". */
static bool parse_share(const char *text, double *share, struct err *e)
{
	struct str number = str_of(text);
	bool is_percent = str_has_suffix(number, STR("%"));

	number.n -= is_percent;
	if (number_parse_float(number, share) != NUMBER_OK || !(*share >= 0))
		return err_set(e, ERR_USAGE, "--fail-over=%s: not a share such as 5%% or 0.05",
			       text);
	if (!is_percent && *share > 1)
		return err_set(e, ERR_USAGE, "--fail-over=%s: say %s%% or a part of 1, as in 0.05",
			       text, text);
	*share /= is_percent ? 100 : 1;
	return true;
}

/* What the analyzer can do and a comparison cannot. */
static bool refuse_flags(const struct command_line *c, struct err *e)
{
	const struct analyze_options *o = &c->options;

	if (c->command)
		return err_set(e, ERR_USAGE, "-%s is a report, not for kiln diff",
			       c->command->name);
	if (*o->http)
		return err_set(e, ERR_USAGE, "-http is not for kiln diff");
	if (*o->base || *o->diff_base)
		return err_set(e, ERR_USAGE,
			       "-base and -diff_base are not for kiln diff: name the old profile "
			       "first, the new one last");
	if (o->mean)
		return err_set(e, ERR_USAGE, "means (-mean, -mean_delay) cannot be compared");
	if (o->granularity == GRANULARITY_ADDRESSES)
		return err_set(e, ERR_USAGE,
			       "addresses differ from build to build: use -lines or -functions");
	return true;
}

static bool check_options(struct diff *d, struct err *e)
{
	const struct diff_options *o = &d->options;
	const struct analyze_options *analyzer = &d->analyzer.options;
	int64_t nrows = o->rows;

	if (!refuse_flags(&d->analyzer, e))
		return false;
	if (o->per_second && o->per_run)
		return err_set(e, ERR_USAGE, "--per-second and --per-run: choose one");
	if (o->markdown && o->json)
		return err_set(e, ERR_USAGE, "--markdown and --json: choose one");
	if (!(o->fdr > 0 && o->fdr < 1))
		return err_set(e, ERR_USAGE, "--fdr is between 0 and 1, such as 0.05");
	if (nrows < 0)
		return err_set(e, ERR_USAGE, "-n=%lld: not a number of functions",
			       (long long)nrows);
	if (analyzer->nodecount >= 0)
		nrows = analyzer->nodecount;
	d->params = (struct compare_params){ .mode = o->per_second ? COMPARE_PER_SECOND
						     : o->per_run  ? COMPARE_PER_RUN
								   : COMPARE_SHARE,
					     .is_cum = analyzer->sort == SORT_CUM,
					     .fdr = o->fdr,
					     .fail_over = -1,
					     .max_rows = (size_t)nrows };
	return !*o->fail_over || parse_share(o->fail_over, &d->params.fail_over, e);
}

/* ---- reading, side by side */

struct job {
	const struct diff *d;
	const char *path;
	struct progress *progress;
	const struct profile *whole;
	struct arena arena; /* of the result */
	struct compare_source source;
	struct buf warnings;
	struct err e;
	bool ok;
};

static bool count(struct buf *out, struct report_run *r, struct err *e)
{
	struct job *j = r->params->into;

	(void)out;
	return compare_count(&j->arena, r->p,
			     &(struct compare_count_params){ .keep = r->params->keep,
							     .value = r->params->value,
							     .is_cum = r->params->is_cum_sorted,
							     .whole = j->whole ? j->whole : r->p },
			     &j->source, e);
}

static const struct report count_report = { .name = "diff", .flags = REPORT_PATHS, .run = count };

/* The filters' warnings do not say which profile they are about. */
static void add_named(struct buf *to, const char *path, const struct buf *warnings)
{
	struct str rest = buf_view(warnings);

	while (rest.n) {
		struct str line = str_cut(&rest, '\n');

		buf_printf(to, "%s: %.*s\n", path, STR_ARG(line));
	}
}

static bool count_session(struct job *j, struct session *s, const struct analyze_options *o)
{
	struct analyze_request q = {
		.report = &count_report, .argument = "", .options = o, .into = j
	};
	struct buf out = { 0 }, warnings = { 0 };
	bool ok;

	j->whole = o->relative_percentages ? NULL : &s->profile;
	ok = analyze_report(s, &q, &out, &warnings, &j->e);
	add_named(&j->warnings, j->path, &warnings);
	buf_release(&warnings);
	return ok;
}

static void run_job(void *ctx, size_t index)
{
	struct job *j = (struct job *)ctx + index;
	const struct diff *d = j->d;
	const char *binary = j->source.is_new ? d->options.new_binary : d->options.old_binary;
	struct command_line c = d->analyzer;
	char *sources[2] = { str_dup(&j->arena, str_of(binary)),
			     str_dup(&j->arena, str_of(j->path)) };
	struct session s;

	c.sources = sources + !*binary;
	c.nsources = 1 + (*binary != 0);
	c.progress = j->progress;
	j->ok = analyze_load(&s, &c, &j->warnings, &j->e) && count_session(j, &s, &c.options);
	if (!j->ok)
		err_wrap(&j->e, "%s", j->path);
	session_release(&s);
}

static bool read_sources(struct diff *d, struct buf *warnings, struct err *e)
{
	size_t n = d->sources.n;
	int cores = parallel_cores();
	struct progress *progress;
	bool ok = true;

	d->analyzer.threads = (size_t)cores > n ? cores / (int)n : 1;
	d->jobs = arena_many(&d->arena, n, struct job);
	progress = progress_start();
	for (size_t i = 0; i < n; i++)
		d->jobs[i] = (struct job){ .d = d,
					   .path = d->sources.at[i],
					   .progress = progress,
					   .source = { .name = d->sources.at[i],
						       .is_new = i >= d->nold } };
	parallel_for(cores, n, run_job, d->jobs);
	progress_stop(progress);
	for (size_t i = 0; i < n; i++) {
		buf_str(warnings, buf_view(&d->jobs[i].warnings));
		if (ok && !d->jobs[i].ok) {
			*e = d->jobs[i].e;
			ok = false;
		}
	}
	return ok;
}

/* ---- all of it */

static bool write_out(struct buf *out, const char *path, struct err *e)
{
	int fd = STDOUT_FILENO;
	bool ok;

	if (*path)
		fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0666);
	if (fd < 0)
		return err_system(e, "open", path);
	buf_to_fd(out, fd);
	ok = buf_flush(out, e);
	if (*path && close(fd) != 0 && ok)
		ok = err_system(e, "close", path);
	return ok;
}

static bool print_comparison(const struct diff *d, struct comparison *c, struct buf *warnings,
			     struct err *e)
{
	struct buf out = { 0 };
	bool ok;

	if (d->options.json)
		compare_json(&out, c);
	else if (d->options.markdown)
		compare_markdown(&out, c);
	else
		compare_text(&out, c);
	ok = write_out(&out, d->analyzer.options.output, e);
	buf_release(&out);
	if (c->params.fail_over >= 0)
		compare_list_over(warnings, c);
	return ok;
}

static bool run_diff(struct diff *d, struct buf *warnings, struct comparison *c, struct err *e)
{
	struct compare_source *sources = arena_many(&d->arena, d->sources.n, struct compare_source);
	bool ok = check_options(d, e) && read_sources(d, warnings, e);

	if (!ok)
		return false;
	for (size_t i = 0; i < d->sources.n; i++)
		sources[i] = d->jobs[i].source;
	if (!compare(&d->arena, sources, d->sources.n, &d->params, c, e))
		return false;
	/* A limit that cannot be checked has not been kept. */
	if (d->params.fail_over >= 0 && !c->has_events)
		return err_set(e, ERR_USAGE,
			       "--fail-over needs sample counts, and there are none for %.*s",
			       STR_ARG(c->type));
	return print_comparison(d, c, warnings, e);
}

static void diff_release(struct diff *d)
{
	for (size_t i = 0; d->jobs && i < d->sources.n; i++) {
		arena_release(&d->jobs[i].arena);
		buf_release(&d->jobs[i].warnings);
	}
	vec_release(&d->sources);
	arena_release(&d->arena);
}

int cmd_diff(int argc, char **argv)
{
	struct diff d = { .options = defaults };
	struct buf out = { 0 }, warnings = { 0 };
	struct comparison c = { 0 };
	struct err e = { 0 };
	bool ok = take_arguments(&d, argc, argv, &warnings, &e);
	int status = EXIT_SUCCESS;

	if (ok && (d.options.help || d.options.complete || d.options.scdoc)) {
		(d.options.help ? put_help : d.options.complete ? put_complete : put_scdoc)(&out);
		status = print_and_exit(&out, STDOUT_FILENO, EXIT_SUCCESS);
	} else {
		ok = ok && run_diff(&d, &warnings, &c, &e);
		print_warnings(&warnings);
	}
	if (!ok) {
		fprintf(stderr, "kiln diff: %s%s\n", e.text,
			e.kind == ERR_USAGE ? " (kiln diff --help says more)" : "");
		status = EXIT_ERROR;
	} else if (c.nover) {
		status = EXIT_FAILURE;
	}
	buf_release(&warnings);
	diff_release(&d);
	return status;
}
