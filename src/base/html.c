#include "base/html.h"

static const char *replacement(char c)
{
	switch (c) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '"':
		return "&#34;";
	case '\'':
		return "&#39;";
	case '+':
		return "&#43;";
	case '\0':
		return "\xef\xbf\xbd"; /* U+FFFD: a page may not hold a NUL */
	default:
		return NULL;
	}
}

void html_text(struct buf *out, struct str s)
{
	size_t done = 0;

	for (size_t i = 0; i < s.n; i++) {
		const char *text = replacement(s.p[i]);

		if (!text)
			continue;
		buf_add(out, s.p + done, i - done);
		buf_puts(out, text);
		done = i + 1;
	}
	buf_add(out, s.p + done, s.n - done);
}
