#include "agent/request.h"

#include <string.h>
#include <strings.h>

/* ---- the head */

size_t request_head_size(const char *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (p[i] != '\n')
			continue;
		if (i + 1 < n && p[i + 1] == '\n')
			return i + 2;
		if (i + 2 < n && p[i + 1] == '\r' && p[i + 2] == '\n')
			return i + 3;
	}
	return 0;
}

static bool is_wrong(struct request *r, const char *error)
{
	r->error = r->error_text = error;
	return false;
}

static bool is_token(const char *s)
{
	static const char others[] = "!#$%&'*+-.^_`|~";

	if (!*s)
		return false;
	for (; *s; s++) {
		bool is_letter = (*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z');

		if (!is_letter && !(*s >= '0' && *s <= '9') && !strchr(others, *s))
			return false;
	}
	return true;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* From `s` up to `end` into `to`, which may be the same place. False: an escape is wrong, or stands
 * for what ends a text. */
static bool decode(char *to, const char *s, const char *end, bool plus_is_space)
{
	for (; s < end; s++) {
		char c = *s;

		if (c == '%') {
			int high = end - s > 2 ? hex_digit(s[1]) : -1;
			int low = high >= 0 ? hex_digit(s[2]) : -1;

			if (low < 0 || high + low == 0)
				return false;
			c = (char)(high << 4 | low);
			s += 2;
		} else if (c == '+' && plus_is_space) {
			c = ' ';
		}
		*to++ = c;
	}
	*to = '\0';
	return true;
}

static bool parse_target(struct request *r, char *target)
{
	static const char scheme[] = "http://";

	if (strncmp(target, scheme, sizeof(scheme) - 1) == 0)
		target += sizeof(scheme) - 1 + strcspn(target + sizeof(scheme) - 1, "/?");
	r->path = target;
	r->query = target + strcspn(target, "?");
	if (*r->query)
		*r->query++ = '\0';
	if (strcmp(r->path, "*") == 0)
		*r->path = '\0';
	else if (*r->path != '/')
		return is_wrong(r, "400 Bad Request");
	return decode(r->path, r->path, r->path + strlen(r->path), false) ||
	       is_wrong(r, "400 Bad Request");
}

static enum method method_of(const char *name)
{
	static const char *const names[] = {
		[METHOD_GET] = "GET", [METHOD_HEAD] = "HEAD", [METHOD_POST] = "POST"
	};

	for (unsigned i = 0; i < METHOD_OTHER; i++)
		if (strcmp(name, names[i]) == 0)
			return i;
	return METHOD_OTHER;
}

static bool parse_first_line(struct request *r, char *line)
{
	char *target = strchr(line, ' '), *version = target ? strrchr(target + 1, ' ') : NULL;

	if (!version)
		return is_wrong(r, "400 Bad Request");
	*target++ = *version++ = '\0';
	if (!is_token(line) || strpbrk(target, " \t"))
		return is_wrong(r, "400 Bad Request");
	r->method = method_of(line);
	if (strcmp(version, "HTTP/1.1") == 0 || strcmp(version, "HTTP/1.0") == 0)
		r->minor = version[7] - '0';
	else if (strncmp(version, "HTTP/", 5) == 0 && strlen(version) == 8 && version[6] == '.')
		return is_wrong(r, "505 HTTP Version Not Supported: unsupported protocol version");
	else
		return is_wrong(r, "400 Bad Request");
	r->keeps_open = r->minor > 0;
	return parse_target(r, target);
}

/* ---- its fields. What was seen already is told by bits. */

enum { SEEN_HOST = 1, SEEN_LENGTH = 2 };

static bool take_host(struct request *r, const char *value, unsigned *seen)
{
	(void)value;
	if (*seen & SEEN_HOST)
		return is_wrong(r, "400 Bad Request");
	*seen |= SEEN_HOST;
	return true;
}

static bool take_length(struct request *r, const char *value, unsigned *seen)
{
	uint64_t length = 0;

	if (!*value || *seen & SEEN_LENGTH)
		return is_wrong(r, "400 Bad Request");
	for (; *value; value++) {
		if (*value < '0' || *value > '9' || length > UINT64_MAX / 100)
			return is_wrong(r, "400 Bad Request");
		length = length * 10 + (uint64_t)(*value - '0');
	}
	r->body_size = length;
	*seen |= SEEN_LENGTH;
	return true;
}

static bool take_encoding(struct request *r, const char *value, unsigned *seen)
{
	(void)seen;
	if (strcasecmp(value, "chunked") != 0 || r->is_chunked) {
		r->error = "501 Not Implemented";
		r->error_text = "Unsupported transfer encoding";
		return false;
	}
	r->is_chunked = true;
	return true;
}

static bool take_connection(struct request *r, const char *value, unsigned *seen)
{
	(void)seen;
	if (strcasestr(value, "close"))
		r->keeps_open = false;
	else if (strcasestr(value, "keep-alive"))
		r->keeps_open = true;
	return true;
}

static bool take_expect(struct request *r, const char *value, unsigned *seen)
{
	(void)seen;
	r->wants_continue = strcasecmp(value, "100-continue") == 0;
	return true;
}

static bool take_type(struct request *r, const char *value, unsigned *seen)
{
	static const char form[] = "application/x-www-form-urlencoded";

	(void)seen;
	r->has_form = strncasecmp(value, form, sizeof(form) - 1) == 0;
	return true;
}

static const struct {
	const char *name;
	bool (*take)(struct request *r, const char *value, unsigned *seen);
} fields[] = {
	{ "Host", take_host },
	{ "Content-Length", take_length },
	{ "Transfer-Encoding", take_encoding },
	{ "Connection", take_connection },
	{ "Expect", take_expect },
	{ "Content-Type", take_type },
};

static bool parse_field(struct request *r, char *line, unsigned *seen)
{
	char *value = strchr(line, ':'), *end = line + strlen(line);

	if (!value)
		return is_wrong(r, "400 Bad Request");
	*value++ = '\0';
	if (!is_token(line))
		return is_wrong(r, "400 Bad Request");
	value += strspn(value, " \t");
	while (end > value && (end[-1] == ' ' || end[-1] == '\t'))
		*--end = '\0';
	for (const char *c = value; *c; c++)
		if (((unsigned char)*c < ' ' && *c != '\t') || *c == 0x7f)
			return is_wrong(r, "400 Bad Request");
	for (unsigned i = 0; i < sizeof(fields) / sizeof(*fields); i++)
		if (strcasecmp(line, fields[i].name) == 0)
			return fields[i].take(r, value, seen);
	return true;
}

/* Cuts off the line at *at, and goes to the next. */
static char *next_line(char **at, char *end)
{
	char *line = *at, *stop = memchr(line, '\n', (size_t)(end - line));

	*at = stop + 1;
	if (stop > line && stop[-1] == '\r')
		stop--;
	*stop = '\0';
	return line;
}

bool request_parse(struct request *r, char *head, size_t n)
{
	char *at = head, *end = head + n, *line;
	unsigned seen = 0;

	*r = (struct request){ .path = head, .query = head };
	if (n == 0 || memchr(head, '\0', n) || end[-1] != '\n')
		return is_wrong(r, "400 Bad Request");
	if (!parse_first_line(r, next_line(&at, end)))
		return false;
	while (at < end) {
		line = next_line(&at, end);
		if (*line && !parse_field(r, line, &seen))
			return false;
	}
	if (r->minor > 0 && !(seen & SEEN_HOST))
		return is_wrong(r, "400 Bad Request: missing required Host header");
	if (r->is_chunked && seen & SEEN_LENGTH) {
		/* Whoever is between might have believed the other: nothing may follow. */
		r->body_size = 0;
		r->keeps_open = false;
	}
	return true;
}

/* ---- parameters */

static bool find_value(const char *pairs, const char *name, char *value, size_t size)
{
	while (*pairs) {
		size_t n = strcspn(pairs, "&"), key = strcspn(pairs, "=&");
		const char *end = pairs + n;

		/* A name needs no escapes, and readers of Go reject the ';'. */
		if (key == strlen(name) && memcmp(pairs, name, key) == 0 &&
		    !memchr(pairs, ';', n) && n - key < size) {
			const char *from = pairs + key + (key < n);

			if (decode(value, from, end, true))
				return true;
			*value = '\0';
		}
		pairs = *end ? end + 1 : end;
	}
	return false;
}

bool request_value(const struct request *r, const char *name, char *value, size_t size)
{
	*value = '\0';
	return (r->form && find_value(r->form, name, value, size)) ||
	       find_value(r->query, name, value, size);
}

/* ---- the body */

/* What a chunked body is at. */
enum { SIZE_FIRST, SIZE, EXTENSION, DATA, DATA_END, TRAILER, TRAILER_LINE };

void body_begin(struct body *b, const struct request *r)
{
	*b = (struct body){ .is_chunked = r->is_chunked, .left = r->body_size };
	b->is_over = !b->is_chunked && b->left == 0;
}

static void end_of_size(struct body *b)
{
	b->state = b->left ? DATA : TRAILER;
}

static void take_size(struct body *b, char c)
{
	int digit = hex_digit(c);

	if (digit >= 0 && b->left <= UINT64_MAX >> 8) {
		b->left = b->left << 4 | (uint64_t)digit;
		b->state = SIZE;
	} else if (digit >= 0 || b->state == SIZE_FIRST) {
		b->is_wrong = true;
	} else if (c == '\n') {
		end_of_size(b);
	} else if (c == '\r' || c == ';' || c == ' ' || c == '\t') {
		b->state = EXTENSION;
	} else {
		b->is_wrong = true;
	}
}

/* All but data, one byte after the other. */
static void take_frame(struct body *b, char c)
{
	switch (b->state) {
	case SIZE_FIRST:
	case SIZE:
		take_size(b, c);
		break;
	case EXTENSION:
		if (c == '\n')
			end_of_size(b);
		break;
	case DATA_END:
		b->is_wrong = c != '\r' && c != '\n';
		if (c == '\n')
			b->state = SIZE_FIRST;
		break;
	case TRAILER:
		b->is_over = c == '\n';
		if (c != '\n' && c != '\r')
			b->state = TRAILER_LINE;
		break;
	default: /* TRAILER_LINE */
		if (c == '\n')
			b->state = TRAILER;
	}
}

size_t body_take(struct body *b, const char *p, size_t n, const char **data, size_t *ndata)
{
	size_t at = 0;

	*ndata = 0;
	while (b->is_chunked && b->state != DATA && at < n && !b->is_over && !b->is_wrong)
		take_frame(b, p[at++]);
	if (b->is_over || b->is_wrong || (b->is_chunked && b->state != DATA))
		return at;
	*data = p + at;
	*ndata = n - at < b->left ? n - at : (size_t)b->left;
	b->left -= *ndata;
	b->total += *ndata;
	if (b->left == 0) {
		b->state = DATA_END;
		b->is_over = !b->is_chunked;
	}
	return at + *ndata;
}
