/* shrink.c - scripts and styles without what only people need: comments, and blanks between tokens.
 *
 *	shrink FILE		to standard output; other kinds of files as they are
 *
 * Names and the ends of statements stay, so that an error's place can be read. Strings, templates
 * and regular expressions are copied; a '/' starts one of those where no value can have ended
 *before it.
 */
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct text {
	const char *p, *end;
	char last;    /* what was written last */
	char word[8]; /* it ends, as far as there is room */
	bool is_style;
};

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$' || (unsigned char)c >= 0x80;
}

static void put(struct text *t, char c)
{
	size_t n = strlen(t->word);

	putchar(c);
	t->last = c;
	if (!is_word(c))
		t->word[0] = '\0';
	else if (n + 1 < sizeof(t->word))
		t->word[n] = c, t->word[n + 1] = '\0';
}

static void copy(struct text *t, size_t n)
{
	while (n-- && t->p < t->end)
		put(t, *t->p++);
}

static void copy_until(struct text *t, char quote)
{
	copy(t, 1);
	while (t->p < t->end && *t->p != quote)
		copy(t, *t->p == '\\' ? 2 : 1);
	copy(t, 1);
}

/* A class may hold a '/', as in [^/]. */
static void copy_regex(struct text *t)
{
	bool in_class = false;

	copy(t, 1);
	while (t->p < t->end && (*t->p != '/' || in_class)) {
		if (*t->p == '[' || *t->p == ']')
			in_class = *t->p == '[';
		copy(t, *t->p == '\\' ? 2 : 1);
	}
	copy(t, 1);
}

static void shrink_code(struct text *t, char end);

static void copy_template(struct text *t)
{
	copy(t, 1);
	while (t->p < t->end && *t->p != '`') {
		if (t->p[0] == '$' && t->p[1] == '{') {
			copy(t, 2);
			shrink_code(t, '}');
		} else {
			copy(t, *t->p == '\\' ? 2 : 1);
		}
	}
	copy(t, 1);
}

static void skip_until(struct text *t, const char *mark, bool with_mark)
{
	while (t->p < t->end && strncmp(t->p, mark, strlen(mark)) != 0)
		t->p++;
	if (with_mark && t->p < t->end)
		t->p += strlen(mark);
}

/* Must these two stay apart? */
static bool needs_blank(const struct text *t, char next)
{
	char last = t->last;

	if (t->is_style) /* "a .b" and "1px + 2px" need theirs; only these never do */
		return !strchr("{};,:>", last) && !strchr("{};,>", next);
	return (is_word(last) && is_word(next)) || (last == next && strchr("+-", next));
}

/* Does a line's end between these two mean nothing? In scripts it may end a statement, unless what
 * is before it cannot be the end of one, or what follows cannot be the start. */
static bool is_joined(const struct text *t, char next)
{
	if (t->is_style)
		return strchr("{};,", t->last);
	return strchr("{([,:?=&|", t->last) || strchr("})],:?.&|", next);
}

static void skip_blanks(struct text *t)
{
	bool is_line = false;

	for (; t->p < t->end && isspace((unsigned char)*t->p); t->p++)
		is_line |= *t->p == '\n';
	if (t->p == t->end || t->last == '\n' || !t->last)
		return;
	if (is_line && !is_joined(t, *t->p))
		put(t, '\n');
	else if (needs_blank(t, *t->p))
		put(t, ' ');
}

static bool starts_regex(const struct text *t)
{
	if (t->is_style)
		return false;
	return !t->last || strchr("(,=:[!&|?{};\n>", t->last) || strcmp(t->word, "return") == 0;
}

static bool skip_comment(struct text *t)
{
	if (t->p[0] != '/' || t->p + 1 == t->end ||
	    !(t->p[1] == '*' || (t->p[1] == '/' && !t->is_style)))
		return false;
	if (t->p[1] == '*')
		skip_until(t, "*/", true);
	else
		skip_until(t, "\n", false);
	return true;
}

/* Up to the bracket that ends a template's expression, which is copied, or to the end. */
static void shrink_code(struct text *t, char end)
{
	int depth = 0;

	while (t->p < t->end) {
		char c = *t->p;

		if (isspace((unsigned char)c)) {
			skip_blanks(t);
		} else if (skip_comment(t)) {
			continue;
		} else if (c == '"' || c == '\'') {
			copy_until(t, c);
		} else if (c == '`') {
			copy_template(t);
		} else if (c == '/' && starts_regex(t)) {
			copy_regex(t);
		} else {
			depth += (c == '{') - (c == '}');
			copy(t, 1);
			if (c == end && depth < 0)
				return;
		}
	}
}

static char *read_all(const char *path, size_t *n)
{
	FILE *f = fopen(path, "rb");
	long size = f && fseek(f, 0, SEEK_END) == 0 ? ftell(f) : -1;
	char *text = size >= 0 ? calloc(1, (size_t)size + 2) : NULL;

	if (!text || fseek(f, 0, SEEK_SET) != 0) {
		perror(path);
		exit(1);
	}
	*n = fread(text, 1, (size_t)size, f);
	fclose(f);
	return text;
}

int main(int argc, char **argv)
{
	const char *kind = argc == 2 ? strrchr(argv[1], '.') : NULL;
	struct text t = { 0 };
	char *text;
	size_t n;

	if (!kind) {
		fprintf(stderr, "usage: shrink FILE\n");
		return 2;
	}
	text = read_all(argv[1], &n);
	t.p = text;
	t.end = text + n;
	t.is_style = strcmp(kind, ".css") == 0;
	if (t.is_style || strcmp(kind, ".js") == 0)
		shrink_code(&t, '\0');
	else
		fwrite(text, 1, n, stdout);
	free(text);
	return fflush(stdout) == 0 ? 0 : 1;
}
