#include "base/err.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool err_set(struct err *e, enum err_kind kind, const char *fmt, ...)
{
	va_list ap;

	e->kind = kind;
	va_start(ap, fmt);
	vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	return false;
}

bool err_wrap(struct err *e, const char *fmt, ...)
{
	char text[sizeof(e->text)];
	size_t used, left;
	va_list ap;

	memcpy(text, e->text, sizeof(text));
	va_start(ap, fmt);
	vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	used = strlen(e->text);
	left = sizeof(e->text) - used;
	if (left > sizeof(": ")) {
		memcpy(e->text + used, ": ", 2);
		left = strnlen(text, left - 3);
		memcpy(e->text + used + 2, text, left);
		e->text[used + 2 + left] = '\0';
	}
	return false;
}

bool err_system(struct err *e, const char *call, const char *path)
{
	enum err_kind kind = errno == ENOENT || errno == ENOTDIR ? ERR_NOTFOUND : ERR_IO;
	const char *text = strerrordesc_np(errno);

	if (!text)
		return err_set(e, kind, "%s %s: errno %d", call, path, errno);
	return err_set(e, kind, "%s %s: %c%s", call, path, tolower((unsigned char)text[0]),
		       text + 1);
}
