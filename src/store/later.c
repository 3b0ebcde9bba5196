/* later.c - what is not written yet. */
#include "store/store.h"

bool store_series(struct store *s, const struct store_series_params *params, struct arena *a,
		  struct store_line **lines, size_t *n, struct err *e)
{
	(void)s, (void)params, (void)a, (void)lines, (void)n;
	return err_set(e, ERR_USAGE, "series are not there yet");
}

bool store_top(struct store *s, const struct store_top_params *params, struct arena *a,
	       struct store_top *top, struct err *e)
{
	(void)s, (void)params, (void)a, (void)top;
	return err_set(e, ERR_USAGE, "top is not there yet");
}

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
