/* scrape.h - profiles of targets, which `scrape:` in the configuration file names, come in as if
 * they had been pushed. */
#ifndef SERVER_SCRAPE_H
#define SERVER_SCRAPE_H

#include "server/server.h"

struct scrape_config;

/* What the file of --config says; nothing if there is none. Errors name the file and the line. */
bool scrape_read_config(const struct server_options *o, struct scrape_config *out, struct err *e);
/* Makes server->collector, which has nothing to do yet. */
void scrape_open(struct server *s);
/* `config` becomes its own. Once the server listens. */
void scrape_start(struct server *s, struct scrape_config *config);
/* Reads the file again; what is wrong is said, and the jobs stay as they were. */
void scrape_reload(struct server *s);
/* For /metrics. */
void scrape_measure(struct server *s);

#endif
