/* listen.h - a socket that listens. */
#ifndef HTTP_LISTEN_H
#define HTTP_LISTEN_H

#include <stdint.h>

#include "base/err.h"

/* As Go does, at one address only, an IPv4 one if the name has any; port 0 is any that is free. -1:
 * it failed, and is told in Go's words. */
int http_listen(const char *host, uint16_t port, struct err *e);
uint16_t http_listen_port(int fd);

#endif
