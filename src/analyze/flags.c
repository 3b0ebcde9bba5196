#include "analyze/flags.h"

#include <stdlib.h>

#include "analyze/usage.h"
#include "base/number.h"
#include "base/unit.h"

struct parser {
	struct command_line *c;
	struct arena *a;
	const struct option_table *table;
	char **args; /* what is left */
	size_t nargs;
	bool *chosen;		/* for each of the table's choices */
	const char **arguments; /* for each command; NULL: not asked for */
};

/* What a flag's name stands for: exactly one of these. */
struct flag {
	const struct option_def *option;
	const struct option_choice *choice;
	const struct analyze_command *command;
};

static bool flag_find(const struct parser *p, struct str name, struct flag *f)
{
	*f = (struct flag){ .command = analyze_command_find(name) };
	if (f->command)
		return true;
	f->choice = option_find_choice(p->table, name);
	if (f->choice)
		return true;
	f->option = option_find(p->table, name);
	return f->option && f->option->type != OPTION_CHOICE;
}

static bool flag_is_bool(const struct flag *f)
{
	if (f->option)
		return f->option->type == OPTION_BOOL;
	return f->choice || !(f->command->flags & COMMAND_REGEXP);
}

static bool set_switch(struct parser *p, const struct flag *f, struct str value, struct err *e)
{
	bool on;

	if (number_parse_bool(value, &on) != NUMBER_OK)
		return err_set(e, ERR_USAGE, "parse error");
	if (f->choice)
		p->chosen[f->choice - p->table->choices] = on;
	else
		p->arguments[f->command - analyze_commands] = on ? "" : NULL;
	return true;
}

static bool flag_set(struct parser *p, const struct flag *f, struct str value, struct err *e)
{
	if (f->option)
		return option_set_flag(f->option, &p->c->options, p->a, value, e);
	if (flag_is_bool(f))
		return set_switch(p, f, value, e);
	p->arguments[f->command - analyze_commands] = value.n ? str_dup(p->a, value) : NULL;
	return true;
}

/* Makes the reason that is in `e` Go's whole sentence. */
static bool refuse_value(const struct flag *f, struct str name, struct str value, struct err *e)
{
	struct err why = *e;
	struct buf quoted = { 0 };

	quote_go(&quoted, value);
	err_set(e, ERR_USAGE, "invalid %s %.*s for %s-%.*s: %s",
		flag_is_bool(f) ? "boolean value" : "value", STR_ARG(buf_view(&quoted)),
		flag_is_bool(f) ? "" : "flag ", STR_ARG(name), why.text);
	buf_release(&quoted);
	return false;
}

/* One flag, its name not yet looked at: "name" or "name=value", the value maybe in the next
 * argument. */
static bool take_flag(struct parser *p, struct str name, struct err *e)
{
	struct str value = name;
	struct flag f;

	name = str_cut(&value, '=');
	if (!flag_find(p, name, &f)) {
		if (str_eq(name, STR("help")) || str_eq(name, STR("h"))) {
			p->c->action = FLAGS_HELP;
			return true;
		}
		return err_set(e, ERR_USAGE, "flag provided but not defined: -%.*s", STR_ARG(name));
	}
	if (!value.p && flag_is_bool(&f)) {
		value = STR("true");
	} else if (!value.p) {
		if (!p->nargs)
			return err_set(e, ERR_USAGE, "flag needs an argument: -%.*s",
				       STR_ARG(name));
		value = str_of(*p->args++);
		p->nargs--;
	}
	return flag_set(p, &f, value, e) || refuse_value(&f, name, value, e);
}

/* Takes flags up to the first argument that is none, up to "--", or up to -help. */
static bool take_flags(struct parser *p, struct err *e)
{
	while (p->nargs && p->c->action != FLAGS_HELP) {
		const char *arg = *p->args, *name = arg + 1;

		if (arg[0] != '-' || !arg[1])
			return true;
		p->args++;
		p->nargs--;
		if (*name == '-')
			name++;
		if (!*name)
			return true;
		if (*name == '-' || *name == '=')
			return err_set(e, ERR_USAGE, "bad flag syntax: %s", arg);
		if (!take_flag(p, str_of(name), e))
			return false;
	}
	return true;
}

static bool conflict(const struct parser *p, const struct option_def *d, struct err *e)
{
	struct buf names = { 0 };

	for (size_t i = 0; i < p->table->nchoices; i++) {
		if (p->chosen[i] && option_of_choice(p->table, &p->table->choices[i]) == d) {
			buf_puts(&names, names.n ? " " : "");
			buf_puts(&names, p->table->choices[i].name);
		}
	}
	err_set(e, ERR_USAGE, "conflicting options set: [%.*s]", STR_ARG(buf_view(&names)));
	buf_release(&names);
	return false;
}

static bool apply_choices(struct parser *p, const struct option_def *d, struct err *e)
{
	int *field = (int *)(void *)((char *)&p->c->options + d->offset);
	size_t count = 0;

	for (size_t i = 0; i < p->table->nchoices; i++) {
		if (p->chosen[i] && option_of_choice(p->table, &p->table->choices[i]) == d) {
			*field = 1 + (int)i;
			count++;
		}
	}
	return count < 2 || conflict(p, d, e);
}

