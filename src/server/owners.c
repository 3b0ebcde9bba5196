#include "server/owners.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/regex.h"
#include "base/utf8.h"
#include "base/vec.h"
#include "store/store.h"

enum { MAX_RULES = 256, MAX_BYTES = 1000, MAX_NAME_BYTES = 100 };

struct rule {
	struct str owner;		  /* in the arena */
	struct regex *service, *function; /* or NULL: any */
};

/* Services for which the same rules hold. */
struct class
{
	struct owners *owners;
	uint8_t holds[MAX_RULES / 8]; /* a bit for each rule */
};

struct owners {
	struct arena a;
	vec(struct rule) rules;
	pthread_mutex_t lock; /* of: */
	vec(struct class *) classes;
	struct map class_map;
};

/* ---- rules */

static bool is_clean(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if ((unsigned char)s.p[i] < ' ')
			return false;
	return utf8_is_valid(s);
}

static bool check_owner(struct str owner, struct err *e)
{
	if (!owner.n || owner.n > MAX_NAME_BYTES || !is_clean(owner))
		return err_set(e, ERR_USAGE, "an owner is a name of up to %d bytes",
			       MAX_NAME_BYTES);
	return true;
}

bool owners_put_rule(struct buf *out, struct str owner, struct str service, struct str function,
		     struct err *e)
{
	if (!check_owner(owner, e))
		return false;
	if (str_find_char(owner, '@') != STR_NONE || str_find_char(owner, '=') != STR_NONE)
		return err_set(e, ERR_USAGE, "the name of an owner has no @ and no =");
	if (str_find_char(service, '=') != STR_NONE)
		return err_set(e, ERR_USAGE, "the pattern of a service has no =: write \\x3d");
	if (!is_clean(service) || !is_clean(function))
		return err_set(e, ERR_USAGE, "a pattern is on one line");
	buf_str(out, owner);
	if (service.n)
		buf_printf(out, "@%.*s", STR_ARG(service));
	buf_printf(out, "=%.*s\n", STR_ARG(function));
	return true;
}

/* "" is any: NULL. */
static bool compile(struct regex **re, struct str pattern, struct err *e)
{
	*re = NULL;
	if (!pattern.n)
		return true;
	if (pattern.n > MAX_BYTES)
		return err_set(e, ERR_USAGE, "a pattern of %zu bytes, and %d are the most",
			       pattern.n, MAX_BYTES);
	*re = regex_compile(pattern, e);
	return *re;
}

static bool add_rule(struct owners *o, struct str line, struct err *e)
{
	struct str function = line, service = str_cut(&function, '='),
		   owner = str_trim(str_cut(&service, '@'));
	struct rule rule = { .owner = { str_dup(&o->a, owner), owner.n } };

	if (!check_owner(owner, e))
		return false;
	if (!function.n && !service.n)
		return err_set(e, ERR_USAGE,
			       "a rule is written as OWNER=FUNCTION or "
			       "OWNER@SERVICE=FUNCTION");
	if (o->rules.n == MAX_RULES)
		return err_set(e, ERR_USAGE, "%d rules are the most", MAX_RULES);
	if (!compile(&rule.service, service, e))
		return false;
	if (!compile(&rule.function, function, e)) {
		regex_free(rule.service);
		return false;
	}
	vec_push(&o->rules, rule);
	return true;
}

struct owners *owners_new(struct str rules, struct err *e)
{
	struct owners *o = xcalloc(1, sizeof(*o));

	pthread_mutex_init(&o->lock, NULL);
	while (rules.n) {
		struct str line = str_trim(str_cut(&rules, '\n'));

		if (line.n && !add_rule(o, line, e)) {
			err_wrap(e, "%.*s", (int)(line.n < 100 ? line.n : 100), line.p);
			owners_free(o);
			return NULL;
		}
	}
	return o;
}

