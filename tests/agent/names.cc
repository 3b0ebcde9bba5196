// names.cc - code of several kinds that spends time, for a second each: in the kernel's page for
// clocks, made at run time, of a template, and of a library whose file is another by now.
#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>

static volatile unsigned long sum;

static bool lasts(const timespec &start)
{
	timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (now.tv_sec - start.tv_sec) * 1000000000 + now.tv_nsec - start.tv_nsec < 700000000;
}

template <class F> static void repeat(F run)
{
	timespec start;

	clock_gettime(CLOCK_MONOTONIC, &start);
	while (lasts(start))
		run();
}

namespace space
{
template <class T> struct thing {
	__attribute__((noinline)) static void work(T n)
	{
		for (T i = 0; i < n; i++)
			sum = sum + i;
	}
};
} // namespace space

static void ask_clock()
{
	timespec t;

	for (int i = 0; i < 1000; i++)
		clock_gettime(CLOCK_MONOTONIC, &t);
}

// mov $1000000, %ecx; again: dec %ecx; jne again; ret
static const unsigned char code[] = { 0xb9, 0x40, 0x42, 0x0f, 0x00, 0xff, 0xc9, 0x75, 0xfc, 0xc3 };

static void (*compile())()
{
	void *page =
		mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char path[64];
	FILE *f;

	memcpy(page, code, sizeof(code));
	mprotect(page, 4096, PROT_READ | PROT_EXEC);
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	f = fopen(path, "w");
	fprintf(f, "%lx %zx jit::old\n%lx %zx jit::hot of a script\n",
		(unsigned long)(uintptr_t)page, sizeof(code), (unsigned long)(uintptr_t)page,
		sizeof(code));
	fclose(f);
	return reinterpret_cast<void (*)()>(page);
}

int main()
{
	void *library = dlopen("./library.so", RTLD_NOW);
	auto work =
		library ? reinterpret_cast<void (*)()>(dlsym(library, "library_work")) : nullptr;

	printf("%d\n", (int)getpid());
	if (!work || rename("other.so", "library.so") != 0)
		return 1;
	unlink("names"); // this program
	repeat(ask_clock);
	repeat(compile());
	repeat([] { space::thing<unsigned long>::work(100000); });
	repeat(work);
	return 0;
}
