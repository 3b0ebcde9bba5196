/* later.c - what is not written yet. */
#include "store/store.h"

bool store_delete(struct store *s, const struct store_query *q, bool dry_run, uint64_t *n,
		  struct err *e)
{
	(void)s, (void)q, (void)dry_run, (void)n;
	return err_set(e, ERR_USAGE, "deleting is not there yet");
}

bool store_keep_service(struct store *s, struct str service, const struct store_keep *keep,
			struct err *e)
{
	(void)s, (void)service, (void)keep;
	return err_set(e, ERR_USAGE, "keeping is not there yet");
}
