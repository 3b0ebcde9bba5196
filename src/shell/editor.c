#include "shell/editor.h"

#include <errno.h>
#include <histedit.h>
#include <locale.h>
#include <poll.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "shell/history.h"
#include "base/buf.h"

enum { READ_BYTES = 1 << 16, LIST_MAX = 200 };

struct shell_editor {
	struct shell_editor_params params;
	struct arena arena;
	/* plain lines */
	struct buf in; /* read, and not yet all given out */
	size_t done;   /* of it */
	bool is_at_end;
	/* edited lines; NULL without */
	EditLine *el;
	History *history;
	const char *history_file; /* or NULL */
	char *prompt;
	struct buf last_tab; /* the line when Tab was pressed last */
};

/* ---- plain lines */

static bool is_interrupted(const struct shell_editor *x)
{
	return x->params.interrupted && *x->params.interrupted;
}

/* More input behind what there is. False at the end, and when interrupted. */
static bool read_more(struct shell_editor *x)
{
	ssize_t n;

	if (x->done) {
		x->in.n -= x->done;
		memmove(x->in.p, x->in.p + x->done, x->in.n);
		x->done = 0;
	}
	do {
		buf_room(&x->in, READ_BYTES);
		n = is_interrupted(x) ? 0 : read(STDIN_FILENO, x->in.p + x->in.n, READ_BYTES);
	} while (n < 0 && errno == EINTR);
	x->is_at_end = n <= 0;
	x->in.n += n > 0 ? (size_t)n : 0;
	return n > 0;
}

static void show_prompt(const struct shell_editor *x)
{
	struct buf out = { 0 };
	struct err e;

	buf_puts(&out, x->params.prompt);
	buf_to_fd(&out, isatty(STDOUT_FILENO) ? STDOUT_FILENO : STDERR_FILENO);
	buf_flush(&out, &e);
	buf_release(&out);
}

static enum shell_input read_plain(struct shell_editor *x, struct str *line)
{
	bool is_too_long = false;
	struct str rest;
	size_t end;

	if (x->params.is_terminal)
		show_prompt(x);
	for (;;) {
		rest = (struct str){ x->in.p + x->done, x->in.n - x->done };
		end = str_find_char(rest, '\n');
		if (end != STR_NONE)
			break;
		if (rest.n > SHELL_LINE_MAX) {
			is_too_long = true;
			x->done = x->in.n;
		}
		if (x->is_at_end || !read_more(x)) {
			if (is_interrupted(x))
				return SHELL_INPUT_INTERRUPTED;
			rest = (struct str){ x->in.p + x->done, x->in.n - x->done };
			end = rest.n;
			if (!end)
				return is_too_long ? SHELL_INPUT_TOO_LONG : SHELL_INPUT_END;
			break;
		}
	}
	x->done += end + (end < rest.n);
	*line = (struct str){ rest.p, end };
	return is_too_long || end > SHELL_LINE_MAX ? SHELL_INPUT_TOO_LONG : SHELL_INPUT_LINE;
}

/* ---- Tab */

static size_t terminal_width(void)
{
	struct winsize size;

	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : 80;
}

/* In columns, from top to bottom. */
static void list_candidates(const struct completion *c)
{
	size_t n = c->candidates.n < LIST_MAX ? c->candidates.n : LIST_MAX;
	size_t width = 1, columns, rows;
	struct buf out = { 0 };
	struct err e;

	for (size_t i = 0; i < n; i++) {
		size_t w = str_width(str_of(c->candidates.at[i])) + 2;

		width = w > width ? w : width;
	}
	columns = terminal_width() > width ? terminal_width() / width : 1;
	rows = (n + columns - 1) / columns;
	buf_char(&out, '\n');
	for (size_t row = 0; row < rows; row++) {
		for (size_t i = row; i < n; i += rows)
			buf_pad_right(&out, str_of(c->candidates.at[i]), i + rows < n ? width : 0);
		buf_char(&out, '\n');
	}
	if (n < c->candidates.n)
		buf_printf(&out, "... and %zu more\n", c->candidates.n - n);
	buf_to_fd(&out, STDOUT_FILENO);
	buf_flush(&out, &e);
	buf_release(&out);
}

/* Puts the text in place of what stands between `start` and the cursor. */
static bool replace(EditLine *el, size_t nold, struct str text, bool is_final)
{
	struct buf with = { 0 };
	bool ok;

	buf_str(&with, text);
	if (is_final && !str_has_suffix(text, STR("=")))
		buf_char(&with, ' ');
	buf_char(&with, '\0');
	el_deletestr(el, (int)nold);
	ok = el_insertstr(el, with.p) == 0;
	buf_release(&with);
	return ok;
}

