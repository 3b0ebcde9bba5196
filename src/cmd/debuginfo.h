/* debuginfo.h - what the files of kiln debuginfo share; private to cmd/. */
#ifndef CMD_DEBUGINFO_H
#define CMD_DEBUGINFO_H

#include "cmd/api.h"

enum { EXIT_FAILED = 1 }; /* some of it could not be done */

struct debuginfo_options {
	struct api_options api;
	bool force, quiet, json, help;
};

/* A server, and how to ask it. */
struct debuginfo_client {
	const struct debuginfo_options *o;
	struct api *api;
};

/* One request; method as in api_request. */
bool debuginfo_ask(const struct debuginfo_client *c, const char *method, const char *path,
		   struct str body, struct http_response *r, struct err *e);

/* debuginfo_upload.c: files and folders. Returns the exit status. */
int debuginfo_upload(const struct debuginfo_client *c, int argc, char **argv);

#endif
