/* cap.h - holds the log of a database to a length, whatever is written.
 *
 * SQLite itself holds the database to a number of pages, but its log (the WAL) grows with what is
 * written between two times that it is copied, and with what one commit changes. So the connection
 * that writes goes through a layer between SQLite and the files (a VFS) that refuses to make the
 * log longer than it may be, as a full disk would: the commit fails and leaves nothing behind.
 */
#ifndef STORE_CAP_H
#define STORE_CAP_H

#include <sqlite3.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct cap {
	sqlite3_vfs vfs; /* must be first */
	sqlite3_vfs *below;
	char name[40];
	uint64_t max_log_bytes;
	/* Of the writer's thread. */
	bool is_hit;	   /* since it was cleared: the log was to be longer */
	bool is_disk_full; /* since it was cleared: the disk has refused */
};

/* How a limit of all files of a store is shared out. */
struct cap_shares {
	uint64_t log_bytes;
	int64_t pages;	    /* of the database */
	int64_t put_pages;  /* of them those that puts may use: the rest is for sums */
	int64_t full_pages; /* with so many in use puts are refused */
	int64_t thin_pages; /* with so many in use what is old is thinned */
};
/* 0: no limit; all are 0 then. */
struct cap_shares cap_share(uint64_t max_bytes);

/* From here to cap_end sqlite3_open_v2 knows it by its name. Stays where it is. */
bool cap_begin(struct cap *c, uint64_t max_log_bytes);
void cap_end(struct cap *c);

#endif
