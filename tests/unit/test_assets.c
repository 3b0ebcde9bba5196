#include "test.h"

#include <libdeflate.h>

#include "base/arena.h"
#include "web/assets.h"
#include "web/bundle.h"

/* What is promised: a page that starts fast, wherever it is. */
enum { MAX_BYTES = 250 * 1000, MAX_PACKED_BYTES = 80 * 1000, MAX_LATER_BYTES = 30 * 1000 };

/* What a browser loads for a page: its file, its styles, and all its modules. */
static void check_size(const char *page, const char *script, const char *const *styles)
{
	struct buf all = { 0 };
	struct libdeflate_compressor *c = libdeflate_alloc_compressor(9);
	char *packed;

	assert_true(asset_read(&all, "", str_of(page)));
	bundle_script(&all, "", str_of(script));
	for (; *styles; styles++)
		bundle_style(&all, "", str_of(*styles));
	assert_true(all.n > 40000);
	assert_true(all.n <= MAX_BYTES);
	packed = xmalloc(all.n);
	assert_in_range(libdeflate_gzip_compress(c, all.p, all.n, packed, all.n), 1,
			MAX_PACKED_BYTES);
	free(packed);
	libdeflate_free_compressor(c);
	buf_release(&all);
}

TEST(the_page_is_small)
{
	check_size("index.html", "app.js", (const char *[]){ "app.css", "pages.css", NULL });
}

TEST(the_pages_of_the_server_are_small)
{
	check_size("fleet.html", "fleet.js",
		   (const char *[]){ "app.css", "pages.css", "fleet.css", NULL });
}

/* What comes when its page is opened. */
TEST(the_page_of_times_is_small)
{
	static const char *const files[] = { "times.js", "heat.js", "lanes.js" };
	struct buf all = { 0 };

	for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++)
		assert_true(asset_read(&all, "", str_of(files[i])));
	assert_in_range(all.n, 10000, MAX_LATER_BYTES);
	/* It would come with a second copy of all that it imports. */
	assert_false(str_contains(buf_view(&all), STR("\"./dom.js\"")));
	buf_release(&all);
}

/* Modules share one scope, and files of all folders one name. */
TEST(no_two_assets_have_the_same_name)
{
	for (size_t i = 0; i < assets_n; i++)
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(assets[i].name, assets[k].name);
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
