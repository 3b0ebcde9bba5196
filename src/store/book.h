/* book.h - what the profiles of one service have in common: strings, mappings, functions,
 * locations, stacks, sets of labels, and heads (types, period, comments).
 *
 * Entries get numbers when they are first seen and keep them. A book only grows; when it is large
 * or old its service begins another, and a book without profiles is dropped. New entries are
 * written as chunks: whoever reads all chunks of a book in order has the book.
 *
 * For one thread at a time, but any number may read one that nobody adds to.
 */
#ifndef STORE_BOOK_H
#define STORE_BOOK_H

#include "base/buf.h"
#include "profile/profile.h"

struct book;

struct book *book_new(void);
void book_free(struct book *b);
size_t book_bytes(const struct book *b); /* memory */

/* ---- chunks: untrusted, a disk may lie */

/* Where a book ends now. */
struct book_mark {
	uint32_t nstrings, nmappings, nfunctions, nlines, nlocations, nstacks, nlabel_sets, nheads,
		nlayouts;
};
struct book_mark book_mark(const struct book *b);
bool book_is_at(const struct book *b, const struct book_mark *mark);
/* What was added after `from`, compressed. */
void book_write_chunk(const struct book *b, const struct book_mark *from, struct buf *out);
bool book_read_chunk(struct book *b, struct str chunk, struct err *e);

/* ---- profiles */

/* A profile in terms of the book: a few bytes for each sample, compressed. Adds to the book what it
 * lacks. Nothing is lost: order, ids, unused functions, fields that nobody knows the use of. */
void book_pack(struct book *b, const struct profile *p, struct buf *out);
/* The same in two steps, of which only the first needs the book: packer_find, then packer_write,
 * until which the profile must stay. A packer may serve many profiles, of many books, one at a
 * time. */
struct packer;
struct packer *packer_new(void);
void packer_free(struct packer *k);
/* False: something is new, and may not be added. The book has not been changed, and many may look
 * at a time; the next call, which may add, goes on from there. */
bool packer_find(struct packer *k, struct book *b, const struct profile *p, bool may_add);
/* Of what was found: the number of the head (see below). */
uint32_t packer_head(const struct packer *k);
void packer_write(struct packer *k, struct buf *out);
/* The same profile. `packed` is untrusted. */
bool book_unpack(const struct book *b, struct str packed, struct arena *a, struct strings *strings,
		 struct profile *p, struct err *e);

/* ---- sums of packed profiles of one book */

struct book_sum;
struct book_sum *book_sum_new(const struct book *b);
void book_sum_free(struct book_sum *s);
size_t book_sum_bytes(const struct book_sum *s); /* memory */
/* What is known of a packed profile without its samples. */
struct book_head {
	uint32_t head; /* its number: same types, units, period type, default type */
	uint32_t ntypes;
	int64_t time, duration, period;
	uint32_t nsamples;
};
bool book_read_head(const struct book *b, struct str packed, struct book_head *head, struct err *e);
/* The sample types of a head: strings of the book, good as long as it is. */
struct str book_type_name(const struct book *b, uint32_t head, uint32_t type);
struct str book_type_unit(const struct book *b, uint32_t head, uint32_t type);
/* Of a head that is there: what its periods are of; "" if it does not say. */
struct str book_period_type(const struct book *b, uint32_t head);
struct str book_period_unit(const struct book *b, uint32_t head);
/* How many there are; 0 of a head that is not there. */
uint32_t book_ntypes(const struct book *b, uint32_t head);
/* Which sample type `name` is, "" for the default one; NONE if the head, which may come from a
 * damaged file, has no such type. */
uint32_t book_find_type(const struct book *b, uint32_t head, struct str name);
/* ERR_USAGE: no profile has a sample type of that name, but this head has these. Returns false. */
bool book_no_type(const struct book *b, uint32_t head, struct str name, struct err *e);
/* Adds factors[t] times the values of each type. All that are added must have the same head (false,
 * ERR_USAGE, if not). Subtracting is adding -1 times. What is damaged (ERR_FORMAT) adds nothing,
 * and one may go on. The book may grow between calls. The sum has the earliest time, the longest
 * period and all durations of what was added with a factor above 0. */
bool book_sum_add(struct book_sum *s, struct str packed, const double *factors, struct err *e);
/* Multiplies all values of a type: of a sum by 1 / n it makes a mean. Rounded in book_sum_pack. */
void book_sum_scale(struct book_sum *s, uint32_t type, double factor);
/* The sum of one type. */
double book_sum_total(const struct book_sum *s, uint32_t type);
/* The sum as a packed profile, as if it had been pushed; samples whose values are all 0 are left
 * out. It does not add to the book. */
void book_sum_pack(const struct book_sum *s, struct buf *out);
/* By function: flat and cum of one type. `each` is called in any order, with texts that are good
 * until it returns. Frames without a name are "[binary]" or "<unknown>", without a file. `naming`,
 * or NULL, may know more names. */
struct naming;
struct book_function_sum {
	struct str name, file;
	struct str module; /* the binary; of several, one */
	double flat, cum;
	bool is_unnamed;
	/* If both are the book's own: tells it from all others of the book, for ever. Else
	 * UINT64_MAX. */
	uint64_t id;
};
void book_sum_functions(const struct book_sum *s, uint32_t type, struct naming *naming,
			void (*each)(void *ctx, const struct book_function_sum *f), void *ctx);

/* ---- one function in packed profiles of one book */

struct book_probe;
/* Of functions by their whole names, as book_sum_functions tells them, which must stay: samples
 * that have the first anywhere, those that are in it, or those whose stacks begin with all, from
 * the root on. */
enum probe_where { PROBE_ANYWHERE, PROBE_LEAF, PROBE_ROOT };
struct book_probe *book_probe_new(const struct book *b, const struct str *functions, size_t n,
				  enum probe_where where, struct naming *naming);
void book_probe_free(struct book_probe *p);
/* What such samples of a profile, whose head must be this, have of a type. The book may grow
 * between calls. */
bool book_probe_read(struct book_probe *p, struct str packed, uint32_t head, uint32_t type,
		     double *value, struct err *e);

#endif
