#include "server/auth.h"

#include "test.h"

#include <stdio.h>
#include <unistd.h>

static const char *write_file(char *path, const char *text)
{
	int fd;

	strcpy(path, "/tmp/kiln-test-XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	return path;
}

static struct auth *open_auth(const char *tokens, const char *users)
{
	struct auth_params p = { .tokens = tokens, .users = users, .host = "0.0.0.0" };
	struct err e;
	struct auth *a = auth_new(&p, &e);

	if (!a)
		fail_msg("%s", e.text);
	return a;
}

static const char TOKENS[] =
	"# comment\n"
	"\n"
	"read 0123456789abcdef  a reader \n"
	"read,write\tabcdefghijklmnopq both\n"
	"admin "
	"sha256:"
	"9F86D081884C7D659A2FEAA0C55AD015A3BF4F1B2B0B822CD15D6C15B0F00A08 boss\n"
	"write cert:agent agents";

static enum auth_result ask(struct auth *a, const char *header, enum role *roles, char who[64])
{
	struct arena arena = { 0 };
	struct auth_claim claim = { .authorization = str_of(header) };
	struct str name;
	enum auth_result r = auth_check(a, &claim, false, &arena, roles, &name);

	snprintf(who, 64, "%.*s", STR_ARG(name));
	arena_release(&arena);
	return r;
}

TEST(tokens_have_roles)
{
	char path[64], who[64];
	struct auth *a = open_auth(write_file(path, TOKENS), NULL);
	enum role r;

	assert_int_equal(ask(a, "Bearer 0123456789abcdef", &r, who), AUTH_OK);
	assert_int_equal(r, ROLE_READ);
	assert_string_equal(who, "a reader");
	assert_int_equal(ask(a, "bearer  abcdefghijklmnopq ", &r, who), AUTH_OK);
	assert_int_equal(r, ROLE_READ | ROLE_WRITE);
	assert_false(role_has(r, ROLE_ADMIN));
	assert_int_equal(ask(a, "Bearer test", &r, who), AUTH_OK); /* its SHA-256 is known */
	assert_int_equal(r, ROLE_ADMIN);
	assert_true(role_has(r, ROLE_READ) && role_has(r, ROLE_WRITE));
	assert_int_equal(ask(a, "", &r, who), AUTH_OK);
	assert_int_equal(r, ROLE_NONE);
	auth_free(a);
	unlink(path);
}

TEST(wrong_tokens)
{
	static const char *const wrong[] = {
		"Bearer 0123456789abcdeF",
		"Bearer 0123456789abcde",
		"Bearer 0123456789abcdef0",
		"Bearer",
		"Bearer cert:agent",
		"Bearer agent",
		"Basic",
		"Basic !",
		"Basic YTpi",
		"Bearer # comment",
	};
	char path[64], who[64];
	struct auth *a = open_auth(write_file(path, TOKENS), NULL);
	enum role r;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		assert_int_equal(ask(a, wrong[i], &r, who), AUTH_WRONG);
		assert_int_equal(r, ROLE_NONE);
	}
	auth_free(a);
	unlink(path);
}

TEST(a_token_may_be_a_password)
{
	char path[64], who[64];
	struct auth *a = open_auth(write_file(path, TOKENS), NULL);
	enum role r;

	/* anybody:0123456789abcdef */
	assert_int_equal(ask(a, "Basic YW55Ym9keTowMTIzNDU2Nzg5YWJjZGVm", &r, who), AUTH_OK);
	assert_int_equal(r, ROLE_READ);
	auth_free(a);
	unlink(path);
}

TEST(certificates)
{
	char path[64];
	struct auth_params p = { .tokens = write_file(path, TOKENS),
				 .host = "0.0.0.0",
				 .wants_certificate = true };
	struct auth_claim none = { 0 }, agent = { .certificate = STR("agent") },
			  other = { .certificate = STR("other") };
	struct arena arena = { 0 };
	enum role r;
	struct str who;
	struct err e;
	struct auth *a = auth_new(&p, &e);

	assert_int_equal(auth_check(a, &none, true, &arena, &r, &who), AUTH_NO_CERTIFICATE);
	assert_int_equal(auth_check(a, &agent, true, &arena, &r, &who), AUTH_OK);
	assert_int_equal(r, ROLE_WRITE);
	assert_true(str_eq(who, STR("agents")));
	assert_int_equal(auth_check(a, &other, true, &arena, &r, &who), AUTH_OK);
	assert_int_equal(r, ROLE_NONE);
	auth_free(a);
	p.tokens = NULL;
	a = auth_new(&p, &e);
	assert_int_equal(auth_check(a, &other, true, &arena, &r, &who), AUTH_OK);
	assert_int_equal(r, ROLE_READ | ROLE_WRITE);
	auth_free(a);
	arena_release(&arena);
	unlink(path);
}

