/* otlp.c - POST /v1development/profiles: profiles as OpenTelemetry pushes them (OTLP/HTTP). */
#include "server/otlp.h"

#include <ctype.h>
#include <stdlib.h>

#include "http/media.h"
#include "server/connect.h"
#include "server/gate.h"
#include "server/routes.h"

enum {
	MESSAGE_MEMORY = 24, /* for each byte: of rows of two bytes there is a view, a place, and a
				row of the profile */
	STACK_MEMORY = 8,    /* for each byte of a sample's stack and attributes */
	SAMPLE_BYTES = 10,   /* of a sample without them */
	LABEL_BYTES = 2,     /* an attribute's number is one, and its label a row */
	MOST_UNPACKED = 16,  /* times max-unpacked: all profiles of a request */
	NAMES_BYTES = 4 << 10,	   /* of labels, usually */
	INSTANCE_BYTES = 16 << 10, /* by which processes are told apart */
	INSTANCE_PART = 1 << 10,   /* of one attribute */
};

#define RETRY_AFTER "30" /* seconds; somebody has to mend the disk */

/* ---- JSON (numbers are those of v1.10) */

#define INT(name, number) WIRE_FIELD(name, number, WIRE_KIND_INT)
#define TEXT(name, number) WIRE_FIELD(name, number, WIRE_KIND_STRING)
#define MESSAGE(name, number, of) \
	WIRE_FIELD(name, number, WIRE_KIND_MESSAGE, .message = &message_##of)
#define FIELDS(of, title, ...)                                                 \
	static const struct wire_field fields_##of[] = { __VA_ARGS__, { 0 } }; \
	static const struct wire_message message_##of = { .name = title, .fields = fields_##of }

FIELDS(value, "AnyValue", TEXT("string_value", 1), WIRE_FIELD("bool_value", 2, WIRE_KIND_BOOL),
       INT("int_value", 3), WIRE_FIELD("double_value", 4, WIRE_KIND_DOUBLE),
       INT("string_value_strindex", 8));
FIELDS(key_value, "KeyValue", TEXT("key", 1), MESSAGE("value", 2, value), INT("key_strindex", 3));
FIELDS(resource, "Resource", MESSAGE("attributes", 1, key_value));
FIELDS(value_type, "ValueType", INT("type_strindex", 1), INT("unit_strindex", 2));
FIELDS(sample, "Sample", INT("stack_index", 1), INT("attribute_indices", 2), INT("link_index", 3),
       INT("values", 4), WIRE_FIELD("timestamps_unix_nano", 5, WIRE_KIND_FIXED64));
FIELDS(profile, "Profile", MESSAGE("sample_type", 1, value_type), MESSAGE("samples", 2, sample),
       WIRE_FIELD("time_unix_nano", 3, WIRE_KIND_FIXED64), INT("duration_nano", 4),
       MESSAGE("period_type", 5, value_type), INT("period", 6), INT("attribute_indices", 11));
FIELDS(scope, "ScopeProfiles", MESSAGE("profiles", 2, profile));
FIELDS(resources, "ResourceProfiles", MESSAGE("resource", 1, resource),
       MESSAGE("scope_profiles", 2, scope));
FIELDS(mapping, "Mapping", INT("memory_start", 1), INT("memory_limit", 2), INT("file_offset", 3),
       INT("filename_strindex", 4), INT("attribute_indices", 5));
FIELDS(line, "Line", INT("function_index", 1), INT("line", 2), INT("column", 3));
FIELDS(location, "Location", INT("mapping_index", 1), INT("address", 2), MESSAGE("lines", 3, line),
       INT("attribute_indices", 4));
FIELDS(function, "Function", INT("name_strindex", 1), INT("system_name_strindex", 2),
       INT("filename_strindex", 3), INT("start_line", 4));
FIELDS(link, "Link", WIRE_FIELD("trace_id", 1, WIRE_KIND_HEX),
       WIRE_FIELD("span_id", 2, WIRE_KIND_HEX));
FIELDS(attribute, "KeyValueAndUnit", INT("key_strindex", 1), MESSAGE("value", 2, value),
       INT("unit_strindex", 3));
FIELDS(stack, "Stack", INT("location_indices", 1));
FIELDS(dictionary, "ProfilesDictionary", MESSAGE("mapping_table", 1, mapping),
       MESSAGE("location_table", 2, location), MESSAGE("function_table", 3, function),
       MESSAGE("link_table", 4, link), TEXT("string_table", 5),
       MESSAGE("attribute_table", 6, attribute), MESSAGE("stack_table", 7, stack));
static const struct wire_field fields_request[] = { MESSAGE("resource_profiles", 1, resources),
						    MESSAGE("dictionary", 2, dictionary),
						    { 0 } };
const struct wire_message otlp_request_message = { .name = "ExportProfilesServiceRequest",
						   .fields = fields_request };

/* ---- answers */

static bool is_json(const struct call *c)
{
	return http_media_is(http_call_header(c->http, "Content-Type"), "application/json");
}

static void reply_message(struct call *c, int status, struct buf *bytes)
{
	reply_as(c, status, bytes, is_json(c) ? "application/json" : "application/x-protobuf");
}

/* Of what is the server's fault clients send only 502, 503 and 504 again. */
static int status_for_client(struct call *c, int status)
{
	if (status != 500 && status != 507)
		return status;
	http_reply_header(c->reply, "Retry-After", RETRY_AFTER);
	return 503;
}

void otlp_say(struct call *c, int of, struct str text)
{
	int status = status_for_client(c, of);
	unsigned code = (unsigned)connect_code_of(status) + 1; /* gRPC counts the same from 1 */
	struct buf out = { 0 };

	if (is_json(c)) {
		buf_printf(&out, "{\"code\":%u,\"message\":", code);
		json_put(&out, text);
		buf_puts(&out, "}\n");
	} else {
		put_number(&out, 1, code);
		put_utf8(&out, 2, text);
	}
	reply_message(c, status, &out);
}

/* ExportProfilesServiceResponse */
static void reply_done(struct call *c, uint64_t nrefused, struct str why)
{
	struct buf out = { 0 }, partial = { 0 };

	if (is_json(c)) {
		buf_char(&out, '{');
		if (nrefused) {
			buf_printf(&out,
				   "\"partialSuccess\":{\"rejectedProfiles\":\"%llu\","
				   "\"errorMessage\":",
				   (unsigned long long)nrefused);
			json_put(&out, why);
			buf_char(&out, '}');
		}
		buf_char(&out, '}');
	} else if (nrefused) {
		put_number(&partial, 1, nrefused);
		put_utf8(&partial, 2, why);
		put_message(&out, 1, &partial);
	}
	buf_release(&partial);
	reply_message(c, 200, &out);
}

/* ---- resources */

struct request {
	struct call *c;
	struct otlp o;
	struct intake in;
	/* of the resource, and of the profile that is at hand */
	struct intake_series series;
	struct str service, executable;
	struct buf instance;
	struct err bad;				      /* what is wrong with the resource */
	struct arena of_resource, of_profile, *texts; /* names of labels; the one in use */
	uint64_t nrefused;
	bool is_full;	/* of as many profiles as a request may have */
	struct err why; /* the first was */
};

/* Says which process it is: told apart by it, but not found by it, or each start of a program would
 * be a series of its own. */
static bool is_of_process(struct str key)
{
	static const char *const keys[] = { "service.instance.id",  "container.id",
					    "process.pid",	    "process.vpid",
					    "process.parent_pid",   "process.creation.time",
					    "process.command_args", "process.command_line" };

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		if (str_eq(key, str_of(keys[i])))
			return true;
	return false;
}

/* As queries write names: k8s.pod.name is k8s_pod_name. */
static struct str label_name(struct arena *a, struct str key)
{
	char *name = str_dup(a, key);

	for (size_t i = 0; i < key.n; i++)
		if (!isalnum((unsigned char)name[i]))
			name[i] = '_';
	return (struct str){ name, key.n };
}

/* Of what is long the beginning will do: it is one of several, and many may refer to it. */
static void take_instance(struct request *r, struct str value)
{
	if (r->instance.n >= INSTANCE_BYTES)
		return;
	if (value.n > INSTANCE_PART)
		value.n = INSTANCE_PART;
	buf_str(&r->instance, value);
	buf_char(&r->instance, '/');
}

/* A small request may name an attribute very often: nothing is copied before it is known to fit. */
static bool take_attribute(struct request *r, const struct otlp_attribute *a, struct err *e)
{
	struct str value = a->value.text;

	if (!value.n)
		return true;
	if (is_of_process(a->key)) {
		take_instance(r, value);
		return true;
	}
	if (str_eq(a->key, STR("service.name"))) {
		r->service = value;
		return true;
	}
	if (!gate_label_fits(r->c->server->options, r->series.labels.n + 1, a->key, value, e) ||
	    !otlp_spend(&r->o, a->key.n + value.n, e))
		return false;
	if (str_eq(a->key, STR("process.executable.name")))
		r->executable = value;
	intake_label(&r->series, label_name(r->texts, a->key), value);
	return true;
}

static bool read_resource(struct request *r, struct wire w, struct err *e)
{
	struct otlp_attribute a;
	struct field f = { 0 };

	while (w.p < w.end) {
		if (!wire_next(&w, &f))
			return err_set(e, ERR_FORMAT, "Resource: no protobuf");
		if (f.number == 1 && f.type == WIRE_BYTES &&
		    !(otlp_key_value(&r->o, f.bytes, &a, e) && take_attribute(r, &a, e)))
			return false;
	}
	return true;
}

/* "unknown_service:exe", as OpenTelemetry says. */
static struct str unknown_service(struct request *r)
{
	struct buf name = { 0 };
	struct str copy;

	buf_puts(&name, "unknown_service");
	if (r->executable.n) {
		buf_char(&name, ':');
		buf_str(&name, r->executable);
	}
	copy = (struct str){ str_dup(&r->of_profile, buf_view(&name)), name.n };
	buf_release(&name);
	return copy;
}

/* ---- profiles */

static void refuse(struct request *r, const struct err *e)
{
	struct str why = str_of(e->text), limit = str_cut(&why, ':');

	if (!r->nrefused++)
		r->why = *e;
	r->is_full |= e->kind == ERR_LIMIT && str_eq(limit, STR("request-profiles"));
	if (e->kind == ERR_LIMIT)
		gate_count(r->c, 200, str_dup(r->c->arena, limit), e->text);
	else
		gate_count_service(r->c, "format", e->text);
}

/* A sample, and the service that it names: an attribute, or 0. */
struct sorted_sample {
	uint32_t service, number;
	uint32_t bytes; /* with its stack: a small request may name a deep one very often */
};

static int compare_samples(const void *a, const void *b)
{
	const struct sorted_sample *x = a, *y = b;

	if (x->service != y->service)
		return x->service < y->service ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

static bool find_service(struct otlp *o, const struct otlp_sample *s, uint32_t *service,
			 struct err *e)
{
	*service = 0;
	for (size_t i = 0; i < s->attributes.n; i++) {
		const struct otlp_attribute *a = otlp_attribute(o, s->attributes.at[i], e);

		if (!a)
			return false;
		if (str_eq(a->key, STR("service.name")) && a->value.is_text)
			*service = (uint32_t)s->attributes.at[i];
	}
	return true;
}

/* With all that it refers to: each observation becomes a sample that has it. */
static bool count_bytes(const struct otlp *o, struct wire w, const struct otlp_sample *s,
			uint32_t *bytes, struct err *e)
{
	struct wire stack = { 0 }, link = { 0 };
	uint64_t sum;

	if ((s->stack && !otlp_row(o, OTLP_STACKS, s->stack, "it", &stack, e)) ||
	    (s->link && !otlp_row(o, OTLP_LINKS, s->link, "it", &link, e)))
		return false;
	sum = SAMPLE_BYTES + s->attributes.n * LABEL_BYTES + wire_view(stack).n + wire_view(link).n;
	sum = sum * s->values.n + s->times.n * LABEL_BYTES + wire_view(w).n;
	*bytes = sum < UINT32_MAX ? (uint32_t)sum : UINT32_MAX;
	return true;
}

/* In order of services. */
static bool sort_samples(struct otlp *o, const struct otlp_profile *p, struct sorted_sample *out,
			 struct err *e)
{
	struct otlp_sample s = { 0 };
	bool ok = true, has_services = false;

	for (size_t i = 0; ok && i < p->samples.n; i++) {
		ok = (otlp_sample(o, p->samples.at[i], &s, e) &&
		      find_service(o, &s, &out[i].service, e) &&
		      count_bytes(o, p->samples.at[i], &s, &out[i].bytes, e)) ||
		     err_wrap(e, "sample %zu", i);
		out[i].number = (uint32_t)i;
		has_services |= ok && out[i].service;
	}
	otlp_sample_release(&s);
	if (ok && has_services)
		qsort(out, p->samples.n, sizeof(*out), compare_samples);
	return ok;
}

/* Memory for samples, with which a desk of their own goes. */
static bool take_memory(struct request *r, const struct sorted_sample *samples, size_t n,
			struct err *e)
{
	uint64_t most = (uint64_t)r->c->server->options->max_unpacked, bytes = 0;

	for (size_t i = 0; i < n; i++)
		bytes += samples[i].bytes;
	if (bytes > most)
		return err_set(e, ERR_LIMIT,
			       "max-unpacked: with a stack for each sample it has more than %s",
			       gate_bytes_text(r->c, most));
	if (!otlp_spend(&r->o, bytes, e))
		return false;
	intake_clear_desk(&r->in);
	if (gate_take(r->c, bytes * STACK_MEMORY))
		return true;
	return err_set(e, ERR_IO, "answered");
}

/* All samples are of the service that the first one names, if it does. */
static bool add_group(struct request *r, const struct otlp_profile *p,
		      const struct sorted_sample *samples, const uint32_t *numbers, size_t n,
		      struct err *e)
{
	const struct otlp_attribute *named = otlp_attribute(&r->o, samples[0].service, e);
	struct profile profile;

	if (!named || !take_memory(r, samples, n, e))
		return false;
	r->series.service = named->value.text.n ? named->value.text : r->service;
	r->c->service = r->series.service;
	return otlp_spend(&r->o, r->series.service.n, e) &&
	       otlp_make(&r->o, p, numbers, n, r->in.desk, &profile, &r->series.type, e) &&
	       intake_offer(&r->in, &r->series, &profile, e);
}

static bool add_groups(struct request *r, const struct otlp_profile *p, struct err *e)
{
	size_t n = p->samples.n;
	struct sorted_sample *samples = xcalloc(n + 1, sizeof(*samples));
	uint32_t *numbers = xcalloc(n + 1, sizeof(*numbers));
	bool ok = sort_samples(&r->o, p, samples, e);

	if (!r->service.n)
		r->service = unknown_service(r);
	for (size_t i = 0; i < n; i++)
		numbers[i] = samples[i].number;
	for (size_t i = 0, end; ok && i < n; i = end) {
		for (end = i + 1; end < n && samples[end].service == samples[i].service; end++)
			;
		ok = add_group(r, p, samples + i, numbers + i, end - i, e);
	}
	free(samples);
	free(numbers);
	return ok;
}

static bool read_profile_labels(struct request *r, const struct otlp_profile *p, struct err *e)
{
	for (size_t i = 0; i < p->attributes.n; i++) {
		const struct otlp_attribute *a = otlp_attribute(&r->o, p->attributes.at[i], e);

		if (!a || !take_attribute(r, a, e))
			return false;
	}
	return true;
}

/* It is not the profile's fault, nor will the next one fare better: all should come again. */
static bool is_ours(const struct err *e)
{
	struct str text = str_of(e->text);

	return e->kind == ERR_IO ||
	       (e->kind == ERR_LIMIT && (str_has_prefix(text, STR("max-disk:")) ||
					 str_has_prefix(text, STR("max-memory:"))));
}

/* False: nothing more of the request can be taken; it has been answered. */
static bool take_profile(struct request *r, struct wire w)
{
	size_t nlabels = r->series.labels.n, ninstance = r->instance.n;
	struct str service = r->service, executable = r->executable;
	struct otlp_profile p;
	struct err e = { 0 };
	bool ok;

	if (r->is_full) {
		r->nrefused++;
		return true;
	}
	r->c->service = r->service;
	if (r->bad.kind != ERR_NONE) {
		refuse(r, &r->bad);
		return true;
	}
	r->texts = &r->of_profile;
	ok = otlp_profile(w, &p, &e) && read_profile_labels(r, &p, &e);
	r->series.instance = buf_view(&r->instance);
	ok = ok && add_groups(r, &p, &e);
	if (!ok && !is_ours(&e))
		refuse(r, &e);
	r->service = service;
	r->executable = executable;
	r->series.labels.n = nlabels;
	r->instance.n = ninstance;
	r->c->service = STR(""); /* it may be of this profile */
	otlp_profile_release(&p);
	arena_rewind(&r->of_profile);
	if (is_ours(&e) && !r->c->reply->status)
		reply_failure(r->c, &e);
	return !r->c->reply->status;
}

static bool malformed(struct request *r)
{
	reply_error(r->c, 400, "ResourceProfiles: no protobuf");
	return false;
}

static bool take_scope(struct request *r, struct wire w)
{
	struct field f = { 0 };

	while (w.p < w.end) {
		if (!wire_next(&w, &f))
			return malformed(r);
		if (f.number == 2 && f.type == WIRE_BYTES && !take_profile(r, f.bytes))
			return false;
	}
	return true;
}

static bool take_resource(struct request *r, struct wire all)
{
	struct wire w = all;
	struct field f = { 0 };

	r->series.labels.n = r->instance.n = 0;
	r->service = r->executable = STR("");
	r->bad.kind = ERR_NONE;
	r->texts = &r->of_resource;
	arena_rewind(&r->of_resource);
	while (w.p < w.end) {
		if (!wire_next(&w, &f))
			return malformed(r);
		if (f.number == 1 && f.type == WIRE_BYTES && r->bad.kind == ERR_NONE)
			read_resource(r, f.bytes, &r->bad);
	}
	for (w = all; w.p < w.end && wire_next(&w, &f);)
		if (f.number == 2 && f.type == WIRE_BYTES && !take_scope(r, f.bytes))
			return false;
	return true;
}

/* ---- requests */

static bool check_type(struct call *c)
{
	struct str type = http_call_header(c->http, "Content-Type");

	if (is_json(c) || http_media_is(type, "application/x-protobuf") ||
	    http_media_is(type, "application/protobuf"))
		return true;
	reply_error(c, 415,
		    "Content-Type \"%.*s\": send application/x-protobuf or application/json",
		    STR_ARG(type));
	return false;
}

/* As protobuf. */
static bool read_message(struct call *c, struct str *message)
{
	return check_type(c) && gate_unpack_body(c, message) &&
	       gate_take(c, (uint64_t)message->n * MESSAGE_MEMORY) &&
	       (!is_json(c) || intake_from_json(c, &otlp_request_message, message));
}

/* Memory for attributes that will be read. */
static bool take_tables(struct request *r)
{
	arena_reserve(&r->of_profile, NAMES_BYTES);
	r->o.left = (uint64_t)r->c->server->options->max_unpacked * MOST_UNPACKED;
	return gate_take(r->c,
			 (uint64_t)r->o.tables[OTLP_ATTRIBUTES].rows.n * sizeof(*r->o.attributes));
}

static bool take_all(struct request *r)
{
	bool ok = true;

	for (size_t i = 0; ok && i < r->o.resources.n; i++)
		ok = take_resource(r, r->o.resources.at[i]);
	return ok;
}

void otlp_post(struct call *c)
{
	struct request r = { .c = c };
	struct str message;
	struct err e;

	if (!read_message(c, &message))
		return;
	if (!otlp_open(&r.o, message, is_json(c), &e)) {
		reply_error(c, 400, "%s", e.text);
	} else if (take_tables(&r)) {
		intake_begin(&r.in, c);
		if (intake_end(&r.in, take_all(&r)))
			reply_done(c, r.nrefused, str_of(r.why.text));
	}
	intake_series_release(&r.series);
	buf_release(&r.instance);
	arena_release(&r.of_resource);
	arena_release(&r.of_profile);
	otlp_release(&r.o);
}
