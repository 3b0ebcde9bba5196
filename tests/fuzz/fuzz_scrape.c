/* The jobs of scrape:, and files of targets in the format of file_sd. */
#include "collect/scrape_config.h"
#include "base/yaml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = { (const char *)data, size };
	struct arena a = { 0 };
	struct scrape_config config;
	struct target_spec *at;
	struct tree tree;
	struct err e;
	size_t n;

	if (scrape_config_read(&config, text, "/etc/kiln", &e))
		scrape_config_release(&config);
	if (tree_read(&a, text, &tree, &e)) {
		if (targets_read(&a, &tree, false, &at, &n, &e))
			targets_copy(&a, arena_many(&a, n, struct target_spec), at, n);
		targets_read(&a, &tree, true, &at, &n, &e);
	}
	arena_release(&a);
	return 0;
}
