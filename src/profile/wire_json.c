#include "profile/wire_json.h"

#include <ctype.h>
#include <math.h>

#include "base/base64.h"
#include "base/escape.h"
#include "base/json.h"
#include "base/number.h"
#include "profile/wire.h"

enum wire_type wire_type_of(enum wire_kind kind)
{
	switch (kind) {
	case WIRE_KIND_STRING:
	case WIRE_KIND_BYTES:
	case WIRE_KIND_HEX:
	case WIRE_KIND_MESSAGE:
		return WIRE_BYTES;
	case WIRE_KIND_FIXED64:
	case WIRE_KIND_DOUBLE:
		return WIRE_FIXED64;
	default:
		return WIRE_VARINT;
	}
}

/* ---- values */

static bool take_number(struct json_reader *r, struct str *text)
{
	enum json_type type;

	if (!json_peek(r, &type))
		return json_wrong(r, "a number is missing");
	return type == JSON_STRING ? json_read_string(r, text) : json_read_number(r, text);
}

/* Any number of 64 bits, with or without a sign; 1.0 and 1e3 are as good, if they are whole. */
static bool parse_whole(struct str text, uint64_t *value)
{
	int64_t number;
	double d;

	if (number_parse_uint(text, 10, value) == NUMBER_OK)
		return true;
	if (number_parse_int(text, 10, &number) == NUMBER_OK) {
		*value = (uint64_t)number;
		return true;
	}
	if (number_parse_float(text, &d) != NUMBER_OK || !(d >= -0x1p53 && d <= 0x1p53))
		return false;
	number = (int64_t)d;
	*value = (uint64_t)number;
	return (double)number == d;
}

static bool no_choice(struct json_reader *r, const struct wire_field *f)
{
	struct buf known = { 0 };

	buf_puts(&known, "none of");
	for (size_t i = 0; f->choices[i]; i++)
		buf_printf(&known, "%s %s", i ? "," : "", f->choices[i]);
	buf_char(&known, '\0');
	json_wrong(r, known.p);
	buf_release(&known);
	return false;
}

/* By its name; one that is a number may be beyond those that are known. */
static bool put_choice(struct buf *out, struct json_reader *r, const struct wire_field *f)
{
	enum json_type type;
	struct str text;
	uint64_t v = 0;

	if (!json_peek(r, &type) || type != JSON_STRING) {
		if (!take_number(r, &text) || !parse_whole(text, &v))
			return no_choice(r, f);
	} else {
		if (!json_read_string(r, &text))
			return false;
		while (f->choices[v] && !str_eq(text, str_of(f->choices[v])))
			v++;
		if (!f->choices[v])
			return no_choice(r, f);
	}
	put_varint(out, v);
	return true;
}

/* Without its tag. */
static bool put_scalar(struct buf *out, struct json_reader *r, const struct wire_field *f)
{
	struct str text;
	uint64_t v;
	double d;
	bool flag;

	switch (f->kind) {
	case WIRE_KIND_CHOICE:
		return put_choice(out, r, f);
	case WIRE_KIND_BOOL:
		if (!json_read_bool(r, &flag))
			return json_wrong(r, "true or false is missing");
		put_varint(out, flag);
		return true;
	case WIRE_KIND_DOUBLE:
		if (!take_number(r, &text) || number_parse_float(text, &d) == NUMBER_SYNTAX)
			return json_wrong(r, "no number");
		memcpy(&v, &d, sizeof(v));
		put_fixed64(out, v);
		return true;
	default:
		if (!take_number(r, &text) || !parse_whole(text, &v))
			return json_wrong(r, "no whole number of 64 bits");
		if (f->kind == WIRE_KIND_FIXED64)
			put_fixed64(out, v);
		else
			put_varint(out, v);
		return true;
	}
}

static bool put_text(struct buf *out, struct json_reader *r, const struct wire_field *f)
{
	struct buf bytes = { 0 };
	struct str text;
	bool ok;

	if (!json_read_string(r, &text))
		return json_wrong(r, "a string is missing");
	if (f->kind == WIRE_KIND_STRING) {
		put_bytes(out, f->number, text);
		return true;
	}
	ok = f->kind == WIRE_KIND_HEX ? hex_decode(&bytes, text) : base64_decode(&bytes, text);
	if (ok)
		put_message(out, f->number, &bytes);
	buf_release(&bytes);
	return ok || json_wrong(r, f->kind == WIRE_KIND_HEX ? "no hexadecimal text" : "no base64");
}

/* ---- messages */

static bool put_object(struct buf *out, struct json_reader *r, const struct wire_message *m);

static bool is_scalar(const struct wire_field *f)
{
	return f->kind <= WIRE_KIND_DOUBLE;
}

static bool put_single(struct buf *out, struct json_reader *r, const struct wire_field *f)
{
	struct buf inner = { 0 };
	bool is_fixed = f->kind == WIRE_KIND_FIXED64 || f->kind == WIRE_KIND_DOUBLE, ok;

	if (f->kind == WIRE_KIND_MESSAGE) {
		ok = put_object(&inner, r, f->message);
		if (ok)
			put_message(out, f->number, &inner);
		buf_release(&inner);
		return ok;
	}
	if (!is_scalar(f))
		return put_text(out, r, f);
	put_varint(out, (uint64_t)f->number << 3 | (is_fixed ? WIRE_FIXED64 : WIRE_VARINT));
	return put_scalar(out, r, f);
}

