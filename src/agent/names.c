#include "agent/names.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "agent/memory.h"

enum { TABLE_MAX = 64 << 20 }; /* bytes */

void names_release(struct names *t)
{
	pages_unmap(t->symbols, t->symbols_bytes);
	pages_unmap(t->text, t->text_bytes);
	*t = (struct names){ 0 };
}

/* ---- order */

/* By start, one byte of it after the other; those that are equal stay in order. `other` has room
 * for as many. */
static void sort_by_start(struct symbol *symbols, struct symbol *other, size_t n)
{
	struct symbol *from = symbols, *to = other, *swap;

	for (unsigned shift = 0; shift < 64; shift += 8) {
		size_t counts[256] = { 0 }, at = 0;

		for (size_t i = 0; i < n; i++)
			counts[from[i].start >> shift & 255]++;
		if (counts[from[0].start >> shift & 255] == n)
			continue;
		for (unsigned i = 0; i < 256; i++) {
			size_t count = counts[i];

			counts[i] = at;
			at += count;
		}
		for (size_t i = 0; i < n; i++)
			to[counts[from[i].start >> shift & 255]++] = from[i];
		swap = from;
		from = to;
		to = swap;
	}
	if (from != symbols)
		memcpy(symbols, from, n * sizeof(*symbols));
}

/* Of two names for the same code that one which programs use: read, not __read. */
static bool is_better(const char *name, const char *than)
{
	size_t a = strspn(name, "_"), b = strspn(than, "_");

	return a < b;
}

static bool arrange(struct names *t, bool last_wins)
{
	struct symbol *other = pages_map(t->n * sizeof(*other));
	size_t n = 0;

	if (!other)
		return false;
	if (t->n)
		sort_by_start(t->symbols, other, t->n);
	pages_unmap(other, t->n * sizeof(*other));
	for (size_t i = 0; i < t->n; i++) {
		struct symbol *s = &t->symbols[i], *before = n ? &t->symbols[n - 1] : NULL;

		if (!before || before->start != s->start)
			t->symbols[n++] = *s;
		else if (last_wins || is_better(t->text + s->name, t->text + before->name))
			*before = *s;
	}
	t->n = n;
	return n > 0;
}

const char *names_find(const struct names *t, uint64_t address, uint64_t *offset)
{
	const struct symbol *s = t->symbols;
	size_t n = t->n;

	if (!n || address < s->start)
		return NULL;
	while (n > 1) {
		size_t half = n / 2;

		s = s[half].start <= address ? s + half : s;
		n -= half;
	}
	if (s->size && address - s->start >= s->size)
		return NULL;
	*offset = address - s->start;
	return t->text + s->name;
}

/* ---- ELF: all places in it are checked when they are read */

struct source {
	int fd;		   /* or -1: */
	const char *image; /* of `size` bytes */
	size_t size;
};

static bool read_at(const struct source *s, void *to, size_t n, uint64_t at)
{
	char *p = to;

	if (s->fd < 0) {
		if (at > s->size || n > s->size - at)
			return false;
		memcpy(to, s->image + at, n);
		return true;
	}
	while (n) {
		ssize_t got = at > INT64_MAX ? 0 : pread(s->fd, p, n, (off_t)at);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		p += got;
		n -= (size_t)got;
		at += (uint64_t)got;
	}
	return true;
}

static bool read_header(const struct source *s, Elf64_Ehdr *header)
{
	return read_at(s, header, sizeof(*header), 0) &&
	       memcmp(header->e_ident, ELFMAG, SELFMAG) == 0 &&
	       header->e_ident[EI_CLASS] == ELFCLASS64 && header->e_ident[EI_DATA] == ELFDATA2LSB;
}

