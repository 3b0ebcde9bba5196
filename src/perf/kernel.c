#include "perf/kernel.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/utsname.h>
#include <unistd.h>

#define KERNEL STR("[kernel.kallsyms]")
#define KALLSYMS_MAX ((size_t)256 << 20)
#define NOTES_MAX ((size_t)1 << 16)

struct kernel_symbol {
	uint64_t address;
	struct str name, module; /* module: "" for the kernel itself, else "[name]" */
};

struct kernel {
	struct buf text;
	vec(struct kernel_symbol) symbols; /* by address */
};

/* ---- is it this one? */

static bool read_file(struct buf *out, const char *path, size_t max_bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : 1;

	while (got > 0 && out->n < max_bytes) {
		got = read(fd, buf_room(out, 1 << 16), 1 << 16);
		if (got > 0)
			out->n += (size_t)got;
	}
	if (fd >= 0)
		close(fd);
	return got == 0;
}

/* Does /sys/kernel/notes have this build id? A note is sizes of name and content, type, both. */
static bool notes_have(struct str notes, struct str id)
{
	enum { NOTE_BUILD_ID = 3 };

	while (notes.n >= 12) {
		uint32_t head[3];
		uint64_t name, content;

		memcpy(head, notes.p, sizeof(head));
		name = ((uint64_t)head[0] + 3) & ~UINT64_C(3);
		content = ((uint64_t)head[1] + 3) & ~UINT64_C(3);
		if (name + content > notes.n - 12)
			return false;
		if (head[2] == NOTE_BUILD_ID && head[1] == id.n &&
		    memcmp(notes.p + 12 + name, id.p, id.n) == 0)
			return true;
		notes = str_from(notes, 12 + name + content);
	}
	return false;
}

static bool is_running(const struct perf_data *d)
{
	struct buf notes = { 0 };
	struct utsname u;
	bool ok;

	for (size_t i = 0; i < d->build_ids.n; i++) {
		if (!str_eq(d->build_ids.at[i].file, KERNEL))
			continue;
		ok = read_file(&notes, "/sys/kernel/notes", NOTES_MAX) &&
		     notes_have(buf_view(&notes), d->build_ids.at[i].bytes);
		buf_release(&notes);
		return ok;
	}
	return d->host.n && d->release.n && uname(&u) == 0 && str_eq(d->host, str_of(u.nodename)) &&
	       str_eq(d->release, str_of(u.release));
}

/* ---- symbols */

static int by_address(const void *x, const void *y)
{
	const struct kernel_symbol *a = x, *b = y;

	if (a->address != b->address)
		return a->address < b->address ? -1 : 1;
	return a->name.p < b->name.p ? -1 : 1; /* the file's order */
}

/* "ffffffff81000000 T name\t[module]" */
static void read_line(struct kernel *k, struct str line)
{
	struct kernel_symbol s = { 0 };
	struct str text = str_cut(&line, ' '), type = str_cut(&line, ' ');
	size_t i = 0;

	for (; i < text.n; i++) {
		const char *digit = strchr("0123456789abcdef", text.p[i]);

		if (!digit || !*digit)
			return;
		s.address = s.address << 4 | (uint64_t)(digit - "0123456789abcdef");
	}
	if (!i || type.n != 1 || !strchr("tTwW", type.p[0]) || !s.address)
		return;
	s.name = str_cut(&line, '\t');
	s.module = line;
	vec_push(&k->symbols, s);
}

/* Without permission all addresses are 0, and there are no symbols. */
static bool read_symbols(struct kernel *k)
{
	struct str rest;

	if (!read_file(&k->text, "/proc/kallsyms", KALLSYMS_MAX))
		return false;
	for (rest = buf_view(&k->text); rest.n;)
		read_line(k, str_cut(&rest, '\n'));
	if (k->symbols.n)
		qsort(k->symbols.at, k->symbols.n, sizeof(*k->symbols.at), by_address);
	return k->symbols.n != 0;
}

static uint64_t symbol_address(const struct kernel *k, struct str name)
{
	for (size_t i = 0; i < k->symbols.n; i++)
		if (str_eq(k->symbols.at[i].name, name))
			return k->symbols.at[i].address;
	return 0;
}

static const struct kernel_symbol *find_symbol(const struct kernel *k, uint64_t address)
{
	size_t low = 0, high = k->symbols.n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (k->symbols.at[mid].address <= address)
			low = mid + 1;
		else
			high = mid;
	}
	if (!low)
		return NULL;
	/* Of several names for one address take the first. */
	for (low--; low && k->symbols.at[low - 1].address == k->symbols.at[low].address; low--)
		;
	return &k->symbols.at[low];
}

/* ---- naming */

static bool is_kernel(const struct builder *b, const struct location *l)
{
	return l->mapping != NONE && b->mappings.at[l->mapping].start >> 63;
}

static void name_location(struct builder *b, struct location *l, struct str symbol,
			  uint32_t *function)
{
	if (!*function) {
		uint32_t name = builder_string(b, symbol);

		vec_push(&b->functions, (struct function){ .id = b->functions.n + 1u,
							   .name = name,
							   .system_name = name });
		*function = (uint32_t)b->functions.n;
	}
	l->first_line = (uint32_t)b->lines.n;
	l->nlines = 1;
	vec_push(&b->lines, (struct line){ .function = *function - 1 });
}

/* The name of a module's mapping is its path or "[name]"; the symbol has "[name]". */
static bool is_of_module(struct str file, struct str module)
{
	size_t slash = str_rfind_char(file, '/');

	if (str_eq(file, module) || module.n < 3)
		return module.n && str_eq(file, module);
	module = (struct str){ module.p + 1, module.n - 2 };
	return slash != STR_NONE && str_has_prefix(str_from(file, slash + 1), module);
}

/* How far the kernel itself lies from where it was: it moves whenever it is started. */
static uint64_t distance(const struct kernel *k, const struct builder *b, const struct mapping *m)
{
	uint64_t now = symbol_address(k, b->head.strings->at[m->kernel_symbol]);

	return now ? now - m->start : 0;
}

/* functions: plus 1, by symbol. */
static void name_locations(const struct kernel *k, struct builder *b, uint32_t *functions)
{
	uint32_t last = NONE;
	uint64_t moved = 0;

	for (size_t i = 0; i < b->locations.n; i++) {
		struct location *l = &b->locations.at[i];
		const struct kernel_symbol *s;
		struct mapping *m;
		struct str file;

		if (!is_kernel(b, l))
			continue;
		m = &b->mappings.at[l->mapping];
		file = b->head.strings->at[m->file];
		if (l->mapping != last)
			moved = str_eq(file, KERNEL) ? distance(k, b, m) : 0;
		last = l->mapping;
		s = find_symbol(k, l->address + moved);
		if (!s || !(str_eq(file, KERNEL) ? !s->module.n : is_of_module(file, s->module)))
			continue;
		name_location(b, l, s->name, &functions[s - k->symbols.at]);
		m->has_functions = true;
	}
}

void perf_name_kernel(const struct perf_data *d, struct builder *b)
{
	struct kernel k = { 0 };
	size_t i = 0;

	while (i < b->locations.n && !is_kernel(b, &b->locations.at[i]))
		i++;
	if (i < b->locations.n && is_running(d) && read_symbols(&k)) {
		uint32_t *functions = xcalloc(k.symbols.n, sizeof(*functions));

		name_locations(&k, b, functions);
		free(functions);
	}
	buf_release(&k.text);
	vec_release(&k.symbols);
}
