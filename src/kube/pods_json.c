/* pods_json.c - what the API server says of pods, piece by piece: of 10,000 pods there is one in
 * memory. A part that is of another type than it should be is as if it were not there. */
#include "base/number.h"
#include "base/vec.h"
#include "kube/inside.h"

enum {
	MAX_VALUE_BYTES = 4 << 10,
	MAX_PAIRS_BYTES = 64 << 10,
	MAX_CONTAINERS = 100,
	RESERVE_BYTES = 64 << 10
};

/* ---- parts */

/* Into an array or object, if it is one. */
static bool enter(struct json_reader *r, char bracket)
{
	enum json_type type, want = bracket == '{' ? JSON_OBJECT : JSON_ARRAY;

	if (json_peek(r, &type) && type == want)
		return json_open(r, bracket);
	json_skip(r);
	return false;
}

static void read_text(struct json_reader *r, struct arena *a, struct str *out)
{
	enum json_type type;
	struct str text;

	if (!json_peek(r, &type) || type != JSON_STRING)
		json_skip(r);
	else if (json_read_string(r, &text))
		*out = (struct str){ str_dup(a, text), text.n };
}

static bool read_bool(struct json_reader *r)
{
	enum json_type type;
	bool value = false;

	if (!json_peek(r, &type) || type != JSON_BOOL)
		json_skip(r);
	else
		json_read_bool(r, &value);
	return value;
}

/* 0 if it is none, or is out of range. */
static uint16_t read_small(struct json_reader *r)
{
	enum json_type type;
	struct str text;
	uint64_t value = 0;

	if (!json_peek(r, &type) || type != JSON_NUMBER)
		json_skip(r);
	else if (json_read_number(r, &text) && number_parse_uint(text, 10, &value) != NUMBER_OK)
		value = 0;
	return value <= UINT16_MAX ? (uint16_t)value : 0;
}

/* A member that is a text, by its name. */
struct text_member {
	const char *name;
	struct str *to;
};

/* Reads the value if one of them has the name. */
static bool take_text(struct json_reader *r, struct arena *a, struct str name,
		      const struct text_member *members, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(name, str_of(members[i].name))) {
			read_text(r, a, members[i].to);
			return true;
		}
	return false;
}

#define TAKE_TEXT(r, a, name, members) \
	take_text(r, a, name, members, sizeof(members) / sizeof(*(members)))

static void read_pairs(struct json_reader *r, struct arena *a, const struct kube_pair **out,
		       size_t *n)
{
	vec(struct kube_pair) pairs = { 0 };
	size_t bytes = 0;

	for (bool more = enter(r, '{'); more; more = json_more(r, '}')) {
		struct kube_pair p = { STR(""), STR("") };
		struct str name;
		enum json_type type;

		if (!json_read_name(r, &name))
			break;
		if (name.n > MAX_VALUE_BYTES || !json_peek(r, &type) || type != JSON_STRING) {
			json_skip(r);
			continue;
		}
		p.name = (struct str){ str_dup(a, name), name.n };
		if (!json_read_string(r, &name))
			break;
		if (name.n > MAX_VALUE_BYTES || bytes + p.name.n + name.n > MAX_PAIRS_BYTES)
			continue;
		p.value = (struct str){ str_dup(a, name), name.n };
		bytes += p.name.n + p.value.n;
		vec_push(&pairs, p);
	}
	*n = pairs.n;
	*out = vec_adopt(a, &pairs);
}

/* ---- metadata */

struct owner {
	struct str kind, name;
	bool is_controller;
};

static void read_owner(struct json_reader *r, struct arena *a, struct owner *o)
{
	const struct text_member members[] = { { "kind", &o->kind }, { "name", &o->name } };

	for (bool more = enter(r, '{'); more; more = json_more(r, '}')) {
		struct str name;

		if (!json_read_name(r, &name))
			break;
		if (TAKE_TEXT(r, a, name, members))
			continue;
		if (str_eq(name, STR("controller")))
			o->is_controller = read_bool(r);
		else
			json_skip(r);
	}
}

