#include "cmd/args.h"

#include "base/vec.h"

static bool take_one(const struct option_table *t, void *options, struct arena *a, struct str name,
		     int *argc, char ***argv, struct err *e)
{
	struct str value = name;
	const struct option_def *d;

	name = str_cut(&value, '=');
	d = option_find(t, name);
	if (!d)
		d = option_find_key(t, name);
	if (!d)
		return err_set(e, ERR_USAGE, "there is no option --%.*s", STR_ARG(name));
	if (!value.p && d->type == OPTION_BOOL) {
		value = STR("true");
	} else if (!value.p) {
		if (!*argc)
			return err_set(e, ERR_USAGE, "--%s needs a value", d->name);
		value = str_of(**argv);
		++*argv;
		--*argc;
	}
	return option_set_flag(d, options, a, value, e) ||
	       err_wrap(e, "--%s %.*s", d->name, STR_ARG(value));
}

bool args_take(const struct option_table *t, void *options, struct arena *a, int *argc,
	       char ***argv, struct err *e)
{
	while (*argc) {
		const char *arg = **argv;

		if (arg[0] != '-' || !arg[1])
			return true;
		++*argv;
		--*argc;
		if (strcmp(arg, "--") == 0)
			return true;
		if (!take_one(t, options, a, str_of(arg + 1 + (arg[1] == '-')), argc, argv, e))
			return false;
	}
	return true;
}

bool args_take_all(const struct option_table *t, void *options, struct arena *a, int *argc,
		   char ***argv, struct err *e)
{
	vec(char *) left = { 0 };
	bool ok = true;

	while (ok && *argc) {
		char **first = *argv;

		ok = args_take(t, options, a, argc, argv, e);
		/* What is not a flag has ended it, or a "--" has: then nothing is. */
		if (ok && *argv > first && strcmp((*argv)[-1], "--") == 0)
			break;
		if (ok && *argc) {
			vec_push(&left, **argv);
			++*argv;
			--*argc;
		}
	}
	for (; ok && *argc; ++*argv, --*argc)
		vec_push(&left, **argv);
	*argc = (int)left.n;
	*argv = vec_adopt(a, &left);
	return ok;
}

/* Is the default worth a word? Numbers default to -1 for "not set". */
static bool is_told(const struct option_def *d, struct str initial)
{
	if (d->type == OPTION_BOOL)
		return str_eq(initial, STR("true"));
	return initial.n && !str_eq(initial, STR("-1"));
}

void args_usage(struct buf *out, const struct option_table *t)
{
	for (size_t i = 0; i < t->n; i++) {
		const struct option_def *d = &t->at[i];
		struct buf name = { 0 }, initial = { 0 };

		if (d->flags & ARGS_HIDDEN)
			continue;
		if (strlen(d->key) == 1)
			buf_printf(&name, "-%s, ", d->key);
		buf_printf(&name, "--%s %s", d->name, d->spelling);
		buf_puts(out, "  ");
		buf_pad_right(out, buf_view(&name), 22);
		buf_printf(out, " %s", d->help);
		option_print(&initial, t, d, t->defaults);
		if (is_told(d, buf_view(&initial)))
			buf_printf(out, " (default: %.*s)", STR_ARG(buf_view(&initial)));
		buf_char(out, '\n');
		buf_release(&name);
		buf_release(&initial);
	}
}

void args_complete(struct buf *out, const struct option_table *t)
{
	for (size_t i = 0; i < t->n; i++)
		if (!(t->at[i].flags & ARGS_HIDDEN))
			buf_printf(out, "--%s\n", t->at[i].name);
}

/* Underscores would set text in italics. */
static void put_escaped(struct buf *out, struct str text)
{
	for (size_t i = 0; i < text.n; i++) {
		if (strchr("_*\\", text.p[i]))
			buf_char(out, '\\');
		buf_char(out, text.p[i]);
	}
}

static void put_rows(struct buf *out, const struct option_table *t, const char *before,
		     const char *after, const char *without)
{
	for (size_t i = 0; i < t->n; i++) {
		const struct option_def *d = &t->at[i];
		struct buf initial = { 0 };

		if (strcmp(d->name, without) == 0 || d->flags & ARGS_HIDDEN)
			continue;
		buf_printf(out, "\n*%s", before);
		put_escaped(out, str_of(d->name));
		buf_printf(out, *d->spelling ? "%s* _%s_" : "%s*%s", after, d->spelling);
		if (strlen(d->key) == 1)
			buf_printf(out, ", *-%s*", d->key);
		buf_puts(out, "\n\t");
		put_escaped(out, str_of(d->help));
		buf_puts(out, ".");
		option_print(&initial, t, d, t->defaults);
		if (is_told(d, buf_view(&initial))) {
			buf_puts(out, " Default: ");
			put_escaped(out, buf_view(&initial));
			buf_puts(out, ".");
		}
		buf_char(out, '\n');
		buf_release(&initial);
	}
}

void args_scdoc(struct buf *out, const struct option_table *t)
{
	put_rows(out, t, "--", "", "");
}

void args_scdoc_keys(struct buf *out, const struct option_table *t)
{
	put_rows(out, t, "", ":", "config"); /* a file names no other */
}
