#include "test.h"

#include <elf.h>
#include <stdio.h>
#include <unistd.h>

#include "symbol/symbol.h"

static char scratch[] = "/tmp/kiln-test-XXXXXX";
static const char path[] = "object";

static void leave_scratch(void)
{
	static const char *const names[] = { path, "a.c", "a.out" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		unlink(names[i]);
	rmdir(scratch);
}

__attribute__((constructor)) static void enter_scratch(void)
{
	if (!mkdtemp(scratch) || chdir(scratch) != 0 || atexit(leave_scratch) != 0)
		abort();
}

static void write_file(const char *name, const void *bytes, size_t n)
{
	FILE *f = fopen(name, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, n, f), n);
	fclose(f);
}

/* ---- an ELF file of some code, with symbols */

#define CODE_ADDRESS 0x401000
#define DATA_ADDRESS 0x404000

static const char names[] = "\0_ZN3app4workEi\0_ZN3app4workEi.cold\0table\0after";
static const char section_names[] = "\0.text\0.symtab\0.strtab\0.data";

struct image {
	Elf64_Ehdr header;
	Elf64_Shdr sections[5];
	Elf64_Sym symbols[5];
	char names[sizeof(names)], section_names[sizeof(section_names)];
	unsigned char code[64];
};

static struct image make_image(uint16_t machine, const void *code, size_t n)
{
	struct image m = {
		.header = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
			    .e_type = ET_EXEC,
			    .e_machine = machine,
			    .e_shoff = offsetof(struct image, sections),
			    .e_shentsize = sizeof(Elf64_Shdr),
			    .e_shnum = 5,
			    .e_shstrndx = 3 },
		.sections = { { 0 },
			      { .sh_name = 1,
				.sh_type = SHT_PROGBITS,
				.sh_flags = SHF_ALLOC | SHF_EXECINSTR,
				.sh_addr = CODE_ADDRESS,
				.sh_offset = offsetof(struct image, code),
				.sh_size = n },
			      { .sh_name = 7,
				.sh_type = SHT_SYMTAB,
				.sh_link = 3,
				.sh_offset = offsetof(struct image, symbols),
				.sh_size = sizeof(m.symbols) },
			      { .sh_name = 15,
				.sh_type = SHT_STRTAB,
				.sh_offset = offsetof(struct image, names),
				.sh_size = sizeof(names) + sizeof(section_names) },
			      { .sh_name = 23,
				.sh_type = SHT_NOBITS,
				.sh_flags = SHF_ALLOC | SHF_WRITE,
				.sh_addr = DATA_ADDRESS,
				.sh_size = 0x100 } },
		.symbols = { { 0 },
			     { .st_name = 36,
			       .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT),
			       .st_shndx = 4,
			       .st_value = DATA_ADDRESS },
			     { .st_name = 16,
			       .st_info = ELF64_ST_INFO(STB_LOCAL, STT_FUNC),
			       .st_shndx = 1,
			       .st_value = CODE_ADDRESS + 8,
			       .st_size = 4 },
			     { .st_name = 1,
			       .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
			       .st_shndx = 1,
			       .st_value = CODE_ADDRESS,
			       .st_size = 8 },
			     { .st_name = 42,
			       .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
			       .st_shndx = SHN_UNDEF } },
	};

	/* The names of sections follow those of symbols, in the same table. */
	for (size_t i = 1; i < 5; i++)
		m.sections[i].sh_name += (uint32_t)sizeof(names);
	memcpy(m.names, names, sizeof(names));
	memcpy(m.section_names, section_names, sizeof(section_names));
	assert_true(n <= sizeof(m.code));
	memcpy(m.code, code, n);
	return m;
}

static const struct asm_style llvm, llvm_intel = { .is_intel = true }, gnu = { .is_gnu = true },
				    gnu_intel = { .is_gnu = true, .is_intel = true };

struct disassembly {
	struct arena arena;
	struct object object;
	struct symbol_list symbols;
	struct disassembler *d;
	struct instructions code;
};

static bool open_disassembly(struct disassembly *x, const void *bytes, size_t n,
			     struct asm_style style, struct err *e)
{
	*x = (struct disassembly){ 0 };
	write_file(path, bytes, n);
	if (!object_open(&x->object, path, e))
		return false;
	symbol_list_read(&x->arena, &x->object, &x->symbols);
	x->d = disassembler_new(&x->object, &x->symbols, style, e);
	if (x->d)
		disassemble(x->d, &x->arena, 0, UINT64_MAX, &x->code);
	return x->d;
}