static void read_owners(struct json_reader *r, struct arena *a, struct kube_pod *pod)
{
	for (bool more = enter(r, '['); more; more = json_more(r, ']')) {
		struct owner o = { STR(""), STR(""), false };

		read_owner(r, a, &o);
		if (!o.is_controller)
			continue;
		pod->owner_kind = o.kind;
		pod->owner = o.name;
	}
}

static void read_metadata(struct json_reader *r, struct arena *a, struct pod_item *item,
			  bool *is_leaving)
{
	struct kube_pod *pod = &item->pod;
	struct str leaving = STR("");
	const struct text_member members[] = {
		{ "name", &pod->name },
		{ "namespace", &pod->namespace },
		{ "uid", &pod->uid },
		{ "resourceVersion", &item->version },
		{ "deletionTimestamp", &leaving },
	};

	for (bool more = enter(r, '{'); more; more = json_more(r, '}')) {
		struct str name;

		if (!json_read_name(r, &name))
			break;
		if (TAKE_TEXT(r, a, name, members))
			continue;
		if (str_eq(name, STR("annotations")))
			read_pairs(r, a, &pod->annotations, &pod->nannotations);
		else if (str_eq(name, STR("labels")))
			read_pairs(r, a, &pod->labels, &pod->nlabels);
		else if (str_eq(name, STR("ownerReferences")))
			read_owners(r, a, pod);
		else
			json_skip(r);
	}
	*is_leaving = leaving.n > 0;
}

/* ---- containers */

static void read_port(struct json_reader *r, struct arena *a, struct kube_port *p)
{
	const struct text_member members[] = { { "name", &p->name } };

	for (bool more = enter(r, '{'); more; more = json_more(r, '}')) {
		struct str name;

		if (!json_read_name(r, &name))
			break;
		if (TAKE_TEXT(r, a, name, members))
			continue;
		if (str_eq(name, STR("containerPort")))
			p->number = read_small(r);
		else
			json_skip(r);
	}
}

static void read_ports(struct json_reader *r, struct arena *a, struct kube_container *c)
{
	vec(struct kube_port) ports = { 0 };

	for (bool more = enter(r, '['); more; more = json_more(r, ']')) {
		struct kube_port p = { STR(""), 0 };

		read_port(r, a, &p);
		if (p.number && ports.n < MAX_CONTAINERS)
			vec_push(&ports, p);
	}
	c->nports = ports.n;
	c->ports = vec_adopt(a, &ports);
}

/* Of spec.containers and of status.containerStatuses: what one has not, the other has. */
static void read_container(struct json_reader *r, struct arena *a, struct kube_container *c)
{
	const struct text_member members[] = { { "name", &c->name }, { "image", &c->image } };

	for (bool more = enter(r, '{'); more; more = json_more(r, '}')) {
		struct str name;

		if (!json_read_name(r, &name))
			break;
		if (TAKE_TEXT(r, a, name, members))
			continue;
		if (str_eq(name, STR("ports")))
			read_ports(r, a, c);
		else if (str_eq(name, STR("ready")))
			c->is_ready = read_bool(r);
		else
			json_skip(r);
	}
}

struct containers {
	struct kube_container *at;
	size_t n;
};

static void read_containers(struct json_reader *r, struct arena *a, struct containers *out)
{
	vec(struct kube_container) all = { 0 };

	for (bool more = enter(r, '['); more; more = json_more(r, ']')) {
		struct kube_container c = { .name = STR(""), .image = STR("") };

		read_container(r, a, &c);
		if (all.n < MAX_CONTAINERS)
			vec_push(&all, c);
	}
	out->n = all.n;
	out->at = vec_adopt(a, &all);
}

static void mark_ready(struct containers *spec, const struct containers *status)
{
	for (size_t i = 0; i < spec->n; i++) {
		spec->at[i].is_ready = false;
		for (size_t k = 0; k < status->n; k++)
			if (str_eq(spec->at[i].name, status->at[k].name))
				spec->at[i].is_ready = status->at[k].is_ready;
	}
}

/* ---- pods */

