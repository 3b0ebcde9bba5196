/* accounts.h - the files of tokens and users (auth.h), read. */
#ifndef SERVER_ACCOUNTS_H
#define SERVER_ACCOUNTS_H

#include "base/vec.h"
#include "server/auth.h"

enum { DIGEST_BYTES = 32 };

struct token {
	unsigned char digest[DIGEST_BYTES]; /* of the token, or of "cert:NAME" */
	enum role roles;
	struct str name;
};

struct user {
	struct str name;
	const char *hash; /* for crypt(3) */
	enum role roles;
	unsigned char known[DIGEST_BYTES]; /* of the password, once it has been right */
	bool has_known;
};

struct accounts {
	struct arena arena;
	vec(struct token) tokens;
	vec(struct user) users;
};

/* Files may be "" or NULL. Errors name the file, the line and what would be right. */
bool accounts_read(struct accounts *a, const char *tokens, const char *users, struct err *e);
void accounts_release(struct accounts *a);
void accounts_digest(unsigned char out[DIGEST_BYTES], struct str text);
/* In a time that does not tell how much of it is the same. */
bool accounts_same_digest(const unsigned char *a, const unsigned char *b);
/* NULL: there is none. Takes as long for one that is nearly right as for any other. */
const struct token *accounts_find_token(const struct accounts *a, struct str token);
struct user *accounts_find_user(struct accounts *a, struct str name);
/* With crypt(3), which is slow by intent. */
bool accounts_is_password(const struct user *u, struct str password);

#endif
