/* gen.c - makes the profiles of the tests, without help of the code that is tested.
 *
 *	gen text FILE OUT			a profile that is written as text, see below
 *	gen deep|long_name|many_labels OUT	one of the extreme ones, too large to keep
 *
 * A text profile has one record a line; '#' starts a comment, a word may be "quoted" with \" \\ \n
 * and \xHH inside. Ids are whatever the file says; a - is an empty
 * list of them.
 *
 *	type TYPE UNIT
 *	period TYPE UNIT VALUE
 *	time NANOS | duration NANOS | comment TEXT | default_type TYPE
 *	drop_frames REGEXP | keep_frames REGEXP | doc_url URL
 *	mapping ID START LIMIT OFFSET FILE BUILDID HAS		HAS: any of f n l i, or -
 *	function ID NAME SYSTEM_NAME FILE START_LINE
 *	location ID MAPPING ADDRESS [FUNCTION:LINE[:COLUMN] ...]	innermost first
 *	sample ID,ID,... VALUE,... [KEY=TEXT ...] [KEY:=NUMBER[UNIT] ...]	leaf first
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/strings.h"
#include "profile/wire.h"

#define WORDS 32

struct gen {
	struct buf out, message;
	struct strings strings;
};

static _Noreturn void fail(const char *what, const char *which)
{
	fprintf(stderr, "gen: %s: %s\n", what, which);
	exit(1);
}

static uint64_t string(struct gen *g, const char *s)
{
	return strings_add(&g->strings, str_of(s));
}

static uint64_t number(const char *s)
{
	return *s == '-' ? (uint64_t)strtoll(s, NULL, 0) : strtoull(s, NULL, 0);
}

static void put_value_type(struct gen *g, unsigned field, char **w)
{
	put_nonzero(&g->message, 1, string(g, w[1]));
	put_nonzero(&g->message, 2, string(g, w[2]));
	put_message(&g->out, field, &g->message);
}

static void on_type(struct gen *g, char **w, size_t n)
{
	(void)n;
	put_value_type(g, 1, w);
}

static void on_period(struct gen *g, char **w, size_t n)
{
	(void)n;
	put_value_type(g, 11, w);
	put_nonzero(&g->out, 12, number(w[3]));
}

static void on_mapping(struct gen *g, char **w, size_t n)
{
	(void)n;
	for (unsigned i = 1; i <= 4; i++)
		put_nonzero(&g->message, i, number(w[i]));
	put_nonzero(&g->message, 5, string(g, w[5]));
	put_nonzero(&g->message, 6, string(g, w[6]));
	for (unsigned i = 0; i < 4; i++)
		put_nonzero(&g->message, 7 + i, strchr(w[7], "fnli"[i]) != NULL);
	put_message(&g->out, 3, &g->message);
}

static void on_function(struct gen *g, char **w, size_t n)
{
	(void)n;
	put_nonzero(&g->message, 1, number(w[1]));
	for (unsigned i = 2; i <= 4; i++)
		put_nonzero(&g->message, i, string(g, w[i]));
	put_nonzero(&g->message, 5, number(w[5]));
	put_message(&g->out, 5, &g->message);
}

static void on_location(struct gen *g, char **w, size_t n)
{
	struct buf line = { 0 };

	for (unsigned i = 1; i <= 3; i++)
		put_nonzero(&g->message, i, number(w[i]));
	for (size_t i = 4; i < n; i++) {
		char *rest = w[i];

		for (unsigned field = 1; rest; field++)
			put_nonzero(&line, field, number(strsep(&rest, ":")));
		put_message(&g->message, 4, &line);
	}
	put_message(&g->out, 4, &g->message);
	buf_release(&line);
}

static void put_numbers(struct buf *sample, unsigned field, char *list)
{
	struct buf packed = { 0 };

	if (strcmp(list, "-") == 0)
		return;
	while (list)
		put_varint(&packed, number(strsep(&list, ",")));
	put_message(sample, field, &packed);
	buf_release(&packed);
}

static void put_label(struct gen *g, char *word)
{
	struct buf label = { 0 };
	char *value = strchr(word, '=');

	if (!value)
		fail("not a label", word);
	*value++ = 0;
	if (value - word > 1 && value[-2] == ':') {
		value[-2] = 0;
		put_nonzero(&label, 3, number(value));
		put_nonzero(&label, 4, string(g, value + strspn(value, "-0123456789")));
	} else {
		put_nonzero(&label, 2, string(g, value));
	}
	put_nonzero(&label, 1, string(g, word));
	put_message(&g->message, 3, &label);
	buf_release(&label);
}

static void on_sample(struct gen *g, char **w, size_t n)
{
	put_numbers(&g->message, 1, w[1]);
	put_numbers(&g->message, 2, w[2]);
	for (size_t i = 3; i < n; i++)
		put_label(g, w[i]);
	put_message(&g->out, 2, &g->message);
}

static const struct record {
	const char *name;
	size_t nwords; /* at least */
	unsigned text_field, number_field;
	void (*put)(struct gen *g, char **w, size_t n);
} records[] = {
	{ "type", 3, 0, 0, on_type },	      { "sample", 3, 0, 0, on_sample },
	{ "mapping", 8, 0, 0, on_mapping },   { "location", 4, 0, 0, on_location },
	{ "function", 6, 0, 0, on_function }, { "drop_frames", 2, 7, 0, NULL },
	{ "keep_frames", 2, 8, 0, NULL },     { "time", 2, 0, 9, NULL },
	{ "duration", 2, 0, 10, NULL },	      { "period", 4, 0, 0, on_period },
	{ "comment", 2, 13, 0, NULL },	      { "default_type", 2, 14, 0, NULL },
	{ "doc_url", 2, 15, 0, NULL },	      { NULL, 0, 0, 0, NULL },
};

