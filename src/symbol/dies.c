#include "symbol/dies.h"

#include <dwarf.h>
#include <stdlib.h>

#include "base/vec.h"

#define NO_SIBLING UINT32_MAX
#define VARIES UINT32_MAX

struct cursor {
	const uint8_t *p, *end;
};

static bool take(struct cursor *c, uint64_t bytes)
{
	if (bytes > (uint64_t)(c->end - c->p))
		return false;
	c->p += bytes;
	return true;
}

static bool take_uleb(struct cursor *c, uint64_t *out)
{
	uint64_t value = 0;

	for (unsigned shift = 0; c->p < c->end; shift += 7) {
		uint8_t byte = *c->p++;

		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			*out = value;
			return true;
		}
	}
	return false;
}

static bool take_number(struct cursor *c, const struct die_unit *u, unsigned bytes, uint64_t *out)
{
	uint64_t value = 0;

	if (bytes > (uint64_t)(c->end - c->p))
		return false;
	for (unsigned i = 0; i < bytes; i++)
		value = value << 8 | c->p[u->is_big_endian ? i : bytes - 1 - i];
	c->p += bytes;
	*out = value;
	return true;
}

/* Size of an attribute of this form, or VARIES. */
static uint32_t form_bytes(const struct die_unit *u, uint64_t form)
{
	switch (form) {
	case DW_FORM_flag_present:
	case DW_FORM_implicit_const:
		return 0;
	case DW_FORM_data1:
	case DW_FORM_flag:
	case DW_FORM_ref1:
	case DW_FORM_strx1:
	case DW_FORM_addrx1:
		return 1;
	case DW_FORM_data2:
	case DW_FORM_ref2:
	case DW_FORM_strx2:
	case DW_FORM_addrx2:
		return 2;
	case DW_FORM_strx3:
	case DW_FORM_addrx3:
		return 3;
	case DW_FORM_data4:
	case DW_FORM_ref4:
	case DW_FORM_strx4:
	case DW_FORM_addrx4:
	case DW_FORM_ref_sup4:
		return 4;
	case DW_FORM_data8:
	case DW_FORM_ref8:
	case DW_FORM_ref_sig8:
	case DW_FORM_ref_sup8:
		return 8;
	case DW_FORM_data16:
		return 16;
	case DW_FORM_addr:
		return u->address_bytes;
	case DW_FORM_ref_addr:
		return u->version <= 2 ? u->address_bytes : u->offset_bytes;
	case DW_FORM_strp:
	case DW_FORM_sec_offset:
	case DW_FORM_strp_sup:
	case DW_FORM_line_strp:
	case DW_FORM_GNU_ref_alt:
	case DW_FORM_GNU_strp_alt:
		return u->offset_bytes;
	default:
		return VARIES;
	}
}

static bool skip_form(struct cursor *c, const struct die_unit *u, uint64_t form)
{
	uint32_t bytes = form_bytes(u, form);
	const uint8_t *nul;
	uint64_t n;

	if (bytes != VARIES)
		return take(c, bytes);
	switch (form) {
	case DW_FORM_block1:
		return take_number(c, u, 1, &n) && take(c, n);
	case DW_FORM_block2:
		return take_number(c, u, 2, &n) && take(c, n);
	case DW_FORM_block4:
		return take_number(c, u, 4, &n) && take(c, n);
	case DW_FORM_block:
	case DW_FORM_exprloc:
		return take_uleb(c, &n) && take(c, n);
	case DW_FORM_string:
		nul = memchr(c->p, '\0', (size_t)(c->end - c->p));
		return nul && take(c, (uint64_t)(nul - c->p) + 1);
	case DW_FORM_sdata:
	case DW_FORM_udata:
	case DW_FORM_ref_udata:
	case DW_FORM_strx:
	case DW_FORM_addrx:
	case DW_FORM_loclistx:
	case DW_FORM_rnglistx:
	case DW_FORM_GNU_addr_index:
	case DW_FORM_GNU_str_index:
		return take_uleb(c, &n);
	case DW_FORM_indirect:
		/* One that names itself again gains nothing: each step takes a byte. */
		return take_uleb(c, &n) && n != DW_FORM_indirect && skip_form(c, u, n);
	default:
		return false;
	}
}

static void note_attribute(struct die_shape *shape, const struct die_unit *u, uint64_t attribute,
			   uint64_t form)
{
	uint32_t bytes = form_bytes(u, form);

	if (attribute == DW_AT_sibling) {
		shape->sibling = shape->nforms;
		shape->sibling_at = shape->fixed_bytes;
	}
	if (attribute == DW_AT_low_pc || attribute == DW_AT_ranges)
		shape->has_code = true;
	if (bytes == VARIES)
		shape->fixed_bytes = VARIES;
	else if (shape->fixed_bytes != VARIES)
		shape->fixed_bytes += bytes;
	shape->nforms++;
}

