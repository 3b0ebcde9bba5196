#include "http/microhttpd.h"

#include <dlfcn.h>
#include <string.h>

bool microhttpd_load(struct microhttpd *m, struct err *e)
{
	const struct {
		const char *name;
		void *to;
	} functions[] = {
		{ "MHD_start_daemon", &m->start },
		{ "MHD_stop_daemon", &m->stop },
		{ "MHD_add_connection", &m->add },
		{ "MHD_suspend_connection", &m->suspend },
		{ "MHD_resume_connection", &m->resume },
		{ "MHD_lookup_connection_value", &m->lookup },
		{ "MHD_get_connection_info", &m->info },
		{ "MHD_create_response_from_buffer_with_free_callback_cls", &m->response },
		{ "MHD_create_response_from_callback", &m->stream },
		{ "MHD_add_response_header", &m->header },
		{ "MHD_queue_response", &m->queue },
		{ "MHD_destroy_response", &m->forget },
	};
	void *library = dlopen(MICROHTTPD, RTLD_NOW | RTLD_NODELETE);

	if (!library)
		return err_set(
			e, ERR_IO,
			"the web page needs libmicrohttpd: %s; install the package libmicrohttpd12",
			dlerror());
	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
		void *f = dlsym(library, functions[i].name);

		if (!f)
			return err_set(e, ERR_IO, "%s has no %s; install libmicrohttpd12 0.9.73",
				       MICROHTTPD, functions[i].name);
		memcpy(functions[i].to, &f, sizeof(f));
	}
	return true;
}
