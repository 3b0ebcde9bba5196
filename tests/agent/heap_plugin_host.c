/* heap_plugin_host.c - loads heap_plugin.cc's library. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	int (*run)(void);
	void *library = dlopen(argv[argc - 1], RTLD_NOW | RTLD_LOCAL);

	if (!library) {
		puts(dlerror());
		return 10;
	}
	*(void **)&run = dlsym(library, "plugin_run");
	return run ? run() : 11;
}
