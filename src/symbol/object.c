#include "symbol/symbol.h"

#include <errno.h>
#include <endian.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/map.h"
#include "symbol/elf.h"

#define PAGE 4096
#define KERNEL_HALF (UINT64_C(1) << 63)

static bool read_segments(struct arena *a, struct elf *f, struct err *e)
{
	const char *header = f->bytes.p;
	uint64_t offset = FIELD(f, header, Ehdr, e_phoff);
	uint64_t n = FIELD(f, header, Ehdr, e_phnum), size = FIELD(f, header, Ehdr, e_phentsize);

	if (n == 0)
		return true;
	if (size < SIZE(f, Phdr))
		return err_set(e, ERR_FORMAT, "invalid ELF phentsize %u", (unsigned)size);
	if (!elf_has(f->bytes, offset, n * size))
		return err_set(e, ERR_FORMAT, "EOF");
	f->segments = arena_many(a, n, struct segment);
	for (; f->nsegments < n; f->nsegments++) {
		const char *at = f->bytes.p + offset + f->nsegments * size;

		f->segments[f->nsegments] = (struct segment){
			.type = (uint32_t)FIELD(f, at, Phdr, p_type),
			.flags = (uint32_t)FIELD(f, at, Phdr, p_flags),
			.offset = FIELD(f, at, Phdr, p_offset),
			.vaddr = FIELD(f, at, Phdr, p_vaddr),
			.filesz = FIELD(f, at, Phdr, p_filesz),
			.memsz = FIELD(f, at, Phdr, p_memsz),
			.align = FIELD(f, at, Phdr, p_align),
		};
	}
	return true;
}

/* Many names may share one long text, which must not be looked at for each of them: this is how
 * many bytes may be in all. */
static size_t elf_name_budget(struct str table)
{
	return 16 * table.n + (1 << 16);
}

static bool elf_name(struct str table, uint64_t at, size_t *budget, struct str *name)
{
	size_t room, n;

	if (at >= table.n)
		return false;
	room = table.n - at < *budget ? table.n - at : *budget;
	n = strnlen(table.p + at, room);
	*budget -= n;
	*name = (struct str){ table.p + at, n };
	return n < room;
}

static bool name_sections(struct elf *f, uint64_t offset, uint64_t size, uint64_t names,
			  struct err *e)
{
	const struct section *table;
	struct str text;
	size_t budget;

	if (names == SHN_UNDEF)
		return true;
	if (names >= f->nsections)
		return err_set(e, ERR_FORMAT, "invalid ELF shstrndx %u", (unsigned)names);
	table = &f->sections[names];
	if (table->type != SHT_STRTAB || !elf_has(f->bytes, table->offset, table->size))
		return err_set(e, ERR_FORMAT, "invalid ELF section name string table");
	text = elf_part(f->bytes, table->offset, table->size);
	budget = elf_name_budget(text);
	for (size_t i = 0; i < f->nsections; i++) {
		const char *at = f->bytes.p + offset + i * size;
		uint64_t name = FIELD(f, at, Shdr, sh_name);

		if (!elf_name(text, name, &budget, &f->sections[i].name))
			return err_set(e, ERR_FORMAT, "bad section name index %u", (unsigned)name);
	}
	return true;
}

static bool read_sections(struct arena *a, struct elf *f, struct err *e)
{
	const char *header = f->bytes.p;
	uint64_t offset = FIELD(f, header, Ehdr, e_shoff), n = FIELD(f, header, Ehdr, e_shnum);
	uint64_t size = FIELD(f, header, Ehdr, e_shentsize);
	uint64_t names = FIELD(f, header, Ehdr, e_shstrndx);

	if (offset == 0)
		return n == 0 || err_set(e, ERR_FORMAT, "invalid ELF shnum for shoff=0");
	if (size < SIZE(f, Shdr))
		return err_set(e, ERR_FORMAT, "invalid ELF shentsize %u", (unsigned)size);
	if (!elf_has(f->bytes, offset, size))
		return err_set(e, ERR_FORMAT, "EOF");
	/* Counts that do not fit the header stand in the first section. */
	if (n == 0)
		n = FIELD(f, f->bytes.p + offset, Shdr, sh_size);
	if (names == SHN_XINDEX)
		names = FIELD(f, f->bytes.p + offset, Shdr, sh_link);
	if (n == 0)
		return true;
	if (n > (f->bytes.n - offset) / size)
		return err_set(e, ERR_FORMAT, "EOF");
	f->sections = arena_many(a, n, struct section);
	for (; f->nsections < n; f->nsections++) {
		const char *at = f->bytes.p + offset + f->nsections * size;

		f->sections[f->nsections] = (struct section){
			.type = (uint32_t)FIELD(f, at, Shdr, sh_type),
			.flags = FIELD(f, at, Shdr, sh_flags),
			.link = (uint32_t)FIELD(f, at, Shdr, sh_link),
			.addr = FIELD(f, at, Shdr, sh_addr),
			.offset = FIELD(f, at, Shdr, sh_offset),
			.size = FIELD(f, at, Shdr, sh_size),
		};
	}
	return name_sections(f, offset, size, names, e);
}

