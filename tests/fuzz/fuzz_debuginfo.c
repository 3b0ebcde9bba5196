/* fuzz_debuginfo.c - what is uploaded as debug info: unpacked into a file, and looked at. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "server/debuginfo.h"

enum { MAX_BYTES = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static const struct object_place places[] = {
		{ .start = 0x100000001000, .limit = 0x100000002000, .offset = 0x1000 },
		{ .start = 0x1000, .limit = UINT64_MAX, .offset = UINT64_MAX },
		{ .limit = 0 },
	};
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct object_contents has;
	struct object o;
	struct err e;
	char path[64];
	uint64_t address;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (debuginfo_unpack((struct str){ (const char *)data, n }, fd, MAX_BYTES, 0, &e) &&
	    object_open(&o, path, &e)) {
		has = object_contents(&o);
		object_contents_rank(&has);
		for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++)
			object_debug_address(&o, &places[i], places[i].start + 0x123, &address, &e);
		object_close(&o);
	}
	close(fd);
	return 0;
}
