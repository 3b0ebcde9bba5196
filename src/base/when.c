#include "base/when.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "base/amount.h"

#define SECOND INT64_C(1000000000)

/* ---- numbers */

/* Digits at *at, as an integer; false if there are none, or too many. */
static bool take_digits(struct str text, size_t *at, int64_t *out)
{
	size_t start = *at;

	*out = 0;
	for (; *at < text.n && isdigit((unsigned char)text.p[*at]); ++*at)
		if (__builtin_mul_overflow(*out, 10, out) ||
		    __builtin_add_overflow(*out, text.p[*at] - '0', out))
			return false;
	return *at > start;
}

/* ".25" of a second, if there is one. Digits beyond nanoseconds do not count. */
static bool take_fraction(struct str text, size_t *at, int64_t *out)
{
	size_t start;

	*out = 0;
	if (*at == text.n || text.p[*at] != '.')
		return true;
	for (start = ++*at; *at < text.n && isdigit((unsigned char)text.p[*at]); ++*at)
		;
	for (size_t i = *at; i-- > start;)
		*out = ((text.p[i] - '0') * SECOND + *out) / 10;
	return *at > start;
}

/* ---- times */

static bool fail(struct str text, struct err *e)
{
	return err_set(e, ERR_USAGE,
		       "\"%.*s\" is no time such as 2026-11-16T14:00:00Z, 2026-11-16, 1794837600 "
		       "(seconds since 1970), now or now-2h",
		       STR_ARG(text));
}

/* Exactly `width` digits that make a number between low and high, then `after` (0: nothing). */
static bool take_field(struct str text, size_t *at, size_t width, int low, int high, char after,
		       int *out)
{
	int64_t v;
	size_t from = 0;

	if (text.n - *at < width + (after != 0) ||
	    !take_digits((struct str){ text.p + *at, width }, &from, &v) || from != width ||
	    v < low || v > high)
		return false;
	*at += width;
	*out = (int)v;
	if (!after)
		return true;
	return tolower((unsigned char)text.p[(*at)++]) == after;
}

/* Z, +01:00 or nothing, to the end. */
static bool take_zone(struct str text, size_t *at, int64_t *seconds)
{
	int hours, minutes, sign;

	*seconds = 0;
	if (*at == text.n)
		return true;
	sign = text.p[*at] == '+' ? 1 : -1;
	switch (text.p[(*at)++]) {
	case 'Z':
	case 'z':
		break;
	case '+':
	case '-':
		if (!take_field(text, at, 2, 0, 23, ':', &hours) ||
		    !take_field(text, at, 2, 0, 59, 0, &minutes))
			return false;
		*seconds = sign * (hours * 3600 + minutes * 60);
		break;
	default:
		return false;
	}
	return *at == text.n;
}

static bool take_clock(struct str text, size_t *at, struct tm *tm, int64_t *fraction)
{
	return take_field(text, at, 2, 0, 23, ':', &tm->tm_hour) &&
	       take_field(text, at, 2, 0, 59, ':', &tm->tm_min) &&
	       take_field(text, at, 2, 0, 60, 0, &tm->tm_sec) && take_fraction(text, at, fraction);
}

static bool parse_date(struct str text, int64_t *ns)
{
	struct tm tm = { 0 };
	int64_t fraction = 0, zone = 0, seconds;
	size_t at = 0;
	int year, month, day;

	if (!take_field(text, &at, 4, 1970, 2262, '-', &year) ||
	    !take_field(text, &at, 2, 1, 12, '-', &month) ||
	    !take_field(text, &at, 2, 1, 31, 0, &day))
		return false;
	tm = (struct tm){ .tm_year = year - 1900, .tm_mon = month - 1, .tm_mday = day };
	if (at < text.n) {
		char divider = text.p[at++];

		if ((divider != 'T' && divider != 't' && divider != ' ') ||
		    !take_clock(text, &at, &tm, &fraction) || !take_zone(text, &at, &zone))
			return false;
	}
	seconds = timegm(&tm) - zone;
	return tm.tm_mday == day && seconds >= 0 && !__builtin_mul_overflow(seconds, SECOND, ns) &&
	       !__builtin_add_overflow(*ns, fraction, ns);
}

static bool parse_seconds(struct str text, int64_t *ns, bool *is_large)
{
	int64_t whole, fraction;
	size_t at = 0;
	bool ok = take_digits(text, &at, &whole) && take_fraction(text, &at, &fraction) &&
		  at == text.n;

	*is_large = ok && (__builtin_mul_overflow(whole, SECOND, ns) ||
			   __builtin_add_overflow(*ns, fraction, ns));
	return ok;
}

/* "", "-2h" or "+2h" after now. */
static bool parse_offset(struct str text, int64_t now, int64_t *ns, struct err *e)
{
	int64_t offset = 0;
	bool ok;

	*ns = now;
	if (!text.n)
		return true;
	if (!amount_parse_time(str_from(text, 1), &offset, e))
		return err_wrap(e, "now%.*s", STR_ARG(text));
	ok = text.p[0] == '-' ? !__builtin_sub_overflow(now, offset, ns)
			      : !__builtin_add_overflow(now, offset, ns);
	return (ok && *ns >= 0) ||
	       err_set(e, ERR_USAGE, "now%.*s is before 1970 or after 2262", STR_ARG(text));
}

bool time_parse(struct str text, int64_t now, int64_t *ns, struct err *e)
{
	bool is_large;

	if (str_eq(text, STR("now")) || str_has_prefix(text, STR("now-")) ||
	    str_has_prefix(text, STR("now+")))
		return parse_offset(str_from(text, 3), now, ns, e);
	if (parse_date(text, ns))
		return true;
	if (!parse_seconds(text, ns, &is_large))
		return fail(text, e);
	return !is_large ||
	       err_set(e, ERR_USAGE,
		       "%.*s is too large for seconds since 1970; are they milliseconds?",
		       STR_ARG(text));
}

bool time_parse_ago(struct str text, int64_t now, int64_t *ns, struct err *e)
{
	bool has_sign = str_has_prefix(text, STR("-"));
	struct str amount = str_from(text, has_sign);
	int64_t ago;
	struct err why;

	/* A number alone is seconds since 1970, as elsewhere. */
	if (!amount.n || !isalpha((unsigned char)amount.p[amount.n - 1]) ||
	    !amount_parse_time(amount, &ago, &why))
		return time_parse(text, now, ns, e);
	return (!__builtin_sub_overflow(now, ago, ns) && *ns >= 0) ||
	       err_set(e, ERR_USAGE, "%.*s ago is before 1970", STR_ARG(amount));
}

void time_print(struct buf *out, int64_t ns)
{
	int64_t seconds = ns / SECOND, fraction = ns % SECOND;
	char text[64];
	struct tm tm;
	time_t t;
	size_t n;

	if (fraction < 0) { /* not by multiplying: the least number has no such second */
		seconds--;
		fraction += SECOND;
	}
	t = seconds;
	gmtime_r(&t, &tm);
	n = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	buf_add(out, text, n);
	if (fraction) {
		n = (size_t)snprintf(text, sizeof(text), ".%09" PRId64, fraction);
		while (text[n - 1] == '0')
			n--;
		buf_add(out, text, n);
	}
	buf_char(out, 'Z');
}

int64_t time_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return t.tv_sec * SECOND + t.tv_nsec;
}
