/* api1_scdoc.c - the requests' part of kiln-api(7), made of the same tables as they are. */
#include "server/api1.h"

#include "server/routes.h"

static void put_escaped(struct buf *out, const char *text)
{
	for (; *text; text++) {
		if (strchr("*_\\<", *text))
			buf_char(out, '\\');
		buf_char(out, *text);
	}
}

/* Is there an earlier request with the same parameter? Then it has been explained. */
static bool is_known(size_t route, const struct param *p)
{
	for (size_t i = 0; i < route; i++) {
		const struct endpoint *endpoint = api1_find(routes[i].path);

		for (size_t k = 0; endpoint && k < endpoint->nparams; k++)
			if (strcmp(endpoint->params[k].name, p->name) == 0 &&
			    strcmp(endpoint->params[k].help, p->help) == 0)
				return true;
	}
	return false;
}

static void put_name(struct buf *out, const struct param *p)
{
	buf_char(out, '*');
	put_escaped(out, p->name);
	buf_char(out, '*');
	if (p->initial && p->kind != PARAM_FLAG) {
		buf_char(out, '=');
		put_escaped(out, p->initial);
	}
}

static void put_param(struct buf *out, const struct param *p)
{
	put_name(out, p);
	buf_puts(out, "\n\t");
	put_escaped(out, p->help);
	if (p->choices) {
		buf_puts(out, " One of: ");
		put_escaped(out, p->choices);
		buf_char(out, '.');
	}
	if (p->kind == PARAM_INT || p->kind == PARAM_NUMBER)
		buf_printf(out, " From %.15g to %.15g.", p->min, p->max);
	buf_puts(out, "\n\n");
}

static void put_params(struct buf *out, size_t route, const struct endpoint *endpoint)
{
	size_t nknown = 0;

	for (size_t i = 0; i < endpoint->nparams; i++)
		if (!is_known(route, &endpoint->params[i]))
			put_param(out, &endpoint->params[i]);
	for (size_t i = 0; i < endpoint->nparams; i++) {
		if (!is_known(route, &endpoint->params[i]))
			continue;
		buf_puts(out, nknown++ ? ", " : "As above: ");
		put_name(out, &endpoint->params[i]);
	}
	buf_puts(out, nknown ? ".\n\n" : "");
}

static void put_path(struct buf *out, const struct route *r, const struct endpoint *endpoint)
{
	struct str path = str_of(r->path);

	buf_printf(out, "## %s ", r->method);
	path.n -= path.p[path.n - 1] == '*';
	buf_str(out, path);
	for (size_t i = 0; i < endpoint->nparams; i++)
		if (endpoint->params[i].flags & IS_PATH)
			buf_printf(out, "_%s_", endpoint->params[i].name);
	buf_puts(out, "\n\n");
}

void server_scdoc_api(struct buf *out)
{
	for (size_t i = 0; i < nroutes; i++) {
		const struct endpoint *endpoint = api1_find(routes[i].path);

		if (!endpoint)
			continue;
		put_path(out, &routes[i], endpoint);
		put_escaped(out, endpoint->details);
		buf_puts(out, routes[i].role == ROLE_ADMIN ? " Takes the role admin.\n\n" : "\n\n");
		put_params(out, i, endpoint);
	}
}
