/* escape.h - text from the program within HTML and URLs, escaped as Go does. */
#ifndef AGENT_ESCAPE_H
#define AGENT_ESCAPE_H

#include "agent/out.h"

void out_html(struct out *o, const char *s);
/* A path. */
void out_url(struct out *o, const char *s);

#endif
