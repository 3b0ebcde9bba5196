/* Annotations of a pod: lines of a name, a blank and a value. */
#include "collect/annotations.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_PAIRS = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct profile_type cpu = { .name = "cpu", .path = "profile", .seconds = 30 };
	const struct kube_port port = { STR("http"), 80 };
	const struct kube_container container = {
		.name = STR("web"), .image = STR("a:1"), .ports = &port, .nports = 1
	};
	struct str rest = { (const char *)data, size };
	struct kube_pair pairs[MAX_PAIRS];
	struct kube_pod pod = { .namespace = STR("ns"),
				.name = STR("pod"),
				.ip = STR("10.0.0.1"),
				.is_running = true,
				.annotations = pairs,
				.labels = pairs,
				.containers = &container,
				.ncontainers = 1 };
	struct pod_targets_params params = {
		.types = &cpu, .ntypes = 1, .pod_labels = "app", .interval = 60 * COLLECT_SECOND
	};
	struct arena a = { 0 };
	struct pod_target *targets;
	struct err e;
	size_t n;

	while (rest.n && pod.nannotations < MAX_PAIRS) {
		struct str value = str_cut(&rest, '\n'), name = str_cut(&value, ' ');

		pairs[pod.nannotations++] = (struct kube_pair){ name, value };
	}
	pod.nlabels = pod.nannotations;
	pod_targets_read(&a, &pod, &params, &targets, &n, &e);
	arena_release(&a);
	return 0;
}
