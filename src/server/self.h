/* self.h - the server's own profiles, by the agent: libkiln.so, which must be there from the start
 * of the process. */
#ifndef SERVER_SELF_H
#define SERVER_SELF_H

#include "server/server.h"

/* Starts the program anew with libkiln.so, if that lies beside it or in ../lib and is not loaded.
 * Returns if not. */
void self_reload(char **argv);
/* Has the agent listen at a socket in the folder of the store. */
void self_start(struct server *s);

#endif
