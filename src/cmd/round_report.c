#include "cmd/round_report.h"

#include <stdio.h>
#include <unistd.h>

#include "base/escape.h"
#include "base/unit.h"
#include "base/wait.h"
#include "cmd/table.h"

enum { MAX_WORKERS = 64, MAX_RETRIES = 20, MAX_PROFILE_BYTES = 256 << 20 };

struct target_sum {
	size_t nstored, nempty, nabsent, nfailed;
	size_t nbytes;
	int64_t took_ms;
	const char *problem; /* the first; NULL: none */
};

struct profile_sum {
	const struct round_target *target;
	const struct profile_type *type;
	enum collect_result result;
	const char *id, *problem;
};

/* ---- options */

bool round_options_read(const struct round_options *o, struct arena *a, struct round_params *params,
			struct profile_type **types, size_t *ntypes, struct err *e)
{
	if (o->seconds < 1 || o->seconds > PROFILE_MAX_SECONDS)
		return err_set(e, ERR_USAGE, "--seconds is between 1 and %d", PROFILE_MAX_SECONDS);
	if (o->workers < 1 || o->workers > MAX_WORKERS)
		return err_set(e, ERR_USAGE, "--workers is between 1 and %d", MAX_WORKERS);
	if (o->retries < 0 || o->retries > MAX_RETRIES)
		return err_set(e, ERR_USAGE, "--retries is between 0 and %d", MAX_RETRIES);
	if (o->timeout < COLLECT_SECOND || o->timeout > PROFILE_MAX_SECONDS * COLLECT_SECOND)
		return err_set(e, ERR_USAGE, "--timeout is between 1s and 1h");
	if (!profile_types_parse(a, str_of(o->types), types, ntypes, e))
		return err_wrap(e, "--types %s", o->types);
	for (size_t i = 0; i < *ntypes; i++)
		if ((*types)[i].seconds)
			(*types)[i].seconds = o->seconds;
	params->nworkers = (unsigned)o->workers;
	params->timeout_ms = o->timeout / 1000000;
	params->max_tries = (unsigned)o->retries + 1;
	params->max_bytes = MAX_PROFILE_BYTES;
	return true;
}

/* ---- */

void round_report_init(struct round_report *r, const struct round_target *targets, size_t n,
		       char *const *problems, size_t nproblems)
{
	*r = (struct round_report){ .targets = targets,
				    .ntargets = n,
				    .problems = problems,
				    .nproblems = nproblems,
				    .start_ms = clock_now_ms(),
				    .is_terminal = isatty(STDERR_FILENO) };
	r->sums = arena_many(&r->arena, n, struct target_sum);
	for (size_t i = 0; i < n; i++)
		r->nexpected += targets[i].ntypes;
}

void round_report_release(struct round_report *r)
{
	vec_release(&r->profiles);
	vec_release(&r->files);
	arena_release(&r->arena);
}

void round_report_clear_progress(const struct round_report *r)
{
	if (r->is_terminal)
		fputs("\r\33[K", stderr);
}

/* ---- as it goes */

static void count(struct round_report *r, struct target_sum *sum, enum collect_result result)
{
	switch (result) {
	case COLLECT_OK:
		sum->nstored++, r->nstored++;
		break;
	case COLLECT_EMPTY:
		sum->nempty++, r->nempty++;
		break;
	case COLLECT_ABSENT:
		sum->nabsent++, r->nabsent++;
		break;
	default:
		sum->nfailed++, r->nfailed++;
	}
}

static bool is_failure(enum collect_result r)
{
	return r != COLLECT_OK && r != COLLECT_EMPTY && r != COLLECT_ABSENT;
}

void round_report_add(struct round_report *r, const struct round_result *result)
{
	struct target_sum *sum = &r->sums[result->target - r->targets];
	const char *problem = NULL;

	if (result->result != COLLECT_OK)
		problem = str_dup(&r->arena, str_of(result->e.text));
	count(r, sum, result->result);
	sum->nbytes += result->result == COLLECT_OK ? result->nbytes : 0;
	sum->took_ms += result->took_ms;
	if (is_failure(result->result) && !sum->problem) {
		struct buf text = { 0 };

		buf_printf(&text, "%s: %s", result->type->name, result->e.text);
		sum->problem = str_dup(&r->arena, buf_view(&text));
		buf_release(&text);
	}
	vec_push(&r->profiles,
		 (struct profile_sum){ result->target, result->type, result->result,
				       str_dup(&r->arena, str_of(result->id)), problem });
	if (r->is_terminal)
		fprintf(stderr, "\r\33[K%zu of %zu profiles, %zu failed ", r->profiles.n,
			r->nexpected, r->nfailed);
}

