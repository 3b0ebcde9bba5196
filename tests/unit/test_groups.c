#include "server/groups.h"

#include "test.h"

static void has_category(const char *function, const char *category)
{
	struct str got = group_category(NULL, str_of(function), STR(""), STR(""));

	if (!str_eq(got, str_of(category)))
		fail_msg("%s is %.*s, not %s", function, STR_ARG(got), category);
}

TEST(functions_have_categories)
{
	has_category("malloc", "malloc");
	has_category("_int_malloc", "malloc");
	has_category("operator new(unsigned long)", "malloc");
	has_category("runtime.mallocgc", "malloc");
	has_category("__memmove_avx_unaligned_erms", "memcpy");
	has_category("runtime.memmove", "memcpy");
	has_category("compress/flate.(*compressor).deflate", "compression");
	has_category("ZSTD_compressBlock_fast", "compression");
	has_category("crypto/sha256.block", "hashing");
	has_category("encoding/json.(*decodeState).object", "serialisation");
	has_category("sync.(*Mutex).Lock", "locks");
	has_category("pthread_mutex_lock", "locks");
	has_category("runtime.scanobject", "GC");
	has_category("runtime.gcBgMarkWorker", "GC");
	has_category("[kernel.kallsyms]", "kernel");
	has_category("syscall.Syscall6", "kernel");
	has_category("main.serve", "other");
	has_category("", "other");
}

TEST(packages_and_modules)
{
	struct str none = STR("");

	assert_true(
		str_eq(group_package(NULL, STR("a.com/b/c.(*T).F"), none, none), STR("a.com/b/c")));
	assert_true(str_eq(group_package(NULL, STR("ns::f(int)"), none, none), STR("ns")));
	assert_true(str_eq(group_package(NULL, STR("main"), none, none), STR("(no package)")));
	assert_true(
		str_eq(group_module(NULL, none, none, STR("/lib/libc.so.6")), STR("libc.so.6")));
	assert_true(str_eq(group_module(NULL, none, none, none), STR("(no module)")));
}
