/* signal.c - all that runs in signal handlers. Stacks may be small (an alternate one of 4 KB) and
 * broken, and any instruction may have been interrupted. */
#include "agent/signal.h"

#include <string.h>
#include <sys/uio.h>

#include "agent/kernel.h"
#include "agent/local.h"
#include "agent/modules.h"
#include "agent/unwind.h"

/* ---- reading a stack */

/* A piece of memory that may not be there, as the kernel could read it. */
struct window {
	uintptr_t at;
	size_t bytes;
	uint64_t words[64];
};

struct walker {
	uintptr_t pc, sp, bp;
	uintptr_t low, high;	 /* the thread's stack: surely there */
	const greg_t *registers; /* all of them, where the frame was interrupted; or NULL */
	bool is_exact;		 /* pc is where it will go on, not what a call returns to */
	bool is_guess;		 /* frame pointers were followed through unknown code */
	struct range range;	 /* the module that pc is in, if it has a number */
	struct window *window;
};

static bool fetch(struct window *w, uintptr_t address)
{
	struct iovec to = { w->words, sizeof(w->words) },
		     from = { (void *)address, sizeof(w->words) };
	long pid = kernel_call(SYS_getpid, 0, 0, 0, 0), n;

	n = kernel_call6(SYS_process_vm_readv, pid, (long)&to, 1, (long)&from, 1, 0);
	if (n < 8) { /* the end of what is mapped may be near */
		size_t left = 4096 - (address & 4095);

		to.iov_len = from.iov_len = left < sizeof(w->words) ? left : sizeof(w->words);
		n = kernel_call6(SYS_process_vm_readv, pid, (long)&to, 1, (long)&from, 1, 0);
	}
	w->at = address;
	w->bytes = n > 0 ? (size_t)n : 0;
	return n >= 8;
}

static inline bool read_word(const struct walker *w, uintptr_t address, uintptr_t *value)
{
	struct window *window = w->window;

	if (address & 7)
		return false;
	if (address >= w->low && address < w->high) {
		*value = *(const uintptr_t *)address;
		return true;
	}
	if ((address < window->at || address - window->at + 8 > window->bytes) &&
	    !fetch(window, address))
		return false;
	*value = window->words[(address - window->at) / 8];
	return true;
}

/* ---- one frame */

enum step { STEP_DONE, STEP_ROOT, STEP_STUCK };

enum { UCONTEXT_REGISTERS = offsetof(ucontext_t, uc_mcontext.gregs) };

/* As DWARF numbers them. */
static const uint8_t register_places[] = { REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
					   REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
					   REG_R12, REG_R13, REG_R14, REG_R15 };

static inline bool read_register(const struct walker *w, unsigned reg, uintptr_t *value)
{
	if (reg == REGISTER_SP)
		*value = w->sp;
	else if (reg == REGISTER_BP)
		*value = w->bp;
	else if (w->registers && reg < sizeof(register_places))
		*value = (uintptr_t)w->registers[register_places[reg]];
	else
		return false;
	return true;
}

static inline uintptr_t code_of(const struct walker *w)
{
	return w->pc - !w->is_exact;
}

static inline bool find_module(struct walker *w)
{
	uintptr_t pc = code_of(w);

	if (w->range.number && pc >= w->range.start && pc < w->range.end)
		return true;
	if (range_find(pc, &w->range))
		return true;
	w->range.number = 0;
	return false;
}

static inline enum step go_to(struct walker *w, uintptr_t pc, uintptr_t sp, uintptr_t bp)
{
	w->pc = pc;
	w->sp = sp;
	w->bp = bp;
	w->registers = NULL;
	w->is_exact = false;
	return pc ? STEP_DONE : STEP_ROOT;
}

/* The kernel's frame: where the thread was when it got a signal. */
static enum step step_signal(struct walker *w)
{
	uintptr_t registers = w->sp + UCONTEXT_REGISTERS, pc, sp, bp;

	if (!read_word(w, registers + REG_RIP * 8, &pc) ||
	    !read_word(w, registers + REG_RSP * 8, &sp) ||
	    !read_word(w, registers + REG_RBP * 8, &bp))
		return STEP_STUCK;
	go_to(w, pc, sp, bp);
	w->is_exact = true;
	return STEP_DONE;
}

static bool is_code(uintptr_t pc)
{
	struct range r;

	return range_find(pc, &r) && pc >= r.module->text && pc < r.module->text_end;
}

/* Code that nobody describes: made at run time, or written without. A function that was just called
 * has its return address on top of the stack; others may keep frame pointers. */
static enum step step_unknown(struct walker *w)
{
	uintptr_t pc, bp;

