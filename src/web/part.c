/* part.c - the site as part of another server, which has profiles of its own. */
#include <stdlib.h>

#include "base/version.h"
#include "web/names.h"

enum {
	MAX_KEY_BYTES = 16 << 10,
	MEMORY_PER_BYTE = 3, /* itself, names for what has none, and one report of it */
};

struct site *web_site_new(const struct web_source *source)
{
	struct site *s = xcalloc(1, sizeof(*s));

	s->source = *source;
	s->line = (struct command_line){ .options = analyze_defaults, .argument = "" };
	s->params = (struct web_params){ .c = &s->line, .version = KILN_VERSION };
	site_init(s);
	s->profiles.give = source->give;
	s->profiles.ctx = source->ctx;
	pthread_mutex_init(&s->loading, NULL);
	return s;
}

void web_site_free(struct site *s)
{
	if (!s)
		return;
	site_release(s);
	pthread_mutex_destroy(&s->loading);
	free(s);
}

void web_reply(struct site *s, struct http_call *call, struct http_reply *reply)
{
	site_handle(s, call, reply);
}

bool web_site_shed(struct site *s)
{
	return profiles_shed(&s->profiles);
}

size_t web_site_profiles(struct site *s)
{
	uint32_t ids[PROFILES_MAX];

	return profiles_list(&s->profiles, ids);
}

uint64_t web_session_bytes(const struct session *s)
{
	const struct strings *t = &s->strings;

	return MEMORY_PER_BYTE * ((uint64_t)arena_bytes(&s->arena) + arena_bytes(&t->bytes) +
				  t->cap * sizeof(*t->at) + sizeof(struct loaded));
}

/* ---- loading */

static struct loaded *load(struct api_call *q, struct str key, struct err *e)
{
	struct site *site = q->site;
	struct web_loaded new = { .session.threads = 1 }; /* others have the other cores */
	struct loaded *l = NULL;

	strings_init(&new.session.strings);
	if (site->source.load(site->source.ctx, q->http, q->reply, key, &new, e)) {
		buf_char(&new.name, '\0');
		l = profiles_keep(&site->profiles, &new.session, new.name.p, key, &new.notes,
				  &q->options);
		if (!l) {
			site->source.give(site->source.ctx, new.bytes);
			q->status = 503;
			err_set(e, ERR_LIMIT, "%d profiles are being looked at; try again",
				PROFILES_MAX);
		}
	}
	buf_release(&new.name);
	if (!l) {
		buf_release(&new.notes);
		session_release(&new.session);
		return NULL;
	}
	l->bytes = new.bytes;
	pthread_mutex_lock(&l->lock);
	name_functions(site, l);
	pthread_mutex_unlock(&l->lock);
	return l;
}

/* One at a time, or two who ask for the same would both load it. */
static bool lock_loading(struct api_call *q, struct err *e)
{
	while (!site_lock(&q->site->loading))
		if (stop_asked(q->http->abandoned))
			return err_set(e, ERR_IO, "nobody waits for the answer any more");
	return true;
}

bool part_open(struct api_call *q, struct str key, struct loaded **out, struct err *e)
{
	struct profiles *t = &q->site->profiles;

	if (!key.n || key.n > MAX_KEY_BYTES || memchr(key.p, '\0', key.n))
		return err_set(e, ERR_USAGE,
			       "the parameter a says which profiles are meant, as "
			       "a=service%%3Dweb%%26type%%3Dcpu%%26from%%3Dnow-1h");
	*out = profiles_find(t, key);
	if (*out)
		return true;
	if (!lock_loading(q, e))
		return false;
	*out = profiles_find(t, key);
	if (!*out)
		*out = load(q, key, e);
	pthread_mutex_unlock(&q->site->loading);
	return *out;
}