bool elf_read(struct arena *a, struct elf *f, struct str bytes, struct err *e)
{
	const unsigned char *ident = (const unsigned char *)bytes.p;

	*f = (struct elf){ .bytes = bytes };
	if (f->bytes.n < EI_NIDENT)
		return err_set(e, ERR_FORMAT, "EOF");
	if (ident[EI_CLASS] != ELFCLASS32 && ident[EI_CLASS] != ELFCLASS64)
		return err_set(e, ERR_FORMAT, "unknown ELF class %d", ident[EI_CLASS]);
	if (ident[EI_DATA] != ELFDATA2LSB && ident[EI_DATA] != ELFDATA2MSB)
		return err_set(e, ERR_FORMAT, "unknown ELF data encoding %d", ident[EI_DATA]);
	if (ident[EI_VERSION] != EV_CURRENT)
		return err_set(e, ERR_FORMAT, "unknown ELF version %d", ident[EI_VERSION]);
	f->is_64 = ident[EI_CLASS] == ELFCLASS64;
	f->is_big_endian = ident[EI_DATA] == ELFDATA2MSB;
	if (f->bytes.n < SIZE(f, Ehdr))
		return err_set(e, ERR_FORMAT, "EOF");
	f->kernel_symbol = arena_new(a, struct elf_kernel_symbol);
	f->type = (uint16_t)FIELD(f, f->bytes.p, Ehdr, e_type);
	return read_segments(a, f, e) && read_sections(a, f, e);
}

/* The GNU build ids among notes. False if the notes are broken or have more than one. */
static bool find_build_id(const struct elf *f, struct str notes, uint64_t align, struct str *id)
{
	align = align > 4 ? align : 4;
	if (align & (align - 1) || align > PAGE)
		return false;
	for (size_t at = 0; at < notes.n;) {
		size_t left = notes.n - at, name_bytes, desc_bytes, desc, end;
		const char *note = notes.p + at;

		if (left < sizeof(Elf32_Nhdr))
			return false;
		name_bytes = elf_field(f, note, 4);
		desc_bytes = elf_field(f, note + 4, 4);
		/* 32 bit sizes: the sums cannot overflow. */
		desc = (sizeof(Elf32_Nhdr) + name_bytes + align - 1) & ~(align - 1);
		end = desc + desc_bytes;
		if (end > left)
			return false;
		if (elf_field(f, note + 8, 4) == NT_GNU_BUILD_ID && name_bytes == 4 &&
		    memcmp(note + sizeof(Elf32_Nhdr), "GNU", 4) == 0) {
			if (id->n)
				return false;
			*id = (struct str){ note + desc, desc_bytes };
		}
		end = (end + align - 1) & ~(align - 1);
		at = end < left ? at + end : notes.n;
	}
	return true;
}

/* Program headers first: stripped and cut files still have them. */
static struct str elf_build_id(const struct elf *f)
{
	struct str id = { 0 };

	for (size_t i = 0; i < f->nsegments && !id.n; i++) {
		const struct segment *s = &f->segments[i];

		if (s->type == PT_NOTE &&
		    !find_build_id(f, elf_part(f->bytes, s->offset, s->filesz), s->align, &id))
			return (struct str){ 0 };
	}
	for (size_t i = 0; i < f->nsections && !id.n; i++) {
		const struct section *s = &f->sections[i];

		if (s->type == SHT_NOTE &&
		    !find_build_id(f, elf_part(f->bytes, s->offset, s->size), 4, &id))
			return (struct str){ 0 };
	}
	return id;
}

static struct str hex(struct arena *a, struct str bytes)
{
	char *text = arena_alloc(a, 2 * bytes.n + 1);

	for (size_t i = 0; i < bytes.n; i++) {
		text[2 * i] = "0123456789abcdef"[(uint8_t)bytes.p[i] >> 4];
		text[2 * i + 1] = "0123456789abcdef"[(uint8_t)bytes.p[i] & 15];
	}
	return (struct str){ text, 2 * bytes.n };
}

