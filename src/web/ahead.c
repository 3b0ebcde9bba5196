#include "web/ahead.h"

#include <poll.h>
#include <stdlib.h>

#include "web/site.h"

enum { MIN_SAMPLES = 50000, PAUSE_MS = 250, MAX_TRIES = 50 };

/* What the page's scripts ask for: the flame graph as fine as it can be seen (flame.js), in which
 * what has no name is grouped, and the table of functions. */
static const char *const named_targets[] = { "/ui/api/v1/flame?min=0.0005", "/ui/api/v1/top" };
static const char *const other_targets[] = { "/ui/api/v1/flame?group=1&min=0.0005",
					     "/ui/api/v1/top" };
enum { NTARGETS = sizeof(named_targets) / sizeof(*named_targets) };

struct ahead {
	struct site *site;
	struct loaded *profile;
	pthread_t thread;
	atomic_bool is_stopped;
};

/* Makes the answer, which is kept. False: others wanted the profile. */
static bool make_answer(struct ahead *x, const char *target)
{
	struct http_call call = { .method = STR("GET"), .abandoned = &x->profile->is_wanted };
	struct http_reply reply = { 0 };
	struct err e;
	bool ok;

	atomic_store(&x->profile->is_wanted, false);
	atomic_store(&x->profile->ahead, target);
	if (http_target_parse(&call.arena, str_of(target), &call.target, &e))
		site_handle(x->site, &call, &reply);
	atomic_store(&x->profile->ahead, NULL);
	ok = reply.status == 200;
	http_content_drop(reply.content);
	arena_release(&call.arena);
	return ok;
}

static void *work(void *ctx)
{
	struct ahead *x = ctx;
	const char *const *targets = x->profile->named.threads ? other_targets : named_targets;

	for (size_t i = 0; i < NTARGETS; i++) {
		for (int tries = 0; tries < MAX_TRIES && !atomic_load(&x->is_stopped); tries++) {
			bool ok = make_answer(x, targets[i]);

			poll(NULL, 0, PAUSE_MS); /* the page needs the cores, too */
			if (ok)
				break;
		}
	}
	return NULL;
}

struct ahead *ahead_start(struct site *site)
{
	struct ahead *x = xcalloc(1, sizeof(*x));

	x->site = site;
	x->profile = profiles_hold(&site->profiles, 0);
	if (x->profile && x->profile->session.profile.nsamples >= MIN_SAMPLES &&
	    pthread_create(&x->thread, NULL, work, x) == 0)
		return x;
	profiles_drop(&site->profiles, x->profile);
	free(x);
	return NULL;
}

void ahead_stop(struct ahead *x)
{
	if (!x)
		return;
	atomic_store(&x->is_stopped, true);
	atomic_store(&x->profile->is_wanted, true);
	pthread_join(x->thread, NULL);
	profiles_drop(&x->site->profiles, x->profile);
	free(x);
}
