#include "server/accounts.h"

#include <crypt.h>
#include <dlfcn.h>
#include <sha2.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/small_file.h"

enum { MAX_FILE_BYTES = 8 << 20, MIN_TOKEN_CHARS = 16, MAX_PASSWORD_BYTES = 500 };

#define LIBRARY "libcrypt.so.1"

void accounts_digest(unsigned char out[DIGEST_BYTES], struct str text)
{
	SHA2_CTX c;

	SHA256Init(&c);
	SHA256Update(&c, (const uint8_t *)text.p, text.n);
	SHA256Final(out, &c);
}

bool accounts_same_digest(const unsigned char *a, const unsigned char *b)
{
	unsigned differs = 0;

	for (size_t i = 0; i < DIGEST_BYTES; i++)
		differs |= (unsigned)(a[i] ^ b[i]);
	return !differs;
}

const struct token *accounts_find_token(const struct accounts *a, struct str token)
{
	unsigned char digest[DIGEST_BYTES];
	const struct token *found = NULL;

	accounts_digest(digest, token);
	for (size_t i = 0; i < a->tokens.n; i++)
		if (accounts_same_digest(a->tokens.at[i].digest, digest))
			found = &a->tokens.at[i];
	return found;
}

struct user *accounts_find_user(struct accounts *a, struct str name)
{
	for (size_t i = 0; i < a->users.n; i++)
		if (str_eq(a->users.at[i].name, name))
			return &a->users.at[i];
	return NULL;
}

/* ---- crypt(3), loaded when there are users */

static void *crypt_function(const char *name)
{
	void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_NODELETE);

	return library ? dlsym(library, name) : NULL;
}

static bool is_known_hash(const char *hash)
{
	__typeof__(crypt_checksalt) *check_salt;
	void *f = crypt_function("crypt_checksalt");

	memcpy(&check_salt, &f, sizeof(f));
	return f && hash[0] == '$' && check_salt(hash) == CRYPT_SALT_OK;
}

bool accounts_is_password(const struct user *u, struct str password)
{
	struct crypt_data *data = xcalloc(1, sizeof(*data));
	__typeof__(crypt_r) *hash;
	void *f = crypt_function("crypt_r");
	char text[MAX_PASSWORD_BYTES + 1];
	bool ok = false;

	memcpy(&hash, &f, sizeof(f));
	if (f && password.n <= MAX_PASSWORD_BYTES && !memchr(password.p, '\0', password.n)) {
		unsigned char want[DIGEST_BYTES], got[DIGEST_BYTES];
		const char *result;

		memcpy(text, password.p, password.n);
		text[password.n] = '\0';
		result = hash(text, u->hash, data);
		accounts_digest(want, str_of(u->hash));
		accounts_digest(got, str_of(result ? result : ""));
		ok = accounts_same_digest(want, got);
		explicit_bzero(text, sizeof(text));
	}
	free(data);
	return ok;
}

/* ---- reading */

struct reader {
	struct accounts *to;
	const char *path;
	size_t line;
};

static bool wrong(const struct reader *r, struct err *e, const char *why)
{
	return err_set(e, ERR_FORMAT, "%s:%zu: %s", r->path, r->line, why);
}

