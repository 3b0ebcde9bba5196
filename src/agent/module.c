/* module.c - what the loader says is loaded.
 *
 * Numbers of modules are looked up in a sorted list of address ranges. There are two of it: one is
 * read while the other is written. A reader that finds that another change has begun meanwhile has
 * read nonsense, but nothing outside the list, and looks once more.
 *
 * Our lock is taken inside the loader's (dl_iterate_phdr), never the other way round.
 */
#include "agent/module.h"

#include <elf.h>
#include <link.h>
#include <string.h>
#include <time.h>
#include <sys/auxv.h>
#include <sys/uio.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/kernel.h"
#include "agent/memory.h"
#include "agent/modules.h"
#include "agent/unwind.h"

/* A module, and what is needed until its table is there. */
struct entry {
	struct module m;
	struct unwind_source source;
	bool is_seen; /* by the update that runs */
	bool stays;   /* loaded with the program: it is never unloaded */
};

enum { LATER_BYTES = 1 << 20 }; /* of unwind information: about 10 ms of work */

static struct lock update_lock;
static struct region memory;
static struct entry *entries[MODULES_MAX + 1];
static atomic_uint count;
static unsigned long long loader_adds, loader_subs;
static bool has_looked;
struct ranges ranges;

/* ---- what is new */

struct found {
	const struct dl_phdr_info *info;
	struct module m;
	struct unwind_source source;
};

static void read_build_id(struct module *m, const ElfW(Phdr) * h)
{
	const char *p = (const char *)(m->base + h->p_vaddr), *end = p + h->p_filesz;

	while (end - p >= (ptrdiff_t)sizeof(ElfW(Nhdr))) {
		const ElfW(Nhdr) *note = (const ElfW(Nhdr) *)p;
		size_t name = (note->n_namesz + 3u) & ~3u, desc = (note->n_descsz + 3u) & ~3u;

		p += sizeof(*note);
		if (name > (size_t)(end - p) || desc > (size_t)(end - p) - name)
			return;
		if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 &&
		    memcmp(p, "GNU", 4) == 0 && note->n_descsz <= sizeof(m->build_id)) {
			memcpy(m->build_id, p + name, note->n_descsz);
			m->build_id_size = note->n_descsz;
			return;
		}
		p += name + desc;
	}
}

static void read_segment(struct found *f, const ElfW(Phdr) * h)
{
	uintptr_t start = f->m.base + h->p_vaddr, end = start + h->p_memsz;

	if (!f->m.end || start < f->m.start)
		f->m.start = start & ~(uintptr_t)4095;
	if (end > f->m.end)
		f->m.end = (end + 4095) & ~(uintptr_t)4095;
	if (h->p_flags & PF_X && !f->m.text) {
		f->m.text = start;
		f->m.text_end = end;
		f->m.text_offset = h->p_offset;
	}
}

static void find_unwind_source(struct found *f)
{
	const struct dl_phdr_info *info = f->info;
	struct unwind_source *s = &f->source;

	*s = (struct unwind_source){ .base = f->m.base, .code_end = f->m.end };
	for (unsigned i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_GNU_EH_FRAME)
			s->header = f->m.base + info->dlpi_phdr[i].p_vaddr;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &info->dlpi_phdr[i];
		uintptr_t start = f->m.base + h->p_vaddr;

		if (h->p_type == PT_LOAD && h->p_flags & PF_R && s->header >= start &&
		    s->header - start < h->p_filesz) {
			s->start = start;
			s->end = start + h->p_filesz;
		}
	}
}

/* libkiln.a has its code in a section of this name, in the midst of the program's. */
extern const char __start_kiln_code[] __attribute__((weak, visibility("hidden")));
extern const char __stop_kiln_code[] __attribute__((weak, visibility("hidden")));

static void find_own_code(struct module *m)
{
	bool is_linked_in = __start_kiln_code;

	m->own = is_linked_in ? (uintptr_t)__start_kiln_code : m->text;
	m->own_size = (is_linked_in ? (uintptr_t)__stop_kiln_code : m->text_end) - m->own;
}

