#include "web/profiles.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/path.h"
#include "base/vec.h"

/* ---- names for what has none */

static bool has_no_name(const struct profile *p, const struct location *l)
{
	for (uint32_t i = 0; i < l->nlines; i++)
		if (p->lines[l->first_line + i].function != NONE)
			return false;
	return true;
}

static bool is_all_named(const struct profile *p)
{
	for (uint32_t i = 0; i < p->nlocations; i++)
		if (has_no_name(p, &p->locations[i]))
			return false;
	return true;
}

/* "libc.so.6+0x2a1e0": where the address is in its file. */
static uint32_t place_name(const struct profile *p, const struct location *l, struct buf *text)
{
	const struct mapping *m = l->mapping == NONE ? NULL : &p->mappings[l->mapping];
	uint64_t offset = m ? l->address - m->start + m->offset : l->address;

	text->n = 0;
	if (m && m->file)
		buf_str(text, path_base(profile_str(p, m->file)));
	if (m || l->address)
		buf_printf(text, "%s0x%llx", text->n ? "+" : "", (unsigned long long)offset);
	else
		buf_puts(text, "<unknown>");
	return strings_add(p->strings, buf_view(text));
}

/* The same profile with a function for each address that has none. */
static void name_all(struct loaded *l)
{
	struct profile *p = &l->named.profile;
	struct arena *a = &l->named.arena;
	vec(struct function) functions = { 0 };
	vec(struct line) lines = { 0 };
	struct buf text = { 0 };

	l->named = (struct session){ .profile = l->session.profile,
				     .threads = l->session.threads,
				     .keeps_slices = true };
	for (uint32_t i = 0; i < p->nfunctions; i++)
		vec_push(&functions, p->functions[i]);
	for (uint32_t i = 0; i < p->nlines; i++)
		vec_push(&lines, p->lines[i]);
	p->locations = arena_copy(a, p->locations, p->nlocations * sizeof(*p->locations));
	for (uint32_t i = 0; i < p->nlocations; i++) {
		struct location *at = &p->locations[i];
		struct function f;
		uint32_t name;

		if (!has_no_name(p, at))
			continue;
		name = place_name(p, at, &text);
		at->first_line = (uint32_t)lines.n;
		at->nlines = 1;
		f = (struct function){ .id = functions.n + 1, .name = name, .system_name = name };
		vec_push(&lines, (struct line){ .function = (uint32_t)functions.n });
		vec_push(&functions, f);
	}
	p->nfunctions = (uint32_t)functions.n;
	p->functions = vec_adopt(a, &functions);
	p->nlines = (uint32_t)lines.n;
	p->lines = vec_adopt(a, &lines);
	buf_release(&text);
}

/* ---- what is known of names */

static void learn_location(struct loaded *l, const struct profile *p, const struct location *at)
{
	for (uint32_t i = 0; i < at->nlines; i++) {
		uint32_t function = p->lines[at->first_line + i].function;
		const struct function *f;
		struct name_facts *facts;

		if (function == NONE)
			continue;
		f = &p->functions[function];
		facts = &l->facts[f->name];
		if (i + 1 < at->nlines)
			facts->flags |= FUNCTION_INLINED;
		if (function >= l->session.profile.nfunctions)
			facts->flags |= FUNCTION_UNNAMED;
		if (facts->is_known)
			continue;
		facts->is_known = true;
		facts->file = f->filename;
		facts->line = f->start_line;
		facts->object = at->mapping == NONE ? 0 : p->mappings[at->mapping].file;
	}
}

static void learn_names(struct loaded *l)
{
	const struct profile *p = &loaded_session(l)->profile;

	l->nfacts = p->strings->n;
	l->facts = arena_many(&l->arena, l->nfacts, struct name_facts);
	for (uint32_t i = 0; i < p->nlocations; i++)
		learn_location(l, p, &p->locations[i]);
}

static void learn_files(struct loaded *l)
{
	const struct profile *p = &l->session.profile;
	bool *is_done = xcalloc(p->strings->n, sizeof(*is_done));
	struct buf clean = { 0 };

	strings_init(&l->files);
	for (uint32_t i = 0; i < p->nfunctions; i++) {
		uint32_t file = p->functions[i].filename;

		if (!file || is_done[file])
			continue;
		is_done[file] = true;
		clean.n = 0;
		path_clean(&clean, profile_str(p, file));
		strings_add(&l->files, buf_view(&clean));
	}
	buf_release(&clean);
	free(is_done);
}

