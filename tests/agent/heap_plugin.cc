// heap_plugin.cc - C++ in a library that a C program loads for itself alone: its libstdc++ is not
// among the libraries that all see.
#include <new>
#include <string>

extern "C" int plugin_run()
{
	volatile size_t huge = size_t(1) << 60;
	std::string text;

	for (int i = 0; i < 1000; i++)
		text += std::to_string(i);
	try {
		char *p = new char[huge];
		__asm__ volatile("" : "+r"(p)::"memory");
	} catch (const std::bad_alloc &) {
		return text.size() == 2890 ? 0 : 1;
	}
	return 2;
}
