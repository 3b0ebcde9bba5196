/* signal.c - all that runs in signal handlers. Stacks may be small (an alternate one of 4 KB) and
 * broken, and any instruction may have been interrupted. */
#include "agent/signal.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <time.h>

#include "agent/agent.h"
#include "agent/kernel.h"
#include "agent/local.h"
#include "agent/modules.h"
#include "agent/perf.h"
#include "agent/unwind.h"

/* ---- reading a stack */

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

/* Rules that were found: what is called is mostly called again. A word is an address, mixed with
 * the generation of the list of modules so that an old one is not found, and the number of a rule.
 */
enum { FOUND_SIZE = 4096 };
static atomic_ullong found_rules[FOUND_SIZE];

static inline uint64_t mixed_generation(void)
{
	return atomic_load_explicit(&ranges.generation, memory_order_relaxed) * 0x9e3779b97f4a7c15u;
}

static inline const struct unwind_rule *find_rule(const struct unwind_table *table, uintptr_t base,
						  uintptr_t code, uint64_t mixed)
{
	uint64_t key = (code ^ mixed) << 16;
	atomic_ullong *place = &found_rules[key * 0x9e3779b97f4a7c15u >> 52];
	uint64_t found = atomic_load_explicit(place, memory_order_relaxed);
	const struct unwind_rule *r;

	/* Modules may change while we look: then it is the wrong rule, but there is one. */
	if ((found ^ key) < 1 << 16 && (found & 0xffff) < table->nrules)
		return table->rules + (found & 0xffff);
	r = unwind_find(table, code - base);
	atomic_store_explicit(place, key | (uint64_t)(r - table->rules), memory_order_relaxed);
	return r;
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
	r = find_rule(table, w->range.module->base, code_of(w), mixed_generation());
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

static inline bool is_on_stack(const struct walker *w, uintptr_t address)
{
	return address >= w->low && address < w->high && !(address & 7);
}

/* Frames of the usual kind, as long as they are in the same module; most are. The rest is left to
 * step(). Nothing here goes through memory but the stack itself. */
static uint32_t walk_usual(struct walker *w, frame_t *frames, uint32_t n, uint32_t max)
{
	const struct module *m = w->range.module;
	const struct unwind_table *table = atomic_load_explicit(&m->table, memory_order_acquire);
	uint64_t number = (uint64_t)w->range.number << 48, mixed = mixed_generation();
	uintptr_t pc = w->pc, sp = w->sp, bp = w->bp;

	while (table && n < max && pc > w->range.start && pc <= w->range.end) {
		const struct unwind_rule *r = find_rule(table, m->base, pc - 1, mixed);
		uintptr_t cfa = (r->reg == REGISTER_SP ? sp : bp) + (uintptr_t)(intptr_t)r->offset,
			  saved = cfa + (uintptr_t)(intptr_t)r->bp_offset;

		if (!r->is_usual || cfa <= sp || !is_on_stack(w, cfa - 8) ||
		    (r->bp == BP_AT_CFA && !is_on_stack(w, saved)))
			break;
		frames[n] = number | (pc - 1 - m->base);
		n += pc - 1 - m->own >= m->own_size;
		bp = r->bp == BP_AT_CFA ? *(const uintptr_t *)saved : bp;
		pc = *(const uintptr_t *)(cfa - 8);
		sp = cfa;
	}
	w->pc = pc;
	w->sp = sp;
	w->bp = bp;
	return n;
}

/* The same through any number of modules, up to a frame that is not of that kind. Is that one in a
 * known module? */
static bool walk_modules(struct walker *w, frame_t *frames, uint32_t *n, uint32_t max)
{
	bool is_known = true;
	uintptr_t sp;

	do {
		sp = w->sp;
		*n = walk_usual(w, frames, *n, max);
		is_known = w->pc && find_module(w);
	} while (is_known && w->sp > sp && *n < max);
	return is_known;
}

/* Of the agent's own frames no more than this are left out. */
enum { OWN_FRAMES_MAX = 64 };

static uint32_t end_stack(frame_t *frames, uint32_t n, uint32_t max, frame_t why)
{
	if (n == max)
		n--;
	frames[n] = why;
	return n + 1;
}

static frame_t frame_at(const struct walker *w, bool is_known)
{
	if (!is_known)
		return code_of(w) & FRAME_OFFSET;
	return (frame_t)w->range.number << 48 | (code_of(w) - w->range.module->base);
}

static bool is_own(const struct walker *w)
{
	const struct module *m = w->range.module;

	return code_of(w) - m->own < m->own_size;
}

/* Whoever put a return address on the stack by hand, as makecontext does, means the function that
 * begins there, and not what ends right before. Nobody called that, if it is not the kernel. */
static bool is_put_by_hand(struct walker *w)
{
	const struct unwind_table *table =
		atomic_load_explicit(&w->range.module->table, memory_order_acquire);
	uintptr_t base = w->range.module->base;
	unsigned there;

	if (!table || w->is_exact ||
	    find_rule(table, base, w->pc - 1, mixed_generation())->cfa != CFA_NONE)
		return false;
	there = unwind_find(table, w->pc - base)->cfa;
	w->is_exact = there != CFA_NONE;
	return there != CFA_NONE && there != CFA_SIGNAL;
}

static uint32_t walk(struct walker *w, frame_t *frames, uint32_t max)
{
	enum step went = STEP_DONE;
	uint32_t n = 0, sure = 0;
	bool is_root = false;

	for (uint32_t steps = 0; went == STEP_DONE && steps < max + OWN_FRAMES_MAX; steps++) {
		bool is_known = find_module(w);

		if (is_known && !w->is_exact) {
			is_known = walk_modules(w, frames, &n, max);
			if (!w->pc)
				return n;
			is_root = is_known && is_put_by_hand(w);
		}
		if (!is_known || !is_own(w)) {
			if (n == max)
				return end_stack(frames, n, max, FRAME_TRUNCATED);
			frames[n++] = frame_at(w, is_known);
		}
		if (!w->is_guess)
			sure = n;
		went = is_root ? STEP_ROOT : step(w);
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

/* ---- rings of samples
 *
 * Memory does not grow with the number of threads: a handler takes a ring that nobody else writes
 * to now, and if there is none, or it is full, the sample is lost. */

enum {
	RING_TRIES = 4,
	RING_HIGH = SAMPLE_RING_BYTES / 2, /* the agent should not sleep on */
};

struct entry {
	uint32_t bytes; /* of all of it */
	uint16_t kind, nframes;
	int64_t time;
	uint32_t tid, labels, weight, source;
	frame_t origin;
	uint64_t kin;
	frame_t frames[];
};

enum { ENTRY_MAX = sizeof(struct entry) + STACK_MAX * sizeof(frame_t), KIND_SKIP = 0xffff };

struct ring {
	_Alignas(64) atomic_bool is_taken;
	struct window window;	       /* for whoever has taken it */
	_Alignas(64) atomic_uint head; /* bytes that were written since it was last empty */
	_Alignas(64) atomic_uint tail; /* and read */
};

_Atomic(void *) sample_memory;
static struct ring rings[SAMPLE_RINGS];
static atomic_ullong lost;

static struct ring *take_ring(uint32_t tid)
{
	for (uint32_t i = 0; i < RING_TRIES; i++) {
		struct ring *r = &rings[(tid + i) % SAMPLE_RINGS];

		if (!atomic_load_explicit(&r->is_taken, memory_order_relaxed) &&
		    !atomic_exchange_explicit(&r->is_taken, true, memory_order_acquire))
			return r;
	}
	return NULL;
}

static void give_ring(struct ring *r)
{
	if (r)
		atomic_store_explicit(&r->is_taken, false, memory_order_release);
}

static struct entry *entry_at(const struct ring *r, uint32_t position)
{
	char *memory = atomic_load_explicit(&sample_memory, memory_order_acquire);

	return (struct entry *)(memory + (size_t)(r - rings) * SAMPLE_RING_BYTES +
				position % SAMPLE_RING_BYTES);
}

/* Room for the longest sample, in one piece; NULL: there is none. */
static struct entry *claim(struct ring *r)
{
	uint32_t head = atomic_load_explicit(&r->head, memory_order_relaxed),
		 used = head - atomic_load_explicit(&r->tail, memory_order_acquire),
		 to_end = SAMPLE_RING_BYTES - head % SAMPLE_RING_BYTES,
		 wanted = to_end < ENTRY_MAX ? to_end + ENTRY_MAX : ENTRY_MAX;

	if (!atomic_load_explicit(&sample_memory, memory_order_relaxed) ||
	    SAMPLE_RING_BYTES - used < wanted)
		return NULL;
	if (to_end < ENTRY_MAX) {
		entry_at(r, head)->bytes = to_end;
		entry_at(r, head)->kind = KIND_SKIP;
		head += to_end;
		atomic_store_explicit(&r->head, head, memory_order_release);
	}
	return entry_at(r, head);
}

static void commit(struct ring *r, struct entry *e)
{
	uint32_t head = atomic_load_explicit(&r->head, memory_order_relaxed),
		 used = head - atomic_load_explicit(&r->tail, memory_order_relaxed);

	e->bytes = (uint32_t)(sizeof(*e) + e->nframes * sizeof(frame_t));
	atomic_store_explicit(&r->head, head + e->bytes, memory_order_release);
	if (used <= RING_HIGH && used + e->bytes > RING_HIGH)
		agent_wake();
}

static int64_t time_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* The stack that was interrupted. */
static uint32_t walk_context(const ucontext_t *context, struct window *window, frame_t *frames,
			     uint32_t max)
{
	const greg_t *registers = context->uc_mcontext.gregs;
	struct walk_start start = { (uintptr_t)registers[REG_RIP], (uintptr_t)registers[REG_RSP],
				    (uintptr_t)registers[REG_RBP] };
	struct walker w = { .registers = registers, .window = window };

	window->bytes = 0;
	start_walk(&w, &start);
	return walk(&w, frames, max);
}

struct about {
	uint16_t kind;
	uint32_t tid, weight, source;
	frame_t origin;
	uint64_t kin;
};

/* Without context: there are no frames. */
static void write_sample(const struct about *about, const ucontext_t *context)
{
	struct ring *r = take_ring(about->tid);
	struct entry *e = r ? claim(r) : NULL;

	if (e) {
		e->kind = about->kind;
		e->tid = about->tid;
		e->weight = about->weight;
		e->source = about->source;
		e->origin = about->origin;
		e->kin = about->kin;
		e->time = time_now();
		e->labels = context ? local.labels : 0;
		e->nframes =
			context ? (uint16_t)walk_context(context, &r->window, e->frames, STACK_MAX)
				: 0;
		commit(r, e);
	} else {
		atomic_fetch_add_explicit(&lost, about->weight, memory_order_relaxed);
	}
	give_ring(r);
}

/* One that is empty goes on at its beginning, unless somebody writes to it: few pages are touched.
 */
static void start_over(struct ring *r)
{
	uint32_t head = atomic_load_explicit(&r->head, memory_order_relaxed);

	if (!head || atomic_exchange_explicit(&r->is_taken, true, memory_order_acquire))
		return;
	if (atomic_load_explicit(&r->tail, memory_order_relaxed) ==
	    atomic_load_explicit(&r->head, memory_order_relaxed)) {
		atomic_store_explicit(&r->tail, 0, memory_order_relaxed);
		atomic_store_explicit(&r->head, 0, memory_order_relaxed);
	}
	give_ring(r);
}

static bool take_from(struct ring *r, struct sample *s)
{
	uint32_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
	const struct entry *e;

	while (tail != atomic_load_explicit(&r->head, memory_order_acquire)) {
		e = entry_at(r, tail);
		tail += e->bytes;
		if (e->kind == KIND_SKIP)
			continue;
		s->time = e->time;
		s->tid = e->tid;
		s->labels = e->labels;
		s->weight = e->weight;
		s->source = e->source;
		s->origin = e->origin;
		s->kin = e->kin;
		s->kind = e->kind;
		s->nframes = e->nframes;
		memcpy(s->frames, e->frames, e->nframes * sizeof(frame_t));
		atomic_store_explicit(&r->tail, tail, memory_order_release);
		return true;
	}
	atomic_store_explicit(&r->tail, tail, memory_order_release);
	start_over(r);
	return false;
}

bool samples_take(struct sample *s)
{
	for (uint32_t i = 0; i < SAMPLE_RINGS; i++)
		if (take_from(&rings[i], s))
			return true;
	return false;
}

uint64_t samples_lost(void)
{
	return atomic_exchange(&lost, 0);
}

void samples_reset(void)
{
	for (uint32_t i = 0; i < SAMPLE_RINGS; i++) {
		atomic_store(&rings[i].is_taken, false);
		atomic_store(&rings[i].tail, atomic_load(&rings[i].head));
	}
}

/* ---- what the agent asks of a thread: a signal with a code that nobody else uses */

enum { CODE_DUMP = -7501, CODE_WALL = -7502 };

static uint32_t own_tid(void)
{
	return (uint32_t)kernel_call(SYS_gettid, 0, 0, 0, 0);
}

static bool ask(uint32_t tid, int code, void *value)
{
	long pid = kernel_call(SYS_getpid, 0, 0, 0, 0);
	siginfo_t info;

	memset(&info, 0, sizeof(info));
	info.si_signo = (int)settings.signal;
	info.si_code = code;
	info.si_pid = (pid_t)pid;
	info.si_value.sival_ptr = value;
	return kernel_call(SYS_rt_tgsigqueueinfo, pid, tid, info.si_signo, (long)&info) == 0;
}

bool dump_ask(struct dump_slot *slot, uint32_t tid)
{
	slot->tid = tid;
	atomic_store(&slot->state, DUMP_ASKED);
	return ask(tid, CODE_DUMP, slot);
}

bool wall_ask(uint32_t tid)
{
	return ask(tid, CODE_WALL, NULL);
}

enum call { CALL_NONE, CALL_DONE, CALL_AGAIN };

/* Was the thread in a system call, which is done, or made once more when we are? */
static enum call find_call(const ucontext_t *context)
{
	const uint8_t *pc = (const uint8_t *)context->uc_mcontext.gregs[REG_RIP];
	struct range r;

	if (!range_find((uintptr_t)pc - 2, &r) || !range_find((uintptr_t)pc + 2, &r))
		return CALL_NONE;
	if (pc[0] == 0x0f && pc[1] == 0x05)
		return CALL_AGAIN;
	return pc[-2] == 0x0f && pc[-1] == 0x05 ? CALL_DONE : CALL_NONE;
}

/* Is the thread in a system call, which goes on or fails when we are done? */
static bool is_in_call(const ucontext_t *context)
{
	enum call call = find_call(context);

	return call == CALL_AGAIN ||
	       (call == CALL_DONE && context->uc_mcontext.gregs[REG_RAX] == -EINTR);
}

static uint64_t thread_clock(void)
{
	struct timespec t = { 0, 0 };

	kernel_call(SYS_clock_gettime, CLOCK_THREAD_CPUTIME_ID, (long)&t, 0, 0);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void answer_dump(struct dump_slot *slot, const ucontext_t *context)
{
	uint32_t asked = DUMP_ASKED, tid = own_tid();

	if (slot->tid != tid || !atomic_compare_exchange_strong(&slot->state, &asked, DUMP_WRITING))
		return;
	slot->labels = local.labels;
	slot->is_waiting = is_in_call(context);
	kernel_call(SYS_prctl, PR_GET_NAME, (long)slot->name, 0, 0);
	slot->nframes = walk_context(context, &slot->window, slot->frames, STACK_MAX);
	atomic_store(&slot->state, DUMP_ANSWERED);
}

/* With the CPU clock, by which the thread is seen to have gone on. */
static void answer_wall(const ucontext_t *context)
{
	write_sample(&(struct about){ SAMPLE_WALL, own_tid(), 1, is_in_call(context), 0,
				      thread_clock() },
		     context);
}

/* ---- ticks of timers */

_Atomic(struct cpu_timer *) cpu_timers;
struct cpu_pace cpu_pace = { .period = 1 };
atomic_bool cpu_has_common_timer;

/* The timer that a signal came from; NULL: none of ours. */
static struct cpu_timer *timer_of(const siginfo_t *info)
{
	struct cpu_timer *first = atomic_load_explicit(&cpu_timers, memory_order_acquire);
	uintptr_t place = (uintptr_t)info->si_value.sival_ptr - (uintptr_t)first;

	if (info->si_code != SI_TIMER || !first || place >= TIMERS_MAX * sizeof(*first) ||
	    place % sizeof(*first))
		return NULL;
	return first + place / sizeof(*first);
}

static void tick(struct cpu_timer *timer, uint32_t weight, const ucontext_t *context)
{
	struct cpu_timer *first = atomic_load_explicit(&cpu_timers, memory_order_relaxed);
	uint32_t tid = atomic_load_explicit(&timer->tid, memory_order_relaxed);

	/* What a thread used when it ends and has no ticks for is given to its other stacks. */
	if (!weight || !agent_is_on(ON_CPU) || local.is_between)
		return;
	atomic_fetch_add_explicit(&timer->ticks, weight, memory_order_relaxed);
	write_sample(&(struct about){ SAMPLE_CPU, tid, weight, (uint32_t)(timer - first),
				      timer->origin, timer->kin },
		     context);
}

void sample_rest(enum sample_kind kind, uint32_t number, uint32_t tid, uint32_t weight)
{
	const struct cpu_timer *timer =
		atomic_load_explicit(&cpu_timers, memory_order_relaxed) + number;

	write_sample(
		&(struct about){ (uint16_t)kind, tid, weight, number, timer->origin, timer->kin },
		NULL);
}

/* A tick of the timer that all threads share. */
static void tick_in_common(const ucontext_t *context)
{
	uint32_t tid = own_tid();

	if (agent_is_on(ON_CPU) && !cpu_timer_of(tid))
		write_sample(&(struct about){ SAMPLE_CPU, tid, 1, TIMERS_MAX, 0, 0 }, context);
}

/* ---- ticks of perf events
 *
 * They come in the program's own code. Each stands for the same time, and so do ticks of the timer
 * that meet such code. What the thread's clock says is due beyond that was used in the kernel: it
 * belongs to the system calls that the timer's ticks meet, or, if they meet none for long, to
 * whatever they meet. */

enum { PATIENCE_NS = 20000000, CREDIT_MAX = 4, SECOND = 1000000000 };

static atomic_uchar event_fds[(EVENT_FD_MAX + 1) / 8];

void event_fds_note(int fd)
{
	atomic_fetch_or(&event_fds[fd / 8], (unsigned char)(1 << fd % 8));
}

/* Of an event that we have, or had: its last signal may come late, and must not end the program. */
static bool is_event_tick(const siginfo_t *info)
{
	return (info->si_code == POLL_IN || info->si_code == POLL_HUP) && info->si_fd >= 0 &&
	       info->si_fd <= EVENT_FD_MAX &&
	       atomic_load_explicit(&event_fds[info->si_fd / 8], memory_order_relaxed) >>
			       info->si_fd % 8 &
		       1;
}

/* Of a thread whose clock is at `used`. */
static uint32_t missing_ticks(const struct cpu_timer *timer, uint64_t used)
{
	uint64_t due = timer_due(timer, used),
		 ticks = atomic_load_explicit(&timer->ticks, memory_order_relaxed);

	return due > ticks ? (uint32_t)(due - ticks) : 0;
}

/* Whole ticks that a sample of the program's own code stands for, of those that are missing. */
static uint32_t worth(struct cpu_timer *timer, uint32_t missing)
{
	uint64_t ticks;

	timer->credit += cpu_pace.stands_for;
	ticks = timer->credit / cpu_pace.period;
	if (ticks > missing)
		ticks = missing;
	timer->credit -= ticks * cpu_pace.period;
	if (timer->credit > CREDIT_MAX * cpu_pace.stands_for)
		timer->credit = CREDIT_MAX * cpu_pace.stands_for;
	return (uint32_t)ticks;
}

static void tick_by_event(int fd, const ucontext_t *context)
{
	struct cpu_timer *timer = cpu_timer_of(own_tid());

	if (!timer || EVENT_FD(atomic_load_explicit(&timer->event, memory_order_relaxed)) != fd)
		return;
	if (!timer->is_steady)
		kernel_call(SYS_ioctl, fd, PERF_EVENT_IOC_PERIOD, (long)&cpu_pace.event_period, 0);
	timer->is_steady = true;
	tick(timer, worth(timer, missing_ticks(timer, thread_clock())), context);
}

void cpu_timer_arm(int id, uint64_t at)
{
	struct itimerspec t = { { (time_t)(cpu_pace.period / SECOND),
				  (long)(cpu_pace.period % SECOND) },
				{ (time_t)(at / SECOND), (long)(at % SECOND) } };

	kernel_call(SYS_timer_settime, id, TIMER_ABSTIME, (long)&t, 0);
}

/* Of a thread whose clock is at `used`. */
static void arm_next(const struct cpu_timer *timer, uint64_t used)
{
	int id = atomic_load_explicit(&timer->id, memory_order_relaxed);
	uint64_t n = timer_due(timer, used);

	if (id >= 0)
		cpu_timer_arm(id, timer_begin(timer) + n * cpu_pace.period + timer_delay(timer, n));
}

static void tick_by_timer(struct cpu_timer *timer, int overrun, const ucontext_t *context)
{
	uint64_t event = atomic_load_explicit(&timer->event, memory_order_relaxed), used;
	uint32_t weight = 1 + (uint32_t)overrun;

	/* A signal that was blocked for long may be of a profile when this was our timer. */
	if (atomic_load_explicit(&timer->tid, memory_order_relaxed) != own_tid())
		return;
	if (event) {
		weight = missing_ticks(timer, thread_clock());
		if (event == EVENT_WANTED)
			perf_open(timer);
		else if (event != EVENT_GONE && weight * cpu_pace.period < PATIENCE_NS &&
			 find_call(context) == CALL_NONE)
			weight = cpu_pace.timers_count ? worth(timer, weight) : 0;
	} else if (cpu_pace.is_uneven) {
		used = thread_clock();
		weight = missing_ticks(timer, used);
		arm_next(timer, used);
	}
	tick(timer, weight, context);
}

/* ---- what the program has installed: two, one is read while the other is written */

static struct sigaction program_actions[2];
static atomic_uint program_generation;

void signal_set_program_action(const struct sigaction *action)
{
	unsigned next = atomic_load(&program_generation) + 1;

	program_actions[next & 1] = *action;
	atomic_store(&program_generation, next);
}

void signal_get_program_action(struct sigaction *action)
{
	unsigned generation;

	do {
		generation = atomic_load(&program_generation);
		*action = program_actions[generation & 1];
		atomic_thread_fence(memory_order_acquire);
	} while (atomic_load(&program_generation) != generation);
}

/* As the kernel has it. */
struct kernel_sigaction {
	void *handler;
	unsigned long flags;
	void *restorer;
	uint64_t mask;
};

/* The program left the signal as it was, and somebody else sent it: that ends it. */
static void die_by(int number)
{
	struct kernel_sigaction standard = { 0 };
	uint64_t set = 1ul << (number - 1);

	kernel_call(SYS_rt_sigaction, number, (long)&standard, 0, sizeof(set));
	kernel_call(SYS_tgkill, kernel_call(SYS_getpid, 0, 0, 0, 0), own_tid(), number, 0);
	kernel_call(SYS_rt_sigprocmask, SIG_UNBLOCK, (long)&set, 0, sizeof(set));
}

/* Calls the program's handler as the kernel would have. */
static void pass_on(int number, siginfo_t *info, ucontext_t *context)
{
	struct sigaction a;
	uint64_t mask, added;

	signal_get_program_action(&a);
	if (a.sa_handler == SIG_IGN)
		return;
	if (a.sa_handler == SIG_DFL) {
		die_by(number);
		return;
	}
	memcpy(&mask, &context->uc_sigmask, sizeof(mask));
	memcpy(&added, &a.sa_mask, sizeof(added));
	mask |= added;
	if (!(a.sa_flags & SA_NODEFER))
		mask |= 1ul << (number - 1);
	if (a.sa_flags & (int)SA_RESETHAND)
		signal_set_program_action(&(struct sigaction){ .sa_handler = SIG_DFL });
	kernel_call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&mask, 0, sizeof(mask));
	a.sa_sigaction(number, info, context);
}

/* ---- the handler */

static bool has_program_handler(void)
{
	struct sigaction a;

	signal_get_program_action(&a);
	return a.sa_handler != SIG_DFL && a.sa_handler != SIG_IGN;
}

/* Who may queue no more signals (RLIMIT_SIGPENDING) has them come without their details. */
static bool is_nameless(const siginfo_t *info)
{
	return info->si_code == SI_USER && info->si_pid == 0 && !has_program_handler();
}

/* Once we had that timer its last signal may come late, which must not end the program. */
static bool is_common_tick(const siginfo_t *info)
{
	return info->si_code == SI_KERNEL && atomic_load(&cpu_has_common_timer);
}

bool signal_is_ours(const siginfo_t *info)
{
	return info->si_code == CODE_DUMP || info->si_code == CODE_WALL || timer_of(info) ||
	       is_event_tick(info) || is_common_tick(info) || is_nameless(info);
}

/* A system call of the program returns EINTR, and that is our doing: whoever waits goes on waiting
 * (hooks_wait.c). If another signal is about to be handled it is not. */
static void note_broken_call(const ucontext_t *context)
{
	uint64_t pending = 0, blocked;

	if (context->uc_mcontext.gregs[REG_RAX] != -EINTR || !is_in_call(context))
		return;
	memcpy(&blocked, &context->uc_sigmask, sizeof(blocked));
	kernel_call(SYS_rt_sigpending, (long)&pending, sizeof(pending), 0, 0);
	if (!(pending & ~blocked)) {
		local.nsignals++;
		local.error = errno;
	}
}

void signal_handler(int number, siginfo_t *info, void *data)
{
	ucontext_t *context = data;
	struct cpu_timer *timer = timer_of(info);

	if (timer) {
		tick_by_timer(timer, info->si_overrun, context);
	} else if (is_event_tick(info)) {
		tick_by_event(info->si_fd, context);
	} else if (info->si_code == CODE_DUMP) {
		answer_dump(info->si_value.sival_ptr, context);
	} else if (info->si_code == CODE_WALL) {
		answer_wall(context);
	} else if (is_common_tick(info)) {
		tick_in_common(context);
		if (has_program_handler())
			pass_on(number, info, context);
	} else if (!is_nameless(info)) {
		pass_on(number, info, context);
		return;
	}
	note_broken_call(context);
}
