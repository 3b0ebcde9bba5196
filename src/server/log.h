/* log.h - what the server tells its operator: lines on stderr, each written at once. */
#ifndef SERVER_LOG_H
#define SERVER_LOG_H

#include "base/buf.h"

/* ts=2026-11-16T14:00:00.123Z level=error msg="..." ; any bytes may be in the text. */
void log_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void log_info(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Begins a line with the time; log_write ends it and empties the buffer. */
void log_begin(struct buf *line);
void log_write(struct buf *line);
/* " name=value", quoted if it has to be. */
void log_put(struct buf *line, const char *name, struct str value);

#endif
