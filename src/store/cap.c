#include "store/cap.h"

#include <stdio.h>
#include <string.h>

#include "store/db.h"

/* ---- shares */

struct cap_shares cap_share(uint64_t max_bytes)
{
	/* The file with the process's number, the folder, and the index of the log, which has 32
	 * KB for about 4,000 pages. */
	enum { SMALL_FILES = 32 << 10, INDEX_BYTES = 32 << 10, INDEX_PAGES = 4000 };
	const uint64_t most_log = (uint64_t)256 << 20;
	struct cap_shares s = { 0 };
	uint64_t rest;

	if (!max_bytes)
		return s;
	s.log_bytes = max_bytes / 4 < most_log ? max_bytes / 4 : most_log;
	rest = SMALL_FILES + INDEX_BYTES * (1 + s.log_bytes / DB_PAGE_BYTES / INDEX_PAGES) +
	       s.log_bytes;
	s.pages = rest < max_bytes ? (int64_t)((max_bytes - rest) / DB_PAGE_BYTES) : 1;
	s.put_pages = s.pages - s.pages / 16;
	s.full_pages = s.pages - s.pages / 8;
	s.thin_pages = s.pages - s.pages / 4;
	return s;
}

/* ---- the log's file */

struct log_file {
	sqlite3_file base; /* must be first */
	struct cap *cap;
	sqlite3_file *below; /* lies after it */
};

static sqlite3_file *below(sqlite3_file *f)
{
	return ((struct log_file *)f)->below;
}

static int log_close(sqlite3_file *f)
{
	return below(f)->pMethods->xClose(below(f));
}

static int log_read(sqlite3_file *f, void *to, int n, sqlite3_int64 at)
{
	return below(f)->pMethods->xRead(below(f), to, n, at);
}

static int log_write(sqlite3_file *f, const void *from, int n, sqlite3_int64 at)
{
	struct cap *c = ((struct log_file *)f)->cap;
	int code;

	if ((uint64_t)at + (uint64_t)n > c->max_log_bytes) {
		c->is_hit = true;
		return SQLITE_FULL;
	}
	code = below(f)->pMethods->xWrite(below(f), from, n, at);
	if ((code & 0xff) == SQLITE_FULL)
		c->is_disk_full = true;
	return code;
}

static int log_truncate(sqlite3_file *f, sqlite3_int64 n)
{
	return below(f)->pMethods->xTruncate(below(f), n);
}

static int log_sync(sqlite3_file *f, int flags)
{
	return below(f)->pMethods->xSync(below(f), flags);
}

static int log_size(sqlite3_file *f, sqlite3_int64 *n)
{
	return below(f)->pMethods->xFileSize(below(f), n);
}

static int log_lock(sqlite3_file *f, int how)
{
	return below(f)->pMethods->xLock(below(f), how);
}

static int log_unlock(sqlite3_file *f, int how)
{
	return below(f)->pMethods->xUnlock(below(f), how);
}

static int log_is_reserved(sqlite3_file *f, int *is_reserved)
{
	return below(f)->pMethods->xCheckReservedLock(below(f), is_reserved);
}

static int log_control(sqlite3_file *f, int what, void *arg)
{
	return below(f)->pMethods->xFileControl(below(f), what, arg);
}

static int log_sector(sqlite3_file *f)
{
	return below(f)->pMethods->xSectorSize(below(f));
}

static int log_traits(sqlite3_file *f)
{
	return below(f)->pMethods->xDeviceCharacteristics(below(f));
}

static const sqlite3_io_methods log_methods = {
	.iVersion = 1,
	.xClose = log_close,
	.xRead = log_read,
	.xWrite = log_write,
	.xTruncate = log_truncate,
	.xSync = log_sync,
	.xFileSize = log_size,
	.xLock = log_lock,
	.xUnlock = log_unlock,
	.xCheckReservedLock = log_is_reserved,
	.xFileControl = log_control,
	.xSectorSize = log_sector,
	.xDeviceCharacteristics = log_traits,
};

/* ---- */

/* Files that are no log are the lower layer's alone. */
static int open_file(sqlite3_vfs *vfs, const char *name, sqlite3_file *f, int flags, int *out_flags)
{
	struct cap *c = (struct cap *)vfs;
	struct log_file *log = (struct log_file *)f;
	int code;

	if (!(flags & SQLITE_OPEN_WAL))
		return c->below->xOpen(c->below, name, f, flags, out_flags);
	*log = (struct log_file){ .cap = c, .below = (sqlite3_file *)(log + 1) };
	code = c->below->xOpen(c->below, name, log->below, flags, out_flags);
	if (log->below->pMethods)
		log->base.pMethods = &log_methods;
	return code;
}

bool cap_begin(struct cap *c, uint64_t max_log_bytes)
{
	sqlite3_vfs *below = sqlite3_vfs_find(NULL);

	if (!below)
		return false;
	*c = (struct cap){ .vfs = *below, .below = below, .max_log_bytes = max_log_bytes };
	snprintf(c->name, sizeof(c->name), "kiln-%p", (void *)c);
	c->vfs.zName = c->name;
	c->vfs.pNext = NULL;
	c->vfs.szOsFile += (int)sizeof(struct log_file);
	c->vfs.xOpen = open_file;
	return sqlite3_vfs_register(&c->vfs, 0) == SQLITE_OK;
}

void cap_end(struct cap *c)
{
	if (c->below)
		sqlite3_vfs_unregister(&c->vfs);
	c->below = NULL;
}
