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

struct str by_value(const struct picked *series, int64_t time, struct str by, struct buf *scratch)
{
	if (!by.n)
		return STR("");
	if (str_eq(by, STR("week")))
		return week_of(time, scratch);
	return picked_value(series, by);
}
