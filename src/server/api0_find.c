/* api0_find.c - profefe's API: what there is. */
#include "server/api0.h"
#include "server/routes.h"

void api0_find(struct call *c)
{
	struct api0_series series;
	struct store_query query;
	struct store_meta *metas;
	struct buf out = { 0 };
	struct err e;
	size_t n;

	if (!api0_read_series(c, &series) || !api0_read_query(c, &series, &query))
		return;
	if (!store_find(c->server->store, &query, c->arena, &metas, &n, &e)) {
		reply_failure(c, &e);
		return;
	}
	if (!n) {
		reply_error(c, 404, "nothing found");
		return;
	}
	buf_puts(&out, "{\"code\":200,\"body\":[");
	for (size_t i = 0; i < n; i++) {
		if (i)
			buf_char(&out, ',');
		api0_put_meta(&out, &metas[i]);
	}
	buf_puts(&out, "]}\n");
	reply_json(c, 200, &out);
}

void api0_services(struct call *c)
{
	struct store_query all = { .stop = c->http->abandoned };
	struct store_name *names;
	struct buf out = { 0 };
	struct err e;
	size_t n;

	if (!store_names(c->server->store, &all, STR("service"), c->arena, &names, &n, &e)) {
		reply_failure(c, &e);
		return;
	}
	if (!n) {
		reply_error(c, 404, "nothing found");
		return;
	}
	buf_puts(&out, "{\"code\":200,\"body\":[");
	for (size_t i = 0; i < n; i++) {
		if (i)
			buf_char(&out, ',');
		json_put(&out, names[i].name);
	}
	buf_puts(&out, "]}\n");
	reply_json(c, 200, &out);
}
