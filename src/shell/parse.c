#include "shell/parse.h"

#include <ctype.h>

#include "base/number.h"

#define COMMENT "//:"

struct str shell_word(struct str *rest)
{
	struct str word;
	size_t n = 0;

	while (rest->n && isspace((unsigned char)*rest->p))
		*rest = str_from(*rest, 1);
	while (n < rest->n && !isspace((unsigned char)rest->p[n]))
		n++;
	word = (struct str){ rest->p, n };
	*rest = str_from(*rest, n);
	return word;
}

/* ---- assignments */

static struct str without_comment(struct str value)
{
	for (size_t at = value.n; at-- > 0;)
		if (str_has_prefix(str_from(value, at), STR(COMMENT)))
			return (struct str){ value.p, at };
	return value;
}

/* A setting of reports; what can only be said on the command line is none. */
static const struct option_def *find_setting(struct str name)
{
	const struct option_def *d = option_find(analyze_option_table(), name);

	return d && !(d->flags & ANALYZE_INPUT) ? d : NULL;
}

/* Strings that have been replaced would pile up in the arena. */
static void keep_strings(struct shell_parser *p)
{
	const struct option_table *t = analyze_option_table();
	struct arena fresh = { 0 };

	for (size_t i = 0; i < t->n; i++) {
		const char **field =
			(const char **)(void *)((char *)&p->settings + t->at[i].offset);

		if (t->at[i].type == OPTION_STRING)
			*field = str_dup(&fresh, str_of(*field));
	}
	arena_release(&p->arena);
	p->arena = fresh;
}

/* Any spelling of a sample type is kept as its name. */
static bool sample_type(const struct profile *p, struct arena *a, struct str *value, struct err *e)
{
	uint32_t index;

	if (!profile_sample_index(p, str_dup(a, *value), &index, e))
		return false;
	if (index < p->ntypes)
		*value = profile_str(p, p->types[index].type);
	return true;
}

static bool assign(struct shell_parser *p, struct arena *a, struct str name, struct str value,
		   struct err *e)
{
	bool ok;

	if (str_eq(name, STR("sample_index")) && !sample_type(p->profile, a, &value, e))
		return false;
	ok = option_assign(analyze_option_table(), &p->settings, &p->arena, name, value, e);
	keep_strings(p);
	return ok;
}

/* Is it name=value, or a name that could be? Then *ok says whether it could be carried out. */
static bool take_assignment(struct shell_parser *p, struct arena *a, struct str line, bool *ok,
			    struct err *e)
{
	struct str value = line, name = str_trim(str_cut(&value, '='));
	const struct option_def *d = find_setting(name);

	if (!d && !option_find_choice(analyze_option_table(), name))
		return false;
	if (!value.p && d && d->type != OPTION_BOOL)
		*ok = err_set(e, ERR_USAGE, "please specify a value, e.g. %s=<val>", d->name);
	else
		*ok = assign(p, a, name, str_trim(without_comment(value)), e);
	return true;
}

static void clear_filters(struct analyze_options *o)
{
	o->focus = o->ignore = o->hide = o->tagfocus = o->tagignore = "";
}

/* Lines that stand for assignments: ":", and names of sample types. */
static bool take_macro(struct shell_parser *p, struct arena *a, struct str line, bool *ok,
		       struct err *e)
{
	static const struct {
		struct str prefix;
		const char *mean;
	} kinds[] = { { { "", 0 }, NULL }, { { "total_", 6 }, "0" }, { { "mean_", 5 }, "1" } };

	*ok = true;
	if (str_eq(line, STR(":"))) {
		clear_filters(&p->settings);
		return true;
	}
	for (uint32_t i = 0; i < p->profile->ntypes; i++) {
		struct str type = profile_str(p->profile, p->profile->types[i].type);

		for (size_t k = 0; k < sizeof(kinds) / sizeof(*kinds); k++) {
			struct str prefix = kinds[k].prefix;

			if (!str_has_prefix(line, prefix) ||
			    !str_eq(str_from(line, prefix.n), type))
				continue;
			if (kinds[k].mean)
				*ok = assign(p, a, STR("mean"), str_of(kinds[k].mean), e);
			*ok = *ok && assign(p, a, STR("sample_index"), type, e);
			return true;
		}
	}
	return false;
}

/* ---- commands */

/* "top10" is "top" and a first word "10". */
static struct str tail_digits(struct str name)
{
	size_t n = name.n;

	while (n && isdigit((unsigned char)name.p[n - 1]))
		n--;
	return str_from(name, n);
}

static bool no_such_command(struct str name, struct str rest, struct err *e)
{
	struct str value = shell_word(&rest);
	struct buf quoted = { 0 };
	const struct option_def *d = find_setting(name);

	if ((d && d->type != OPTION_CHOICE) || option_find_choice(analyze_option_table(), name))
		return err_set(e, ERR_USAGE, "did you mean: %.*s=%.*s", STR_ARG(name),
			       STR_ARG(value.n ? value : STR("<val>")));
	quote_go(&quoted, name);
	err_set(e, ERR_USAGE, "unrecognized command: %.*s", STR_ARG(buf_view(&quoted)));
	buf_release(&quoted);
	return false;
}

static void add_alternative(struct buf *regexp, struct str word)
{
	if (regexp->n && word.n)
		buf_char(regexp, '|');
	buf_str(regexp, word);
}

