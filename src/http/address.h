/* address.h - where to listen: "localhost:8080", "[::1]:80", ":8080". */
#ifndef HTTP_ADDRESS_H
#define HTTP_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

/* As Go takes it apart, with Go's errors. `any_host` is the host if none is given; without a port
 * it is 0. */
bool http_address_parse(struct arena *a, const char *address, const char *any_host,
			const char **host, uint16_t *port, struct err *e);

#endif
