/* api1_unnamed.c - why frames have no names, and what to do about it. */
#include <stdlib.h>

#include "base/escape.h"
#include "base/map.h"
#include "base/vec.h"
#include "server/api1_params.h"
#include "server/names.h"

/* A binary that has addresses without names. */
struct nameless {
	uint32_t file, build_id; /* strings */
	uint64_t naddresses, nunnamed;
	double flat, cum;
	uint32_t seen_by; /* the last sample that had it, + 1 */
};

struct finding {
	const struct profile *p;
	vec(struct nameless) binaries;
	struct map map;	     /* of them, until they are sorted */
	uint32_t *binary_of; /* each mapping; the last is for no mapping */
	bool *is_unnamed;    /* each location */
	uint32_t type;
	double total, unnamed; /* of samples, and of those whose own frame has no name */
};

static bool same_binary(const void *ctx, uint32_t index)
{
	const struct finding *f = ((const void *const *)ctx)[0];
	const struct nameless *k = ((const void *const *)ctx)[1];
	const struct nameless *b = &f->binaries.at[index];

	return b->file == k->file && b->build_id == k->build_id;
}

static uint32_t binary_for(struct finding *f, uint32_t file, uint32_t build_id)
{
	struct nameless binary = { .file = file, .build_id = build_id };
	const void *key[2] = { f, &binary };
	uint32_t i = map_put(&f->map, hash_mix(map_seed(), (uint64_t)file << 32 | build_id),
			     f->binaries.n, same_binary, key);

	if (i == f->binaries.n)
		vec_push(&f->binaries, binary);
	return i;
}

static void find_binaries(struct finding *f, struct arena *a)
{
	const struct profile *p = f->p;

	f->binary_of = arena_many(a, (size_t)p->nmappings + 1, uint32_t);
	for (uint32_t i = 0; i < p->nmappings; i++)
		f->binary_of[i] = binary_for(f, p->mappings[i].file, p->mappings[i].build_id);
	f->binary_of[p->nmappings] = binary_for(f, 0, 0);
	f->is_unnamed = arena_many(a, (size_t)p->nlocations + 1, bool);
	for (uint32_t i = 0; i < p->nlocations; i++)
		f->is_unnamed[i] = !location_has_name(p, &p->locations[i]);
}

static struct nameless *binary_at(struct finding *f, uint32_t location)
{
	uint32_t mapping = f->p->locations[location].mapping;

	return &f->binaries.at[f->binary_of[mapping == NONE ? f->p->nmappings : mapping]];
}

static void weigh(struct finding *f)
{
	const struct profile *p = f->p;

	for (uint32_t i = 0; i < p->nlocations; i++) {
		binary_at(f, i)->naddresses++;
		binary_at(f, i)->nunnamed += f->is_unnamed[i];
	}
	for (uint32_t i = 0; i < p->nsamples; i++) {
		const struct sample *s = &p->samples[i];
		double value = (double)llabs(sample_values(p, s)[f->type]);

		f->total += value;
		for (uint32_t k = 0; k < s->nstack; k++) {
			uint32_t location = p->stacks[s->stack + k];
			struct nameless *b;

			if (!f->is_unnamed[location])
				continue;
			b = binary_at(f, location);
			b->flat += k == 0 ? value : 0;
			f->unnamed += k == 0 ? value : 0;
			b->cum += b->seen_by != i + 1 ? value : 0;
			b->seen_by = i + 1;
		}
	}
}

static int heavier_first(const void *a, const void *b)
{
	const struct nameless *x = a, *y = b;

	if (x->cum != y->cum)
		return x->cum < y->cum ? 1 : -1;
	return (x->nunnamed < y->nunnamed) - (x->nunnamed > y->nunnamed);
}

/* ---- why */

static void put_url(struct buf *out, const struct request *q)
{
	struct str host = http_call_header(q->c->http, "Host");
	struct buf url = { 0 };

	buf_printf(&url, "%s://%.*s", q->c->http->is_tls ? "https" : "http",
		   STR_ARG(host.n ? host : STR("SERVER")));
	escape_shell(out, buf_view(&url));
	buf_release(&url);
}

/* The one command that helps. People copy it, and anybody may have pushed the file's name. */
static void put_fix(struct buf *out, const struct request *q, struct str file)
{
	struct buf text = { 0 };

	buf_puts(&text, "kiln debuginfo upload --to ");
	put_url(&text, q);
	buf_puts(&text, str_has_prefix(file, STR("-")) ? " ./" : " ");
	escape_shell(&text, file.n ? file : STR("FILE"));
	json_put(out, buf_view(&text));
	buf_release(&text);
}

static void put_looks(struct buf *out, const struct names_why *why)
{
	buf_puts(out, ",\"looked\":[");
	for (size_t i = 0; i < why->nlooks; i++) {
		buf_puts(out, i ? ",{\"where\":" : "{\"where\":");
		json_put(out, str_of(why->looks[i].where));
		buf_puts(out, ",\"result\":");
		json_put(out, str_of(why->looks[i].result));
		buf_char(out, '}');
	}
	buf_char(out, ']');
}

static void put_reason(struct buf *out, const char *state, const char *why)
{
	buf_printf(out, ",\"state\":\"%s\",\"why\":", state);
	json_put(out, str_of(why));
}

