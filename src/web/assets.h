/* assets.h - the files of the page: scripts, styles. They are part of the program. */
#ifndef WEB_ASSETS_H
#define WEB_ASSETS_H

#include "base/buf.h"

struct asset {
	const char *name;
	const unsigned char *bytes;
	size_t n;
};

extern const struct asset assets[];
extern const size_t assets_n;

/* Appends the file: of `dir` if that is not "", else of the program. False: there is none. */
bool asset_read(struct buf *out, const char *dir, struct str name);
/* By the extension. */
const char *asset_type(struct str name);

#endif
