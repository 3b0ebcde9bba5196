#include "profile/legacy.h"

#include <stdlib.h>

#include "profile/legacy_parse.h"

/* Allocators, and what they call; from tcmalloc, glibc, macOS, Go and libstdc++. */
#define HEAP_DROP                                                                           \
	"calloc|cfree|malloc|free|memalign|do_memalign|(__)?posix_memalign|pvalloc|valloc|" \
	"realloc|tcmalloc::.*|tc_calloc|tc_cfree|tc_malloc|tc_free|tc_memalign|"            \
	"tc_posix_memalign|tc_pvalloc|tc_valloc|tc_realloc|tc_new|tc_delete|tc_newarray|"   \
	"tc_deletearray|tc_new_nothrow|tc_newarray_nothrow|malloc_zone_malloc|"             \
	"malloc_zone_calloc|malloc_zone_valloc|malloc_zone_realloc|malloc_zone_memalign|"   \
	"malloc_zone_free|runtime\\..*|BaseArena::.*|(::)?do_malloc_no_errno|"              \
	"(::)?do_malloc_pages|(::)?do_malloc|DoSampledAllocation|"                          \
	"MallocedMemBlock::MallocedMemBlock|_M_allocate|__builtin_(vec_)?delete|"           \
	"__builtin_(vec_)?new|__gnu_cxx::new_allocator::allocate|__libc_malloc|"            \
	"__malloc_alloc_template::allocate|allocate|cpp_alloc|operator new(\\[\\])?|"       \
	"simple_alloc::allocate"
#define HEAP_KEEP "runtime\\.panic|runtime\\.reflectcall|runtime\\.call[0-9]*"
#define CPU_DROP                                                                \
	"ProfileData::Add|ProfileData::prof_handler|CpuProfiler::prof_handler|" \
	"__pthread_sighandler|__restore"
#define LOCK_DROP                                                                      \
	"RecordLockProfileData|(base::)?RecordLockProfileData.*|"                      \
	"(base::)?SubmitMutexProfileData.*|(base::)?SubmitSpinLockProfileData.*|"      \
	"(base::Mutex::)?AwaitCommon.*|(base::Mutex::)?Unlock.*|"                      \
	"(base::Mutex::)?UnlockSlow.*|(base::Mutex::)?ReaderUnlock.*|"                 \
	"(base::MutexLock::)?~MutexLock.*|(Mutex::)?AwaitCommon.*|(Mutex::)?Unlock.*|" \
	"(Mutex::)?UnlockSlow.*|(Mutex::)?ReaderUnlock.*|(MutexLock::)?~MutexLock.*|"  \
	"(SpinLock::)?Unlock.*|(SpinLock::)?SlowUnlock.*|(SpinLockHolder::)?~SpinLockHolder.*"

struct frame_filter {
	const char *types[5]; /* ends with NULL */
	const char *drop, *keep;
};

static const struct frame_filter frame_filters[] = {
	{ { "allocations", "size" }, HEAP_DROP, HEAP_KEEP },
	{ { "objects", "space" }, HEAP_DROP, HEAP_KEEP },
	{ { "inuse_objects", "inuse_space" }, HEAP_DROP, HEAP_KEEP },
	{ { "alloc_objects", "alloc_space" }, HEAP_DROP, HEAP_KEEP },
	{ { "alloc_objects", "alloc_space", "inuse_objects", "inuse_space" },
	  HEAP_DROP,
	  HEAP_KEEP },
	{ { "contentions", "delay" }, LOCK_DROP, "" },
};

static bool has_types(const struct builder *b, const char *const *types)
{
	for (size_t i = 0; i < b->types.n; i++, types++)
		if (!*types || !str_eq(b->head.strings->at[b->types.at[i].type], str_of(*types)))
			return false;
	return !*types;
}

static void set_frame_filters(struct builder *b)
{
	const char *drop = CPU_DROP, *keep = "";

	for (size_t i = 0; i < sizeof(frame_filters) / sizeof(*frame_filters); i++) {
		if (has_types(b, frame_filters[i].types)) {
			drop = frame_filters[i].drop;
			keep = frame_filters[i].keep;
			break;
		}
	}
	b->head.drop_frames = builder_string(b, str_of(drop));
	b->head.keep_frames = builder_string(b, str_of(keep));
}

typedef bool reader(struct legacy *r, struct str data, struct err *e);

static reader *const readers[] = {
	legacy_read_cpu,     legacy_read_heap,	     legacy_read_count,
	legacy_read_threads, legacy_read_contention, legacy_read_java,
};

struct output {
	struct profile *p;
	struct arena *a;
	struct strings *strings;
};

static bool read_as(reader *read, struct str data, const struct output *out, struct err *e)
{
	struct legacy r = { 0 };
	bool ok;

	builder_init(&r.b, out->strings);
	ok = read(&r, data, e);
	if (ok && read != folded_read)
		set_frame_filters(&r.b);
	if (ok)
		builder_finish(&r.b, out->a, out->p);
	builder_release(&r.b);
	free(r.by_address.slots);
	vec_release(&r.addresses);
	vec_release(&r.stack);
	return ok;
}

bool legacy_read(struct profile *p, struct arena *a, struct strings *strings, struct str data,
		 struct err *e)
{
	const struct output out = { p, a, strings };
	struct err folded_error;

	/* A byte makes at most one row of any table, so 32-bit indices cannot overflow. */
	if (data.n >= UINT32_MAX)
		return err_set(e, ERR_LIMIT, "profile of %zu bytes is too large", data.n);
	e->kind = ERR_UNRECOGNIZED;
	for (size_t i = 0; i < sizeof(readers) / sizeof(*readers) && e->kind == ERR_UNRECOGNIZED;
	     i++)
		if (read_as(readers[i], data, &out, e))
			return true;
	if (e->kind != ERR_UNRECOGNIZED && e->kind != ERR_LIMIT)
		return false;
	/* A line too long for pprof's formats may still be a deep stack. */
	if (read_as(folded_read, data, &out, &folded_error))
		return true;
	return e->kind == ERR_LIMIT ? false
				    : err_set(e, ERR_UNRECOGNIZED, "unrecognized profile format");
}
