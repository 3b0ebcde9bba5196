#include "store/by.h"

#include <time.h>

/* As ISO 8601 has it: "2026-W47". */
static struct str week_of(int64_t time, struct buf *scratch)
{
	time_t second = (time_t)(time / 1000000000 - (time % 1000000000 < 0));
	struct tm tm;
	char text[40] = "";

	if (gmtime_r(&second, &tm))
		strftime(text, sizeof(text), "%G-W%V", &tm);
	scratch->n = 0;
	buf_puts(scratch, text);
	return buf_view(scratch);
}

static struct str one_value(const struct picked *series, int64_t time, struct str by,
			    struct buf *scratch)
{
	if (!by.n)
		return STR("");
	if (str_eq(by, STR("week")))
		return week_of(time, scratch);
	return picked_value(series, by);
}

static struct str several_values(const struct picked *series, int64_t time, struct str by,
				 struct buf *scratch)
{
	struct buf week = { 0 };

	scratch->n = 0;
	while (by.n) {
		buf_str(scratch, one_value(series, time, str_cut(&by, '\0'), &week));
		if (by.p)
			buf_char(scratch, '\0');
	}
	buf_release(&week);
	return buf_view(scratch);
}

struct str by_value(const struct picked *series, int64_t time, struct str by, struct buf *scratch)
{
	if (str_find_char(by, '\0') == STR_NONE)
		return one_value(series, time, by, scratch);
	return several_values(series, time, by, scratch);
}
