/* Files of tokens and users, and what requests show: the first byte says how much of the input is
 * which. */
#include "server/auth.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void write_text(int fd, const uint8_t *p, size_t n)
{
	if (ftruncate(fd, 0) != 0 || pwrite(fd, p, n, 0) != (ssize_t)n)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static int fd = -1;
	char path[40];
	size_t nfile = n ? (n - 1) * data[0] / 255 : 0;
	struct auth_params p = { .host = "localhost" };
	struct arena arena = { 0 };
	struct auth_claim claim = { .is_local = true };
	enum role roles;
	struct str who;
	struct err e;
	struct auth *a;

	if (!n)
		return 0;
	if (fd < 0)
		fd = memfd_create("accounts", MFD_CLOEXEC);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	write_text(fd, data + 1, nfile);
	*(n % 2 ? &p.tokens : &p.users) = path;
	a = auth_new(&p, &e);
	if (!a) {
		write_text(fd, (const uint8_t *)"read 0123456789abcdef x", 23);
		p.users = NULL;
		p.tokens = path;
		a = auth_new(&p, &e);
	}
	claim.authorization = claim.host =
		(struct str){ (const char *)data + 1 + nfile, n - 1 - nfile };
	auth_check(a, &claim, false, &arena, &roles, &who);
	auth_free(a);
	arena_release(&arena);
	return 0;
}
