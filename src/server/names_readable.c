/* names_readable.c - names that linkers know, as people read them: each is read once, of as many as
 * there is room for. When there is none, all go: which of them are still used nobody knows. */
#include "server/names_inside.h"

void names_readable_init(struct names_readable *r, uint64_t max_bytes)
{
	pthread_mutex_init(&r->lock, NULL);
	strings_init(&r->mangled);
	strings_init(&r->texts);
	r->max_bytes = max_bytes;
}

void names_readable_release(struct names_readable *r)
{
	pthread_mutex_destroy(&r->lock);
	strings_release(&r->mangled);
	strings_release(&r->texts);
	vec_release(&r->of);
}

static uint64_t count_bytes(const struct names_readable *r)
{
	return arena_used(&r->mangled.bytes) + arena_used(&r->texts.bytes) +
	       (r->mangled.cap + r->texts.cap + r->of.cap) * sizeof(struct str);
}

/* Under the lock. */
static struct str demangle(struct names_readable *r, struct str name)
{
	struct buf text = { 0 };
	struct str out = { 0 };

	if (demangle_name(&text, name, DEMANGLE_DEFAULT)) {
		uint32_t i = strings_add(&r->texts, buf_view(&text));

		out = r->texts.at[i];
	}
	buf_release(&text);
	return out;
}

/* Who asks now still gets his: what there is goes when nobody asks. */
struct str names_readable_find(struct names_readable *r, struct str name, bool *is_full)
{
	enum { AT_ONCE = 2 };
	struct str out = { 0 };
	uint64_t bytes;
	uint32_t i;

	pthread_mutex_lock(&r->lock);
	bytes = count_bytes(r);
	*is_full = bytes > r->max_bytes;
	i = strings_find(&r->mangled, name);
	if (!i && bytes <= AT_ONCE * r->max_bytes) {
		i = strings_add(&r->mangled, name);
		out = demangle(r, name);
		while (r->of.n <= i)
			vec_push(&r->of, ((struct str){ 0 }));
		r->of.at[i] = out;
	}
	if (i)
		out = r->of.at[i];
	pthread_mutex_unlock(&r->lock);
	return out;
}

void names_readable_trim(struct names_readable *r)
{
	pthread_mutex_lock(&r->lock);
	if (count_bytes(r) > r->max_bytes) {
		strings_release(&r->mangled);
		strings_release(&r->texts);
		strings_init(&r->mangled);
		strings_init(&r->texts);
		vec_release(&r->of);
	}
	pthread_mutex_unlock(&r->lock);
}
