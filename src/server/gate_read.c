/* gate_read.c - what is pushed: unpacked and read within its limits. */
#include "server/gate.h"

#include <arpa/inet.h>

#include "base/aside.h"
#include "base/utf8.h"
#include "perf/perf.h"
#include "profile/gzip_size.h"
#include "server/limits.h"

enum {
	WAIT_LARGE_MS = 5000,
	LARGE_BYTES = 4 << 20,
	MAX_DEFLATE_RATIO = 1032,
	LOOK_RATIO = MAX_DEFLATE_RATIO / 2, /* a bomb that packs better is known early */
	MAX_PLAIN_QUERY = 1 << 20,	    /* bodies that are no profiles are small */
	MEMORY_PER_PLAIN_BYTE = 12, /* itself, its tables, and those of the book that it goes to */
};

static size_t guess_plain_bytes(struct str body, size_t max_bytes)
{
	const unsigned char *p = (const unsigned char *)body.p;
	size_t n = body.n;

	if (n >= 18 && p[0] == 0x1f && p[1] == 0x8b) /* RFC 1952: ISIZE; it may lie */
		n = (size_t)p[n - 4] | (size_t)p[n - 3] << 8 | (size_t)p[n - 2] << 16 |
		    (size_t)p[n - 1] << 24;
	/* What was cut off ends with anything; deflate packs 1032 bytes into one at best. */
	if (n / MAX_DEFLATE_RATIO > body.n)
		n = body.n * MAX_DEFLATE_RATIO;
	if (n < body.n)
		n = body.n;
	return n < max_bytes ? n : max_bytes;
}

/* Bytes that are being unpacked, and maybe read as a profile. */
struct reading {
	struct call *c;
	struct arena *a; /* empty */
	struct strings *strings;
	struct profile *p; /* NULL: just the bytes are wanted */
	struct str packed, plain;
	unsigned memory_per_byte; /* of what it unpacks to */
	struct err e;
	size_t nbytes;	   /* that it may unpack to, for now */
	const char *limit; /* of what it may at all: the name */
	struct str client;
	bool has_turn, ok;
};

static void unpack_some(void *ctx)
{
	struct reading *r = ctx;

	r->ok = profile_unpack(r->a, r->packed, r->nbytes, &r->plain, &r->e);
}

static void parse(void *ctx)
{
	struct parse_params params = { .threads = 1, .may_discard = false };
	struct perf_params perf = { .is_foreign = true };
	struct reading *r = ctx;

	perf.max_bytes = r->nbytes;
	r->ok = perf_recognizes(r->plain)
			? perf_parse(r->p, r->a, r->strings, r->plain, &perf, &r->e)
			: profile_parse(r->p, r->a, r->strings, r->plain, &params, &r->e);
}

/* Large ones take turns, and no time that others want. */
static bool take_large_turn(struct reading *r)
{
	struct call *c = r->c;

	if (r->has_turn || r->nbytes <= LARGE_BYTES)
		return true;
	r->has_turn =
		turns_take(c->server->limits->large, r->client, WAIT_LARGE_MS, c->http->abandoned);
	if (!r->has_turn)
		gate_refuse(c, 503, "large-profiles",
			    "too many profiles of this size are being read; try again");
	return r->has_turn;
}

static bool do_step(struct reading *r, void (*step)(void *ctx))
{
	if (r->has_turn)
		run_aside(step, r);
	else
		step(r);
	return r->ok;
}

/* A bomb is charged for the work that it made, or might have made, so that who sends many is soon
 * too fast. */
static void refuse_unpacked(struct reading *r, size_t max_bytes)
{
	struct call *c = r->c;

	rates_take_bytes(c->server->limits->rates, r->client, max_bytes, c->http->start_ns);
	gate_keep_waiting(c);
	gate_refuse(c, 413, r->limit, "this unpacks to more than %s%s",
		    gate_bytes_text(c, max_bytes),
		    strcmp(r->limit, "max-memory") == 0
			    ? ", for which there is no memory: raise --max-memory"
			    : "");
}

static void refuse_bytes(struct reading *r)
{
	reply_error(r->c, 400,
		    r->p ? "malformed profile (could not parse pprof profile: %s)"
			 : "the body cannot be unpacked: %s",
		    r->e.text);
}

/* Takes memory for as much as it says that it unpacks to. Of several members only the last says
 * so, and some lie: then for more, by steps, since few need as much as may be. */
static bool unpack(struct reading *r, size_t max_bytes)
{
	size_t taken = 0;

	r->nbytes = guess_plain_bytes(r->packed, max_bytes);
	for (;;) {
		if (!take_large_turn(r) ||
		    !gate_take(r->c, (uint64_t)(r->nbytes - taken) * r->memory_per_byte))
			return false;
		if (do_step(r, unpack_some))
			return true;
		if (r->e.kind != ERR_LIMIT || r->nbytes >= max_bytes)
			break;
		arena_rewind(r->a); /* it may keep memory for the next profile */
		taken = r->nbytes;
		r->nbytes = taken < max_bytes / 8 ? taken * 8 : max_bytes;
	}
	if (r->e.kind == ERR_LIMIT)
		refuse_unpacked(r, max_bytes);
	else
		refuse_bytes(r);
	return false;
}

