/* kiln.h - profiles of the program that includes it: CPU, heap, locks, threads and the program's
 * own, on /debug/pprof/ or in files, as Go programs have them.
 *
 * Link with -lkiln, or start the program with LD_PRELOAD=libkiln.so. All functions may be called
 * from any thread, but not from signal handlers. Those that return int return 0, or an errno value
 * negated (-EBUSY: already in use), unless they say otherwise. kiln(1), kiln-agent(7).
 */
#ifndef KILN_H
#define KILN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define KILN_API __attribute__((visibility("default")))

/* Serves /debug/pprof/ on ":8070" (this machine only), "host:port" or "unix:/path". Again with
 * another address: on that one as well. From now on allocations are sampled, unless the rate was
 * set to 0. */
KILN_API int kiln_serve(const char *address);

/* Samples the CPU time of all threads from now on; kiln_stop_cpu_profile writes the profile to fd,
 * which must be open until then. One at a time. */
KILN_API int kiln_start_cpu_profile(int fd);
KILN_API int kiln_stop_cpu_profile(void);

/* Writes a profile by the name that it has on /debug/pprof/: "heap", "allocs", "mutex", "block",
 * "threads", "threadcreate", or one of the program's own. */
KILN_API int kiln_write_profile(const char *name, int fd);

/* How much is recorded. Rates may be changed at any time. */
KILN_API int kiln_set_cpu_rate(int hz);			/* 100; not while CPU is profiled */
KILN_API void kiln_set_heap_rate(size_t mean_bytes);	/* between samples; 1: all, 0: none */
KILN_API void kiln_set_mutex_fraction(int one_of);	/* 1: all contentions, 0: none */
KILN_API void kiln_set_block_rate(int64_t nanoseconds); /* all waits as long; 1: all, 0: none */

/* The program's own profile: stacks that added something that was not removed yet. Names are
 * unique; NULL if it is taken, or not a name. */
typedef struct kiln_profile kiln_profile;
KILN_API kiln_profile *kiln_profile_new(const char *name);
KILN_API kiln_profile *kiln_profile_find(const char *name);
/* `skip` leaves out that many callers, 0 none. -EEXIST: `value` is in it already. */
KILN_API int kiln_profile_add(kiln_profile *p, const void *value, int skip);
KILN_API void kiln_profile_remove(kiln_profile *p, const void *value);
KILN_API int64_t kiln_profile_count(const kiln_profile *p);

/* Labels of the calling thread: samples have them. NULL as value takes the label away. Threads that
 * it creates start with the same. */
KILN_API int kiln_label_set(const char *key, const char *value);
/* Labels as they are, to be put back by kiln_labels_restore. */
KILN_API uint32_t kiln_labels_save(void);
KILN_API void kiln_labels_restore(uint32_t saved);

/* Regions and counters for /debug/pprof/trace. */
KILN_API void kiln_region_begin(const char *name);
KILN_API void kiln_region_end(void);
KILN_API void kiln_counter(const char *name, int64_t value);

#ifdef __cplusplus
}

namespace kiln
{
/* kiln::label request("handler", "checkout"); lasts as long as its scope. */
class label
{
      public:
	label(const char *key, const char *value) : saved_(kiln_labels_save())
	{
		kiln_label_set(key, value);
	}
	~label()
	{
		kiln_labels_restore(saved_);
	}
	label(const label &) = delete;
	label &operator=(const label &) = delete;

      private:
	uint32_t saved_;
};
} // namespace kiln
#else

static inline void kiln_labels_restore_at(const uint32_t *saved)
{
	kiln_labels_restore(*saved);
}

#define KILN_JOIN_(a, b) a##b
#define KILN_NAME_(line) KILN_JOIN_(kiln_saved_, line)
/* KILN_LABEL("handler", "checkout"); lasts until the end of the block. */
#define KILN_LABEL(key, value)                                    \
	__attribute__((cleanup(kiln_labels_restore_at), unused))  \
	const uint32_t KILN_NAME_(__LINE__) = kiln_labels_save(); \
	kiln_label_set(key, value)
#endif

#endif
