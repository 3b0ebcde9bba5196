/* guard.c - who may ask for what: pages of other sites, and other machines, may not.
 *
 * A page elsewhere can make a browser send requests here, and with a name server of its own it can
 * make the browser believe that we are part of it. The first cannot have the token, the second has
 * the wrong Host. */
#include "web/site.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/random.h>
#include <unistd.h>

const char *const web_headers[][2] = {
	{ "Content-Security-Policy",
	  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
	  "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'" },
	{ "X-Content-Type-Options", "nosniff" },
	{ "X-Frame-Options", "DENY" },
	{ "Referrer-Policy", "no-referrer" },
	{ "Cross-Origin-Resource-Policy", "same-origin" },
	{ "Cross-Origin-Opener-Policy", "same-origin" },
	{ NULL, NULL },
};

void guard_make_token(char token[2 * TOKEN_BYTES + 1])
{
	unsigned char bytes[TOKEN_BYTES];

	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
		abort(); /* a token that can be guessed is none */
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(token + 2 * i, 3, "%02x", bytes[i]);
}

/* "localhost" of "localhost:80", "::1" of "[::1]:80". */
static struct str host_name(struct str host)
{
	if (host.n && host.p[0] == '[') {
		size_t end = str_find_char(host, ']');

		return end == STR_NONE ? STR("") : (struct str){ host.p + 1, end - 1 };
	}
	return str_cut(&host, ':');
}

static bool same_name(struct str a, const char *b)
{
	return a.n == strlen(b) && strncasecmp(a.p, b, a.n) == 0;
}

static bool is_loopback_name(struct str name)
{
	struct in_addr v4;
	char text[64];

	if (same_name(name, "localhost") || same_name(name, "::1"))
		return true;
	if (!name.n || name.n >= sizeof(text))
		return false;
	memcpy(text, name.p, name.n);
	text[name.n] = '\0';
	return inet_pton(AF_INET, text, &v4) == 1 && ntohl(v4.s_addr) >> 24 == 127;
}

/* A name server cannot lie about an address. */
static bool is_address(struct str name)
{
	unsigned char bytes[sizeof(struct in6_addr)];
	char text[64];

	if (!name.n || name.n >= sizeof(text))
		return false;
	memcpy(text, name.p, name.n);
	text[name.n] = '\0';
	return inet_pton(AF_INET, text, bytes) == 1 || inet_pton(AF_INET6, text, bytes) == 1;
}

/* Are we meant by this name? */
static bool is_our_host(const struct site *site, struct str host)
{
	struct str name = host_name(host);
	char own[256] = "";

	if (is_loopback_name(name) || same_name(name, site->host))
		return true;
	if (site->is_loopback_only)
		return false;
	gethostname(own, sizeof(own) - 1);
	return is_address(name) || same_name(name, own);
}

/* Does the browser say that a page of ours asks? */
static bool is_our_page(const struct http_call *call)
{
	struct str origin = http_call_header(call, "Origin");
	struct str site = http_call_header(call, "Sec-Fetch-Site");
	struct str scheme = STR("http://");

	if (site.p && !str_eq(site, STR("same-origin")) && !str_eq(site, STR("none")))
		return false;
	if (!origin.p)
		return true;
	/* A proxy before us may speak TLS. */
	if (str_has_prefix(origin, STR("https://")))
		scheme = STR("https://");
	return str_has_prefix(origin, scheme) &&
	       str_eq(str_from(origin, scheme.n), http_call_header(call, "Host"));
}

/* In a time that does not tell how much of it is right. */
static bool has_token(const struct site *site, struct str token)
{
	unsigned char differs = 0;

	if (token.n != 2 * TOKEN_BYTES)
		return false;
	for (size_t i = 0; i < token.n; i++)
		differs |= (unsigned char)(token.p[i] ^ site->token[i]);
	return !differs;
}

static bool refuse(int *status, const char **why, int number, const char *text)
{
	*status = number;
	*why = text;
	return false;
}

bool guard_allows(const struct site *site, const struct http_call *call, int *status,
		  const char **why)
{
	bool is_read = str_eq(call->method, STR("GET")) || str_eq(call->method, STR("HEAD"));

	if (site->is_loopback_only && !call->is_local)
		return refuse(status, why, 403, "permission denied");
	if (!is_our_host(site, http_call_header(call, "Host")))
		return refuse(status, why, 403,
			      "this server does not go by the name in the request's Host header");
	if (is_read)
		return true;
	if (!str_eq(call->method, STR("POST")) && !str_eq(call->method, STR("DELETE")))
		return refuse(status, why, 405, "method not allowed");
	if (!is_our_page(call))
		return refuse(status, why, 403, "requests of other sites are not allowed");
	if (!has_token(site, http_call_header(call, "X-Kiln-Token")))
		return refuse(status, why, 403,
			      "the token is wrong: load the page again, the server has restarted");
	return true;
}
