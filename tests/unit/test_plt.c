#include "agent/plt.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include "test.h"

static int thirteen(void)
{
	return 13;
}

TEST(what_the_program_calls_can_be_replaced)
{
	uintptr_t real = (uintptr_t)dlsym(RTLD_DEFAULT, "getpgrp");
	atomic_uintptr_t *slot = plt_find("getpgrp", real);

	assert_non_null(slot);
	assert_true(plt_replace(slot, (uintptr_t)thirteen));
	assert_int_equal(getpgrp(), 13);
	assert_true(plt_replace(slot, real));
	assert_int_equal(getpgrp(), getpgid(0));
	assert_ptr_equal(plt_find("getpgrp", real), slot);
}

TEST(what_leads_elsewhere_is_left_alone)
{
	assert_int_equal(getppid(), getppid());
	assert_null(plt_find("getppid", (uintptr_t)thirteen));
}

TEST(what_is_not_called_has_no_address)
{
	assert_null(plt_find("no_such_function", (uintptr_t)thirteen));
	assert_null(plt_find("", (uintptr_t)thirteen));
}

TEST(what_is_protected_is_left_alone)
{
	size_t n = (size_t)sysconf(_SC_PAGESIZE);
	atomic_uintptr_t *slot =
		mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(slot != MAP_FAILED);
	assert_true(plt_replace(slot, 1));
	assert_int_equal(mprotect(slot, n, PROT_READ), 0);
	assert_false(plt_replace(slot, 2));
	assert_int_equal(*slot, 1);
	assert_true(plt_replace(slot, 1)); /* as it is */
	assert_int_equal(munmap(slot, n), 0);
}
