/* small_elf.h - an ELF file for unit tests. */
#ifndef UNIT_SMALL_ELF_H
#define UNIT_SMALL_ELF_H

#include <string.h>

#include "base/str.h"
#include "symbol/elf.h"

/* A file of a few hundred bytes: a header, a note with a build id, and maybe a table of symbols and
 * sections that are called as those of DWARF are. */
enum {
	SMALL_ELF_NOTE = 64 + 56,
	ID_BYTES = 8,
	SECTIONS = 256,
	SYMBOLS = 800,
	TEXTS = 1000,
	SMALL_ELF_BYTES = 1200,
};
#define SMALL_ELF_ID "0102030405060708"

static inline void put_section(char *file, int i, uint32_t name, uint32_t type, uint64_t offset,
			       uint64_t size)
{
	Elf64_Shdr s = { .sh_name = name, .sh_type = type, .sh_offset = offset, .sh_size = size };

	s.sh_link = type == SHT_SYMTAB ? 2 : 0;
	memcpy(file + SECTIONS + (size_t)i * sizeof(s), &s, sizeof(s));
}

enum elf_with { ELF_NOTHING, ELF_NAMES, ELF_LINES };

static inline struct str small_elf(char *file, enum elf_with with)
{
	static const char texts[] = "\0.symtab\0.strtab\0.debug_info\0.debug_line\0f";
	Elf64_Ehdr h = { .e_type = ET_DYN,
			 .e_machine = EM_X86_64,
			 .e_version = EV_CURRENT,
			 .e_phoff = 64,
			 .e_phentsize = sizeof(Elf64_Phdr),
			 .e_phnum = 1,
			 .e_shentsize = sizeof(Elf64_Shdr) };
	Elf64_Phdr p = { .p_type = PT_NOTE,
			 .p_offset = SMALL_ELF_NOTE,
			 .p_filesz = 16 + ID_BYTES,
			 .p_align = 4 };
	Elf64_Sym f = { .st_name = 41, .st_value = 16, .st_size = 4, .st_shndx = 1 };
	uint32_t note[3] = { 4, ID_BYTES, NT_GNU_BUILD_ID };

	memset(file, 0, SMALL_ELF_BYTES);
	memcpy(h.e_ident, ELFMAG, SELFMAG);
	h.e_ident[EI_CLASS] = ELFCLASS64;
	h.e_ident[EI_DATA] = ELFDATA2LSB;
	h.e_ident[EI_VERSION] = EV_CURRENT;
	if (with) {
		h.e_shoff = SECTIONS;
		h.e_shnum = 5;
		h.e_shstrndx = 2;
		put_section(file, 1, 1, SHT_SYMTAB, SYMBOLS, 2 * sizeof(f));
		put_section(file, 2, 9, SHT_STRTAB, TEXTS, sizeof(texts));
		put_section(file, 3, 17, SHT_PROGBITS, TEXTS, with == ELF_LINES ? 8 : 0);
		put_section(file, 4, 29, SHT_PROGBITS, TEXTS, with == ELF_LINES ? 8 : 0);
		memcpy(file + SYMBOLS + sizeof(f), &f, sizeof(f));
		memcpy(file + TEXTS, texts, sizeof(texts));
	}
	memcpy(file, &h, sizeof(h));
	memcpy(file + 64, &p, sizeof(p));
	memcpy(file + SMALL_ELF_NOTE, note, sizeof(note));
	memcpy(file + SMALL_ELF_NOTE + 12, "GNU\0\1\2\3\4\5\6\7\10", 4 + ID_BYTES);
	return (struct str){ file, SMALL_ELF_BYTES };
}

#endif
