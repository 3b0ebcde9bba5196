#include "profile/profile.h"

#include "base/number.h"
#include "base/path.h"

static uint32_t find_type(const struct profile *p, struct str name)
{
	for (uint32_t i = 0; i < p->ntypes; i++)
		if (str_eq(profile_str(p, p->types[i].type), name))
			return i;
	return NONE;
}

static bool fail_index(const struct profile *p, struct str name, struct err *e)
{
	struct buf text = { 0 };

	buf_puts(&text, "sample_index ");
	quote_go(&text, name);
	buf_puts(&text, " must be one of: [");
	for (uint32_t i = 0; i < p->ntypes; i++) {
		buf_puts(&text, i ? " " : "");
		buf_str(&text, profile_str(p, p->types[i].type));
	}
	err_set(e, ERR_USAGE, "%.*s]", STR_ARG(buf_view(&text)));
	buf_release(&text);
	return false;
}

bool profile_sample_index(const struct profile *p, const char *name, uint32_t *index, struct err *e)
{
	struct str s = str_of(name), without_inuse = s;
	int64_t n;

	if (!s.n) {
		if (!p->ntypes)
			return err_set(e, ERR_FORMAT, "profile has no samples");
		*index = p->default_type ? find_type(p, profile_str(p, p->default_type)) : NONE;
		if (*index == NONE)
			*index = p->ntypes - 1;
		return true;
	}
	if (number_parse_int(s, 10, &n) == NUMBER_OK) {
		if (n < 0 || n >= (int64_t)p->ntypes)
			return err_set(e, ERR_USAGE, "sample_index %s is outside the range [0..%d]",
				       name, (int)p->ntypes - 1);
		*index = (uint32_t)n;
		return true;
	}
	if (str_has_prefix(s, STR("inuse_")))
		without_inuse = str_from(s, 6);
	for (uint32_t i = 0; i < p->ntypes; i++) {
		struct str type = profile_str(p, p->types[i].type);

		if (str_eq(type, s) || str_eq(type, without_inuse)) {
			*index = i;
			return true;
		}
	}
	return fail_index(p, s, e);
}

bool file_is_system(struct str file)
{
	struct str base = path_base(file);

	return str_has_prefix(base, STR("[")) || str_has_prefix(base, STR("linux-vdso")) ||
	       str_has_prefix(file, STR("/dev/dri/")) || str_has_prefix(file, STR("/memfd:")) ||
	       str_eq(file, STR("//anon"));
}

bool mapping_is_system(const struct profile *p, const struct mapping *m)
{
	return file_is_system(profile_str(p, m->file));
}
