/* sanitizer.c - programs that are built with a sanitizer. It stands in front of the same functions,
 * and watches memory that it does not know of: the agent leaves them alone. */
#include <dlfcn.h>
#include <link.h>
#include <stddef.h>
#include <string.h>

#include "agent/life.h"
#include "agent/local.h"
#include "agent/real.h"
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

typedef int visit_t(struct dl_phdr_info *, size_t, void *);

struct visit {
	visit_t *visit;
	void *data;
};

static bool has_address(const struct dl_phdr_info *info, uintptr_t address)
{
	for (unsigned i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD &&
		    address - info->dlpi_addr - info->dlpi_phdr[i].p_vaddr <
			    info->dlpi_phdr[i].p_memsz)
			return true;
	return false;
}

static int visit_others(struct dl_phdr_info *info, size_t size, void *data)
{
	const struct visit *v = data;

	return has_address(info, (uintptr_t)visit_others) && *info->dlpi_name
		       ? 0
		       : v->visit(info, size, v->data);
}

/* Looked for once: this is called while exceptions are thrown. */
static bool has_address_sanitizer(void)
{
	static atomic_int known; /* 1: no, 2: yes */
	int is = atomic_load_explicit(&known, memory_order_relaxed);

	if (!is) {
		agent_enter();
		is = dlsym(RTLD_DEFAULT, "__asan_init") ? 2 : 1;
		agent_leave();
		atomic_store(&known, is);
	}
	return is == 2;
}

/* AddressSanitizer ends the program unless it is the first library, where only a preloaded one can
 * be. It is not shown that there is one. */
KILN_API int dl_iterate_phdr(visit_t *visit, void *data)
{
	struct visit v = { visit, data };
	Dl_info caller;

	if (has_address_sanitizer() && dladdr(__builtin_return_address(0), &caller) &&
	    caller.dli_fname && strstr(caller.dli_fname, "asan"))
		return REAL_CALL(dl_iterate_phdr)(visit_others, &v);
	return REAL_CALL(dl_iterate_phdr)(visit, data);
}
