/* sanitizer.c - programs that are built with a sanitizer. It stands in front of the same functions,
 * and watches memory that it does not know of: the agent leaves them alone. */
#include <stddef.h>

#include "agent/life.h"
#include "kiln.h"

/* Known to the loader, if they are there: dlsym would allocate a message for each that is not. */
#define SANITIZER(function) extern void function(void) __attribute__((weak))
SANITIZER(__asan_init);
SANITIZER(__tsan_init);
SANITIZER(__msan_init);
SANITIZER(__hwasan_init);

const char *find_sanitizer(void)
{
	return __asan_init     ? "AddressSanitizer"
	       : __tsan_init   ? "ThreadSanitizer"
	       : __msan_init   ? "MemorySanitizer"
	       : __hwasan_init ? "HWAddressSanitizer"
			       : NULL;
}

/* AddressSanitizer ends the program unless it is the first library, where only a preloaded one can
 * be. It asks the program what it is to do, by this name. */
KILN_API const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "verify_asan_link_order=0";
}
