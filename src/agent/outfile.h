/* outfile.h - a file that is written much later than it was named: by then the program may be in
 * another directory or root, and may have closed all descriptors. It is complete or not there. */
#ifndef AGENT_OUTFILE_H
#define AGENT_OUTFILE_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include "agent/out.h"

struct outfile {
	int directory; /* descriptor, of which the program may have made something else */
	dev_t device;
	ino_t inode;
	char path[PATH_MAX];	 /* of the directory */
	char name[NAME_MAX + 1]; /* in there */
};

/* `pattern` is relative to the current directory; %p in it is the process id, which is also added
 * to the name if it must be and is not there. False: errno. */
bool outfile_open(struct outfile *f, const char *pattern, bool must_have_pid);
/* False: errno. May be called again, which replaces the file. `suffix` is added to its name. */
bool outfile_write(struct outfile *f, const char *suffix, const struct out *content);
void outfile_close(struct outfile *f);

#endif
