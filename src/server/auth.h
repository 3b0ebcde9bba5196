/* auth.h - who may do what.
 *
 * A request shows a token (Authorization: Bearer TOKEN), or a user's name and password (Basic; with
 * a token as the password any name will do, so that http://x:TOKEN@host/ works in every client), or
 * a certificate. Two files say what each of them may do; they are read again when they change.
 *
 *	tokens:	ROLES TOKEN NAME		write sha256:9f86d0... agents
 *	users:	NAME:HASH[:ROLES]		ann:$2y$10$...:read,admin
 *
 * ROLES are read, write, admin, joined by commas; of users read, if nothing is said. A TOKEN is
 * itself, of 16 characters at least, or sha256: and the SHA-256 of it in hex, or cert: and the name
 * in a client's certificate. HASH is what htpasswd -B or mkpasswd prints. '#' begins a comment.
 *
 * Threads: any number may check. */
#ifndef SERVER_AUTH_H
#define SERVER_AUTH_H

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

/* A set; admin may do all. */
enum role { ROLE_NONE = 0, ROLE_READ = 1, ROLE_WRITE = 2, ROLE_ADMIN = 7 };

static inline bool role_has(enum role have, enum role need)
{
	return (have & need) == need;
}

struct auth_params {
	const char *tokens, *users; /* files; "" or NULL: none */
	bool wants_certificate;	    /* of every client */
	bool is_insecure;	    /* without any of these, other machines may come */
	const char *host;	    /* where we listen */
	void (*log)(void *ctx, const char *line);
	void *log_ctx;
};

struct auth;

/* Fails if other machines could come without saying who they are, unless that is wanted. */
struct auth *auth_new(const struct auth_params *params, struct err *e);
void auth_free(struct auth *a);
/* Reads the files now, whether they have changed or not. If they are wrong, that is logged, and who
 * may come in may do so still. */
void auth_reload(struct auth *a);

/* What a request shows. */
struct auth_claim {
	struct str authorization; /* the header */
	struct str certificate;	  /* name in it; p == NULL: none */
	struct str host;	  /* the header */
	bool is_local;
};

enum auth_result {
	AUTH_OK,	     /* roles and who are known; roles may be ROLE_NONE */
	AUTH_WRONG,	     /* token, user or password */
	AUTH_NO_CERTIFICATE, /* it needs one */
	AUTH_WRONG_HOST,     /* a page elsewhere may have got a browser to ask us */
	AUTH_SLOW,	     /* to find out takes a tenth of a second; only if !may_be_slow */
};
enum auth_result auth_check(struct auth *a, const struct auth_claim *claim, bool may_be_slow,
			    struct arena *arena, enum role *roles, struct str *who);
/* Does anybody have to say who he is? */
bool auth_is_needed(const struct auth *a);
/* "localhost", "127.0.0.1", "::1" and the like. */
bool auth_is_loopback(struct str host);

#endif