static bool recognise(struct object *o, const char *path, struct err *e)
{
	uint32_t magic;

	memcpy(&magic, o->bytes.p, sizeof(magic));
	magic = be32toh(magic);
	if (magic == 0x7f454c46) {
		o->kind = OBJECT_ELF;
		o->elf = arena_new(&o->arena, struct elf);
		if (!elf_read(&o->arena, o->elf, o->bytes, e))
			return err_wrap(e, "error reading ELF file %s", path);
		o->build_id = hex(&o->arena, elf_build_id(o->elf));
		return true;
	}
	if (magic == 0xfeedface || magic == 0xfeedfacf || magic == 0xcefaedfe ||
	    magic == 0xcffaedfe || magic == 0xcafebabe) {
		o->kind = OBJECT_MACHO;
		if (o->bytes.n < 28) /* struct mach_header */
			return err_set(e, ERR_FORMAT, "error reading %sMach-O file %s: EOF",
				       magic == 0xcafebabe ? "fat " : "", path);
		return true;
	}
	if (magic >> 16 == 0x4d5a) { /* "MZ" */
		o->kind = OBJECT_PE;
		if (o->bytes.n < 64) /* IMAGE_DOS_HEADER */
			return err_set(e, ERR_FORMAT, "error reading PE file %s: EOF", path);
		return true;
	}
	return err_set(e, ERR_FORMAT, "unrecognized binary format: %s", path);
}

static bool map_file(struct object *o, const char *path, int fd, struct err *e)
{
	struct stat st;
	void *bytes;

	if (fstat(fd, &st) != 0)
		return err_system(e, "stat", path);
	if (!S_ISREG(st.st_mode))
		return err_set(e, ERR_FORMAT, "error reading magic number from %s: %s", path,
			       S_ISDIR(st.st_mode) ? "is a directory" : "not a regular file");
	if (st.st_size < 4)
		return err_set(e, ERR_FORMAT, "error reading magic number from %s: %s", path,
			       st.st_size ? "unexpected EOF" : "EOF");
	bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (bytes == MAP_FAILED)
		return err_system(e, "mmap", path);
	o->bytes = (struct str){ bytes, (size_t)st.st_size };
	return true;
}