static void read_spec(struct json_reader *r, struct arena *a, struct kube_pod *pod,
		      struct containers *containers)
{
	const struct text_member members[] = { { "nodeName", &pod->node } };

	for (bool more = enter(r, '{'); more; more = json_more(r, '}')) {
		struct str name;

		if (!json_read_name(r, &name))
			break;
		if (TAKE_TEXT(r, a, name, members))
			continue;
		if (str_eq(name, STR("containers")))
			read_containers(r, a, containers);
		else
			json_skip(r);
	}
}

static void read_status(struct json_reader *r, struct arena *a, struct kube_pod *pod,
			struct containers *containers, struct str *phase)
{
	const struct text_member members[] = {
		{ "phase", phase },
		{ "podIP", &pod->ip },
		{ "hostIP", &pod->host_ip },
	};

	for (bool more = enter(r, '{'); more; more = json_more(r, '}')) {
		struct str name;

		if (!json_read_name(r, &name))
			break;
		if (TAKE_TEXT(r, a, name, members))
			continue;
		if (str_eq(name, STR("containerStatuses")))
			read_containers(r, a, containers);
		else
			json_skip(r);
	}
}

/* A Deployment's ReplicaSets have its name and the hash that their pods have as label. */
static void name_deployment(struct kube_pod *pod)
{
	struct str hash = kube_pod_label(pod, "pod-template-hash"), owner = pod->owner;

	if (!str_eq(pod->owner_kind, STR("ReplicaSet")) || !hash.n || owner.n < hash.n + 2 ||
	    !str_has_suffix(owner, hash) || owner.p[owner.n - hash.n - 1] != '-')
		return;
	pod->owner_kind = STR("Deployment");
	pod->owner.n = owner.n - hash.n - 1;
}

static bool read_pod(struct json_reader *r, struct arena *a, struct pod_item *item)
{
	struct containers spec = { 0 }, status = { 0 };
	struct str phase = STR(""), none = STR("");
	struct kube_pod *pod = &item->pod;
	bool is_leaving = false;

	*item = (struct pod_item){
		.version = none,
		.pod = { none, none, none, none, none, none, none, none, false, NULL, NULL, 0, 0,
			 NULL, 0 },
	};
	for (bool more = enter(r, '{'); more; more = json_more(r, '}')) {
		struct str name;

		if (!json_read_name(r, &name))
			break;
		if (str_eq(name, STR("metadata")))
			read_metadata(r, a, item, &is_leaving);
		else if (str_eq(name, STR("spec")))
			read_spec(r, a, pod, &spec);
		else if (str_eq(name, STR("status")))
			read_status(r, a, pod, &status, &phase);
		else
			json_skip(r);
	}
	mark_ready(&spec, &status);
	pod->containers = spec.at;
	pod->ncontainers = spec.n;
	pod->is_running = str_eq(phase, STR("Running")) && !is_leaving;
	name_deployment(pod);
	return !r->failed;
}

bool pods_read_one(struct arena *a, struct str json, struct kube_pod *pod, struct err *e)
{
	struct json_reader r;
	struct pod_item item;
	bool ok;

	json_reader_init(&r, json, e);
	ok = read_pod(&r, a, &item) && json_finish(&r);
	json_reader_release(&r);
	*pod = item.pod;
	return ok && (pod->name.n || err_set(e, ERR_FORMAT, "this is no pod"));
}

/* ---- lists */

static void read_page_metadata(struct json_reader *r, struct pod_page *page)
{
	for (bool more = enter(r, '{'); more; more = json_more(r, '}')) {
		struct buf *to = NULL;
		enum json_type type;
		struct str text;

		if (!json_read_name(r, &text))
			break;
		if (str_eq(text, STR("resourceVersion")))
			to = &page->version;
		else if (str_eq(text, STR("continue")))
			to = &page->next;
		if (!to || !json_peek(r, &type) || type != JSON_STRING) {
			json_skip(r);
		} else if (json_read_string(r, &text)) {
			to->n = 0;
			buf_str(to, text);
		}
	}
}