static void close_disassembly(struct disassembly *x)
{
	disassembler_free(x->d);
	if (x->object.bytes.p)
		object_close(&x->object);
	arena_release(&x->arena);
}

/* `want` is the texts of the instructions, a line each. */
static void check_code(uint16_t machine, const char *code, size_t n, struct asm_style style,
		       const char *want)
{
	struct image m = make_image(machine, code, n);
	struct disassembly x;
	struct buf got = { 0 };
	struct err e;

	assert_true(open_disassembly(&x, &m, sizeof(m), style, &e));
	for (size_t i = 0; i < x.code.n; i++) {
		buf_str(&got, x.code.at[i].text);
		buf_char(&got, '\n');
	}
	buf_char(&got, '\0');
	assert_string_equal(got.p, want);
	buf_release(&got);
	close_disassembly(&x);
}

#define CHECK(machine, code, style, want) \
	check_code((machine), (code), sizeof(code) - 1, (style), (want))

TEST(x86_in_both_syntaxes)
{
	/* mov $60001,%edi; call work; lea table(%rip),%rax; sar %rax; ret */
	static const char code[] = "\xbf\x61\xea\x00\x00"
				   "\xe8\xf6\xff\xff\xff"
				   "\x48\x8d\x05\xef\x2f\x00\x00"
				   "\x48\xd1\xf8"
				   "\xc3";

	CHECK(EM_X86_64, code, llvm,
	      "movl\t$60001, %edi            # imm = 0xEA61\n"
	      "callq\t0x401000 <app::work(int)>\n"
	      "leaq\t12271(%rip), %rax       # 0x404000 <table>\n"
	      "sarq\t%rax\n"
	      "retq\n");
	CHECK(EM_X86_64, code, llvm_intel,
	      "mov\tedi, 60001\n"
	      "call\t0x401000 <app::work(int)>\n"
	      "lea\trax, [rip + 12271]      # 0x404000 <table>\n"
	      "sar\trax\n"
	      "ret\n");
}

TEST(x86_numbers_are_signed_where_the_processor_extends_them)
{
	/* and $-8,%r10; cmp $-95,%dl; mov %fs:-8,%r14; movl $-1,8(%rax,%rcx,4) */
	static const char code[] = "\x49\x83\xe2\xf8"
				   "\x80\xfa\xa1"
				   "\x64\x4c\x8b\x34\x25\xf8\xff\xff\xff"
				   "\xc7\x44\x88\x08\xff\xff\xff\xff";

	CHECK(EM_X86_64, code, llvm,
	      "andq\t$-8, %r10\n"
	      "cmpb\t$-95, %dl\n"
	      "movq\t%fs:-8, %r14\n"
	      "movl\t$4294967295, 8(%rax,%rcx,4) # imm = 0xFFFFFFFF\n");
	CHECK(EM_X86_64, code, llvm_intel,
	      "and\tr10, -8\n"
	      "cmp\tdl, -95\n"
	      "mov\tr14, qword ptr fs:[-8]\n"
	      "mov\tdword ptr [rax + 4*rcx + 8], 4294967295\n");
}

TEST(x86_prefixes_and_vectors)
{
	/* rep stos; lock cmpxchg; movsd load; pshufd; shufps; movq %rax,%xmm0; cvtsi2sd */
	static const char code[] = "\xf3\x48\xab"
				   "\xf0\x0f\xb1\x11"
				   "\xf2\x0f\x10\x04\xc3"
				   "\x66\x0f\x70\xc1\x1b"
				   "\x0f\xc6\xe0\x10"
				   "\x66\x48\x0f\x6e\xc0"
				   "\xf2\x48\x0f\x2a\xc2";

	CHECK(EM_X86_64, code, llvm,
	      "rep\t\tstosq\t%rax, %es:(%rdi)\n"
	      "lock\t\tcmpxchgl\t%edx, (%rcx)\n"
	      "movsd\t(%rbx,%rax,8), %xmm0    # xmm0 = mem[0],zero\n"
	      "pshufd\t$27, %xmm1, %xmm0       # xmm0 = xmm1[3,2,1,0]\n"
	      "shufps\t$16, %xmm0, %xmm4       # xmm4 = xmm4[0,0],xmm0[1,0]\n"
	      "movq\t%rax, %xmm0\n"
	      "cvtsi2sd\t%rdx, %xmm0\n");
}

