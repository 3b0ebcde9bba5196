#include "base/unit.h"

#include <math.h>
#include <stdio.h>

#include "base/utf8.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
/* STR is a compound literal, which a table of constants cannot hold. */
#define S(literal)                              \
	{                                       \
		"" literal, sizeof(literal) - 1 \
	}

static const struct unit memory_units[] = {
	{ S("B"), { S("b"), S("byte") }, 1 },
	{ S("kB"), { S("kb"), S("kbyte"), S("kilobyte") }, 0x1p10 },
	{ S("MB"), { S("mb"), S("mbyte"), S("megabyte") }, 0x1p20 },
	{ S("GB"), { S("gb"), S("gbyte"), S("gigabyte") }, 0x1p30 },
	{ S("TB"), { S("tb"), S("tbyte"), S("terabyte") }, 0x1p40 },
	{ S("PB"), { S("pb"), S("pbyte"), S("petabyte") }, 0x1p50 },
};

static const struct unit time_units[] = {
	{ S("ns"), { S("ns"), S("nanosecond") }, 1 },
	{ S("us"), { S("\u03bcs"), S("us"), S("microsecond") }, 1e3 },
	{ S("ms"), { S("ms"), S("millisecond") }, 1e6 },
	{ S("s"), { S("s"), S("sec"), S("second") }, 1e9 },
	{ S("hrs"), { S("hour"), S("hr") }, 3600e9 },
};

static const struct unit gcu_units[] = {
	{ S("n*GCU"), { S("nanogcu") }, 1e-9 },	 { S("u*GCU"), { S("microgcu") }, 1e-6 },
	{ S("m*GCU"), { S("milligcu") }, 1e-3 }, { S("GCU"), { S("gcu") }, 1 },
	{ S("k*GCU"), { S("kilogcu") }, 1e3 },	 { S("M*GCU"), { S("megagcu") }, 1e6 },
	{ S("G*GCU"), { S("gigagcu") }, 1e9 },	 { S("T*GCU"), { S("teragcu") }, 1e12 },
	{ S("P*GCU"), { S("petagcu") }, 1e15 },
};

const struct unit_family unit_families[UNIT_NFAMILIES] = {
	{ S("B"), 1, memory_units, COUNT(memory_units) },
	{ S("s"), 1e9, time_units, COUNT(time_units) },
	{ S("GCU"), 1, gcu_units, COUNT(gcu_units) },
};

/* No alias is longer; a longer string is no unit. */
enum { ALIAS_BYTES = 16 };

/* The three letters outside ASCII whose lower case occurs in an alias. */
static uint32_t lower_rune(uint32_t rune)
{
	switch (rune) {
	case 0x212a: /* Kelvin sign */
		return 'k';
	case 0x130: /* I with dot */
		return 'i';
	case 0x39c: /* capital mu */
		return 0x3bc;
	}
	return rune;
}

/* Lower case without the plural s; empty if it is too long to be a unit. */
static struct str normalize(char text[ALIAS_BYTES], struct str unit)
{
	size_t n = 0;