struct session *loaded_session(struct loaded *l)
{
	return l->named.threads ? &l->named : &l->session;
}

const struct name_facts *loaded_facts(const struct loaded *l, uint32_t string)
{
	static const struct name_facts none = { .flags = FUNCTION_LABEL };

	if (string >= l->nfacts || !l->facts[string].is_known)
		return &none;
	return &l->facts[string];
}

/* ---- the table */

void profiles_init(struct profiles *t, struct functions *functions)
{
	*t = (struct profiles){ .functions = functions };
	pthread_mutex_init(&t->lock, NULL);
}

static void loaded_free(struct loaded *l)
{
	if (l->named.threads)
		session_release(&l->named);
	session_release(&l->session);
	strings_release(&l->files);
	buf_release(&l->missing);
	buf_release(&l->about);
	arena_release(&l->arena);
	pthread_mutex_destroy(&l->lock);
	free(l);
}

static struct loaded *loaded_new(const struct session *s, const char *name)
{
	struct loaded *l = xcalloc(1, sizeof(*l));

	l->name = str_dup(&l->arena, str_of(name));
	l->session = *s;
	if (s->profile.strings == &s->strings)
		l->session.profile.strings = &l->session.strings;
	l->session.keeps_slices = true;
	profile_find_times(&l->arena, &l->session.profile);
	pthread_mutex_init(&l->lock, NULL);
	if (!is_all_named(&l->session.profile))
		name_all(l);
	learn_names(l);
	learn_files(l);
	l->holders = 1;
	return l;
}

/* With the lock: one of the owners that are free. */
static void take_owner(struct profiles *t, struct loaded *l)
{
	l->functions = t->functions;
	l->owner = (unsigned)__builtin_ctz(~t->owners);
	t->owners |= 1u << l->owner;
}

/* Takes over the session, unless there are too many already; then it is NULL. */
static struct loaded *add(struct profiles *t, struct session *s, const char *name, struct str key,
			  const struct buf *missing, const struct analyze_options *o)
{
	struct loaded *l = NULL;

	pthread_mutex_lock(&t->lock);
	if (t->n < PROFILES_MAX && ~t->owners) {
		l = loaded_new(s, name);
		l->id = t->next_id++;
		l->last_used = ++t->clock;
		take_owner(t, l);
		l->holders++;
		if (key.p) { /* from now on others find it */
			l->missing = *missing;
			l->key = str_dup(&l->arena, key);
			loaded_describe(l, o);
		}
		t->at[t->n++] = l;
	}
	pthread_mutex_unlock(&t->lock);
	return l;
}

struct loaded *profiles_hold(struct profiles *t, uint32_t id)
{
	struct loaded *found = NULL;

	pthread_mutex_lock(&t->lock);
	for (size_t i = 0; i < t->n && !found; i++)
		if (t->at[i]->id == id)
			found = t->at[i];
	if (found)
		found->holders++;
	pthread_mutex_unlock(&t->lock);
	return found;
}

static void give_back(const struct profiles *t, struct loaded *l)
{
	if (t->give)
		t->give(t->ctx, l->bytes);
	loaded_free(l);
}

void profiles_drop(struct profiles *t, struct loaded *l)
{
	bool is_last;

	if (!l)
		return;
	pthread_mutex_lock(&t->lock);
	is_last = --l->holders == 0;
	pthread_mutex_unlock(&t->lock);
	if (!is_last)
		return;
	functions_forget(t->functions, l->owner);
	pthread_mutex_lock(&t->lock);
	t->owners &= ~(1u << l->owner); /* not before nothing is its own any more */
	pthread_mutex_unlock(&t->lock);
	give_back(t, l);
}

bool profiles_remove(struct profiles *t, uint32_t id)
{
	struct loaded *found = NULL;

	pthread_mutex_lock(&t->lock);
	for (size_t i = 1; i < t->n && !found; i++) {
		if (t->at[i]->id != id)
			continue;
		found = t->at[i];
		memmove(t->at + i, t->at + i + 1, (--t->n - i) * sizeof(*t->at));
	}
	pthread_mutex_unlock(&t->lock);
	profiles_drop(t, found);
	return found;
}

