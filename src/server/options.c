#include "server/options.h"

#include <stddef.h>

#include "server/cors.h"
#include "server/keep_rules.h"
#include "server/owners.h"
#include "server/webhook.h"
#include "symbol/symbol.h"

#define OPTION_SECOND INT64_C(1000000000)
#define OPTION_MINUTE (60 * OPTION_SECOND)
#define OPTION_DAY (86400 * OPTION_SECOND)
#define OPTION_MB (INT64_C(1) << 20)
#define OPTION_GB (INT64_C(1) << 30)
#define MIN_DISK (16 * OPTION_MB)
enum { MAX_SCRAPES = 10000 }; /* each has a thread */

static const struct option_def rows[] = {
#define OPT(type, field, flag, profefe, initial, value, help) \
	{ flag, OPTION_##type, offsetof(struct server_options, field), 0, profefe, value, help },
#include "server/options.def"
#undef OPT
};

const struct server_options server_defaults = {
#define OPT(type, field, flag, profefe, initial, value, help) .field = initial,
#include "server/options.def"
#undef OPT
};

const struct option_table server_option_table = { .at = rows,
						  .n = sizeof(rows) / sizeof(*rows),
						  .defaults = &server_defaults };

/* No option is below 0. */
static bool check_signs(const struct server_options *o, struct err *e)
{
	for (size_t i = 0; i < server_option_table.n; i++) {
		const struct option_def *d = &rows[i];
		bool is_number =
			d->type == OPTION_INT || d->type == OPTION_TIME || d->type == OPTION_BYTES;
		const void *value = (const char *)o + d->offset;

		if (is_number && *(const int64_t *)value < 0)
			return err_set(e, ERR_USAGE, "--%s must not be below 0", d->name);
		if (d->type == OPTION_FLOAT && !(*(const double *)value >= 0))
			return err_set(e, ERR_USAGE, "--%s must be 0 or more", d->name);
	}
	return true;
}

static bool check_rules(const struct server_options *o, struct err *e)
{
	struct arena scratch = { 0 };
	struct store_rule *rules;
	size_t n;
	bool ok = keep_rules_parse(&scratch, str_of(o->keep_service), &rules, &n, e) ||
		  err_wrap(e, "--keep-service");

	arena_release(&scratch);
	return ok;
}

static bool check_owners(const struct server_options *o, struct err *e)
{
	struct owners *owners = owners_new(str_of(o->owners), e);

	owners_free(owners);
	return owners || err_wrap(e, "--owners");
}

bool server_options_check(const struct server_options *o, struct err *e)
{
	if (!*o->data)
		return err_set(e, ERR_USAGE,
			       "no folder for the store is given: --data DIR, data: in the file of "
			       "--config, or KILN_SERVE_DATA");
	if (o->max_series > UINT32_MAX)
		return err_set(e, ERR_USAGE, "--max-series is too large");
	if (o->max_disk && o->max_disk < MIN_DISK)
		return err_set(
			e, ERR_USAGE,
			"--max-disk must be %d MB or more, or 0 for no limit: the database's "
			"log needs some of it",
			(int)(MIN_DISK / OPTION_MB));
	if (o->max_scrapes < 1 || o->max_scrapes > MAX_SCRAPES)
		return err_set(e, ERR_USAGE, "--max-scrapes must be between 1 and %d", MAX_SCRAPES);
	if (o->regression_window < OPTION_MINUTE)
		return err_set(e, ERR_USAGE, "--regression-window must be a minute or more");
	if (!webhook_check_url(o->webhook, e))
		return err_wrap(e, "--webhook");
	if (!cors_check(str_of(o->cors_origins), e))
		return err_wrap(e, "--cors-origins");
	if (!source_beneath_check(o->source_path, e))
		return err_wrap(e, "--source-path");
	return check_rules(o, e) && check_owners(o, e) && check_signs(o, e);
}
