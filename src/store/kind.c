#include "store/kind.h"

#include "base/unit.h"

void kinds_init(struct kinds *k)
{
	*k = (struct kinds){ 0 };
	strings_init(&k->strings);
}

void kinds_release(struct kinds *k)
{
	strings_release(&k->strings);
	buf_release(&k->key);
	vec_release(&k->at);
}

double kind_ratio(struct str from, struct str to)
{
	struct str name;

	return str_eq(from, to) ? 1 : unit_scale(1, from, to, &name);
}

/* Units of a family are one here. As a text, so that one of many is found fast. */
static void put_key(struct buf *out, struct str name, struct str unit)
{
	const struct unit_family *family = unit_family_of(unit);

	out->n = 0;
	buf_str(out, name);
	buf_char(out, '\0');
	buf_str(out, family ? family->default_unit : unit);
}

static struct str own_text(struct kinds *k, struct str text)
{
	uint32_t i = strings_add(&k->strings, text); /* which may move them */

	return k->strings.at[i];
}

uint32_t kinds_find(struct kinds *k, struct str name, struct str unit)
{
	struct kind *kind;
	uint32_t i;

	put_key(&k->key, name, unit);
	i = strings_add(&k->strings, buf_view(&k->key));
	while (k->at.n <= i)
		vec_push(&k->at, (struct kind){ 0 });
	kind = &k->at.at[i];
	if (!kind->name.p)
		*kind = (struct kind){ .name = own_text(k, name), .unit = own_text(k, unit) };
	if (str_eq(kind->unit, unit))
		return i;
	k->has_units = true;
	if (unit_is_finer(unit, kind->unit))
		kind->unit = own_text(k, unit);
	return i;
}

void kinds_count(struct kinds *k, uint32_t kind, int64_t service, struct str service_name,
		 uint64_t nprofiles)
{
	struct kind *x = &k->at.at[kind];

	if (!x->nservices || x->service != service) {
		x->nservices++;
		x->service = service;
		x->service_name = own_text(k, service_name);
	}
	x->nprofiles += nprofiles;
}

void kinds_join(struct kinds *k, const struct kinds *more)
{
	k->has_units |= more->has_units;
	for (size_t i = 0; i < more->at.n; i++) {
		const struct kind *from = &more->at.at[i];
		struct kind *to;
		uint32_t kind;

		if (!from->nservices)
			continue;
		kind = kinds_find(k, from->name, from->unit);
		to = &k->at.at[kind];
		to->nservices += from->nservices;
		to->nprofiles += from->nprofiles;
		to->is_unfit |= from->is_unfit;
		to->service_name = own_text(k, from->service_name);
	}
}

bool kinds_are_mixed(const struct kinds *k)
{
	size_t n = 0;

	for (size_t i = 0; i < k->at.n; i++)
		n += k->at.at[i].nservices > 0 && !k->at.at[i].is_unfit;
	return n > 1 || k->has_units;
}

/* Ties go by name, or it would depend on the order of services. */
static bool is_before(const struct kind *x, const struct kind *y)
{
	int c;

	if (x->nservices != y->nservices)
		return x->nservices > y->nservices;
	if (x->nprofiles != y->nprofiles)
		return x->nprofiles > y->nprofiles;
	c = str_cmp(x->name, y->name);
	return c ? c < 0 : str_cmp(x->unit, y->unit) < 0;
}

uint32_t kinds_choose(const struct kinds *k)
{
	uint32_t best = NONE;

	for (uint32_t i = 0; i < k->at.n; i++) {
		const struct kind *x = &k->at.at[i];

		if (x->nservices && !x->is_unfit && (best == NONE || is_before(x, &k->at.at[best])))
			best = i;
	}
	return best;
}

static void put_kind(struct buf *out, const struct kind *kind)
{
	enum { MAX_SHOWN = 60 };
	struct str unit = kind->unit;
	int n = (int)(kind->name.n < MAX_SHOWN ? kind->name.n : MAX_SHOWN);

	buf_printf(out, "%.*s", n, kind->name.p);
	n = (int)(unit.n < MAX_SHOWN ? unit.n : MAX_SHOWN);
	if (n)
		buf_printf(out, " in %.*s", n, unit.p);
}

void kinds_left_out(const struct kinds *k, uint32_t chosen, struct arena *a,
		    struct store_left_out *out)
{
	enum { MAX_SHOWN = 100 };
	const struct kind *most = NULL;
	struct buf text = { 0 };

	*out = (struct store_left_out){ 0 };
	for (uint32_t i = 0; i < k->at.n; i++) {
		const struct kind *x = &k->at.at[i];

		if (i == chosen || !x->nservices)
			continue;
		out->nprofiles += x->nprofiles;
		out->nservices += x->nservices;
		if (!most || is_before(x, most))
			most = x;
	}
	if (!most)
		return;
	buf_printf(&text, "%llu profile%s of %llu service%s %s left out, as of \"%.*s\": ",
		   (unsigned long long)out->nprofiles, out->nprofiles == 1 ? "" : "s",
		   (unsigned long long)out->nservices, out->nservices == 1 ? "" : "s",
		   out->nprofiles == 1 ? "is" : "are",
		   (int)(most->service_name.n < MAX_SHOWN ? most->service_name.n : MAX_SHOWN),
		   most->service_name.p);
	buf_puts(&text, "what is told is ");
	put_kind(&text, &k->at.at[chosen]);
	buf_puts(&text, ", and they have ");
	if (most->name.n)
		put_kind(&text, most);
	else
		buf_puts(&text, "no such values");
	buf_puts(&text, "; name a service or a sample type to see them");
	out->why = (struct str){ str_dup(a, buf_view(&text)), text.n };
	buf_release(&text);
}
