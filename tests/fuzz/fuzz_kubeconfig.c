/* A kubeconfig, and what a program of one prints. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kube/inside.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct exec_credential x;
	struct kube_config c;
	struct err e;
	char path[64];
	int fd = memfd_create("kubeconfig", 0);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (kube_config_load(&c, &(struct kube_access){ .kubeconfig = path }, &e))
		kube_config_release(&c);
	close(fd);
	if (kube_exec_read((struct str){ (const char *)data, size },
			   "client.authentication.k8s.io/v1", &x, &e))
		exec_credential_release(&x);
	return 0;
}
