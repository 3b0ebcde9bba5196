#include "analyze/usage.h"

#include "analyze/options.h"

/* Width of the names' column where the lists of options and commands share it. */
#define NAME_WIDTH 16

static const char header[] =
	"usage:\n"
	"\n"
	"Produce output in the specified format.\n"
	"\n"
	"   @ <format> [options] [binary] <source> ...\n"
	"\n"
	"Omit the format to get an interactive shell whose commands can be used\n"
	"to generate various views of a profile\n"
	"\n"
	"   @ [options] [binary] <source> ...\n"
	"\n"
	"Omit the format and provide the \"-http\" flag to get an interactive web\n"
	"interface at the specified host:port that can be used to navigate through\n"
	"various views of a profile.\n"
	"\n"
	"   @ -http [host]:[port] [options] [binary] <source> ...\n"
	"\n"
	"Details:\n";

static const char environment[] =
	"\n"
	"  Environment Variables:\n"
	"   PPROF_TMPDIR       Location for saved profiles (default $HOME/pprof)\n"
	"   PPROF_TOOLS        Search path for object-level tools\n"
	"   PPROF_BINARY_PATH  Search path for local binary files\n"
	"                      default: $HOME/pprof/binaries\n"
	"                      searches $buildid/$name, $buildid/*, $path/$buildid,\n"
	"                      ${buildid:0:2}/${buildid:2}.debug, $name, $path,\n"
	"                      ${name}.debug, $dir/.debug/${name}.debug,\n"
	"                      usr/lib/debug/$dir/${name}.debug\n";

static const char after_base[] = "    profile.pb.gz         Profile in compressed protobuf format\n"
				 "    legacy_profile        Profile in legacy pprof format\n"
				 "    http://host/profile   URL for profile handler to retrieve\n";

static const char after_symbolize[] =
	"      none                  Do not attempt symbolization\n"
	"      local                 Examine only local binaries\n"
	"      fastlocal             Only get function names from local binaries\n"
	"      remote                Do not examine local binaries\n"
	"      force                 Force re-symbolization\n"
	"    Binary                  Local path or build id of binary for symbolization\n";

/* Where the usage text says more than the options themselves. */
static const struct {
	const char *option, *text;
} notes[] = {
	{ "base", after_base },
	{ "symbolize", after_symbolize },
};

static const struct section {
	unsigned flag;
	const char *title;
	size_t indent, width;
} sections[] = {
	{ ANALYZE_SOURCE, "Source options", 4, 21 },
	{ ANALYZE_MISC, "Misc options", 3, 18 },
	{ ANALYZE_LEGACY, "Legacy convenience options", 3, 22 },
	{ ANALYZE_KILN, "Options that pprof does not have", 3, 18 },
};

static bool is_pprof(const char *program)
{
	return strcmp(program, "pprof") == 0;
}

static bool is_listed(const struct analyze_command *c, const char *program)
{
	return !(c->flags & COMMAND_KILN) || !is_pprof(program);
}

/* Copies text, with the program's name for each '@'. */
static void put(struct buf *out, struct str text, const char *program)
{
	while (text.p) {
		buf_str(out, str_cut(&text, '@'));
		if (text.p)
			buf_puts(out, program);
	}
}

static struct str first_line(const char *help)
{
	struct str rest = str_of(help);

	return str_cut(&rest, '\n');
}

static void put_entry(struct buf *out, size_t indent, const char *prefix, const char *name,
		      const char *help)
{
	struct buf flag = { 0 };

	buf_printf(&flag, "%s%s", prefix, name);
	buf_fill(out, ' ', indent);
	buf_pad_right(out, buf_view(&flag), NAME_WIDTH);
	buf_char(out, ' ');
	buf_str(out, first_line(help));
	buf_char(out, '\n');
	buf_release(&flag);
}

