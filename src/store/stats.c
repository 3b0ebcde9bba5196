/* stats.c - how a store is. */
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "store/inside.h"

enum { READER_BYTES = 5 << 20 }; /* cache of a connection, and some */

static void count_catalog(struct catalog *c, struct store_stats *out)
{
	struct counts all = { 0 };
	uint64_t bytes = 0;

	pthread_rwlock_rdlock(&c->lock);
	for (size_t i = 0; i < c->series.n; i++) {
		const struct series *s = c->series.at[i];

		counts_add(&all, &s->counts);
		out->nseries += s->counts.nprofiles > 0;
		bytes += sizeof(*s) + s->key.n + s->nlabels * sizeof(*s->labels) + 64;
	}
	out->nservices = c->services.n;
	pthread_rwlock_unlock(&c->lock);
	out->nprofiles = all.nprofiles;
	out->nsamples = all.nsamples;
	out->bytes_of_profiles = all.bytes;
	out->oldest = all.first;
	out->newest = all.last;
	out->memory += bytes;
}

uint64_t store_disk_bytes(struct store *s)
{
	static const char *const ends[] = { "", "-wal", "-shm" };
	uint64_t bytes = 0;

	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++) {
		struct buf path = { 0 };
		struct stat st;

		buf_printf(&path, "%s%s%c", s->path, ends[i], '\0');
		if (!stat(path.p, &st))
			bytes += (uint64_t)st.st_blocks * 512;
		buf_release(&path);
	}
	return bytes;
}

bool store_free_bytes(struct store *s, uint64_t *free_bytes, uint64_t *reserve)
{
	enum { RESERVE = 64 << 20, SHARE = 50 };
	struct statvfs disk;

	*free_bytes = *reserve = 0;
	if (statvfs(s->dir, &disk))
		return false;
	*free_bytes = (uint64_t)disk.f_bavail * disk.f_frsize;
	*reserve = (uint64_t)disk.f_blocks * disk.f_frsize / SHARE;
	if (*reserve > RESERVE)
		*reserve = RESERVE;
	return true;
}

void store_stats(struct store *s, struct store_stats *out)
{
	uint64_t reserve;

	*out = (struct store_stats){
		.bytes_on_disk = store_disk_bytes(s),
		.nputs = atomic_load(&s->writer.nputs),
		.ncommits = atomic_load(&s->writer.ncommits),
		.nwaiting = atomic_load(&s->writer.nwaiting),
		.ndeleted = atomic_load(&s->ndeleted),
		.nthinned = atomic_load(&s->keeper.nthinned),
		.is_full = atomic_load(&s->writer.is_full),
		.memory = atomic_load(&s->merge_bytes) +
			  (atomic_load(&s->nreaders) + 1) * (uint64_t)READER_BYTES,
	};
	store_free_bytes(s, &out->free_bytes, &reserve);
	count_catalog(&s->catalog, out);
	out->memory += hot_bytes(&s->hot);
	pthread_mutex_lock(&s->shelf.lock);
	out->memory += s->shelf.bytes;
	pthread_mutex_unlock(&s->shelf.lock);
}
