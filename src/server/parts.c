#include "server/parts.h"

#include "base/int.h"

#define MINUTE INT64_C(60000000000)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)

bool parts_narrow(struct store *store, struct store_query *query, struct arena *scratch,
		  struct err *e)
{
	struct store_name *types;
	int64_t first = INT64_MAX, last = 0;
	size_t n;

	if (!store_names(store, query, STR("type"), scratch, &types, &n, e))
		return false;
	if (!n)
		return err_set(e, ERR_NOTFOUND, "there are no such profiles");
	for (size_t i = 0; i < n; i++) {
		first = types[i].first < first ? types[i].first : first;
		last = types[i].last > last ? types[i].last : last;
	}
	if (first > query->from && first <= query->to)
		query->from = first;
	if (last < query->to && last >= query->from)
		query->to = last;
	return true;
}

static int64_t length_of(const struct store_query *query)
{
	return int_distance(query->from, query->to);
}

int64_t parts_count(const struct store_query *query, int64_t wanted)
{
	return length_of(query) < wanted ? 1 : wanted;
}

/* The store has sums of whole minutes, hours and days: long parts are made of those. */
static int64_t start_of(const struct store_query *query, int64_t n, int64_t i)
{
	int64_t length = length_of(query) / n;
	int64_t unit = length >= 8 * DAY      ? DAY
		       : length >= 8 * HOUR   ? HOUR
		       : length >= 8 * MINUTE ? MINUTE
					      : 1;
	int64_t start = query->from + length * i;

	return i ? start - start % unit : start;
}

struct store_query parts_at(const struct store_query *query, int64_t n, int64_t i)
{
	struct store_query part = *query;

	part.from = start_of(query, n, i);
	if (i + 1 < n)
		part.to = start_of(query, n, i + 1) - 1;
	return part;
}
