/* table.h - rows of text in columns that are as wide as what is in them, as kubectl prints them. */
#ifndef CMD_TABLE_H
#define CMD_TABLE_H

#include "base/arena.h"
#include "base/buf.h"

enum { TABLE_MAX_COLUMNS = 12 };

struct table {
	struct arena arena; /* of the cells */
	size_t ncolumns;
	bool is_right[TABLE_MAX_COLUMNS]; /* numbers */
	struct str *cells;
	size_t n, cap;
};

/* Titles in capitals, separated by blanks; those of numbers end in '#', which is not printed. */
void table_init(struct table *t, const char *titles);
/* The next cell, copied; what would steer a terminal becomes '?'. */
void table_cell(struct table *t, struct str text);
void table_cell_printf(struct table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Appends the lines, and frees the table. */
void table_print(struct buf *out, struct table *t);

#endif
