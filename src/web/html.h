/* html.h - the page as one file. Private to web/. */
#ifndef WEB_HTML_H
#define WEB_HTML_H

#include "report/report.h"

/* What report_params.into may point to. */
struct html_params {
	const char *dir;  /* of the page's files; "": those of the program */
	const char *name; /* of the profile */
};

extern const struct report report_html;

#endif
