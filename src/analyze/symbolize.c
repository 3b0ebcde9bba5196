#include "analyze/symbolize.h"

#include <ctype.h>

#include "profile/profile.h"
#include "symbol/symbol.h"

/* What -symbolize says. */
struct symbolize_mode {
	bool is_off, force;
	enum demangle_mode demangle;
};

static bool read_symbolize_token(struct symbolize_mode *m, struct str token)
{
	static const struct {
		const char *name;
		enum demangle_mode mode;
	} modes[] = {
		{ "demangle=full", DEMANGLE_FULL },  { "full", DEMANGLE_FULL },
		{ "demangle=none", DEMANGLE_NONE },  { "demangle=templates", DEMANGLE_TEMPLATES },
		{ "templates", DEMANGLE_TEMPLATES },
	};

	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
		if (str_eq(token, str_of(modes[i].name))) {
			m->demangle = modes[i].mode;
			m->force = true;
			return true;
		}
	}
	if (str_eq(token, STR("force")))
		m->force = true;
	else if (str_eq(token, STR("none")) || str_eq(token, STR("no")))
		m->is_off = true;
	else
		return !token.n || str_eq(token, STR("local")) || str_eq(token, STR("fastlocal")) ||
		       str_eq(token, STR("remote")) || str_eq(token, STR("demangle=default"));
	return true;
}

static struct symbolize_mode read_symbolize(struct arena *a, const char *value,
					    struct buf *warnings)
{
	struct symbolize_mode m = { .demangle = DEMANGLE_DEFAULT };
	char *lower = str_dup(a, str_of(value));
	struct str rest;

	for (char *c = lower; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	rest = str_of(lower);
	while (rest.p && !m.is_off) {
		if (!read_symbolize_token(&m, str_cut(&rest, ':')))
			buf_printf(warnings,
				   "ignoring unrecognized symbolization option: %s\n"
				   "expecting -symbolize=[local|fastlocal|remote|none][:force]"
				   "[:demangle=[none|full|templates|default]\n",
				   value);
	}
	return m;
}

bool symbolize(struct arena *a, struct profile *p, const struct analyze_options *o,
	       struct buf *warnings, struct err *e)
{
	struct symbolize_mode mode = read_symbolize(a, o->symbolize, warnings);

	(void)e;
	if (!mode.is_off)
		profile_demangle(a, p, mode.demangle, mode.force);
	return true;
}
