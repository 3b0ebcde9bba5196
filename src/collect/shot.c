/* shot.c - one profile is asked for. */
#include <stdlib.h>

#include "base/base64.h"
#include "base/small_file.h"
#include "collect/answer.h"
#include "collect/inside.h"
#include "collect/own.h"
#include "http/client.h"

enum { MAX_SECRET = 4096, MAX_SAID = 200 };

struct shot *shot_new(struct collector *c, struct target *t, const struct profile_type *type)
{
	struct shot *s = xcalloc(1, sizeof(*s));
	struct arena *a = &s->arena;

	s->c = c;
	s->job = t->job;
	s->job->refs++;
	s->target = t;
	s->address = (struct str){ str_dup(a, t->address), t->address.n };
	s->service = (struct str){ str_dup(a, t->service), t->service.n };
	s->nlabels = t->nlabels;
	s->labels = labels_copy(a, t->labels, t->nlabels);
	s->type = *type;
	s->type.name = str_dup(a, str_of(type->name));
	s->type.path = str_dup(a, str_of(type->path));
	if (t->own)
		s->own = own_copy(a, t->own);
	return s;
}

void shot_free(struct shot *s)
{
	job_drop(s->job);
	arena_release(&s->arena);
	free(s);
}

/* ---- the request */

static bool has_secret(const struct shot *s)
{
	return s->own && s->own->secret.name && *s->own->secret.name;
}

/* A file's first line, without its end. */
static bool read_secret(struct arena *a, const char *path, const char **out, struct err *e)
{
	struct buf text = { 0 };
	struct str line;
	bool ok = small_file_read(&text, path, MAX_SECRET, e);

	line = buf_view(&text);
	line = str_trim(str_cut(&line, '\n'));
	*out = str_dup(a, line);
	buf_release(&text);
	return ok;
}

/* A secret of the cluster, which the target's source has access to. */
static bool ask_for_secret(struct shot *s, const char **header)
{
	struct job *j = s->job;

	for (size_t i = 0; i < j->nsources; i++)
		if (j->sources[i]->authorize)
			return j->sources[i]->authorize(j->sources[i], s->own, &s->arena,
							&s->canceled, header, &s->e);
	return err_set(&s->e, ERR_USAGE, "the job has no cluster any more");
}

static bool make_authorization(struct shot *s, const char **header)
{
	const struct scrape_job *config = s->job->config;
	const char *secret = config->password;
	struct buf text = { 0 }, pair = { 0 };

	if (has_secret(s))
		return ask_for_secret(s, header);
	if (*config->token_file) {
		if (!read_secret(&s->arena, config->token_file, &secret, &s->e))
			return err_wrap(&s->e, "bearer-token-file");
		buf_printf(&text, "Authorization: Bearer %s", secret);
	} else {
		if (*config->password_file &&
		    !read_secret(&s->arena, config->password_file, &secret, &s->e))
			return err_wrap(&s->e, "basic-auth-password-file");
		buf_printf(&pair, "%s:%s", config->user, secret);
		buf_puts(&text, "Authorization: Basic ");
		base64_put(&text, buf_view(&pair));
	}
	*header = str_dup(&s->arena, buf_view(&text));
	buf_release(&text);
	buf_release(&pair);
	return true;
}

const char *shot_url(struct shot *s)
{
	const struct scrape_job *config = s->job->config;
	bool has_scheme = s->own && s->own->scheme, has_prefix = s->own && s->own->path_prefix;
	const char *scheme = has_scheme ? s->own->scheme : config->scheme;
	const char *prefix = has_prefix ? s->own->path_prefix : config->path_prefix;
	struct buf url = { 0 };
	const char *copy;

	if (config->tls_insecure && strcmp(scheme, "https") == 0)
		scheme = "https+insecure";
	buf_printf(&url, "%s://%.*s%s%s%s", scheme, STR_ARG(s->address), prefix,
		   str_has_suffix(str_of(prefix), STR("/")) ? "" : "/", s->type.path);
	if (s->type.seconds)
		buf_printf(&url, "?seconds=%lld", (long long)s->type.seconds);
	copy = str_dup(&s->arena, buf_view(&url));
	buf_release(&url);
	return copy;
}