	for (size_t i = 0; i < unit.n;) {
		char c = unit.p[i];
		uint32_t rune;

		if (n + UTF8_BYTES > ALIAS_BYTES)
			return (struct str){ text, 0 };
		if ((unsigned char)c < 0x80) {
			text[n++] = (char)(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
			i++;
		} else {
			i += utf8_decode(str_from(unit, i), &rune);
			n += utf8_encode(text + n, lower_rune(rune));
		}
	}
	if (n > 2 && text[n - 1] == 's')
		n--;
	return (struct str){ text, n };
}

static const struct unit *find_unit(const struct unit_family *family, struct str normal)
{
	for (size_t i = 0; normal.n > 0 && i < family->nunits; i++) {
		const struct unit *u = &family->units[i];

		for (size_t j = 0; j < COUNT(u->aliases) && u->aliases[j].n > 0; j++) {
			/* Most differ in the first letter, and a call costs more than this test. */
			if (u->aliases[j].p[0] == normal.p[0] && str_eq(u->aliases[j], normal))
				return u;
		}
	}
	return NULL;
}

static const struct unit_family *find_family(struct str unit, const struct unit **found)
{
	char text[ALIAS_BYTES];
	struct str normal = normalize(text, unit);

	for (size_t i = 0; i < UNIT_NFAMILIES; i++) {
		*found = find_unit(&unit_families[i], normal);
		if (*found)
			return &unit_families[i];
	}
	return NULL;
}

const struct unit_family *unit_family_of(struct str unit)
{
	const struct unit *u;

	return find_family(unit, &u);
}

bool unit_is_time(struct str unit)
{
	const struct unit_family *family = unit_family_of(unit);

	return family && family->units == time_units;
}

bool unit_same_family(struct str a, struct str b)
{
	const struct unit_family *family = unit_family_of(a);

	return family && family == unit_family_of(b);
}

static struct str singular(struct str type)
{
	if (str_has_suffix(type, STR("s")))
		type.n--;
	return type;
}

bool unit_compatible(struct str type_a, struct str unit_a, struct str type_b, struct str unit_b)
{
	return str_eq(singular(type_a), singular(type_b)) &&
	       (str_eq(unit_a, unit_b) || unit_same_family(unit_a, unit_b));
}

bool unit_is_finer(struct str a, struct str b)
{
	struct str unit;

	return unit_scale(1, a, b, &unit) < 1;
}

static bool is_automatic(struct str to)
{
	return str_eq(to, STR("minimum")) || str_eq(to, STR("auto"));
}

/* The largest unit in which the value is at least 1, or NULL. */
static const struct unit *fitting_unit(const struct unit_family *family, double value)
{
	for (size_t i = family->nunits; i > 0; i--) {
		if (value / family->units[i - 1].factor >= 1)
			return &family->units[i - 1];
	}
	return NULL;
}

static double scale_known(const struct unit_family *family, double value, struct str to,
			  struct str *unit)
{
	char text[ALIAS_BYTES];
	const struct unit *u = is_automatic(to) ? fitting_unit(family, value)
						: find_unit(family, normalize(text, to));

