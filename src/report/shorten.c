#include "report/shorten.h"

#include <stdlib.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/regex.h"

/* Of the first that matches, group 1 is the short name. */
static const char *const patterns[] = {
	/* Go: path/to/package.Type.Method */
	"^(?:[\\w\\-\\.]+\\/)+([^.]+\\..+)",
	/* Java: com.example.Class.method( */
	"^(?:[a-z]\\w*\\.)*([A-Z][\\w\\$]*\\.(?:<init>|[a-z][\\w\\$]*(?:\\$\\d+)?))(?:(?:\\()|$)",
	/* C++: a::b::Class::method */
	"^(?:[_a-zA-Z]\\w*::)+(_*[A-Z]\\w*::~?[_a-zA-Z]\\w*(?:<.*>)?)",
};

enum { NPATTERNS = sizeof(patterns) / sizeof(*patterns) };

struct shortener {
	struct regex *version; /* of a Go module: path/v2.Func */
	struct regex *patterns[NPATTERNS];
	struct buf text;
};

static struct regex *compile(const char *pattern)
{
	struct err e;

	return regex_compile(str_of(pattern), &e);
}

struct shortener *shortener_new(void)
{
	struct shortener *s = xmalloc(sizeof(*s));

	*s = (struct shortener){ 0 };
	s->version = compile("^(.*?)/v(?:[2-9]|[1-9][0-9]+)([./].*)$");
	for (int i = 0; i < NPATTERNS; i++)
		s->patterns[i] = compile(patterns[i]);
	return s;
}

void shortener_free(struct shortener *s)
{
	regex_free(s->version);
	for (int i = 0; i < NPATTERNS; i++)
		regex_free(s->patterns[i]);
	buf_release(&s->text);
	free(s);
}

static struct str group(struct str s, struct regex_span g)
{
	return (struct str){ s.p + g.start, g.end - g.start };
}

struct str shorten(struct shortener *s, struct str name)
{
	struct regex_span g[3];

	if (str_has_prefix(name, STR("(anonymous namespace)::")))
		name = str_from(name, 23);
	if (regex_find(s->version, name, g, 3)) {
		s->text.n = 0;
		buf_str(&s->text, group(name, g[1]));
		buf_str(&s->text, group(name, g[2]));
		name = buf_view(&s->text);
	}
	for (int i = 0; i < NPATTERNS; i++)
		if (regex_find(s->patterns[i], name, g, 2) && g[1].start != STR_NONE)
			return group(name, g[1]);
	return name;
}

struct str name_package(struct str name)
{
	size_t end = 0, slash, dot;
	struct str head;

	while (end < name.n && !strchr("(<[ ", name.p[end]))
		end++;
	head = (struct str){ name.p, end };
	slash = str_rfind_char(head, '/');
	if (slash != STR_NONE) {
		dot = str_find_char(str_from(head, slash), '.');
		return (struct str){ name.p, dot == STR_NONE ? slash : slash + dot };
	}
	for (size_t i = head.n; i-- > 0;)
		if (head.p[i] == '.' || (head.p[i] == ':' && i && head.p[i - 1] == ':'))
			return (struct str){ name.p, head.p[i] == '.' ? i : i - 1 };
	return STR("");
}
