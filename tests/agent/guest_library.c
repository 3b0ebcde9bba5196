/* guest_library.c - what guest_load.c loads: NAME is what its functions are called after. */
#include "guest.h"

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

void JOIN(burn_in_, NAME)(int milliseconds);
void *JOIN(allocate_in_, NAME)(size_t bytes);

NOT_INLINED void JOIN(burn_in_, NAME)(int milliseconds)
{
	burn(milliseconds);
	STAYS;
}

NOT_INLINED void *JOIN(allocate_in_, NAME)(size_t bytes)
{
	void *memory = malloc(bytes);

	STAYS;
	return memory;
}
