#include "shell/shell.h"

#include <stdlib.h>
#include <unistd.h>

#include "analyze/output.h"
#include "shell/ahead.h"
#include "shell/editor.h"
#include "shell/parse.h"
#include "shell/pipe.h"
#include "analyze/usage.h"

struct shell {
	struct session *s;
	const struct shell_params *params;
	struct shell_parser parser;
	struct shell_editor *editor;
	struct shell_ahead *ahead;
	struct buf warnings;
};

static void print(struct buf *text)
{
	struct err e;

	buf_to_fd(text, STDERR_FILENO);
	buf_flush(text, &e); /* nobody is left to be told */
	buf_release(text);
}

/* What the terminal shows next begins a line, though nobody typed Enter. */
static void end_line(const struct shell *x)
{
	struct buf out = { 0 };

	if (!x->params->interrupted)
		return;
	buf_char(&out, '\n');
	print(&out);
}

static void warn(struct shell *x, const struct err *e)
{
	buf_printf(&x->warnings, "%s\n", e->text);
	x->params->warn(&x->warnings);
}

/* ---- options */

static int by_name(const void *a, const void *b)
{
	return strcmp((*(const struct option_def *const *)a)->name,
		      (*(const struct option_def *const *)b)->name);
}

static void put_sample_types(struct buf *out, const struct profile *p, const char *separator)
{
	for (uint32_t i = 0; i < p->ntypes; i++) {
		if (i)
			buf_puts(out, separator);
		buf_str(out, profile_str(p, p->types[i].type));
	}
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void put_choices(struct buf *out, const struct option_def *d)
{
	const struct option_table *t = analyze_option_table();
	const char **names = xcalloc(t->nchoices, sizeof(*names));
	size_t n = 0;

	for (size_t i = 0; i < t->nchoices; i++)
		if (option_of_choice(t, &t->choices[i]) == d)
			names[n++] = t->choices[i].name;
	qsort(names, n, sizeof(*names), by_text);
	for (size_t i = 0; i < n; i++)
		buf_printf(out, "%s%s", i ? " | " : "", names[i]);
	free(names);
}

static void put_option(struct buf *out, const struct shell *x, const struct option_def *d)
{
	const struct profile *p = &x->s->profile;
	bool is_sample_index = strcmp(d->name, "sample_index") == 0;
	struct buf value = { 0 };

	option_print(&value, analyze_option_table(), d, &x->parser.settings);
	if (!value.n && is_sample_index && p->ntypes)
		buf_str(&value, profile_str(p, p->types[p->ntypes - 1].type));
	else if (!value.n)
		buf_puts(&value, d->type == OPTION_CHOICE ? "(default)" : "\"\"");
	buf_printf(out, "  %-25s = ", d->name);
	buf_pad_right(out, buf_view(&value), 20);
	buf_char(out, ' ');
	if (d->type == OPTION_CHOICE || is_sample_index) {
		buf_puts(out, "//: [");
		if (is_sample_index)
			put_sample_types(out, p, " | ");
		else
			put_choices(out, d);
		buf_char(out, ']');
	} else if (strcmp(d->name, "nodecount") == 0 && str_eq(buf_view(&value), STR("-1"))) {
		buf_puts(out, "//: default");
	}
	buf_char(out, '\n');
	buf_release(&value);
}

static void print_options(const struct shell *x)
{
	const struct option_table *t = analyze_option_table();
	const struct option_def **settings = xcalloc(t->n, sizeof(const struct option_def *));
	struct buf out = { 0 };
	size_t n = 0;

	for (size_t i = 0; i < t->n; i++)
		if (!(t->at[i].flags & ANALYZE_INPUT) && strcmp(t->at[i].name, "source_path") != 0)
			settings[n++] = &t->at[i];
	qsort(settings, n, sizeof(*settings), by_name);
	for (size_t i = 0; i < n; i++)
		put_option(&out, x, settings[i]);
	free(settings);
	print(&out);
}

/* ---- help */

static void print_help(struct shell *x, const char *topic)
{
	bool is_terminal = x->params->interrupted;
	struct buf out = { 0 }, types = { 0 };
	struct err e;

	put_sample_types(&types, &x->s->profile, " ");
	if (!*topic) {
		/* A script's answers are pprof's. */
		usage_shell(&out, is_terminal ? "kiln" : "pprof");
		print(&out);
	} else if (usage_topic(&out, str_of(topic), buf_view(&types))) {
		print(&out);
	} else {
		err_set(&e, ERR_USAGE, "Unknown command: %s", topic);
		warn(x, &e);
	}
	buf_release(&types);
}

/* ---- reports */

static void run_report(struct shell *x, const struct shell_request *q)
{
	struct output_request request = { .command = q->command,
					  .argument = q->argument,
					  .options = &q->options,
					  .is_interactive = true,
					  .stop = x->params->interrupted };
	struct shell_pipe pipe;
	struct err e;
	bool ok;

	if (*q->pipe) {
		if (!shell_pipe_open(&pipe, q->pipe, &e)) {
			warn(x, &e);
			return;
		}
		request.pipe = pipe.fd;
	}
	ok = output_report(x->s, &request, &x->warnings, &e);
	if (*q->pipe)
		shell_pipe_close(&pipe);
	if (x->params->interrupted && *x->params->interrupted)
		end_line(x);
	x->params->warn(&x->warnings);
	if (!ok)
		warn(x, &e);
}

/* ---- the loop */

/* Returns whether to go on. */
static bool run_line(struct shell *x, struct str line)
{
	struct arena a = { 0 };
	struct shell_request q;
	struct err e;

	if (!shell_parse(&x->parser, &a, line, &q, &e)) {
		warn(x, &e);
		arena_release(&a);
		return true;
	}
	switch (q.action) {
	case SHELL_REPORT:
		run_report(x, &q);
		break;
	case SHELL_OPTIONS:
		print_options(x);
		break;
	case SHELL_HELP:
		print_help(x, q.topic);
		break;
	case SHELL_NOTHING:
	case SHELL_QUIT:
		break;
	}
	arena_release(&a);
	return q.action != SHELL_QUIT;
}

/* What comes next, most often, or takes longest. A script's next line is there already. */
static void work_ahead(struct shell *x)
{
	static const struct {
		const char *line, *argument;
	} likely[] = { { "top", "" },	  { "dot", "" },      { "tree", "" },
		       { "peek .", "." }, { "top -cum", "" }, { "tree -cum", "" } };
	struct shell_ahead_report reports[sizeof(likely) / sizeof(*likely)] = { 0 };
	struct arena a = { 0 };
	size_t n = 0;

	if (shell_editor_has_input(x->editor))
		return;
	for (size_t i = 0; i < sizeof(likely) / sizeof(*likely); i++) {
		struct shell_request q;
		struct err ignored;

		if (!shell_parse(&x->parser, &a, str_of(likely[i].line), &q, &ignored))
			continue;
		reports[n].name = q.command->name;
		reports[n].argument = likely[i].argument;
		reports[n++].options = q.options;
	}
	if (n)
		shell_ahead_start(x->ahead, reports, n);
	shell_ahead_settle(x->ahead, STDIN_FILENO);
	arena_release(&a);
}

static void own_session(void *ctx)
{
	struct shell *x = ctx;

	shell_ahead_wait(x->ahead, STR(""));
}

static bool run_lines(struct shell *x, struct err *e)
{
	struct err too_long;
	struct str line;

	for (;;) {
		if (x->params->interrupted)
			*x->params->interrupted = 0;
		work_ahead(x);
		switch (shell_editor_read(x->editor, &line)) {
		case SHELL_INPUT_LINE:
			shell_ahead_wait(x->ahead, line);
			if (!run_line(x, line))
				return true;
			break;
		case SHELL_INPUT_TOO_LONG:
			err_set(&too_long, ERR_LIMIT, "a line is longer than %d bytes: skipped",
				SHELL_LINE_MAX);
			warn(x, &too_long);
			break;
		case SHELL_INPUT_INTERRUPTED:
			end_line(x);
			return err_set(e, ERR_USAGE, "Interrupt");
		case SHELL_INPUT_END:
			end_line(x);
			return true;
		}
	}
}

static bool greet(struct shell *x, struct err *e)
{
	struct buf greeting = { 0 };
	bool ok = analyze_greet(x->s, &x->parser.settings, &greeting, e);

	print(&greeting);
	return ok;
}

bool shell_run(struct session *s, const struct shell_params *params, struct err *e)
{
	bool is_terminal = params->interrupted;
	struct shell x = {
		.s = s,
		.params = params,
		.parser = { .profile = &s->profile,
			    .settings = *params->options,
			    .has_pipes = is_terminal },
	};
	bool ok;

	s->keeps_slices = true;
	ok = greet(&x, e);
	x.parser.settings.compact_labels = true;
	if (ok) {
		x.editor = shell_editor_new(
			&(struct shell_editor_params){ .is_terminal = is_terminal,
						       .prompt = "(pprof) ",
						       .profile = &s->profile,
						       .own_profile = own_session,
						       .ctx = &x,
						       .interrupted = params->interrupted });
		x.ahead = shell_ahead_new(s);
		ok = run_lines(&x, e);
		shell_ahead_free(x.ahead);
		shell_editor_free(x.editor);
	}
	buf_release(&x.warnings);
	arena_release(&x.parser.arena);
	return ok;
}
