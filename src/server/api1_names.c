/* api1_names.c - what there is: services, types, labels and their values. */
#include "server/api1_params.h"

static bool find_names(struct request *q, struct str of, struct store_name **names, size_t *n,
		       struct err *e)
{
	struct store_query query;

	if (!request_query(q, &query, e))
		return false;
	if (!request_text(q, "from").n && !request_text(q, "to").n)
		query.from = query.to = 0; /* all times */
	if (store_names(q->c->server->store, &query, of, q->a, names, n, e))
		return true;
	*n = 0;
	return e->kind == ERR_NOTFOUND; /* none is an answer, too */
}

static void put_counts(struct buf *out, const struct store_name *name)
{
	buf_printf(out, ",\"series\":%llu,\"profiles\":%llu", (unsigned long long)name->nseries,
		   (unsigned long long)name->nprofiles);
	json_time(out, "first", name->first);
	json_time(out, "last", name->last);
}

static size_t limited(const struct request *q, size_t n)
{
	size_t limit = (size_t)request_int(q, "limit");

	return n < limit ? n : limit;
}

/* {"total":N,"<plural>":[{"name":...},...]} */
static bool put_names(struct request *q, struct str of, const char *plural, struct buf *out,
		      struct err *e)
{
	struct store_name *names;
	size_t n;

	if (!find_names(q, of, &names, &n, e))
		return false;
	buf_printf(out, "{\"total\":%zu,\"%s\":[", n, plural);
	for (size_t i = 0, shown = limited(q, n); i < shown; i++) {
		buf_puts(out, i ? ",\n{\"name\":" : "\n{\"name\":");
		json_put(out, names[i].name);
		put_counts(out, &names[i]);
		buf_char(out, '}');
	}
	buf_puts(out, "]}\n");
	return true;
}

static bool run_services(struct request *q, struct buf *out, struct err *e)
{
	return put_names(q, STR("service"), "services", out, e);
}

static bool run_types(struct request *q, struct buf *out, struct err *e)
{
	return put_names(q, STR("type"), "types", out, e);
}

static bool run_label_values(struct request *q, struct buf *out, struct err *e)
{
	struct str label = request_text(q, "label");

	if (!label.n)
		return err_set(e, ERR_USAGE, "the path has no label: /api/1/labels/version");
	return put_names(q, label, "values", out, e);
}

/* How many values a label has is what makes it dear. */
static bool run_labels(struct request *q, struct buf *out, struct err *e)
{
	struct store_name *names, *values;
	size_t n, nvalues;

	if (!find_names(q, STR(""), &names, &n, e))
		return false;
	buf_printf(out, "{\"total\":%zu,\"labels\":[", n);
	for (size_t i = 0, shown = limited(q, n); i < shown; i++) {
		if (!find_names(q, names[i].name, &values, &nvalues, e))
			return false;
		buf_puts(out, i ? ",\n{\"name\":" : "\n{\"name\":");
		json_put(out, names[i].name);
		buf_printf(out, ",\"values\":%zu", nvalues);
		put_counts(out, &names[i]);
		buf_char(out, '}');
	}
	buf_puts(out, "]}\n");
	return true;
}

static const struct param service_params[] = { PARAM_SELECT, PARAM_WINDOW(NULL),
					       PARAM_LIMIT(1000, 100000, "services") };
static const struct param type_params[] = { PARAM_SELECT, PARAM_WINDOW(NULL),
					    PARAM_LIMIT(1000, 100000, "types") };
static const struct param label_params[] = { PARAM_SELECT, PARAM_WINDOW(NULL),
					     PARAM_LIMIT(100, 1000, "labels") };
static const struct param value_params[] = {
	{ .name = "label",
	  .kind = PARAM_TEXT,
	  .flags = IS_PATH,
	  .help = "The label's name; service and type are taken for labels, too." },
	PARAM_SELECT,
	PARAM_WINDOW(NULL),
	PARAM_LIMIT(1000, 100000, "values"),
};

const struct endpoint endpoint_services = {
	.path = "/api/1/services",
	.details = "Services, with how many series and profiles each has.",
	ENDPOINT_PARAMS(service_params),
	.answer = "Services",
	.run = run_services,
};
const struct endpoint endpoint_types = {
	.path = "/api/1/types",
	.details = "Types of profiles, with how many series and profiles each has.",
	ENDPOINT_PARAMS(type_params),
	.answer = "Types",
	.run = run_types,
};
const struct endpoint endpoint_labels = {
	.path = "/api/1/labels",
	.details = "Names of labels, with how many values, series and profiles each has.",
	ENDPOINT_PARAMS(label_params),
	.answer = "Labels",
	.run = run_labels,
};
const struct endpoint endpoint_label_values = {
	.path = "/api/1/labels/*",
	.details = "Values of a label, with how many series and profiles each has.",
	ENDPOINT_PARAMS(value_params),
	.answer = "Values",
	.run = run_label_values,
};
