/* vec.h - growing arrays.
 *
 *	vec(struct node) nodes = { 0 };
 *	vec_push(&nodes, n);
 *	for (size_t i = 0; i < nodes.n; i++) use(&nodes.at[i]);
 *	vec_release(&nodes);			or: p = vec_adopt(&arena, &nodes);
 */
#ifndef BASE_VEC_H
#define BASE_VEC_H

#include <stddef.h>
#include <stdlib.h>

#include "base/arena.h"

#define vec(T)                 \
	struct {               \
		T *at;         \
		size_t n, cap; \
	}

/* Room for `more` elements after the ones there are. */
#define vec_reserve(v, more)                                                                       \
	((v)->n + (more) > (v)->cap                                                                \
		 ? (void)((v)->at =                                                                \
				  vec_grow((v)->at, &(v)->cap, (v)->n + (more), sizeof(*(v)->at))) \
		 : (void)0)
#define vec_push(v, ...) (vec_reserve((v), 1), (void)((v)->at[(v)->n++] = (__VA_ARGS__)))
#define vec_release(v) (free((v)->at), (void)((v)->at = NULL), (void)((v)->n = (v)->cap = 0))
/* Hands the storage to an arena and empties the vector; returns the elements. */
#define vec_adopt(arena, v) vec_adopt_((arena), (void **)&(v)->at, &(v)->n, &(v)->cap)

void *vec_grow(void *at, size_t *cap, size_t want, size_t size);
void *vec_adopt_(struct arena *a, void **at, size_t *n, size_t *cap);

#endif
