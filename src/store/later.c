/* later.c - what is not written yet. */
#include "store/store.h"

bool store_keep_service(struct store *s, struct str service, const struct store_keep *keep,
			struct err *e)
{
	(void)s, (void)service, (void)keep;
	return err_set(e, ERR_USAGE, "keeping is not there yet");
}