	*unit = u ? u->name : family->default_unit;
	return value / (u ? u->factor : family->default_factor);
}

double unit_scale(int64_t value, struct str from, struct str to, struct str *unit)
{
	static const struct str unitless[] = { S("count"), S("sample"), S("unit") };
	const struct unit_family *family;
	const struct unit *from_unit;

	family = find_family(from, &from_unit);
	if (family) {
		/* The smallest integer has no positive counterpart; it is scaled as it is. */
		bool negate = value < 0 && value != INT64_MIN;
		double v = (double)(negate ? -value : value) * from_unit->factor;

		v = scale_known(family, v, to, unit);
		return negate ? -v : v;
	}
	*unit = is_automatic(to) ? STR("") : to;
	for (size_t i = 0; i < COUNT(unitless); i++) {
		if (str_eq(to, unitless[i]))
			*unit = STR("");
	}
	return (double)value;
}

double unit_to_default(struct str unit, struct str *name)
{
	const struct unit *u;
	const struct unit_family *family = find_family(unit, &u);

	*name = family ? family->default_unit : STR("");
	return family ? u->factor / family->default_factor : 1;
}

/* v * 10^decimals to the nearest integer, or false if that needs more care than this: near a tie
 * the product's own rounding could decide. Then printf, which is exact and slow, must do it. */
static bool round_decimals(double v, unsigned decimals, uint64_t *out)
{
	static const double powers[] = { 1, 1e1, 1e2, 1e3, 1e4, 1e5 };
	double scaled = v * powers[decimals], whole = floor(scaled), fraction = scaled - whole;

	if (!(scaled < 1e11) || fabs(fraction - 0.5) < 1e-4)
		return false;
	*out = (uint64_t)whole + (fraction > 0.5);
	return true;
}

/* The digits of scaled / 10^decimals; returns how many characters. */
static size_t put_decimals(char *text, uint64_t scaled, unsigned decimals)
{
	char digits[24];
	size_t n = 0, out = 0;

	for (; scaled || n <= decimals; scaled /= 10)
		digits[n++] = (char)('0' + scaled % 10);
	while (n > 0) {
		if (n == decimals)
			text[out++] = '.';
		text[out++] = digits[--n];
	}
	return out;
}

enum { NUMBER_BYTES = 64 }; /* more than any double here needs, which are below 1e43 */

/* As %.2f, of what is not negative. */
static size_t two_decimals(char text[NUMBER_BYTES], double v)
{
	uint64_t hundredths;

	if (round_decimals(v, 2, &hundredths))
		return put_decimals(text, hundredths, 2);
	return (size_t)snprintf(text, NUMBER_BYTES, "%.2f", v);
}

void unit_label(struct buf *out, int64_t value, struct str from, struct str to)
{
	char text[NUMBER_BYTES];
	struct str unit;
	double v = unit_scale(value, from, to, &unit);
	size_t n = two_decimals(text, fabs(v));

	if (memcmp(text + n - 3, ".00", 3) == 0)
		n -= 3;
	if (n == 1 && text[0] == '0') {
		buf_char(out, '0');
		return;
	}
	if (v < 0)
		buf_char(out, '-');
	buf_add(out, text, n);
	buf_str(out, unit);
}

/* As %.2g, of 0 < v < 1. */
static size_t two_digits(char text[NUMBER_BYTES], double v)
{
	static const double lowest[] = { 0.1, 0.01, 0.001, 0.0001 };
	uint64_t scaled;

	for (unsigned i = 0; i < COUNT(lowest); i++) {
		size_t n;

		if (v < lowest[i])
			continue;
		if (!round_decimals(v, i + 2, &scaled))
			break;
		n = put_decimals(text, scaled, i + 2);
		while (text[n - 1] == '0')
			n--;
		return text[n - 1] == '.' ? n - 1 : n;
	}
	return (size_t)snprintf(text, NUMBER_BYTES, "%.2g", v);
}

void percent_text(struct buf *out, int64_t value, int64_t total)
{
	double ratio = total ? fabs((double)value / (double)total) * 100 : 0;
	char text[NUMBER_BYTES];
	size_t n;

	if (ratio >= 99.95 && ratio <= 100.05) {
		buf_puts(out, "  100%");
		return;
	}
	if (ratio >= 1) {
		n = two_decimals(text, ratio);
	} else if (ratio > 0) {
		n = two_digits(text, ratio);
	} else {
		text[0] = '0';
		n = 1;
	}
	buf_pad_left(out, (struct str){ text, n }, 5);
	buf_char(out, '%');
}

/* nanos / unit_nanos with all the decimals it needs and no more. */
static void exact_decimals(struct buf *out, uint64_t nanos, uint64_t unit_nanos)
{
	uint64_t rest = nanos % unit_nanos;

	buf_uint(out, nanos / unit_nanos);
	if (rest == 0)
		return;
	buf_char(out, '.');
	while (rest) {
		unit_nanos /= 10;
		buf_char(out, (char)('0' + rest / unit_nanos));
		rest %= unit_nanos;
	}
}

void duration_text(struct buf *out, int64_t nanos)
{
	static const uint64_t us = 1000, ms = 1000000, s = 1000000000, minute = 60 * s,
			      hour = 60 * minute;
	uint64_t u = nanos < 0 ? 0 - (uint64_t)nanos : (uint64_t)nanos;

	if (nanos < 0)
		buf_char(out, '-');
	if (u >= hour) {
		buf_uint(out, u / hour);
		buf_char(out, 'h');
	}
	if (u >= minute) {
		buf_uint(out, u % hour / minute);
		buf_char(out, 'm');
	}
	if (u >= s || u == 0) {
		exact_decimals(out, u % minute, s);
		buf_puts(out, "s");
	} else if (u >= ms) {
		exact_decimals(out, u, ms);
		buf_puts(out, "ms");
	} else if (u >= us) {
		exact_decimals(out, u, us);
		buf_puts(out, "µs");
	} else {
		buf_uint(out, u);
		buf_puts(out, "ns");
	}
}
