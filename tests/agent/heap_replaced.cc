// heap_replaced.cc - a program with its own operator new and delete, but only the two that all
// others are made of: those others must come to it. Prints how often they did.
#include <cstdio>
#include <cstdlib>
#include <new>

static int news, deletes;

void *operator new(size_t size)
{
	news++;
	return malloc(size);
}

void operator delete(void *p) noexcept
{
	deletes++;
	free(p);
}

// Not inlined, nor left out.
static void *volatile kept;

int main()
{
	kept = ::operator new[](100);
	::operator delete[](kept);
	kept = ::operator new(100, std::nothrow);
	::operator delete(kept, size_t(100));
	kept = ::operator new[](100);
	::operator delete[](kept, size_t(100));
	printf("%d %d\n", news, deletes);
}
