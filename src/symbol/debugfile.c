#include "symbol/debugfile.h"

#include <dlfcn.h>
#include <libdeflate.h>
#include <lzma.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/path.h"

/* A symbol table of this size names more functions than any program has. */
#define UNPACKED_MAX_BYTES ((size_t)256 << 20)

struct search {
	struct object *out;
	const struct object *of;
	struct buf *tried;
	bool has_checksum; /* of .gnu_debuglink; else the build id must be the same */
	uint32_t checksum;
};

static bool is_ours(const struct search *s)
{
	if (s->out->kind != OBJECT_ELF)
		return false;
	if (s->of->build_id.n && s->out->build_id.n)
		return str_eq(s->of->build_id, s->out->build_id);
	return s->has_checksum &&
	       libdeflate_crc32(0, s->out->bytes.p, s->out->bytes.n) == s->checksum;
}

/* Tries the file whose name these parts make; an end marker follows them. */
static bool try_parts(struct search *s, const struct str *parts)
{
	struct buf name = { 0 };
	struct err ignored;
	bool found;

	for (; parts->p; parts++)
		buf_str(&name, *parts);
	buf_char(s->tried, ' ');
	buf_str(s->tried, buf_view(&name));
	buf_char(&name, '\0');
	found = !memchr(name.p, '\0', name.n - 1) && strcmp(name.p, s->of->path) != 0 &&
		object_open(s->out, name.p, &ignored);
	buf_release(&name);
	if (found && !is_ours(s)) {
		object_close(s->out);
		found = false;
	}
	return found;
}

#define TRY(s, ...) try_parts((s), (struct str[]){ __VA_ARGS__, { NULL, 0 } })

static bool try_build_id(struct search *s, const char *binary_path)
{
	struct str id = s->of->build_id, rest = str_of(binary_path), first, others;

	if (id.n < 4)
		return false;
	first = (struct str){ id.p, 2 };
	others = str_from(id, 2);
	while (rest.n) {
		struct str dir = str_cut(&rest, ':');

		if (dir.n &&
		    (TRY(s, dir, STR("/.build-id/"), first, STR("/"), others, STR(".debug")) ||
		     TRY(s, dir, STR("/"), first, STR("/"), others, STR(".debug"))))
			return true;
	}
	return TRY(s, STR("/usr/lib/debug/.build-id/"), first, STR("/"), others, STR(".debug"));
}

/* The section has a file's name, and behind it, aligned to 4 bytes, the file's CRC. */
static bool try_link(struct search *s)
{
	const struct elf *f = s->of->elf;
	struct str link = elf_bytes(f, elf_section(f, STR(".gnu_debuglink")));
	size_t n = link.n ? strnlen(link.p, link.n) : 0, crc = (n + 4) & ~(size_t)3;
	struct str name = { link.p, n };
	struct buf dir = { 0 };
	char *real;
	bool found;

	if (n == 0 || link.n < 4 || crc > link.n - 4 || str_find_char(name, '/') != STR_NONE)
		return false;
	s->has_checksum = true;
	s->checksum = (uint32_t)elf_field(f, link.p + crc, 4);
	real = realpath(s->of->path, NULL);
	path_dir(&dir, str_of(real ? real : s->of->path));
	free(real);
	found = TRY(s, buf_view(&dir), STR("/"), name) ||
		TRY(s, buf_view(&dir), STR("/.debug/"), name) ||
		TRY(s, STR("/usr/lib/debug"), buf_view(&dir), STR("/"), name);
	buf_release(&dir);
	return found;
}

/* The library brings curl and more, so it is only loaded when it is wanted. */
static bool ask_server(struct search *s)
{
	const char *urls = getenv("DEBUGINFOD_URLS");
	void *library, *client, *(*begin)(void);
	int (*find)(void *, const unsigned char *, int, char **);
	void (*end)(void *);
	struct err ignored;
	char *path = NULL;
	bool found = false;
	int fd = -1;

	if (!urls || !*urls || !s->of->build_id.n)
		return false;
	buf_printf(s->tried, " %s", urls);
	library = dlopen("libdebuginfod.so.1", RTLD_LAZY | RTLD_LOCAL);
	if (!library) {
		buf_puts(s->tried, " (libdebuginfod.so.1 is not installed)");
		return false;
	}
	begin = (void *(*)(void))(uintptr_t)dlsym(library, "debuginfod_begin");
	find = (int (*)(void *, const unsigned char *, int, char **))(uintptr_t)dlsym(
		library, "debuginfod_find_debuginfo");
	end = (void (*)(void *))(uintptr_t)dlsym(library, "debuginfod_end");
	client = begin && find && end ? begin() : NULL;
	if (client) {
		/* Length 0: the id is in hex. */
		fd = find(client, (const unsigned char *)s->of->build_id.p, 0, &path);
		end(client);
	}
	if (fd >= 0) {
		close(fd);
		found = object_open(s->out, path, &ignored) && s->out->kind == OBJECT_ELF;
		if (!found)
			object_close(s->out);
	}
	free(path);
	return found; /* The library stays: it may have started threads. */
}

bool debug_file_open(struct object *out, const struct object *of, const char *binary_path,
		     struct buf *tried)
{
	struct search s = { .out = out, .of = of, .tried = tried };

	return try_build_id(&s, binary_path) || try_link(&s) || ask_server(&s);
}

bool debug_data_read(struct arena *a, struct elf *out, const struct elf *of)
{
	struct str packed = elf_bytes(of, elf_section(of, STR(".gnu_debugdata")));
	lzma_stream z = LZMA_STREAM_INIT;
	size_t cap = 4 * packed.n + 4096;
	uint8_t *bytes = NULL;
	lzma_ret status = LZMA_OK;
	struct err ignored;
	size_t n;

	if (!packed.n || lzma_stream_decoder(&z, UNPACKED_MAX_BYTES, 0) != LZMA_OK)
		return false;
	z.next_in = (const uint8_t *)packed.p;
	z.avail_in = packed.n;
	while (status == LZMA_OK && z.total_out < UNPACKED_MAX_BYTES) {
		if (z.avail_out == 0) {
			cap = 2 * cap < UNPACKED_MAX_BYTES ? 2 * cap : UNPACKED_MAX_BYTES;
			bytes = xrealloc(bytes, cap);
			z.next_out = bytes + z.total_out;
			z.avail_out = cap - (size_t)z.total_out;
		}
		status = lzma_code(&z, LZMA_FINISH);
	}
	n = (size_t)z.total_out;
	lzma_end(&z);
	arena_adopt(a, bytes);
	return status == LZMA_STREAM_END &&
	       elf_read(a, out, (struct str){ (char *)bytes, n }, &ignored);
}
