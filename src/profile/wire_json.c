#include "profile/wire_json.h"

#include <ctype.h>

#include "base/base64.h"
#include "base/json.h"
#include "base/number.h"
#include "profile/wire.h"

static bool wrong(struct json_reader *r, const struct wire_field *f, const char *what)
{
	bool is_first = !r->failed;

	json_wrong(r, what);
	if (is_first)
		err_wrap(r->e, "%s", f->name);
	return false;
}

/* ---- values */

static bool take_number(struct json_reader *r, const struct wire_field *f, struct str *text)
{
	enum json_type type;

	if (!json_peek(r, &type))
		return wrong(r, f, "a number is missing");
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

static void put_fixed64(struct buf *out, uint64_t v)
{
	for (int i = 0; i < 8; i++)
		buf_char(out, (char)(v >> (8 * i)));
}

/* Without its tag. */
static bool put_scalar(struct buf *out, struct json_reader *r, const struct wire_field *f)
{
	struct str text;
	uint64_t v;
	double d;
	bool flag;

	switch (f->kind) {
	case WIRE_KIND_BOOL:
		if (!json_read_bool(r, &flag))
			return wrong(r, f, "true or false is missing");
		put_varint(out, flag);
		return true;
	case WIRE_KIND_DOUBLE:
		if (!take_number(r, f, &text) || number_parse_float(text, &d) == NUMBER_SYNTAX)
			return wrong(r, f, "no number");
		memcpy(&v, &d, sizeof(v));
		put_fixed64(out, v);
		return true;
	default:
		if (!take_number(r, f, &text) || !parse_whole(text, &v))
			return wrong(r, f, "no whole number of 64 bits");
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
		return wrong(r, f, "a string is missing");
	if (f->kind == WIRE_KIND_STRING) {
		put_bytes(out, f->number, text);
		return true;
	}
	ok = f->kind == WIRE_KIND_HEX ? hex_decode(&bytes, text) : base64_decode(&bytes, text);
	if (ok)
		put_message(out, f->number, &bytes);
	buf_release(&bytes);
	return ok || wrong(r, f, f->kind == WIRE_KIND_HEX ? "no hexadecimal text" : "no base64");
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
	return type == JSON_ARRAY ? put_list(out, r, f) : put_single(out, r, f);
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
