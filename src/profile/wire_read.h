/* wire_read.h - structs filled by the description of a message.
 *
 *	struct label_values { struct str name; struct wire_list matchers; int64_t start, end; };
 *
 *	#define FIELD(...) WIRE_MEMBER(struct label_values, __VA_ARGS__)
 *	static const struct wire_field fields[] = {
 *		FIELD(1, name, WIRE_KIND_STRING),
 *		FIELD(2, matchers, WIRE_KIND_STRING, .is_repeated = true),
 *		...
 *		{ 0 },
 *	};
 *	const struct wire_message m = WIRE_STRUCT("LabelValuesRequest", struct label_values,
 *fields);
 *
 * A member is as the field's kind says: int64_t (INT, CHOICE), uint64_t (UINT, FIXED64), bool,
 * double, struct str (STRING, BYTES, HEX), or a pointer to a struct (MESSAGE), NULL if it is not
 * there. One that is repeated is a struct wire_list, of texts or of structs.
 */
#ifndef PROFILE_WIRE_READ_H
#define PROFILE_WIRE_READ_H

#include "base/arena.h"
#include "profile/wire_json.h"

struct wire_list {
	void *at;
	size_t n;
};

#define WIRE_MEMBER(T, number_, member, ...) \
	WIRE_FIELD(#member, number_, __VA_ARGS__, .offset = offsetof(T, member))
#define WIRE_STRUCT(name_, T, table)                                   \
	{                                                              \
		.name = (name_), .fields = (table), .bytes = sizeof(T) \
	}

/* Fills the struct, which is zero, with views of `bytes` and what lies in `a`. ERR_FORMAT says
 * which field is wrong; texts may not have NULs. */
bool wire_read(struct arena *a, const struct wire_message *m, struct str bytes, void *into,
	       struct err *e);

#endif
