/* openapi.c - the API described for programs: made of routes.def, the endpoints' parameters and
 * schemas.def, so that it cannot differ from what is served. */
#include "server/api1.h"

#include <ctype.h>

#include "base/version.h"
#include "server/routes.h"

static const struct schema {
	const char *name, *json;
} schemas[] = {
#define SCHEMA(name, ...) { #name, #__VA_ARGS__ },
#include "server/schemas.def"
};

static void put_field(struct buf *out, const char *name, const char *text)
{
	buf_printf(out, "\"%s\":", name);
	json_put(out, str_of(text));
}

/* ---- parameters */

static void put_choices(struct buf *out, const char *choices)
{
	struct str rest = str_of(choices);

	buf_puts(out, "\"type\":\"string\",\"enum\":[");
	for (bool more = false; rest.n; more = true) {
		if (more)
			buf_char(out, ',');
		json_put(out, str_cut(&rest, ' '));
	}
	buf_char(out, ']');
}

static void put_initial(struct buf *out, const struct param *p)
{
	if (!p->initial)
		return;
	buf_puts(out, ",\"default\":");
	if (p->kind == PARAM_INT || p->kind == PARAM_NUMBER || p->kind == PARAM_FLAG)
		buf_puts(out, p->initial);
	else
		json_put(out, str_of(p->initial));
}

static void put_param_schema(struct buf *out, const struct param *p)
{
	static const char *const types[] = {
		[PARAM_TEXT] = "string",     [PARAM_SELECTOR] = "string", [PARAM_TIME] = "string",
		[PARAM_DURATION] = "string", [PARAM_INT] = "integer",	  [PARAM_NUMBER] = "number",
		[PARAM_FLAG] = "boolean",
	};

	buf_puts(out, "\"schema\":{");
	if (p->kind == PARAM_CHOICE)
		put_choices(out, p->choices);
	else
		put_field(out, "type", types[p->kind]);
	if (p->kind == PARAM_INT || p->kind == PARAM_NUMBER)
		buf_printf(out, ",\"minimum\":%.15g,\"maximum\":%.15g", p->min, p->max);
	put_initial(out, p);
	buf_char(out, '}');
}

static void put_params(struct buf *out, const struct endpoint *endpoint)
{
	buf_puts(out, ",\"parameters\":[");
	for (size_t i = 0; i < endpoint->nparams; i++) {
		const struct param *p = &endpoint->params[i];
		bool is_path = p->flags & IS_PATH;

		buf_puts(out, i ? ",\n{" : "\n{");
		put_field(out, "name", p->name);
		buf_printf(out, ",\"in\":\"%s\",\"required\":%s,", is_path ? "path" : "query",
			   is_path ? "true" : "false");
		put_field(out, "description", p->help);
		buf_char(out, ',');
		put_param_schema(out, p);
		buf_char(out, '}');
	}
	buf_char(out, ']');
}

/* ---- answers */

static void put_content(struct buf *out, const struct endpoint *endpoint)
{
	struct str rest = str_of(endpoint->types ? endpoint->types : "");
	bool more = endpoint->answer;

	if (endpoint->answer)
		buf_printf(out,
			   "\"application/json\":{\"schema\":{\"$ref\":"
			   "\"#/components/schemas/%s\"}}",
			   endpoint->answer);
	for (; rest.n; more = true) {
		struct str type = str_cut(&rest, ' ');

		buf_printf(out, "%s\"%.*s\":{", more ? "," : "", STR_ARG(type));
		if (endpoint->event)
			buf_printf(out,
				   "\"schema\":{\"type\":\"string\",\"contentMediaType\":"
				   "\"application/json\",\"contentSchema\":{\"$ref\":"
				   "\"#/components/schemas/%s\"}}",
				   endpoint->event);
		buf_char(out, '}');
	}
}

static void put_answers(struct buf *out, const struct endpoint *endpoint)
{
	buf_puts(out, ",\"responses\":{\"200\":{\"description\":\"The answer.\"");
	if (endpoint && (endpoint->answer || endpoint->types)) {
		buf_puts(out, ",\"content\":{");
		put_content(out, endpoint);
		buf_char(out, '}');
	}
	buf_printf(out,
		   "},\"default\":{\"description\":\"What is wrong.\",\"content\":"
		   "{\"application/json\":{\"schema\":{\"$ref\":"
		   "\"#/components/schemas/%s\"}}}}}",
		   endpoint && endpoint->error ? endpoint->error : "Error");
}