static bool apply_commands(struct parser *p, struct err *e)
{
	for (size_t i = 0; i < analyze_ncommands; i++) {
		if (!p->arguments[i])
			continue;
		if (p->c->command)
			return err_set(e, ERR_USAGE, "must set at most one output format");
		p->c->command = &analyze_commands[i];
		p->c->argument = p->arguments[i];
	}
	return true;
}

static void apply_legacy(struct analyze_options *o, struct buf *warnings)
{
	const struct {
		bool given;
		const char *flag, *sample_index;
	} legacy[] = {
		{ o->total_delay, "total_delay", "delay" },
		{ o->mean_delay, "mean_delay", "delay" },
		{ o->contentions, "contentions", "contentions" },
		{ o->inuse_space, "inuse_space", "inuse_space" },
		{ o->inuse_objects, "inuse_objects", "inuse_objects" },
		{ o->alloc_space, "alloc_space", "alloc_space" },
		{ o->alloc_objects, "alloc_objects", "alloc_objects" },
	};

	for (size_t i = 0; i < sizeof(legacy) / sizeof(*legacy); i++) {
		if (!legacy[i].given)
			continue;
		if (*o->sample_index)
			buf_printf(warnings, "Multiple value selections, ignoring -%s\n",
				   legacy[i].flag);
		else
			o->sample_index = legacy[i].sample_index;
	}
	if (o->mean_delay)
		o->mean = true;
}

/* A number and maybe a unit of memory: 100000, 512MB, 1.5 GB. */
static bool parse_size(const char *text, size_t *bytes, struct err *e)
{
	struct str number = { text, strspn(text, "0123456789.") };
	struct str unit = str_trim(str_of(text + number.n)), ignored;
	double value;

	if (number_parse_float(number, &value) != NUMBER_OK ||
	    (unit.n && !unit_same_family(unit, STR("B"))))
		return err_set(e, ERR_USAGE, "not a size such as 512MB or 2GB");
	if (unit.n)
		value *= unit_scale(1, unit, STR("B"), &ignored);
	if (value >= 0x1p62)
		return err_set(e, ERR_USAGE, "value out of range");
	*bytes = (size_t)value;
	return true;
}

/* In pprof's order, which decides what a command line with several faults is told. */
static bool apply(struct parser *p, struct buf *warnings, struct err *e)
{
	struct analyze_options *o = &p->c->options;

	for (size_t i = 0; i < p->table->n; i++)
		if (p->table->at[i].type == OPTION_CHOICE && !apply_choices(p, &p->table->at[i], e))
			return false;
	if (!apply_commands(p, e))
		return false;
	if (p->c->command && *o->http)
		return err_set(e, ERR_USAGE,
			       "-http is not compatible with an output format on the command line");
	if (o->no_browser && !*o->http)
		return err_set(e, ERR_USAGE, "-no_browser only makes sense with -http");
	apply_legacy(o, warnings);
	if (*o->base && *o->diff_base)
		return err_set(e, ERR_USAGE, "-base and -diff_base flags cannot both be specified");
	if (o->normalize && !*o->base && !*o->diff_base)
		return err_set(e, ERR_USAGE, "must have base profile to normalize by");
	return parse_size(o->max_profile_size, &p->c->max_profile_bytes, e) ||
	       err_wrap(e, "invalid value \"%s\" for flag -max_profile_size", o->max_profile_size);
}

static enum flags_action other_action(const struct analyze_options *o)
{
	return o->version    ? FLAGS_VERSION
	       : o->complete ? FLAGS_COMPLETE
	       : o->scdoc    ? FLAGS_SCDOC
			     : FLAGS_ANALYZE;
}

bool flags_parse(struct command_line *c, struct arena *a, int argc, char **argv,
		 struct buf *warnings, struct err *e)
{
	const struct option_table *table = analyze_option_table();
	const char *tools = getenv("PPROF_TOOLS");
	bool has_name = argc > 0;
	struct parser p = {
		.c = c,
		.a = a,
		.table = table,
		.args = argv + has_name,
		.nargs = (size_t)(argc - has_name),
		.chosen = arena_many(a, table->nchoices, bool),
		.arguments = arena_many(a, analyze_ncommands, const char *),
	};

	*c = (struct command_line){ .options = analyze_defaults, .argument = "" };
	if (tools)
		c->options.tools = str_dup(a, str_of(tools));
	c->failure = FLAGS_THEN_USAGE;
	if (!take_flags(&p, e))
		return false;
	if (c->action == FLAGS_HELP)
		return true;
	c->action = other_action(&c->options);
	if (c->action != FLAGS_ANALYZE)
		return true;
	c->sources = p.args;
	c->nsources = p.nargs;
	c->failure = FLAGS_AFTER_USAGE;
	if (!c->nsources)
		return err_set(e, ERR_USAGE, "no profile source specified");
	c->failure = FLAGS_PLAIN;
	return apply(&p, warnings, e);
}

void flags_explain(struct buf *out, const struct command_line *c, const char *program,
		   const struct err *e)
{
	if (c->failure == FLAGS_THEN_USAGE)
		buf_printf(out, "%s\n", e->text);
	if (c->failure != FLAGS_PLAIN)
		usage_write(out, program);
	if (c->failure != FLAGS_THEN_USAGE)
		buf_printf(out, "%s: %s\n", program, e->text);
}
