#include "agent/escape.h"

#include <string.h>

void out_html(struct out *o, const char *s)
{
	static const char special[] = "<>&'\"";
	static const char *const escaped[] = { "&lt;", "&gt;", "&amp;", "&#39;", "&#34;" };

	for (; *s; s++) {
		const char *found = strchr(special, *s);

		if (found)
			out_text(o, escaped[found - special]);
		else
			out_add(o, s, 1);
	}
}

void out_url(struct out *o, const char *s)
{
	static const char others[] = "-_.~$&+,/:;=@";

	for (; *s; s++) {
		bool is_letter = (*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z');

		if (is_letter || (*s >= '0' && *s <= '9') || strchr(others, *s))
			out_add(o, s, 1);
		else
			out_format(o, "%%%02X", (unsigned)(unsigned char)*s);
	}
}
