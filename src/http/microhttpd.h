/* microhttpd.h - libmicrohttpd, loaded when a server starts. */
#ifndef HTTP_MICROHTTPD_H
#define HTTP_MICROHTTPD_H

#include <microhttpd.h>

#include "base/err.h"

#define MICROHTTPD "libmicrohttpd.so.12"

/* Its functions that we call. */
struct microhttpd {
	__typeof__(MHD_start_daemon) *start;
	__typeof__(MHD_stop_daemon) *stop;
	__typeof__(MHD_add_connection) *add;
	__typeof__(MHD_suspend_connection) *suspend;
	__typeof__(MHD_resume_connection) *resume;
	__typeof__(MHD_lookup_connection_value) *lookup;
	__typeof__(MHD_get_connection_info) *info;
	__typeof__(MHD_create_response_from_buffer_with_free_callback_cls) *response;
	__typeof__(MHD_create_response_from_callback) *stream;
	__typeof__(MHD_add_response_header) *header;
	__typeof__(MHD_queue_response) *queue;
	__typeof__(MHD_destroy_response) *forget;
};

bool microhttpd_load(struct microhttpd *m, struct err *e);

#endif
