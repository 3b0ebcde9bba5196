// heap_new.cc - all forms of operator new and delete; those that fail do it as C++ says. Prints what
// heap_sites.c does.
#include <cstdio>
#include <cstdint>
#include <new>

#define PLACE __attribute__((noinline, noclone)) static void
#define KEEP(p) __asm__ volatile("" : "+r"(p)::"memory")

static bool is_live;
static const std::align_val_t line = std::align_val_t(64);

PLACE by_new()
{
	void *p = ::operator new(100);
	KEEP(p);
	if (!is_live)
		::operator delete(p, size_t(100));
}

PLACE by_new_array()
{
	void *p = ::operator new[](200);
	KEEP(p);
	if (!is_live)
		::operator delete[](p);
}

PLACE by_new_nothrow()
{
	void *p = ::operator new(300, std::nothrow);
	KEEP(p);
	if (!is_live)
		::operator delete(p, std::nothrow);
}

PLACE by_new_array_nothrow()
{
	void *p = ::operator new[](400, std::nothrow);
	KEEP(p);
	if (!is_live)
		::operator delete[](p, std::nothrow);
}

PLACE by_new_aligned()
{
	void *p = ::operator new(512, line);
	KEEP(p);
	if (uintptr_t(p) % 64)
		__builtin_trap();
	if (!is_live)
		::operator delete(p, size_t(512), line);
}

PLACE by_new_array_aligned()
{
	void *p = ::operator new[](640, line);
	KEEP(p);
	if (uintptr_t(p) % 64)
		__builtin_trap();
	if (!is_live)
		::operator delete[](p, line);
}

PLACE by_new_aligned_nothrow()
{
	void *p = ::operator new(704, line, std::nothrow);
	KEEP(p);
	if (!is_live)
		::operator delete(p, line, std::nothrow);
}

PLACE by_new_array_aligned_nothrow()
{
	void *p = ::operator new[](768, line, std::nothrow);
	KEEP(p);
	if (!is_live)
		::operator delete[](p, line, std::nothrow);
}

static void run(const char *name, void (*place)(), size_t bytes)
{
	for (int i = 0; i < 100; i++) {
		is_live = i % 4 == 0;
		place();
	}
	printf("%s 100 %zu 25 %zu\n", name, 100 * bytes, 25 * bytes);
}

static int nhandled;

static void handler()
{
	if (++nhandled == 3)
		std::set_new_handler(nullptr);
}

static bool fails_as_it_should()
{
	volatile size_t huge = size_t(1) << 60;
	bool is_thrown = false;

	std::set_new_handler(handler);
	try {
		void *p = ::operator new(huge);
		KEEP(p);
	} catch (const std::bad_alloc &) {
		is_thrown = true;
	}
	return is_thrown && nhandled == 3 && ::operator new(huge, std::nothrow) == nullptr;
}

int main(int argc, char **)
{
	run("by_new", by_new, 100);
	run("by_new_array", by_new_array, 200);
	run("by_new_nothrow", by_new_nothrow, 300);
	run("by_new_array_nothrow", by_new_array_nothrow, 400);
	run("by_new_aligned", by_new_aligned, 512);
	run("by_new_array_aligned", by_new_array_aligned, 640);
	run("by_new_aligned_nothrow", by_new_aligned_nothrow, 704);
	run("by_new_array_aligned_nothrow", by_new_array_aligned_nothrow, 768);
	return argc > 1 || fails_as_it_should() ? 0 : 1;
}