void round_report_add_file(struct round_report *r, const char *path)
{
	vec_push(&r->files, str_dup(&r->arena, str_of(path)));
}

/* ---- in the end */

/* A target that has nothing at all is not where it is said to be. */
static bool is_nothing(const struct target_sum *sum)
{
	return sum->nabsent && !sum->nstored && !sum->nempty && !sum->nfailed;
}

bool round_report_is_good(const struct round_report *r)
{
	if (r->nfailed || r->nproblems)
		return false;
	for (size_t i = 0; i < r->ntargets; i++)
		if (is_nothing(&r->sums[i]))
			return false;
	return true;
}

static void put_bytes(struct table *t, size_t n)
{
	struct buf text = { 0 };

	unit_label(&text, (int64_t)n, STR("B"), STR("auto"));
	table_cell(t, buf_view(&text));
	buf_release(&text);
}

static void put_row(struct table *t, const struct round_target *target,
		    const struct target_sum *sum)
{
	table_cell(t, str_of(target->name));
	table_cell(t, target->service);
	table_cell_printf(t, "%zu", sum->nstored);
	table_cell_printf(t, "%zu", sum->nempty);
	table_cell_printf(t, "%zu", sum->nabsent);
	table_cell_printf(t, "%zu", sum->nfailed);
	put_bytes(t, sum->nbytes);
	table_cell_printf(t, "%.1fs", (double)sum->took_ms / 1e3);
	if (is_nothing(sum))
		table_cell_printf(t, "there is nothing at %s", target->url);
	else
		table_cell(t, str_of(sum->problem ? sum->problem : ""));
}

void round_report_table(struct buf *out, struct round_report *r)
{
	struct table t;

	if (r->ntargets) {
		table_init(&t, "TARGET SERVICE STORED# EMPTY# ABSENT# FAILED# SIZE# TIME# PROBLEM");
		for (size_t i = 0; i < r->ntargets; i++)
			put_row(&t, &r->targets[i], &r->sums[i]);
		table_print(out, &t);
	}
	for (size_t i = 0; i < r->nproblems; i++)
		buf_printf(out, "%s\n", r->problems[i]);
	buf_printf(out, "%zu target%s: %zu stored, %zu empty, %zu absent, %zu failed", r->ntargets,
		   r->ntargets == 1 ? "" : "s", r->nstored, r->nempty, r->nabsent, r->nfailed);
	if (r->nproblems)
		buf_printf(out, ", %zu pod%s passed over", r->nproblems,
			   r->nproblems == 1 ? "" : "s");
	buf_printf(out, ", in %.1fs\n", (double)(clock_now_ms() - r->start_ms) / 1e3);
}

static void put_text(struct buf *out, const char *name, struct str value)
{
	buf_printf(out, "%s\"%s\":", out->p[out->n - 1] == '{' ? "" : ",", name);
	json_put(out, value);
}

static void put_list(struct buf *out, const char *name, const char *const *texts, size_t n)
{
	buf_printf(out, ",\"%s\":[", name);
	for (size_t i = 0; i < n; i++) {
		buf_puts(out, i ? "," : "");
		json_put(out, str_of(texts[i]));
	}
	buf_char(out, ']');
}

void round_report_json(struct buf *out, struct round_report *r)
{
	buf_printf(out,
		   "{\"targets\":%zu,\"stored\":%zu,\"empty\":%zu,\"absent\":%zu,\"failed\":%zu",
		   r->ntargets, r->nstored, r->nempty, r->nabsent, r->nfailed);
	put_list(out, "problems", (const char *const *)r->problems, r->nproblems);
	put_list(out, "files", r->files.at, r->files.n);
	buf_puts(out, ",\"profiles\":[");
	for (size_t i = 0; i < r->profiles.n; i++) {
		const struct profile_sum *p = &r->profiles.at[i];

		buf_puts(out, i ? ",\n{" : "\n{");
		put_text(out, "target", str_of(p->target->name));
		put_text(out, "service", p->target->service);
		put_text(out, "type", str_of(p->type->name));
		put_text(out, "result", str_of(collect_result_name(p->result)));
		if (*p->id)
			put_text(out, "id", str_of(p->id));
		if (p->problem)
			put_text(out, "problem", str_of(p->problem));
		buf_char(out, '}');
	}
	buf_puts(out, "]}\n");
}