/* The setting whose name comes next after `last` (NULL: the first), among those that are a group of
 * choices or among those that are not. NULL at the end. */
static const struct option_def *next_setting(const struct option_def *last, bool is_group)
{
	const struct option_table *t = analyze_option_table();
	const struct option_def *best = NULL;

	for (size_t i = 0; i < t->n; i++) {
		const struct option_def *d = &t->at[i];

		if (d->flags & ANALYZE_INPUT || (d->type == OPTION_CHOICE) != is_group)
			continue;
		if (last && strcmp(d->name, last->name) <= 0)
			continue;
		if (!best || strcmp(d->name, best->name) < 0)
			best = d;
	}
	return best;
}

static void put_choices(struct buf *out, const struct option_def *d, const char *prefix)
{
	const struct option_table *t = analyze_option_table();

	for (size_t i = 0; i < t->nchoices; i++)
		if (option_of_choice(t, &t->choices[i]) == d)
			put_entry(out, 6, prefix, t->choices[i].name, t->choices[i].help);
}

static void put_commands(struct buf *out, const char *program, const char *prefix)
{
	for (size_t i = 0; i < analyze_ncommands; i++)
		if (is_listed(&analyze_commands[i], program))
			put_entry(out, 4, prefix, analyze_commands[i].name,
				  analyze_commands[i].help);
}

static void put_settings(struct buf *out, const char *prefix)
{
	const struct option_def *d;

	buf_puts(out, "\n  Options:\n");
	for (d = next_setting(NULL, false); d; d = next_setting(d, false))
		put_entry(out, 4, prefix, d->name, d->help);
	buf_puts(out, "\n  Option groups (only set one per group):\n");
	for (d = next_setting(NULL, true); d; d = next_setting(d, true)) {
		put_entry(out, 4, "", d->name, "");
		put_choices(out, d, prefix);
	}
}

static void put_input(struct buf *out, const struct section *s, const struct option_def *d,
		      const char *program)
{
	struct str help = str_of(d->help);
	struct buf flag = { 0 };

	buf_printf(&flag, "-%s%s", d->name, d->spelling);
	buf_fill(out, ' ', s->indent);
	buf_pad_right(out, buf_view(&flag), s->width);
	for (bool more = false; help.p; more = true) {
		buf_fill(out, ' ', more ? s->indent + s->width + 1 : 1);
		put(out, str_cut(&help, '\n'), program);
		buf_char(out, '\n');
	}
	buf_release(&flag);

	for (size_t i = 0; i < sizeof(notes) / sizeof(*notes); i++)
		if (strcmp(notes[i].option, d->name) == 0)
			buf_puts(out, notes[i].text);
}

static void put_section(struct buf *out, const struct section *s, const char *program)
{
	const struct option_table *t = analyze_option_table();

	buf_printf(out, "\n  %s:\n", s->title);
	for (size_t i = 0; i < t->n; i++)
		if (t->at[i].flags & s->flag)
			put_input(out, s, &t->at[i], program);
}

void usage_write(struct buf *out, const char *program)
{
	put(out, str_of(header), program);
	buf_puts(out, "  Output formats (select at most one):\n");
	put_commands(out, program, "-");
	put_settings(out, "-");
	for (size_t i = 0; i < sizeof(sections) / sizeof(*sections); i++)
		if (sections[i].flag != ANALYZE_KILN || !is_pprof(program))
			put_section(out, &sections[i], program);
	buf_puts(out, environment);
	if (is_pprof(program))
		buf_puts(out, "   * On Windows, %USERPROFILE% is used instead of $HOME\n");
}

void usage_shell(struct buf *out, const char *program)
{
	buf_puts(out, "  Commands:\n");
	put_commands(out, program, "");
	put_entry(out, 4, "", "o/options", "List options and their current values");
	buf_puts(out, "    q/quit/exit/^D   ");
	put(out, STR("Exit @\n"), program);
	put_settings(out, "");
	buf_puts(out, "  :   Clear focus/ignore/hide/tagfocus/tagignore\n");
	if (!is_pprof(program))
		buf_puts(out, "  |   Let a command read the report: top | head\n");
	buf_puts(out, "\n"
		      "  type \"help <cmd|option>\" for more information\n");
}

