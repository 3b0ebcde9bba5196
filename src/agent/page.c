#include "agent/page.h"

#include <string.h>

#include "agent/escape.h"
#include "agent/profiles.h"
#include "agent/sort.h"

enum { ENTRIES_MAX = 256 };

struct entry {
	const char *name, *about;
	uint32_t count;
};

/* What is served beside profiles. */
static const struct entry others[] = {
	{ "cmdline", "The arguments that the program was started with", 0 },
	{ "profile",
	  "CPU time of all threads. The parameter seconds says for how long, 30 without it. Open "
	  "the "
	  "file with kiln or go tool pprof.",
	  0 },
	{ "trace",
	  "What threads did, one after the other: waits, allocations, regions of the program. The "
	  "parameter seconds says for how long, 1 without it. Open the file with ui.perfetto.dev.",
	  0 },
};

static int compare(const void *a, const void *b)
{
	return strcmp(((const struct entry *)a)->name, ((const struct entry *)b)->name);
}

static unsigned list(struct entry *entries)
{
	const struct agent_profile *p;
	unsigned n = 0;

	for (; n < sizeof(others) / sizeof(*others); n++)
		entries[n] = others[n];
	for (unsigned i = 0; n < ENTRIES_MAX && (p = profile_at(i)); i++)
		entries[n++] = (struct entry){ p->name, p->about, profile_count(p) };
	sort(entries, n, sizeof(*entries), compare);
	return n;
}

static void write_row(struct out *o, const struct entry *e)
{
	out_format(o, "<tr><td>%u</td><td><a href='", e->count);
	out_url(o, e->name);
	out_text(o, "?debug=1'>");
	out_html(o, e->name);
	out_text(o, "</a></td></tr>\n");
}

static void write_about(struct out *o, const struct entry *e)
{
	out_text(o, "<li><div class=profile-name>");
	out_html(o, e->name);
	out_text(o, ": </div> ");
	out_html(o, e->about ? e->about : "");
	out_text(o, "</li>\n");
}

void page_index(struct out *o)
{
	struct entry entries[ENTRIES_MAX];
	unsigned n = list(entries);

	out_text(o, "<html>\n"
		    "<head>\n"
		    "<title>/debug/pprof/</title>\n"
		    "<style>\n"
		    ".profile-name{\n"
		    "\tdisplay:inline-block;\n"
		    "\twidth:6rem;\n"
		    "}\n"
		    "</style>\n"
		    "</head>\n"
		    "<body>\n"
		    "/debug/pprof/<br>\n"
		    "<br>\n"
		    "Types of profiles available:\n"
		    "<table>\n"
		    "<thead><td>Count</td><td>Profile</td></thead>\n");
	for (unsigned i = 0; i < n; i++)
		write_row(o, &entries[i]);
	out_text(o, "</table>\n"
		    "<a href=\"goroutine?debug=2\">full goroutine stack dump</a>\n"
		    "<br>\n"
		    "<p>\n"
		    "Profile Descriptions:\n"
		    "<ul>\n");
	for (unsigned i = 0; i < n; i++)
		write_about(o, &entries[i]);
	out_text(o, "</ul>\n"
		    "</p>\n"
		    "</body>\n"
		    "</html>");
}
