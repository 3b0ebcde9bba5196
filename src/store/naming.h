/* naming.h - names of addresses that came without, from whoever the store was opened with
 * (store_namer). Private to store/.
 *
 * Nothing that is stored changes: names are looked up when something is summed up, so that what was
 * pushed before they were known has them too, and what is pushed comes back as it came.
 */
#ifndef STORE_NAMING_H
#define STORE_NAMING_H

#include "store/store.h"

struct book;

/* Of one question. What is made of the answers may be kept
 *  - not at all if something is missing: there will be other answers in a moment, and nothing says
 *    when;
 *  - while naming_generation, as it was before the question, stays the same, if something was
 * asked;
 *  - for ever if nothing was: whoever pushed it has named it, or nobody ever will (the kernel, the
 *    vdso, code made at run time, binaries without a build id). */
struct naming {
	const struct store_namer *by; /* NULL: nobody */
	uint64_t nmissing;	      /* addresses that may have names in a while */
	uint64_t since;		      /* nfound when it began, + 1 */
	uint64_t nasked; /* addresses of books whose names are the namer's to tell, if it can */
};

/* Without a namer 0. */
uint64_t naming_generation(const struct store_namer *by);
/* Once after a question in which something was missing: true if it is worth to ask again. */
bool naming_wait(struct naming *n);
/* Gives the profile's locations the names there are; waits for them a while. */
void naming_profile(const struct store_namer *by, struct arena *a, struct profile *p);

/* The same for locations of a book, between book_naming_begin and book_naming_end, in which nothing
 * may wait. */
struct book_naming {
	struct naming *n; /* NULL: no names */
	const struct book *b;
	struct store_binary **binaries; /* of each mapping */
	unsigned char *states;
	struct profile_frame frames[STORE_MAX_FRAMES]; /* of the last that was found */
};
void book_naming_begin(struct book_naming *x, struct naming *n, const struct book *b);
void book_naming_end(struct book_naming *x);
/* Frames, innermost first, that stay until the next one is asked for, and their texts until
 * book_naming_end; 0: the location's own are to be used. */
uint32_t book_naming_find(struct book_naming *x, uint32_t location,
			  const struct profile_frame **frames);
/* The name of a function that was pushed as linkers know it, as people read it; p == NULL: it is to
 * be used as it is. */
struct str book_naming_readable(struct book_naming *x, uint32_t function);

#endif
