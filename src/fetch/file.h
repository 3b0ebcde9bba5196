/* file.h - the bytes of one source. Private to fetch/. */
#ifndef FETCH_FILE_H
#define FETCH_FILE_H

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

/* Reads a whole file (or pipe, or stdin for "-") into `a`; at most max_bytes. */
bool file_read(struct arena *a, const char *path, size_t max_bytes, struct str *out, struct err *e);

#endif