static bool read_profile(struct reading *r, size_t max_bytes)
{
	if (!unpack(r, max_bytes))
		return false;
	if (do_step(r, parse))
		return true;
	refuse_bytes(r);
	return false;
}

static size_t max_plain_bytes(struct reading *r)
{
	const struct visit *v = r->c->http->user;
	bool is_ingest = v->route->role == ROLE_WRITE;
	uint64_t most = is_ingest ? (uint64_t)r->c->server->options->max_unpacked : MAX_PLAIN_QUERY;
	uint64_t affordable = r->c->server->limits->memory.total / r->memory_per_byte;

	r->limit = most > affordable ? "max-memory" : is_ingest ? "max-unpacked" : "max-body";
	return most < affordable ? most : affordable;
}

static bool read_bytes(struct reading *r, bool (*how)(struct reading *r, size_t max_bytes))
{
	char text[INET6_ADDRSTRLEN];
	bool ok;

	r->client = gate_client(r->c->http, text);
	ok = how(r, max_plain_bytes(r));
	if (r->has_turn)
		turns_give(r->c->server->limits->large, r->client);
	return ok;
}

bool gate_read_profile(struct call *c, struct str bytes, struct arena *a, struct strings *strings,
		       struct profile *p)
{
	struct reading r = { .c = c,
			     .packed = bytes,
			     .a = a,
			     .strings = strings,
			     .p = p,
			     .memory_per_byte = MEMORY_PER_PLAIN_BYTE };

	return read_bytes(&r, read_profile);
}

bool gate_unpack(struct call *c, struct str packed, struct str *plain)
{
	struct arena own = { 0 };
	struct reading r = { .c = c, .packed = packed, .a = &own, .memory_per_byte = 1 };
	bool ok = read_bytes(&r, unpack);

	*plain = r.plain;
	arena_join(c->arena, &own);
	return ok;
}

void gate_look_at_body(struct call *c)
{
	struct reading r = { .c = c, .memory_per_byte = 1 };
	struct visit *v = c->http->user;
	size_t max_bytes = max_plain_bytes(&r);
	char text[INET6_ADDRSTRLEN];

	if (v->is_looked_at || c->http->body.n < max_bytes / LOOK_RATIO)
		return;
	v->is_looked_at = true;
	if (gzip_least_size(c->http->body, (uint64_t)max_bytes + 1) <= max_bytes)
		return;
	r.client = gate_client(c->http, text);
	refuse_unpacked(&r, max_bytes);
}

bool gate_unpack_body(struct call *c, struct str *plain)
{
	struct str encoding = str_trim(http_call_header(c->http, "Content-Encoding"));

	if (!encoding.n || str_eq(encoding, STR("identity")) || str_eq(encoding, STR("gzip")))
		return gate_unpack(c, c->http->body, plain);
	reply_error(c, 415, "Content-Encoding \"%.*s\": send gzip or identity", STR_ARG(encoding));
	return false;
}

/* Whatever is stored comes back in messages whose texts are UTF-8. */
static bool text_fits(const struct server_options *o, struct str text, const char *what,
		      struct err *e)
{
	if (o->max_label_bytes && text.n > (size_t)o->max_label_bytes)
		return err_set(e, ERR_LIMIT,
			       "max-label-bytes: a service, type or label of %zu bytes, and "
			       "--max-label-bytes is %lld",
			       text.n, (long long)o->max_label_bytes);
	return utf8_is_valid(text) || err_set(e, ERR_LIMIT, "utf-8: %s is no valid UTF-8", what);
}

bool gate_label_fits(const struct server_options *o, size_t nlabels, struct str key,
		     struct str value, struct err *e)
{
	if (o->max_labels && nlabels > (size_t)o->max_labels)
		return err_set(e, ERR_LIMIT, "max-labels: %zu labels, and --max-labels is %lld",
			       nlabels, (long long)o->max_labels);
	return text_fits(o, key, "the name of a label", e) &&
	       text_fits(o, value, "the value of a label", e);
}

bool gate_labels_fit(const struct server_options *o, const struct store_new *new, struct err *e)
{
	for (size_t i = 0; i < new->nlabels; i++)
		if (!gate_label_fits(o, new->nlabels, new->labels[i].key, new->labels[i].value, e))
			return false;
	return text_fits(o, new->service, "the service", e) &&
	       text_fits(o, new->type, "the type of the profile", e);
}

void gate_take_profiles(struct call *c, size_t n)
{
	char text[INET6_ADDRSTRLEN];

	rates_take_more(c->server->limits->rates, gate_client(c->http, text), n, c->http->start_ns);
}