static bool read_module(struct found *f)
{
	f->m.base = f->info->dlpi_addr;
	for (unsigned i = 0; i < f->info->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &f->info->dlpi_phdr[i];

		if (h->p_type == PT_LOAD && h->p_memsz)
			read_segment(f, h);
		else if (h->p_type == PT_NOTE && !f->m.build_id_size)
			read_build_id(&f->m, h);
	}
	if (!f->m.text)
		return false;
	find_unwind_source(f);
	if (f->m.start <= (uintptr_t)&ranges && (uintptr_t)&ranges < f->m.end)
		find_own_code(&f->m);
	return true;
}

/* Names of modules: the first has none, it is the program. */
static const char *name_module(const struct found *f)
{
	const char *name = f->info->dlpi_name;
	char path[4096];
	ssize_t n;

	if (name && *name)
		return strncmp(name, "linux-vdso", 10) == 0
			       ? "[vdso]"
			       : region_text(&memory, name, strlen(name));
	n = readlink("/proc/self/exe", path, sizeof(path));
	if (n > 0)
		return region_text(&memory, path, (size_t)n);
	name = (const char *)getauxval(AT_EXECFN);
	return name && *name == '/' ? region_text(&memory, name, strlen(name)) : "";
}

static bool is_same(const struct module *a, const struct module *b)
{
	return a->base == b->base && a->start == b->start && a->end == b->end &&
	       a->build_id_size == b->build_id_size &&
	       memcmp(a->build_id, b->build_id, a->build_id_size) == 0;
}

static bool is_named(const struct module *m, const char *name)
{
	return !name || !*name || m->path[0] == '[' || strcmp(m->path, name) == 0;
}

/* It was here before, at the same place: its number is good. */
static bool find_again(const struct found *f)
{
	for (unsigned i = atomic_load(&count); i > 0; i--) {
		struct entry *e = entries[i];

		if (is_same(&e->m, &f->m) && is_named(&e->m, f->info->dlpi_name)) {
			e->is_seen = true;
			atomic_store(&e->m.is_gone, false);
			return true;
		}
	}
	return false;
}

/* The same file at another place has the same table. */
static const struct unwind_table *share_table(const struct module *m)
{
	for (unsigned i = 1; m->build_id_size && i <= atomic_load(&count); i++) {
		const struct module *o = &entries[i]->m;

		if (o->build_id_size == m->build_id_size && atomic_load(&o->table) &&
		    o->end - o->base == m->end - m->base &&
		    memcmp(o->build_id, m->build_id, m->build_id_size) == 0)
			return atomic_load(&o->table);
	}
	return NULL;
}

static void add_module(const struct found *f)
{
	unsigned number = atomic_load(&count) + 1;
	struct entry *e = number <= MODULES_MAX ? region_alloc(&memory, sizeof(*e)) : NULL;

	if (!e)
		return;
	memcpy(&e->m, &f->m, sizeof(e->m));
	e->m.path = name_module(f);
	if (!e->m.path)
		return;
	atomic_init(&e->m.table, share_table(&f->m));
	e->source = f->source;
	e->is_seen = true;
	e->stays = !has_looked;
	entries[number] = e;
	atomic_store(&count, number);
}

/* ---- the list for those who look */

static void publish(void)
{
	unsigned generation = atomic_load(&ranges.generation), n = 0;
	struct range *list = ranges.lists[(generation + 1) & 1];

	for (unsigned i = 1; i <= atomic_load(&count); i++) {
		const struct module *m = &entries[i]->m;
		unsigned at = n;

		if (atomic_load(&m->is_gone))
			continue;
		for (; at > 0 && list[at - 1].start > m->start; at--)
			list[at] = list[at - 1];
		list[at] = (struct range){ m->start, m->end, m, i };
		n++;
	}
	ranges.counts[(generation + 1) & 1] = n;
	atomic_store(&ranges.generation, generation + 1);
}

/* ---- tables */

static struct unwind_scratch scratch; /* of whoever has the lock */

