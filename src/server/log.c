#include "server/log.h"

#include <stdio.h>
#include <unistd.h>

#include "base/number.h"
#include "base/when.h"

void log_begin(struct buf *line)
{
	buf_puts(line, "ts=");
	time_print(line, time_now() / 1000000 * 1000000);
}

void log_write(struct buf *line)
{
	buf_char(line, '\n');
	/* Nobody could be told that it failed. */
	if (write(STDERR_FILENO, line->p, line->n) < 0)
		line->n = 0;
	buf_release(line);
}

static bool is_plain(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] <= ' ' || s.p[i] == '"' || s.p[i] == '\\' || s.p[i] > '~')
			return false;
	return s.n;
}

void log_put(struct buf *line, const char *name, struct str value)
{
	buf_printf(line, " %s=", name);
	if (is_plain(value))
		buf_str(line, value);
	else
		quote_go(line, value);
}

__attribute__((format(printf, 2, 0))) static void log_text(const char *level, const char *fmt,
							   va_list args)
{
	struct buf line = { 0 };
	char text[2000];

	vsnprintf(text, sizeof(text), fmt, args);
	log_begin(&line);
	log_put(&line, "level", str_of(level));
	log_put(&line, "msg", str_of(text));
	log_write(&line);
}

void log_error(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	log_text("error", fmt, args);
	va_end(args);
}

void log_info(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	log_text("info", fmt, args);
	va_end(args);
}
