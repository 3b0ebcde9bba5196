#include "fetch/symbolz.h"

#include <inttypes.h>

#include "base/map.h"
#include "base/number.h"
#include "base/path.h"
#include "base/regex.h"
#include "fetch/remote.h"
#include "fetch/url.h"

enum {
	TIMEOUT_MS = 65000,
	MAX_REPLY_BYTES = 256 << 20,
};

/* ---- where to ask */

static bool has_gperftools_path(struct str path)
{
	static const char *const ends[] = { "/pprof/heap", "/pprof/growth", "/pprof/profile",
					    "/pprof/pmuprofile", "/pprof/contention" };

	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++)
		if (str_has_suffix(path, str_of(ends[i])))
			return true;
	return false;
}

bool symbolz_url(struct buf *out, struct str source)
{
	struct arena scratch = { 0 };
	struct buf path = { 0 }, clean = { 0 };
	struct url u;
	bool ok = url_parse(&scratch, &u, source) && (u.host.n || http_socket(source).n);

	if (ok) {
		bool is_plain =
			str_contains(u.path, STR("/debug/pprof/")) || has_gperftools_path(u.path);

		buf_str(&path, u.path);
		buf_puts(&path, is_plain ? "/../symbol" : "/../symbolz");
		path_clean(&clean, buf_view(&path));
		url_set_path(&u, buf_view(&clean));
		u.query = STR("");
		url_write(out, &u);
	}
	buf_release(&path);
	buf_release(&clean);
	arena_release(&scratch);
	return ok;
}

/* ---- addresses, as the server knows them */

/* False if the sum does not fit. */
static bool adjust(uint64_t address, int64_t offset, uint64_t *out)
{
	*out = address + (uint64_t)offset;
	return offset < 0 ? *out < address : *out >= address;
}

static bool fail_overflow(uint64_t address, int64_t offset, const struct profile *p,
			  uint32_t mapping, struct err *e)
{
	const struct mapping *m = &p->mappings[mapping];

	return err_set(e, ERR_FORMAT,
		       "cannot adjust address %" PRIu64 " by %" PRId64
		       ", it would overflow (mapping 0x%" PRIx64 "-0x%" PRIx64 " %.*s)",
		       address, offset, m->start, m->limit, STR_ARG(profile_str(p, m->file)));
}

/* 0x1+0x2+... */
static bool write_question(struct buf *out, const struct profile *p, uint32_t mapping,
			   int64_t offset, struct err *e)
{
	for (uint32_t i = 0; i < p->nlocations; i++) {
		const struct location *l = &p->locations[i];
		uint64_t address;

		if (l->mapping != mapping || !l->address || l->nlines)
			continue;
		if (!adjust(l->address, offset, &address))
			return fail_overflow(l->address, offset, p, mapping, e);
		buf_puts(out, out->n ? "+0x" : "0x");
		buf_hex(out, address);
	}
	return true;
}

/* ---- the reply */

struct name {
	uint64_t address;
	uint32_t function;
};

/* A server's reply on its way into the profile. */
struct answer {
	struct profile *p;
	int64_t offset;
	vec(struct name) names; /* by address, the last one counts */
	struct map by_address;
	vec(struct function) functions; /* new ones, each name once */
	struct map by_name;
	uint64_t seed;
};

static bool same_name(const void *ctx, uint32_t index)
{
	const struct answer *x = ctx;

	/* the one looked for has been put at the end */
	return x->functions.at[index].name == x->functions.at[x->functions.n].name;
}

static bool same_address(const void *ctx, uint32_t index)
{
	const struct answer *x = ctx;

	return x->names.at[index].address == x->names.at[x->names.n].address;
}

static uint32_t intern_function(struct answer *x, struct str text)
{
	uint32_t name = strings_add(x->p->strings, text), found;
	size_t n = x->functions.n;

	vec_reserve(&x->functions, 1);
	x->functions.at[n] = (struct function){ .id = (uint64_t)x->p->nfunctions + n + 1,
						.name = name,
						.system_name = name };
	found = map_put(&x->by_name, hash_mix(x->seed, name), n, same_name, x);
	x->functions.n += found == n;
	return x->p->nfunctions + found;
}

static void set_name(struct answer *x, uint64_t address, uint32_t function)
{
	size_t n = x->names.n;
	uint32_t found;

	vec_reserve(&x->names, 1);
	x->names.at[n] = (struct name){ address, function };
	found = map_put(&x->by_address, hash_mix(x->seed, address), n, same_address, x);
	x->names.at[found].function = function;
	x->names.n += found == n;
}

static bool read_line(struct answer *x, const struct regex *re, struct str line, uint32_t mapping,
		      struct err *e)
{
	struct regex_span group[3];
	struct str digits;
	uint64_t address, own;
	enum number_result result;

	if (!regex_find(re, line, group, 3))
		return true;
	digits = (struct str){ line.p + group[1].start, group[1].end - group[1].start };
	result = number_parse_uint(digits, 0, &address);
	if (result != NUMBER_OK) {
		number_error(e, result, "ParseUint", digits);
		return err_wrap(e, "unexpected parse failure %.*s", STR_ARG(digits));
	}
	if (!adjust(address, (int64_t)(0 - (uint64_t)x->offset), &own))
		return fail_overflow(address, (int64_t)(0 - (uint64_t)x->offset), x->p, mapping, e);
	set_name(x, own,
		 intern_function(x, (struct str){ line.p + group[2].start,
						  group[2].end - group[2].start }));
	return true;
}

