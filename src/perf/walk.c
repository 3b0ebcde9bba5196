#include "perf/walk.h"

enum {
	FRAMES_MAX = 1024,
	X86_PC = 8, /* perf's number */
	AARCH64_PC = 32,
};

/* Entries of a call chain that say whose addresses follow. */
#define CONTEXT_FIRST ((uint64_t)-4095)
#define CONTEXT_KERNEL ((uint64_t)-128)
#define CONTEXT_USER ((uint64_t)-512)

void walker_init(struct walker *w, struct machine *m, const struct locate_params *locate)
{
	struct str arch = m->d->arch;

	*w = (struct walker){ .machine = m, .locate = locate };
	/* In a pipe it may not be told; then it is probably the machine we are on. */
	if (str_eq(arch, STR("aarch64")))
		w->cpu = UNWIND_AARCH64;
#ifdef __aarch64__
	else if (!arch.n)
		w->cpu = UNWIND_AARCH64;
#endif
	w->can_unwind = !m->d->is_swapped &&
			(!arch.n || w->cpu == UNWIND_AARCH64 || str_eq(arch, STR("x86_64")));
}

void walker_release(struct walker *w)
{
	for (size_t i = 0; i < w->files.n; i++)
		unwind_close(w->files.at[i].table);
	vec_release(&w->files);
	map_release(&w->by_file);
	vec_release(&w->unwound);
	vec_release(&w->frames);
}

/* ---- files */

struct file_key {
	const struct walker *w;
	uint32_t file, build_id;
};

static bool same_file(const void *ctx, uint32_t index)
{
	const struct file_key *key = ctx;
	const struct unwind_file *f = &key->w->files.at[index];

	return f->file == key->file && f->build_id == key->build_id;
}

/* Looks for the file as it is looked for when names are wanted. */
static struct unwind_table *open_file(const struct walker *w, struct mapping mapping)
{
	struct strings *strings = w->machine->b->head.strings;
	struct profile p = { .strings = strings, .mappings = &mapping, .nmappings = 1 };
	struct arena a = { 0 };
	struct buf ignored = { 0 };
	struct str file, build_id;
	struct unwind_table *t = NULL;

	if (w->locate) {
		struct locate_params params = *w->locate;

		params.exec_name = params.build_id = "";
		profile_locate_binaries(&a, &p, &params, &ignored);
	}
	file = strings->at[p.mappings[0].file];
	build_id = strings->at[p.mappings[0].build_id];
	if (file.n && file.p[0] != '[' && !memchr(file.p, '\0', file.n))
		t = unwind_open(str_dup(&a, file), build_id, w->cpu);
	buf_release(&ignored);
	arena_release(&a);
	return t;
}

static struct unwind_table *find_table(struct walker *w, uint32_t mapping)
{
	const struct mapping *m = &w->machine->b->mappings.at[mapping];
	struct file_key key = { w, m->file, m->build_id };
	uint64_t hash = hash_mix(w->machine->seed, (uint64_t)m->file << 32 | m->build_id);
	uint32_t i = map_put(&w->by_file, hash, w->files.n, same_file, &key);

	if (i == w->files.n) {
		struct unwind_table *t = w->is_foreign ? NULL : open_file(w, *m);

		vec_push(&w->files, (struct unwind_file){ m->file, m->build_id, t });
	}
	return w->files.at[i].table;
}

/* ---- unwinding */

/* DWARF's number of one of perf's registers; UNWIND_REGISTERS for others. */
static uint32_t dwarf_register(enum unwind_machine cpu, uint32_t i)
{
	static const uint8_t x86[] = { 0, 3, 2, 1, 4, 5, 6, 7 };

	if (cpu == UNWIND_AARCH64)
		return i < AARCH64_PC ? i : UNWIND_REGISTERS;
	if (i < sizeof(x86))
		return x86[i];
	return i >= 16 && i < 24 ? i - 8 : UNWIND_REGISTERS;
}