TEST(gnu_in_both_syntaxes)
{
	/* mov $60001,%edi; call work; lea table(%rip),%rax; lea -8(%rip),%rcx; sar %rax;
	 * ret, and zeros that fill the end */
	static const char code[] = "\xbf\x61\xea\x00\x00"
				   "\xe8\xf6\xff\xff\xff"
				   "\x48\x8d\x05\xef\x2f\x00\x00"
				   "\x48\x8d\x0d\xf8\xff\xff\xff"
				   "\x48\xd1\xf8"
				   "\xc3\x00\x00";

	CHECK(EM_X86_64, code, gnu,
	      "mov    $0xea61,%edi\n"
	      "call   401000 <app::work(int)>\n"
	      "lea    0x2fef(%rip),%rax        # 404000 <table>\n"
	      "lea    -0x8(%rip),%rcx        # 401010 <app::work(int) [clone .cold]+0x8>\n"
	      "sar    %rax\n"
	      "ret\n");
	CHECK(EM_X86_64, code, gnu_intel,
	      "mov    edi,0xea61\n"
	      "call   401000 <app::work(int)>\n"
	      "lea    rax,[rip+0x2fef]        # 404000 <table>\n"
	      "lea    rcx,[rip+0xfffffffffffffff8]        # 401010 <app::work(int) [clone "
	      ".cold]+0x8>\n"
	      "sar    rax,1\n"
	      "ret\n");
}

TEST(gnu_shows_sizes_that_no_register_tells)
{
	/* movl $-1,8(%rax,%rcx,4); shll %cl,(%rax); mov %fs:-8,%r14; and $-8,%r10;
	 * cmp $-95,%dl; movb $0,(%rdi,%rcx,1); cvtsi2sdl (%rax),%xmm0; jmp *(%rax) */
	static const char code[] = "\xc7\x44\x88\x08\xff\xff\xff\xff"
				   "\xd3\x20"
				   "\x64\x4c\x8b\x34\x25\xf8\xff\xff\xff"
				   "\x49\x83\xe2\xf8"
				   "\x80\xfa\xa1"
				   "\xc6\x04\x0f\x00"
				   "\xf2\x0f\x2a\x00"
				   "\xff\x20";

	CHECK(EM_X86_64, code, gnu,
	      "movl   $0xffffffff,0x8(%rax,%rcx,4)\n"
	      "shll   %cl,(%rax)\n"
	      "mov    %fs:0xfffffffffffffff8,%r14\n"
	      "and    $0xfffffffffffffff8,%r10\n"
	      "cmp    $0xa1,%dl\n"
	      "movb   $0x0,(%rdi,%rcx,1)\n"
	      "cvtsi2sdl (%rax),%xmm0\n"
	      "jmp    *(%rax)\n");
	CHECK(EM_X86_64, code, gnu_intel,
	      "mov    DWORD PTR [rax+rcx*4+0x8],0xffffffff\n"
	      "shl    DWORD PTR [rax],cl\n"
	      "mov    r14,QWORD PTR fs:0xfffffffffffffff8\n"
	      "and    r10,0xfffffffffffffff8\n"
	      "cmp    dl,0xa1\n"
	      "mov    BYTE PTR [rdi+rcx*1],0x0\n"
	      "cvtsi2sd xmm0,DWORD PTR [rax]\n"
	      "jmp    QWORD PTR [rax]\n");
}

TEST(gnu_shows_prefixes_that_change_nothing)
{
	/* two nops of many bytes; xchg; rep stos; lock cmpxchg; repz ret; enter */
	static const char code[] = "\x66\x66\x2e\x0f\x1f\x84\x00\x00\x00\x00\x00"
				   "\x0f\x1f\x40\x00"
				   "\x66\x90"
				   "\xf3\x48\xab"
				   "\xf0\x0f\xb1\x11"
				   "\xf3\xc3"
				   "\xc8\x10\x00\x01";

	CHECK(EM_X86_64, code, gnu,
	      "data16 cs nopw 0x0(%rax,%rax,1)\n"
	      "nopl   0x0(%rax)\n"
	      "xchg   %ax,%ax\n"
	      "rep stos %rax,%es:(%rdi)\n"
	      "lock cmpxchg %edx,(%rcx)\n"
	      "repz ret\n"
	      "enter  $0x10,$0x1\n");
	CHECK(EM_X86_64, code, gnu_intel,
	      "data16 cs nop WORD PTR [rax+rax*1+0x0]\n"
	      "nop    DWORD PTR [rax+0x0]\n"
	      "xchg   ax,ax\n"
	      "rep stos QWORD PTR es:[rdi],rax\n"
	      "lock cmpxchg DWORD PTR [rcx],edx\n"
	      "repz ret\n"
	      "enter  0x10,0x1\n");
}