/* Locations that the server knows have one line from now on. */
static void apply_names(struct answer *x, struct arena *a, uint32_t mapping)
{
	struct profile *p = x->p;
	size_t nfunctions = p->nfunctions + x->functions.n, nlines = p->nlines;
	struct function *functions = arena_many(a, nfunctions, struct function);
	struct location *locations =
		arena_copy(a, p->locations, p->nlocations * sizeof(*p->locations));
	struct line *lines = arena_many(a, nlines + p->nlocations, struct line);

	if (p->nfunctions)
		memcpy(functions, p->functions, p->nfunctions * sizeof(*functions));
	if (x->functions.n)
		memcpy(functions + p->nfunctions, x->functions.at,
		       x->functions.n * sizeof(*functions));
	if (p->nlines)
		memcpy(lines, p->lines, p->nlines * sizeof(*lines));
	vec_reserve(&x->names, 1);
	for (uint32_t i = 0; i < p->nlocations; i++) {
		uint32_t found;

		if (locations[i].mapping != mapping)
			continue;
		x->names.at[x->names.n].address = locations[i].address;
		found = map_get(&x->by_address, hash_mix(x->seed, locations[i].address),
				same_address, x);
		if (found == MAP_NONE)
			continue;
		lines[nlines] = (struct line){ .function = x->names.at[found].function };
		locations[i].first_line = (uint32_t)nlines++;
		locations[i].nlines = 1;
	}
	p->functions = functions;
	p->nfunctions = (uint32_t)nfunctions;
	p->locations = locations;
	p->lines = lines;
	p->nlines = (uint32_t)nlines;
}

bool symbolz_reply(struct arena *a, struct profile *p, uint32_t mapping, struct str reply,
		   int64_t offset, struct err *e)
{
	struct answer x = { .p = p, .offset = offset, .seed = map_seed() };
	struct regex *re = regex_compile(STR("(0x[[:xdigit:]]+)\\s+(.*)"), e);
	size_t end = str_rfind_char(reply, '\n');
	struct str rest = { reply.p, end == STR_NONE ? 0 : end + 1 }; /* whole lines count */
	bool ok = re;

	while (ok && rest.n) {
		struct str line = rest;

		line.n = str_find_char(rest, '\n') + 1;
		rest = str_from(rest, line.n);
		ok = read_line(&x, re, line, mapping, e);
	}
	if (ok)
		apply_names(&x, a, mapping);
	vec_release(&x.names);
	vec_release(&x.functions);
	map_release(&x.by_address);
	map_release(&x.by_name);
	regex_free(re);
	return ok;
}

/* ---- asking */

static bool ask(struct arena *a, struct profile *p, struct fetch_remote *r, uint32_t mapping,
		const char *url, int64_t offset, struct err *e)
{
	static const char *const headers[] = { "Content-Type: application/octet-stream" };
	struct buf question = { 0 };
	struct http_response response = { 0 };
	bool ok = write_question(&question, p, mapping, offset, e);

	if (ok && question.n) {
		const struct http_request q = { .url = url,
						.headers = headers,
						.nheaders = 1,
						.body = buf_view(&question),
						.timeout_ms = TIMEOUT_MS,
						.max_bytes = MAX_REPLY_BYTES };

		ok = remote_send(r, &q, &response, e) &&
		     symbolz_reply(a, p, mapping, buf_view(&response.body), offset, e);
	}
	buf_release(&question);
	http_response_release(&response);
	return ok;
}

/* The first place that a mapping of this name came from, of those that can be asked. */
static const struct origin *find_origin(const struct fetch_remote *r, struct str key,
					struct buf *url)
{
	for (size_t i = 0; i < r->origins.n; i++)
		if (str_eq(r->origins.at[i].key, key) &&
		    symbolz_url(url, str_of(r->origins.at[i].url)))
			return &r->origins.at[i];
	return NULL;
}

static bool ask_about(struct arena *a, struct profile *p, struct fetch_remote *r, uint32_t mapping,
		      struct err *e)
{
	const struct mapping *m = &p->mappings[mapping];
	struct buf url = { 0 };
	const struct origin *o = find_origin(r, profile_str(p, m->file), &url);
	bool ok = true;

	if (!o && m->build_id)
		o = find_origin(r, profile_str(p, m->build_id), &url);
	if (o) {
		buf_char(&url, '\0');
		ok = ask(a, p, r, mapping, url.p, (int64_t)(o->start - m->start), e);
		p->mappings[mapping].has_functions = ok;
	}
	buf_release(&url);
	return ok;
}

bool symbolz(struct arena *a, struct profile *p, struct fetch_remote *r, bool force, struct err *e)
{
	bool ok = true;

	if (!r || !r->origins.n)
		return true;
	p->mappings = arena_copy(a, p->mappings, p->nmappings * sizeof(*p->mappings));
	for (uint32_t i = 0; i < p->nmappings && ok; i++)
		if ((force || !p->mappings[i].has_functions) &&
		    !mapping_is_system(p, &p->mappings[i]))
			ok = ask_about(a, p, r, i, e);
	return ok;
}
