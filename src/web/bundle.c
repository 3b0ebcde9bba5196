#include "web/bundle.h"

#include "web/assets.h"

enum { MAX_MODULES = 200 };

struct bundle {
	struct buf *out;
	const char *dir;
	const char *done[MAX_MODULES];
	size_t ndone;
	struct arena arena;
};

void bundle_put_inline(struct buf *out, struct str text)
{
	while (text.n) {
		size_t at = str_find(text, STR("</"));

		if (at == STR_NONE)
			break;
		buf_add(out, text.p, at);
		buf_puts(out, "<\\/");
		text = str_from(text, at + 2);
	}
	buf_str(out, text);
}

/* A line that is not empty, without the blanks around it. Comments are whole lines. */
static bool next_line(struct str *rest, struct str *line)
{
	bool in_comment = false;

	while (rest->n) {
		struct str text = str_trim(str_cut(rest, '\n'));

		if (in_comment || str_has_prefix(text, STR("/*"))) {
			in_comment = !str_has_suffix(text, STR("*/"));
			continue;
		}
		if (!text.n || str_has_prefix(text, STR("//")))
			continue;
		*line = text;
		return true;
	}
	return false;
}

/* ---- modules */

static void put_module(struct bundle *b, struct str name);

static bool is_import(struct str line)
{
	return str_has_prefix(line, STR("import")) && str_contains(line, STR("./"));
}

/* import { a, b } from "./x.js"; with blanks or without */
static void follow_import(struct bundle *b, struct str line)
{
	struct str name = str_from(line, str_find(line, STR("./")) + 2);

	for (size_t i = 0; i < name.n; i++)
		if (name.p[i] == '"' || name.p[i] == '\'')
			name.n = i;
	put_module(b, name);
}

/* May it be written now? Only once, and not again while those it imports are. */
static bool begin_module(struct bundle *b, struct str name)
{
	for (size_t i = 0; i < b->ndone; i++)
		if (str_eq(name, str_of(b->done[i])))
			return false;
	if (b->ndone == MAX_MODULES)
		return false;
	b->done[b->ndone++] = str_dup(&b->arena, name);
	return true;
}

static void put_module(struct bundle *b, struct str name)
{
	struct buf text = { 0 };
	struct str rest, line;

	if (!begin_module(b, name) || !asset_read(&text, b->dir, name)) {
		buf_release(&text);
		return;
	}
	for (rest = buf_view(&text); next_line(&rest, &line);)
		if (is_import(line))
			follow_import(b, line);
	for (rest = buf_view(&text); next_line(&rest, &line);) {
		if (is_import(line))
			continue;
		if (str_has_prefix(line, STR("export ")))
			line = str_from(line, sizeof("export ") - 1);
		buf_str(b->out, line);
		buf_char(b->out, '\n');
	}
	buf_release(&text);
}

void bundle_script(struct buf *out, const char *dir, struct str module)
{
	struct bundle b = { .out = out, .dir = dir };

	put_module(&b, module);
	arena_release(&b.arena);
}

void bundle_style(struct buf *out, const char *dir, struct str name)
{
	struct buf text = { 0 };
	struct str rest, line;

	asset_read(&text, dir, name);
	for (rest = buf_view(&text); next_line(&rest, &line);) {
		buf_str(out, line);
		buf_char(out, '\n');
	}
	buf_release(&text);
}
