/* debuginfo.h - binaries and debug files by their build ids, in DATA/debuginfo/.
 *
 * A file is called BUILD_ID.ORIGIN.NAME; nothing else is written down. When it came is its time of
 * change, when it was last needed its time of access. It is there once it is whole and on the disk.
 *
 * Of a build id there is one file: one that tells more takes the place of one that tells less.
 * Files come from anywhere: only their tables of sections and segments are looked at here.
 *
 * Threads: any number.
 */
#ifndef SERVER_DEBUGINFO_H
#define SERVER_DEBUGINFO_H

#include "base/arena.h"
#include "base/err.h"
#include "symbol/symbol.h"

struct debuginfo;

struct debuginfo_params {
	const char *data;  /* the store's folder */
	uint64_t max_file; /* bytes of one file, unpacked */
	uint64_t max_disk; /* of the whole store; 0: no limit */
	uint64_t min_free; /* of the disk */
	/* Asked before a file of so many bytes more is kept, or NULL: false if it must not be. */
	bool (*may_grow)(void *ctx, uint64_t bytes, struct err *e);
	void *ctx;
};

struct debuginfo *debuginfo_open(const struct debuginfo_params *params, struct err *e);
void debuginfo_close(struct debuginfo *d);

enum { DEBUGINFO_ID_MIN = 8, DEBUGINFO_ID_MAX = 128 }; /* digits */
/* An even number of digits 0-9a-f, of which there are enough. */
bool debuginfo_is_id(struct str text);

struct debuginfo_file {
	struct str build_id, name;
	bool is_fetched; /* from a debuginfod server, not uploaded */
	uint64_t bytes;
	struct object_contents has;
	int64_t since, used; /* ns since 1970 */
	const char *path;
	bool is_unreadable; /* debuginfo_unreadable */
};

enum debuginfo_put { DEBUGINFO_NEW, DEBUGINFO_BETTER, DEBUGINFO_THERE };
struct debuginfo_new {
	struct str build_id, name;
	struct str body; /* an ELF file, as it is or packed by zstd or gzip */
	bool is_fetched;
};
/* Returns when it is durable. ERR_FORMAT: it is no such file, or of another build; ERR_LIMIT: it is
 * refused, and e->text begins with the limit's name. */
bool debuginfo_put(struct debuginfo *d, const struct debuginfo_new *new, enum debuginfo_put *how,
		   struct err *e);
/* Strings go to `a`. False: there is none. */
bool debuginfo_find(struct debuginfo *d, struct str build_id, struct arena *a,
		    struct debuginfo_file *out);
/* It was needed now. */
void debuginfo_use(struct debuginfo *d, struct str build_id);
/* Whoever read it says that it is of no use: any other takes its place. */
void debuginfo_unreadable(struct debuginfo *d, struct str build_id);
/* In order of build ids. */
size_t debuginfo_list(struct debuginfo *d, struct arena *a, struct debuginfo_file **files);
/* False: there is none. */
bool debuginfo_drop(struct debuginfo *d, struct str build_id);

struct debuginfo_stats {
	uint64_t nfiles, bytes, nexpired;
};
void debuginfo_stats(struct debuginfo *d, struct debuginfo_stats *out);
/* Drops files that came, and were last needed, before `before`, and whose build id is not among
 * `needed`, which is sorted. */
void debuginfo_expire(struct debuginfo *d, int64_t before, const struct str *needed, size_t n);
/* Is there one that is as old as that? Else nobody need find out what is needed. */
bool debuginfo_has_old(struct debuginfo *d, int64_t before);

/* Unpacks or copies into a file of at most max_bytes, whose disk keeps min_free; for debuginfo_put
 * and its fuzzer. */
bool debuginfo_unpack(struct str body, int fd, uint64_t max_bytes, uint64_t min_free,
		      struct err *e);

#endif
