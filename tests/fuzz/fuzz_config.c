/* The server's YAML file and environment, and the parameters of profefe's API. */
#include <stdlib.h>

#include "base/amount.h"
#include "server/api0.h"
#include "server/options.h"
#include "server/owners.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_environment(struct arena *a, struct str text)
{
	struct server_options o = server_defaults;
	struct err e;
	char *variables[2] = { str_dup(a, text), NULL };

	config_read_environment(&o, a, variables, &e);
}

/* What is printed must read back as the same. */
static void check_amounts(struct str text)
{
	struct buf out = { 0 };
	int64_t value, again;
	struct err e;

	if (amount_parse_time(text, &value, &e)) {
		amount_print_time(&out, value);
		if (!amount_parse_time(buf_view(&out), &again, &e) || again != value)
			abort();
	}
	out.n = 0;
	if (amount_parse_bytes(text, &value, &e)) {
		amount_print_bytes(&out, value);
		if (!amount_parse_bytes(buf_view(&out), &again, &e))
			abort();
	}
	buf_release(&out);
}

/* What the file's list becomes is as good as rules that are given as text. */
static void read_owners(struct str rules)
{
	struct err e;
	struct owners *o = owners_new(rules, &e);

	if (!o)
		return;
	group_owner(owners_of_service(o, STR("web")), STR("main.run"), STR(""), STR(""));
	owners_free(o);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct server_options o = server_defaults;
	struct str text = { (const char *)data, size };
	struct arena a = { 0 };
	struct store_label *labels;
	struct err e;
	int64_t ns;
	size_t n;

	config_read(&o, &a, text, &e);
	read_owners(str_of(o.owners));
	read_owners(text);
	read_environment(&a, text);
	check_amounts(text);
	api0_parse_time(text, &ns);
	api0_parse_labels(&a, text, &labels, &n, &e);
	arena_release(&a);
	return 0;
}
