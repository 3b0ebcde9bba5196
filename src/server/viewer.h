/* viewer.h - the pages of kiln -http for selections of the store. */
#ifndef SERVER_VIEWER_H
#define SERVER_VIEWER_H

#include "server/server.h"
#include "web/web.h"

/* Makes server->site. Its profiles take their memory from server->limits. */
void viewer_open(struct server *s);
/* Memory of the requests'; profiles that nobody looks at are closed for it. */
bool viewer_take(struct server *s, uint64_t bytes);

#endif
