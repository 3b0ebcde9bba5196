/* fuzz_object.c - object files, through object_open and object_check_base. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "symbol/symbol.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static const struct object_place places[] = {
		{ .start = 0x400000, .limit = 0x500000, .offset = 0x1000 },
		{ .start = UINT64_C(0xffffffff81000123), .limit = UINT64_C(0xffffffff82000000) },
		{ .limit = 0x1000 },
	};
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct object o;
	struct err e;
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (write(fd, data, n) == (ssize_t)n && object_open(&o, path, &e)) {
		for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
			object_check_base(&o, path, &places[i], &e);
		object_close(&o);
	}
	close(fd);
	return 0;
}