static bool read_registers(const struct walker *w, const struct perf_sample *s,
			   struct unwind_frame *f)
{
	const struct perf_data *d = w->machine->d;
	uint64_t mask = d->events.at[s->event].user_registers;
	uint32_t pc = w->cpu == UNWIND_AARCH64 ? AARCH64_PC : X86_PC;
	const char *at = s->registers;

	*f = (struct unwind_frame){ 0 };
	for (uint32_t i = 0; i < 64; i++) {
		uint32_t reg = dwarf_register(w->cpu, i);

		if (!(mask >> i & 1))
			continue;
		if (i == pc)
			f->pc = perf_u64(d, at);
		else if (reg < UNWIND_REGISTERS)
			f->registers[reg] = perf_u64(d, at);
		at += 8;
	}
	return f->pc != 0;
}

/* By the tables of the file that the pc is in; where there are none, by the frame pointer. */
static bool step(struct walker *w, uint32_t pid, struct unwind_frame *f,
		 const struct unwind_stack *stack)
{
	struct machine *m = w->machine;
	const struct range *r = machine_find(m, pid, MODE_USER, f->pc - f->is_return);
	struct unwind_table *t = r ? find_table(w, r->mapping) : NULL;
	struct unwind_frame before = *f;

	if (!r)
		return false;
	if (t) {
		const struct mapping *mapping = &m->b->mappings.at[r->mapping];

		return unwind_step(t, f->pc + r->shift - mapping->start + mapping->offset, f,
				   stack);
	}
	if (unwind_step_frame_pointer(w->cpu, f, stack) &&
	    machine_find(m, pid, MODE_USER, f->pc - 1))
		return true;
	*f = before;
	return false;
}

static void unwind(struct walker *w, const struct perf_sample *s)
{
	struct unwind_frame f;
	struct unwind_stack stack;

	w->unwound.n = 0;
	if (!w->can_unwind || !s->registers || !s->is_64 || !s->stack.n ||
	    !read_registers(w, s, &f))
		return;
	stack = (struct unwind_stack){ f.registers[unwind_stack_pointer(w->cpu)], s->stack };
	do {
		vec_push(&w->unwound, (struct walk_frame){ f.pc, MODE_USER, f.is_return });
		/* A frame has at least a return address, or there is a loop. */
	} while (w->unwound.n < FRAMES_MAX && w->unwound.n < s->stack.n / 8 + 2 &&
		 step(w, s->pid, &f, &stack));
	/* With precise events the sample knows better than the registers, which were saved later.
	 */
	if (s->mode == MODE_USER && s->ip)
		w->unwound.at[0].address = s->ip;
}

/* ---- call chains */

static bool read_context(uint64_t entry, uint8_t *mode)
{
	if (entry < CONTEXT_FIRST)
		return false;
	*mode = entry == CONTEXT_KERNEL ? MODE_KERNEL
		: entry == CONTEXT_USER ? MODE_USER
					: MODE_UNKNOWN;
	return true;
}

void walker_walk(struct walker *w, const struct perf_sample *s)
{
	const struct perf_data *d = w->machine->d;
	bool is_first = true, has_user_chain = false;
	uint8_t mode = s->mode;

	unwind(w, s);
	w->frames.n = 0;
	for (size_t i = 0; i < s->nchain; i++) {
		uint64_t address = perf_u64(d, s->chain + 8 * i);

		if (read_context(address, &mode)) {
			is_first = true;
			continue;
		}
		if (mode != MODE_USER || w->unwound.n < 2) {
			vec_push(&w->frames, (struct walk_frame){ address, mode, !is_first });
			has_user_chain |= mode == MODE_USER;
		}
		is_first = false;
	}
	for (size_t i = 0; i < w->unwound.n && !has_user_chain; i++)
		vec_push(&w->frames, w->unwound.at[i]);
	if (!w->frames.n && s->ip)
		vec_push(&w->frames, (struct walk_frame){ s->ip, s->mode, false });
}