static void build_table(struct entry *e)
{
	if (!atomic_load(&e->m.table))
		atomic_store(&e->m.table, unwind_build(&e->source, &scratch));
}

static bool takes_long(const struct entry *e)
{
	return e->source.end - e->source.header > LATER_BYTES;
}

/* Of those that stay; the loader need not wait for it. */
static bool build_tables(bool later)
{
	bool is_done = true;

	for (unsigned i = 1; i <= atomic_load(&count); i++) {
		struct entry *e = entries[i];

		if (atomic_load(&e->m.table) || atomic_load(&e->m.is_gone))
			continue;
		if (later && takes_long(e))
			is_done = false;
		else if (e->stays)
			build_table(e);
	}
	return is_done;
}

/* ---- what the loader has */

/* The loader's list is of one namespace. Those that dlmopen has made are known to debuggers. */
extern const struct r_debug_extended debugger_list __asm__("_r_debug") __attribute__((weak));

struct visit {
	int (*look)(struct dl_phdr_info *info, size_t size, void *data);
	void *data;
	bool has_others;
};

static bool read_head(uintptr_t at, ElfW(Ehdr) * head)
{
	struct iovec to = { head, sizeof(*head) }, from = { (void *)at, sizeof(*head) };

	return process_vm_readv(getpid(), &to, 1, &from, 1, 0) == (ssize_t)sizeof(*head) &&
	       memcmp(head->e_ident, ELFMAG, SELFMAG) == 0 &&
	       head->e_phentsize == sizeof(ElfW(Phdr)) &&
	       head->e_phoff + head->e_phnum * sizeof(ElfW(Phdr)) <= 4096;
}

static void visit_map(struct visit *v, const struct link_map *map, const struct dl_phdr_info *like,
		      size_t size)
{
	struct dl_phdr_info info = *like;
	ElfW(Ehdr) head;

	if (!read_head(map->l_addr, &head))
		return;
	info.dlpi_addr = map->l_addr;
	info.dlpi_name = map->l_name;
	info.dlpi_phdr = (const void *)(map->l_addr + head.e_phoff);
	info.dlpi_phnum = head.e_phnum;
	v->look(&info, size, v->data);
}

static int visit(struct dl_phdr_info *info, size_t size, void *data)
{
	const struct r_debug_extended *space = &debugger_list;
	struct visit *v = data;
	int is_enough = v->look(info, size, v->data);

	if (is_enough || v->has_others)
		return is_enough;
	v->has_others = true;
	space = space && space->base.r_version >= 2 ? space->r_next : NULL;
	for (; space; space = space->r_next)
		for (const struct link_map *map = space->base.r_map; map; map = map->l_next)
			visit_map(v, map, info, size);
	return 0;
}

static void visit_modules(int (*look)(struct dl_phdr_info *info, size_t size, void *data),
			  void *data)
{
	struct visit v = { .look = look, .data = data };

	dl_iterate_phdr(visit, &v);
}

/* ---- updates */

struct update {
	bool has_lock, is_new, later;
};

static int look_at(struct dl_phdr_info *info, size_t size, void *data)
{
	struct update *u = data;
	struct found f = { .info = info };

	(void)size;
	if (!u->has_lock) {
		lock_take(&update_lock);
		u->has_lock = true;
		u->is_new = !has_looked || loader_adds != info->dlpi_adds ||
			    loader_subs != info->dlpi_subs;
		loader_adds = info->dlpi_adds;
		loader_subs = info->dlpi_subs;
		for (unsigned i = 1; u->is_new && i <= atomic_load(&count); i++)
			entries[i]->is_seen = false;
	}
	if (!u->is_new)
		return 1;
	if (read_module(&f) && !find_again(&f))
		add_module(&f);
	return 0;
}

