#include "test.h"

#include <libdeflate.h>

#include "base/arena.h"
#include "web/assets.h"

/* What is promised: a page that starts fast, wherever it is. */
enum { MAX_BYTES = 250 * 1000, MAX_PACKED_BYTES = 80 * 1000 };

TEST(the_page_is_small)
{
	struct buf all = { 0 };
	struct libdeflate_compressor *c = libdeflate_alloc_compressor(9);
	char *packed;

	for (size_t i = 0; i < assets_n; i++)
		buf_add(&all, assets[i].bytes, assets[i].n);
	assert_true(all.n > 0);
	assert_true(all.n <= MAX_BYTES);
	packed = xmalloc(all.n);
	assert_in_range(libdeflate_gzip_compress(c, all.p, all.n, packed, all.n), 1,
			MAX_PACKED_BYTES);
	free(packed);
	libdeflate_free_compressor(c);
	buf_release(&all);
}

static struct str asset(struct buf *out, const char *name)
{
	out->n = 0;
	assert_true(asset_read(out, "", str_of(name)));
	return buf_view(out);
}

TEST(scripts_and_styles_come_without_comments)
{
	struct buf text = { 0 };

	for (size_t i = 0; i < assets_n; i++) {
		struct str name = str_of(assets[i].name);

		if (!str_has_suffix(name, STR(".js")) && !str_has_suffix(name, STR(".css")))
			continue;
		assert_false(str_contains(asset(&text, assets[i].name), STR("\n// ")));
		assert_false(str_contains(asset(&text, assets[i].name), STR("\n/*")));
		assert_false(str_contains(asset(&text, assets[i].name), STR("\n\t")));
		assert_false(str_contains(asset(&text, assets[i].name), STR(",\n")));
		assert_false(str_contains(asset(&text, assets[i].name), STR("\n}")));
	}
	buf_release(&text);
}
