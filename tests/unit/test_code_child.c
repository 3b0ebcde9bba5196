#include "test.h"

#include <unistd.h>

#include "server/code_child.h"
#include "server/debug_child.h"

enum { BEGIN = 0x5000, OTHER = 0x9000, SIZE = 0x100, LINKED = 0x1000 };

/* ---- the child, which is this program: the name of the file it is to read says how it answers */

static void add_location(struct profile *p, uint32_t mapping, uint64_t address, const char *text)
{
	p->comments[p->ncomments++] = strings_add(p->strings, str_of(text));
	p->locations[p->nlocations] = (struct location){ .id = p->nlocations + 1,
							 .mapping = mapping,
							 .address = address };
	p->nlocations++;
}

static void put_frames(struct arena *a, struct profile *p)
{
	struct symbol_frame frames[2] = { { .name = STR("inner"), .file = STR("a.c"), .line = 3 },
					  { .name = STR("outer"), .file = STR("b.c"), .line = 7 } };
	struct profile_names *names = profile_names_begin(a, p);

	debug_child_put_frames(names, 0, frames, 2);
	profile_names_end(names);
}

static bool tell(struct arena *a, struct profile *p, const char *path, struct str build_id,
		 struct err *e)
{
	struct profile out = debug_child_profile(a, p->strings);
	bool is_gnu = p->ncomments == 1 && str_eq(profile_str(p, p->comments[0]), STR("gnu"));

	if (strcmp(path, "broken") == 0 || !str_eq(build_id, STR("12345678")))
		return err_set(e, ERR_FORMAT, "it is broken");
	out.comments = arena_many(a, 10, uint32_t);
	out.locations = arena_many(a, 10, struct location);
	out.mappings = arena_many(a, 10, struct mapping);
	for (uint32_t i = 0; i < 3; i++)
		out.mappings[out.nmappings++] = (struct mapping){ .id = i + 1, .offset = LINKED };
	add_location(&out, 0, LINKED + 0x10, is_gnu ? "gnu" : "llvm");
	add_location(&out, 0, LINKED + (strcmp(path, "back") == 0 ? 0x10 : 0x14), "two");
	add_location(&out, strcmp(path, "none") == 0 ? 2 : 1,
		     strcmp(path, "beyond") == 0  ? LINKED + SIZE
		     : strcmp(path, "below") == 0 ? LINKED - 1
						  : LINKED,
		     "three");
	if (strcmp(path, "again") == 0)
		add_location(&out, 0, LINKED + 0x10, "four");
	if (strcmp(path, "mute") == 0)
		out.ncomments--;
	put_frames(a, &out);
	*p = out;
	return true;
}

__attribute__((constructor(101))) static void be_the_child(int argc, char **argv)
{
	struct buf question = { 0 }, out = { 0 };
	ssize_t n;

	if (argc != 5 || strcmp(argv[1], "debuginfo") != 0)
		return;
	while ((n = read(STDIN_FILENO, buf_room(&question, 65536), 65536)) > 0)
		question.n += (size_t)n;
	debug_child_answer(tell, argv[3], str_of(argv[4]), buf_view(&question), &out);
	if (write(STDOUT_FILENO, out.p, out.n) != (ssize_t)out.n)
		abort();
	_exit(0);
}

/* ---- what is made of it */

static bool ask(const char *path, struct arena *a, struct code *out)
{
	struct code_range ranges[] = { { BEGIN, BEGIN + SIZE }, { OTHER, OTHER + SIZE } };
	struct mapping m = { .start = 0x4000, .limit = 0xa000 };
	struct code_question q = {
		.mapping = &m, .ranges = ranges, .n = 2, .style = { .is_gnu = true }
	};
	struct err e;

	*out = (struct code){ 0 };
	return code_child_ask(&(struct code_job){ .program = "/proc/self/exe",
						  .path = path,
						  .build_id = STR("12345678"),
						  .question = &q,
						  .max_bytes = 10000 },
			      a, out, &e);
}

TEST(instructions_are_where_the_profile_has_them)
{
	struct arena a = { 0 };
	struct code code;

	assert_true(ask("good", &a, &code));
	assert_int_equal(code.n, 3);
	assert_int_equal(code.at[0].runtime, BEGIN + 0x10);
	assert_int_equal(code.at[0].address, LINKED + 0x10);
	assert_int_equal(code.at[0].length, 4);
	assert_int_equal(code.at[1].length, 1);
	assert_int_equal(code.at[2].runtime, OTHER);
	assert_string_equal(code.at[0].text.p, "gnu");
	assert_int_equal(code.at[0].nframes, 2);
	assert_string_equal(code.at[0].frames[0].name.p, "inner");
	assert_string_equal(code.at[0].frames[1].file.p, "b.c");
	assert_int_equal(code.at[0].frames[1].line, 7);
	assert_int_equal(code.at[1].nframes, 0);
	arena_release(&a);
}

/* Whoever takes over the child may make it say anything. */
TEST(lies_are_found_out)
{
	static const char *const lies[] = { "broken", "back", "beyond", "below",
					    "none",   "mute", "again" };

	for (size_t i = 0; i < sizeof(lies) / sizeof(*lies); i++) {
		struct arena a = { 0 };
		struct code code;

		if (ask(lies[i], &a, &code))
			fail_msg("%s", lies[i]);
		assert_int_equal(code.n, 0);
		arena_release(&a);
	}
}
