#include "perf/machine.h"

enum {
	MISC_EXEC = 1 << 13,	  /* COMM: by exec */
	MISC_FORK_EXEC = 1 << 13, /* FORK: made up for a process that was there already */
	MISC_MMAP_DATA = 1 << 13,
	MISC_MMAP_BUILD_ID = 1 << 14,
	PROT_EXECUTE = 4,
};

/* ---- processes and threads */

struct number_key {
	const struct machine *m;
	uint32_t number;
};

static bool same_pid(const void *ctx, uint32_t index)
{
	const struct number_key *key = ctx;

	return key->m->processes.at[index].pid == key->number;
}

static bool same_tid(const void *ctx, uint32_t index)
{
	const struct number_key *key = ctx;

	return key->m->threads.at[index].tid == key->number;
}

/* Valid until the next one is looked for. */
static struct process *find_process(struct machine *m, uint32_t pid)
{
	struct number_key key = { m, pid };
	uint32_t i = map_put(&m->by_pid, hash_mix(m->seed, pid), m->processes.n, same_pid, &key);
	struct space nothing = { 0 };

	if (i == m->processes.n)
		vec_push(&m->processes, (struct process){ pid, space_fork(&m->spaces, &nothing) });
	return &m->processes.at[i];
}

static struct thread *find_thread(struct machine *m, uint32_t tid)
{
	struct number_key key = { m, tid };
	uint32_t i = map_put(&m->by_tid, hash_mix(m->seed, tid), m->threads.n, same_tid, &key);

	if (i == m->threads.n)
		vec_push(&m->threads, (struct thread){ .tid = tid });
	return &m->threads.at[i];
}

uint32_t machine_comm(struct machine *m, uint32_t tid)
{
	struct thread *t = find_thread(m, tid);

	if (!t->comm) {
		struct buf name = { 0 };

		buf_char(&name, ':');
		buf_int(&name, (int32_t)tid);
		t->comm = builder_string(m->b, buf_view(&name));
		buf_release(&name);
	}
	return t->comm;
}

static void change_name(struct machine *m, struct str record, uint16_t misc)
{
	uint32_t pid = perf_u32(m->d, record.p + 8), tid = perf_u32(m->d, record.p + 12);
	struct space nothing = { 0 };

	find_thread(m, tid)->comm = builder_string(m->b, perf_text(str_from(record, 16)));
	if (misc & MISC_EXEC)
		find_process(m, pid)->space = space_fork(&m->spaces, &nothing);
}

static void fork_process(struct machine *m, struct str record, uint16_t misc)
{
	uint32_t pid = perf_u32(m->d, record.p + 8), parent = perf_u32(m->d, record.p + 12);
	uint32_t tid = perf_u32(m->d, record.p + 16), parent_tid = perf_u32(m->d, record.p + 20);
	uint32_t comm = find_thread(m, parent_tid)->comm;

	find_thread(m, tid)->comm = comm;
	if (pid != parent && !(misc & MISC_FORK_EXEC)) {
		struct space copy = space_fork(&m->spaces, &find_process(m, parent)->space);

		find_process(m, pid)->space = copy;
	}
}

/* ---- mappings */

static uint32_t hex_string(struct builder *b, struct str bytes)
{
	struct buf hex = { 0 };
	uint32_t string;

	for (size_t i = 0; i < bytes.n; i++)
		buf_printf(&hex, "%02x", (uint8_t)bytes.p[i]);
	string = builder_string(b, buf_view(&hex));
	buf_release(&hex);
	return string;
}

static uint32_t *build_id_of(struct machine *m, uint32_t file)
{
	while (m->build_ids.n <= file)
		vec_push(&m->build_ids, 0);
	return &m->build_ids.at[file];
}

struct mapped_key {
	const struct machine *m;
	struct mapped mapped;
};

static bool same_mapped(const void *ctx, uint32_t index)
{
	const struct mapped_key *key = ctx;
	const struct mapped *a = &key->m->mapped.at[index], *b = &key->mapped;

	return a->file == b->file && a->build_id == b->build_id && a->pid == b->pid &&
	       a->offset == b->offset && a->size == b->size;
}

/* Index of a mapping of the same part of the same file, which is put in if it is the first. */
static uint32_t find_mapping(struct machine *m, const struct mapped *x, const struct mapping *fresh)
{
	struct mapped_key key = { m, *x };
	uint64_t hash = hash_mix(hash_mix(m->seed ^ x->file, (uint64_t)x->build_id << 32 | x->pid),
				 hash_mix(x->offset, x->size));
	uint32_t i = map_put(&m->by_mapped, hash, m->mapped.n, same_mapped, &key);

	if (i == m->mapped.n) {
		vec_push(&m->mapped, *x);
		vec_push(&m->b->mappings, *fresh);
	}
	return i;
}

struct mmap_record {
	uint32_t pid;
	uint64_t start, size, offset;
	struct str file, build_id;
	bool is_kernel;
};

/* False if it is of no use: data, or too short. */
static bool read_mmap(const struct perf_data *d, struct str record, uint16_t misc,
		      struct mmap_record *x)
{
	bool is_2 = perf_u32(d, record.p) == RECORD_MMAP2;
	size_t file_at = is_2 ? 72 : 40;

