#include "base/option.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "base/amount.h"
#include "base/number.h"

union field {
	void *any;
	bool *boolean;
	int64_t *integer;
	double *real;
	const char **string;
	int *choice;
};

static union field field_of(const struct option_def *d, void *options)
{
	return (union field){ (char *)options + d->offset };
}

const struct option_def *option_find(const struct option_table *t, struct str name)
{
	for (size_t i = 0; i < t->n; i++)
		if (str_eq(name, str_of(t->at[i].name)))
			return &t->at[i];
	return NULL;
}

const struct option_def *option_find_key(const struct option_table *t, struct str key)
{
	for (size_t i = 0; i < t->n; i++)
		if (*t->at[i].key && str_eq(key, str_of(t->at[i].key)))
			return &t->at[i];
	return NULL;
}

const struct option_choice *option_find_choice(const struct option_table *t, struct str name)
{
	for (size_t i = 0; i < t->nchoices; i++)
		if (str_eq(name, str_of(t->choices[i].name)))
			return &t->choices[i];
	return NULL;
}

const struct option_def *option_of_choice(const struct option_table *t,
					  const struct option_choice *c)
{
	return option_find(t, str_of(c->option));
}

static void set_string(union field f, struct arena *a, struct str value)
{
	*f.string = value.n ? str_dup(a, value) : "";
}

static void add_string(union field f, struct arena *a, struct str value)
{
	struct buf both = { 0 };

	buf_str(&both, value);
	if (value.n && **f.string)
		buf_char(&both, ',');
	buf_puts(&both, *f.string);
	set_string(f, a, buf_view(&both));
	buf_release(&both);
}

bool option_set_flag(const struct option_def *d, void *options, struct arena *a, struct str value,
		     struct err *e)
{
	union field f = field_of(d, options);
	enum number_result r = NUMBER_OK;

	switch (d->type) {
	case OPTION_BOOL:
		r = number_parse_bool(value, f.boolean);
		break;
	case OPTION_INT:
		r = number_parse_int(value, 0, f.integer);
		break;
	case OPTION_FLOAT:
		r = number_parse_float(value, f.real);
		break;
	case OPTION_STRING:
		set_string(f, a, value);
		break;
	case OPTION_LIST:
		add_string(f, a, value);
		break;
	case OPTION_CHOICE:
		r = NUMBER_SYNTAX;
		break;
	case OPTION_TIME:
		return amount_parse_time(value, f.integer, e);
	case OPTION_BYTES:
		return amount_parse_bytes(value, f.integer, e);
	}
	if (r == NUMBER_OK)
		return true;
	return err_set(e, ERR_USAGE, r == NUMBER_RANGE ? "value out of range" : "parse error");
}

/* More words than on the command line: people type them in the shell. */
static bool set_bool(bool *out, struct str value, struct err *e)
{
	static const struct {
		const char *word;
		bool value;
	} words[] = {
		{ "true", true }, { "t", true },  { "yes", true },    { "y", true },
		{ "1", true },	  { "", true },	  { "false", false }, { "f", false },
		{ "no", false },  { "n", false }, { "0", false },
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		if (strlen(words[i].word) == value.n &&
		    strncasecmp(words[i].word, value.n ? value.p : "", value.n) == 0) {
			*out = words[i].value;
			return true;
		}
	}
	return err_set(e, ERR_USAGE, "illegal value \"%.*s\" for bool variable", STR_ARG(value));
}

static bool set_choice(const struct option_table *t, const struct option_def *d, int *out,
		       struct str value, struct err *e)
{
	const struct option_choice *c = option_find_choice(t, value);
	struct buf quoted = { 0 };

	if (c && option_of_choice(t, c) == d) {
		*out = 1 + (int)(c - t->choices);
		return true;
	}
	quote_go(&quoted, value);
	err_set(e, ERR_USAGE, "invalid \"%s\" value %.*s", d->name, STR_ARG(buf_view(&quoted)));
	buf_release(&quoted);
	return false;
}

bool option_set(const struct option_table *t, const struct option_def *d, void *options,
		struct arena *a, struct str value, struct err *e)
{
	union field f = field_of(d, options);
	enum number_result r;
	int64_t integer;
	double real;

