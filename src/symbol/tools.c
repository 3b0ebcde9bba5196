/* tools.c - which programs pprof would find to name addresses with.
 *
 * None of them is run. But they do not tell the same (addr2line knows no columns), and pprof's
 * output differs with the one it finds; so that the same machine gives the same output, the symbols
 * are read here as that program would.
 */
#include "symbol/symbol.h"

#include <sys/stat.h>

#include "base/path.h"

static bool is_program(struct str dir, const char *name)
{
	struct buf path = { 0 };
	struct stat st;
	bool found;

	path_join(&path, dir, str_of(name));
	buf_char(&path, '\0');
	found = stat(path.p, &st) == 0 && S_ISREG(st.st_mode) && st.st_mode & 0111;
	buf_release(&path);
	return found;
}

static bool is_on_path(const struct symbol_tools *t, const char *name)
{
	struct str rest = str_of(t->path);

	while (rest.n) {
		struct str dir = str_cut(&rest, ':');

		if (dir.n && is_program(dir, name))
			return true;
	}
	return false;
}

/* Looks in the places that the option has for this tool, or with tool "" for all of them. */
static bool is_in_option(const struct symbol_tools *t, const char *tool, const char *name)
{
	struct str rest = str_of(t->option);

	do {
		struct str place = str_cut(&rest, ','), dir = place;
		struct str of =
			str_find_char(place, ':') == STR_NONE ? STR("") : str_cut(&dir, ':');

		if (!str_eq(of, str_of(tool)))
			continue;
		if (dir.n ? is_program(dir, name) : is_on_path(t, name))
			return true;
	} while (rest.p);
	return false;
}

static bool is_found(const struct symbol_tools *t, const char *tool, const char *name)
{
	return is_in_option(t, tool, name) || is_in_option(t, "", name);
}

bool symbol_tools_objdump_is_gnu(const struct symbol_tools *t)
{
	return !is_found(t, "objdump", "llvm-objdump") && is_found(t, "objdump", "objdump");
}

struct symbolizer_params symbol_tools_choose(const struct symbol_tools *t, bool only_names)
{
	struct symbolizer_params params = { .nm_is_llvm = is_found(t, "nm", "llvm-nm") };
	bool has_symbolizer = is_found(t, "llvm-symbolizer", "llvm-symbolizer");
	bool has_addr2line = is_found(t, "addr2line", "addr2line");

	/* One of the two being found, pprof starts the other by its name alone. */
	if (only_names)
		params.detail = SYMBOL_NAMES;
	else if (!has_addr2line || has_symbolizer || is_on_path(t, "llvm-symbolizer"))
		params.detail = SYMBOL_FULL;
	else
		params.detail = SYMBOL_PLAIN;
	/* llvm-symbolizer has an answer for everything, but where it is not there to be followed an
	 * empty one is of no use. */
	params.leave_unknown = !has_symbolizer && !has_addr2line;
	return params;
}