static void put_record(struct gen *g, char **w, size_t n)
{
	const struct record *r = records;

	while (r->name && strcmp(r->name, w[0]) != 0)
		r++;
	if (!r->name || n < r->nwords)
		fail("bad record", w[0]);
	if (r->put)
		r->put(g, w, n);
	else if (r->text_field)
		put_nonzero(&g->out, r->text_field, string(g, w[1]));
	else
		put_nonzero(&g->out, r->number_field, number(w[1]));
}

/* Takes the next word off the line and unquotes it in place. */
static char *next_word(char **line)
{
	char *in = *line + strspn(*line, " \t"), *word = in, *out = in;
	bool quoted = false;

	if (!*in || *in == '#')
		return NULL;
	for (; *in && (quoted || !strchr(" \t", *in)); in++) {
		unsigned hex;

		if (*in == '"')
			quoted = !quoted;
		else if (*in == '\\' && in[1] == 'x' && sscanf(in + 2, "%2x", &hex) == 1)
			*out++ = (char)hex, in += 3;
		else if (*in == '\\' && in[1])
			*out++ = *++in == 'n' ? '\n' : *in;
		else
			*out++ = *in;
	}
	*line = *in ? in + 1 : in;
	*out = 0;
	return word;
}

/* Writes over the line. */
static void put_line(struct gen *g, char *line)
{
	char *words[WORDS];
	size_t n = 0;

	while (n < WORDS && (words[n] = next_word(&line)))
		n++;
	if (n)
		put_record(g, words, n);
}

static void compile(struct gen *g, const char *path)
{
	FILE *f = fopen(path, "r");
	char *line = NULL;
	size_t cap = 0;

	if (!f)
		fail("cannot open", path);
	while (getline(&line, &cap, f) > 0) {
		line[strcspn(line, "\n")] = 0;
		put_line(g, line);
	}
	free(line);
	fclose(f);
}

/* The tables of a profile with one frame: location 1. */
static void put_frame(struct gen *g, const char *name)
{
	put_line(g, (char[]){ "type n count" });
	put_line(g, (char[]){ "location 1 0 0x10 1:7" });
	put_nonzero(&g->message, 1, 1);
	put_nonzero(&g->message, 2, string(g, name));
	put_message(&g->out, 5, &g->message);
}

/* One function that calls itself 10,000 times. */
static void make_deep(struct gen *g)
{
	struct buf stack = { 0 };

	put_frame(g, "again");
	buf_fill(&stack, 1, 10000);
	put_message(&g->message, 1, &stack);
	put_bytes(&g->message, 2, (struct str){ "\x05", 1 });
	put_message(&g->out, 2, &g->message);
	buf_release(&stack);
}

/* A function name of 100,000 bytes. */
static void make_long_name(struct gen *g)
{
	struct buf name = { 0 };

	buf_puts(&name, "ns::");
	buf_fill(&name, 'x', 100000 - name.n);
	buf_char(&name, 0);
	put_frame(g, name.p);
	put_bytes(&g->message, 1, (struct str){ "\x01", 1 });
	put_bytes(&g->message, 2, (struct str){ "\x05", 1 });
	put_message(&g->out, 2, &g->message);
	buf_release(&name);
}

/* 1,000,000 labels: a thousand samples with a thousand each, a tenth of them strings. */
static void make_many_labels(struct gen *g)
{
	struct buf label = { 0 };

	put_frame(g, "labelled");
	for (unsigned s = 0; s < 1000; s++) {
		put_bytes(&g->message, 1, (struct str){ "\x01", 1 });
		put_bytes(&g->message, 2, (struct str){ "\x01", 1 });
		for (unsigned k = 0; k < 1000; k++) {
			char text[32];

			snprintf(text, sizeof(text), "key%u", k);
			put_nonzero(&label, 1, string(g, text));
			snprintf(text, sizeof(text), "v%u", s % 100);
			if (k % 10 == 0)
				put_nonzero(&label, 2, string(g, text));
			else
				put_nonzero(&label, 3, s * 1000 + k);
			put_message(&g->message, 3, &label);
		}
		put_message(&g->out, 2, &g->message);
	}
	buf_release(&label);
}

static void finish(struct gen *g, const char *path)
{
	struct err e;
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);

	if (fd < 0)
		fail("cannot create", path);
	for (size_t i = 0; i < g->strings.n; i++)
		put_bytes(&g->out, 6, g->strings.at[i]);
	buf_to_fd(&g->out, fd);
	if (!buf_flush(&g->out, &e) || close(fd) != 0)
		fail("cannot write", path);
	buf_release(&g->out);
	buf_release(&g->message);
	strings_release(&g->strings);
}

int main(int argc, char **argv)
{
	struct gen g = { 0 };

	if (argc < 3)
		fail("usage", "gen text FILE OUT | gen deep|long_name|many_labels OUT");
	strings_init(&g.strings);
	if (strcmp(argv[1], "text") == 0)
		compile(&g, argv[2]);
	else if (strcmp(argv[1], "deep") == 0)
		make_deep(&g);
	else if (strcmp(argv[1], "long_name") == 0)
		make_long_name(&g);
	else if (strcmp(argv[1], "many_labels") == 0)
		make_many_labels(&g);
	else
		fail("no such profile", argv[1]);
	finish(&g, argv[argc - 1]);
	return 0;
}
