#include "shell/complete.h"

#include <ctype.h>
#include <dirent.h>
#include <stdlib.h>
#include <strings.h>

#include "analyze/options.h"
#include "shell/parse.h"
#include "base/buf.h"

struct completer {
	struct completion *c;
	struct arena *a;
	const struct profile *p;
	struct str word; /* to complete */
};

static void add(struct completer *x, struct str candidate)
{
	vec_push(&x->c->candidates, str_dup(x->a, candidate));
}

/* Case does not matter in what was typed. */
static void offer(struct completer *x, const char *name)
{
	if (strlen(name) >= x->word.n && strncasecmp(name, x->word.p, x->word.n) == 0)
		add(x, str_of(name));
}

static bool is_setting(const struct option_def *d)
{
	return !(d->flags & ANALYZE_INPUT);
}

static void offer_joined(struct completer *x, const char *name, struct str more)
{
	struct buf text = { 0 };

	buf_puts(&text, name);
	buf_str(&text, more);
	offer(x, str_dup(x->a, buf_view(&text)));
	buf_release(&text);
}

/* All that there is help for; in the place of a command, what is set is followed by a value. */
static void offer_topics(struct completer *x, bool is_command)
{
	const struct option_table *t = analyze_option_table();

	for (size_t i = 0; i < analyze_ncommands; i++)
		offer(x, analyze_commands[i].name);
	for (size_t i = 0; i < t->n; i++)
		if (is_setting(&t->at[i]) && (is_command || t->at[i].type != OPTION_CHOICE))
			offer_joined(x, t->at[i].name, is_command ? STR("=") : STR(""));
	for (size_t i = 0; i < t->nchoices; i++)
		offer_joined(x, t->choices[i].name, is_command ? STR("=true") : STR(""));
}

static void offer_sample_types(struct completer *x, const char *prefix)
{
	for (uint32_t i = 0; i < x->p->ntypes; i++)
		offer_joined(x, prefix, profile_str(x->p, x->p->types[i].type));
}

static void offer_first_words(struct completer *x)
{
	static const char *const plain[] = { "exit", "help", "options", "quit" };

	offer_topics(x, true);
	for (size_t i = 0; i < sizeof(plain) / sizeof(*plain); i++)
		offer(x, plain[i]);
	offer_sample_types(x, "");
	offer_sample_types(x, "total_");
	offer_sample_types(x, "mean_");
}

/* A regular expression that matches the name and, being one word, has no blank in it. */
static void quote_name(struct buf *out, struct str name)
{
	for (size_t i = 0; i < name.n; i++) {
		if (isspace((unsigned char)name.p[i])) {
			buf_printf(out, "\\x%02x", (unsigned char)name.p[i]);
			continue;
		}
		if (memchr("\\.+*?()|[]{}^$", name.p[i], 14))
			buf_char(out, '\\');
		buf_char(out, name.p[i]);
	}
}

/* Functions whose name has the word in it, as it is or quoted. */
static void offer_functions(struct completer *x)
{
	bool *is_done = arena_many(x->a, x->p->strings->n, bool);
	struct buf quoted = { 0 };

	x->c->is_unfinished = true;
	for (uint32_t i = 0; i < x->p->nfunctions; i++) {
		uint32_t id = x->p->functions[i].name;
		struct str name = profile_str(x->p, id);

		if (is_done[id] || !name.n)
			continue;
		is_done[id] = true;
		quoted.n = 0;
		quote_name(&quoted, name);
		if (str_contains(name, x->word) || str_contains(buf_view(&quoted), x->word))
			add(x, buf_view(&quoted));
	}
	buf_release(&quoted);
}

static void offer_files(struct completer *x)
{
	size_t slash = str_rfind_char(x->word, '/');
	size_t ndir = slash == STR_NONE ? 0 : slash + 1;
	struct str dir = { x->word.p, ndir }, prefix = str_from(x->word, ndir);
	DIR *d = opendir(ndir ? str_dup(x->a, dir) : ".");
	struct buf path = { 0 };
	const struct dirent *entry;

	x->c->is_unfinished = true;
	while (d && (entry = readdir(d))) {
		struct str name = str_of(entry->d_name);
		bool is_hidden = *name.p == '.' && !str_has_prefix(prefix, STR("."));

		if (is_hidden || !str_has_prefix(name, prefix) ||
		    memchr(name.p, ' ', name.n)) /* which ends a file's name in the shell */
			continue;
		path.n = 0;
		buf_str(&path, dir);
		buf_str(&path, name);
		if (entry->d_type == DT_DIR)
			buf_char(&path, '/');
		add(x, buf_view(&path));
	}
	if (d)
		closedir(d);
	buf_release(&path);
}

