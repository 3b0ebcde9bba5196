/* routes.h - the handlers that routes.def names, and the table of routes. */
#ifndef SERVER_ROUTES_H
#define SERVER_ROUTES_H

#include "server/server.h"

#define ROUTE(method, path, role, handler, help) void handler(struct call *c);
#include "server/routes.def"
#undef ROUTE

struct route {
	const char *method, *path;
	enum role role;
	route_handler *run;
	const char *help;
};
extern const struct route routes[];
extern const size_t nroutes;

/* For http_server_params; ctx is a struct server. */
size_t routes_admit(void *server, struct http_call *call, struct http_reply *reply);
void routes_handle(void *server, struct http_call *call, struct http_reply *reply);
void routes_done(void *server, struct http_call *call, const struct http_sent *sent);

#endif
