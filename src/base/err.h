/* err.h - how a function says why it failed.
 *
 * A function that can fail returns bool and takes `struct err *` last. It fails in one line:
 *
 *	return err_set(e, ERR_FORMAT, "sample %zu: location id is 0", i);
 *
 * and callers add what they know while passing it on: return err_wrap(e, "%s", path). Nothing is
 * allocated. `kind` is for code that branches, `text` is for people. Only cmd/ prints.
 */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include <stdbool.h>

enum err_kind {
	ERR_NONE,
	ERR_USAGE,	  /* the person asked for something that does not exist */
	ERR_NOTFOUND,	  /* a file, a match, a name is not there */
	ERR_FORMAT,	  /* the input is broken */
	ERR_UNRECOGNIZED, /* the input is of another format: the next parser may know it */
	ERR_IO,		  /* the system refused */
	ERR_LIMIT,	  /* the input is larger than a stated limit */
};

struct err {
	enum err_kind kind;
	char text[1000];
};

/* Both return false, so that failing is one statement. A text that does not fit is cut. */
bool err_set(struct err *e, enum err_kind kind, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Puts "context: " before the text there is. */
bool err_wrap(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* What errno says about a system call, in Go's words: "open x: no such file or directory". */
bool err_system(struct err *e, const char *call, const char *path);

#endif
