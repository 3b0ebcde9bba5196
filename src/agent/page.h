/* page.h - the page that lists all profiles. */
#ifndef AGENT_PAGE_H
#define AGENT_PAGE_H

#include "agent/out.h"

void page_index(struct out *o);

#endif