static void offer_choices(struct completer *x, const struct option_def *d)
{
	const struct option_table *t = analyze_option_table();

	for (size_t i = 0; i < t->nchoices; i++)
		if (option_of_choice(t, &t->choices[i]) == d)
			offer(x, t->choices[i].name);
}

static void offer_values(struct completer *x, const struct option_def *d)
{
	static const char *const names[] = { "focus", "ignore",	   "hide",
					     "show",  "show_from", "prune_from" };

	if (d->type == OPTION_CHOICE)
		offer_choices(x, d);
	if (d->type == OPTION_BOOL) {
		offer(x, "true");
		offer(x, "false");
	}
	if (strcmp(d->name, "sample_index") == 0)
		offer_sample_types(x, "");
	if (strcmp(d->name, "output") == 0)
		offer_files(x);
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (strcmp(d->name, names[i]) == 0)
			offer_functions(x);
}

/* Leaves out the first bytes of the word, which stay. */
static void skip(struct completer *x, size_t n)
{
	x->word = str_from(x->word, n);
	x->c->start += n;
}

/* A word behind a command. */
static void offer_arguments(struct completer *x, struct str command, struct str last)
{
	if (str_eq(last, STR(">"))) {
		offer_files(x);
	} else if (str_has_prefix(x->word, STR(">"))) {
		skip(x, 1);
		offer_files(x);
	} else if (analyze_command_find(command) && !str_eq(command, STR("tags"))) {
		if (str_has_prefix(x->word, STR("-")))
			skip(x, 1);
		offer_functions(x);
	}
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void sort_candidates(struct completion *c)
{
	size_t kept = 0;

	if (c->candidates.n)
		qsort(c->candidates.at, c->candidates.n, sizeof(*c->candidates.at), compare);
	for (size_t i = 0; i < c->candidates.n; i++)
		if (!kept || strcmp(c->candidates.at[i], c->candidates.at[kept - 1]) != 0)
			c->candidates.at[kept++] = c->candidates.at[i];
	c->candidates.n = kept;
}

/* Does a pipe begin in it? What follows is not ours to complete. */
static bool has_pipe(struct str line)
{
	struct str rest = line, word;

	while ((word = shell_word(&rest)).n)
		if (*word.p == '|' && word.p != line.p)
			return true;
	return false;
}

/* Is it an assignment? Then its value is the word. */
static const struct option_def *find_assigned(struct completer *x, struct str line)
{
	struct str value = line, name = str_trim(str_cut(&value, '='));
	const struct option_def *d = value.p ? option_find(analyze_option_table(), name) : NULL;

	if (!d || !is_setting(d))
		return NULL;
	while (value.n && isspace((unsigned char)*value.p))
		value = str_from(value, 1);
	x->word = value;
	return d;
}

void shell_complete(struct completion *c, struct arena *a, const struct profile *p, struct str line)
{
	struct completer x = { c, a, p, { line.p + line.n, 0 } };
	struct str first = { 0 }, last = { 0 }, rest = line;
	const struct option_def *assigned;

	while (rest.n) {
		struct str word = shell_word(&rest);

		if (rest.n) { /* not the last one */
			first = first.n ? first : word;
			last = word;
		} else {
			x.word = word;
		}
	}
	assigned = find_assigned(&x, line);
	c->start = (size_t)(x.word.p - line.p);
	if (assigned)
		offer_values(&x, assigned);
	else if (!first.n)
		offer_first_words(&x);
	else if (str_eq(first, STR("help")))
		offer_topics(&x, false);
	else if (!has_pipe(line))
		offer_arguments(&x, first, last);
	sort_candidates(c);
}

struct str completion_common(const struct completion *c, struct str line)
{
	struct str typed = str_from(line, c->start), common = STR("");

	for (size_t i = 0; i < c->candidates.n; i++) {
		struct str candidate = str_of(c->candidates.at[i]);
		size_t n = 0;

		if (i == 0)
			common = candidate;
		while (n < common.n && n < candidate.n && common.p[n] == candidate.p[n])
			n++;
		common.n = n;
	}
	if (common.n < typed.n || strncasecmp(common.p, typed.p, typed.n))
		return c->candidates.n == 1 ? common : STR("");
	return common;
}

void completion_release(struct completion *c)
{
	vec_release(&c->candidates);
}
