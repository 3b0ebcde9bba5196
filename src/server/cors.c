#include "server/cors.h"

#define HEADERS "Authorization, Content-Type, Content-Encoding, Connect-Protocol-Version"

static bool is_origin(struct str text)
{
	size_t at = str_find(text, STR("://"));

	if (str_eq(text, STR("*")))
		return true;
	if (!at || at == STR_NONE || at + 3 == text.n)
		return false;
	for (size_t i = 0; i < text.n; i++)
		if (text.p[i] <= ' ' || text.p[i] > '~' || (i > at + 2 && text.p[i] == '/'))
			return false;
	return true;
}

bool cors_check(struct str origins, struct err *e)
{
	while (origins.n) {
		struct str one = str_trim(str_cut(&origins, ','));

		if (!is_origin(one))
			return err_set(e, ERR_USAGE,
				       "\"%.*s\" is no origin: write https://grafana.example:3000, "
				       "without a path, or *",
				       STR_ARG(one));
	}
	return true;
}

static bool is_listed(struct str origins, struct str origin)
{
	while (origins.n) {
		struct str one = str_trim(str_cut(&origins, ','));

		if (str_eq(one, origin) || str_eq(one, STR("*")))
			return true;
	}
	return false;
}

static bool is_api(struct str path)
{
	static const char *const prefixes[] = { "/api/", "/querier.v1.", "/pyroscope/" };

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(*prefixes); i++)
		if (str_has_prefix(path, str_of(prefixes[i])))
			return true;
	return false;
}

bool cors_is_allowed(const struct call *c, struct str path)
{
	struct str origin = http_call_header(c->http, "Origin");

	return origin.n && is_api(path) &&
	       is_listed(str_of(c->server->options->cors_origins), origin);
}

void cors_put_headers(struct call *c, struct str path)
{
	/* An answer that is kept must not be given to another site. */
	if (*c->server->options->cors_origins && is_api(path))
		http_reply_header(c->reply, "Vary", "Origin");
	if (!cors_is_allowed(c, path))
		return;
	http_reply_header(c->reply, "Access-Control-Allow-Origin",
			  str_dup(c->arena, http_call_header(c->http, "Origin")));
	http_reply_header(c->reply, "Access-Control-Expose-Headers",
			  "X-Kiln-Merged, X-Kiln-Left-Out, X-Kiln-Limit, Retry-After");
}

bool cors_answer(struct call *c, struct str path, const char *methods)
{
	if (!str_eq(c->http->method, STR("OPTIONS")) ||
	    !http_call_header(c->http, "Access-Control-Request-Method").n ||
	    !cors_is_allowed(c, path))
		return false;
	c->reply->status = 204;
	http_reply_header(c->reply, "Access-Control-Allow-Methods", methods);
	http_reply_header(c->reply, "Access-Control-Allow-Headers", HEADERS);
	http_reply_header(c->reply, "Access-Control-Max-Age", "600");
	return true;
}