static bool put_list(struct buf *out, struct json_reader *r, const struct wire_field *f)
{
	struct buf packed = { 0 };

	for (bool more = json_open(r, '['); more; more = json_more(r, ']'))
		if (is_scalar(f))
			put_scalar(&packed, r, f);
		else
			put_single(out, r, f);
	if (packed.n)
		put_message(out, f->number, &packed);
	buf_release(&packed);
	return !r->failed;
}

/* "traceId" and "trace_id" are the same. */
static bool is_named(const char *proto_name, struct str name)
{
	size_t i = 0;

	for (; *proto_name; proto_name++) {
		if (*proto_name == '_' && (i >= name.n || name.p[i] != '_'))
			continue;
		if (i >= name.n ||
		    tolower((unsigned char)name.p[i]) != tolower((unsigned char)*proto_name))
			return false;
		i++;
	}
	return i == name.n;
}

static bool put_field(struct buf *out, struct json_reader *r, const struct wire_message *m)
{
	const struct wire_field *f = m->fields;
	enum json_type type;
	struct str name;

	if (!json_read_name(r, &name))
		return false;
	while (f->name && !is_named(f->name, name))
		f++;
	if (!f->name || !json_peek(r, &type) || type == JSON_NULL)
		return json_skip(r);
	return (type == JSON_ARRAY ? put_list(out, r, f) : put_single(out, r, f)) ||
	       err_wrap(r->e, "%s", f->name);
}

static bool put_object(struct buf *out, struct json_reader *r, const struct wire_message *m)
{
	for (bool more = json_open(r, '{'); more; more = json_more(r, '}'))
		put_field(out, r, m);
	return !r->failed;
}

bool wire_from_json(struct buf *out, const struct wire_message *m, struct str json, struct err *e)
{
	struct json_reader r;
	bool ok;

	json_reader_init(&r, json, e);
	ok = put_object(out, &r, m) && json_finish(&r);
	json_reader_release(&r);
	return ok || err_wrap(e, "%s as JSON", m->name);
}

/* ---- and back */

/* "profile_typeID" is profileTypeID. */
static void put_json_name(struct buf *out, const char *name)
{
	for (; *name; name++) {
		if (*name != '_')
			buf_char(out, *name);
		else if (name[1])
			buf_char(out, (char)toupper((unsigned char)*++name));
	}
}

static bool print_object(const struct wire_message *m, struct wire w, struct buf *out);

static void print_varint(const struct wire_field *f, uint64_t v, struct buf *out)
{
	if (f->kind == WIRE_KIND_BOOL) {
		buf_puts(out, v ? "true" : "false");
	} else if (f->kind == WIRE_KIND_UINT) {
		buf_printf(out, "\"%llu\"", (unsigned long long)v);
	} else {
		buf_printf(out, "\"%lld\"", (long long)v);
	}
}

static void print_double(double d, struct buf *out)
{
	if (isfinite(d))
		buf_printf(out, fabs(d) < 0x1p53 && d == floor(d) ? "%.0f" : "%.17g", d);
	else
		buf_puts(out, isnan(d) ? "\"NaN\"" : d > 0 ? "\"Infinity\"" : "\"-Infinity\"");
}

static bool print_value(const struct wire_field *f, const struct field *v, struct buf *out)
{
	switch (f->kind) {
	case WIRE_KIND_STRING:
		json_put(out, wire_view(v->bytes));
		return true;
	case WIRE_KIND_BYTES:
		buf_char(out, '"');
		base64_put(out, wire_view(v->bytes));
		buf_char(out, '"');
		return true;
	case WIRE_KIND_DOUBLE:
		print_double(wire_double(v), out);
		return true;
	case WIRE_KIND_MESSAGE:
		return print_object(f->message, v->bytes, out);
	default:
		print_varint(f, v->value, out);
		return true;
	}
}

static bool print_packed(const struct wire_field *f, struct wire w, struct buf *out)
{
	for (bool more = false; w.p < w.end; more = true) {
		uint64_t v;

		if (!wire_varint(&w, &v))
			return false;
		if (more)
			buf_char(out, ',');
		print_varint(f, v, out);
	}
	return true;
}

/* One of the values there are for the field. */
static bool print_one(const struct wire_field *f, const struct field *v, struct buf *out)
{
	if (f->is_repeated && v->type == WIRE_BYTES && wire_type_of(f->kind) == WIRE_VARINT)
		return print_packed(f, v->bytes, out);
	return v->type == wire_type_of(f->kind) && print_value(f, v, out);
}

/* All values of the field, wherever they are. */
static bool print_field(const struct wire_field *f, struct wire w, bool *has_fields,
			struct buf *out)
{
	struct field v = { 0 };
	size_t n = 0;

	while (w.p < w.end) {
		if (!wire_next(&w, &v))
			return false;
		if (v.number != f->number)
			continue;
		if (n++) {
			buf_char(out, ',');
		} else {
			buf_puts(out, *has_fields ? ",\"" : "\"");
			put_json_name(out, f->name);
			buf_puts(out, f->is_repeated ? "\":[" : "\":");
		}
		if (!print_one(f, &v, out))
			return false;
	}
	if (n && f->is_repeated)
		buf_char(out, ']');
	*has_fields |= n > 0;
	return true;
}

static bool print_object(const struct wire_message *m, struct wire w, struct buf *out)
{
	bool has_fields = false;

	buf_char(out, '{');
	for (const struct wire_field *f = m->fields; f->name; f++)
		if (!print_field(f, w, &has_fields, out))
			return false;
	buf_char(out, '}');
	return true;
}

bool wire_to_json(struct buf *out, const struct wire_message *m, struct str bytes)
{
	return print_object(m, wire_of(bytes), out);
}
