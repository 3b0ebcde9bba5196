/* api1_profiles.c - single profiles: found, and shown; and all of them as one. */
#include "server/api1_params.h"

static void put_meta(struct buf *out, const struct store_meta *m)
{
	buf_puts(out, "{\"id\":\"");
	store_id_print(out, &m->id);
	buf_puts(out, "\",\"service\":");
	json_put(out, m->service);
	buf_puts(out, ",\"type\":");
	json_put(out, m->type);
	buf_puts(out, ",\"labels\":[");
	for (size_t i = 0; i < m->nlabels; i++) {
		buf_puts(out, i ? ",{\"key\":" : "{\"key\":");
		json_put(out, m->labels[i].key);
		buf_puts(out, ",\"value\":");
		json_put(out, m->labels[i].value);
		buf_char(out, '}');
	}
	buf_char(out, ']');
	json_time(out, "created", m->created);
	buf_printf(out, ",\"samples\":%llu,\"bytes\":%llu}", (unsigned long long)m->nsamples,
		   (unsigned long long)m->bytes);
}

static bool run_profiles(struct request *q, struct buf *out, struct err *e)
{
	struct store_query query;
	struct store_meta *metas = NULL;
	size_t n = 0, limit = (size_t)request_int(q, "limit");
	bool has_more;

	if (!request_query(q, &query, e))
		return false;
	query.limit = limit + 1; /* to know whether there are more */
	if (!store_find(q->c->server->store, &query, q->a, &metas, &n, e) &&
	    e->kind != ERR_NOTFOUND)
		return false;
	has_more = n > limit;
	buf_printf(out, "{\"more\":%s,\"profiles\":[", has_more ? "true" : "false");
	for (size_t i = has_more; i < n && !stop_asked_at(q->stop, i); i++) {
		buf_puts(out, i > has_more ? ",\n" : "\n");
		put_meta(out, &metas[i]);
	}
	buf_puts(out, "]}\n");
	return true;
}

static const char *filename_of(struct request *q, struct str name)
{
	struct buf out = { 0 };
	const char *text;

	for (size_t i = 0; i < name.n && i < 100; i++) {
		char c = name.p[i];
		bool is_plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
				(c >= 'A' && c <= 'Z') || c == '.' || c == '-' || c == '_';

		buf_char(&out, is_plain ? c : '_');
	}
	buf_puts(&out, ".pb.gz");
	text = str_dup(q->a, buf_view(&out));
	buf_release(&out);
	return text;
}

static bool show_profile(struct request *q, const struct store_id *id, struct strings *strings,
			 struct buf *out, struct err *e)
{
	struct store_meta meta;
	struct profile p = { 0 };
	struct str bytes;

	if (!store_get(q->c->server->store, id, q->a, strings, &meta, &p, &bytes, e))
		return false;
	if (!p.strings)
		return err_set(e, ERR_USAGE,
			       "it is no profile but bytes of type %.*s: see "
			       "/api/0/profiles/%.*s",
			       STR_ARG(meta.type), STR_ARG(request_text(q, "id")));
	if (!str_eq(request_text(q, "format"), STR("pprof"))) /* that is as it was pushed */
		store_name_profile(q->c->server->store, q->a, &p);
	return format_reply(q, &p, filename_of(q, request_text(q, "id")), out, e);
}

static bool run_profile(struct request *q, struct buf *out, struct err *e)
{
	struct str text = request_text(q, "id");
	struct strings strings;
	struct store_id id;
	bool ok;

	if (!store_id_parse(text, &id))
		return err_set(e, ERR_NOTFOUND, "\"%.*s\" is no id of a profile", STR_ARG(text));
	strings_init(&strings);
	ok = show_profile(q, &id, &strings, out, e);
	strings_release(&strings);
	return ok;
}

/* How much went into it, for those who want to know. */
static void put_merged(struct request *q, const struct store_merged *m)
{
	struct buf text = { 0 };

	buf_printf(&text,
		   "profiles=%llu series=%llu sums=%llu first=", (unsigned long long)m->nprofiles,
		   (unsigned long long)m->nseries, (unsigned long long)m->ntiers);
	time_print(&text, m->first);
	buf_puts(&text, " last=");
	time_print(&text, m->last);
	http_reply_header(q->c->reply, "X-Kiln-Merged", str_dup(q->a, buf_view(&text)));
	buf_release(&text);
}

static bool run_merge(struct request *q, struct buf *out, struct err *e)
{
	struct store_query query;
	struct store_merged merged;
	struct strings strings;
	bool ok;

	if (!request_query(q, &query, e))
		return false;
	query.sample_type = request_text(q, "sample_type");
	strings_init(&strings);
	ok = store_merge(q->c->server->store, &query, request_aggregate(q), q->a, &strings, &merged,
			 e) &&
	     format_reply(q, &merged.profile, "merged.pb.gz", out, e);
	if (ok) {
		put_merged(q, &merged);
		reply_left_out(q->c, &merged.left_out);
	}
	strings_release(&strings);
	return ok;
}

static const struct param find_params[] = { PARAM_SELECT, PARAM_WINDOW("now-1h"),
					    PARAM_LIMIT(100, 10000, "profiles: the newest") };
static const struct param profile_params[] = {
	{ .name = "id",
	  .kind = PARAM_TEXT,
	  .flags = IS_PATH,
	  .help = "The profile's id, as /api/1/profiles tells it." },
	FORMAT_PARAMS("pprof", FORMAT_NAMES, ""),
};
static const struct param merge_params[] = { PARAM_SELECT, PARAM_WINDOW("now-1h"), PARAM_AGGREGATE,
					     FORMAT_PARAMS("pprof", FORMAT_NAMES, "") };

const struct endpoint endpoint_profiles = {
	.path = "/api/1/profiles",
	.details = "Profiles that were pushed, in order of time.",
	ENDPOINT_PARAMS(find_params),
	.answer = "Profiles",
	.run = run_profiles,
};
const struct endpoint endpoint_profile = {
	.path = "/api/1/profiles/*",
	.details = "One profile, as it came or as something else.",
	ENDPOINT_PARAMS(profile_params),
	.answer = "Shown",
	.types = FORMAT_TYPES,
	.run = run_profile,
};
const struct endpoint endpoint_merge = {
	.path = "/api/1/merge",
	.details =
		"All that the query finds, which must be of one type, as one profile. The header "
		"X-Kiln-Merged says how many profiles and series it is made of, how many sums were "
		"read instead of single profiles, and the times of the first and of the last. "
		"Profiles that have other sample types than most services, or than sample_type "
		"asks for, are left out, and the header X-Kiln-Left-Out says how many and why.",
	ENDPOINT_PARAMS(merge_params),
	.answer = "Shown",
	.types = FORMAT_TYPES,
	.run = run_merge,
};