TEST(gnu_skips_zeros)
{
	/* Eight of nine, as there is a multiple of four; of three at the end the last one. */
	CHECK(EM_X86_64, "\x90\0\0\0\0\0\0\0\0\0\x90\x06\x90\0\0", gnu,
	      "nop\n"
	      "add    %dl,0x9006(%rax)\n");
	CHECK(EM_X86_64, "\x90\0\0\0\0\0\0\0\0\x90\x06\x90\0\0\0", gnu,
	      "nop\nnop\n(bad)\nnop\n"
	      "add    %al,(%rax)\n");
}

TEST(gnu_cuts_off_the_last_instruction)
{
	/* nopw of ten bytes, which ends one byte after the range */
	static const char code[] = "\x66\x2e\x0f\x1f\x84\x00\x00\x00\x00\x00";
	static const char *const want[] = {
		"data16", "cs", ".byte 0xf", "(bad)", "test   %al,(%rax)", "add    %al,(%rax)"
	};
	struct image m = make_image(EM_X86_64, code, sizeof(code) - 1);
	struct disassembly x;
	struct instructions cut;
	struct err e;

	assert_true(open_disassembly(&x, &m, sizeof(m), gnu, &e));
	disassemble(x.d, &x.arena, CODE_ADDRESS, CODE_ADDRESS + 9, &cut);
	assert_int_equal(cut.n, 6);
	for (size_t i = 0; i < cut.n; i++)
		assert_true(str_eq(cut.at[i].text, str_of(want[i])));
	close_disassembly(&x);
}

TEST(arm64)
{
	/* stp x29, x30, [sp, #-16]!; bl work; nothing; ret */
	static const char code[] = "\xfd\x7b\xbf\xa9"
				   "\xff\xff\xff\x97"
				   "\xff\xff\xff\xff"
				   "\xc0\x03\x5f\xd6";

	CHECK(EM_AARCH64, code, llvm,
	      "stp\tx29, x30, [sp, #-0x10]!\n"
	      "bl\t#0x401000 <app::work(int)>\n"
	      "<unknown>\n"
	      "ret\n");
}

TEST(what_is_no_instruction_is_skipped)
{
	CHECK(EM_X86_64, "\x06\x90", llvm, "<unknown>\nnop\n");
	CHECK(EM_X86_64, "\x90\x48", llvm, "nop\n<unknown>\n");
}

TEST(only_the_range_is_decoded)
{
	struct image m = make_image(EM_X86_64, "\x90\x48\x31\xc0\x90\xc3", 6);
	struct disassembly x;
	struct instructions code;
	struct err e;

	assert_true(open_disassembly(&x, &m, sizeof(m), llvm, &e));
	/* The instruction at 1 reaches over the end. */
	disassemble(x.d, &x.arena, CODE_ADDRESS + 1, CODE_ADDRESS + 2, &code);
	assert_int_equal(code.n, 1);
	assert_int_equal(code.at[0].address, CODE_ADDRESS + 1);
	assert_int_equal(code.at[0].size, 3);
	disassemble(x.d, &x.arena, CODE_ADDRESS + 6, UINT64_MAX, &code);
	assert_int_equal(code.n, 0);
	disassemble(x.d, &x.arena, CODE_ADDRESS + 4, CODE_ADDRESS, &code);
	assert_int_equal(code.n, 0);
	close_disassembly(&x);
}

TEST(functions_by_address)
{
	struct image m =
		make_image(EM_X86_64, "\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90", 12);
	struct disassembly x;
	struct err e;

	assert_true(open_disassembly(&x, &m, sizeof(m), llvm, &e));
	assert_true(str_eq(disassembler_function(x.d, CODE_ADDRESS + 7), STR("app::work(int)")));
	assert_true(str_eq(disassembler_function(x.d, CODE_ADDRESS + 8),
			   STR("app::work(int) (.cold)")));
	assert_int_equal(disassembler_function(x.d, CODE_ADDRESS + 12).n, 0);
	assert_int_equal(disassembler_function(x.d, CODE_ADDRESS - 1).n, 0);
	assert_int_equal(disassembler_function(x.d, DATA_ADDRESS).n, 0);
	close_disassembly(&x);
}

TEST(symbols_are_sorted_and_defined_here)
{
	struct image m = make_image(EM_X86_64, "\x90", 1);
	struct disassembly x;
	struct err e;

	assert_true(open_disassembly(&x, &m, sizeof(m), llvm, &e));
	assert_int_equal(x.symbols.n, 3);
	assert_true(str_eq(x.symbols.at[0].name, STR("_ZN3app4workEi")));
	assert_true(str_eq(x.symbols.at[1].name, STR("_ZN3app4workEi.cold")));
	assert_true(str_eq(x.symbols.at[2].name, STR("table")));
	assert_true(x.symbols.at[0].has_place && x.symbols.at[0].is_function);
	/* .text has one byte, this one lies far behind it. */
	assert_false(x.symbols.at[1].has_place);
	assert_true(x.symbols.at[2].has_place && !x.symbols.at[2].is_function);
	close_disassembly(&x);
}