/* What may be unloaded is read while the loader waits. */
static int read_unloadable(struct dl_phdr_info *info, size_t size, void *data)
{
	struct update *u = data;
	struct found f = { .info = info };

	(void)size;
	if (!u->has_lock) {
		lock_take(&update_lock);
		u->has_lock = true;
	}
	if (!read_module(&f))
		return 0;
	for (unsigned i = atomic_load(&count); i > 0; i--) {
		struct entry *e = entries[i];

		if (!e->stays && is_same(&e->m, &f.m) && !(u->later && takes_long(e)))
			build_table(e);
	}
	return 0;
}

static bool has_unloadable(void)
{
	for (unsigned i = 1; i <= atomic_load(&count); i++) {
		const struct entry *e = entries[i];

		if (!e->stays && !atomic_load(&e->m.table) && !atomic_load(&e->m.is_gone))
			return true;
	}
	return false;
}

static void update(bool later)
{
	struct update u = { .later = later }, again = { .later = later };
	bool is_done, has_more;

	visit_modules(look_at, &u);
	if (!u.has_lock)
		return;
	for (unsigned i = 1; u.is_new && i <= atomic_load(&count); i++)
		if (!entries[i]->is_seen)
			atomic_store(&entries[i]->m.is_gone, true);
	if (u.is_new)
		publish();
	has_looked = true;
	is_done = build_tables(later);
	has_more = has_unloadable();
	unwind_scratch_release(&scratch);
	lock_give(&update_lock);
	if (has_more)
		visit_modules(read_unloadable, &again);
	if (again.has_lock) {
		unwind_scratch_release(&scratch);
		lock_give(&update_lock);
	}
	if (!is_done)
		agent_wake();
}

/* A child must not find the loader's lock taken by a thread of ours, which it does not have. */
static atomic_int nlooking, nforking;

void modules_update(bool later)
{
	atomic_fetch_add(&nlooking, 1);
	if (!atomic_load(&nforking))
		update(later);
	atomic_fetch_sub(&nlooking, 1);
}

unsigned modules_count(void)
{
	return atomic_load(&count);
}

const struct module *module_get(unsigned number)
{
	return number && number <= atomic_load(&count) ? &entries[number]->m : NULL;
}

frame_t frame_of(uintptr_t pc)
{
	struct range r;

	return range_find(pc, &r) ? (frame_t)r.number << 48 | (pc - r.module->base) : pc;
}

uintptr_t frame_address(frame_t f)
{
	const struct module *m = module_get(frame_module(f));

	return m ? m->base + (f & FRAME_OFFSET) : f & FRAME_OFFSET;
}

/* ---- the part */

/* While samples are taken, new code should have tables soon. Right after a dlopen has begun it is
 * looked for more and more seldom. */
enum { SOON_NS = 500000, OFTEN_NS = 250000000, SELDOM_NS = 1000000000 };

static atomic_llong pause_ns = OFTEN_NS;

void modules_expect(void)
{
	atomic_store(&pause_ns, SOON_NS);
	if (agent_start_thread())
		agent_wake();
}

static int64_t work(int64_t now)
{
	long long pause = atomic_load(&pause_ns),
		  most = agent_is_on(ON_CPU | ON_WALL) ? OFTEN_NS : SELDOM_NS;

	if (!agent_is_on(~0u))
		return INT64_MAX;
	modules_update(false);
	if (pause < most)
		atomic_compare_exchange_strong(&pause_ns, &pause, pause * 2);
	return now + (pause < most ? pause : most);
}

enum { PATIENCE_MS = 50 };

static void before_fork(void)
{
	struct timespec pause = { 0, 1000000 };

	atomic_fetch_add(&nforking, 1);
	for (int i = 0; i < PATIENCE_MS && atomic_load(&nlooking); i++)
		kernel_call(SYS_nanosleep, (long)&pause, 0, 0, 0);
	lock_take(&update_lock);
}

static void after_fork(void)
{
	lock_give(&update_lock);
	atomic_fetch_sub(&nforking, 1);
}

static void in_child(void)
{
	atomic_store(&nlooking, 0);
	atomic_store(&nforking, 1);
	after_fork();
}

const struct agent_part part_modules = { .name = "modules",
					 .work = work,
					 .before_fork = before_fork,
					 .after_fork = after_fork,
					 .in_child = in_child };
