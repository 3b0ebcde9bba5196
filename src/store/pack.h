/* pack.h - what packing, unpacking and summing know of a packed profile; see pack.c. */
#ifndef STORE_PACK_H
#define STORE_PACK_H

#include "store/column.h"
#include "store/tables.h"

enum { PACK_LEVEL = 1 }; /* of zstd */
enum { EXTRAS = 3 };	 /* strings: drop_frames, keep_frames, doc_url */
enum { ORDER_OF_USE, ORDER_GIVEN };
enum { IDS_FROM_1, IDS_GIVEN };
/* With more types, equal values are written one by one: the bytes tell how many values there are.
 */
enum { SAME_TYPES = 8 };

/* A packed profile that is being read. */
struct unpacker {
	const struct book *b;
	struct book_head head;
	struct sealed s;
};

void put_head(struct buf *out, const struct book_head *head);
/* Up to the samples; `u` has the book, and may have read other profiles. */
bool unpacker_open(struct unpacker *u, struct str packed, struct err *e);

/* The values of one of `ntypes` types. */
void put_values(struct buf *out, uint64_t *column, size_t n, uint32_t ntypes);
void get_values(struct reader *r, uint64_t *column, size_t n, uint32_t ntypes);

/* Rows of a table in the order of their first use. */
struct used {
	uint64_t *bits;
	uint32_t *rows;
	size_t n, cap;
};
void used_init(struct used *u, size_t table_rows);
void used_release(struct used *u);
/* Forgets which rows are there, but not the order in which they were used. */
void used_rewind(struct used *u);
void used_add(struct used *u, uint32_t row);
void used_add_stack(struct used *u, const struct book *b, uint32_t stack);
void used_add_functions(struct used *u, const struct book *b, uint32_t location);
void used_add_mapping(struct used *u, const struct book *b, uint32_t location);

static inline bool used_has(const struct used *u, uint32_t row)
{
	return u->bits[row / 64] >> row % 64 & 1;
}

static inline void used_mark(struct used *u, uint32_t row)
{
	u->bits[row / 64] |= (uint64_t)1 << row % 64;
}

#endif