	/* A field keeps its value when the new one is refused. */
	switch (d->type) {
	case OPTION_BOOL:
		return set_bool(f.boolean, value, e);
	case OPTION_INT:
		r = number_parse_int(value, 10, &integer);
		if (r != NUMBER_OK)
			return number_error(e, r, "Atoi", value);
		*f.integer = integer;
		return true;
	case OPTION_FLOAT:
		r = number_parse_float(value, &real);
		if (r != NUMBER_OK)
			return number_error(e, r, "ParseFloat", value);
		*f.real = real;
		return true;
	case OPTION_STRING:
		set_string(f, a, value);
		return true;
	case OPTION_LIST:
		add_string(f, a, value);
		return true;
	case OPTION_CHOICE:
		return set_choice(t, d, f.choice, value, e);
	case OPTION_TIME:
		return amount_parse_time(value, f.integer, e);
	case OPTION_BYTES:
		return amount_parse_bytes(value, f.integer, e);
	}
	return false;
}

bool option_assign(const struct option_table *t, void *options, struct arena *a, struct str name,
		   struct str value, struct err *e)
{
	const struct option_def *d = option_find(t, name);
	const struct option_choice *c = d ? NULL : option_find_choice(t, name);
	struct buf quoted = { 0 };
	bool chosen;

	if (d)
		return option_set(t, d, options, a, value, e);
	if (c && number_parse_bool(value, &chosen) == NUMBER_OK && chosen)
		return option_set(t, option_of_choice(t, c), options, a, name, e);
	quote_go(&quoted, name);
	err_set(e, ERR_USAGE, "unknown config field %.*s", STR_ARG(buf_view(&quoted)));
	buf_release(&quoted);
	return false;
}

/* As Go's %v: the fewest digits that read back as the same number, with an exponent only when it is
 * below -4 or above 20. */
static void print_float(struct buf *out, double v)
{
	char text[40], digits[20] = "";
	int exponent = 0, ndigits = 0;

	if (isnan(v) || isinf(v)) {
		buf_puts(out, isnan(v) ? "NaN" : v > 0 ? "+Inf" : "-Inf");
		return;
	}
	for (int precision = 0; precision < 17; precision++) {
		snprintf(text, sizeof(text), "%.*e", precision, fabs(v));
		if (strtod(text, NULL) == fabs(v))
			break;
	}
	for (const char *p = text; *p && *p != 'e'; p++)
		if (*p != '.')
			digits[ndigits++] = *p;
	exponent = atoi(strchr(text, 'e') + 1);

	if (signbit(v))
		buf_char(out, '-');
	if (exponent < -4 || exponent > 20) {
		buf_puts(out, text);
	} else if (exponent < 0) {
		buf_puts(out, "0.");
		buf_fill(out, '0', (size_t)(-exponent - 1));
		buf_puts(out, digits);
	} else {
		for (int i = 0; i <= exponent || i < ndigits; i++) {
			if (i == exponent + 1)
				buf_char(out, '.');
			buf_char(out, i < ndigits ? digits[i] : '0');
		}
	}
}

void option_print(struct buf *out, const struct option_table *t, const struct option_def *d,
		  const void *options)
{
	const void *p = (const char *)options + d->offset;

	switch (d->type) {
	case OPTION_BOOL:
		buf_puts(out, *(const bool *)p ? "true" : "false");
		break;
	case OPTION_INT:
		buf_int(out, *(const int64_t *)p);
		break;
	case OPTION_FLOAT:
		print_float(out, *(const double *)p);
		break;
	case OPTION_STRING:
	case OPTION_LIST:
		buf_puts(out, *(const char *const *)p);
		break;
	case OPTION_CHOICE:
		if (*(const int *)p)
			buf_puts(out, t->choices[*(const int *)p - 1].name);
		break;
	case OPTION_TIME:
		amount_print_time(out, *(const int64_t *)p);
		break;
	case OPTION_BYTES:
		amount_print_bytes(out, *(const int64_t *)p);
		break;
	}
}

bool option_is_default(const struct option_table *t, const struct option_def *d,
		       const void *options)
{
	struct buf now = { 0 }, initial = { 0 };
	bool same;

	option_print(&now, t, d, options);
	option_print(&initial, t, d, t->defaults);
	same = str_eq(buf_view(&now), buf_view(&initial));
	buf_release(&now);
	buf_release(&initial);
	return same;
}