void profiles_release(struct profiles *t)
{
	for (size_t i = 0; i < t->n; i++)
		profiles_drop(t, t->at[i]);
	pthread_mutex_destroy(&t->lock);
}

struct loaded *profiles_lend(struct profiles *t, const struct profile *p, int threads,
			     const char *name, const struct analyze_options *o)
{
	struct session s = { .profile = *p, .threads = threads };
	struct loaded *l = add(t, &s, name, (struct str){ 0 }, NULL, NULL);

	if (l)
		loaded_describe(l, o);
	return l;
}

/* ---- those of a source */

struct loaded *profiles_borrow(struct profiles *t, struct session *s, uint64_t bytes)
{
	struct loaded *l = loaded_new(s, "");
	bool has_owner;

	l->bytes = bytes;
	pthread_mutex_lock(&t->lock);
	has_owner = ~t->owners;
	if (has_owner)
		take_owner(t, l);
	pthread_mutex_unlock(&t->lock);
	if (has_owner)
		return l;
	give_back(t, l);
	return NULL;
}

struct loaded *profiles_find(struct profiles *t, struct str key)
{
	struct loaded *found = NULL;

	pthread_mutex_lock(&t->lock);
	for (size_t i = 0; i < t->n && !found; i++)
		if (str_eq(key, str_of(t->at[i]->key)))
			found = t->at[i];
	if (found) {
		found->holders++;
		found->last_used = ++t->clock;
	}
	pthread_mutex_unlock(&t->lock);
	return found;
}

bool profiles_shed(struct profiles *t)
{
	struct loaded *oldest = NULL;
	size_t at = 0;

	pthread_mutex_lock(&t->lock);
	for (size_t i = 0; i < t->n; i++) {
		if (t->at[i]->holders > 1 || (oldest && oldest->last_used < t->at[i]->last_used))
			continue;
		oldest = t->at[i];
		at = i;
	}
	if (oldest)
		memmove(t->at + at, t->at + at + 1, (--t->n - at) * sizeof(*t->at));
	pthread_mutex_unlock(&t->lock);
	profiles_drop(t, oldest);
	return oldest;
}

struct loaded *profiles_keep(struct profiles *t, struct session *s, const char *name,
			     struct str key, const struct buf *missing,
			     const struct analyze_options *o)
{
	struct loaded *l = add(t, s, name, key, missing, o);

	while (!l && profiles_shed(t))
		l = add(t, s, name, key, missing, o);
	return l;
}

size_t profiles_list(struct profiles *t, uint32_t ids[PROFILES_MAX])
{
	size_t n;

	pthread_mutex_lock(&t->lock);
	for (n = 0; n < t->n; n++)
		ids[n] = t->at[n]->id;
	pthread_mutex_unlock(&t->lock);
	return n;
}

/* Lines about missing names are for the page; on a terminal they are printed as well. */
static void sort_warnings(struct buf *all, bool is_verbose, struct buf *missing,
			  struct buf *warnings)
{
	struct str rest = buf_view(all);

	while (rest.n) {
		struct str line = str_cut(&rest, '\n');
		bool is_name = str_has_prefix(line, STR("No names for "));

		if (is_name) {
			buf_str(missing, line);
			buf_char(missing, '\n');
		}
		if (warnings && (!is_name || is_verbose)) {
			buf_str(warnings, line);
			buf_char(warnings, '\n');
		}
	}
}

struct loaded *profiles_load(struct profiles *t, const struct command_line *c, const char *name,
			     struct buf *warnings, struct err *e)
{
	struct command_line line = *c;
	struct buf all = { 0 }, missing = { 0 };
	struct session s;
	struct loaded *l = NULL;
	bool ok;

	line.options.verbose = true;
	ok = analyze_load(&s, &line, &all, e);
	sort_warnings(&all, c->options.verbose || isatty(STDERR_FILENO), &missing, warnings);
	if (ok && !(l = add(t, &s, name, (struct str){ 0 }, NULL, NULL)))
		err_set(e, ERR_LIMIT, "%d profiles are open already: close one first",
			PROFILES_MAX);
	if (l) {
		l->missing = missing;
		loaded_describe(l, &c->options);
	} else {
		session_release(&s);
		buf_release(&missing);
	}
	buf_release(&all);
	return l;
}