static void put_known(struct buf *out, struct request *q, struct str file, struct str build_id)
{
	struct names_why why;
	bool can_help;

	names_explain(q->c->server->names, build_id, file, q->a, &why);
	can_help = !why.is_pending && !(why.has_lines && why.naddresses);
	if (why.is_pending)
		put_reason(out, "pending", "They are being looked up: ask again in a moment.");
	else if (!can_help)
		put_reason(out, "not covered",
			   "The debug info that is here (DWARF) has no names for these addresses: "
			   "they are of code that was not compiled with it.");
	else if (why.nnamed)
		put_reason(out, "not covered",
			   "The debug info that is known names other addresses of this binary, "
			   "but not these. A file with more (DWARF) may have them.");
	else if (why.naddresses)
		put_reason(out, "not covered",
			   "The debug info that is known has no names for these addresses.");
	else
		put_reason(out, "missing",
			   "Nobody has uploaded debug info of this build, or it cannot be read.");
	put_looks(out, &why);
	buf_puts(out, ",\"fix\":");
	if (can_help)
		put_fix(out, q, file);
	else
		buf_puts(out, "null");
}

static void put_no_file(struct buf *out)
{
	put_reason(out, "no file",
		   "The addresses are of memory that is of no file: of the kernel, or of code that "
		   "was made at run time.");
	buf_puts(out, ",\"looked\":[],\"fix\":null");
}

static void put_why(struct buf *out, struct request *q, struct str file, struct str build_id)
{
	if (debuginfo_is_id(build_id) && !file_is_system(file)) {
		put_known(out, q, file, build_id);
	} else if (file_is_system(file)) {
		put_no_file(out);
	} else if (build_id.n) {
		put_reason(out, "no build id", "What the profiles say is the build id is none.");
		buf_puts(out, ",\"looked\":[],\"fix\":null");
	} else if (file.n && file.p[0] != '/') {
		put_reason(out, "no file", "It is no file that could be looked at.");
		buf_puts(out, ",\"looked\":[],\"fix\":null");
	} else if (file.n && file.p[0] == '/') {
		put_reason(out, "no build id",
			   "The binary has no build id, so nobody can tell which file it is.");
		buf_puts(out, ",\"looked\":[],\"fix\":");
		json_put(out, STR("link it with -Wl,--build-id, then upload it by kiln debuginfo "
				  "upload"));
	} else {
		put_no_file(out);
	}
}

static void put_binary(struct buf *out, struct request *q, const struct finding *f,
		       const struct nameless *b)
{
	struct str file = profile_str(f->p, b->file), build_id = profile_str(f->p, b->build_id);

	buf_puts(out, "{\"file\":");
	json_put(out, file);
	buf_puts(out, ",\"build_id\":");
	json_put(out, build_id);
	buf_printf(out, ",\"addresses\":%llu,\"unnamed\":%llu,\"flat_share\":",
		   (unsigned long long)b->naddresses, (unsigned long long)b->nunnamed);
	json_number(out, f->total > 0 ? b->flat / f->total : 0);
	buf_puts(out, ",\"share\":");
	json_number(out, f->total > 0 ? b->cum / f->total : 0);
	put_why(out, q, file, build_id);
	buf_char(out, '}');
}

static void put_findings(struct buf *out, struct request *q, struct finding *f)
{
	size_t limit = (size_t)request_int(q, "limit"), n = 0, shown = 0;

	if (f->binaries.n)
		qsort(f->binaries.at, f->binaries.n, sizeof(*f->binaries.at), heavier_first);
	for (size_t i = 0; i < f->binaries.n; i++)
		n += f->binaries.at[i].nunnamed > 0;
	buf_puts(out, "{\"unnamed_share\":");
	json_number(out, f->total > 0 ? f->unnamed / f->total : 0);
	buf_printf(out, ",\"total\":%zu,\"binaries\":[", n);
	for (size_t i = 0; i < f->binaries.n && shown < limit; i++) {
		if (!f->binaries.at[i].nunnamed)
			continue;
		buf_puts(out, shown++ ? ",\n" : "\n");
		put_binary(out, q, f, &f->binaries.at[i]);
	}
	buf_puts(out, "]}\n");
}

static bool find_nameless(struct request *q, struct strings *strings, struct buf *out,
			  struct err *e)
{
	const char *type = str_dup(q->a, request_text(q, "sample_type"));
	struct store_query query;
	struct store_merged merged;
	struct finding f = { .p = &merged.profile };

	if (!request_query(q, &query, e))
		return false;
	query.sample_type = request_text(q, "sample_type");
	if (!store_merge(q->c->server->store, &query, STORE_AS_TYPE, q->a, strings, &merged, e) ||
	    !profile_sample_index(&merged.profile, type, &f.type, e))
		return false;
	reply_left_out(q->c, &merged.left_out);
	find_binaries(&f, q->a);
	weigh(&f);
	put_findings(out, q, &f);
	vec_release(&f.binaries);
	map_release(&f.map);
	return true;
}

static bool run_unnamed(struct request *q, struct buf *out, struct err *e)
{
	struct strings strings;
	bool ok;

	strings_init(&strings);
	ok = find_nameless(q, &strings, out, e);
	strings_release(&strings);
	return ok;
}

static const struct param unnamed_params[] = { PARAM_SELECT, PARAM_WINDOW("now-1h"),
					       PARAM_SAMPLE_TYPE,
					       PARAM_LIMIT(100, 10000, "binaries") };

const struct endpoint endpoint_unnamed = {
	.path = "/api/1/unnamed",
	.details = "Why frames have no names: for each binary that has addresses without names in "
		   "what the query finds, which must be of one type, how much of the samples that "
		   "concerns, where names were looked for, and the command that would help.",
	ENDPOINT_PARAMS(unnamed_params),
	.answer = "Unnamed",
	.run = run_unnamed,
};
