#include "analyze/symbolize.h"

#include <ctype.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/parallel.h"
#include "fetch/symbolz.h"
#include "profile/profile.h"
#include "symbol/symbol.h"

/* What -symbolize says. */
struct symbolize_mode {
	bool is_off, force;
	bool local, only_names, remote;
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
	static const struct {
		const char *name;
		bool local, only_names;
	} places[] = {
		{ "local", true, false },
		{ "fastlocal", true, true },
		{ "remote", false, false },
	};

	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++) {
		if (str_eq(token, str_of(modes[i].name))) {
			m->demangle = modes[i].mode;
			m->force = true;
			return true;
		}
	}
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		if (str_eq(token, str_of(places[i].name))) {
			m->local = places[i].local;
			m->only_names |= places[i].only_names;
			m->remote = !places[i].local;
			return true;
		}
	}
	if (str_eq(token, STR("force")))
		m->force = true;
	else if (str_eq(token, STR("none")) || str_eq(token, STR("no")))
		m->is_off = true;
	else
		return !token.n || str_eq(token, STR("demangle=default"));
	return true;
}

static struct symbolize_mode read_symbolize(struct arena *a, const char *value,
					    struct buf *warnings)
{
	struct symbolize_mode m = { .local = true, .remote = true, .demangle = DEMANGLE_DEFAULT };
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

static struct symbol_tools tools_of(const struct analyze_options *o)
{
	const char *path = getenv("PATH");

	return (struct symbol_tools){ .option = o->tools, .path = path ? path : "" };
}

struct asm_style asm_style(const struct analyze_options *o)
{
	struct symbol_tools tools = tools_of(o);

	return (struct asm_style){ .is_gnu = symbol_tools_objdump_is_gnu(&tools),
				   .is_intel = o->intel_syntax };
}

static void symbolize_locally(struct arena *a, struct profile *p, const struct symbolize_mode *mode,
			      const struct analyze_options *o, const char **reasons,
			      struct buf *warnings)
{
	struct symbol_tools tools = tools_of(o);
	struct symbolize_params params = { .force = mode->force,
					   .reasons = reasons,
					   .threads = parallel_cores() };

	params.symbolizer = symbol_tools_choose(&tools, mode->only_names);
	params.symbolizer.binary_path = getenv("PPROF_BINARY_PATH");
	profile_symbolize(a, p, &params, warnings);
}

bool symbolize(struct arena *a, struct profile *p, const struct analyze_options *o,
	       struct fetch_remote *remote, struct buf *warnings, struct err *e)
{
	struct symbolize_mode mode = read_symbolize(a, o->symbolize, warnings);
	const char **reasons = NULL;

	if (mode.is_off)
		return true;
	/* Where nobody looks these lines would only be in the way of who compares with pprof. */
	if (o->verbose || isatty(STDERR_FILENO))
		reasons = arena_many(a, p->nmappings, const char *);
	if (mode.local)
		symbolize_locally(a, p, &mode, o, reasons, warnings);
	if (mode.remote && !symbolz(a, p, remote, mode.force, e))
		return false;
	if (reasons)
		profile_explain_names(p, reasons, warnings);
	profile_demangle(a, p, mode.demangle, mode.force);
	return true;
}