static unsigned char complete(struct shell_editor *x, struct completion *c, struct str line)
{
	struct str typed = str_from(line, c->start);
	struct str common = completion_common(c, line);
	bool is_unique = c->candidates.n == 1, is_again;

	if (!c->candidates.n)
		return CC_REFRESH_BEEP;
	if (common.n && (is_unique || common.n > typed.n))
		return replace(x->el, str_width(typed), common, is_unique && !c->is_unfinished)
			       ? CC_REFRESH
			       : CC_REFRESH_BEEP;
	is_again = str_eq(line, buf_view(&x->last_tab));
	x->last_tab.n = 0;
	if (!is_again) {
		buf_str(&x->last_tab, line);
		return CC_REFRESH_BEEP;
	}
	list_candidates(c);
	return CC_REDISPLAY;
}

static unsigned char on_tab(EditLine *el, int ch)
{
	const LineInfo *info = el_line(el);
	struct str line = { info->buffer, (size_t)(info->cursor - info->buffer) };
	struct completion c = { 0 };
	struct arena a = { 0 };
	struct shell_editor *x;
	unsigned char result;

	(void)ch;
	el_get(el, EL_CLIENTDATA, &x);
	line.p = str_dup(&a, line); /* el_line's is gone when the line is changed */
	if (x->params.own_profile)
		x->params.own_profile(x->params.ctx);
	shell_complete(&c, &a, x->params.profile, line);
	result = complete(x, &c, line);
	completion_release(&c);
	arena_release(&a);
	return result;
}

/* ---- edited lines */

static char *give_prompt(EditLine *el)
{
	struct shell_editor *x;

	el_get(el, EL_CLIENTDATA, &x);
	return x->prompt;
}

static void load_history(struct shell_editor *x)
{
	struct str *lines = arena_many(&x->arena, HISTORY_LINES, struct str);
	HistEvent event;
	size_t n = 0;

	x->history = history_init();
	history(x->history, &event, H_SETSIZE, HISTORY_LINES);
	history(x->history, &event, H_SETUNIQUE, 1);
	el_set(x->el, EL_HIST, history, x->history);
	x->history_file = history_path(&x->arena);
	if (x->history_file)
		n = history_load(&x->arena, x->history_file, lines);
	for (size_t i = 0; i < n; i++)
		history(x->history, &event, H_ENTER, str_dup(&x->arena, lines[i]));
}

static void remember(struct shell_editor *x, const char *line)
{
	HistEvent event;

	if (history(x->history, &event, H_FIRST) == 0 && strcmp(event.str, line) == 0)
		return;
	history(x->history, &event, H_ENTER, line);
	if (x->history_file)
		history_append(x->history_file, str_of(line));
}

static void start_editing(struct shell_editor *x)
{
	const char *term = getenv("TERM");

	if (!term || !*term || strcmp(term, "dumb") == 0 || !isatty(STDOUT_FILENO))
		return;
	setlocale(LC_CTYPE, ""); /* how wide letters are */
	x->el = el_init("kiln", stdin, stdout, stderr);
	if (!x->el)
		return;
	x->prompt = str_dup(&x->arena, str_of(x->params.prompt));
	el_set(x->el, EL_CLIENTDATA, x);
	el_set(x->el, EL_PROMPT, give_prompt);
	el_set(x->el, EL_EDITOR, "emacs");
	el_set(x->el, EL_SIGNAL, 1);
	/* el_set would copy the names, and never free them. */
	el_wset(x->el, EL_ADDFN, L"kiln-complete", L"Complete the word", on_tab);
	el_set(x->el, EL_BIND, "^I", "kiln-complete", NULL);
	el_set(x->el, EL_BIND, "^R", "em-inc-search-prev", NULL);
	load_history(x);
	el_source(x->el, NULL); /* ~/.editrc has the last word */
}

static enum shell_input read_edited(struct shell_editor *x, struct str *line)
{
	int n = 0;
	const char *text = el_gets(x->el, &n);

	x->last_tab.n = 0;
	if (is_interrupted(x))
		return SHELL_INPUT_INTERRUPTED;
	if (!text || n <= 0)
		return SHELL_INPUT_END;
	x->in.n = 0;
	buf_str(&x->in, str_trim(str_of(text)));
	*line = buf_view(&x->in);
	if (line->n) {
		buf_char(&x->in, '\0');
		remember(x, x->in.p);
		*line = (struct str){ x->in.p, x->in.n - 1 };
	}
	return SHELL_INPUT_LINE;
}

struct shell_editor *shell_editor_new(const struct shell_editor_params *params)
{
	struct shell_editor *x = xcalloc(1, sizeof(*x));

	x->params = *params;
	if (params->is_terminal)
		start_editing(x);
	return x;
}

void shell_editor_free(struct shell_editor *x)
{
	if (x->el)
		el_end(x->el);
	if (x->history)
		history_end(x->history);
	buf_release(&x->in);
	buf_release(&x->last_tab);
	arena_release(&x->arena);
	free(x);
}

bool shell_editor_has_input(const struct shell_editor *x)
{
	struct pollfd in = { STDIN_FILENO, POLLIN, 0 };

	return (!x->el && x->done < x->in.n) || poll(&in, 1, 0) != 0;
}

enum shell_input shell_editor_read(struct shell_editor *x, struct str *line)
{
	return x->el ? read_edited(x, line) : read_plain(x, line);
}
