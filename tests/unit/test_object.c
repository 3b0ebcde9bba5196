#include "test.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbol/symbol.h"

static const char path[] = "object";
static char scratch[] = "/tmp/kiln-test-XXXXXX";

static void leave_scratch(void)
{
	unlink(path);
	rmdir(scratch);
}

__attribute__((constructor)) static void enter_scratch(void)
{
	if (!mkdtemp(scratch) || chdir(scratch) != 0 || atexit(leave_scratch) != 0)
		abort();
}

static void write_file(const void *bytes, size_t n)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, n, f), n);
	fclose(f);
}

/* An ELF file of one segment with notes, in either size and byte order. */
struct image {
	bool is_64, is_big_endian;
	unsigned char bytes[512];
	size_t n;
};

static void put(struct image *m, uint64_t v, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		m->bytes[m->n++] = (unsigned char)(v >> 8 * (m->is_big_endian ? bytes - 1 - i : i));
}

static void put_word(struct image *m, uint64_t v)
{
	put(m, v, m->is_64 ? 8 : 4);
}

static void put_header(struct image *m)
{
	unsigned char ident[EI_NIDENT] = {
		0x7f,
		'E',
		'L',
		'F',
		m->is_64 ? ELFCLASS64 : ELFCLASS32,
		m->is_big_endian ? ELFDATA2MSB : ELFDATA2LSB,
		EV_CURRENT,
	};

	memcpy(m->bytes, ident, sizeof(ident));
	m->n = sizeof(ident);
	put(m, ET_DYN, 2);
	put(m, EM_X86_64, 2);
	put(m, EV_CURRENT, 4);
	put_word(m, 0);			 /* e_entry */
	put_word(m, m->is_64 ? 64 : 52); /* e_phoff */
	put_word(m, 0);			 /* e_shoff */
	put(m, 0, 4);			 /* e_flags */
	put(m, m->is_64 ? 64 : 52, 2);
	put(m, m->is_64 ? 56 : 32, 2);
	put(m, 1, 2); /* e_phnum */
	put(m, m->is_64 ? 64 : 40, 2);
	put(m, 0, 2);
	put(m, 0, 2);
}

static void put_note_segment(struct image *m, size_t bytes)
{
	size_t offset = m->n + (m->is_64 ? 56 : 32);

	put(m, PT_NOTE, 4);
	if (m->is_64)
		put(m, PF_R, 4);
	put_word(m, offset);
	put_word(m, 0);
	put_word(m, 0);
	put_word(m, bytes);
	put_word(m, bytes);
	if (!m->is_64)
		put(m, PF_R, 4);
	put_word(m, 4);
}

static void put_note(struct image *m, const char *name, uint32_t type, const char *desc)
{
	put(m, 4, 4);
	put(m, 4, 4);
	put(m, type, 4);
	memcpy(m->bytes + m->n, name, 4);
	memcpy(m->bytes + m->n + 4, desc, 4);
	m->n += 8;
}

static void check_build_id(const char *want)
{
	struct object o;
	struct err e;

	assert_true(object_open(&o, path, &e));
	assert_int_equal(o.kind, OBJECT_ELF);
	assert_true(str_eq(o.build_id, str_of(want)));
	object_close(&o);
}

static void check_error(const char *want)
{
	struct object o;
	struct err e;

	assert_false(object_open(&o, path, &e));
	assert_string_equal(e.text, want);
}

TEST(build_id_in_all_four_layouts)
{
	for (int i = 0; i < 4; i++) {
		struct image m = { .is_64 = i & 1, .is_big_endian = i & 2 };

		put_header(&m);
		put_note_segment(&m, 40);
		put_note(&m, "Go\0", 4, "none");
		put_note(&m, "GNU", NT_GNU_BUILD_ID, "\x01\xab\x00\xff");
		write_file(m.bytes, m.n);
		check_build_id("01ab00ff");
	}
}

TEST(two_build_ids_are_none)
{
	struct image m = { .is_64 = true };

	put_header(&m);
	put_note_segment(&m, 40);
	put_note(&m, "GNU", NT_GNU_BUILD_ID, "1234");
	put_note(&m, "GNU", NT_GNU_BUILD_ID, "1234");
	write_file(m.bytes, m.n);
	check_build_id("");
}

TEST(every_cut_is_an_error_or_harmless)
{
	struct image m = { .is_64 = true };

	put_header(&m);
	put_note_segment(&m, 20);
	put_note(&m, "GNU", NT_GNU_BUILD_ID, "1234");
	for (size_t n = 0; n < m.n; n++) {
		struct object o;
		struct err e;

		write_file(m.bytes, n);
		if (object_open(&o, path, &e))
			object_close(&o);
		else
			assert_true(e.text[0]);
	}
}

TEST(this_program)
{
	struct object_place anywhere = { .limit = UINT64_MAX };
	struct object_place loaded = { .start = 0x400000, .limit = 0x500000, .offset = 0x1000 };
	struct object o;
	struct err e;

	assert_true(object_open(&o, "/proc/self/exe", &e));
	assert_true(object_check_base(&o, "exe", &anywhere, &e));
	assert_true(object_check_base(&o, "exe", &loaded, &e));
	object_close(&o);
}

TEST(bases_that_cannot_be)
{
	struct object_place place = { .start = 0x1000, .limit = 0x2000, .offset = 0x1000 };
	struct image m = { .is_64 = true };
	struct object o;
	struct err e;

	put_header(&m);
	put_note_segment(&m, 0);
	m.bytes[16] = ET_REL;
	write_file(m.bytes, m.n);
	assert_true(object_open(&o, path, &e));
	assert_false(object_check_base(&o, "f", &place, &e));
	assert_string_equal(e.text, "could not identify base for f: don't know how to handle "
				    "mapping.Offset");
	object_close(&o);
	m.bytes[16] = ET_CORE;
	write_file(m.bytes, m.n);
	assert_true(object_open(&o, path, &e));
	assert_false(object_check_base(&o, "f", &place, &e));
	object_close(&o);
}

TEST(errors_are_those_of_pprof)
{
	struct object o;
	struct err e;

	write_file("", 0);
	check_error("error reading magic number from object: EOF");
	write_file("#!/bin/sh\n", 10);
	check_error("unrecognized binary format: object");
	write_file("\177ELF", 4);
	check_error("error reading ELF file object: EOF");
	unlink(path);
	check_error("stat object: no such file or directory");
	assert_false(object_open(&o, "/tmp", &e));
	assert_string_equal(e.text, "error reading magic number from /tmp: is a directory");
}

TEST(a_fifo_does_not_block)
{
	struct object o;
	struct err e;

	unlink(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_false(object_open(&o, path, &e));
	unlink(path);
}

TEST(other_kinds)
{
	char bytes[64] = "MZ";
	struct object o;
	struct err e;

	write_file(bytes, sizeof(bytes));
	assert_true(object_open(&o, path, &e));
	assert_int_equal(o.kind, OBJECT_PE);
	object_close(&o);
	memcpy(bytes, "\xcf\xfa\xed\xfe", 4);
	write_file(bytes, sizeof(bytes));
	assert_true(object_open(&o, path, &e));
	assert_int_equal(o.kind, OBJECT_MACHO);
	object_close(&o);
	unlink(path);
}
