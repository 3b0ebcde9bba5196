/* script.h - the text that perf script prints. Private to perf/.
 *
 *	prog 1234 [000] 5678.123456:     250000 cycles:u:
 *		    55d0c8a4f139 hot+0x9 (/usr/bin/prog)
 *		    55d0c8a4f200 helper (inlined)
 *		    55d0c8a4f200 main+0x20 (/usr/bin/prog)
 *
 * The leaf comes first. Without call chains the frame stands behind the event. Names have blanks
 * and parentheses in them, and so may the names of threads and files.
 */
#ifndef PERF_SCRIPT_H
#define PERF_SCRIPT_H

#include "profile/profile.h"

bool perf_script_recognizes(struct str data);
bool perf_script_parse(struct profile *p, struct arena *a, struct strings *strings, struct str data,
		       bool has_times, struct err *e);

#endif
