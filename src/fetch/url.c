#include "fetch/url.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/number.h"
#include "base/vec.h"

/* Where a character stands decides whether it must be escaped. */
enum part { IN_USER, IN_HOST, IN_PATH, IN_QUERY, IN_FRAGMENT };

static bool is_one_of(char c, const char *set)
{
	return c && strchr(set, c);
}

static bool must_escape(char c, enum part part)
{
	if (isascii(c) && isalnum((unsigned char)c))
		return false;
	if (is_one_of(c, "-_.~"))
		return false;
	switch (part) {
	case IN_USER:
		return !is_one_of(c, "$&+,;=");
	case IN_HOST:
		return !is_one_of(c, "!$&'()*+,;=:[]<>\"");
	case IN_PATH:
		return !is_one_of(c, "$&+,/:;=@");
	case IN_FRAGMENT:
		return !is_one_of(c, "$&+,/:;=?@!()*");
	case IN_QUERY:
		break;
	}
	return true;
}

static void put_escaped(struct buf *out, struct str s, enum part part)
{
	for (size_t i = 0; i < s.n; i++) {
		if (part == IN_QUERY && s.p[i] == ' ')
			buf_char(out, '+');
		else if (must_escape(s.p[i], part))
			buf_printf(out, "%%%02X", (unsigned)(unsigned char)s.p[i]);
		else
			buf_char(out, s.p[i]);
	}
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool unescape(struct arena *a, struct str s, enum part part, struct str *out)
{
	char *to = arena_alloc(a, s.n + 1);
	size_t n = 0;

	for (size_t i = 0; i < s.n; i++) {
		char c = s.p[i];

		if (c == '%') {
			int high = i + 2 < s.n ? hex_digit(s.p[i + 1]) : -1;
			int low = high >= 0 ? hex_digit(s.p[i + 2]) : -1;

			if (low < 0)
				return false;
			c = (char)(high << 4 | low);
			if (part == IN_HOST && high < 8 && c != '%')
				return false;
			i += 2;
		} else if (part == IN_QUERY && c == '+') {
			c = ' ';
		} else if (part == IN_HOST && isascii(c) && must_escape(c, part)) {
			return false;
		}
		to[n++] = c;
	}
	*out = (struct str){ to, n };
	return true;
}

/* May it stay as it was written? */
static bool is_escaped(struct str s, enum part part)
{
	for (size_t i = 0; i < s.n; i++)
		if (!is_one_of(s.p[i], "!$&'()*+,;=:@[]%") && must_escape(s.p[i], part))
			return false;
	return true;
}

/* ---- reading */

/* False: there is a colon with nothing before it. */
static bool take_scheme(struct arena *a, struct str *rest, struct str *scheme)
{
	char *lower;
	size_t n = 0;

	while (n < rest->n && isascii(rest->p[n]) &&
	       (isalpha((unsigned char)rest->p[n]) ||
		(n && (isdigit((unsigned char)rest->p[n]) || is_one_of(rest->p[n], "+-.")))))
		n++;
	if (n == rest->n || rest->p[n] != ':')
		return true;
	if (!n)
		return false;
	lower = str_dup(a, (struct str){ rest->p, n });
	for (size_t i = 0; i < n; i++)
		lower[i] = (char)tolower((unsigned char)lower[i]);
	*scheme = (struct str){ lower, n };
	*rest = str_from(*rest, n + 1);
	return true;
}

static bool is_port(struct str s)
{
	if (s.n && s.p[0] != ':')
		return false;
	for (size_t i = 1; i < s.n; i++)
		if (!isdigit((unsigned char)s.p[i]))
			return false;
	return true;
}

static bool read_host(struct arena *a, struct str s, struct str *host)
{
	size_t colon;

	if (s.n && s.p[0] == '[') {
		colon = str_rfind_char(s, ']');
		if (colon == STR_NONE)
			return false;
		colon++;
	} else {
		colon = str_rfind_char(s, ':');
	}
	return (colon == STR_NONE || is_port(str_from(s, colon))) && unescape(a, s, IN_HOST, host);
}

static bool read_user(struct arena *a, struct str s, struct url *u)
{
	struct str password = s;
	struct str user = str_cut(&password, ':');

	for (size_t i = 0; i < s.n; i++)
		if (!(isascii(s.p[i]) && isalnum((unsigned char)s.p[i])) &&
		    !is_one_of(s.p[i], "-._:~!$&'()*+,;=%@"))
			return false;
	u->has_user = true;
	u->has_password = password.p;
	return unescape(a, user, IN_USER, &u->user) && unescape(a, password, IN_USER, &u->password);
}

static bool read_authority(struct arena *a, struct str s, struct url *u)
{
	size_t at = str_rfind_char(s, '@');

	if (at == STR_NONE)
		return read_host(a, s, &u->host);
	return read_host(a, str_from(s, at + 1), &u->host) &&
	       read_user(a, (struct str){ s.p, at }, u);
}

static void take_query(struct str *rest, struct url *u)
{
	size_t mark = str_find_char(*rest, '?');

	if (mark == STR_NONE)
		return;
	u->has_empty_query = mark + 1 == rest->n;
	u->query = str_from(*rest, mark + 1);
	rest->n = mark;
}

/* What comes before a slash may not look like a scheme. */
static bool starts_with_colon_segment(struct str s)
{
	return str_find_char(str_cut(&s, '/'), ':') != STR_NONE;
}

bool url_parse(struct arena *a, struct url *u, struct str text)
{
	struct str fragment = text, rest = str_cut(&fragment, '#');

	*u = (struct url){ 0 };
	for (size_t i = 0; i < text.n; i++)
		if ((unsigned char)text.p[i] < 0x20 || text.p[i] == 0x7f)
			return false;
	if (!take_scheme(a, &rest, &u->scheme))
		return false;
	take_query(&rest, u);
	if (rest.n && rest.p[0] != '/' && u->scheme.n)
		return true; /* mailto:x, host:port: nothing that we could fetch */
	if (rest.n && rest.p[0] != '/' && starts_with_colon_segment(rest))
		return false;
	if (str_has_prefix(rest, STR("//")) && (u->scheme.n || !str_has_prefix(rest, STR("///")))) {
		struct str authority = str_from(rest, 2);
		size_t slash = str_find_char(authority, '/');

		rest = slash == STR_NONE ? STR("") : str_from(authority, slash);
		authority.n = slash == STR_NONE ? authority.n : slash;
		if (!read_authority(a, authority, u))
			return false;
	}
	u->raw_path = rest;
	u->raw_fragment = fragment;
	return unescape(a, rest, IN_PATH, &u->path) &&
	       unescape(a, fragment, IN_FRAGMENT, &u->fragment);
}

void url_set_path(struct url *u, struct str path)
{
	u->path = path;
	u->raw_path = STR("");
}

/* As it was written, if that is right. */
static void put_raw_or_escaped(struct buf *out, struct str raw, struct str plain, enum part part)
{
	if (raw.n && is_escaped(raw, part))
		buf_str(out, raw);
	else
		put_escaped(out, plain, part);
}

void url_write(struct buf *out, const struct url *u)
{
	if (u->scheme.n) {
		buf_str(out, u->scheme);
		buf_char(out, ':');
	}
	if (u->host.n)
		buf_puts(out, "//");
	if (u->has_user) {
		put_escaped(out, u->user, IN_USER);
		if (u->has_password) {
			buf_char(out, ':');
			put_escaped(out, u->password, IN_USER);
		}
		buf_char(out, '@');
	}
	put_escaped(out, u->host, IN_HOST);
	put_raw_or_escaped(out, u->raw_path, u->path, IN_PATH);
	if (u->query.n || u->has_empty_query)
		buf_char(out, '?');
	buf_str(out, u->query);
	if (u->fragment.n) {
		buf_char(out, '#');
		put_raw_or_escaped(out, u->raw_fragment, u->fragment, IN_FRAGMENT);
	}
}

/* ---- the query */

struct pair {
	struct str name, value;
	size_t order;
};

/* The next one that Go would keep. */
static bool next_pair(struct arena *a, struct str *rest, struct pair *pair)
{
	while (rest->p && rest->n) {
		struct str value = str_cut(rest, '&'), name;

		if (!value.n || str_find_char(value, ';') != STR_NONE)
			continue;
		name = str_cut(&value, '=');
		if (unescape(a, name, IN_QUERY, &pair->name) &&
		    unescape(a, value, IN_QUERY, &pair->value))
			return true;
	}
	return false;
}

struct str url_query_get(struct arena *a, const struct url *u, struct str name)
{
	struct str rest = u->query;
	struct pair pair;

	while (next_pair(a, &rest, &pair))
		if (str_eq(pair.name, name))
			return pair.value;
	return STR("");
}

static int by_name(const void *x, const void *y)
{
	const struct pair *a = x, *b = y;
	int c = str_cmp(a->name, b->name);

	return c ? c : (a->order > b->order) - (a->order < b->order);
}

void url_query_set(struct arena *a, struct url *u, struct str name, struct str value)
{
	vec(struct pair) pairs = { 0 };
	struct str rest = u->query;
	struct buf out = { 0 };
	struct pair pair;

	while (next_pair(a, &rest, &pair)) {
		pair.order = pairs.n;
		if (!name.n || !str_eq(pair.name, name))
			vec_push(&pairs, pair);
	}
	if (name.n)
		vec_push(&pairs, (struct pair){ name, value, 0 });
	if (pairs.n)
		qsort(pairs.at, pairs.n, sizeof(*pairs.at), by_name);
	for (size_t i = 0; i < pairs.n; i++) {
		buf_puts(&out, i ? "&" : "");
		put_escaped(&out, pairs.at[i].name, IN_QUERY);
		buf_char(&out, '=');
		put_escaped(&out, pairs.at[i].value, IN_QUERY);
	}
	u->query = str_of(str_dup(a, buf_view(&out)));
	buf_release(&out);
	vec_release(&pairs);
}

/* ---- sources */

enum {
	DEFAULT_TIMEOUT_S = 60,
	GRACE_S = 5,	  /* that the client waits longer */
	CPU_SECONDS = 30, /* what servers do when they are not told */
	MAX_SECONDS = 1 << 30,
};

static bool parse_source(struct arena *a, struct url *u, struct str source)
{
	bool ok = url_parse(a, u, source);

	if (!ok || (!u->host.n && u->scheme.n && !str_eq(u->scheme, STR("file")))) {
		struct buf with_scheme = { 0 };

		buf_puts(&with_scheme, "http://");
		buf_str(&with_scheme, source);
		ok = url_parse(a, u, str_of(str_dup(a, buf_view(&with_scheme))));
		buf_release(&with_scheme);
	}
	return ok && u->host.n;
}

/* "unix:/socket[:/path][?query]", which pprof does not know. In the URL it is a server that is
 * called localhost. */
static bool parse_socket(struct arena *a, struct url *u, struct str source, struct str *socket)
{
	struct str rest = str_has_prefix(source, STR("unix:/")) ? str_from(source, 5) : STR("");
	size_t colon = str_find(rest, STR(":/")), query = str_find_char(rest, '?');
	bool has_path = colon < query; /* STR_NONE is above all */
	struct buf url = { 0 };
	bool ok;

	*socket = rest;
	if (has_path || query < rest.n)
		socket->n = has_path ? colon : query;
	buf_puts(&url, "http://localhost");
	buf_str(&url, str_from(rest, socket->n + has_path));
	ok = socket->n && url_parse(a, u, str_of(str_dup(a, buf_view(&url))));
	buf_release(&url);
	return ok;
}

/* How long a URL says that it takes. */
static int64_t seconds_of(struct arena *a, const struct url *u)
{
	int64_t seconds;

	if (number_parse_int(url_query_get(a, u, STR("seconds")), 10, &seconds) != NUMBER_OK ||
	    seconds > INT32_MAX || seconds < 0)
		return 0;
	return seconds;
}

static char *write_url(struct arena *a, const struct url *u, struct str socket)
{
	struct url there = *u;
	struct buf out = { 0 };
	char *text;

	if (socket.n) {
		buf_printf(&out, "unix:%.*s:", STR_ARG(socket));
		there.scheme = there.host = STR("");
	}
	url_write(&out, &there);
	text = str_dup(a, buf_view(&out));
	buf_release(&out);
	return text;
}

bool url_resolve(struct arena *a, struct str source, int64_t seconds, int64_t timeout,
		 struct url_source *out)
{
	struct url u;
	struct str socket;
	char number[24];

	if (!parse_socket(a, &u, source, &socket) && (socket.n || !parse_source(a, &u, source)))
		return false;
	if (!u.path.n || str_eq(u.path, STR("/")))
		url_set_path(&u, STR("/debug/pprof/profile"));
	if (seconds > 0)
		snprintf(number, sizeof(number), "%" PRId64, seconds);
	else
		seconds = seconds_of(a, &u), *number = '\0';
	url_query_set(a, &u, *number ? STR("seconds") : STR(""), str_of(number));
	if (seconds > MAX_SECONDS)
		seconds = MAX_SECONDS;
	if (timeout <= 0)
		timeout = seconds ? seconds + seconds / 2 : DEFAULT_TIMEOUT_S;
	if (timeout > MAX_SECONDS)
		timeout = MAX_SECONDS;
	*out = (struct url_source){ .url = write_url(a, &u, socket), .seconds = seconds };
	if (!seconds && str_has_suffix(u.path, STR("/profile")))
		out->seconds = CPU_SECONDS;
	out->timeout_ms = (timeout + GRACE_S) * 1000;
	return true;
}