void owners_free(struct owners *o)
{
	if (!o)
		return;
	for (size_t i = 0; i < o->rules.n; i++) {
		if (o->rules.at[i].service)
			regex_free(o->rules.at[i].service);
		if (o->rules.at[i].function)
			regex_free(o->rules.at[i].function);
	}
	for (size_t i = 0; i < o->classes.n; i++)
		free(o->classes.at[i]);
	vec_release(&o->rules);
	vec_release(&o->classes);
	map_release(&o->class_map);
	pthread_mutex_destroy(&o->lock);
	arena_release(&o->a);
	free(o);
}

size_t owners_nrules(const struct owners *o)
{
	return o ? o->rules.n : 0;
}

/* ---- whose it is */

static bool holds_for(const struct rule *r, struct str service)
{
	return !r->service || (service.n && regex_match(r->service, service));
}

static bool same_class(const void *ctx, uint32_t index)
{
	const struct class *like = ctx;

	return !memcmp(like->owners->classes.at[index]->holds, like->holds, sizeof(like->holds));
}

/* There are as many as different sets of rules, which are not more than services. */
static struct class *intern(struct owners *o, const struct class *like)
{
	uint64_t hash = hash_bytes(map_seed(), like->holds, sizeof(like->holds));
	uint32_t i = map_put(&o->class_map, hash, o->classes.n, same_class, like);

	if (i == o->classes.n) {
		struct class *c = xmalloc(sizeof(*c));

		*c = *like;
		vec_push(&o->classes, c);
	}
	return o->classes.at[i];
}

void *owners_of_service(void *owners, struct str service)
{
	struct owners *o = owners;
	struct class c = { .owners = o }, *found;

	for (size_t i = 0; i < o->rules.n; i++)
		if (holds_for(&o->rules.at[i], service))
			c.holds[i / 8] |= (uint8_t)(1 << i % 8);
	pthread_mutex_lock(&o->lock);
	found = intern(o, &c);
	pthread_mutex_unlock(&o->lock);
	return found;
}

struct str group_owner(void *ctx, struct str function, struct str file, struct str module)
{
	const struct class *c = ctx;
	const struct owners *o = c->owners;

	(void)file, (void)module;
	for (size_t i = 0; i < o->rules.n; i++)
		if (c->holds[i / 8] >> i % 8 & 1 &&
		    (!o->rules.at[i].function || regex_match(o->rules.at[i].function, function)))
			return o->rules.at[i].owner;
	return NO_OWNER;
}

/* ---- of functions that are in services of several kinds */

struct owned {
	struct str owner;
	double flat, cum;
};

static int by_owner(const void *a, const void *b)
{
	return str_cmp(((const struct owned *)a)->owner, ((const struct owned *)b)->owner);
}

/* By what it takes itself; by what it calls, if it does nothing else. */
static int heaviest_first(const void *a, const void *b)
{
	const struct owned *x = a, *y = b;

	if (x->flat != y->flat)
		return x->flat < y->flat ? 1 : -1;
	if (x->cum != y->cum)
		return x->cum < y->cum ? 1 : -1;
	return by_owner(a, b);
}

/* Those of one owner become one. */
static size_t join_owned(struct owned *all, size_t n)
{
	size_t kept = 0;

	qsort(all, n, sizeof(*all), by_owner);
	for (size_t i = 1; i < n; i++) {
		if (!str_eq(all[kept].owner, all[i].owner)) {
			all[++kept] = all[i];
			continue;
		}
		all[kept].flat += all[i].flat;
		all[kept].cum += all[i].cum;
	}
	return n ? kept + 1 : 0;
}

struct str *owners_of_parts(struct arena *a, struct str function,
			    const struct store_top_part *parts, size_t n, size_t *nowners)
{
	struct owned *all = arena_many(a, n, struct owned);
	struct str *owners;

	for (size_t i = 0; i < n; i++)
		all[i] = (struct owned){ group_owner(parts[i].ctx, function, STR(""), STR("")),
					 parts[i].flat, parts[i].cum };
	*nowners = n = join_owned(all, n);
	qsort(all, n, sizeof(*all), heaviest_first);
	owners = arena_many(a, n, struct str);
	for (size_t i = 0; i < n; i++)
		owners[i] = all[i].owner;
	return owners;
}
