/* small_file.h - files that are read whole: lists, keys, certificates. */
#ifndef BASE_SMALL_FILE_H
#define BASE_SMALL_FILE_H

#include <sys/types.h>
#include <time.h>

#include "base/buf.h"

/* Appends a regular file of at most max_bytes, and a NUL that out->n does not count. The bytes are
 * nowhere else in memory, so that who reads a secret can erase it. Errors name the file. */
bool small_file_read(struct buf *out, const char *path, size_t max_bytes, struct err *e);

/* In place of what the file had, all of it or nothing, and durable when it returns. */
bool small_file_write(const char *path, struct str text, struct err *e);

/* What changes when a file does. A file that is not there has one, too. */
struct file_version {
	struct timespec written, changed; /* who copies a file may set the first back */
	off_t size;
	ino_t inode;
};
struct file_version file_version(const char *path);
bool file_version_same(const struct file_version *a, const struct file_version *b);

#endif