	if (record.n <= file_at)
		return false;
	*x = (struct mmap_record){
		.pid = perf_u32(d, record.p + 8),
		.start = perf_u64(d, record.p + 16),
		.size = perf_u64(d, record.p + 24),
		.offset = perf_u64(d, record.p + 32),
		.file = perf_text(str_from(record, file_at)),
		.is_kernel = (misc & MODE_MASK) == MODE_KERNEL,
	};
	if (!x->is_kernel && (misc & MODE_MASK) != MODE_USER)
		return false;
	if (is_2 && misc & MISC_MMAP_BUILD_ID && (uint8_t)record.p[40] <= 20)
		x->build_id = (struct str){ record.p + 44, (uint8_t)record.p[40] };
	return x->is_kernel ||
	       (is_2 ? (perf_u32(d, record.p + 64) & PROT_EXECUTE) : !(misc & MISC_MMAP_DATA));
}

/* Not files: memory without a name, and what the kernel gives every process. */
static bool is_private(struct str file)
{
	return str_has_prefix(file, STR("//anon")) ||
	       (str_has_prefix(file, STR("[")) && !str_eq(file, STR("[vdso]")) &&
		!str_eq(file, STR("[vsyscall]")));
}

static void add_mapping(struct machine *m, const struct mmap_record *x)
{
	const struct str kallsyms = STR("[kernel.kallsyms]");
	struct mapping fresh = { .start = x->start, .offset = x->offset };
	struct mapped key = { .pid = NONE, .offset = x->offset, .size = x->size };
	struct range r = { .start = x->start };
	struct str file = x->file;
	struct space *space = &m->kernel;

	if (x->is_kernel && str_has_prefix(file, kallsyms)) {
		fresh.kernel_symbol = builder_string(m->b, str_from(file, kallsyms.n));
		file = kallsyms;
	} else if (!x->is_kernel && is_private(file)) {
		key.pid = x->pid;
	}
	r.limit = x->size > UINT64_MAX - x->start ? UINT64_MAX : x->start + x->size;
	fresh.limit = r.limit;
	fresh.file = key.file = builder_string(m->b, file);
	key.build_id = x->build_id.n ? hex_string(m->b, x->build_id) : *build_id_of(m, key.file);
	fresh.build_id = key.build_id;
	r.mapping = find_mapping(m, &key, &fresh);
	r.shift = m->b->mappings.at[r.mapping].start - x->start;
	if (!x->is_kernel)
		space = &find_process(m, x->pid)->space;
	space_insert(&m->spaces, space, &r);
}

/* ---- records */

bool machine_update(struct machine *m, size_t at, struct err *e)
{
	static const struct {
		uint32_t type;
		size_t bytes;
	} least[] = { { RECORD_COMM, 17 },
		      { RECORD_FORK, 24 },
		      { RECORD_LOST, 24 },
		      { RECORD_LOST_SAMPLES, 16 } };
	struct str record = perf_record(m->d, at);
	uint32_t type = perf_u32(m->d, record.p);
	uint16_t misc = perf_u16(m->d, record.p + 4);
	struct mmap_record x;

	for (size_t i = 0; i < sizeof(least) / sizeof(*least); i++)
		if (type == least[i].type && record.n < least[i].bytes)
			return perf_record_error(m->d, at, "is too short for its type", e);
	switch (type) {
	case RECORD_COMM:
		change_name(m, record, misc);
		break;
	case RECORD_FORK:
		fork_process(m, record, misc);
		break;
	case RECORD_LOST:
		m->nlost_records += perf_u64(m->d, record.p + 16);
		break;
	case RECORD_LOST_SAMPLES:
		m->nlost_samples += perf_u64(m->d, record.p + 8);
		break;
	case RECORD_MMAP:
	case RECORD_MMAP2:
		if (read_mmap(m->d, record, misc, &x))
			add_mapping(m, &x);
		break;
	default:
		break;
	}
	return true;
}

const struct range *machine_find(struct machine *m, uint32_t pid, uint8_t mode, uint64_t address)
{
	if (mode == MODE_KERNEL)
		return space_find(&m->kernel, address);
	if (mode == MODE_USER)
		return space_find(&find_process(m, pid)->space, address);
	return NULL;
}

void machine_init(struct machine *m, const struct perf_data *d, struct builder *b)
{
	*m = (struct machine){ .d = d, .b = b, .seed = map_seed() };
	spaces_init(&m->spaces);
	for (size_t i = 0; i < d->build_ids.n; i++) {
		uint32_t file = builder_string(b, d->build_ids.at[i].file);

		*build_id_of(m, file) = hex_string(b, d->build_ids.at[i].bytes);
	}
}

void machine_release(struct machine *m)
{
	spaces_release(&m->spaces);
	vec_release(&m->processes);
	vec_release(&m->threads);
	vec_release(&m->mapped);
	vec_release(&m->build_ids);
	map_release(&m->by_pid);
	map_release(&m->by_tid);
	map_release(&m->by_mapped);
}
