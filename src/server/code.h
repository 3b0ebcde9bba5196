/* code.h - instructions of binaries that the server has: of those that were uploaded, and with
 * --symbolize-local of files of this machine. A child reads them, one at a time. */
#ifndef SERVER_CODE_H
#define SERVER_CODE_H

#include "report/code.h"
#include "server/server.h"

/* Any number of threads may use it. */
struct code_reader code_reader_of(struct server *s);
/* Memory that a listing of code and sources takes of that of requests. */
uint64_t code_listing_bytes(const struct server *s);

#endif
