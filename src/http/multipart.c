#include "http/multipart.h"

#include <stdio.h>
#include <strings.h>

#include "http/media.h"

enum { MAX_BOUNDARY = 70, MAX_HEADERS = 32 }; /* RFC 2046; ours */

struct reader {
	struct arena *a;
	char delimiter[MAX_BOUNDARY + 8]; /* with the line end before it */
	struct str rest;		  /* begins after a delimiter */
	size_t npart;
	struct err *e;
};

static bool wrong(struct reader *r, const char *what)
{
	return err_set(r->e, ERR_FORMAT, "multipart: part %zu: %s", r->npart, what);
}

/* One line without its end. False: there is none that ends. */
static bool take_line(struct str *rest, struct str *line)
{
	size_t end = str_find(*rest, STR("\r\n"));

	if (end == STR_NONE)
		return false;
	*line = (struct str){ rest->p, end };
	*rest = str_from(*rest, end + 2);
	return true;
}

static bool is_header(struct str name, const char *want)
{
	return name.n == strlen(want) && strncasecmp(name.p, want, name.n) == 0;
}

static bool read_headers(struct reader *r, struct http_part *part)
{
	struct str line;

	for (int i = 0; i < MAX_HEADERS; i++) {
		struct str name;

		if (!take_line(&r->rest, &line))
			return wrong(r, "its headers do not end");
		if (!line.n)
			return true;
		name = str_trim(str_cut(&line, ':'));
		if (is_header(name, "Content-Type"))
			part->type = str_trim(line);
		if (is_header(name, "Content-Disposition")) {
			part->name = http_media_param(r->a, line, "name");
			part->filename = http_media_param(r->a, line, "filename");
		}
	}
	return wrong(r, "it has too many headers");
}

/* After a delimiter: "--" at the end of all, or the end of the line. */
static bool begin_part(struct reader *r, bool *is_end)
{
	struct str line;

	*is_end = str_has_prefix(r->rest, STR("--"));
	if (*is_end)
		return true;
	if (!take_line(&r->rest, &line) || str_trim(line).n)
		return wrong(r, "no line end after the boundary");
	return true;
}

static bool read_part(struct reader *r, struct http_part *part)
{
	struct str delimiter = str_of(r->delimiter);
	size_t end;

	*part = (struct http_part){ .name = STR(""), .filename = STR(""), .type = STR("") };
	if (!read_headers(r, part))
		return false;
	/* A part may be empty: then its headers' end is the delimiter's beginning. */
	r->rest = (struct str){ r->rest.p - 2, r->rest.n + 2 };
	end = str_find(r->rest, delimiter);
	if (end == STR_NONE)
		return wrong(r, "it does not end in the boundary");
	part->body = end < 2 ? STR("") : (struct str){ r->rest.p + 2, end - 2 };
	r->rest = str_from(r->rest, end + delimiter.n);
	return true;
}

static bool begin(struct reader *r, struct str content_type, struct str body)
{
	struct str boundary = http_media_param(r->a, content_type, "boundary");
	size_t start;

	if (!boundary.n || boundary.n > MAX_BOUNDARY || str_find_char(boundary, 0) != STR_NONE)
		return err_set(r->e, ERR_FORMAT,
			       "multipart: the Content-Type has no boundary of 1 to %d characters",
			       MAX_BOUNDARY);
	snprintf(r->delimiter, sizeof(r->delimiter), "\r\n--%.*s", STR_ARG(boundary));
	start = str_find(body, str_of(r->delimiter + 2));
	if (start == STR_NONE)
		return err_set(r->e, ERR_FORMAT, "multipart: the body has no boundary");
	r->rest = str_from(body, start + strlen(r->delimiter) - 2);
	return true;
}

bool http_multipart_parse(struct arena *a, struct str content_type, struct str body,
			  struct http_part *parts, size_t max, size_t *n, struct err *e)
{
	struct reader r = { .a = a, .e = e };
	bool is_end;

	*n = 0;
	if (!begin(&r, content_type, body))
		return false;
	for (;; r.npart++) {
		if (!begin_part(&r, &is_end))
			return false;
		if (is_end)
			break;
		if (r.npart == max)
			return err_set(e, ERR_FORMAT, "multipart: more than %zu parts", max);
		if (!read_part(&r, &parts[r.npart]))
			return false;
	}
	*n = r.npart;
	return true;
}
