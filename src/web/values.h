/* values.h - the values that labels have, with what each weighs. Private to web/. */
#ifndef WEB_VALUES_H
#define WEB_VALUES_H

#include "base/map.h"
#include "base/vec.h"
#include "profile/profile.h"

struct value_row {
	uint32_t key, text; /* strings */
	bool is_number;
	int64_t number;
	int64_t weight;
	uint32_t samples;
};

struct value_table {
	vec(struct value_row) rows; /* by key, text before numbers, heaviest first */
	struct map map;
	uint64_t seed;
};

/* `weights` and `counts` are by label set; sets of no samples do not count. */
void values_collect(struct value_table *t, const struct profile *p, const int64_t *weights,
		    const uint32_t *counts);
void values_release(struct value_table *t);
bool values_same_key(const struct value_row *a, const struct value_row *b);

#endif