bool object_open(struct object *o, const char *path, struct err *e)
{
	/* O_NONBLOCK: a FIFO must not make us wait. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	bool ok;

	*o = (struct object){ 0 };
	if (fd < 0)
		return err_system(e, errno == EACCES ? "open" : "stat", path);
	o->path = str_dup(&o->arena, str_of(path));
	ok = map_file(o, path, fd, e) && recognise(o, path, e);
	close(fd);
	if (!ok)
		object_close(o);
	return ok;
}

void object_close(struct object *o)
{
	if (o->bytes.p)
		munmap((void *)(uintptr_t)o->bytes.p, o->bytes.n);
	arena_release(&o->arena);
	*o = (struct object){ 0 };
}

const struct section *elf_section(const struct elf *f, struct str name)
{
	for (size_t i = 0; i < f->nsections; i++)
		if (str_eq(f->sections[i].name, name))
			return &f->sections[i];
	return NULL;
}

struct str elf_bytes(const struct elf *f, const struct section *s)
{
	if (!s || s->type == SHT_NOBITS)
		return (struct str){ 0 };
	return elf_part(f->bytes, s->offset, s->size);
}

struct elf_symbols elf_symbols(const struct elf *f, uint32_t type)
{
	struct elf_symbols symbols = { .f = f, .next = 1 };

	for (size_t i = 0; i < f->nsections; i++) {
		const struct section *table = &f->sections[i];

		if (table->type != type)
			continue;
		if (table->link < f->nsections) {
			symbols.entries = elf_bytes(f, table);
			symbols.names = elf_bytes(f, &f->sections[table->link]);
			symbols.budget = elf_name_budget(symbols.names);
		}
		break;
	}
	return symbols;
}

bool elf_next_symbol(struct elf_symbols *symbols, struct elf_symbol *out)
{
	const struct elf *f = symbols->f;

	while (symbols->next < symbols->entries.n / SIZE(f, Sym)) {
		const char *at = symbols->entries.p + symbols->next * SIZE(f, Sym);
		uint64_t info = FIELD(f, at, Sym, st_info);
		struct str name;

		symbols->next++;
		if (!elf_name(symbols->names, FIELD(f, at, Sym, st_name), &symbols->budget, &name))
			continue;
		*out = (struct elf_symbol){
			.value = FIELD(f, at, Sym, st_value),
			.size = FIELD(f, at, Sym, st_size),
			.name = name,
			.index = (uint32_t)(symbols->next - 1),
			.section = (uint16_t)FIELD(f, at, Sym, st_shndx),
			.type = ELF64_ST_TYPE(info),
			.bind = ELF64_ST_BIND(info),
		};
		return true;
	}
	return false;
}

static const struct segment *text_segment(const struct elf *f)
{
	for (size_t i = 0; i < f->nsections; i++) {
		uint64_t text = f->sections[i].addr;

		if (!str_eq(f->sections[i].name, STR(".text")))
			continue;
		for (size_t k = 0; k < f->nsegments; k++) {
			const struct segment *s = &f->segments[k];

			if (s->type == PT_LOAD && s->flags & PF_X && text >= s->vaddr &&
			    text - s->vaddr < s->memsz)
				return s;
		}
	}
	return NULL;
}

/* Value of a symbol in .symtab. */
static bool symbol_value(const struct elf *f, struct str name, uint64_t *value)
{
	struct elf_kernel_symbol *kept = f->kernel_symbol;
	struct elf_symbols symbols = elf_symbols(f, SHT_SYMTAB);
	uint64_t hash = hash_bytes(map_seed(), name.p, name.n);
	struct elf_symbol symbol;

	if (!kept->is_known || kept->name_hash != hash) {
		*kept = (struct elf_kernel_symbol){ .name_hash = hash, .is_known = true };
		while (!kept->is_there && elf_next_symbol(&symbols, &symbol)) {
			kept->is_there = str_eq(symbol.name, name);
			kept->value = symbol.value;
		}
	}
	*value = kept->value;
	return kept->is_there;
}

/* Where the kernel's relocation symbol was linked. Reading all symbols costs time, so they are only
 * looked at where it may matter: a kernel by its name, or mappings that no loader would make. */
static bool kernel_offset(const struct elf *f, const char *path, const struct object_place *place,
			  uint64_t *value)
{
	struct str symbol = place->kernel_symbol.n ? place->kernel_symbol : STR("_stext");

	return (strstr(path, "vmlinux") || place->start % PAGE || place->limit % PAGE ||
		place->offset % PAGE) &&
	       symbol_value(f, symbol, value);
}

/* `stext` is NULL when the kernel symbol is not known. */
static bool kernel_base(const struct object_place *m, const struct segment *s,
			const uint64_t *stext, uint64_t *base)
{
	if (s->vaddr == m->start - m->offset) {
		*base = m->offset;
	} else if (m->start == 0 && m->limit != 0 && stext) {
		*base = m->start - *stext;
	} else if (m->start >= KERNEL_HALF && m->limit > m->start &&
		   (m->offset == 0 || m->offset == UINT64_C(0xc000000000000000) ||
		    m->offset == m->start)) {
		*base = stext && m->start % PAGE == *stext % PAGE ? m->start - *stext
								  : m->start - s->vaddr;
	} else if (m->start % PAGE && stext && *stext % PAGE == m->start % PAGE) {
		*base = m->start - *stext;
	} else {
		return false;
	}
	return true;
}

static bool exec_base(const struct object_place *m, const struct segment *s, const uint64_t *stext,
		      uint64_t *base, struct err *e)
{
	if (!s)
		*base = 0;
	else if (!stext && m->start > 0 && m->start < KERNEL_HALF)
		*base = m->start - m->offset + s->offset - s->vaddr;
	else if (kernel_base(m, s, stext, base))
		return true;
	else if (m->start == 0 && m->limit != 0 && !stext)
		*base = m->start - s->vaddr;
	else
		return err_set(e, ERR_FORMAT,
			       "don't know how to handle EXEC segment: start=0x%jx limit=0x%jx "
			       "offset=0x%jx",
			       (uintmax_t)m->start, (uintmax_t)m->limit, (uintmax_t)m->offset);
	return true;
}

/* Says where nothing is: addresses are the object's own. */
static bool is_unplaced(const struct object_place *m)
{
	return m->start == 0 && m->offset == 0 && (m->limit == 0 || m->limit == UINT64_MAX);
}

static bool elf_base(const struct elf *f, const struct object_place *m, const struct segment *s,
		     const uint64_t *stext, uint64_t *base, struct err *e)
{
	*base = 0;
	if (is_unplaced(m))
		return true;
	switch (f->type) {
	case ET_EXEC:
		return exec_base(m, s, stext, base, e);
	case ET_REL:
		*base = m->start;
		return m->offset == 0 ||
		       err_set(e, ERR_FORMAT, "don't know how to handle mapping.Offset");
	case ET_DYN:
		if (!s)
			*base = m->start - m->offset;
		else if (!kernel_base(m, s, stext, base))
			*base = m->start - m->offset + s->offset - s->vaddr;
		return true;
	default:
		return err_set(e, ERR_FORMAT, "don't know how to handle FileHeader.Type %u",
			       f->type);
	}
}

bool object_check_base(const struct object *o, const char *path, const struct object_place *place,
		       struct err *e)
{
	uint64_t stext, base;

	if (o->kind != OBJECT_ELF)
		return true;
	return elf_base(o->elf, place, text_segment(o->elf),
			kernel_offset(o->elf, path, place, &stext) ? &stext : NULL, &base, e) ||
	       err_wrap(e, "could not identify base for %s", path);
}

/* The segments that the mapping may be of: those that share bytes of the file with it. */
static size_t mapped_segments(const struct elf *f, const struct object_place *m,
			      const struct segment **found, size_t max)
{
	uint64_t end = m->offset + (m->limit - m->start);
	size_t n = 0;

	for (size_t i = 0; i < f->nsegments && n < max; i++) {
		const struct segment *s = &f->segments[i];
		uint64_t in_page = s->vaddr & (s->align - 1), segment_end = s->offset + s->memsz;

		if (s->type != PT_LOAD || s->filesz == 0 || m->offset >= segment_end ||
		    s->offset >= end)
			continue;
		/* A loader starts a segment's mapping at the page that its first byte is in ... */
		if (m->offset < (s->offset > in_page ? s->offset - in_page : 0))
			continue;
		/* ... and does not map the last page of one segment together with the next. */
		if (m->offset > s->offset && segment_end < m->offset + PAGE &&
		    end >= segment_end + PAGE)
			continue;
		found[n++] = s;
	}
	return n;
}

/* The one that the address's byte of the file is in. */
static const struct segment *segment_at(const struct segment **segments, size_t n, uint64_t offset,
					struct err *e)
{
	const struct segment *found = NULL;

	for (size_t i = 0; i < n; i++) {
		if (offset < segments[i]->offset ||
		    offset - segments[i]->offset >= segments[i]->memsz)
			continue;
		if (found) {
			err_set(e, ERR_FORMAT,
				"found second program header (%zu) that matches file "
				"offset %jx",
				i, (uintmax_t)offset);
			return NULL;
		}
		found = segments[i];
	}
	if (!found)
		err_set(e, ERR_FORMAT, "no program header matches file offset %jx",
			(uintmax_t)offset);
	return found;
}

/* *segment stays NULL in a file without any. */
static bool find_segment(const struct elf *f, const struct object_place *m, uint64_t address,
			 bool has_stext, const struct segment **segment, struct err *e)
{
	const struct segment *found[32];
	bool has_load = false;
	size_t n;

	*segment = NULL;
	if (has_stext || m->start >= m->limit || m->limit >= KERNEL_HALF) {
		*segment = text_segment(f);
		return true;
	}
	for (size_t i = 0; i < f->nsegments; i++)
		has_load |= f->segments[i].type == PT_LOAD;
	if (!has_load)
		return true;
	n = mapped_segments(f, m, found, sizeof(found) / sizeof(*found));
	if (n == 0)
		return err_set(e, ERR_FORMAT, "no program header matches mapping info");
	*segment = n == 1 ? found[0] : segment_at(found, n, address - m->start + m->offset, e);
	return *segment;
}

bool object_address(const struct object *o, const struct object_place *m, uint64_t address,
		    uint64_t *out, struct err *e)
{
	const struct segment *segment;
	uint64_t stext, base;
	bool has_stext;

	*out = address;
	if (o->kind != OBJECT_ELF || is_unplaced(m))
		return true;
	if (address < m->start || address >= m->limit)
		return err_set(e, ERR_FORMAT,
			       "specified address %jx is outside the mapping range [%jx, %jx] for "
			       "file %s",
			       (uintmax_t)address, (uintmax_t)m->start, (uintmax_t)m->limit,
			       o->path);
	has_stext = kernel_offset(o->elf, o->path, m, &stext);
	if (!find_segment(o->elf, m, address, has_stext, &segment, e) ||
	    !elf_base(o->elf, m, segment, has_stext ? &stext : NULL, &base, e))
		return err_wrap(e, "%s", o->path);
	*out = address - base;
	return true;
}