static bool read_roles(const struct reader *r, struct str text, enum role *out, struct err *e)
{
	static const struct {
		const char *name;
		enum role role;
	} roles[] = { { "read", ROLE_READ }, { "write", ROLE_WRITE }, { "admin", ROLE_ADMIN } };
	unsigned set = 0;

	while (text.n) {
		struct str name = str_cut(&text, ',');
		unsigned role = 0;

		for (size_t i = 0; i < sizeof(roles) / sizeof(*roles); i++)
			if (str_eq(name, str_of(roles[i].name)))
				role = roles[i].role;
		if (!role)
			return err_set(
				e, ERR_FORMAT,
				"%s:%zu: \"%.*s\" is no role; write read, write or admin, or "
				"several joined by commas",
				r->path, r->line, STR_ARG(name));
		set |= role;
	}
	*out = (enum role)set;
	return true;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool read_hex(struct str hex, unsigned char out[DIGEST_BYTES])
{
	if (hex.n != 2 * DIGEST_BYTES)
		return false;
	for (size_t i = 0; i < DIGEST_BYTES; i++) {
		int high = hex_digit(hex.p[2 * i]), low = hex_digit(hex.p[2 * i + 1]);

		if (high < 0 || low < 0)
			return false;
		out[i] = (unsigned char)(high << 4 | low);
	}
	return true;
}

static struct str next_word(struct str *rest)
{
	size_t n = 0;
	struct str word;

	*rest = str_trim(*rest);
	while (n < rest->n && rest->p[n] != ' ' && rest->p[n] != '\t')
		n++;
	word = (struct str){ rest->p, n };
	*rest = str_trim(str_from(*rest, n));
	return word;
}

/* ROLES TOKEN NAME */
static bool read_token(const struct reader *r, struct str line, struct err *e)
{
	struct str roles = next_word(&line), token = next_word(&line);
	struct token t = { .name = line };

	if (!read_roles(r, roles, &t.roles, e))
		return false;
	if (!line.n)
		return wrong(r, e, "write ROLES TOKEN NAME; the name is shown in logs");
	if (str_has_prefix(token, STR("sha256:"))) {
		if (!read_hex(str_from(token, 7), t.digest))
			return wrong(r, e,
				     "after sha256: come 64 hex digits, as of printf %s "
				     "TOKEN | sha256sum");
	} else {
		if (token.n < MIN_TOKEN_CHARS && !str_has_prefix(token, STR("cert:")))
			return wrong(r, e,
				     "the token can be guessed; take 16 characters or more, "
				     "as of openssl rand -hex 20");
		accounts_digest(t.digest, token);
	}
	t.name.p = str_dup(&r->to->arena, t.name);
	vec_push(&r->to->tokens, t);
	return true;
}

/* NAME:HASH[:ROLES] */
static bool read_user(const struct reader *r, struct str line, struct err *e)
{
	struct user u = { .name = str_cut(&line, ':'), .roles = ROLE_READ };
	struct str hash = str_cut(&line, ':');

	if (!u.name.n || !hash.n)
		return wrong(r, e, "write NAME:HASH or NAME:HASH:ROLES");
	if (line.n && !read_roles(r, str_trim(line), &u.roles, e))
		return false;
	u.hash = str_dup(&r->to->arena, hash);
	if (!is_known_hash(u.hash))
		return wrong(r, e,
			     "the hash is of no kind that is known here; make it with "
			     "htpasswd -nB NAME or mkpasswd");
	u.name.p = str_dup(&r->to->arena, u.name);
	vec_push(&r->to->users, u);
	return true;
}

static bool read_lines(struct accounts *a, const char *path,
		       bool (*read_line)(const struct reader *, struct str, struct err *),
		       struct err *e)
{
	struct reader r = { a, path, 0 };
	struct buf text = { 0 };
	bool ok = !path || !*path || small_file_read(&text, path, MAX_FILE_BYTES, e);
	struct str rest = buf_view(&text);

	while (ok && rest.n) {
		struct str line = str_trim(str_cut(&rest, '\n'));

		r.line++;
		if (line.n && line.p[0] != '#')
			ok = read_line(&r, line, e);
	}
	if (text.p)
		explicit_bzero(text.p, text.n);
	buf_release(&text);
	return ok;
}

bool accounts_read(struct accounts *a, const char *tokens, const char *users, struct err *e)
{
	bool ok;

	*a = (struct accounts){ 0 };
	ok = read_lines(a, tokens, read_token, e) && read_lines(a, users, read_user, e);
	if (!ok)
		accounts_release(a);
	return ok;
}

void accounts_release(struct accounts *a)
{
	arena_release(&a->arena);
	vec_release(&a->tokens);
	vec_release(&a->users);
	*a = (struct accounts){ 0 };
}
