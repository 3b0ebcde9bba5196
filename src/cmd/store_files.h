/* store_files.h - kiln store: all that a store has as files, and back. */
#ifndef CMD_STORE_FILES_H
#define CMD_STORE_FILES_H

#include "store/store.h"

/* Both say on stdout what they have done. */
bool store_export(struct store *s, const struct store_params *params, const char *folder,
		  struct err *e);
/* `params` tells whom to tell how far it is. */
bool store_import(struct store *s, const struct store_params *params, const char *folder,
		  struct err *e);

#endif