/* openssl passwd -6 -salt abcdefgh test */
static const char USERS[] = "ann:$6$abcdefgh$3rj1vTLX64btReFsM4MQ22otcD40l7vbtw7qCy"
			    "r0dxc4kxNmgx53xVM8gWiLYbCqTHTbXFaVFU7ZT28pnvdyu0:read,write\n";

TEST(a_password_is_slow_once)
{
	char path[64];
	struct auth *a = open_auth(NULL, write_file(path, USERS));
	struct arena arena = { 0 };
	struct auth_claim right = { .authorization = STR("Basic YW5uOnRlc3Q=") }; /* ann:test */
	struct auth_claim wrong = { .authorization = STR("Basic YW5uOnRlc3Qx") };
	struct str who;
	enum role r;

	assert_int_equal(auth_check(a, &right, false, &arena, &r, &who), AUTH_SLOW);
	assert_int_equal(auth_check(a, &wrong, true, &arena, &r, &who), AUTH_WRONG);
	assert_int_equal(auth_check(a, &right, true, &arena, &r, &who), AUTH_OK);
	assert_int_equal(r, ROLE_READ | ROLE_WRITE);
	assert_true(str_eq(who, STR("ann")));
	assert_int_equal(auth_check(a, &right, false, &arena, &r, &who), AUTH_OK);
	assert_int_equal(auth_check(a, &wrong, false, &arena, &r, &who), AUTH_SLOW);
	auth_free(a);
	arena_release(&arena);
	unlink(path);
}

static const char *reason(const char *text, bool are_users)
{
	static struct err e;
	char path[64];
	struct auth_params p = { .host = "localhost" };

	write_file(path, text);
	*(are_users ? &p.users : &p.tokens) = path;
	assert_null(auth_new(&p, &e));
	assert_non_null(strstr(e.text, path));
	unlink(path);
	return e.text;
}

TEST(broken_files_are_explained)
{
	assert_non_null(strstr(reason("read 0123456789abcdef x\nall 0123456789abcdef x", false),
			       ":2: \"all\" is no role"));
	assert_non_null(strstr(reason("read 0123456789abcde x", false), ":1: the token can be "));
	assert_non_null(strstr(reason("read 0123456789abcdef", false), "ROLES TOKEN NAME"));
	assert_non_null(strstr(reason("read sha256:00 x", false), "64 hex digits"));
	assert_non_null(strstr(reason("read,,write 0123456789abcdef x", false), "\"\" is no role"));
	assert_non_null(strstr(reason("ann", true), "NAME:HASH"));
	assert_non_null(strstr(reason("ann:secret:read", true), "htpasswd"));
	assert_non_null(strstr(reason("ann:$apr1$x$y:read", true), "htpasswd"));
}

TEST(without_accounts_only_the_machine_itself_may_come)
{
	static const struct {
		const char *host;
		bool is_safe;
	} hosts[] = {
		{ "localhost", true }, { "127.0.0.1", true }, { "127.9.9.9", true },
		{ "::1", true },       { "", false },	      { "0.0.0.0", false },
		{ "::", false },       { "10.0.0.1", false }, { "localhost.evil.example", false }
	};
	struct err e;

	for (size_t i = 0; i < sizeof(hosts) / sizeof(*hosts); i++) {
		struct auth_params p = { .host = hosts[i].host };
		struct auth *a = auth_new(&p, &e);

		assert_int_equal(a != NULL, hosts[i].is_safe);
		auth_free(a);
		p.is_insecure = true;
		a = auth_new(&p, &e);
		assert_non_null(a);
		auth_free(a);
	}
}

TEST(names_that_are_not_ours)
{
	static const struct {
		const char *host;
		enum auth_result want;
	} hosts[] = { { "localhost:10100", AUTH_OK },
		      { "127.0.0.1", AUTH_OK },
		      { "[::1]:10100", AUTH_OK },
		      { "10.1.2.3:1", AUTH_OK },
		      { "", AUTH_OK },
		      { "evil.example", AUTH_WRONG_HOST },
		      { "[::1", AUTH_WRONG_HOST },
		      { "127.0.0.1.evil.example", AUTH_WRONG_HOST },
		      { "localhost.x:1", AUTH_WRONG_HOST } };
	struct auth_params p = { .host = "localhost" };
	struct arena arena = { 0 };
	struct err e;
	struct auth *a = auth_new(&p, &e);
	struct str who;
	enum role r;

	for (size_t i = 0; i < sizeof(hosts) / sizeof(*hosts); i++) {
		struct auth_claim c = { .host = str_of(hosts[i].host), .is_local = i % 2 == 0 };

		assert_int_equal(auth_check(a, &c, true, &arena, &r, &who), hosts[i].want);
		if (hosts[i].want == AUTH_OK)
			assert_int_equal(r, c.is_local ? ROLE_ADMIN : ROLE_READ | ROLE_WRITE);
	}
	auth_free(a);
	arena_release(&arena);
}