static bool has_build_id(const char *notes, size_t n, const struct module *m)
{
	size_t at = 0;

	while (n - at >= sizeof(Elf64_Nhdr)) {
		Elf64_Nhdr note;
		size_t name, desc;

		memcpy(&note, notes + at, sizeof(note));
		at += sizeof(note);
		name = ((size_t)note.n_namesz + 3) & ~(size_t)3;
		desc = ((size_t)note.n_descsz + 3) & ~(size_t)3;
		if (name > n - at || desc > n - at - name)
			return false;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
		    memcmp(notes + at, "GNU", 4) == 0)
			return note.n_descsz == m->build_id_size &&
			       memcmp(notes + at + name, m->build_id, m->build_id_size) == 0;
		at += name + desc;
	}
	return false;
}

/* Without build ids there is nothing to tell them apart by. */
static bool is_same_file(const struct source *s, const Elf64_Ehdr *header, const struct module *m)
{
	char notes[4096];

	if (!m->build_id_size)
		return true;
	for (unsigned i = 0; i < header->e_phnum && header->e_phentsize == sizeof(Elf64_Phdr);
	     i++) {
		Elf64_Phdr h;

		if (!read_at(s, &h, sizeof(h), header->e_phoff + i * sizeof(h)))
			return false;
		if (h.p_type == PT_NOTE && h.p_filesz <= sizeof(notes) &&
		    read_at(s, notes, h.p_filesz, h.p_offset) && has_build_id(notes, h.p_filesz, m))
			return true;
	}
	return false;
}

struct sections {
	const Elf64_Shdr *at;
	unsigned n;
};

/* The section of this kind; type SHT_NULL: there is none. */
static Elf64_Shdr find_section(const struct sections *sections, uint32_t type)
{
	for (unsigned i = 0; i < sections->n; i++) {
		const Elf64_Shdr *h = &sections->at[i];

		if (h->sh_type == type && h->sh_entsize == sizeof(Elf64_Sym) &&
		    h->sh_size >= sizeof(Elf64_Sym) && h->sh_link < sections->n)
			return *h;
	}
	return (Elf64_Shdr){ .sh_type = SHT_NULL };
}

static bool read_strings(struct names *t, const struct source *s, const Elf64_Shdr *strings)
{
	if (strings->sh_type != SHT_STRTAB || strings->sh_size >= TABLE_MAX)
		return false;
	t->text_bytes = strings->sh_size + 1; /* which stays 0 */
	t->text = pages_map(t->text_bytes);
	return t->text && read_at(s, t->text, strings->sh_size, strings->sh_offset);
}

static bool is_function(const Elf64_Sym *y, size_t text_bytes)
{
	unsigned type = ELF64_ST_TYPE(y->st_info);

	return (type == STT_FUNC || type == STT_GNU_IFUNC) && y->st_shndx != SHN_UNDEF &&
	       y->st_value && y->st_name && y->st_name < text_bytes;
}

/* Some of assembler have none: they go on up to the next, but not into other sections. */
static uint32_t size_of(const Elf64_Sym *y, const struct sections *sections)
{
	uint64_t size = y->st_size;

	if (!size && y->st_shndx < sections->n) {
		const Elf64_Shdr *in = &sections->at[y->st_shndx];

		if (y->st_value >= in->sh_addr && y->st_value - in->sh_addr < in->sh_size)
			size = in->sh_size - (y->st_value - in->sh_addr);
	}
	return size < UINT32_MAX ? (uint32_t)size : UINT32_MAX;
}

static bool read_symbols(struct names *t, const struct source *s, const Elf64_Shdr *table,
			 const struct sections *sections)
{
	size_t all = table->sh_size / sizeof(Elf64_Sym);
	Elf64_Sym some[128];

	if (all > TABLE_MAX / sizeof(struct symbol))
		return false;
	t->symbols_bytes = all * sizeof(struct symbol);
	t->symbols = pages_map(t->symbols_bytes);
	if (!t->symbols)
		return false;
	for (size_t i = 0; i < all;) {
		size_t n = all - i < 128 ? all - i : 128;

		if (!read_at(s, some, n * sizeof(*some), table->sh_offset + i * sizeof(*some)))
			return false;
		for (size_t k = 0; k < n; k++)
			if (is_function(&some[k], t->text_bytes))
				t->symbols[t->n++] = (struct symbol){ some[k].st_value,
								      size_of(&some[k], sections),
								      some[k].st_name };
		i += n;
	}
	return true;
}

