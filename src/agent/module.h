/* module.h - the program's code: which file it came from, and how to go from a frame to its caller.
 *
 * A module is a file as it was loaded once; its number is never used again, so that a frame still
 * means the same when the file has been unloaded. What is published is never changed, signal
 * handlers may read it at any time.
 */
#ifndef AGENT_MODULE_H
#define AGENT_MODULE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where code was: module << 48 | offset from its base; without a module the address itself. Of
 * callers it is the last byte of the call. */
typedef uint64_t frame_t;
#define FRAME_OFFSET 0xffffffffffffu
/* No code: what became of a stack. Offsets of module 0 that no address can have. */
#define FRAME_TRUNCATED 1u
#define FRAME_LOST 2u	   /* samples there was no room for: lostProfileEvent */
#define FRAME_NO_UNWIND 3u /* [no unwind info] */
#define FRAME_SILENT 4u	   /* [not responding]: the thread did not tell where it is */
#define FRAME_LAST 15u

struct unwind_table;

struct module {
	uintptr_t base;	      /* what addresses of the file are moved by: the load bias */
	uintptr_t start, end; /* of its mapped segments */
	uintptr_t text, text_end;
	uint64_t text_offset; /* in the file, of `text` */
	const char *path;     /* as in /proc/self/maps; "[vdso]" */
	unsigned char build_id[32];
	unsigned build_id_size;
	uintptr_t own, own_size; /* the agent's code in it, if any: frames there are left out */
	atomic_bool is_gone;	 /* unloaded */
	_Atomic(const struct unwind_table *) table; /* NULL: not made yet */
};

enum { MODULES_MAX = 4096 };

/* Looks what is loaded now; makes tables for what is new, or with `later` leaves that to the agent
 * thread if it takes long. Not from signal handlers. */
void modules_update(bool later);
/* Something may be loaded right after this: the agent's thread looks for it. */
void modules_expect(void);
unsigned modules_count(void);			  /* numbers are 1 up to that */
const struct module *module_get(unsigned number); /* NULL: there is none */

/* Any context. */
frame_t frame_of(uintptr_t pc);
static inline unsigned frame_module(frame_t f)
{
	return (unsigned)(f >> 48);
}
uintptr_t frame_address(frame_t f);
/* What was taken before its file was known: maybe that is by now. */
static inline frame_t frame_again(frame_t f)
{
	return frame_module(f) || f <= FRAME_LAST ? f : frame_of(f);
}

#endif
