/* save.h - copies of what came from servers, so that it can be looked at again. */
#ifndef FETCH_SAVE_H
#define FETCH_SAVE_H

#include "profile/profile.h"

/* Directories to try, in this order; "" for those that are not set. */
struct save_places {
	const char *pprof_tmpdir; /* $PPROF_TMPDIR */
	const char *home;	  /* $HOME; the copy goes to $HOME/pprof */
	const char *tmpdir;	  /* $TMPDIR, else /tmp */
};

/* Writes the profile to a new file, named after the program and the sample types. `warnings` gets
 * the line that says where, or why not. False: there is no directory to write to. */
bool profile_save_copy(const struct profile *p, const struct save_places *places,
		       struct buf *warnings, struct err *e);

/* As mkdir -p. */
bool save_make_directory(const char *path, struct err *e);

#endif
