#include "test.h"

#include <elf.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profile/profile.h"
#include "symbol/symbol.h"

static char scratch[] = "/tmp/kiln-test-XXXXXX";

__attribute__((constructor)) static void enter_scratch(void)
{
	if (!mkdtemp(scratch) || chdir(scratch) != 0)
		abort();
}

/* An executable with nothing in it but a build id. */
struct tiny {
	Elf64_Ehdr header;
	Elf64_Phdr segment;
	Elf64_Nhdr note;
	char name[4], id[4];
};

static void write_tiny(const char *path, const char *id)
{
	struct tiny t = {
		.header = { .e_ident = "\177ELF\2\1\1",
			    .e_type = ET_DYN,
			    .e_phnum = 1,
			    .e_phoff = sizeof(Elf64_Ehdr),
			    .e_phentsize = sizeof(Elf64_Phdr) },
		.segment = { .p_type = PT_NOTE,
			     .p_align = 4,
			     .p_filesz = 20,
			     .p_offset = offsetof(struct tiny, note) },
		.note = { .n_namesz = 4, .n_descsz = 4, .n_type = NT_GNU_BUILD_ID },
		.name = "GNU",
	};
	FILE *f = fopen(path, "w");

	memcpy(t.id, id, 4);
	assert_non_null(f);
	assert_int_equal(fwrite(&t, sizeof(t), 1, f), 1);
	fclose(f);
}

struct fixture {
	struct arena arena;
	struct strings strings;
	struct profile p;
	struct mapping mapping;
	struct location location;
	struct buf warnings;
};

static void setup(struct fixture *f, const char *file, const char *build_id)
{
	*f = (struct fixture){ 0 };
	strings_init(&f->strings);
	f->mapping.file = strings_add(&f->strings, str_of(file));
	f->mapping.build_id = strings_add(&f->strings, str_of(build_id));
	f->p.strings = &f->strings;
	f->p.mappings = &f->mapping;
	f->p.nmappings = 1;
	f->location.mapping = NONE;
	f->p.locations = &f->location;
	f->p.nlocations = 1;
}

static void run(struct fixture *f, const struct locate_params *params)
{
	profile_locate_binaries(&f->arena, &f->p, params, &f->warnings);
}

static void check(struct fixture *f, const char *want_file, const char *want_warnings)
{
	assert_true(str_eq(profile_str(&f->p, f->p.mappings[0].file), str_of(want_file)));
	assert_true(str_eq(buf_view(&f->warnings), str_of(want_warnings)));
	buf_release(&f->warnings);
	arena_release(&f->arena);
	strings_release(&f->strings);
}

static const struct locate_params here = {
	.binary_path = "none:bin", .home = "", .exec_name = "", .build_id = ""
};

/* The file at `path` below bin/ is found for /opt/prog with this build id. */
static void check_found(const char *dirs, const char *path, const char *build_id)
{
	char command[200];
	struct fixture f;

	snprintf(command, sizeof(command), "mkdir -p %s", dirs);
	assert_int_equal(system(command), 0);
	write_tiny(path, "\x01\x02\x03\x04");
	setup(&f, "/opt/prog", build_id);
	run(&f, &here);
	check(&f, path, "");
	assert_int_equal(system("rm -r bin"), 0);
}

TEST(candidates)
{
	check_found("bin/01020304", "bin/01020304/prog", "01020304");
	check_found("bin/01020304", "bin/01020304/any", "01020304");
	check_found("bin/opt/prog", "bin/opt/prog/01020304", "01020304");
	check_found("bin/01", "bin/01/020304.debug", "01020304");
	check_found("bin", "bin/prog", "");
	check_found("bin", "bin/prog", "01020304");
	check_found("bin/opt", "bin/opt/prog", "");
	check_found("bin/opt", "bin/opt/prog.debug", "");
	check_found("bin/opt/.debug", "bin/opt/.debug/prog.debug", "");
	check_found("bin/usr/lib/debug/opt", "bin/usr/lib/debug/opt/prog.debug", "");
}

TEST(another_build_is_ignored_aloud)
{
	struct fixture f;

	assert_int_equal(system("mkdir bin"), 0);
	write_tiny("bin/prog", "abcd");
	setup(&f, "/opt/prog", "01020304");
	run(&f, &here);
	check(&f, "/opt/prog",
	      "Ignoring local file bin/prog: build-id mismatch (01020304 != 61626364)\n");
	assert_int_equal(system("rm -r bin"), 0);
}

TEST(home_is_searched_when_no_path_is_given)
{
	struct locate_params params = { "", "me", "", "" };
	struct fixture f;

	assert_int_equal(system("mkdir -p me/pprof/binaries"), 0);
	write_tiny("me/pprof/binaries/prog", "abcd");
	setup(&f, "prog", "");
	run(&f, &params);
	check(&f, "me/pprof/binaries/prog", "");
	assert_int_equal(system("rm -r me"), 0);
}

TEST(overrides_apply_to_the_first_mapping)
{
	struct locate_params params = { "none", "", "my/exec", "beef" };
	struct fixture f;

	setup(&f, "/opt/prog", "");
	run(&f, &params);
	assert_true(str_eq(profile_str(&f.p, f.p.mappings[0].build_id), STR("beef")));
	assert_int_equal(f.mapping.build_id, 0); /* the shared table is not written to */
	check(&f, "my/exec", "");
	setup(&f, "/opt/prog", "01020304");
	run(&f, &params);
	assert_true(str_eq(profile_str(&f.p, f.p.mappings[0].build_id), STR("01020304")));
	check(&f, "my/exec", "");
}

TEST(a_profile_without_mappings_gets_one)
{
	struct fixture f;

	setup(&f, "", "");
	f.p.nmappings = 0;
	run(&f, &here);
	assert_int_equal(f.p.nmappings, 1);
	assert_int_equal(f.p.mappings[0].id, 1);
	assert_int_equal(f.p.locations[0].mapping, 0);
	assert_int_equal(f.location.mapping, NONE);
	check(&f, "", "");
}

TEST(hostile_names_are_harmless)
{
	static const char *const names[] = { "/", ".", "..", "/../..", "a//b/", "bin/../prog" };

	assert_int_equal(system("mkdir bin"), 0);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct fixture f;

		setup(&f, names[i], "/../../no-such-build");
		run(&f, &here);
		check(&f, names[i], "");
	}
	assert_int_equal(system("rm -r bin"), 0);
	assert_int_equal(rmdir(scratch), 0);
}