static bool take_bytes(void *ctx, size_t bytes)
{
	struct shot *s = ctx;
	const struct collect_sink *sink = &s->c->params.sink;

	if (!sink->take(sink->ctx, bytes, &s->canceled)) {
		s->is_out_of_memory = true;
		return false;
	}
	s->taken += bytes;
	return true;
}

/* ---- the answer */

static enum collect_result judge_failure(struct shot *s, const struct http_response *r)
{
	if (atomic_load(&s->canceled))
		return COLLECT_CANCELED;
	if (s->is_out_of_memory) {
		err_set(&s->e, ERR_LIMIT, "the server has no memory left to take the profile");
		return COLLECT_REFUSED;
	}
	return r->status || s->e.kind == ERR_LIMIT ? COLLECT_WRONG : COLLECT_UNREACHABLE;
}

static enum collect_result hand_over(struct shot *s, struct str bytes)
{
	const struct collect_sink *sink = &s->c->params.sink;
	struct collected p = { .job = str_of(s->job->config->name),
			       .service = s->service,
			       .type = str_of(s->type.name),
			       .instance = s->address,
			       .labels = s->labels,
			       .nlabels = s->nlabels,
			       .started = s->started,
			       .bytes = bytes,
			       .stop = &s->canceled };

	return sink->put(sink->ctx, &p, s->id, &s->e);
}

static enum collect_result ask(struct shot *s, struct http_response *r)
{
	const struct scrape_job *config = s->job->config;
	const char *headers[2] = { "Connection: close" };
	struct http_request q = { .url = shot_url(s),
				  .headers = headers,
				  .nheaders = 1,
				  .timeout_ms = s->type.seconds * 1000 + config->timeout / 1000000,
				  .connect_timeout_ms = config->timeout / 1000000,
				  .max_bytes = s->c->params.max_bytes,
				  .canceled = &s->canceled,
				  .take = take_bytes,
				  .take_ctx = s,
				  .is_direct = true };

	if ((has_secret(s) || *config->token_file || *config->user) &&
	    !make_authorization(s, &headers[q.nheaders++]))
		return atomic_load(&s->canceled) ? COLLECT_CANCELED : COLLECT_WRONG;
	if (!http_send(s->job->client, &q, r, &s->e)) {
		s->was_sent = r->was_sent;
		return judge_failure(s, r);
	}
	if (atomic_load(&s->canceled))
		return COLLECT_CANCELED;
	return r->status == 200 ? hand_over(s, buf_view(&r->body)) : answer_judge(r, &s->e);
}

void shot_run(struct shot *s)
{
	const struct collect_sink *sink = &s->c->params.sink;
	struct http_response r = { 0 };
	double took_s;

	s->result = ask(s, &r);
	http_response_release(&r);
	sink->give(sink->ctx, s->taken);
	took_s = (double)(clock_now_ms() - s->started_ms) / 1e3 - (double)s->type.seconds;
	if (s->result != COLLECT_CANCELED)
		sink->count(sink->ctx, str_of(s->job->config->name), s->result,
			    took_s > 0 ? took_s : 0);
}

/* ---- what it should be */

static const char *wanted_types(struct str type)
{
#define TYPE(name, path, seconds, usual, exclusive, sample_types) \
	if (str_eq(type, STR(#name)))                             \
		return sample_types;
#include "collect/types.def"
#undef TYPE
	return "";
}

bool collect_check_type(const struct profile *p, struct str type, struct err *e)
{
	const char *wanted = wanted_types(type);
	struct str rest = str_of(wanted), has = STR("none");

	if (!rest.n)
		return true;
	while (rest.n) {
		struct str one = str_cut(&rest, ' ');

		for (uint32_t i = 0; i < p->ntypes; i++)
			if (str_eq(profile_str(p, p->types[i].type), one))
				return true;
	}
	if (p->ntypes)
		has = profile_str(p, p->types[p->ntypes - 1].type);
	return err_set(e, ERR_FORMAT, "the target sent a profile of %.*s, not of %.*s",
		       (int)(has.n < MAX_SAID ? has.n : MAX_SAID), has.p, STR_ARG(type));
}
