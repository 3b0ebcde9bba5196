/* id.h - new ids. */
#ifndef STORE_ID_H
#define STORE_ID_H

#include "store/store.h"

struct id_source {
	unsigned char maker[5];
	_Atomic uint32_t counter;
};

void id_source_init(struct id_source *s);
/* Any number of threads. */
struct store_id id_next(struct id_source *s);

#endif
