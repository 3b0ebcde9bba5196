#include "cmd/table.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/vec.h"

void table_init(struct table *t, const char *titles)
{
	struct str rest = str_of(titles);

	*t = (struct table){ 0 };
	while (rest.p) {
		struct str title = str_cut(&rest, ' ');

		assert(t->ncolumns < TABLE_MAX_COLUMNS);
		t->is_right[t->ncolumns] = str_has_suffix(title, STR("#"));
		title.n -= t->is_right[t->ncolumns++];
		table_cell(t, title);
	}
}

void table_cell(struct table *t, struct str text)
{
	char *copy = str_dup(&t->arena, text);

	for (size_t i = 0; i < text.n; i++)
		if ((unsigned char)copy[i] < ' ' || copy[i] == 0x7f)
			copy[i] = '?';
	if (t->n == t->cap)
		t->cells = vec_grow(t->cells, &t->cap, t->n + 1, sizeof(*t->cells));
	t->cells[t->n++] = (struct str){ copy, text.n };
}

void table_cell_printf(struct table *t, const char *fmt, ...)
{
	char text[1100];
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	table_cell(t,
		   (struct str){ text, (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1 });
}

void table_print(struct buf *out, struct table *t)
{
	size_t widths[TABLE_MAX_COLUMNS] = { 0 };

	for (size_t i = 0; i < t->n; i++) {
		size_t width = str_width(t->cells[i]), *widest = &widths[i % t->ncolumns];

		if (width > *widest)
			*widest = width;
	}
	for (size_t i = 0; i < t->n; i++) {
		size_t column = i % t->ncolumns;

		if (t->is_right[column])
			buf_pad_left(out, t->cells[i], widths[column]);
		else if (column + 1 < t->ncolumns)
			buf_pad_right(out, t->cells[i], widths[column]);
		else
			buf_str(out, t->cells[i]);
		buf_puts(out, column + 1 < t->ncolumns ? "   " : "\n");
	}
	free(t->cells);
	arena_release(&t->arena);
}