static const char indented[] = "\n    ";

static void put_command_usage(struct buf *out, const struct analyze_command *c)
{
	bool is_list = c->flags & COMMAND_REGEXP;

	buf_printf(out, "    %s%s", c->name,
		   is_list ? "<func_regex|address> [-focus_regex]* [-ignore_regex]*"
			   : " [n] [focus_regex]* [-ignore_regex]*");
	if (c->flags & COMMAND_CUM)
		buf_puts(out, " [-cum]");
	if (c->flags & COMMAND_REDIRECT)
		buf_puts(out, " >f");
	buf_puts(out, indented);
	buf_puts(out, is_list ? "Include functions matching func_regex, or including the address "
				"specified."
			      : "Include up to n samples");
	buf_puts(out, indented);
	buf_puts(out, "Include samples matching focus_regex, and exclude ignore_regex.");
	if (c->flags & COMMAND_CUM)
		buf_printf(out, "%s-cum sorts the output by cumulative weight", indented);
	if (c->flags & COMMAND_REDIRECT)
		buf_printf(out, "%sOptionally save the report on the file f", indented);
	buf_char(out, '\n');
}

static void put_command_help(struct buf *out, const struct analyze_command *c)
{
	buf_printf(out, "%s\n", c->help);
	if (strcmp(c->name, "peek") == 0) {
		buf_puts(out,
			 "  Usage:\n"
			 "    peek func_regex\n"
			 "    Display callers and callees of functions matching func_regex.\n");
	} else if (strcmp(c->name, "tags") == 0) {
		buf_puts(out, "  Usage:\n"
			      "    tags [tag_regex]* [-ignore_regex]* [>file]\n"
			      "    List tags with key:value matching tag_regex and exclude "
			      "ignore_regex.\n");
	} else if (c->flags & (COMMAND_GRAPH | COMMAND_REGEXP)) {
		buf_puts(out, "  Usage:\n");
		put_command_usage(out, c);
	}
	buf_char(out, '\n');
}

bool usage_topic(struct buf *out, struct str name, struct str sample_types)
{
	const struct option_table *t = analyze_option_table();
	const struct analyze_command *command = analyze_command_find(name);
	const struct option_choice *choice = option_find_choice(t, name);
	const struct option_def *d = option_find(t, name);
	/* A group has no text of its own, and flags are of no use in the shell. */
	bool is_setting = d && d->type != OPTION_CHOICE && !(d->flags & ANALYZE_INPUT);

	if (command)
		put_command_help(out, command);
	else if (choice)
		buf_printf(out, "%s\n", choice->help);
	else if (is_setting && strcmp(d->name, "sample_index") == 0)
		buf_printf(out, "%sOr use sample_index=name, with name in [%.*s].\n\n", d->help,
			   STR_ARG(sample_types));
	else if (is_setting)
		buf_printf(out, "%s\n", d->help);
	return command || choice || is_setting;
}

void usage_complete(struct buf *out)
{
	const struct option_table *t = analyze_option_table();

	for (size_t i = 0; i < analyze_ncommands; i++)
		buf_printf(out, "-%s\n", analyze_commands[i].name);
	for (size_t i = 0; i < t->n; i++)
		if (t->at[i].type != OPTION_CHOICE && !(t->at[i].flags & ANALYZE_HIDDEN))
			buf_printf(out, "-%s\n", t->at[i].name);
	for (size_t i = 0; i < t->nchoices; i++)
		buf_printf(out, "-%s\n", t->choices[i].name);
	buf_puts(out, "-help\n");
}

