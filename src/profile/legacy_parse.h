/* legacy_parse.h - what the readers of the legacy formats share. Private to legacy*.c.
 *
 * A reader fills a `struct legacy` and is thrown away with it when it fails. The formats are
 * defined by regular expressions; each is matched here by a scanner that looks at every byte a
 * bounded number of times. In their language \s is a blank, \t, \n, \f or \r, and "trimmed" means
 * Go's strings.TrimSpace.
 */
#ifndef PROFILE_LEGACY_PARSE_H
#define PROFILE_LEGACY_PARSE_H

#include "base/map.h"
#include "base/vec.h"
#include "profile/build.h"
#include "profile/legacy.h"

struct address_slot;

/* Locations by address. */
struct address_table {
	struct address_slot *slots;
	size_t mask;
	uint64_t seed;
};

struct legacy {
	struct builder b;
	struct address_table by_address;
	vec(uint64_t) addresses; /* of the sample that is being read, leaf first */
	vec(uint32_t) stack;
};

/* ---- the readers, in pprof's order; contract as in legacy.h */

bool legacy_read_cpu(struct legacy *r, struct str data, struct err *e);
bool legacy_read_heap(struct legacy *r, struct str data, struct err *e);
bool legacy_read_count(struct legacy *r, struct str data, struct err *e);
bool legacy_read_threads(struct legacy *r, struct str data, struct err *e);
bool legacy_read_contention(struct legacy *r, struct str data, struct err *e);
bool legacy_read_java(struct legacy *r, struct str data, struct err *e);
bool folded_read(struct legacy *r, struct str data, struct err *e);

/* ---- text (legacy_scan.c) */

/* Lines as bufio.Scanner gives them: without \n and one \r before it, at most LINE_MAX_BYTES long.
 */
struct lines {
	struct str rest, line;
	bool is_too_long;
};

#define LINE_MAX_BYTES 65535

/* Moves to the next line. False at the end and before a line that is too long; `line` is then "".
 */
bool lines_next(struct lines *in);
/* Fails if the lines ended because one was too long. */
bool lines_check(const struct lines *in, struct err *e);
/* Moves to the next line that is neither blank nor a comment. */
bool lines_next_content(struct lines *in);

struct str text_trim(struct str s);
/* Is the trimmed line empty, or does it start with '#'? */
bool text_is_comment(struct str line);
bool text_is_map_sentinel(struct str line);

static inline bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static inline bool is_hex_digit(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static inline bool is_regex_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\f' || c == '\r';
}

/* A place in a text, for matching a pattern from left to right. */
struct cursor {
	struct str s;
	size_t at;
};

static inline bool cursor_char(struct cursor *c, char want)
{
	if (c->at < c->s.n && c->s.p[c->at] == want) {
		c->at++;
		return true;
	}
	return false;
}

/* Next char is `want`, which is not taken. */
static inline bool cursor_sees(const struct cursor *c, char want)
{
	return c->at < c->s.n && c->s.p[c->at] == want;
}

bool cursor_literal(struct cursor *c, struct str want);
/* Takes the longest run, which may be empty, of: ' ', \s, digits, hex digits, bytes of address
 * lists
 * `[ x0-9a-f]`. */
struct str cursor_blanks(struct cursor *c);
struct str cursor_spaces(struct cursor *c);
struct str cursor_digits(struct cursor *c);
struct str cursor_hex(struct cursor *c);
struct str cursor_address_list(struct cursor *c);

/* A decimal number of a sample line; fails with "malformed sample: LINE: ...". */
bool sample_int(struct str digits, struct str line, int64_t *out, struct err *e);

/* ---- samples and locations (legacy_sample.c) */

/* Index of the location, or NONE. */
uint32_t legacy_find_location(const struct legacy *r, uint64_t address);
/* Appends every `0x[0-9a-f]+` of the text to r->addresses. Fails with the message for `line`. */
bool legacy_addresses(struct legacy *r, struct str text, struct str line, struct err *e);

/* Which addresses of a stack are those of the instruction after a call, and get 1 subtracted. */
enum adjust { ADJUST_NONE, ADJUST_CALLERS, ADJUST_ALL };
/* Appends a sample with the stack r->addresses, and empties that. */
void legacy_sample(struct legacy *r, enum adjust adjust, uint32_t labels, const int64_t *values);
/* The label set {bytes: [n]}. */
uint32_t legacy_bytes_label(struct legacy *r, int64_t n);
void legacy_add_type(struct legacy *r, struct str type, struct str unit);
void legacy_set_period(struct legacy *r, struct str type, struct str unit, int64_t period);
/* Removes the caller of the leaf from a sample. */
void legacy_drop_caller(struct legacy *r, struct sample *s);
/* Drops the caller where it repeats the leaf: the leaf comes from the signal's registers, its copy
 * from unwinding, and that one has been adjusted. */
void legacy_drop_repeated_leaves(struct legacy *r);
/* Numbers locations by first use in a sample, functions by first use in a location, and drops
 * unused ones. r->by_address is not valid afterwards. */
void legacy_renumber(struct legacy *r);

/* What a heap sampled at one allocation in `rate` bytes is estimated to hold. */
void legacy_unbias(int64_t *count, int64_t *size, int64_t rate);

/* ---- memory maps (legacy_maps.c) */

/* Skips to the memory map, reads it if there is one, and does what legacy_read_map does. */
bool legacy_read_map_section(struct legacy *r, struct lines *in, struct err *e);
/* Reads the remaining lines as a memory map, then renumbers and gives every location a mapping. */
bool legacy_read_map(struct legacy *r, struct lines *in, struct err *e);
/* Gives every location with an address a mapping, if need be a fake one. */
void legacy_assign_mappings(struct legacy *r);

#endif
