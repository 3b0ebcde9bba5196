#include "profile/wire_read.h"

#include "profile/wire.h"

static const struct wire_field *find_field(const struct wire_message *m, uint64_t number)
{
	const struct wire_field *f = m->fields;

	while (f->name && f->number != number)
		f++;
	return f->name ? f : NULL;
}

static bool check_field(const struct wire_field *to, const struct field *f, struct err *e)
{
	enum wire_type type = wire_type_of(to->kind);
	struct str text;

	if (f->type != type)
		return err_set(e, ERR_FORMAT, "field %s (%u): it has the wire type %d, not %d",
			       to->name, to->number, f->type, type);
	text = type == WIRE_BYTES ? wire_view(f->bytes) : STR("");
	if (to->kind == WIRE_KIND_STRING && text.n && memchr(text.p, '\0', text.n))
		return err_set(e, ERR_FORMAT, "field %s: there is a NUL in it", to->name);
	return true;
}

/* To where the value goes; of a repeated field to its place in the list. */
static bool store_value(struct arena *a, const struct wire_field *to, const struct field *f,
			void *at, struct err *e)
{
	switch (to->kind) {
	case WIRE_KIND_STRING:
	case WIRE_KIND_BYTES:
	case WIRE_KIND_HEX:
		*(struct str *)at = wire_view(f->bytes);
		return true;
	case WIRE_KIND_INT:
	case WIRE_KIND_CHOICE:
		*(int64_t *)at = (int64_t)f->value;
		return true;
	case WIRE_KIND_UINT:
	case WIRE_KIND_FIXED64:
		*(uint64_t *)at = f->value;
		return true;
	case WIRE_KIND_BOOL:
		*(bool *)at = f->value;
		return true;
	case WIRE_KIND_DOUBLE:
		*(double *)at = wire_double(f);
		return true;
	case WIRE_KIND_MESSAGE:
		return wire_read(a, to->message, wire_view(f->bytes), at, e) ||
		       err_wrap(e, "%s", to->name);
	}
	return false;
}

static size_t element_bytes(const struct wire_field *to)
{
	return to->kind == WIRE_KIND_MESSAGE ? to->message->bytes : sizeof(struct str);
}

static bool take_field(struct arena *a, const struct wire_field *to, const struct field *f,
		       char *into, struct err *e)
{
	void *member = into + to->offset;

	if (!check_field(to, f, e))
		return false;
	if (to->is_repeated) {
		struct wire_list *list = member;

		return store_value(a, to, f, (char *)list->at + list->n++ * element_bytes(to), e);
	}
	if (to->kind == WIRE_KIND_MESSAGE) {
		void *inner = arena_alloc(a, to->message->bytes);

		*(void **)member = inner;
		member = inner;
	}
	return store_value(a, to, f, member, e);
}

static bool broken(struct err *e)
{
	return err_set(e, ERR_FORMAT, "it is no message of protobuf");
}

/* How often the field is there. */
static bool count_field(const struct wire_field *to, struct wire w, size_t *n, struct err *e)
{
	struct field f;

	*n = 0;
	while (w.p < w.end) {
		if (!wire_next(&w, &f))
			return broken(e);
		*n += f.number == to->number;
	}
	return true;
}

/* Room for what is repeated, so that nothing need grow. */
static bool make_lists(struct arena *a, const struct wire_message *m, struct wire w, char *into,
		       struct err *e)
{
	size_t n;

	for (const struct wire_field *to = m->fields; to->name; to++) {
		struct wire_list *list = (void *)(into + to->offset);

		if (!to->is_repeated)
			continue;
		if (!count_field(to, w, &n, e))
			return false;
		list->at = arena_array(a, n + 1, element_bytes(to));
	}
	return true;
}

bool wire_read(struct arena *a, const struct wire_message *m, struct str bytes, void *into,
	       struct err *e)
{
	struct wire w = wire_of(bytes);
	struct field f;

	if (!bytes.n)
		return true;
	if (!make_lists(a, m, w, into, e))
		return false;
	while (w.p < w.end) {
		const struct wire_field *to;

		if (!wire_next(&w, &f))
			return broken(e);
		to = find_field(m, f.number);
		if (to && !take_field(a, to, &f, into, e))
			return false;
	}
	return true;
}
