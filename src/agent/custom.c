/* custom.c - profiles of the program's own: what was added and not removed yet, with the stack that
 * added it. */
#include <errno.h>
#include <string.h>

#include "kiln.h"
#include "agent/agent.h"
#include "agent/local.h"
#include "agent/memory.h"
#include "agent/profiles.h"
#include "agent/signal.h"
#include "agent/stack.h"

enum {
	CUSTOM_MAX = 64,
	NAME_BYTES = 64,
	SLOTS_FIRST = 256, /* powers of two */
	SLOTS_MAX = 1 << 19,
};

struct entry {
	const void *value;
	uint32_t stack;
	bool is_used;
};

struct kiln_profile {
	struct agent_profile profile;
	char name[NAME_BYTES];
	struct entry *slots; /* open addressing, at most 3/4 full, no gaps before a value */
	uint32_t size, n;
};

static struct kiln_profile *profiles; /* CUSTOM_MAX of them, reserved with the first */
static atomic_uint nprofiles;
static struct lock lock; /* for all that they have */

/* ---- values */

static uint32_t home_of(const struct kiln_profile *p, const void *value)
{
	return (uint32_t)(((uintptr_t)value * 0x9e3779b97f4a7c15u) >> 32) & (p->size - 1);
}

/* Where it is, or else where it belongs. */
static struct entry *find_slot(const struct kiln_profile *p, const void *value)
{
	uint32_t i = home_of(p, value);

	while (p->slots[i].is_used && p->slots[i].value != value)
		i = (i + 1) & (p->size - 1);
	return &p->slots[i];
}

static bool grow(struct kiln_profile *p)
{
	uint32_t size = p->size ? p->size * 2 : SLOTS_FIRST;
	struct kiln_profile grown = { .size = size };

	grown.slots = size <= SLOTS_MAX ? pages_map(size * sizeof(struct entry)) : NULL;
	if (!grown.slots)
		return false;
	for (uint32_t i = 0; i < p->size; i++)
		if (p->slots[i].is_used)
			*find_slot(&grown, p->slots[i].value) = p->slots[i];
	pages_unmap(p->slots, p->size * sizeof(struct entry));
	p->slots = grown.slots;
	p->size = size;
	return true;
}

static int add(struct kiln_profile *p, const void *value, uint32_t stack)
{
	struct entry *slot;

	if (p->n >= p->size / 4 * 3 && !grow(p) && p->n + 1 >= p->size)
		return -ENOSPC;
	slot = find_slot(p, value);
	if (slot->is_used)
		return -EEXIST;
	*slot = (struct entry){ value, stack, true };
	p->n++;
	return 0;
}

/* What came after it moves up, or it would not be found behind the gap. */
static void take_out(struct kiln_profile *p, struct entry *slot)
{
	uint32_t mask = p->size - 1, gap = (uint32_t)(slot - p->slots), i = gap;

	for (;;) {
		i = (i + 1) & mask;
		if (!p->slots[i].is_used)
			break;
		if (((i - home_of(p, p->slots[i].value)) & mask) < ((i - gap) & mask))
			continue;
		p->slots[gap] = p->slots[i];
		gap = i;
	}
	p->slots[gap].is_used = false;
	p->n--;
}

/* ---- as profiles */

static struct kiln_profile *profile_of(const struct agent_profile *p)
{
	for (unsigned i = 0; i < nprofiles; i++)
		if (&profiles[i].profile == p)
			return &profiles[i];
	return NULL;
}

static bool collect(struct record *r)
{
	const struct kiln_profile *p = profile_of(r->profile);
	uint32_t *stacks, n = 0;

	r->period = 1;
	lock_take(&lock);
	stacks = region_alloc(&r->memory, p->n * sizeof(*stacks));
	for (uint32_t i = 0; stacks && i < p->size; i++)
		if (p->slots[i].is_used)
			stacks[n++] = p->slots[i].stack;
	r->has_failed |= !stacks;
	lock_give(&lock);
	record_add_counts(r, stacks, n);
	return true;
}

const struct agent_profile *custom_profile_at(unsigned i)
{
	return i < atomic_load(&nprofiles) ? &profiles[i].profile : NULL;
}

uint32_t custom_profile_count(const struct agent_profile *p)
{
	const struct kiln_profile *own = profile_of(p);

	return own ? (uint32_t)kiln_profile_count(own) : 0;
}

/* ---- names: they are part of addresses and of the index page */

static bool is_name(const char *name)
{
	static const char *const taken[] = { "cmdline", "profile", "symbol", "trace" };
	size_t n = strnlen(name, NAME_BYTES);

	if (n == 0 || n == NAME_BYTES || profile_find(name))
		return false;
	for (unsigned i = 0; i < sizeof(taken) / sizeof(*taken); i++)
		if (strcmp(name, taken[i]) == 0)
			return false;
	for (; *name; name++)
		if (*name <= ' ' || *name > '~' || strchr("\"#%&'<>?", *name))
			return false;
	return true;
}

static struct kiln_profile *make(const char *name)
{
	unsigned n = atomic_load(&nprofiles);
	struct kiln_profile *p;

	if (!profiles)
		profiles = pages_map(CUSTOM_MAX * sizeof(*profiles));
	if (!profiles || n == CUSTOM_MAX || !is_name(name))
		return NULL;
	p = &profiles[n];
	memcpy(p->name, name, strlen(name) + 1);
	p->profile = (struct agent_profile){
		.name = p->name,
		.about = "",
		.types = { { p->name, "count" } },
		.ntypes = 1,
		.period_type = { p->name, "count" },
		.collect = collect,
	};
	atomic_store(&nprofiles, n + 1);
	return p;
}

kiln_profile *kiln_profile_new(const char *name)
{
	struct kiln_profile *p;
	int kept = errno;

	if (!name)
		return NULL;
	agent_enter();
	modules_update(false);
	lock_take(&lock);
	p = make(name);
	lock_give(&lock);
	agent_leave();
	errno = kept;
	return p;
}

kiln_profile *kiln_profile_find(const char *name)
{
	for (unsigned i = 0; name && i < nprofiles; i++)
		if (strcmp(profiles[i].name, name) == 0)
			return &profiles[i];
	return NULL;
}

int kiln_profile_add(kiln_profile *p, const void *value, int skip)
{
	struct walk_start here = walk_here();
	frame_t frames[STACK_MAX];
	uint32_t n, first;
	int result;

	if (!p)
		return -EINVAL;
	agent_enter();
	n = walk_stack(&here, frames, STACK_MAX);
	first = skip < 0 ? 0 : (uint32_t)skip < n ? (uint32_t)skip : n;
	lock_take(&lock);
	result = add(p, value, stack_add(frames + first, n - first));
	lock_give(&lock);
	agent_leave();
	return result;
}

void kiln_profile_remove(kiln_profile *p, const void *value)
{
	struct entry *slot;

	if (!p)
		return;
	lock_take(&lock);
	slot = p->size ? find_slot(p, value) : NULL;
	if (slot && slot->is_used)
		take_out(p, slot);
	lock_give(&lock);
}

int64_t kiln_profile_count(const kiln_profile *p)
{
	int64_t n;

	if (!p)
		return 0;
	lock_take(&lock);
	n = p->n;
	lock_give(&lock);
	return n;
}

/* ---- the part: a child of fork has its values too, so the lock must not be anyone's there */

static void before_fork(void)
{
	lock_take(&lock);
}

static void after_fork(void)
{
	lock_give(&lock);
}

const struct agent_part part_custom = {
	.name = "custom",
	.before_fork = before_fork,
	.after_fork = after_fork,
	.in_child = after_fork,
};
