/* gzip_size.h - what a gzip file unpacks to, told from its codes, without unpacking any of it. That
 * takes time and memory for the bytes that are there, not for those that they stand for: a bomb is
 * known by its first kilobytes.
 */
#ifndef PROFILE_GZIP_SIZE_H
#define PROFILE_GZIP_SIZE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/str.h"

bool gzip_is(struct str s);
/* Length of a member's header (RFC 1952), or more than there is if it is cut off. */
size_t gzip_header_bytes(struct str member);
/* To how many bytes the file unpacks of which this is the beginning, at least; `enough` as soon as
 * they are as many. Nothing is checked that is not needed for that: if it is no such file, or
 * damaged, it counts up to there. */
uint64_t gzip_least_size(struct str start, uint64_t enough);

#endif
