#include "server/auth.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <time.h>

#include "base/base64.h"
#include "base/small_file.h"
#include "server/accounts.h"

enum { LOOK_S = 2, MAX_CLAIM_BYTES = 4096 };

struct auth {
	struct auth_params params;
	pthread_mutex_t lock; /* of all below */
	struct accounts accounts;
	struct file_version versions[2];
	time_t looked;
	bool has_accounts;
};

/* ---- addresses */

static bool same_name(struct str a, const char *b)
{
	return a.n == strlen(b) && strncasecmp(a.p, b, a.n) == 0;
}

static bool parse_address(struct str name, int family, void *out)
{
	char text[64];

	if (!name.n || name.n >= sizeof(text))
		return false;
	memcpy(text, name.p, name.n);
	text[name.n] = '\0';
	return inet_pton(family, text, out) == 1;
}

bool auth_is_loopback(struct str host)
{
	struct in_addr v4;
	struct in6_addr v6;

	if (same_name(host, "localhost"))
		return true;
	if (parse_address(host, AF_INET, &v4))
		return ntohl(v4.s_addr) >> 24 == 127;
	return parse_address(host, AF_INET6, &v6) && IN6_IS_ADDR_LOOPBACK(&v6);
}

/* "localhost" of "localhost:80", "::1" of "[::1]:80". */
static struct str host_name(struct str host)
{
	if (host.n && host.p[0] == '[') {
		size_t end = str_find_char(host, ']');

		return end == STR_NONE ? STR("") : (struct str){ host.p + 1, end - 1 };
	}
	return str_cut(&host, ':');
}

/* Where nobody has to say who he is, a page elsewhere could have a browser ask us, by a name whose
 * address it has changed to ours. It cannot do that with an address. */
static bool is_our_host(const struct auth *a, struct str host)
{
	struct str name = host_name(host);
	unsigned char address[sizeof(struct in6_addr)];

	return !host.n || auth_is_loopback(name) || same_name(name, a->params.host) ||
	       parse_address(name, AF_INET, address) || parse_address(name, AF_INET6, address);
}

/* ---- files that change */

static bool is_given(const char *path)
{
	return path && *path;
}

static struct file_version version_of(const char *path)
{
	return is_given(path) ? file_version(path) : (struct file_version){ 0 };
}

static void say(const struct auth *a, const char *line)
{
	if (a->params.log)
		a->params.log(a->params.log_ctx, line);
}

/* What cannot be read leaves things as they are: who may come in may do so still. */
static void read_again(struct auth *a, const struct file_version *now)
{
	struct accounts fresh;
	struct err e;

	memcpy(a->versions, now, sizeof(a->versions));
	if (!accounts_read(&fresh, a->params.tokens, a->params.users, &e)) {
		err_wrap(&e, "tokens and users stay as they were");
		say(a, e.text);
		return;
	}
	accounts_release(&a->accounts);
	a->accounts = fresh;
	say(a, "tokens and users have been read again");
}

void auth_reload(struct auth *a)
{
	struct file_version now[] = { version_of(a->params.tokens), version_of(a->params.users) };

	if (!a->has_accounts)
		return;
	pthread_mutex_lock(&a->lock);
	read_again(a, now);
	pthread_mutex_unlock(&a->lock);
}

static void look_at_files(struct auth *a)
{
	struct file_version now[2];
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	if (!a->has_accounts || t.tv_sec < a->looked + LOOK_S)
		return;
	a->looked = t.tv_sec;
	now[0] = version_of(a->params.tokens);
	now[1] = version_of(a->params.users);
	if (!file_version_same(&now[0], &a->versions[0]) ||
	    !file_version_same(&now[1], &a->versions[1]))
		read_again(a, now);
}

/* ---- start and end */

static bool is_safe(const struct auth *a, struct err *e)
{
	const struct auth_params *p = &a->params;

	if (auth_is_needed(a) || p->is_insecure || auth_is_loopback(str_of(p->host)))
		return true;
	return err_set(
		e, ERR_USAGE,
		"other machines could read and write profiles at %s without saying who they "
		"are: give --tokens=FILE, --users=FILE or --tls-client-ca=FILE, or listen at "
		"127.0.0.1, or say that this is meant: --insecure",
		*p->host ? p->host : "every address");
}

struct auth *auth_new(const struct auth_params *params, struct err *e)
{
	struct auth *a = xcalloc(1, sizeof(*a));

	a->params = *params;
	a->has_accounts = is_given(params->tokens) || is_given(params->users);
	a->versions[0] = version_of(params->tokens);
	a->versions[1] = version_of(params->users);
	pthread_mutex_init(&a->lock, NULL);
	if (accounts_read(&a->accounts, params->tokens, params->users, e) && is_safe(a, e))
		return a;
	auth_free(a);
	return NULL;
}

void auth_free(struct auth *a)
{
	if (!a)
		return;
	accounts_release(&a->accounts);
	pthread_mutex_destroy(&a->lock);
	free(a);
}

