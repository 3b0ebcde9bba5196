/* pages.c - the pages for people. What they show comes from the API. */
#include "server/routes.h"
#include "web/web.h"

/* All of them are one file; its scripts know which it is by the address. */
void page_fleet(struct call *c)
{
	web_reply_file(c->server->site, c->reply, STR("fleet.html"));
}

void page_static(struct call *c)
{
	web_reply_file(c->server->site, c->reply, c->rest);
}
