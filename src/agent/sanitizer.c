/* sanitizer.c - programs that are built with a sanitizer. It stands in front of the same functions,
 * and watches memory that it does not know of: the agent leaves them alone. */
#include <dlfcn.h>
#include <stddef.h>

#include "agent/life.h"
#include "kiln.h"

const char *find_sanitizer(void)
{
	static const struct {
		const char *symbol, *name;
	} sanitizers[] = { { "__asan_init", "AddressSanitizer" },
			   { "__tsan_init", "ThreadSanitizer" },
			   { "__msan_init", "MemorySanitizer" },
			   { "__hwasan_init", "HWAddressSanitizer" } };

	for (unsigned i = 0; i < sizeof(sanitizers) / sizeof(*sanitizers); i++)
		if (dlsym(RTLD_DEFAULT, sanitizers[i].symbol))
			return sanitizers[i].name;
	return NULL;
}

/* AddressSanitizer ends the program unless it is the first library, where only a preloaded one can
 * be. It asks the program what it is to do, by this name. */
KILN_API const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "verify_asan_link_order=0";
}