/* ---- routes */

/* Of those that end in a '*': what that stands for. */
static const char *rest_name(const struct endpoint *endpoint)
{
	for (size_t i = 0; endpoint && i < endpoint->nparams; i++)
		if (endpoint->params[i].flags & IS_PATH)
			return endpoint->params[i].name;
	return "rest";
}

static bool has_rest(const char *path)
{
	return path[strlen(path) - 1] == '*';
}

static void put_path(struct buf *out, const char *path)
{
	struct str text = str_of(path);

	text.n -= has_rest(path);
	buf_char(out, '"');
	buf_str(out, text);
	if (has_rest(path))
		buf_printf(out, "{%s}", rest_name(api1_find(path)));
	buf_puts(out, "\":{");
}

static void put_lower(struct buf *out, const char *text)
{
	for (; *text; text++)
		buf_char(out, (char)tolower((unsigned char)*text));
}

static const char *role_name(enum role role)
{
	return role == ROLE_ADMIN ? "admin" : role & ROLE_WRITE ? "write" : role ? "read" : "none";
}

static void put_route(struct buf *out, const struct route *r)
{
	const struct endpoint *endpoint = api1_find(r->path);

	buf_char(out, '"');
	put_lower(out, r->method);
	buf_puts(out, "\":{");
	put_field(out, "summary", r->help);
	if (endpoint) {
		buf_char(out, ',');
		put_field(out, "description", endpoint->details);
	}
	buf_printf(out, ",\"x-role\":\"%s\"", role_name(r->role));
	if (endpoint)
		put_params(out, endpoint);
	else if (has_rest(r->path))
		buf_puts(out, ",\"parameters\":[{\"name\":\"rest\",\"in\":\"path\",\"required\":"
			      "true,\"schema\":{\"type\":\"string\"}}]");
	put_answers(out, endpoint);
	buf_char(out, '}');
}

static bool is_first_of_path(size_t route)
{
	for (size_t i = 0; i < route; i++)
		if (strcmp(routes[i].path, routes[route].path) == 0)
			return false;
	return true;
}

static void put_paths(struct buf *out)
{
	size_t npaths = 0;

	for (size_t i = 0; i < nroutes; i++) {
		if (!is_first_of_path(i))
			continue;
		buf_puts(out, npaths++ ? ",\n" : "\n");
		put_path(out, routes[i].path);
		for (size_t k = i, nmethods = 0; k < nroutes; k++) {
			if (strcmp(routes[k].path, routes[i].path) != 0)
				continue;
			buf_puts(out, nmethods++ ? ",\n" : "");
			put_route(out, &routes[k]);
		}
		buf_char(out, '}');
	}
}

static void put_schemas(struct buf *out)
{
	for (size_t i = 0; i < sizeof(schemas) / sizeof(*schemas); i++)
		buf_printf(out, "%s\"%s\":%s", i ? ",\n" : "\n", schemas[i].name, schemas[i].json);
}

static bool run_openapi(struct request *q, struct buf *out, struct err *e)
{
	(void)q, (void)e;
	buf_puts(out, "{\"openapi\":\"3.1.0\",\"info\":{\"title\":\"kiln "
		      "serve\",\"version\":\"" KILN_VERSION
		      "\",\"description\":\"Profiles of a fleet: kiln-api(7).\"},\n"
		      "\"security\":[{},{\"token\":[]},{\"basic\":[]}],\n\"paths\":{");
	put_paths(out);
	buf_puts(out, "},\n\"components\":{\"securitySchemes\":{"
		      "\"token\":{\"type\":\"http\",\"scheme\":\"bearer\"},"
		      "\"basic\":{\"type\":\"http\",\"scheme\":\"basic\"}},\n\"schemas\":{");
	put_schemas(out);
	buf_puts(out, "}}}\n");
	return true;
}

const struct endpoint endpoint_openapi = {
	.path = "/api/1/openapi.json",
	.details = "This description.",
	.answer = "Description",
	.run = run_openapi,
};