bool auth_is_needed(const struct auth *a)
{
	return a->has_accounts || a->params.wants_certificate;
}

/* ---- checking */

static bool decode_base64(struct arena *a, struct str text, struct str *out)
{
	struct buf bytes = { 0 };
	bool ok = base64_decode(&bytes, text);

	*out = (struct str){ str_dup(a, buf_view(&bytes)), bytes.n };
	buf_release(&bytes);
	return ok;
}

struct check {
	struct auth *auth;
	struct arena *arena;
	bool may_be_slow;
	enum role *roles;
	struct str *who;
};

static enum auth_result let_in(const struct check *c, struct str name, enum role roles)
{
	*c->roles = roles;
	*c->who = (struct str){ str_dup(c->arena, name), name.n };
	return AUTH_OK;
}

static enum auth_result check_token(const struct check *c, struct str text)
{
	const struct token *t = accounts_find_token(&c->auth->accounts, text);

	/* A certificate's name is no secret. */
	if (!t || str_has_prefix(text, STR("cert:")))
		return AUTH_WRONG;
	return let_in(c, t->name, t->roles);
}

/* Hashing is done without the lock: the user may be another, or gone, after it. */
static enum auth_result check_slowly(const struct check *c, const struct user *u, struct str name,
				     struct str password, const unsigned char *digest)
{
	struct auth *a = c->auth;
	struct user copy = { .hash = str_dup(c->arena, str_of(u->hash)), .roles = u->roles };
	struct user *now;
	bool ok;

	pthread_mutex_unlock(&a->lock);
	ok = accounts_is_password(&copy, password);
	pthread_mutex_lock(&a->lock);
	now = accounts_find_user(&a->accounts, name);
	if (!ok || !now || strcmp(now->hash, copy.hash) != 0)
		return AUTH_WRONG;
	memcpy(now->known, digest, DIGEST_BYTES);
	now->has_known = true;
	return let_in(c, now->name, now->roles);
}

static enum auth_result check_basic(const struct check *c, struct str encoded)
{
	unsigned char digest[DIGEST_BYTES];
	struct str password, name;
	struct user *u;

	if (!decode_base64(c->arena, encoded, &password))
		return AUTH_WRONG;
	name = str_cut(&password, ':');
	u = accounts_find_user(&c->auth->accounts, name);
	if (!u)
		return check_token(c, password);
	accounts_digest(digest, password);
	if (u->has_known && accounts_same_digest(u->known, digest))
		return let_in(c, u->name, u->roles);
	if (!c->may_be_slow)
		return AUTH_SLOW;
	return check_slowly(c, u, name, password, digest);
}

/* Any that our authority has signed may read and write, unless there is a list of them. */
static enum auth_result check_certificate(const struct check *c, struct str name)
{
	struct accounts *all = &c->auth->accounts;
	struct buf text = { 0 };
	const struct token *t;

	if (!c->auth->has_accounts)
		return let_in(c, name, ROLE_READ | ROLE_WRITE);
	buf_puts(&text, "cert:");
	buf_str(&text, name);
	t = accounts_find_token(all, buf_view(&text));
	buf_release(&text);
	return let_in(c, t ? t->name : name, t ? t->roles : ROLE_NONE);
}

/* Scheme, and what follows it. */
static struct str scheme_of(struct str *header)
{
	struct str rest = str_trim(*header), scheme = str_cut(&rest, ' ');

	*header = str_trim(rest);
	return scheme;
}

static enum auth_result check(const struct check *c, const struct auth_claim *claim)
{
	struct auth *a = c->auth;
	struct str rest = claim->authorization, scheme = scheme_of(&rest);

	if (a->params.wants_certificate && !claim->certificate.p)
		return AUTH_NO_CERTIFICATE;
	if (claim->authorization.n > MAX_CLAIM_BYTES)
		return AUTH_WRONG;
	if (a->has_accounts && same_name(scheme, "Bearer"))
		return check_token(c, rest);
	if (a->has_accounts && same_name(scheme, "Basic"))
		return check_basic(c, rest);
	if (claim->certificate.p)
		return check_certificate(c, claim->certificate);
	if (a->has_accounts)
		return let_in(c, STR(""), ROLE_NONE);
	if (!a->params.is_insecure && !is_our_host(a, claim->host))
		return AUTH_WRONG_HOST;
	return let_in(c, STR(""), claim->is_local ? ROLE_ADMIN : ROLE_READ | ROLE_WRITE);
}

enum auth_result auth_check(struct auth *a, const struct auth_claim *claim, bool may_be_slow,
			    struct arena *arena, enum role *roles, struct str *who)
{
	struct check c = { a, arena, may_be_slow, roles, who };
	enum auth_result result;

	*roles = ROLE_NONE;
	*who = STR("");
	pthread_mutex_lock(&a->lock);
	look_at_files(a);
	result = check(&c, claim);
	pthread_mutex_unlock(&a->lock);
	return result;
}
