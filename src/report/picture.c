/* picture.c - graphs drawn by Graphviz. */
#include "report/report.h"

#include "base/child.h"
#include "base/escape.h"
#include "base/utf8.h"

/* What Graphviz makes of the largest graphs is some 100 MB. */
#define MAX_PICTURE_BYTES ((size_t)1 << 30)

static const unsigned char script[] = {
#include "report/assets/graph.js.inc"
};

/* pprof's words first: scripts may look for them. */
static bool explain(struct err *e)
{
	struct err why = *e;

	if (why.kind == ERR_LIMIT)
		return err_set(e, ERR_LIMIT,
			       "dot was stopped: %s. Draw fewer nodes, e.g. -nodecount=40, or "
			       "allow more time with -dot_timeout",
			       why.text);
	err_set(e, why.kind, "failed to execute dot. Is Graphviz installed? Error: %s%s", why.text,
		why.kind == ERR_NOTFOUND ? "\nTo install it: apt-get install graphviz" : "");
	return false;
}

bool picture_draw(struct buf *out, struct str dot, const struct picture_params *params,
		  struct err *e)
{
	char option[16] = "-T";
	const char *const argv[] = { "dot", option, NULL };

	strncat(option, params->format, sizeof(option) - 3);
	return child_run(&(struct child_params){ .argv = argv,
						 .input = dot,
						 .max_seconds = params->max_seconds,
						 .max_output = MAX_PICTURE_BYTES,
						 .stop = params->stop },
			 out, e) ||
	       explain(e);
}

/* Graphviz copies bytes of names that XML does not allow, and takes "&;" for an entity. */
void picture_clean(struct buf *out, struct str svg)
{
	while (svg.n) {
		uint32_t rune;
		size_t n = utf8_decode(svg, &rune);

		if (str_has_prefix(svg, STR("&;")))
			buf_puts(out, "&amp;");
		else if (xml_allows(rune) && !(rune == UTF8_INVALID && n == 1))
			buf_add(out, svg.p, n);
		else
			buf_puts(out, "\xef\xbf\xbd");
		svg = str_from(svg, n);
	}
}

/* Where the pattern is first found; an empty span at the end if nowhere. */
static struct regex_span find(struct str text, const char *pattern)
{
	struct regex_span at = { text.n, text.n };
	struct err e;
	struct regex *re = regex_compile(str_of(pattern), &e);

	regex_find(re, text, &at, 1);
	regex_free(re);
	return at;
}

static void put_until(struct buf *out, struct str *rest, size_t end)
{
	buf_add(out, rest->p, end);
	*rest = str_from(*rest, end);
}

void picture_make_zoomable(struct buf *out, struct str svg)
{
	struct buf sound = { 0 };
	struct str rest;
	struct regex_span size;

	picture_clean(&sound, svg);
	rest = buf_view(&sound);
	size = find(rest, "<svg\\s*width=\"[^\"]+\"\\s*height=\"[^\"]+\"\\s*viewBox=\"[^\"]+\"");
	put_until(out, &rest, size.start);
	if (size.end > size.start) {
		buf_puts(out, "<svg width=\"100%\" height=\"100%\"");
		rest = str_from(rest, size.end - size.start);
	}
	put_until(out, &rest, find(rest, "<g id=\"graph\\d\"").start);
	buf_puts(out, "<script type=\"text/ecmascript\"><![CDATA[");
	buf_add(out, script, sizeof(script));
	buf_puts(out,
		 "]]></script><g id=\"viewport\" transform=\"scale(0.5,0.5) translate(0,0)\">");
	put_until(out, &rest, find(rest, "</svg>").start);
	buf_puts(out, "</g>");
	buf_str(out, rest);
	buf_release(&sound);
}