static bool read_table(struct names *t, const struct source *s, const struct sections *sections)
{
	static const uint32_t types[] = { SHT_SYMTAB, SHT_DYNSYM };

	for (unsigned i = 0; i < 2; i++) {
		Elf64_Shdr table = find_section(sections, types[i]);

		if (table.sh_type != SHT_NULL && read_strings(t, s, &sections->at[table.sh_link]) &&
		    read_symbols(t, s, &table, sections) && arrange(t, false))
			return true;
		names_release(t);
	}
	return false;
}

static bool read_elf(struct names *t, const struct source *s, const struct module *m)
{
	Elf64_Ehdr header;
	Elf64_Shdr *sections;
	size_t bytes;
	bool ok;

	if (!read_header(s, &header) || header.e_shentsize != sizeof(*sections) ||
	    !header.e_shnum || (m && !is_same_file(s, &header, m)))
		return false;
	bytes = header.e_shnum * sizeof(*sections);
	sections = pages_map(bytes);
	ok = sections && read_at(s, sections, bytes, header.e_shoff) &&
	     read_table(t, s, &(struct sections){ sections, header.e_shnum });
	pages_unmap(sections, bytes);
	return ok;
}

bool names_read_file(struct names *t, const char *path, const struct module *m)
{
	/* It may be a pipe by now. */
	struct source s = { .fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) };
	bool ok = s.fd >= 0 && read_elf(t, &s, m);

	if (s.fd >= 0)
		close(s.fd);
	return ok;
}

bool names_read_image(struct names *t, const void *image, size_t n)
{
	return read_elf(t, &(struct source){ -1, image, n }, NULL);
}

/* ---- perf maps */

static const char *take_hex(const char *p, uint64_t *value)
{
	const char *start = p;

	*value = 0;
	if (p[0] == '0' && (p[1] | 0x20) == 'x')
		p += 2;
	for (;; p++) {
		char c = *p, lower = (char)(c | 0x20);

		if (c >= '0' && c <= '9')
			*value = *value << 4 | (uint64_t)(c - '0');
		else if (lower >= 'a' && lower <= 'f')
			*value = *value << 4 | (uint64_t)(lower - 'a' + 10);
		else
			return p > start && c == ' ' ? p + 1 : NULL;
	}
}

static bool read_text(struct names *t, int fd)
{
	off_t size = lseek(fd, 0, SEEK_END);

	if (size <= 0 || size >= TABLE_MAX)
		return false;
	t->text_bytes = (size_t)size + 1;
	t->text = pages_map(t->text_bytes);
	return t->text && read_at(&(struct source){ .fd = fd }, t->text, (size_t)size, 0);
}

static size_t count_lines(const char *text)
{
	size_t n = 0;

	while ((text = strchr(text, '\n'))) {
		text++;
		n++;
	}
	return n;
}

/* What has no end of line yet is being written. */
bool names_read_perf_map(struct names *t, int fd)
{
	char *line, *end;

	if (!read_text(t, fd))
		return false;
	t->symbols_bytes = (count_lines(t->text) + 1) * sizeof(struct symbol);
	t->symbols = pages_map(t->symbols_bytes);
	if (!t->symbols)
		return false;
	for (line = t->text; (end = strchr(line, '\n')); line = end + 1) {
		uint64_t start, size;
		const char *at;

		*end = '\0';
		at = take_hex(line, &start);
		at = at ? take_hex(at, &size) : NULL;
		if (at && *at && size && size < UINT32_MAX)
			t->symbols[t->n++] =
				(struct symbol){ start, (uint32_t)size, (uint32_t)(at - t->text) };
	}
	return arrange(t, true);
}