TEST(an_unknown_machine_is_named)
{
	struct image m = make_image(EM_S390, "\x90", 1);
	struct disassembly x;
	struct err e;

	assert_false(open_disassembly(&x, &m, sizeof(m), llvm, &e));
	assert_non_null(strstr(e.text, "machine 22"));
	close_disassembly(&x);
}

/* Whatever the bytes are, nothing is read outside of the file; the sanitizers watch. */
TEST(broken_files_do_no_harm)
{
	static const unsigned char values[] = { 0, 1, 0x7f, 0x80, 0xff };
	const struct asm_style styles[] = { llvm, llvm_intel, gnu, gnu_intel };
	struct image good = make_image(EM_X86_64, "\xe8\x00\x00\x00\x00\xc3", 6);
	struct disassembly x;
	struct err e;

	for (size_t n = 0; n <= sizeof(good); n += 7) {
		open_disassembly(&x, &good, n, styles[n % 4], &e);
		close_disassembly(&x);
	}
	for (size_t i = 0; i < offsetof(struct image, names); i++) {
		for (size_t k = 0; k < sizeof(values); k++) {
			struct image bad = good;

			((unsigned char *)&bad)[i] = values[k];
			open_disassembly(&x, &bad, sizeof(bad), styles[k % 4], &e);
			close_disassembly(&x);
		}
	}
}

/* ---- a program made by the compiler */

static void compile(const char *source, const char *options)
{
	char command[200];

	write_file("a.c", source, strlen(source));
	snprintf(command, sizeof(command), "gcc %s -o a.out a.c", options);
	assert_int_equal(system(command), 0);
}

/* What `nm -n` lists with an address. */
static void check_against_nm(const struct symbol_list *t)
{
	FILE *nm = popen("LC_ALL=C nm -n a.out", "r");
	char line[1000];
	size_t i = 0;

	assert_non_null(nm);
	while (fgets(line, sizeof(line), nm)) {
		unsigned long address;
		char name[900];

		if (sscanf(line, "%lx %*c %899s", &address, name) != 2)
			continue;
		assert_true(i < t->n);
		assert_int_equal(t->at[i].address, address);
		assert_true(str_eq(t->at[i].name, str_of(name)));
		i++;
	}
	assert_int_equal(pclose(nm), 0);
	assert_int_equal(i, t->n);
	assert_true(i > 10);
}

TEST(symbols_as_nm_lists_them)
{
	struct object o;
	struct arena a = { 0 };
	struct symbol_list t;
	struct err e;

	compile("int used(void); int other(void) __attribute__((alias(\"used\")));\n"
		"int used(void) { return 1; } __thread int local = 3;\n"
		"int main(void) { return used() + local; }\n",
		"-O1");
	assert_true(object_open(&o, "a.out", &e));
	symbol_list_read(&a, &o, &t);
	check_against_nm(&t);
	object_close(&o);
	arena_release(&a);
	assert_int_equal(system("strip a.out"), 0);
	assert_true(object_open(&o, "a.out", &e));
	symbol_list_read(&a, &o, &t);
	assert_int_equal(t.n, 0);
	object_close(&o);
	arena_release(&a);
}

static bool has_text(const struct instructions *code, const char *what)
{
	for (size_t i = 0; i < code->n; i++)
		if (str_contains(code->at[i].text, str_of(what)))
			return true;
	return false;
}

static void check_stub(const char *options)
{
	struct object o;
	struct arena a = { 0 };
	struct symbol_list t;
	struct instructions code;
	struct disassembler *d;
	struct err e;

	compile("#include <stdlib.h>\nint main(void) { return atoi(\"1\") + rand(); }\n", options);
	assert_true(object_open(&o, "a.out", &e));
	symbol_list_read(&a, &o, &t);
	d = disassembler_new(&o, &t, llvm, &e);
	assert_non_null(d);
	disassemble(d, &a, 0, UINT64_MAX, &code);
	assert_true(has_text(&code, " <rand@plt>"));
	disassembler_free(d);
	object_close(&o);
	arena_release(&a);
}

TEST(calls_into_other_objects_are_named)
{
	check_stub("-O0 -Wl,-z,lazy");
	check_stub("-O0 -fcf-protection=full -Wl,-z,lazy -Wl,-z,ibtplt");
	check_stub("-O0 -no-pie -Wl,-z,now");
}
