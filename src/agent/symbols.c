/* symbols.c - tables of symbols are kept while they are asked for, and for a while after. */
#include "agent/symbols.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/agent.h"
#include "agent/memory.h"
#include "agent/names.h"

enum { KEPT_MAX = 128 << 20 }; /* bytes of all tables */
#define SECOND ((int64_t)1000000000)
#define KEPT_TIME (30 * SECOND)
#define LOOK_TIME SECOND /* between two looks at what a JIT compiler has added */

struct table {
	struct names symbols;
	bool is_read;
};

static struct {
	struct lock lock;
	struct table *tables; /* by module, of 0: what was compiled at run time */
	int64_t used_at, looked_at;
	struct timespec jit_time;
	size_t kept; /* bytes */
} all;

static size_t bytes_of(const struct table *t)
{
	return t->symbols.symbols_bytes + t->symbols.text_bytes;
}

static void drop(struct table *t)
{
	all.kept -= bytes_of(t);
	names_release(&t->symbols);
	t->is_read = false;
}

static void keep(struct table *t)
{
	bool is_first = !all.kept;

	t->is_read = true;
	all.kept += bytes_of(t);
	if (is_first && all.kept)
		agent_wake(); /* to call symbols_trim */
}

/* ---- code of files */

static bool is_program(const struct module *m)
{
	uintptr_t inside = getauxval(AT_PHDR);

	return m->start <= inside && inside < m->end;
}

/* The program's own file can be opened even if it was deleted or is elsewhere by now, if there is a
 * /proc. */
static bool read_program(struct table *t, const struct module *m)
{
	return names_read_file(&t->symbols, "/proc/self/exe", m) ||
	       names_read_file(&t->symbols, m->path, m);
}

static void read_module(struct table *t, const struct module *m)
{
	bool is_good = false;

	if (all.kept > KEPT_MAX)
		is_good = false;
	else if (strcmp(m->path, "[vdso]") == 0)
		is_good = names_read_image(&t->symbols, (const void *)m->start, m->end - m->start);
	else if (is_program(m))
		is_good = read_program(t, m);
	else if (m->path[0] == '/')
		is_good = names_read_file(&t->symbols, m->path, m);
	if (!is_good)
		names_release(&t->symbols);
	keep(t);
}

/* ---- code that was compiled at run time */

static int open_perf_map(struct stat *st)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return -1;
	/* Anyone may write in that folder. */
	if (fstat(fd, st) == 0 && S_ISREG(st->st_mode) && st->st_uid == geteuid())
		return fd;
	close(fd);
	return -1;
}

static void read_jit(struct table *t)
{
	struct stat st;
	int fd;

	if (t->is_read && all.used_at - all.looked_at < LOOK_TIME)
		return;
	all.looked_at = all.used_at;
	fd = open_perf_map(&st);
	if (fd < 0) {
		drop(t);
		t->is_read = true;
		return;
	}
	if (!t->is_read || memcmp(&st.st_mtim, &all.jit_time, sizeof(st.st_mtim)) != 0) {
		drop(t);
		if (!names_read_perf_map(&t->symbols, fd))
			names_release(&t->symbols);
		keep(t);
		all.jit_time = st.st_mtim;
	}
	close(fd);
}

/* ---- questions */

static const char *find(frame_t f, uint64_t *offset)
{
	unsigned module = frame_module(f);
	const struct module *m = module ? module_get(module) : NULL;
	struct table *t;

	if (module > MODULES_MAX || (module && !m))
		return NULL;
	if (!all.tables)
		all.tables = pages_map((MODULES_MAX + 1) * sizeof(*all.tables));
	if (!all.tables)
		return NULL;
	all.used_at = now_ns();
	t = &all.tables[module];
	if (!module)
		read_jit(t);
	else if (!t->is_read)
		read_module(t, m);
	return names_find(&t->symbols, f & FRAME_OFFSET, offset);
}

bool symbol_name(frame_t f, char *name, size_t size, uint64_t *offset)
{
	const char *found;

	lock_take(&all.lock);
	found = find(f, offset);
	if (found)
		snprintf(name, size, "%s", found);
	lock_give(&all.lock);
	return found;
}

static void drop_all(void)
{
	for (unsigned i = 0; all.tables && i <= MODULES_MAX; i++)
		if (all.tables[i].is_read)
			drop(&all.tables[i]);
}

int64_t symbols_trim(int64_t now)
{
	int64_t next = INT64_MAX;

	if (!lock_try(&all.lock))
		return now + SECOND;
	if (all.kept && now - all.used_at >= KEPT_TIME)
		drop_all();
	if (all.kept)
		next = all.used_at + KEPT_TIME;
	lock_give(&all.lock);
	return next;
}

void symbols_forget(void)
{
	/* Whoever was at work left them in disorder. */
	if (atomic_load(&all.lock.state) == 0)
		drop_all();
	memset(&all, 0, sizeof(all));
}