	if (w->is_exact && !w->range.number && w->pc < 4096 && read_word(w, w->sp, &pc) &&
	    is_code(pc))
		return go_to(w, pc, w->sp + 8, w->bp);
	if (w->bp < w->sp || !read_word(w, w->bp, &bp) || !read_word(w, w->bp + 8, &pc) ||
	    pc < 4096 || pc >> 47)
		return STEP_STUCK;
	w->is_guess = !is_code(pc);
	return go_to(w, pc, w->bp + 16, bp);
}

static inline bool find_cfa(const struct walker *w, const struct unwind_rule *r, uintptr_t *cfa)
{
	switch (r->cfa) {
	case CFA_REGISTER:
		if (!read_register(w, r->reg, cfa))
			return false;
		*cfa += (uintptr_t)(intptr_t)r->offset;
		return true;
	case CFA_MEMORY:
		if (!read_register(w, r->reg, cfa) ||
		    !read_word(w, *cfa + (uintptr_t)(intptr_t)r->offset, cfa))
			return false;
		*cfa += (uintptr_t)(intptr_t)r->extra;
		return true;
	case CFA_PLT:
		*cfa = w->sp + 8 + ((intptr_t)(w->pc & 15) >= r->extra ? 8 : 0);
		return true;
	default:
		return false;
	}
}

static inline bool find_bp(const struct walker *w, const struct unwind_rule *r, uintptr_t cfa,
			   uintptr_t *bp)
{
	*bp = r->bp == BP_LOST ? 0 : w->bp;
	if (r->bp == BP_AT_CFA)
		return read_word(w, cfa + (uintptr_t)(intptr_t)r->bp_offset, bp);
	if (r->bp == BP_AT_BP)
		return read_word(w, w->bp + (uintptr_t)(intptr_t)r->bp_offset, bp);
	return true;
}

static inline enum step step_by_rule(struct walker *w, const struct unwind_rule *r)
{
	uintptr_t cfa, pc, bp;

	if (!find_cfa(w, r, &cfa) || cfa <= w->sp || !read_word(w, cfa - 8, &pc) ||
	    !find_bp(w, r, cfa, &bp))
		return STEP_STUCK;
	return go_to(w, pc, cfa, bp);
}

static inline enum step step(struct walker *w)
{
	const struct unwind_table *table;
	const struct unwind_rule *r;

	if (!w->range.number)
		return step_unknown(w);
	table = atomic_load_explicit(&w->range.module->table, memory_order_acquire);
	if (!table)
		return step_unknown(w);
	r = unwind_find(table, code_of(w) - w->range.module->base);
	switch (r->cfa) {
	case CFA_NONE:
		return step_unknown(w);
	case CFA_ROOT:
		return STEP_ROOT;
	case CFA_SIGNAL:
		return step_signal(w);
	default:
		return step_by_rule(w, r);
	}
}

/* ---- whole stacks */

/* Of the agent's own frames no more than this are left out. */
enum { OWN_FRAMES_MAX = 64 };

static uint32_t end_stack(frame_t *frames, uint32_t n, uint32_t max, frame_t why)
{
	if (n == max)
		n--;
	frames[n] = why;
	return n + 1;
}

static uint32_t walk(struct walker *w, frame_t *frames, uint32_t max)
{
	enum step went = STEP_DONE;
	uint32_t n = 0, sure = 0;

	for (uint32_t steps = 0; went == STEP_DONE && steps < max + OWN_FRAMES_MAX; steps++) {
		bool is_known = find_module(w);

		if (!is_known || !w->range.module->is_agent) {
			if (n == max)
				return end_stack(frames, n, max, FRAME_TRUNCATED);
			frames[n++] = is_known ? (frame_t)w->range.number << 48 |
							 (code_of(w) - w->range.module->base)
					       : code_of(w) & FRAME_OFFSET;
		}
		if (!w->is_guess)
			sure = n;
		went = step(w);
	}
	if (went == STEP_ROOT)
		return n;
	return end_stack(frames, sure, max, FRAME_NO_UNWIND);
}

static void start_walk(struct walker *w, const struct walk_start *start)
{
	w->pc = start->pc;
	w->sp = start->sp;
	w->bp = start->bp;
	w->is_exact = true;
	if (start->sp >= local.stack_low && start->sp < local.stack_top && local.stack_low) {
		w->low = start->sp & ~(uintptr_t)7;
		w->high = local.stack_top & ~(uintptr_t)7;
	}
}

uint32_t walk_stack(const struct walk_start *start, frame_t *frames, uint32_t max)
{
	struct window window;
	struct walker w = { .window = &window };

	window.bytes = window.at = 0;
	start_walk(&w, start);
	return max ? walk(&w, frames, max) : 0;
}
