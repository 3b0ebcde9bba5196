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
	va_list ap;
	int n;

	memcpy(text, e->text, sizeof(text));
	va_start(ap, fmt);
	n = vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
	if (n >= 0 && (size_t)n < sizeof(e->text))
		snprintf(e->text + n, sizeof(e->text) - (size_t)n, ": %s", text);
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