struct words {
	struct buf focus, ignore;
};

static bool is_cum(struct str word)
{
	return str_eq(word, STR("-cum")) || str_eq(word, STR("--cum"));
}

static bool is_count(struct str word, int64_t *count)
{
	return number_parse_int(word, 10, count) == NUMBER_OK && *count == (int32_t)*count;
}

static bool take_word(struct shell_request *q, struct arena *a, struct str word, struct str *rest,
		      struct words *w, struct err *e)
{
	int64_t count;

	if (is_count(word, &count)) {
		q->options.nodecount = count;
	} else if (*word.p == '>') {
		struct str file = word.n > 1 ? str_from(word, 1) : shell_word(rest);

		if (!file.n)
			return err_set(e, ERR_USAGE, "unexpected end of line after >");
		q->options.output = str_dup(a, file);
	} else if (is_cum(word)) {
		q->options.sort = SORT_CUM;
	} else if (*word.p == '-') {
		add_alternative(&w->ignore, str_from(word, 1));
	} else {
		add_alternative(&w->focus, word);
	}
	return true;
}

static void apply_words(struct shell_request *q, struct arena *a, const struct words *w)
{
	bool is_tags = strcmp(q->command->name, "tags") == 0;
	bool is_top = strcmp(q->command->name, "top") == 0 || strcmp(q->command->name, "text") == 0;

	if (w->focus.n)
		*(is_tags ? &q->options.tagfocus : &q->options.focus) =
			str_dup(a, buf_view(&w->focus));
	if (w->ignore.n)
		*(is_tags ? &q->options.tagignore : &q->options.ignore) =
			str_dup(a, buf_view(&w->ignore));
	if (is_top && q->options.nodecount == -1)
		q->options.nodecount = 10;
}

/* Cuts ">| command" off the line, and "| command" unless a bar is only a regular expression, as it
 * is in pprof's scripts: a bar that follows white space, which no sensible one begins with. */
static bool take_pipe(const struct shell_parser *p, struct shell_request *q, struct arena *a,
		      struct str *line, struct err *e)
{
	struct str rest = *line, word;

	while ((word = shell_word(&rest)).n) {
		size_t at = (size_t)(word.p - line->p);
		size_t n = str_has_prefix(word, STR(">|")) ? 2 : p->has_pipes && *word.p == '|';

		if (!n || !at)
			continue;
		q->pipe = str_dup(a, str_trim(str_from(*line, at + n)));
		line->n = at;
		return *q->pipe || err_set(e, ERR_USAGE, "expected a command after |");
	}
	return true;
}

static bool take_command(struct shell_parser *p, struct arena *a, struct str line,
			 struct shell_request *q, struct err *e)
{
	struct str name, digits, word;
	struct words w = { 0 };
	bool ok;

	if (!take_pipe(p, q, a, &line, e))
		return false;
	name = shell_word(&line);
	digits = tail_digits(name);
	q->options = p->settings;
	q->command = analyze_command_find(name);
	if (!q->command && digits.n && digits.n < name.n) {
		name.n -= digits.n;
		q->command = analyze_command_find(name);
		line = (struct str){ digits.p, digits.n + line.n };
	}
	if (!q->command)
		return no_such_command(name, line, e);
	if (q->command->flags & COMMAND_REGEXP) {
		word = shell_word(&line);
		if (!word.n)
			return err_set(e, ERR_USAGE, "command %s requires an argument",
				       q->command->name);
		q->argument = str_dup(a, word);
	}
	do {
		word = shell_word(&line);
		ok = !word.n || take_word(q, a, word, &line, &w, e);
	} while (ok && word.n);
	apply_words(q, a, &w);
	buf_release(&w.focus);
	buf_release(&w.ignore);
	q->action = SHELL_REPORT;
	return ok;
}

/* Words with one blank between them. */
static const char *join_words(struct arena *a, struct str rest)
{
	struct buf text = { 0 };
	struct str word;
	char *joined;

	while ((word = shell_word(&rest)).n) {
		if (text.n)
			buf_char(&text, ' ');
		buf_str(&text, word);
	}
	joined = str_dup(a, buf_view(&text));
	buf_release(&text);
	return joined;
}

static enum shell_action plain_action(struct str name)
{
	static const struct {
		const char *name;
		enum shell_action action;
	} names[] = {
		{ "o", SHELL_OPTIONS }, { "options", SHELL_OPTIONS }, { "q", SHELL_QUIT },
		{ "quit", SHELL_QUIT }, { "exit", SHELL_QUIT },	      { "help", SHELL_HELP }
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (str_eq(name, str_of(names[i].name)))
			return names[i].action;
	return SHELL_NOTHING;
}

bool shell_parse(struct shell_parser *p, struct arena *a, struct str line,
		 struct shell_request *request, struct err *e)
{
	struct str rest = line = str_trim(line), name = shell_word(&rest);
	bool ok;

	*request = (struct shell_request){ .topic = "", .argument = "", .pipe = "" };
	if (take_macro(p, a, line, &ok, e) || take_assignment(p, a, line, &ok, e))
		return ok;
	if (!name.n)
		return true;
	request->action = plain_action(name);
	if (request->action == SHELL_HELP)
		request->topic = join_words(a, rest);
	return request->action != SHELL_NOTHING || take_command(p, a, line, request, e);
}
