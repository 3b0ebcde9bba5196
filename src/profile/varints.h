/* varints.h - long runs of small numbers: the stacks, which are most of a profile. */
#ifndef PROFILE_VARINTS_H
#define PROFILE_VARINTS_H

#include "profile/wire.h"

/* Reads numbers from *w on, several at a time, and returns how many. It stops where the bytes are
 * not that simple, at a number of more than four bytes, or that has no end, and shortly before
 * `readable`: wire_varint is for those. Bytes between w->end and `readable` may be looked at.
 *
 * `to` has room for as many numbers as there are bytes, and three more.
 */
uint32_t read_varints(struct wire *w, const uint8_t *readable, uint32_t *to);
/* The same for processors without bit extraction; read_varints knows. */
uint32_t read_varints_plain(struct wire *w, const uint8_t *readable, uint32_t *to);

#endif