static void read_items(struct json_reader *r, take_item *take, void *ctx, struct pod_page *page)
{
	struct arena a = { 0 };

	arena_reserve(&a, RESERVE_BYTES);
	for (bool more = enter(r, '['); more && !page->is_ended; more = json_more(r, ']')) {
		struct pod_item item;

		arena_rewind(&a);
		if (read_pod(r, &a, &item) && item.pod.name.n)
			page->is_ended = !take(ctx, &item);
	}
	arena_release(&a);
}

bool pods_read_page(struct str json, take_item *take, void *ctx, struct pod_page *page,
		    struct err *e)
{
	struct json_reader r;
	bool ok;

	page->version.n = page->next.n = 0;
	page->is_ended = false;
	json_reader_init(&r, json, e);
	for (bool more = json_open(&r, '{'); more && !page->is_ended; more = json_more(&r, '}')) {
		struct str name;

		if (!json_read_name(&r, &name))
			break;
		if (str_eq(name, STR("metadata")))
			read_page_metadata(&r, page);
		else if (str_eq(name, STR("items")))
			read_items(&r, take, ctx, page);
		else
			json_skip(&r);
	}
	ok = page->is_ended || json_finish(&r);
	json_reader_release(&r);
	if (ok && !page->is_ended && !page->version.n)
		ok = err_set(e, ERR_FORMAT, "it has no metadata.resourceVersion");
	return ok || err_wrap(e, "this is no list of pods");
}

/* ---- watches */

static void read_error(struct json_reader *r, struct arena *a, struct pod_event *event)
{
	const struct text_member members[] = { { "message", &event->message } };

	for (bool more = enter(r, '{'); more; more = json_more(r, '}')) {
		struct str name;

		if (!json_read_name(r, &name))
			break;
		if (TAKE_TEXT(r, a, name, members))
			continue;
		if (str_eq(name, STR("code")))
			event->code = read_small(r);
		else
			json_skip(r);
	}
}

/* The object may come before its type. */
static bool split_event(struct json_reader *r, struct arena *a, struct str *type,
			struct str *object)
{
	for (bool more = json_open(r, '{'); more; more = json_more(r, '}')) {
		struct str name;
		size_t start;

		if (!json_read_name(r, &name))
			break;
		if (str_eq(name, STR("type"))) {
			read_text(r, a, type);
		} else if (str_eq(name, STR("object"))) {
			start = r->at;
			json_skip(r);
			*object = (struct str){ r->text.p + start, r->at - start };
		} else {
			json_skip(r);
		}
	}
	return json_finish(r);
}

static bool read_kind(struct str type, struct pod_event *event, struct err *e)
{
	static const struct {
		const char *name;
		enum pod_event_kind kind;
	} kinds[] = {
		{ "ADDED", POD_IS },	      { "MODIFIED", POD_IS }, { "DELETED", POD_GONE },
		{ "BOOKMARK", POD_BOOKMARK }, { "ERROR", POD_ERROR },
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (str_eq(type, str_of(kinds[i].name))) {
			event->kind = kinds[i].kind;
			return true;
		}
	return err_set(e, ERR_FORMAT, "an event is of no known type");
}

bool pods_read_event(struct arena *a, struct str line, struct pod_event *event, struct err *e)
{
	struct str type = STR(""), object = STR("{}");
	struct json_reader r;
	bool ok;

	*event = (struct pod_event){ .message = STR("") };
	json_reader_init(&r, line, e);
	ok = split_event(&r, a, &type, &object) && read_kind(type, event, e);
	json_reader_release(&r);
	if (!ok)
		return false;
	json_reader_init(&r, object, e);
	if (event->kind == POD_ERROR)
		read_error(&r, a, event);
	else
		read_pod(&r, a, &event->item);
	ok = !r.failed;
	json_reader_release(&r);
	if (ok && event->kind != POD_ERROR && !event->item.version.n)
		ok = err_set(e, ERR_FORMAT, "an event has no metadata.resourceVersion");
	if (ok && event->kind <= POD_GONE && !event->item.pod.name.n)
		ok = err_set(e, ERR_FORMAT, "an event has a pod without a name");
	return ok;
}