static void scdoc_text(struct buf *out, struct str text)
{
	for (size_t i = 0; i < text.n; i++) {
		if (text.p[i] == '@') {
			buf_puts(out, "kiln");
			continue;
		}
		if (strchr("\\*_#[|]<>`~", text.p[i]))
			buf_char(out, '\\');
		buf_char(out, text.p[i]);
	}
}

/* One paragraph. The summary and the end get the full stop that they lack; a line that starts a
 * sentence after one without a full stop, as examples do, stays a line. */
static void scdoc_paragraph(struct buf *out, struct str help)
{
	bool is_summary = true, is_closed = false;

	buf_char(out, '\t');
	for (help = str_trim(help); help.p; is_summary = false) {
		struct str line = str_cut(&help, '\n');
		bool starts_sentence = line.n && line.p[0] >= 'A' && line.p[0] <= 'Z';

		if (!is_summary)
			buf_puts(out, starts_sentence && !is_closed ? "++\n" : " ");
		scdoc_text(out, line);
		is_closed = str_has_suffix(line, STR("."));
		if (!is_closed && (is_summary || !help.p)) {
			buf_char(out, '.');
			is_closed = true;
		}
	}
}

static void scdoc_entry(struct buf *out, const char *name, const char *value, const char *help)
{
	buf_puts(out, "\n*-");
	scdoc_text(out, str_of(name));
	buf_puts(out, *value ? "*=_" : "*");
	buf_puts(out, value);
	buf_puts(out, *value ? "_\n" : "\n");
	scdoc_paragraph(out, str_of(help));
	buf_char(out, '\n');
}

static void scdoc_option(struct buf *out, const struct option_def *d)
{
	static const char *const values[] = {
		[OPTION_BOOL] = "",	  [OPTION_INT] = "n",	[OPTION_FLOAT] = "f",
		[OPTION_STRING] = "text", [OPTION_CHOICE] = "",
	};
	const struct option_table *t = analyze_option_table();
	struct buf initial = { 0 };

	scdoc_entry(out, d->name, values[d->type], d->help);
	option_print(&initial, t, d, t->defaults);
	/* Numbers default to -1, for "not set", which the texts speak of. */
	if (initial.n && d->type != OPTION_INT && !str_eq(buf_view(&initial), STR("false"))) {
		buf_puts(out, "\tDefault: ");
		scdoc_text(out, buf_view(&initial));
		buf_puts(out, ".\n");
	}
	buf_release(&initial);
}

static void scdoc_group(struct buf *out, const struct option_def *d)
{
	const struct option_table *t = analyze_option_table();

	buf_printf(out, "\n## Settings of a report: %s, one of\n", d->name);
	for (size_t i = 0; i < t->nchoices; i++)
		if (option_of_choice(t, &t->choices[i]) == d)
			scdoc_entry(out, t->choices[i].name, "", t->choices[i].help);
}

void usage_scdoc(struct buf *out)
{
	const struct option_table *t = analyze_option_table();
	const struct option_def *d;

	buf_puts(out, "\n## Reports, at most one\n");
	for (size_t i = 0; i < analyze_ncommands; i++) {
		const struct analyze_command *c = &analyze_commands[i];

		scdoc_entry(out, c->name, c->flags & COMMAND_REGEXP ? "regexp" : "", c->help);
	}
	buf_puts(out, "\n## Settings of a report\n");
	for (d = next_setting(NULL, false); d; d = next_setting(d, false))
		scdoc_option(out, d);
	for (d = next_setting(NULL, true); d; d = next_setting(d, true))
		scdoc_group(out, d);
	for (size_t i = 0; i < sizeof(sections) / sizeof(*sections); i++) {
		buf_printf(out, "\n## %s\n", sections[i].title);
		for (size_t k = 0; k < t->n; k++)
			if (t->at[k].flags & sections[i].flag)
				scdoc_option(out, &t->at[k]);
	}
}
