#include "base/amount.h"

#include <ctype.h>
#include <strings.h>

#include "base/number.h"

#define MAX_TIME_NS (200 * 365.0 * 86400e9)
#define MAX_BYTES 9e18

struct amount_unit {
	const char *name;
	int64_t size;
};

/* Printing takes the first that divides; reading takes any. */
static const struct amount_unit times[] = {
	{ "d", 86400000000000 }, { "h", 3600000000000 }, { "m", 60000000000 }, { "s", 1000000000 },
	{ "ms", 1000000 },	 { "us", 1000 },	 { "ns", 1 },	       { "", 1000000000 },
	{ "w", 604800000000000 }
};

static const struct amount_unit sizes[] = {
	{ "TB", (int64_t)1 << 40 },
	{ "GB", (int64_t)1 << 30 },
	{ "MB", 1 << 20 },
	{ "KB", 1 << 10 },
	{ "", 1 },
	{ "T", (int64_t)1 << 40 },
	{ "G", (int64_t)1 << 30 },
	{ "M", 1 << 20 },
	{ "K", 1 << 10 },
	{ "TiB", (int64_t)1 << 40 },
	{ "GiB", (int64_t)1 << 30 },
	{ "MiB", 1 << 20 },
	{ "KiB", 1 << 10 },
	{ "B", 1 },
};

#define COUNT(table) (sizeof(table) / sizeof(*(table)))

/* A number and the letters after it, taken off the text; NULL if that is none. */
static const struct amount_unit *take(struct str *rest, const struct amount_unit *units, size_t n,
				      double *value)
{
	struct str number = { rest->p, 0 }, unit;

	while (number.n < rest->n && memchr("0123456789.", rest->p[number.n], 11))
		number.n++;
	*rest = str_from(*rest, number.n);
	unit = (struct str){ rest->p, 0 };
	while (unit.n < rest->n && isalpha((unsigned char)rest->p[unit.n]))
		unit.n++;
	*rest = str_from(*rest, unit.n);
	if (number_parse_float(number, value) != NUMBER_OK)
		return NULL;
	for (size_t i = 0; i < n; i++)
		if (strlen(units[i].name) == unit.n &&
		    strncasecmp(units[i].name, unit.n ? unit.p : "", unit.n) == 0)
			return &units[i];
	return NULL;
}

bool amount_parse_time(struct str text, int64_t *ns, struct err *e)
{
	double sum = 0;

	do {
		double value;
		const struct amount_unit *unit = take(&text, times, COUNT(times), &value);

		if (!unit)
			return err_set(e, ERR_USAGE, "not a time such as 90s, 30m, 1h30m or 14d");
		sum += value * (double)unit->size;
	} while (text.n);
	if (sum > MAX_TIME_NS)
		return err_set(e, ERR_USAGE, "more than 200 years");
	*ns = (int64_t)sum;
	return true;
}

bool amount_parse_bytes(struct str text, int64_t *bytes, struct err *e)
{
	double value;
	const struct amount_unit *unit = take(&text, sizes, COUNT(sizes), &value);

	if (!unit || text.n)
		return err_set(e, ERR_USAGE, "not a size such as 64MB or 2GB");
	value *= (double)unit->size;
	if (value > MAX_BYTES)
		return err_set(e, ERR_USAGE, "too large");
	*bytes = (int64_t)value;
	return true;
}

static void print(struct buf *out, int64_t v, const struct amount_unit *units)
{
	while (v % units->size)
		units++;
	buf_int(out, v / units->size);
	buf_puts(out, units->name);
}

void amount_print_time(struct buf *out, int64_t ns)
{
	if (ns)
		print(out, ns, times);
	else
		buf_char(out, '0');
}

void amount_print_bytes(struct buf *out, int64_t bytes)
{
	if (bytes)
		print(out, bytes, sizes);
	else
		buf_char(out, '0');
}