static int by_code(const void *a, const void *b)
{
	uint64_t x = ((const struct die_shape *)a)->code, y = ((const struct die_shape *)b)->code;

	return (x > y) - (x < y);
}

bool die_shapes_read(struct arena *a, struct die_shapes *shapes, const struct die_unit *u,
		     struct str abbrev)
{
	struct cursor c = { (const uint8_t *)abbrev.p, (const uint8_t *)abbrev.p + abbrev.n };
	vec(struct die_shape) found = { 0 };
	vec(uint16_t) forms = { 0 };
	uint64_t code, tag, attribute, form, value;
	bool ok = true;

	while (ok && take_uleb(&c, &code) && code) {
		struct die_shape shape = { .code = code, .sibling = NO_SIBLING };

		shape.first_form = (uint32_t)forms.n;
		ok = take_uleb(&c, &tag) && take_number(&c, u, 1, &value);
		shape.tag = tag <= UINT16_MAX ? (uint16_t)tag : 0;
		shape.has_children = ok && value;
		while (ok && take_uleb(&c, &attribute) && take_uleb(&c, &form) &&
		       (attribute || form)) {
			ok = form <= UINT16_MAX && forms.n < UINT32_MAX &&
			     (form != DW_FORM_implicit_const || take_uleb(&c, &value));
			note_attribute(&shape, u, attribute, form);
			vec_push(&forms, (uint16_t)form);
		}
		if (ok)
			vec_push(&found, shape);
	}
	if (found.n)
		qsort(found.at, found.n, sizeof(*found.at), by_code);
	shapes->n = found.n;
	shapes->at = vec_adopt(a, &found);
	shapes->forms = vec_adopt(a, &forms);
	return shapes->n != 0;
}

static const struct die_shape *find_shape(const struct die_shapes *shapes, uint64_t code)
{
	const struct die_shape key = { .code = code };

	/* All compilers number them from 1 on. */
	if (code <= shapes->n && shapes->at[code - 1].code == code)
		return &shapes->at[code - 1];
	return bsearch(&key, shapes->at, shapes->n, sizeof(key), by_code);
}

static bool read_sibling(struct cursor *c, const struct die_unit *u, uint64_t form, uint64_t *out)
{
	uint32_t bytes = form_bytes(u, form);
	uint64_t n;

	if (form != DW_FORM_ref_udata && (bytes == VARIES || bytes == 0 || bytes > 8))
		return skip_form(c, u, form);
	if (form == DW_FORM_ref_udata ? !take_uleb(c, &n) : !take_number(c, u, bytes, &n))
		return false;
	*out = form == DW_FORM_ref_addr ? n : u->start + n;
	return true;
}

static bool read_attributes(struct cursor *c, const struct die_unit *u,
			    const struct die_shape *shape, uint64_t *sibling)
{
	for (uint32_t i = 0; i < shape->nforms; i++) {
		uint16_t form = u->shapes.forms[shape->first_form + i];

		if (i == shape->sibling ? !read_sibling(c, u, form, sibling)
					: !skip_form(c, u, form))
			return false;
	}
	return true;
}

bool die_read(const struct die_unit *u, uint64_t offset, struct die *out)
{
	const uint8_t *info = (const uint8_t *)u->info.p;
	struct cursor c = { info + offset, info + u->end };
	const struct die_shape *shape;
	uint64_t code;

	if (offset >= u->end || !take_uleb(&c, &code))
		return false;
	*out = (struct die){ .offset = offset, .next = (uint64_t)(c.p - info) };
	if (code == 0)
		return true;
	out->shape = shape = find_shape(&u->shapes, code);
	if (!shape)
		return false;
	if (shape->fixed_bytes == VARIES) {
		if (!read_attributes(&c, u, shape, &out->sibling))
			return false;
	} else {
		struct cursor at = c;

		if (!take(&c, shape->fixed_bytes))
			return false;
		if (shape->sibling != NO_SIBLING && take(&at, shape->sibling_at))
			read_sibling(&at, u, u->shapes.forms[shape->first_form + shape->sibling],
				     &out->sibling);
	}
	out->next = (uint64_t)(c.p - info);
	if (!shape->has_children)
		out->sibling = out->next;
	else if (out->sibling <= out->next || out->sibling > u->end)
		out->sibling = 0;
	return true;
}
